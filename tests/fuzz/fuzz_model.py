"""What one scope must hold, whatever else the daemon is doing: the model of the concurrency test.

Owns the records and links as their only writer knows them, the effects of superseding and erasing, and what is left
open by a call that was never answered. Compares itself with a daemon. Knows nothing of threads and signals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memxd.v1 import memory_pb2, search_pb2
from memxd.v1 import memory_service_pb2 as pb

ACTIVE, SUPERSEDED, ARCHIVED = 1, 2, 3
SECONDS = 60.0
EVERY_STATE = memory_pb2.Filter(states=[ACTIVE, SUPERSEDED, ARCHIVED])
KEYWORD, VECTOR = search_pb2.SEARCH_MODE_KEYWORD, search_pb2.SEARCH_MODE_VECTOR
#: By the text alone, whole and unfolded.
PLAIN = search_pb2.Ranking(
    weights=search_pb2.FactorWeights(semantic=1, recency=0, frequency=0, importance=0),
    dedup=search_pb2.DEDUP_MODE_OFF,
    reject=False,
)


@dataclass
class Record:
    """One memory. ``word`` occurs in its content and in no other text ever stored in the scope."""

    id: str
    word: str
    content: str
    importance: float
    tag: str
    state: int = ACTIVE
    superseder: str = ""
    gets: int = 0

    def is_stored_as(self, stored: memory_pb2.Memory) -> bool:
        """Whether the daemon has it exactly so."""
        seen = (stored.content, stored.state, list(stored.tags), stored.importance, stored.superseded_by)
        return seen == (self.content, self.state, [self.tag], self.importance, self.superseder)


@dataclass
class Model:
    """One scope. Keys are ids; links are kept as id -> (source id, target id)."""

    scope: memory_pb2.Scope
    records: dict[str, Record] = field(default_factory=dict)
    links: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: Words that must not be found any more, newest last, and the ids that are gone.
    gone_words: list[str] = field(default_factory=list)
    gone_ids: set[str] = field(default_factory=set)
    #: Calls without an answer: what they would have stored, changed or erased.
    maybe_stored: dict[str, str] = field(default_factory=dict)
    maybe_changed: dict[str, Record] = field(default_factory=dict)
    maybe_erased: set[str] = field(default_factory=set)
    maybe_superseded: dict[str, str] = field(default_factory=dict)
    maybe_linked: bool = False
    maybe_got: str = ""

    def active(self) -> list[Record]:
        """What Search, List and Count see by default."""
        return [r for r in self.records.values() if r.state == ACTIVE]

    def supersede(self, old: str, new: str) -> None:
        """``new`` replaces ``old``."""
        self.records[old].state, self.records[old].superseder = SUPERSEDED, new

    def erase(self, id: str) -> None:
        """A memory goes with its links; what it superseded comes back."""
        self.gone_words.append(self.records.pop(id).word)
        self.gone_ids.add(id)
        self.links = {link: ends for link, ends in self.links.items() if id not in ends}
        for record in self.records.values():
            if record.superseder == id:
                record.state, record.superseder = ACTIVE, ""

    # -- asking the daemon -------------------------------------------------------------------------------------------

    def found(self, rpc: Any, query: str, mode: Any, k: int = 5) -> list[memory_pb2.Memory]:
        """The hits of one leg; the answer must be whole."""
        question = pb.SearchRequest(
            scope=self.scope, query=query, mode=mode, k=k, exact=True, ranking=PLAIN, record_retrieval=False
        )
        answer = rpc.Search(question, timeout=SECONDS)
        assert not answer.degraded, answer.degraded
        return [hit.memory for hit in answer.hits]

    def check_visible(self, rpc: Any, record: Record) -> None:
        """An active record is found by both legs, as it now stands."""
        for mode, query in ((KEYWORD, record.word), (VECTOR, record.content)):
            hits = {m.id: m for m in self.found(rpc, query, mode)}
            assert record.id in hits, f"{record} is not found by mode {mode}; hits: {list(hits.values())}"
            assert hits[record.id].content == record.content, (record, hits[record.id])

    def check_hidden(self, rpc: Any, word: str) -> None:
        """No leg finds a word that was erased, replaced or hidden."""
        for mode in (KEYWORD, VECTOR):
            texts = [m.content for m in self.found(rpc, word, mode)]
            assert not any(word in text for text in texts), f"{word} is still found by mode {mode}: {texts}"

    def listed(self, rpc: Any, **what: Any) -> Iterator[memory_pb2.Memory]:
        """Every page of a list."""
        token = ""
        while True:
            page = rpc.List(pb.ListRequest(scope=self.scope, page_size=40, page_token=token, **what), timeout=SECONDS)
            yield from page.memories
            token = page.next_page_token
            if not token:
                return

    def check_lists(self, rpc: Any) -> None:
        """List and Count agree with the model, record by record."""
        there = {m.id: m for m in self.listed(rpc, filter=EVERY_STATE)}
        assert there.keys() == self.records.keys(), self._difference(there)
        for id, record in self.records.items():
            assert record.is_stored_as(there[id]), (record, there[id])
            assert not there[id].vector_pending, there[id]
        assert {m.id for m in self.listed(rpc)} == {r.id for r in self.active()}
        assert rpc.Count(pb.CountRequest(scope=self.scope), timeout=SECONDS).count == len(self.active())
        everything = rpc.Count(pb.CountRequest(scope=self.scope, filter=EVERY_STATE), timeout=SECONDS)
        assert everything.count == len(self.records)

    def check_links(self, rpc: Any, id: str) -> None:
        """The links of one record, those that superseding made left aside."""
        listed = rpc.ListLinks(pb.ListLinksRequest(scope=self.scope, memory_id=id, page_size=500), timeout=SECONDS)
        seen = {link.id: (link.source_id, link.target_id) for link in listed.links if link.type != 5}
        assert seen == {link: ends for link, ends in self.links.items() if id in ends}

    def check_everything(self, rpc: Any) -> None:
        """All of the above."""
        self.check_lists(rpc)
        for record in self.records.values():
            if record.state == ACTIVE:
                self.check_visible(rpc, record)
            else:
                self.check_hidden(rpc, record.word)
            self.check_links(rpc, record.id)
        for word in self.gone_words[-30:]:
            self.check_hidden(rpc, word)

    def _difference(self, there: dict[str, memory_pb2.Memory]) -> str:
        lost = [r for id, r in self.records.items() if id not in there]
        odd = [m for id, m in there.items() if id not in self.records]
        back = [m.id for m in odd if m.id in self.gone_ids]
        return f"lost {lost}; not expected {odd}; risen from the dead {back}"

    # -- after a crash -----------------------------------------------------------------------------------------------

    def settle(self, rpc: Any, *, counted: bool) -> None:
        """Learn how the calls without an answer ended: each wholly done or not at all, and nothing else.

        ``counted``: the daemon stopped in order, so that no access may be missing.
        """
        there = {m.id: m for m in self.listed(rpc, filter=EVERY_STATE)}
        erased = {id for id in self.maybe_erased if id not in there}
        assert erased in (set(), self.maybe_erased), f"half erased: {erased} of {self.maybe_erased}"
        for id in erased:
            self.erase(id)
        for id, after in self.maybe_changed.items():
            before = self.records[id]
            assert id in there, f"lost: {before}"
            if after.is_stored_as(there[id]):
                if before.word != after.word:
                    self.gone_words.append(before.word)
                after.gets = before.gets
                self.records[id] = after
        self._settle_stored(there)
        self._settle_counts(there, counted)
        if self.maybe_linked:
            for id in self.records:
                listed = rpc.ListLinks(pb.ListLinksRequest(scope=self.scope, memory_id=id), timeout=SECONDS)
                self.links |= {x.id: (x.source_id, x.target_id) for x in listed.links if x.type != 5}
        self.maybe_stored, self.maybe_changed, self.maybe_superseded = {}, {}, {}
        self.maybe_erased, self.maybe_linked, self.maybe_got = set(), False, ""

    def _settle_stored(self, there: dict[str, memory_pb2.Memory]) -> None:
        for id, stored in there.items():
            if id not in self.records and stored.content in self.maybe_stored:
                word = self.maybe_stored.pop(stored.content)
                self.records[id] = Record(id, word, stored.content, stored.importance, stored.tags[0])
                if stored.content in self.maybe_superseded:
                    self.supersede(self.maybe_superseded[stored.content], id)

    def _settle_counts(self, there: dict[str, memory_pb2.Memory], counted: bool) -> None:
        for id, record in self.records.items():
            if id in there:
                least = record.gets if counted else 0
                assert least <= there[id].access_count <= record.gets + (id == self.maybe_got), (record, there[id])
                record.gets = there[id].access_count
