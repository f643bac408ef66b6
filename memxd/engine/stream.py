"""Reading a caller's stream in groups without ever waiting for a group to fill, and working one group ahead.

Owns the small reader thread that makes "everything that has arrived, at most n" possible over a blocking iterator (a
stream that has a reader of its own, ``Grouped``, is asked directly, since each thread that an item passes costs), and
``ahead``, by which one group is made ready while the last one is written. A caller that sends one item and waits for
its answer is answered at once; one that pours is served in groups. Called by storing.py.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from queue import Empty, Full, Queue
from typing import Generic, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")

#: Seconds between looks at whether the consumer has gone.
_POLL = 0.1


@runtime_checkable
class Grouped(Protocol[T]):
    """A stream that knows itself what has arrived."""

    def groups(self, size: int) -> Iterator[list[T]]:
        """Lists of 1..size items in order, each as large as what has arrived."""
        ...


class _End:
    """Marks the end of the stream, with what ended it when that was an error."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def reraise(self) -> None:
        """Raise what ended the stream, if anything did."""
        if self.error is not None:
            raise self.error


def groups(items: Iterable[T] | Grouped[T], size: int) -> Iterator[list[T]]:
    """Lists of 1..size items in order, each as large as what has arrived; the reader is at most ``size`` ahead.

    An exception of ``items`` is raised here after everything before it was yielded.
    """
    return items.groups(size) if isinstance(items, Grouped) else _read_ahead(items, size)


def ahead(items: Iterable[T], name: str) -> Generator[T, None, None]:
    """The same items, of which the next one is made on a thread of this name while the last one is being used.

    An exception of ``items`` is raised here after everything before it was yielded. The thread ends by itself once this
    is closed and ``items`` has yielded once more.
    """
    reading = _Reading(items, 1, name)
    try:
        while not isinstance(item := reading.queue.get(), _End):
            yield item
        item.reraise()
    finally:
        reading.gone.set()


def _read_ahead(items: Iterable[T], size: int) -> Iterator[list[T]]:
    reading = _Reading(items, size, "memxd-stream-reader")
    try:
        yield from _collect(reading.queue, size)
    finally:
        reading.gone.set()


class _Reading(Generic[T]):
    """A thread that puts the items into ``queue``, and the end behind them, until ``gone`` is set."""

    def __init__(self, items: Iterable[T], size: int, name: str) -> None:
        self.queue: Queue[T | _End] = Queue(maxsize=size)
        self.gone = threading.Event()
        threading.Thread(target=self._read, args=(items,), name=name, daemon=True).start()

    def _read(self, items: Iterable[T]) -> None:
        try:
            for item in items:
                if not self._put(item):
                    return
            self._put(_End(None))
        except BaseException as error:  # raised again on the consumer's side
            self._put(_End(error))

    def _put(self, item: T | _End) -> bool:
        while not self.gone.is_set():
            try:
                self.queue.put(item, timeout=_POLL)
                return True
            except Full:
                continue
        return False


def _collect(queue: Queue[T | _End], size: int) -> Iterator[list[T]]:
    while True:
        group: list[T] = []
        item: T | _End = queue.get()
        while not isinstance(item, _End):
            group.append(item)
            if len(group) == size:
                break
            try:
                item = queue.get_nowait()
            except Empty:
                break
        if group:
            yield group
        if isinstance(item, _End):
            item.reraise()
            return
