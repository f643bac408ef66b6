"""What a StoreMany stream sends: items as bytes, several in one message once the daemon has told that it reads those.

Owns the filling of messages and the bound on unanswered items, for both clients. An item never waits for another
one: a list's items are all there and are packed as they come; of any other iterable a thread draws, and a message takes
what has been drawn by then (the asyncio client then sends one by one). Sends nothing itself. Called by ``sync.py`` and
``aio.py``.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

from memxd.client.memories import Item
from memxd.client.packing import joined
from memxd.client.streams import Ledger
from memxd.v1 import memory_service_pb2 as pb

if TYPE_CHECKING:
    import asyncio

#: Items in one message, and bytes of them unless a single item has more.
ITEMS = 32
BYTES = 256 * 1024
_MORE: Final = pb.StoreManyRequest.MORE_FIELD_NUMBER


class _Over:
    """The items have ended, or nobody wants further ones."""


_OVER: Final = _Over()


class _Source(Protocol):
    """Where serialised items come from."""

    def take(self, wait: bool) -> bytes | _Over | None:
        """The next item that may be sent; None when there is none yet and ``wait`` is false."""
        ...

    def close(self) -> None:
        """Answer ``_OVER`` from now on, to a waiting ``take`` as well."""
        ...


def _serialised(ledger: Ledger, items: Iterable[Item | str]) -> Iterator[bytes]:
    """Every item that can be sent. What the caller's iterator raises is noted: told after the answers."""
    try:
        for item in items:
            message = ledger.message(item)
            if message is not None:
                yield message
    except (Exception, SystemExit, KeyboardInterrupt) as failure:  # on another thread these would be lost
        ledger.failure = failure


class _There:
    """A list: whatever is asked for is there, as long as the window is open."""

    def __init__(self, items: Iterator[bytes], slots: threading.Semaphore) -> None:
        self._items, self._slots = items, slots
        self._held: bytes | _Over | None = None
        self._closed = False

    def take(self, wait: bool) -> bytes | _Over | None:
        if self._held is None:
            self._held = next(self._items, _OVER)
        if self._held is _OVER:
            return _OVER
        if not self._slots.acquire(blocking=wait):
            return None
        taken, self._held = self._held, None
        return _OVER if self._closed else taken

    def close(self) -> None:
        self._closed = True
        self._slots.release()


class _Drawn:
    """Any other iterable, drawn from by a thread, since nobody knows how long the next item takes.

    The thread ends once this is closed and the iterable has yielded once more.
    """

    def __init__(self, items: Iterator[bytes], slots: threading.Semaphore) -> None:
        self._items, self._slots = items, slots
        self._queue: SimpleQueue[bytes | _Over] = SimpleQueue()
        self._closed = False
        threading.Thread(target=self._draw, name="memxd-store-many", daemon=True).start()

    def take(self, wait: bool) -> bytes | _Over | None:
        try:
            return self._queue.get(wait)
        except Empty:
            return None

    def close(self) -> None:
        self._closed = True
        self._slots.release()
        self._queue.put(_OVER)

    def _draw(self) -> None:
        try:
            for item in self._items:
                self._slots.acquire()
                if self._closed:
                    break
                self._queue.put(item)
        finally:
            self._queue.put(_OVER)


class Pouring:
    """The messages of one stream."""

    def __init__(self, ledger: Ledger, items: Iterable[Item | str], window: int) -> None:
        """``window``: how many items may be unanswered at a time, at least 1."""
        self._ledger = ledger
        self._items = items
        self._slots = threading.Semaphore(window)
        self._source: _Source | None = None
        self._lock = threading.Lock()
        self._closed = False

    def messages(self) -> Iterator[bytes]:
        """Serialised StoreManyRequests; reads the items as they are asked for."""
        source = self._opened()
        carried: bytes | _Over | None = None
        while source is not None:
            first = carried if carried is not None else source.take(wait=True)
            carried = None
            if first is None or isinstance(first, _Over):
                break
            message, size = [first], len(first)
            while self._ledger.takes_more and len(message) < ITEMS:
                carried = source.take(wait=False)
                if carried is None or isinstance(carried, _Over) or size + len(carried) > BYTES:
                    break
                message.append(carried)
                size += len(carried)
                carried = None
            yield joined(_MORE, message)
        self._ledger.complete = True

    def answered(self, count: int) -> None:
        """So many items are no longer under way."""
        self._slots.release(count)

    def close(self) -> None:
        """End ``messages``, wherever it waits."""
        with self._lock:
            self._closed = True
            source = self._source
        if source is not None:
            source.close()

    def _opened(self) -> _Source | None:
        with self._lock:
            if self._closed:
                return None
            whole = isinstance(self._items, list | tuple)
            made = _There if whole else _Drawn
            self._source = made(_serialised(self._ledger, self._items), self._slots)
            return self._source


async def poured(
    ledger: Ledger, items: Iterable[Item | str] | AsyncIterable[Item | str], slots: asyncio.Semaphore
) -> AsyncIterator[bytes]:
    """The same for asyncio: ``slots`` has one for each item that may be unanswered."""
    message: list[bytes] = []
    try:
        async for item in _each(items):
            serialised = ledger.message(item)
            if serialised is None:
                continue
            if message and (slots.locked() or sum(map(len, message)) + len(serialised) > BYTES):
                yield joined(_MORE, message)
                message = []
            await slots.acquire()
            message.append(serialised)
            if len(message) == ITEMS or not (ledger.takes_more and isinstance(items, list | tuple)):
                yield joined(_MORE, message)
                message = []
    except Exception as failure:  # the caller's iterator failed: told to the caller, after the answers
        ledger.failure = failure
    if message:
        yield joined(_MORE, message)
    ledger.complete = True


async def _each(items: Iterable[Item | str] | AsyncIterable[Item | str]) -> AsyncIterator[Item | str]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
