"""The index in memory: which document of which segment is each row's living one.

Owns the committed segments, the tails (documents in no file yet: one that grows, one that is being folded), the maps by
rid, the number and total length of each scope's living rows, and the snapshots that searches take. The applier and the
folding thread change it, searchers freeze it, all under one short lock. What a snapshot holds is never changed
afterwards, but that more documents of its segments die: it says how many deaths count. Knows no files, no scores.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from memxd._fast.bm25_py import Bm25Kernel
from memxd.index.lexical.hits import Int32
from memxd.index.lexical.segment import Committed, LoadedSegment
from memxd.index.lexical.snapshot import Frozen, Snapshot
from memxd.index.lexical.tail import Tail

_NONE = -1


class Entry(NamedTuple):
    """One change as the index keeps it; ``counts`` None = gone."""

    rid: int
    counts: Mapping[str, int] | None
    length: int
    scope_no: int
    revision: int


@dataclass(slots=True)
class Job:
    """What the child is to make durable: a packed tail or none, deletions by segment, the revision then reached."""

    watermark: int
    changes: int  # how many changes it covers
    deletes: dict[str, list[int]]
    payload: list[bytes] = field(default_factory=list)


class State:
    """See the module. Methods take the lock themselves; ``lock`` is shared with conditions of the callers."""

    def __init__(self, kernel: Bm25Kernel) -> None:
        self.kernel = kernel
        self.lock = threading.Lock()
        self.watermark = 0  # newest revision searches see
        self.durable = 0  # newest revision committed
        self.changes = 0  # changes taken over, and how many of them are committed: a rebuild's late changes may be
        self.committed = 0  # older than its watermark, so revisions do not tell whether there is work
        self._epoch = 0
        self._reset()

    def _reset(self) -> None:
        self._epoch += 1
        self._numbers = 1
        self._loaded: dict[int, LoadedSegment] = {}
        self._active = Tail(self._next(), self.kernel)
        self._sealed: Tail | None = None
        self._sealed_at = (0, 0)  # watermark and changes it covers
        # By rid: segment number, document number there. The last place is always free: what is beyond counts as that.
        self._home = np.full(1024, _NONE, np.int32)
        self._doc = np.zeros(1024, np.int32)
        self._totals: dict[int, list[int]] = {}  # by scope: living rows, sum of their lengths
        self._frozen: Snapshot | None = None
        self._undurable: dict[int, set[int]] = {}  # deletions in committed segments that the TOC does not know
        self._killed: set[int] = set()  # rows whose stored document died since the job began

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    # -- the applier ------------------------------------------------------------------------------------------------

    def take(self, entries: Sequence[Entry], revision: int, changes: int) -> None:
        """Rows' texts are now these, or the rows are gone: all that so many changes up to a revision brought."""
        with self.lock:
            for entry in entries:
                self._take(entry)
            self.watermark = max(self.watermark, revision)
            self.changes += changes

    def _take(self, entry: Entry) -> None:
        rid, counts, length, scope_no, _ = entry
        self._grow(rid)
        self._kill(rid)
        self._home[rid] = _NONE
        if counts is not None:
            self._home[rid], self._doc[rid] = self._active.number, self._active.add(rid, counts, length, scope_no)
            self._count(scope_no, 1, length)
        self._frozen = None

    def _count(self, scope_no: int, rows: int, length: int) -> None:
        totals = self._totals.setdefault(scope_no, [0, 0])
        totals[0] += rows
        totals[1] += length
        if not totals[0]:
            del self._totals[scope_no]

    def _kill(self, rid: int) -> None:
        number, doc = int(self._home[rid]), int(self._doc[rid])
        if number == _NONE:
            return
        for tail in self._tails():
            if number == tail.number:
                tail.kill(doc)
                self._count(tail.scopes[doc], -1, -tail.lengths[doc])
                if tail is self._sealed:
                    self._killed.add(rid)
                return
        self._killed.add(rid)
        segment = self._loaded[number]
        segment.kill(doc)
        self._count(segment.scope_of(doc), -1, -int(segment.lengths[doc]))
        self._undurable.setdefault(number, set()).add(doc)

    def _grow(self, rid: int) -> None:
        size = self._home.shape[0]
        if rid + 1 < size:
            return
        more = max(rid + 2, 2 * size) - size
        self._home = np.concatenate([self._home, np.full(more, _NONE, np.int32)])
        self._doc = np.concatenate([self._doc, np.zeros(more, np.int32)])

    # -- searchers --------------------------------------------------------------------------------------------------

    def freeze(self, terms: Sequence[str], scope_no: int, also: Int32, selected: Int32 | None = None) -> Frozen:
        """What a search for ``terms`` in a scope sees now, and where the rows ``also`` and ``selected`` (int32, >= 0)
        are."""
        with self.lock:
            tails = self._tails()
            snapshot = self._frozen
            if snapshot is None:
                snapshot = self._frozen = self._snapshot(tails)
            rows, total = self._totals.get(scope_no, (0, 0))
            in_tails = [[tail.postings(term) for term in terms] for tail in tails]
            places = None if selected is None else self._places(snapshot, selected)
            return Frozen(snapshot, in_tails, rows, total, places, self._places(snapshot, also))

    def places(self, snapshot: Snapshot, rids: Int32) -> Int32 | None:
        """int32[2n]: segment and document of each row in a snapshot taken before; a row that changed since is nowhere
        in it. None when segments were exchanged meanwhile: where rows were in the old ones is not known any more."""
        with self.lock:
            return self._places(snapshot, rids) if snapshot.epoch == self._epoch else None

    def _snapshot(self, tails: Sequence[Tail]) -> Snapshot:
        numbers = np.full(self._numbers + 2, -1, np.int32)
        for at, number in enumerate([*self._loaded, *(tail.number for tail in tails)]):
            numbers[number] = at
        return Snapshot(
            tuple(self._loaded.values()),
            tuple(segment.deaths for segment in self._loaded.values()),
            tuple((tail.segment(), tail.dead, 0, len(tail)) for tail in tails),
            numbers,
            self._epoch,
            {},
        )

    def _places(self, snapshot: Snapshot, rids: Int32) -> Int32:
        if not len(rids):
            return rids
        # A tail that began after the snapshot has a number beyond its last one, which stands for "nowhere".
        homes = self._home.take(rids, mode="clip")
        homes = snapshot.numbers.take(np.minimum(homes, len(snapshot.numbers) - 1))
        return np.concatenate((homes, self._doc.take(rids, mode="clip")))

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
                    self._sealed, self._active = self._active, Tail(self._next(), self.kernel)
            self._killed.clear()
            deletes = {self._loaded[n].segment_id: sorted(docs) for n, docs in self._undurable.items() if docs}
            if not seal:
                return Job(self.durable, self.committed, deletes)
            job, sealed = Job(*self._sealed_at, deletes), self._sealed
        if sealed is not None:  # not under the lock: searches would wait; who dies meanwhile is in ``_killed``
            job.payload = sealed.pack()
        return job

    def swap(self, committed: Committed, job: Job, *, sealed: bool) -> None:
        """Take over what the child committed for a job; the folded tail goes."""
        with self.lock:
            self._epoch += 1
            by_id = {segment.segment_id: n for n, segment in self._loaded.items()}
            for segment_id, docs in job.deletes.items():
                number = by_id.get(segment_id)
                if number is not None:
                    self._undurable[number] -= set(docs)
            for segment_id in by_id.keys() - set(committed.segment_ids):
                number = by_id[segment_id]
                del self._loaded[number]
                self._undurable.pop(number, None)
            for segment in committed.segments:
                self._adopt(segment)
            if sealed:
                self._sealed = None
            self.durable, self.committed = committed.manifest.watermark, job.changes
            self._killed.clear()
            self._frozen = None

    def _adopt(self, segment: LoadedSegment) -> None:
        number = self._next()
        if self._killed:
            docs = segment.documents_of(np.fromiter(self._killed, np.int32)).tolist()
            segment.kill_all(docs)
            self._undurable[number] = set(docs)
        live = np.flatnonzero(segment.alive)
        rids = segment.rids[live]
        self._grow(int(segment.rids.max()))
        self._home[rids], self._doc[rids] = number, live
        self._loaded[number] = segment

    def replace(self, committed: Committed | None, watermark: int, entries: Sequence[Entry] = ()) -> None:
        """Start over from a folder (at open, and after a rebuild), and from the ``entries`` that are newer than it.

        All at once: a search sees what was before, or all of this; ``watermark`` is what both reflect, and may be less
        than before. Nobody applies meanwhile.
        """
        latest = {entry.rid: entry for entry in entries}
        with self.lock:
            self._reset()
            for segment in committed.segments if committed else ():
                self._adopt(segment)
                for totals in segment.totals():
                    self._count(*totals)
            self.durable = committed.manifest.watermark if committed else 0
            for entry in latest.values():
                self._take(entry)
            self.watermark = watermark
            self.committed = self.changes - len(entries)

    # -- status -----------------------------------------------------------------------------------------------------

    def counts(self) -> tuple[int, int, int, int]:
        """(living rows, documents in tails, dead documents, bytes of files)."""
        with self.lock:
            dead = sum(segment.deaths for segment in self._loaded.values())
            tails = self._tails()
            living = sum(rows for rows, _ in self._totals.values())
            size = sum(segment.size_bytes for segment in self._loaded.values())
            return living, sum(map(len, tails)), dead + sum(tail.dead for tail in tails), size

    def dead_bytes(self) -> int:
        """Bytes of the committed segments that hold dead documents; 0 = there are none."""
        with self.lock:
            return sum(segment.size_bytes for segment in self._loaded.values() if segment.deaths)

    def known(self) -> Sequence[str]:
        """Ids of the committed segments that are loaded."""
        with self.lock:
            return [segment.segment_id for segment in self._loaded.values()]
