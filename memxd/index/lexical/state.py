"""The index in memory: which document of which segment is each row's living one.

Owns the committed segments, the tails (documents in no file yet: one that grows, one that is being folded), the maps by
rid, and the snapshots that searches take. The applier and the folding thread change it, searchers freeze it, all under
one short lock; what a snapshot holds is never changed afterwards (arrays are copied before a write when a snapshot
has them; only the length of a row that no older snapshot knows is written in place). Knows no files, no scores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from memxd.index.lexical.hits import Int32, UInt8
from memxd.index.lexical.segment import Committed, LoadedSegment
from memxd.index.lexical.tail import Tail

_NONE = -1
Lists = tuple[Int32, Int32] | None
#: One change as the index keeps it: rid, terms (None = gone), length, revision.
Entry: TypeAlias = tuple[int, Mapping[str, int] | None, int, int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one search sees: segments as the kernel takes them, where their posting lists are, lengths by rid."""

    segments: tuple[tuple[Int32, UInt8, bool], ...]
    loaded: tuple[LoadedSegment, ...]  # the first segments; the tails are the others
    lengths: Int32


@dataclass(slots=True)
class Job:
    """What the child is to make durable: a packed tail or none, deletions by segment, the revision then reached."""

    watermark: int
    changes: int  # how many changes it covers
    deletes: dict[str, list[int]]
    payload: list[bytes] = field(default_factory=list)


class State:
    """See the module. Methods take the lock themselves; ``lock`` is shared with conditions of the callers."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.watermark = 0  # newest revision searches see
        self.durable = 0  # newest revision committed
        self.changes = 0  # changes taken over, and how many of them are committed: a rebuild's late changes may be
        self.committed = 0  # older than its watermark, so revisions do not tell whether there is work
        self._reset()

    def _reset(self) -> None:
        self._numbers = 1
        self._loaded: dict[int, LoadedSegment] = {}
        self._alive: dict[int, UInt8] = {}
        self._active = Tail(self._next())
        self._sealed: Tail | None = None
        self._sealed_at = (0, 0)  # watermark and changes it covers
        self._home = np.full(1024, _NONE, np.int32)  # by rid: segment number
        self._doc = np.zeros(1024, np.int32)  # by rid: document number there
        self._lengths = np.full(1024, -1, np.int32)
        self._frozen: Snapshot | None = None
        self._shared: set[int] = set()  # segments whose alive a snapshot holds; 0 = lengths
        self._undurable: dict[int, set[int]] = {}  # deletions in committed segments that the TOC does not know
        self._killed: set[int] = set()  # rows whose stored document died since the job began

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    # -- the applier ------------------------------------------------------------------------------------------------

    def put(self, rid: int, counts: Mapping[str, int], length: int, revision: int) -> None:
        """A row's text is now this."""
        with self.lock:
            self._put(rid, counts, length)
            self._note(revision)

    def remove(self, rid: int, revision: int) -> None:
        """A row is gone."""
        with self.lock:
            self._remove(rid)
            self._note(revision)

    def advance(self, revision: int) -> None:
        """Nothing of ours changed up to this revision."""
        with self.lock:
            self._note(revision)

    def _put(self, rid: int, counts: Mapping[str, int], length: int) -> None:
        self._grow(rid)
        self._kill(rid)
        self._home[rid], self._doc[rid] = self._active.number, self._active.add(rid, counts, length)
        self._write_length(rid, length)
        self._frozen = None

    def _remove(self, rid: int) -> None:
        if rid < self._home.shape[0] and self._home[rid] != _NONE:
            self._kill(rid)
            self._home[rid] = _NONE
            self._write_length(rid, -1)
            self._frozen = None

    def _note(self, revision: int) -> None:
        self.watermark = max(self.watermark, revision)
        self.changes += 1

    def _kill(self, rid: int) -> None:
        number, doc = int(self._home[rid]), int(self._doc[rid])
        if number == _NONE:
            return
        if number == self._active.number:
            self._active.kill(doc)
            return
        self._killed.add(rid)
        if self._sealed is not None and number == self._sealed.number:
            self._sealed.kill(doc)
            return
        if number in self._shared:
            self._alive[number] = self._alive[number].copy()
            self._shared.discard(number)
        self._alive[number][doc] = 0
        self._undurable.setdefault(number, set()).add(doc)

    def _write_length(self, rid: int, length: int) -> None:
        if 0 in self._shared and self._lengths[rid] != -1:
            self._lengths = self._lengths.copy()
            self._shared.discard(0)
        self._lengths[rid] = length

    def _grow(self, rid: int) -> None:
        size = self._home.shape[0]
        if rid < size:
            return
        more = max(rid + 1, 2 * size) - size
        self._home = np.concatenate([self._home, np.full(more, _NONE, np.int32)])
        self._doc = np.concatenate([self._doc, np.zeros(more, np.int32)])
        self._lengths = np.concatenate([self._lengths, np.full(more, -1, np.int32)])
        self._shared.discard(0)

    # -- searchers --------------------------------------------------------------------------------------------------

    def freeze(self, terms: Iterable[str]) -> tuple[Snapshot, list[list[Lists]]]:
        """A snapshot, and for each term its postings in each tail."""
        with self.lock:
            tails = self._tails()
            if self._frozen is None:
                segments = [(segment.rids, self._alive[n], True) for n, segment in self._loaded.items()]
                segments += [(*tail.arrays(), False) for tail in tails]
                self._frozen = Snapshot(tuple(segments), tuple(self._loaded.values()), self._lengths)
                self._shared = {0, *self._loaded}
            return self._frozen, [[tail.postings(term) for tail in tails] for term in terms]

    def _tails(self) -> list[Tail]:
        return [tail for tail in (self._sealed, self._active) if tail is not None and len(tail)]

    # -- the folding thread -----------------------------------------------------------------------------------------

    def pending(self) -> tuple[int, int]:
        """(documents in tails, changes taken over but not committed)."""
        with self.lock:
            return sum(len(tail) for tail in self._tails()), self.changes - self.committed

    def job(self, *, seal: bool) -> Job:
        """What to make durable now. With ``seal`` the growing tail is closed and goes along, unless the tail of a job
        that failed still waits: then that one goes again, with its own watermark."""
        with self.lock:
            if seal and self._sealed is None:
                self._sealed_at = self.watermark, self.changes
                if len(self._active):
                    self._sealed, self._active = self._active, Tail(self._next())
            self._killed.clear()
            deletes = {self._loaded[n].segment_id: sorted(docs) for n, docs in self._undurable.items() if docs}
            if not seal:
                return Job(self.durable, self.committed, deletes)
            return Job(*self._sealed_at, deletes, self._sealed.pack() if self._sealed is not None else [])

    def swap(self, committed: Committed, job: Job, *, sealed: bool) -> None:
        """Take over what the child committed for a job; the folded tail goes."""
        with self.lock:
            by_id = {segment.segment_id: n for n, segment in self._loaded.items()}
            for segment_id, docs in job.deletes.items():
                number = by_id.get(segment_id)
                if number is not None:
                    self._undurable[number] -= set(docs)
            for segment_id in by_id.keys() - set(committed.segment_ids):
                number = by_id[segment_id]
                del self._loaded[number], self._alive[number]
                self._undurable.pop(number, None)
            for segment in committed.segments:
                self._adopt(segment)
            if sealed:
                self._sealed = None
            self.durable, self.committed = committed.manifest.watermark, job.changes
            self._killed.clear()
            self._frozen = None
            self._shared = set()

    def _adopt(self, segment: LoadedSegment) -> None:
        number = self._next()
        alive = segment.alive
        if self._killed:
            killed = np.fromiter(self._killed, np.int32)
            at = np.minimum(np.searchsorted(segment.rids, killed), segment.rids.shape[0] - 1)
            docs = at[(segment.rids[at] == killed) & (alive[at] != 0)]
            alive[docs] = 0
            self._undurable[number] = set(docs.tolist())
        live = np.flatnonzero(alive)
        rids = segment.rids[live]
        self._grow(int(segment.rids[-1]))
        self._home[rids], self._doc[rids] = number, live
        self._lengths[rids] = segment.lengths[live]
        self._loaded[number], self._alive[number] = segment, alive

    def replace(self, committed: Committed | None, watermark: int, entries: Sequence[Entry] = ()) -> None:
        """Start over from a folder (at open, and after a rebuild), and from the ``entries`` that are newer than it.

        All at once: a search sees what was before, or all of this; ``watermark`` is what both reflect, and may be less
        than before. Nobody applies meanwhile.
        """
        latest = {entry[0]: entry for entry in entries}
        with self.lock:
            self._reset()
            for segment in committed.segments if committed else ():
                self._adopt(segment)
            self.durable = committed.manifest.watermark if committed else 0
            for rid, counts, length, _ in latest.values():
                if counts is None:
                    self._remove(rid)
                else:
                    self._put(rid, counts, length)
            self.watermark = watermark
            self.committed = self.changes - len(entries)

    # -- status -----------------------------------------------------------------------------------------------------

    def counts(self) -> tuple[int, int, int, int]:
        """(living rows, documents in tails, dead documents, bytes of files)."""
        with self.lock:
            dead = sum(alive.shape[0] - int(alive.sum()) for alive in self._alive.values())
            tails = self._tails()
            living = int((self._home != _NONE).sum())
            size = sum(segment.size_bytes for segment in self._loaded.values())
            return living, sum(map(len, tails)), dead + sum(tail.dead for tail in tails), size

    def dead_bytes(self) -> int:
        """Bytes of the committed segments that hold dead documents; 0 = there are none."""
        with self.lock:
            return sum(self._loaded[n].size_bytes for n, alive in self._alive.items() if not alive.all())

    def known(self) -> Sequence[str]:
        """Ids of the committed segments that are loaded."""
        with self.lock:
            return [segment.segment_id for segment in self._loaded.values()]
