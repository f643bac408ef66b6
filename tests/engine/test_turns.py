"""Groups of a stream that are on their way to the writer together: in one commit, and each in its turn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from memxd.engine import Engine
from memxd.errors import MemoryNotFoundError, MemxdError, StorageFullError
from memxd.model import NO_FILTER, Change, NewMemory, Scope, StoreAnswer
from memxd.store import WriteTxn

A = Scope("a")
Answers = list[StoreAnswer | MemxdError]


class Held:
    """A stream of groups, all of which reach the writer's queue before it is let go.

    At most three: what is being waited for, what waits behind it, and what is being handed over.
    """

    def __init__(self, engine: Engine, groups: Sequence[Sequence[NewMemory]]) -> None:
        self._engine, self._groups = engine, groups
        self._go, self._holding = threading.Event(), threading.Event()
        self._drawn = 0
        self.failed = False  # the commit that the writer was held in

    def groups(self, size: int) -> Iterator[list[tuple[Scope, NewMemory, str]]]:
        for group in self._groups:
            yield [(A, new, "") for new in group]
            self._drawn += 1  # asked for the next one: this one is queued
            if self._drawn == len(self._groups) - 1:
                self._go.set()

    def _hold(self, txn: WriteTxn) -> None:
        self._holding.set()
        assert self._go.wait(30)

    def _occupy(self) -> None:
        try:
            self._engine._store.write(self._hold)
        except StorageFullError:
            self.failed = True

    def stored(self) -> list[Answers]:
        holder = threading.Thread(target=self._occupy)
        holder.start()
        assert self._holding.wait(30)
        answers = list(self._engine.store_groups(self))
        holder.join()
        return answers


def _news(*names: str) -> list[NewMemory]:
    return [NewMemory(name) for name in names]


def _contents(engine: Engine) -> list[str]:
    return [memory.content for memory in engine.list(A, NO_FILTER, page_size=200).memories][::-1]


def _revisions(answers: Answers) -> list[int]:
    return [answer.revision for answer in answers if isinstance(answer, StoreAnswer)]


def test_groups_that_wait_for_the_writer_commit_together(engine: Engine) -> None:
    commits: list[int] = []
    listener = engine._store.on_commit
    assert listener is not None

    def count(changes: list[Change]) -> None:
        commits.append(len(changes))
        listener(changes)

    engine._store.on_commit = count
    answers = Held(engine, [_news("one", "two"), _news("three"), _news("four")]).stored()
    assert [len(group) for group in answers] == [2, 1, 1]
    assert commits[0] >= 3  # the last one may have come when the writer was let go already
    assert _contents(engine) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("refused", [False, True])
def test_a_group_waits_for_the_one_ahead_when_that_has_to_be_told_apart(engine: Engine, refused: bool) -> None:
    engine.store(A, NewMemory("known"))
    groups = [_news("one", "known", "two"), _news("three", "one"), _news("four")]
    if refused:
        groups[0].append(NewMemory("nothing", supersedes=("0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e",)))
    first, second, third = Held(engine, groups).stored()
    assert _contents(engine) == ["known", "one", "two", "three", "four"]
    revisions = _revisions([first[0], first[2], second[0], third[0]])
    assert revisions == sorted(revisions)
    assert [a.deduplicated for a in (first[1], second[1]) if isinstance(a, StoreAnswer)] == [True, True]
    assert isinstance(second[1], StoreAnswer)
    assert isinstance(first[0], StoreAnswer)
    assert second[1].memory.id == first[0].memory.id
    assert [isinstance(answer, MemoryNotFoundError) for answer in first[3:]] == [True] * refused


def test_a_refused_item_does_not_hold_the_next_group_up(engine: Engine) -> None:
    nowhere = NewMemory("nothing", supersedes=("0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e",))
    groups = [[*_news("one"), nowhere], [nowhere], _news("two")]
    first, second, third = Held(engine, groups).stored()
    assert isinstance(first[1], MemoryNotFoundError)
    assert isinstance(second[0], MemoryNotFoundError)
    assert _revisions(first + third) == [1, 2]


def test_what_a_failed_commit_took_back_is_stored_before_the_next_group(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [StorageFullError("no room for this commit")]
    write_late: Callable[[WriteTxn], None] = WriteTxn.write_late

    def failing(txn: WriteTxn) -> None:
        if txn.changes and failures:
            raise failures.pop()
        write_late(txn)

    monkeypatch.setattr(WriteTxn, "write_late", failing)
    held = Held(engine, [_news("one", "two"), _news("three", "four"), _news("five", "six")])
    answers = held.stored()
    assert held.failed
    assert all(isinstance(answer, StoreAnswer) for group in answers for answer in group)
    assert _contents(engine) == ["one", "two", "three", "four", "five", "six"]
    revisions = _revisions([answer for group in answers for answer in group])
    assert revisions == sorted(revisions)
