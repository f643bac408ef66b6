"""Columns against a naive model: views, counters, deletion, reopening, rebuilding, damage."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memxd.errors import StorageFullError
from memxd.index.columns import Columns
from memxd.index.columns import snapshot as snapshot_module
from memxd.index.columns import table as table_module
from memxd.index.columns.tags import tag_hash
from memxd.model import Change, Filter, IndexState, MemoryType, RowFeatures, State, TimeRange, View


@pytest.fixture(autouse=True, params=[0, 512], ids=["kept", "anew"])
def _kept_from(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small scopes keep no answers: here both ways are to be seen."""
    monkeypatch.setattr(table_module, "KEEP_FROM", request.param)


TAGS = ("red", "green", "blue", "été", "")


def row(rid: int, **values: object) -> RowFeatures:
    """A row whose fields do not matter but for ``values``."""
    base = RowFeatures(
        rid=rid,
        scope_no=1,
        id=f"id-{rid}",
        type=2,
        state=1,
        importance=0.5,
        created_at=100 + rid,
        event_at=None,
        valid_until=None,
        access_count=0,
        retrieval_count=0,
        last_retrieved_at=None,
        content_hash=rid,
        fold_hash=rid,
        tags=(),
        private=False,
    )
    return replace(base, **values)  # type: ignore[arg-type]


moments = st.integers(-5, 30)
rows = st.builds(
    row,
    rid=st.integers(0, 40),
    scope_no=st.integers(1, 3),
    type=st.sampled_from([t.value for t in MemoryType]),
    state=st.sampled_from([s.value for s in State]),
    importance=st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]),
    created_at=moments,
    event_at=st.none() | moments,
    valid_until=st.none() | moments,
    last_retrieved_at=st.none() | moments,
    content_hash=st.integers(0, 2**64 - 1),
    tags=st.lists(st.sampled_from(TAGS), max_size=3).map(tuple),
)
tag_filters = st.frozensets(st.sampled_from([*TAGS, "absent"]), max_size=2)
spans = st.none() | st.builds(TimeRange, st.none() | moments, st.none() | moments)
views = st.builds(
    View,
    filter=st.builds(
        Filter,
        types=st.frozensets(st.sampled_from(MemoryType), max_size=2),
        tags_any=tag_filters,
        tags_all=tag_filters,
        tags_none=tag_filters,
        created=spans,
        event=spans,
        importance_min=st.none() | st.sampled_from([0.0, 0.1, 0.3, 0.7]),
        states=st.frozensets(st.sampled_from(State), max_size=2),
    ),
    now=moments,
    as_of=st.none() | moments,
    include_superseded=st.booleans(),
    every_state=st.booleans(),
) | st.builds(View, filter=st.just(Filter()), now=moments)


def within(value: int, span: TimeRange) -> bool:
    return (span.start is None or value >= span.start) and (span.end is None or value < span.end)


def visible(r: RowFeatures, view: View) -> bool:
    """The rules in plain words' order."""
    f = view.filter
    unexpired = r.valid_until is None or r.valid_until > view.now
    if view.as_of is not None:
        begin = r.created_at if r.event_at is None else r.event_at
        moment = begin <= view.as_of and (r.valid_until is None or view.as_of < r.valid_until)
        moment = moment and r.state != State.ARCHIVED
    elif f.states:
        moment = r.state in f.states
    elif view.every_state:
        moment = True
    else:
        moment = (r.state == State.ACTIVE and unexpired) or (view.include_superseded and r.state == State.SUPERSEDED)
    return (
        moment
        and (not f.types or r.type in f.types)
        and (not f.tags_any or bool(f.tags_any & set(r.tags)))
        and f.tags_all <= set(r.tags)
        and not f.tags_none & set(r.tags)
        and (f.created is None or within(r.created_at, f.created))
        and (f.event is None or (r.event_at is not None and within(r.event_at, f.event)))
        and (f.importance_min is None or r.importance >= f.importance_min)
    )


def check_selections(columns: Columns, model: dict[int, RowFeatures], asked: list[View], restrict: list[int]) -> None:
    for scope in (1, 2, 3, 9):
        for view in asked:
            expected = sorted(r.rid for r in model.values() if r.scope_no == scope and visible(r, view))
            selection = columns.select(scope, view)
            assert selection.rids.tolist() == expected
            assert np.flatnonzero(selection.mask).tolist() == expected
            assert selection.scope_no == scope or not expected
            narrowed = columns.select(scope, view, np.array(restrict, np.int32))
            assert narrowed.rids.tolist() == sorted(set(expected) & set(restrict))


def check_arrays(columns: Columns, model: dict[int, RowFeatures]) -> None:
    a = columns.arrays()
    assert np.flatnonzero(a.state).tolist() == sorted(model)
    for rid, r in model.items():
        assert (a.type[rid], a.state[rid], a.scope[rid], a.private[rid]) == (r.type, r.state, r.scope_no, r.private)
        assert a.importance[rid] == np.float32(r.importance)
        event = r.created_at if r.event_at is None else r.event_at
        assert a.reference[rid] == (event if r.last_retrieved_at is None else r.last_retrieved_at)
        assert a.retrieved_or_created[rid] == (r.created_at if r.last_retrieved_at is None else r.last_retrieved_at)
        assert (a.access[rid], a.retrieval[rid]) == (r.access_count, r.retrieval_count)
        assert (int(a.content_hash[rid]), int(a.tag_hash[rid])) == (r.content_hash, tag_hash(r.tags))


@pytest.mark.parametrize("erased", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_a_row_that_comes_to_another_scope_is_gone_from_its_former_one(
    tmp_path: Path, erased: bool, together: bool
) -> None:
    """No store does that; an index beside the wrong copy of a database would be told so."""
    columns = Columns.open(tmp_path)
    views = [View(Filter(), 0), View(Filter(), 0, every_state=True), View(Filter(importance_min=0.1), 0)]
    model = {rid: row(rid) for rid in range(4)}
    columns.apply_all([Change(rid + 1, rid, model[rid]) for rid in range(4)])
    check_selections(columns, model, views, [0, 1])
    if erased:
        columns.apply_all([Change(9, 0, None), Change(10, 1, None)])
    model |= {rid: row(rid, scope_no=2) for rid in (0, 1)}
    moved = [Change(11 + rid, rid, model[rid]) for rid in (0, 1)]
    for changes in [moved] if together else [[change] for change in moved]:
        columns.apply_all(changes)
    check_selections(columns, model, views, [0, 1])


folders = count()
steps = st.lists(
    rows
    | st.integers(0, 41).map(lambda rid: ("delete", rid))
    | st.tuples(st.integers(0, 41), st.integers(0, 9), st.integers(0, 9), st.none() | moments)
    | st.sampled_from(["flush", "reopen", "rebuild"])
    | views,
    max_size=40,
)


@given(steps, st.lists(views, min_size=2, max_size=4), st.lists(st.integers(-2, 60), max_size=8))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_answer_what_a_naive_model_answers(
    tmp_path: Path, script: list[object], asked: list[View], restrict: list[int]
) -> None:
    folder = tmp_path / str(next(folders))
    columns = Columns.open(folder)
    model: dict[int, RowFeatures] = {}
    revision = 0
    for step in script:
        if isinstance(step, RowFeatures):
            revision += 1
            model[step.rid] = step
            columns.apply(Change(revision, step.rid, step))
        elif isinstance(step, View):
            check_selections(columns, model, [step], restrict)
        elif isinstance(step, tuple) and step[0] == "delete":
            revision += 1
            model.pop(step[1], None)
            columns.apply(Change(revision, step[1], None))
        elif isinstance(step, tuple):
            columns.count_bump([step])
            if step[0] in model:
                rid, access, retrieval, last = step
                model[rid] = replace(model[rid], access_count=access, retrieval_count=retrieval, last_retrieved_at=last)
        elif step == "flush":
            columns.flush()
            assert columns.durable_watermark == columns.watermark == revision
        elif step == "rebuild":
            columns.rebuild(iter([Change(revision, r.rid, r) for r in model.values()]), revision=revision)
        else:
            columns.close()
            columns = Columns.open(folder)
            assert columns.watermark == revision
    check_arrays(columns, model)
    check_selections(columns, model, asked, restrict)
    columns.close()
    again = Columns.open(folder)
    check_arrays(again, model)
    check_selections(again, model, asked, restrict)
    assert again.status().entries == len(model)


def test_a_memory_that_expires_leaves_a_cached_selection(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path)
    columns.apply(Change(1, 1, row(1, valid_until=50)))
    columns.apply(Change(2, 2, row(2)))
    seen = [columns.select(1, View(Filter(), now=now)).rids.tolist() for now in (10, 49, 50, 51, 10)]
    assert seen == [[1, 2], [1, 2], [2], [2], [1, 2]]
    if table_module.KEEP_FROM == 0:
        first = columns.select(1, View(Filter(), now=11))
        assert columns.select(1, View(Filter(), now=12)) is first  # the usual question costs nothing
    columns.apply(Change(3, 3, row(3)))
    assert columns.select(1, View(Filter(), now=12)).rids.tolist() == [1, 2, 3]


def test_a_corrected_selection_equals_one_made_anew(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path)
    rng = np.random.default_rng(4)
    model: dict[int, RowFeatures] = {}
    view = View(Filter(), now=10)
    for revision in range(1, 1500):
        rid = int(rng.integers(0, 300)) + revision // 5
        if rng.random() < 0.2:
            model.pop(rid, None)
            columns.apply(Change(revision, rid, None))
        else:
            until = None if rng.random() < 0.7 else int(rng.integers(5, 15))
            model[rid] = row(rid, state=int(rng.integers(1, 4)), valid_until=until)
            columns.apply(Change(revision, rid, model[rid]))
        if rng.random() < 0.3 or 700 < revision < 1000:
            continue  # sometimes many changes lie between two questions
        selection = columns.select(1, view)
        assert selection.rids.tolist() == sorted(r.rid for r in model.values() if visible(r, view))
        assert np.flatnonzero(selection.mask).tolist() == selection.rids.tolist()
        if revision % 100 == 0:
            view = View(Filter(), now=int(rng.integers(4, 16)))


def test_tag_hash_ignores_order_and_repetition_but_not_the_tags() -> None:
    assert tag_hash(()) == 0
    assert tag_hash(("a", "b")) == tag_hash(("b", "a", "b"))
    assert len({tag_hash(t) for t in [("a",), ("b",), ("a", "b"), ("ab",), ("a", "bc"), ("ab", "c")]}) == 6


def test_importance_is_compared_as_stored(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path)
    for rid, importance in enumerate((0.7, 0.1 + 0.2, 0.7 - 1e-12)):
        columns.apply(Change(rid + 1, rid, row(rid, importance=importance)))
    columns.close()
    again = Columns.open(tmp_path)
    assert again.select(1, View(Filter(importance_min=0.7), now=0)).rids.tolist() == [0]
    assert again.select(1, View(Filter(importance_min=0.3), now=0)).rids.tolist() == [0, 1, 2]


@pytest.mark.parametrize("damage", ["half", "empty", "flip", "foreign", "folder", "format"])
def test_a_damaged_snapshot_opens_empty_and_says_so(tmp_path: Path, damage: str) -> None:
    columns = Columns.open(tmp_path)
    for rid in range(50):
        columns.apply(Change(rid + 1, rid, row(rid, tags=("x", str(rid % 3)))))
    columns.close()
    path = tmp_path / snapshot_module.FILE_NAME
    raw = path.read_bytes()
    if damage == "half":
        path.write_bytes(raw[: len(raw) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "flip":
        path.write_bytes(raw[:900] + bytes([raw[900] ^ 16]) + raw[901:])
    elif damage == "foreign":
        path.write_bytes(b"SQLite format 3\0" * 20)
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        now = snapshot_module.FORMAT
        path.write_bytes(raw.replace(b'"format": %d' % now, b'"format": %d' % (now + 1)))
    again = Columns.open(tmp_path)
    assert (again.watermark, again.status().entries, again.status().state) == (0, 0, IndexState.READY)
    assert again.status().message
    assert str(tmp_path) not in again.status().message
    if damage == "folder":
        path.rmdir()
    again.rebuild(iter([Change(9, 4, row(4))]), revision=12)
    assert (again.watermark, again.durable_watermark, again.status().message) == (12, 12, "")
    assert Columns.open(tmp_path).watermark == 12


@given(st.integers(0, 2**31))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_flipped_byte_is_noticed(tmp_path: Path, where: int) -> None:
    columns = Columns.open(tmp_path)
    for rid in range(20):
        columns.apply(Change(rid + 1, rid, row(rid, tags=(str(rid),))))
    columns.close()
    path = tmp_path / snapshot_module.FILE_NAME
    raw = bytearray(path.read_bytes())
    raw[where % len(raw)] ^= 1 + where % 255
    path.write_bytes(raw)
    assert Columns.open(tmp_path).watermark == 0
    path.unlink()


def test_what_is_applied_during_a_rebuild_is_in_the_result(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path)
    columns.apply(Change(1, 1, row(1)))

    def changes() -> Iterator[Change]:
        yield Change(1, 1, row(1))
        columns.apply(Change(3, 2, row(2)))
        columns.apply(Change(4, 1, None))
        assert columns.status().state is IndexState.REBUILDING
        yield Change(2, 7, row(7))

    seen: list[tuple[int, int]] = []
    columns.rebuild(changes(), 2, lambda done, total: seen.append((done, total)), revision=2)
    assert columns.select(1, View(Filter(), now=0)).rids.tolist() == [2, 7]
    assert columns.watermark == 4
    assert seen[-1] == (2, 2)


def test_a_full_disk_is_named_and_the_columns_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Columns.open(tmp_path)
    columns.apply(Change(1, 1, row(1)))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(snapshot_module, "write_whole", full)
        with pytest.raises(StorageFullError):
            columns.flush()
    assert (columns.watermark, columns.durable_watermark) == (1, 0)
    assert len(columns.select(1, View(Filter(), now=0))) == 1
    columns.flush()
    assert columns.durable_watermark == 1


def test_many_deletions_leave_short_lists(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path)
    for rid in range(2000):
        columns.apply(Change(rid + 1, rid, row(rid)))
    for rid in range(1990):
        columns.apply(Change(2001 + rid, rid, None))
    assert columns.select(1, View(Filter(), now=0)).rids.tolist() == list(range(1990, 2000))
    assert columns.status().entries == 10


def test_readers_never_see_a_torn_selection_while_rows_come_and_go(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path)
    stop = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                selection = columns.select(1, View(Filter(tags_any=frozenset({"a"})), now=0))
                assert (np.diff(selection.rids) > 0).all()
                assert not len(selection) or selection.rids[-1] < columns.arrays().capacity
                assert selection.mask.sum() == len(selection)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for rid in range(3000):
        columns.apply(Change(rid + 1, rid, row(rid, tags=("a", str(rid % 50)))))
        if rid % 7 == 0:
            columns.apply(Change(rid + 1, rid // 2, None))
        if rid % 500 == 0:
            columns.flush()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_snapshot_of_another_database_is_not_read(tmp_path: Path) -> None:
    columns = Columns.open(tmp_path, database_id="one")
    columns.apply(Change(1, 1, row(1)))
    columns.close()
    assert Columns.open(tmp_path, database_id="one").watermark == 1
    other = Columns.open(tmp_path, database_id="two")
    assert (other.watermark, other.status().entries) == (0, 0)
    assert "another database" in other.status().message
