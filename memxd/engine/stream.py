"""Reading a caller's stream in groups without ever waiting for a group to fill.

Owns the small reader thread that makes "everything that has arrived, at most n" possible over a blocking iterator; a
stream that has a reader of its own (``Grouped``) is asked directly, since each thread that an item passes costs. A
caller that sends one item and waits for its answer is answered at once; one that pours is served in groups. Called by
storing.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from typing import Protocol, TypeVar, runtime_checkable

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


def groups(items: Iterable[T] | Grouped[T], size: int) -> Iterator[list[T]]:
    """Lists of 1..size items in order, each as large as what has arrived; the reader is at most ``size`` ahead.

    An exception of ``items`` is raised here after everything before it was yielded.
    """
    return items.groups(size) if isinstance(items, Grouped) else _read_ahead(items, size)


def _read_ahead(items: Iterable[T], size: int) -> Iterator[list[T]]:
    queue: Queue[T | _End] = Queue(maxsize=size)
    gone = threading.Event()

    def put(item: T | _End) -> bool:
        while not gone.is_set():
            try:
                queue.put(item, timeout=_POLL)
                return True
            except Full:
                continue
        return False

    def read() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(_End(None))
        except BaseException as error:  # raised again on the consumer's side
            put(_End(error))

    reader = threading.Thread(target=read, name="memxd-stream-reader", daemon=True)
    reader.start()
    try:
        yield from _collect(queue, size)
    finally:
        gone.set()


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
            if item.error is not None:
                raise item.error
            return
