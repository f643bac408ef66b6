"""The StoreMany stream: items in as the client sends them, one answer for each, in the same order.

Owns the grouping: what has arrived goes to the engine together (it embeds and commits a group at once), and nobody
waits for items that have not been sent, so a client that sends one and waits for its answer gets it. A bad item is
answered in its place. Back pressure: at most one group waits; a client that does not read its answers stops being
read. Called by ``memory_servicer.py``.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import grpc

from memxd.errors import CancelledError, MemxdError
from memxd.model import Deadline, NewMemory, Scope, StoreAnswer
from memxd.service.convert import memory, values
from memxd.service.gate import Gate
from memxd.service.interceptors import UNDECODABLE, undecodable
from memxd.service.status import fill_item_error
from memxd.v1 import memory_service_pb2 as pb

#: Items handed to the engine together at most; the engine commits groups of this size.
GROUP = 64
#: How often a waiting stream looks whether the daemon is stopping, in seconds.
_LOOK = 0.1

Item = tuple[Scope, NewMemory, str] | MemxdError


class _End:
    """The client has sent everything, or is gone (``error``)."""

    def __init__(self, error: MemxdError | None = None) -> None:
        self.error = error


class _Reader:
    """Reads the client's stream on a thread of its own, so that the handler can tell "nothing yet" from "the end".

    The thread ends with the stream: gRPC's iterator stops or raises when the call is over, however it ends.
    """

    def __init__(self, requests: Iterator[pb.StoreManyRequest]) -> None:
        self._requests = requests
        self._arrived: queue.Queue[pb.StoreManyRequest | _End] = queue.Queue(GROUP)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._read, name="memxd-stream-reader", daemon=True)
        self._thread.start()

    def group(self, gate: Gate, deadline: Deadline) -> tuple[list[pb.StoreManyRequest], _End | None]:
        """Wait for one item, then take what is there, at most GROUP; and the end when it was reached."""
        items: list[pb.StoreManyRequest] = []
        while len(items) < GROUP:
            try:
                arrived = self._arrived.get(timeout=_LOOK) if not items else self._arrived.get_nowait()
            except queue.Empty:
                if items:
                    break
                gate.check_draining()
                deadline.check()
                continue
            if isinstance(arrived, _End):
                return items, arrived
            items.append(arrived)
        return items, None

    def close(self) -> None:
        """Let the thread end although nobody takes its items any more."""
        self._closed.set()

    def _read(self) -> None:
        end = _End()
        try:
            for request in self._requests:
                if not self._put(request):
                    return
        except grpc.RpcError:
            end = _End(CancelledError("the caller went away"))
        self._put(end)

    def _put(self, item: pb.StoreManyRequest | _End) -> bool:
        while not self._closed.is_set():
            try:
                self._arrived.put(item, timeout=_LOOK)
            except queue.Full:
                continue
            return True
        return False


def store_many(
    requests: Iterator[pb.StoreManyRequest], gate: Gate, deadline: Deadline
) -> Iterator[pb.StoreManyResponse]:
    """Answer each item in order. Ends the call with an error only when the daemon stops or the caller is gone."""
    reader = _Reader(requests)
    index = 0
    end: _End | None = None
    try:
        while end is None:
            group, end = reader.group(gate, deadline)
            for result in _store(group, gate, deadline):
                yield _response(index, result)
                index += 1
        if end.error is not None:
            raise end.error
    finally:
        reader.close()


def _store(group: list[pb.StoreManyRequest], gate: Gate, deadline: Deadline) -> Iterator[StoreAnswer | MemxdError]:
    items = [_item(request) for request in group]
    good = [item for item in items if not isinstance(item, MemxdError)]
    answers = iter(gate.engine.store_many(iter(good), deadline=deadline))
    for item in items:
        yield item if isinstance(item, MemxdError) else next(answers)


def _item(request: pb.StoreManyRequest) -> Item:
    if request is UNDECODABLE:
        return undecodable()
    try:
        return values.scope(request), memory.new_memory(request.memory), request.request_id
    except MemxdError as error:
        return error


def _response(index: int, result: StoreAnswer | MemxdError) -> pb.StoreManyResponse:
    response = pb.StoreManyResponse(index=index)
    if isinstance(result, MemxdError):
        fill_item_error(response.error, result)
        return response
    response.stored.deduplicated = result.deduplicated
    response.stored.revision = result.revision
    memory.fill_memory(response.stored.memory, result.memory)
    return response
