"""One client of the daemon under torture: seeded random calls in a scope of its own, each entered into its model.

Owns the choice of calls, the request ids that make each safe to send again, and what "nobody answered" means: the call
stays open in the model until ``settle`` sends it again. Many run at once, each on a thread. Checks what it reads at
once by the way; ``torture_check`` compares the whole after a restart.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from google.protobuf import field_mask_pb2, struct_pb2
from grpc_status import rpc_status

from memxd.v1 import memory_pb2, search_pb2
from memxd.v1 import memory_service_pb2 as pb
from torture_model import ACTIVE, ARCHIVED, SUPERSEDED, Facts, Model, Open

SECONDS = 60.0
#: Beyond so many memories a client erases more than it stores.
ENOUGH = 60
COMMON = ("the", "agent", "likes", "green", "tea", "in", "morning", "near", "an", "old", "harbour", "while", "rain")


class GoneError(Exception):
    """The daemon went away in the middle of a call."""


def spelt(number: int) -> str:
    """A number in letters that no analyzer splits or stems."""
    return "".join("bcdfghjkmv"[int(digit)] for digit in str(number))


def judged(error: Any) -> Exception:
    """What a failed call says: the daemon is gone, or it refused what it must not refuse."""
    if rpc_status.from_call(error) is None and error.code() in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNKNOWN,
    ):
        return GoneError()
    return AssertionError(f"refused: {error.code().name} {error.details()}")


class Client:
    """One agent and its model."""

    def __init__(self, number: int, seed: int) -> None:
        self.scope = memory_pb2.Scope(agent_id="torture", user_id=f"client-{number}")
        self.model = Model()
        self.problems: list[str] = []
        self.calls = 0
        self._letter = "pqrst"[number % 5] + spelt(number)
        self._random = random.Random(f"{seed}/{number}")
        self._made = 0

    def run(self, rpc: Any, stop: threading.Event) -> None:
        """Call until told to stop or until the daemon is gone."""
        acts: list[tuple[int, Callable[[Any], None]]] = [
            (12, self._store), (4, self._store_many), (4, self._supersede), (6, self._rewrite), (5, self._attributes),
            (3, self._archive), (4, self._delete), (1, self._delete_many), (4, self._link), (1, self._unlink),
            (8, self._look), (3, self._look_for_gone),
        ]  # fmt: skip
        names = [act for _, act in acts]
        while not stop.is_set():
            weights = [weight for weight, _ in acts]
            if len(self.model.records) > ENOUGH:
                weights[0] = weights[1] = 1
                weights[6] = 20
            act = self._random.choices(names, weights)[0]
            try:
                act(rpc)
            except GoneError:
                return
            except Exception as error:  # whatever it is, it is a finding
                self.problems.append(f"{self.scope.user_id} {act.__name__}: {type(error).__name__}: {error}")
                return
            self.calls += 1

    def settle(self, rpc: Any) -> None:
        """Send again what nobody answered, under the same request id."""
        open = self.model.open
        if open is not None:
            open.done(open.send(rpc))
            self.model.open = None

    # -- sending -----------------------------------------------------------------------------------------------------

    def _id(self) -> str:
        self._made += 1
        return f"{self._letter}-{self._made}"

    def _call(self, method: str, request: Any, done: Callable[[Any], None], rpc: Any) -> None:
        """A change: open until it is answered."""

        def send(through: Any) -> Any:
            try:
                return getattr(through, method)(request, timeout=SECONDS)
            except grpc.RpcError as error:
                raise judged(error) from error

        self.model.open = Open(send, done)
        self.settle(rpc)

    def _read(self, method: str, request: Any, rpc: Any) -> Any:
        try:
            return getattr(rpc, method)(request, timeout=SECONDS)
        except grpc.RpcError as error:
            raise judged(error) from error

    def _new(self, **more: Any) -> pb.NewMemory:
        """A memory that is like no other."""
        self._made += 1
        metadata = struct_pb2.Struct()
        metadata.update({"n": self._made, "of": self._letter})
        return pb.NewMemory(
            content=self._text(),
            type=self._random.randrange(1, 6),
            tags=[f"tag{self._random.randrange(8)}", self._letter],
            metadata=metadata,
            importance=self._random.randrange(11) / 10,
            source="torture",
            **more,
        )

    def _text(self) -> str:
        self._made += 1
        rest = " ".join(self._random.choices(COMMON, k=self._random.randint(3, 9)))
        return f"about zq{self._letter}{spelt(self._made)}x {rest}"

    def _any(self, *states: int) -> str | None:
        ids = [id for id, facts in self.model.records.items() if facts.state in (states or (ACTIVE,))]
        return self._random.choice(ids) if ids else None

    # -- storing -----------------------------------------------------------------------------------------------------

    def _store(self, rpc: Any, supersedes: str | None = None) -> None:
        more = {"supersedes": [supersedes]} if supersedes else {}
        request = pb.StoreRequest(scope=self.scope, memory=self._new(**more), request_id=self._id())
        self._call("Store", request, lambda answer: self.model.stored(answer.memory, supersedes or ""), rpc)

    def _supersede(self, rpc: Any) -> None:
        self._store(rpc, self._any())

    def _store_many(self, rpc: Any) -> None:
        items = [
            pb.StoreManyRequest(scope=self.scope, memory=self._new(), request_id=self._id())
            for _ in range(self._random.randint(2, 24))
        ]

        def send(through: Any) -> Sequence[int]:
            answered = []
            try:
                for answer in through.StoreMany(iter(items), timeout=SECONDS):
                    assert answer.WhichOneof("result") == "stored", answer
                    self.model.stored(answer.stored.memory)  # from here on it must not be lost, whatever follows
                    answered.append(answer.index)
            except grpc.RpcError as error:
                raise judged(error) from error
            return answered

        def done(answered: Sequence[int]) -> None:
            assert answered == list(range(len(items))), answered

        self.model.open = Open(send, done, whole=False)
        self.settle(rpc)

    # -- changing ----------------------------------------------------------------------------------------------------

    def _update(self, rpc: Any, id: str, patch: pb.MemoryPatch, *paths: str) -> None:
        mask = field_mask_pb2.FieldMask(paths=paths)
        request = pb.UpdateRequest(scope=self.scope, id=id, update_mask=mask, memory=patch, request_id=self._id())
        self._call("Update", request, lambda answer: self.model.updated(answer.memory), rpc)

    def _rewrite(self, rpc: Any) -> None:
        id = self._any()
        if id is not None:
            self._update(rpc, id, pb.MemoryPatch(content=self._text()), "content")

    def _attributes(self, rpc: Any) -> None:
        id = self._any()
        if id is not None:
            metadata = struct_pb2.Struct()
            metadata.update({"changed": self._made})
            patch = pb.MemoryPatch(
                importance=self._random.randrange(11) / 10, tags=[f"tag{self._random.randrange(8)}"], metadata=metadata
            )
            self._update(rpc, id, patch, "importance", "tags", "metadata")

    def _archive(self, rpc: Any) -> None:
        id = self._any(ACTIVE, ARCHIVED)
        if id is not None:
            state = ACTIVE if self.model.records[id].state == ARCHIVED else ARCHIVED
            self._update(rpc, id, pb.MemoryPatch(state=state), "state")

    def _delete(self, rpc: Any) -> None:
        id = self._any(ACTIVE, SUPERSEDED, ARCHIVED)
        if id is not None:
            request = pb.DeleteRequest(scope=self.scope, id=id, request_id=self._id())
            self._call("Delete", request, lambda _: self.model.erased([id]), rpc)

    def _delete_many(self, rpc: Any) -> None:
        tag = f"tag{self._random.randrange(8)}"
        doomed = [id for id, facts in self.model.records.items() if tag in facts.tags]
        request = pb.DeleteManyRequest(
            scope=self.scope, filter=memory_pb2.Filter(tags_any=[tag]), request_id=self._id()
        )

        def done(answer: Any) -> None:
            assert answer.deleted_count == len(doomed), (answer, doomed)
            self.model.erased(doomed)

        self._call("DeleteMany", request, done, rpc)

    def _link(self, rpc: Any) -> None:
        one, two = self._any(), self._any()
        pairs = {frozenset(ends[:2]) for ends in self.model.links.values()}
        if one is None or two is None or one == two or frozenset((one, two)) in pairs:
            return
        request = pb.CreateLinkRequest(scope=self.scope, source_id=one, target_id=two, type=2, request_id=self._id())

        def done(answer: Any) -> None:
            self.model.links[answer.link.id] = (one, two, 2)

        self._call("CreateLink", request, done, rpc)

    def _unlink(self, rpc: Any) -> None:
        if self.model.links:
            id = self._random.choice(sorted(self.model.links))
            request = pb.DeleteLinkRequest(scope=self.scope, id=id, request_id=self._id())
            self._call("DeleteLink", request, lambda _: self.model.links.pop(id), rpc)

    # -- looking -----------------------------------------------------------------------------------------------------

    def _look(self, rpc: Any) -> None:
        """What was acknowledged is found at once, by one leg or both."""
        id = self._any()
        if id is None:
            return
        facts = self.model.records[id]
        mode = self._random.choice((1, 2, 3))
        answer = self._read("Search", self.question(facts.content, mode), rpc)
        assert not answer.degraded, answer.degraded
        found = {hit.memory.id: Facts.of(hit.memory) for hit in answer.hits}
        assert id in found, f"{facts} is not found by mode {mode}"
        assert facts.equals(found[id]), (facts, found[id])

    def _look_for_gone(self, rpc: Any) -> None:
        words = self.hidden_words()
        if words:
            word = self._random.choice(words)
            answer = self._read("Search", self.question(word, 1), rpc)
            assert not any(word in hit.memory.content for hit in answer.hits), f"{word} is still found"

    def hidden_words(self) -> list[str]:
        """Words of what was erased, replaced or hidden lately."""
        erased = [facts.word for facts in list(self.model.gone.values())[-20:]]
        return erased + self.model.replaced[-20:] + [f.word for f in self.model.records.values() if f.state != ACTIVE]

    def question(self, query: str, mode: int, k: int = 5) -> pb.SearchRequest:
        """By the text alone, nothing folded or rejected. ``mode``: 1 hybrid, 2 vector, 3 keyword."""
        ranking = search_pb2.Ranking(
            weights=search_pb2.FactorWeights(semantic=1, recency=0, frequency=0, importance=0),
            dedup=search_pb2.DEDUP_MODE_OFF,
            reject=False,
        )
        return pb.SearchRequest(
            scope=self.scope, query=query, mode=mode, k=k, exact=True, ranking=ranking, record_retrieval=False
        )
