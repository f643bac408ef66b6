"""Many memories are inserted as one is: the same rows, numbers, revisions and changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memxd.errors import DuplicateMemoryError
from memxd.model import MemoryType, Scope
from memxd.store import NewRow
from memxd.store.transactions import WriteTxn

DEFAULT, OTHER = Scope(), Scope("other")


def _news(count: int) -> list[NewRow]:
    return [
        NewRow(
            OTHER if n % 5 == 4 else DEFAULT, f"text {n} <b>", MemoryType(1 + n % 5), tags=("t", f"n{n % 3}")[: n % 3],
            metadata={"n": n, "odd": n % 2 == 1} if n % 4 else None, importance=n / 200, event_at=n * 1000 or None,
            source="s" * (n % 2), private=n % 7 == 0,
            chunks=None if n % 6 == 5 else [(a, a + 1, bytes([n, a] * 4)) for a in range(n % 4)],
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3, 63, 64, 65, 131])
def test_many_at_once_are_as_many_singles(new_bench: Callable[[str], Any], count: int) -> None:
    together, alone = new_bench("together"), new_bench("alone")
    rows = together.store.write(lambda txn: txn.insert_many(_news(count)))

    def singles(txn: WriteTxn) -> list[object]:
        return [txn.insert_many([new])[0] for new in _news(count)]

    assert rows == alone.store.write(singles)
    assert together.changes == alone.changes
    assert [together.again(row) for row in rows] == rows == [alone.again(row) for row in rows]
    for one, other in ((together, alone), (alone, together)):
        with one.store.read() as mine, other.store.read() as yours:
            assert list(mine.all_rows()) == list(yours.all_rows())
            assert list(mine.changes_since(0)) == list(yours.changes_since(0))


def test_numbers_are_never_given_twice(bench: Any) -> None:
    first = bench.store.write(lambda txn: txn.insert_many(_news(9)))
    bench.store.write(lambda txn: txn.delete([row.rid for row in first]))
    second = bench.store.write(lambda txn: txn.insert_many(_news(9)))
    assert min(row.rid for row in second) > max(row.rid for row in first)
    vids = [chunk.vid for change in bench.changes for chunk in change.chunks or ()]
    assert len(vids) == len(set(vids))


def test_one_that_is_refused_takes_all_of_them_along(bench: Any) -> None:
    [known] = bench.store.write(lambda txn: txn.insert_many(_news(1)))
    news = _news(5)
    news[3].scope, news[3].id = DEFAULT, known.memory.id
    with pytest.raises(DuplicateMemoryError):
        bench.store.write(lambda txn: txn.insert_many(news))
    with bench.store.read() as read:
        assert read.totals().memories == 1
        assert read.revision() == known.memory.revision
    rows = bench.store.write(lambda txn: txn.insert_many(_news(2)))
    assert [row.memory.revision for row in rows] == [known.memory.revision + 1, known.memory.revision + 2]


def test_known_contents_and_requests_are_told_at_once(bench: Any) -> None:
    [row] = bench.store.write(lambda txn: txn.insert_many(_news(1)))
    digest = bench.changes[0].features.content_hash if bench.changes[0].features else 0

    def look(txn: WriteTxn) -> None:
        txn.remember(row.scope_no, "StoreMany", "late", b"", "{}", (row.rid,))
        assert txn.requests_among(row.scope_no, "StoreMany", ["late", "never"]) == {"late"}
        assert txn.requests_among(row.scope_no, "Store", ["late"]) == set()

    bench.store.write(look)
    with bench.store.read() as read:
        assert read.contents_among(row.scope_no, {digest, 7}) == {digest}
        assert read.contents_among(row.scope_no + 1, {digest}) == set()
        assert read.requests_among(row.scope_no, "StoreMany", ["late", "never"]) == {"late"}
