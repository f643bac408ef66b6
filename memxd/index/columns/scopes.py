"""The rows of each scope in ascending order, and the last answers to the usual questions.

``ScopeRows`` owns one scope's rid list (appends are cheap, deleted rows stay in the list until they are many: readers
check the state anyway) and what was answered lately (``Answer``), which a later question corrects by the rows that
changed since. Not thread-safe: ``Columns`` holds its lock around every call; the arrays handed out stay valid after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from memxd.index.columns.arrays import ColumnArrays
from memxd.index.columns.tags import Verdict
from memxd.index.selection import Selection

__all__ = ["Answer", "ScopeRows"]

Rids: TypeAlias = npt.NDArray[np.int32]

_RECENT = 256  # changes after which an answer is made anew rather than corrected
_ANSWERS = 9  # kept of one scope


@dataclass(frozen=True, slots=True)
class Answer:
    """What a view of active, unexpired rows answered at the scope's ``epoch``, right for every moment in the half-open
    [begin, end). ``verdict``: by tag set, when the view asks for tags."""

    epoch: int
    begin: int
    end: int
    selection: Selection
    verdict: Verdict | None = None

    def corrected(
        self, touched: Rids, part: tuple[Rids, int, int], epoch: int, capacity: int, verdict: Verdict | None
    ) -> Answer:
        """The same after changes of the ``touched`` rows (ascending), of which ``part`` is what the view shows.

        New rows behind all others, the usual change, are put behind without a copy.
        """
        rids, begin, end = part
        old = self.selection
        among = int(np.searchsorted(touched, old.capacity))  # touched rows from here on are new
        shown = int(np.searchsorted(rids, old.capacity))
        former, present = touched[:among], rids[:shown]
        if among:
            was = former[old.contains(former)]
            if not np.array_equal(was, present):
                kept = _without(old.rids, was)
                merged = np.insert(kept, np.searchsorted(kept, present), present) if shown else kept
                old = old.changed(merged, was, present, old.capacity)
        if shown < len(rids):
            old = old.extended(rids[shown:], capacity)
        return Answer(epoch, max(self.begin, begin), min(self.end, end), old, verdict)


def _without(rids: Rids, gone: Rids) -> Rids:
    """``rids`` but for ``gone``, all of which are in it."""
    return np.delete(rids, np.searchsorted(rids, gone)) if len(gone) else rids


class ScopeRows:
    """One scope's rids. ``epoch`` counts the changes of its rows."""

    __slots__ = ("_answers", "_dead", "_recent", "_rids", "_size", "_sorted", "epoch")

    def __init__(self, rids: Rids) -> None:
        """``rids``: ascending; never written to."""
        self._rids = rids
        self._size = len(rids)
        self._sorted = True
        self._dead = 0
        self._recent: deque[int] | None = None  # most scopes are small and are never asked
        self._answers: dict[Hashable, Answer] = {}
        self.epoch = 0

    def __len__(self) -> int:
        """Rows of the list, deleted ones included."""
        return self._size

    def add(self, rid: int) -> None:
        """A row that is new to the scope."""
        if self._size == self._rids.shape[0]:
            bigger = np.empty(max(16, self._size + self._size // 2), np.int32)
            bigger[: self._size] = self._rids[: self._size]
            self._rids = bigger
        if self._size and rid <= self._rids[self._size - 1]:
            self._sorted = False
        self._rids[self._size] = rid
        self._size += 1

    def drop(self) -> None:
        """One of the rows is gone (its state says which)."""
        self._dead += 1

    def leave(self, rid: int) -> None:
        """A row that was dropped comes to another scope, so its state no longer says that it is gone from this one."""
        rids = np.unique(self._rids[: self._size])
        self._replace(rids[rids != rid])

    def touch(self, rid: int) -> None:
        """One of the rows changed, came or went."""
        self.epoch += 1
        if self._recent is not None:
            self._recent.append(rid)

    def answer(self, key: Hashable, now: int) -> tuple[Answer, Rids] | None:
        """What was answered to ``key`` and is right at ``now`` but for the touched rows (int32, ascending); None when
        nothing was, or too much has changed."""
        found = self._answers.get(key)
        if found is None or not found.begin <= now < found.end:
            return None
        behind = self.epoch - found.epoch
        if not behind:
            return found, np.empty(0, np.int32)
        if self._recent is None or behind > len(self._recent):
            return None
        recent = list(self._recent)
        return found, np.array(sorted(set(recent[len(recent) - behind :])), np.int32)

    def keep(self, key: Hashable, answer: Answer) -> None:
        """Remember an answer. Of too many, the one that was kept first goes."""
        if self._recent is None:
            self._recent = deque(maxlen=_RECENT)
        if key not in self._answers and len(self._answers) >= _ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = answer

    def rids(self, arrays: ColumnArrays) -> Rids:
        """int32[n] ascending: every row of the scope, and perhaps some deleted ones."""
        if not self._sorted:
            self._replace(np.unique(self._rids[: self._size]))
        if self._dead > 256 and 2 * self._dead > self._size:
            rids = self._rids[: self._size]
            self._replace(rids[arrays.state[rids] != 0])
            self._dead = 0
        return self._rids[: self._size]

    def _replace(self, rids: Rids) -> None:
        self._rids, self._size, self._sorted = rids, len(rids), True
