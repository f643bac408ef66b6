"""What has come over a caller's stream and waits for the engine.

Owns the thread that reads the stream (waiting for gRPC's iterator cannot be interrupted, and a stopping daemon must be
able to end one on which nothing arrives), the bound on how much waits, and the taking apart of StoreMany's messages
that carry several items. Does not read the items themselves. Called by ``store_many.py`` and ``moving.py``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import grpc

from memxd.errors import CancelledError, InvalidArgumentError, StreamIdleError
from memxd.service.gate import Gate
from memxd.service.running import Undecodable, undecodable
from memxd.v1 import memory_service_pb2 as pb

#: Items that may wait before the stream is no longer read; the engine itself takes up to 64 at once.
AHEAD = 64
#: Items behind the first one in a message, at most.
MORE = 255
#: How often a waiting stream looks whether the daemon is stopping, in seconds.
_LOOK = 0.1

M = TypeVar("M")
Message = pb.StoreManyRequest | Undecodable
#: One item, or why it is refused.
Entry = pb.StoreManyRequest | InvalidArgumentError


class End:
    """The client has sent everything, or is gone (``error``)."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class Arrivals(Generic[M]):
    """The messages of one stream, read by a thread that ends with the call, however that ends.

    ``count`` tells as how many items a message counts.
    """

    def __init__(self, requests: Iterator[M], gate: Gate, count: Callable[[M | Undecodable], int]) -> None:
        self._requests = requests
        self._gate = gate
        self._count = count
        self._changed = threading.Condition()
        self._waiting: deque[M | Undecodable] = deque()
        self._items = 0
        self._end: End | None = None
        self._closed = False
        #: Whether the caller has sent several items in one message, so that it understands as many answers in one.
        self.knows_more = False
        threading.Thread(target=self._read, name="memxd-stream-reader", daemon=True).start()

    def each(self) -> Iterator[M | Undecodable]:
        """Message by message to the end; raises as ``first``, and CancelledError when the caller is gone."""
        while not isinstance(message := self.first(), End):
            yield message
        if message.error is not None:
            raise message.error

    def first(self) -> M | Undecodable | End:
        """The next message, waited for as long as the stream may be idle. Raises ShuttingDownError, StreamIdleError."""
        since = time.monotonic()
        while True:
            self._gate.check_draining()
            found = self.next(_LOOK)
            if found is not None:
                return found
            idle = time.monotonic() - since
            if idle >= self._gate.idle_limit():
                raise StreamIdleError(
                    f"no item came for {idle:.3g} s; everything that came was answered, open a new stream"
                )

    def next(self, patience: float = 0.0) -> M | Undecodable | End | None:
        """The next message, the end behind all of them, or None when nothing came within ``patience`` seconds."""
        with self._changed:
            if patience and not self._waiting and self._end is None and not self._closed:
                self._changed.wait(patience)
            if self._closed:
                return End()
            if not self._waiting:
                return self._end
            message = self._waiting.popleft()
            self._items -= self._count(message)
            self._changed.notify_all()
            return message

    def close(self) -> None:
        """Let the thread end although nobody takes its items any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _read(self) -> None:
        end = End()
        try:
            for request in self._requests:
                if not self._put(request):
                    return
        except grpc.RpcError:
            end = End(CancelledError("the caller went away"))
        except Exception as error:  # raised again on the engine's side
            end = End(error)
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def _put(self, message: M | Undecodable) -> bool:
        """Whether anybody still wants messages."""
        size = self._count(message)
        with self._changed:
            while self._items >= AHEAD and not self._closed:
                self._changed.wait()
            self._waiting.append(message)
            self._items += size
            self.knows_more = self.knows_more or size > 1
            self._changed.notify_all()
            return not self._closed


def items_in(message: Message) -> int:
    """How many items a message of StoreMany carries."""
    return 1 if isinstance(message, Undecodable) else 1 + len(message.more)


def entries(message: Message) -> Iterator[Entry]:
    """The items of a message in order, a refusal in place of each that cannot be one; bytes of no message are one."""
    if isinstance(message, Undecodable):
        yield undecodable()
        return
    more = message.more
    if len(more) > MORE:
        for _ in range(1 + len(more)):
            yield InvalidArgumentError.field(
                "more", f"holds {len(more)} items, at most {MORE} fit; send the rest in a further message"
            )
        return
    yield message
    for place, entry in enumerate(more):
        if entry.more:
            yield InvalidArgumentError.field(
                f"more[{place}].more", 'must be empty; put all items into the outer "more"'
            )
        else:
            yield entry
