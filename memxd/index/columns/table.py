"""What a rebuild of the columns swaps at once: arrays, tag sets, the rows of each scope, number of rows.

Owns how one row is put in or taken out, and how a view is evaluated, by the answers kept so far or anew. Knows no
files, revisions or threads: ``Columns`` holds its lock around every method but ``choose``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memxd._fast.protocols import ChooseKernel
from memxd.index.columns import arrays as by_rid
from memxd.index.columns.arrays import ColumnArrays
from memxd.index.columns.scopes import Answer, ScopeRows
from memxd.index.columns.tags import TagSets, Verdict
from memxd.index.columns.visible import choose, is_default_moment, key_of
from memxd.index.selection import Selection
from memxd.model import RowFeatures, View

__all__ = ["Asked", "Table"]

Rids = npt.NDArray[np.int32]
#: Scopes of fewer rows are looked through each time, which takes microseconds, and keep no answers.
KEEP_FROM = 512
#: The default view without a filter, among the kept answers.
_UNFILTERED = "unfiltered"


class Asked:
    """A question to a scope as of one moment: what ``choose`` needs outside of the lock, and what to keep after it."""

    __slots__ = ("arrays", "capacity", "epoch", "key", "rids", "scope", "scope_no", "verdict", "view")

    def __init__(self, table: Table, scope_no: int, scope: ScopeRows, view: View, restrict: Rids | None) -> None:
        self.scope_no, self.scope, self.view = scope_no, scope, view
        self.arrays, self.capacity, self.epoch = table.arrays, table.end, scope.epoch
        self.verdict = table.tags.passing(view.filter)
        self.key = None
        if restrict is not None:
            self.rids = _own(table.arrays, scope_no, restrict)
            return
        self.rids = scope.rids(table.arrays)
        if is_default_moment(view) and len(scope) >= KEEP_FROM:
            self.key = key_of(view.filter) or _UNFILTERED

    def choose(self, kernel: ChooseKernel) -> Answer:
        """Look at every row. Needs no lock. Raises ValueError when a row has got a tag set that is newer than this."""
        rids, begin, end = choose(kernel, self.arrays, self.rids, self.view, self.verdict)
        selection = Selection(rids, self.capacity, self.scope_no)
        return Answer(self.epoch, begin, end, selection, self.verdict)


class Table:
    """All rows. ``end``: above every rid there ever was."""

    def __init__(self, arrays: ColumnArrays, tags: TagSets, kernel: ChooseKernel) -> None:
        self.arrays = arrays
        self.tags = tags
        self._kernel = kernel
        self._grouped, self._starts = kernel.group(arrays.scope, arrays.state)
        self._scopes: dict[int, ScopeRows] = {}  # of those that were asked or changed
        self.rows = len(self._grouped)
        self.end = int(self._grouped.max(initial=-1)) + 1

    def scope(self, number: int | None) -> ScopeRows | None:
        """The rows of a scope, None when it has none."""
        if number is None:
            return None
        known = self._scopes.get(number)
        if known is None and 0 <= number < len(self._starts) - 1:
            begin, end = int(self._starts[number]), int(self._starts[number + 1])
            if begin < end:
                known = self._scopes[number] = ScopeRows(self._grouped[begin:end])
        return known

    def put(self, row: RowFeatures) -> None:
        """Insert or replace a row."""
        if row.rid >= self.arrays.capacity:
            self.arrays = by_rid.grown(self.arrays, row.rid + 1)
        former = int(self.arrays.scope[row.rid])
        if former not in (0, row.scope_no):
            self._leave(row.rid, former)
        known = self.arrays.state[row.rid] != 0
        scope = self.scope(row.scope_no)
        if scope is None:
            scope = self._scopes[row.scope_no] = ScopeRows(np.empty(0, np.int32))
        by_rid.write_row(self.arrays, row, *self.tags.number(row.tags))
        if not known:
            scope.add(row.rid)
            self.rows += 1
        self.end = max(self.end, row.rid + 1)
        scope.touch(row.rid)

    def put_new(self, rows: Sequence[RowFeatures]) -> bool:
        """Insert rows at once; False, and nothing changed, when one of them is or was there already, or twice."""
        rids = [row.rid for row in rows]
        end = max(rids) + 1
        if end > self.arrays.capacity:
            self.arrays = by_rid.grown(self.arrays, end)
        if len(set(rids)) < len(rids) or self.arrays.scope[rids].any():
            return False
        by_rid.write_new_rows(self.arrays, rows, [self.tags.number(row.tags) for row in rows])
        for row in rows:
            scope = self.scope(row.scope_no)
            if scope is None:
                scope = self._scopes[row.scope_no] = ScopeRows(np.empty(0, np.int32))
            scope.add(row.rid)
            scope.touch(row.rid)
        self.rows += len(rows)
        self.end = max(self.end, end)
        return True

    def remove(self, rid: int) -> None:
        """Forget a row; unknown rids are passed over."""
        if not 0 <= rid < self.arrays.capacity or not self.arrays.state[rid]:
            return
        scope = self.scope(int(self.arrays.scope[rid]))
        assert scope is not None  # it holds this row
        self.arrays.state[rid] = 0
        scope.drop()
        scope.touch(rid)
        self.rows -= 1

    def _leave(self, rid: int, former: int) -> None:
        """Take a row out of the list of its former scope. No store moves a row; an index that met another database's
        changes would, and must show nobody what is not his."""
        self.remove(rid)
        scope = self.scope(former)
        if scope is not None:
            scope.leave(rid)

    def kept(self, scope_no: int, scope: ScopeRows, view: View) -> Selection | None:
        """The answer from before, corrected by what changed since; None when there is none."""
        if not is_default_moment(view) or len(scope) < KEEP_FROM:
            return None
        key = key_of(view.filter) or _UNFILTERED
        found = scope.answer(key, view.now)
        if found is None:
            return None
        answer, touched = found
        if len(touched):
            verdict: Verdict | None = self.tags.passing(view.filter, answer.verdict)
            own = touched[self.arrays.scope.take(touched) == scope_no]
            part = choose(self._kernel, self.arrays, own, view, verdict)
            answer = answer.corrected(touched, part, scope.epoch, self.end, verdict)
            scope.keep(key, answer)
        return answer.selection


def _own(arrays: ColumnArrays, scope_no: int, restrict: npt.NDArray[np.integer]) -> Rids:
    """Ascending distinct rids of ``restrict`` that belong to the scope."""
    rids = restrict if (restrict[1:] > restrict[:-1]).all() else np.unique(restrict)
    if len(rids) and (rids[0] < 0 or rids[-1] >= arrays.capacity):
        rids = rids[(rids >= 0) & (rids < arrays.capacity)]
    rids = rids.astype(np.int32, copy=False)
    own: Rids = rids[(arrays.scope.take(rids) == scope_no) & (arrays.state.take(rids) != 0)]
    return own
