"""Changes that come together leave the columns as they do one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memxd.index.columns import Columns
from memxd.index.columns.arrays import NAMES
from memxd.model import NO_FILTER, Change, RowFeatures, View

_instants = st.none() | st.integers(-(10**15), 10**15)
_hashes = st.integers(0, (1 << 64) - 1)
_rows = st.builds(
    RowFeatures, rid=st.integers(0, 40), scope_no=st.integers(1, 3), id=st.just("id"), type=st.integers(1, 5),
    state=st.integers(1, 3), importance=st.floats(0, 1), created_at=st.integers(0, 10**15), event_at=_instants,
    valid_until=_instants, access_count=st.integers(0, 1 << 33), retrieval_count=st.integers(0, 1 << 33),
    last_retrieved_at=_instants, content_hash=_hashes, fold_hash=_hashes,
    tags=st.lists(st.sampled_from("abc"), unique=True).map(lambda tags: tuple(sorted(tags))), private=st.booleans(),
    cjk=st.integers(0, 2),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(_rows | st.integers(0, 40), max_size=12), max_size=6))
def test_at_once_is_one_by_one(
    batches: list[list[RowFeatures | int]], tmp_path_factory: pytest.TempPathFactory
) -> None:  # an integer: that row goes
    folder = tmp_path_factory.mktemp("columns")
    together, alone = Columns.open(folder / "together"), Columns.open(folder / "alone")
    revision = 0
    for batch in batches:
        changes = []
        for what in batch:
            revision += 1
            rid = what if isinstance(what, int) else what.rid
            changes.append(Change(revision, rid, None if isinstance(what, int) else what))
        together.apply_all(changes)
        for change in changes:
            alone.apply(change)
        view = View(NO_FILTER, now=0, every_state=True)
        for scope in (1, 2, 3):
            mine, yours = together.select(scope, view), alone.select(scope, view)
            assert np.array_equal(mine.rids, yours.rids)
            for name in NAMES:
                columns = [getattr(columns.arrays(), name)[mine.rids] for columns in (together, alone)]
                assert np.array_equal(*columns), name
        assert together.status() == alone.status()
