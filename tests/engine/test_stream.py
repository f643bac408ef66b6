"""Groups are as large as what has arrived, and never wait to fill."""

import threading
from collections.abc import Iterator

import pytest

from memxd.engine.stream import ahead, groups


def test_everything_comes_once_and_in_order() -> None:
    assert [n for group in groups(range(1_000), 7) for n in group] == list(range(1_000))


def test_no_group_is_larger_than_asked() -> None:
    assert max(len(g) for g in groups(range(100), 8)) <= 8


def test_a_caller_that_waits_for_each_answer_is_not_kept_waiting() -> None:
    answered = threading.Semaphore(1)

    def one_at_a_time() -> Iterator[int]:
        for n in range(5):
            assert answered.acquire(timeout=5), "the group waited for more items"
            yield n

    seen = []
    for group in groups(one_at_a_time(), 64):
        seen.append(list(group))
        answered.release()
    assert seen == [[0], [1], [2], [3], [4]]


def test_an_error_of_the_stream_comes_after_what_was_before_it() -> None:
    def broken() -> Iterator[int]:
        yield 1
        yield 2
        raise ConnectionError("gone")

    seen: list[int] = []
    with pytest.raises(ConnectionError):
        seen.extend(n for group in groups(broken(), 8) for n in group)
    assert seen == [1, 2]


def test_leaving_early_frees_the_reader() -> None:
    before = threading.active_count()
    stream = groups(iter(range(10_000)), 4)
    next(stream)
    stream.close()
    for thread in threading.enumerate():
        if thread.name == "memxd-stream-reader":
            thread.join(timeout=5)
    assert threading.active_count() <= before


def test_a_stream_that_groups_by_itself_is_asked_directly() -> None:
    class Ready:
        def groups(self, size: int) -> Iterator[list[int]]:
            yield list(range(size))

    before = threading.active_count()
    assert list(groups(Ready(), 3)) == [[0, 1, 2]]
    assert threading.active_count() == before


def test_the_next_one_is_made_while_the_last_one_is_used() -> None:
    made = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for n in range(3):
            made.release()
            yield n

    stream = ahead(items(), "memxd-stream-ready")
    assert next(stream) == 0
    assert all(made.acquire(timeout=5) for _ in range(2)), "nothing was made ahead"
    assert list(stream) == [1, 2]


def test_ahead_tells_an_error_after_what_was_before_it() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ConnectionError("gone")

    seen: list[int] = []
    with pytest.raises(ConnectionError):
        seen.extend(ahead(broken(), "memxd-stream-ready"))
    assert seen == [1]


def test_leaving_early_ends_the_thread_that_works_ahead() -> None:
    stream = ahead(iter(range(10_000)), "memxd-stream-ahead")
    next(stream)
    stream.close()
    for thread in threading.enumerate():
        if thread.name == "memxd-stream-ahead":
            thread.join(timeout=5)
            assert not thread.is_alive()
