"""Answers that the columns keep: corrected by what changed, equal to ones made anew, and without copies of the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memxd._fast import load_kernels
from memxd.index.columns import Columns
from memxd.index.columns import table as table_module
from memxd.model import Change, Filter, MemoryType, RowFeatures, State, TimeRange, View

BASE = RowFeatures(0, 1, "", 2, 1, 0.5, 0, None, None, 0, 0, None, 0, 0, (), False)
FILTERS = (
    Filter(),
    Filter(types=frozenset({MemoryType(2)})),
    Filter(tags_any=frozenset({"a", "new"})),
    Filter(tags_none=frozenset({"b"}), importance_min=0.25),
    Filter(created=TimeRange(100, None), event=TimeRange(None, 9_000)),
)


def filled(folder: Path, rows: int) -> tuple[Columns, dict[int, RowFeatures]]:
    columns = Columns.open(folder, kernel=load_kernels("c").choose)
    model = {rid: row(rid) for rid in range(1, rows + 1)}
    for rid, features in model.items():
        columns.apply(Change(rid, rid, features))
    return columns, model


def row(rid: int) -> RowFeatures:
    tags = ("a",) if rid % 3 == 0 else ("b", f"t{rid % 7}")
    event = rid if rid % 2 else None
    return replace(BASE, rid=rid, type=1 + rid % 5, importance=rid % 8 / 8, created_at=rid, event_at=event, tags=tags)


def test_kept_answers_equal_ones_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, model = filled(tmp_path, 900)
    rng = np.random.default_rng(3)
    views = [View(wanted, 10) for wanted in FILTERS]
    for revision in range(1000, 1400):
        rid = int(rng.integers(1, 900)) if rng.random() < 0.3 else revision
        kind = rng.random()
        if kind < 0.2:
            model.pop(rid, None)
            columns.apply(Change(revision, rid, None))
        else:
            until = 5 if kind < 0.3 else None
            state = State.SUPERSEDED if kind < 0.4 else State.ACTIVE
            tags = ("new", f"n{revision}") if kind < 0.6 else row(rid).tags
            model[rid] = replace(row(rid), valid_until=until, state=int(state), tags=tags)
            columns.apply(Change(revision, rid, model[rid]))
        if rng.random() < 0.5:
            continue
        kept = [columns.select(1, view) for view in views]
        with monkeypatch.context() as patch:
            patch.setattr(table_module, "KEEP_FROM", 1_000_000)
            anew = [columns.select(1, view) for view in views]
        for left, right in zip(kept, anew, strict=True):
            assert np.array_equal(left.rids, right.rids)
            assert np.array_equal(np.flatnonzero(left.mask), left.rids)


@pytest.mark.parametrize("wanted", FILTERS)
def test_a_new_row_copies_nothing_of_the_others(tmp_path: Path, wanted: Filter) -> None:
    columns, _ = filled(tmp_path, 2000)
    view = View(wanted, 10)
    columns.select(1, view).mask  # noqa: B018 - made on first use
    columns.apply(Change(2001, 2001, row(2001)))
    first = before = columns.select(1, view)
    old_rids, old_mask = first.rids.copy(), first.mask.copy()
    copied = 0
    for rid in range(2002, 2062):
        columns.apply(Change(rid, rid, row(rid)))
        after = columns.select(1, view)
        copied += not (np.shares_memory(before.rids, after.rids) and np.shares_memory(before.mask, after.mask))
        before = after
    assert len(before) > len(first)
    assert copied <= 1  # to where there is room
    assert np.array_equal(first.rids, old_rids)
    assert np.array_equal(first.mask, old_mask)  # what was answered does not change


def test_counts_tell_the_revision_they_are_of(tmp_path: Path) -> None:
    columns, model = filled(tmp_path, 700)
    assert columns.count(1, View(Filter(), 10)) == (700, 700)
    assert columns.count(2, View(Filter(), 10)) == (0, 700)
    assert columns.count(None, View(Filter(), 10)) == (0, 700)
    columns.apply(Change(701, 3, None))
    assert columns.count(1, View(Filter(), 10)) == (699, 701)
    types = View(Filter(types=frozenset({MemoryType(1)})), 10, every_state=True)
    expected = sum(r.type == 1 for rid, r in model.items() if rid != 3)
    assert columns.count(1, types) == (expected, 701)
    assert len(columns.select(1, types)) == expected


def test_many_small_scopes_are_told_apart_after_a_start(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path)
    for rid in range(1, 2001):
        columns.apply(Change(rid, rid, replace(row(rid), scope_no=1 + rid % 400)))
    columns.close()
    again = Columns.open(tmp_path)
    for scope in (1, 7, 400):
        expected = [rid for rid in range(1, 2001) if 1 + rid % 400 == scope]
        assert again.select(scope, View(Filter(), 10)).rids.tolist() == expected
    again.apply(Change(3000, 3000, replace(row(3000), scope_no=7)))
    again.apply(Change(3001, 6, None))
    assert again.select(7, View(Filter(), 10)).rids.tolist() == [*range(406, 2001, 400), 3000]
    assert [len(again.select(s, View(Filter(), 10))) for s in (401, 0, -1, 5000)] == [0, 0, 0, 0]
