"""The book-keeping of a StoreMany stream: which items are under way, and which answer belongs to which.

Owns the order of outcomes. Items that cannot even be sent (a time without a zone...) are answered here, in their
place among the others. Does no input or output: ``sync.py`` and ``aio.py`` move the messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from memxd.client import convert
from memxd.client.call import Bound
from memxd.client.failures import build
from memxd.client.memories import Item, stream_request
from memxd.errors import MemxdError
from memxd.model import StoreAnswer
from memxd.v1 import memory_service_pb2 as pb

METHOD = "/memxd.v1.MemoryService/StoreMany"


class Ledger:
    """Items sent and not yet answered, in order. One thread adds, one takes; a deque needs no lock for that."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._open: deque[MemxdError | None] = deque()  # None = sent; an error = refused before it was sent
        #: What the caller's own iterator raised; told after the answers to what came before.
        self.failure: BaseException | None = None
        #: Whether the caller's iterator has ended, well or not: only then may the daemon end the stream.
        self.complete = False
        #: Whether the daemon has told that it reads several items in one message; an older one would lose them.
        self.takes_more = False

    def message(self, item: Item | str) -> bytes | None:
        """The message of an item, serialised; None when it cannot be sent (its error is noted in its place)."""
        try:
            message = stream_request(self._bound, item).SerializeToString()
        except MemxdError as error:
            self._open.append(error)
            return None
        self._open.append(None)
        return message

    def outcomes(self, response: pb.StoreManyResponse) -> Iterator[StoreAnswer | MemxdError]:
        """What the response settles: for each answer in it the unsendable items before, then its own."""
        yield from self._settled(response)
        for answer in response.more:
            yield from self._settled(answer)

    def _settled(self, answer: pb.StoreManyResponse) -> Iterator[StoreAnswer | MemxdError]:
        while self._open and (error := self._open.popleft()) is not None:
            yield error
        refused = answer.WhichOneof("result") == "error"
        yield convert.item_error(answer.error) if refused else convert.stored(answer.stored)

    def answers(self, response: pb.StoreManyResponse) -> int:
        """How many items the response answers; notes what it tells of the daemon."""
        self.takes_more = self.takes_more or response.takes_more
        return 1 + len(response.more)

    def rest(self) -> Iterator[StoreAnswer | MemxdError]:
        """Unsendable items after the last response; raises when the stream ended before every answer had come."""
        while self._open and (error := self._open[0]) is not None:
            self._open.popleft()
            yield error
        if self._open or not self.complete:
            raise build(
                "STREAM_INCOMPLETE",
                "the daemon ended the stream before it had answered every item; send the same items again: their "
                "request ids keep them from being stored twice",
            )
        if self.failure is not None:
            raise self.failure
