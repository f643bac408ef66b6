"""What one scope must hold by what its client was told: records, links, and what is open because nobody answered.

Owns the facts of a record that must survive, the effect of every call, and the comparison with what a daemon lists.
One client thread is its only writer, so at most one call is open at a time. Knows no sockets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf import json_format

ACTIVE, SUPERSEDED, ARCHIVED = 1, 2, 3
SUPERSEDES = 5


@dataclass(frozen=True)
class Facts:
    """One memory as it must be read back. ``revision`` 0 = not told: another record's call has changed it."""

    content: str
    type: int
    tags: tuple[str, ...]
    metadata: str
    importance: float
    state: int
    superseded_by: str
    created: int
    revision: int

    @property
    def word(self) -> str:
        """The word of its content that no other text has."""
        return self.content.split()[1]

    @classmethod
    def of(cls, memory: Any) -> Facts:
        """From a Memory message."""
        metadata = json.dumps(json_format.MessageToDict(memory.metadata), sort_keys=True)
        created = memory.created_at.ToMicroseconds()
        return cls(
            memory.content, memory.type, tuple(memory.tags), metadata, memory.importance, memory.state,
            memory.superseded_by, created, memory.revision,
        )  # fmt: skip

    def equals(self, other: Facts) -> bool:
        """Equal but for a revision that is not known."""
        if self.revision and other.revision:
            return self == other
        return replace(self, revision=0) == replace(other, revision=0)


@dataclass
class Open:
    """A call that was sent and not answered: how to send it again, and what an answer means. ``whole``: it happens
    wholly or not at all (StoreMany may be done in part)."""

    send: Callable[[Any], Any]
    done: Callable[[Any], None]
    whole: bool = True


@dataclass
class Model:
    """One scope. ``links``: id -> (source, target, type)."""

    records: dict[str, Facts] = field(default_factory=dict)
    links: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    #: Superseding by Store makes a link whose id nobody is told: (newer, older).
    unnamed: set[tuple[str, str]] = field(default_factory=set)
    gone: dict[str, Facts] = field(default_factory=dict)
    #: Words that stood in a record and were replaced by others.
    replaced: list[str] = field(default_factory=list)
    open: Open | None = None

    def copy(self) -> Model:
        """As it is now; what is open is left out."""
        return Model(
            dict(self.records), dict(self.links), set(self.unnamed), dict(self.gone), list(self.replaced), None
        )

    def stored(self, memory: Any, supersedes: str = "") -> None:
        """A Store was acknowledged."""
        self.records[memory.id] = Facts.of(memory)
        if supersedes:
            old = self.records[supersedes]
            self.records[supersedes] = replace(old, state=SUPERSEDED, superseded_by=memory.id, revision=0)
            self.unnamed.add((memory.id, supersedes))

    def updated(self, memory: Any) -> None:
        """An Update was acknowledged."""
        before, after = self.records[memory.id], Facts.of(memory)
        if before.word != after.word:
            self.replaced.append(before.word)
        self.records[memory.id] = after

    def erased(self, ids: Iterable[str]) -> None:
        """A Delete or DeleteMany was acknowledged."""
        ids = set(ids)
        for id in ids:
            self.gone[id] = self.records.pop(id)
        self.links = {link: ends for link, ends in self.links.items() if not ids & set(ends[:2])}
        self.unnamed = {ends for ends in self.unnamed if not ids & set(ends)}
        for id, facts in self.records.items():
            if facts.superseded_by in ids:
                self.records[id] = replace(facts, state=ACTIVE, superseded_by="", revision=0)

    def learn(self, listed: dict[str, Facts]) -> None:
        """Take over the revisions that nobody has told yet."""
        for id, facts in self.records.items():
            if not facts.revision and id in listed and facts.equals(listed[id]):
                self.records[id] = listed[id]

    @property
    def link_count(self) -> int:
        """How many links there are."""
        return len(self.links) + len(self.unnamed)


@dataclass
class Verdict:
    """What a comparison found; all empty = as it must be."""

    lost: list[str] = field(default_factory=list)
    resurrected: list[str] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lost or self.resurrected or self.mismatches)

    def add(self, other: Verdict) -> None:
        """Take over another one's findings."""
        self.lost += other.lost
        self.resurrected += other.resurrected
        self.mismatches += other.mismatches


def compare(model: Model, listed: dict[str, Facts], verdict: Verdict) -> None:
    """Every record of the model against a list of everything in its scope."""
    for id, facts in model.records.items():
        if id not in listed:
            verdict.lost.append(f"{id} {facts}")
        elif not facts.equals(listed[id]):
            verdict.mismatches.append(f"{id} is {listed[id]}, must be {facts}")
    for id in listed.keys() - model.records.keys():
        if id in model.gone:
            verdict.resurrected.append(f"{id} {listed[id]}")
        else:
            verdict.mismatches.append(f"nobody was told of {id} {listed[id]}")


def between(before: Model, after: Model, found: dict[str, Facts], whole: bool, verdict: Verdict) -> None:
    """What was found before an open call was sent again: it had happened, or it had not; in part only if it may."""
    first, second = Verdict(), Verdict()
    compare(before, found, first)
    compare(after, found, second)
    if not first or not second:
        return
    if whole:
        verdict.add(first)
        verdict.mismatches.append("a call that nobody answered was done by halves")
        return
    for id, facts in found.items():
        known = [m.records[id] for m in (before, after) if id in m.records]
        if not any(facts.equals(one) for one in known):
            verdict.mismatches.append(f"{id} {facts} is neither of before nor of after an open call")
    verdict.lost += [f"{id} {facts}" for id, facts in before.records.items() if id not in found]
