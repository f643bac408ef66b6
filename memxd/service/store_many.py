"""The StoreMany stream: items in as the client sends them, one answer for each, in the same order.

Owns the conversion of each item (one that cannot be read is answered in its place) and of the answers. The engine
groups what has arrived; answers that became ready together go into one message to a caller who knows of it, none waits
for another item. Back pressure: a client that does not read its answers stops being read (``arrivals.py``). Called by
``memory_servicer.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from memxd.errors import MemxdError
from memxd.model import Deadline, NewMemory, Scope, StoreAnswer
from memxd.service.arrivals import Arrivals, End, Entry, Message, entries, items_in
from memxd.service.convert import memory, values
from memxd.service.gate import Gate
from memxd.service.status import fill_item_error
from memxd.v1 import memory_service_pb2 as pb

#: Bytes of answers in one message; a single one may be larger.
_ANSWER_BYTES = 512 * 1024

Item = tuple[Scope, NewMemory, str] | MemxdError
Result = StoreAnswer | MemxdError


class _Reader:
    """What has arrived, as the engine wants it."""

    def __init__(self, arrivals: Arrivals[pb.StoreManyRequest], gate: Gate) -> None:
        self._arrivals = arrivals
        self._gate = gate
        self._step_aside = gate.engine.courtesy.step_aside

    def groups(self, size: int) -> Iterator[list[Item]]:
        """What has arrived, up to ``size`` items or refusals at once, for the engine. Raises ShuttingDownError,
        CancelledError, StreamIdleError."""
        rest: Iterator[Entry] = iter(())
        while True:
            self._gate.check_draining()
            group = [self._item(entry) for entry in islice(rest, size)]
            arrived: Message | End | None = None
            while len(group) < size:  # then ``rest`` is used up
                arrived = self._arrivals.next() if group else self._arrivals.first()
                if arrived is None or isinstance(arrived, End):
                    break
                rest = entries(arrived)
                group += [self._item(entry) for entry in islice(rest, size - len(group))]
            if group:
                yield group
            elif isinstance(arrived, End):
                if arrived.error is not None:
                    raise arrived.error
                return

    def _item(self, entry: Entry) -> Item:
        self._step_aside()
        if isinstance(entry, MemxdError):
            return entry
        try:
            return values.scope(entry), memory.new_memory(entry.memory), entry.request_id
        except MemxdError as error:
            return error


def store_many(
    requests: Iterator[pb.StoreManyRequest], gate: Gate, deadline: Deadline
) -> Iterator[pb.StoreManyResponse]:
    """Answer each item in order. Ends the call with an error only when the daemon stops or the caller is gone."""
    arrivals = Arrivals(requests, gate, items_in)
    step_aside = gate.engine.courtesy.step_aside
    index = 0
    try:
        for results in gate.engine.store_groups(_Reader(arrivals, gate), deadline=deadline):
            yield from _responses(index, results, arrivals.knows_more, step_aside)
            index += len(results)
    finally:
        arrivals.close()


def _responses(
    index: int, results: Sequence[Result], together: bool, step_aside: Callable[[], None]
) -> Iterator[pb.StoreManyResponse]:
    """The answers, the first one to the item ``index``; in as few messages as their size allows, or each in one."""
    head = pb.StoreManyResponse(takes_more=index == 0)
    size = _fill(head, index, results[0])
    for number, result in enumerate(results[1:], index + 1):
        step_aside()
        if together and size < _ANSWER_BYTES:
            size += _fill(head.more.add(), number, result)
        else:
            yield head
            head = pb.StoreManyResponse()
            size = _fill(head, number, result)
    yield head


def _fill(response: pb.StoreManyResponse, index: int, result: Result) -> int:
    """Write one answer; its size in bytes."""
    response.index = index
    if isinstance(result, MemxdError):
        fill_item_error(response.error, result)
    else:
        stored = response.stored
        stored.deduplicated = result.deduplicated
        stored.revision = result.revision
        memory.fill_memory(stored.memory, result.memory)
    return response.ByteSize()
