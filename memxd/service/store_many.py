"""The StoreMany stream: items in as the client sends them, one answer for each, in the same order.

Owns the reading of the client's stream, so that a stopping daemon can end a stream on which nothing arrives, and the
conversion of each item: one that cannot be read is answered in its place. The engine groups what has arrived. Back
pressure: at most ``AHEAD`` items wait; a client that does not read its answers stops being read. Called by
``memory_servicer.py``.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

import grpc

from memxd.errors import CancelledError, MemxdError, StreamIdleError
from memxd.model import Deadline, NewMemory, Scope, StoreAnswer
from memxd.service.convert import memory, values
from memxd.service.gate import Gate
from memxd.service.interceptors import Undecodable, undecodable
from memxd.service.status import fill_item_error
from memxd.v1 import memory_service_pb2 as pb

#: Items read ahead of the engine, which itself takes up to 64 at once.
AHEAD = 64
#: How often a waiting stream looks whether the daemon is stopping, in seconds.
_LOOK = 0.1

Item = tuple[Scope, NewMemory, str] | MemxdError


class _End:
    """The client has sent everything, or is gone (``error``)."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


class _Reader:
    """Reads the client's stream on a thread of its own; waiting for gRPC's iterator cannot be interrupted.

    The thread ends with the call: the iterator stops or raises when the call is over, however it ends.
    """

    def __init__(self, requests: Iterator[pb.StoreManyRequest], gate: Gate) -> None:
        self._requests = requests
        self._gate = gate
        self._arrived: queue.Queue[pb.StoreManyRequest | _End] = queue.Queue(AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._read, name="memxd-stream-reader", daemon=True)
        self._thread.start()

    def groups(self, size: int) -> Iterator[list[Item]]:
        """What has arrived, up to ``size`` items or refusals at once, for the engine. Raises ShuttingDownError,
        CancelledError, StreamIdleError."""
        while not self._closed.is_set():
            group: list[Item] = []
            arrived = self._first()
            while not isinstance(arrived, _End):
                group.append(_item(arrived))
                if len(group) == size:
                    break
                try:
                    arrived = self._arrived.get_nowait()
                except queue.Empty:
                    break
            if group:
                yield group
            if isinstance(arrived, _End):
                if arrived.error is not None:
                    raise arrived.error
                return

    def _first(self) -> pb.StoreManyRequest | _End:
        """The next item, waited for as long as the stream may be idle."""
        since = time.monotonic()
        while not self._closed.is_set():
            self._gate.check_draining()
            try:
                return self._arrived.get(timeout=_LOOK)
            except queue.Empty:
                if time.monotonic() - since >= self._gate.stream_idle:
                    raise StreamIdleError(
                        f"no item came for {self._gate.stream_idle:g} s; everything that came was answered, "
                        "open a new stream"
                    ) from None
        return _End()

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
        except Exception as error:  # raised again on the engine's side
            end = _End(error)
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
    reader = _Reader(requests, gate)
    try:
        for index, result in enumerate(gate.engine.store_many(reader, deadline=deadline)):
            yield _response(index, result)
    finally:
        reader.close()


def _item(request: pb.StoreManyRequest | Undecodable) -> Item:
    if isinstance(request, Undecodable):
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
