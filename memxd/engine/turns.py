"""Groups of memories on their way to the writer, each in its turn.

Owns how a group becomes few transactions: plain items run together, others alone; when a run turns out not to be plain,
or anything in it is refused, it is undone, its items are told apart, and what follows waits for them. Several groups of
one stream may be under way, so that the writer never waits for the next and commits what has come meanwhile at once;
none is written before those ahead of it are. What a transaction does is in ``committing.py``. Called by ``storing.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby

from memxd.engine.committing import Answers, Apart, EqualRowGone, Ready, store_one, store_run
from memxd.errors import MemxdError
from memxd.model import Deadline, StoreAnswer
from memxd.store import Queued, Store, WriteTxn

#: Positions in a group that go into one transaction.
_Run = list[int]


class Line:
    """The groups of one stream. One thread begins them, one finishes them, both in their order.

    ``complete`` gives vectors and terms to items that were thought not to need any.
    """

    def __init__(self, store: Store, deadline: Deadline, complete: Callable[[list[Ready]], None]) -> None:
        self.store = store
        self.deadline = deadline
        self.complete = complete
        self._last: Group | None = None

    def begin(self, items: Sequence[Ready]) -> Group:
        """Send a group on its way; ``finish`` of what this answers tells how it went."""
        group = self._last = Group(self, items, self._last)
        return group


class Group:
    """Items that are being stored."""

    def __init__(self, line: Line, items: Sequence[Ready], ahead: Group | None) -> None:
        self._line = line
        self._items = items
        self._ahead = ahead
        self._finished = False
        self._apart = {n for n, item in enumerate(items) if item.skipped or item.new.supersedes}
        self._attempt = _Attempt(self)
        self._attempt.send(list(range(len(items))), self._apart)

    def finish(self) -> Answers:
        """One answer or refusal for each item, once all are durable. To be called when the group ahead is finished."""
        answers = self._answers(self._attempt)
        again = [n for n, answer in enumerate(answers) if isinstance(answer, EqualRowGone)]
        if again:
            late = [self._items[n] for n in again]
            for item in late:
                item.skipped = False
            self._line.complete(late)
            for n, answer in zip(again, Group(self._line, late, None).finish(), strict=True):
                answers[n] = answer
        self._finished = True
        self._ahead = None  # or every group would be kept until the stream's end
        return answers

    def _answers(self, attempt: _Attempt) -> Answers:
        told: dict[int, StoreAnswer | MemxdError] = {}
        while True:
            left: _Run = []
            for run, answer in attempt.outcomes():
                if not isinstance(answer, MemxdError):
                    told |= zip(run, answer, strict=True)
                elif isinstance(answer, Apart):
                    self._apart |= {run[n] for n in answer.positions}
                    left += run
                elif len(run) == 1:
                    told[run[0]] = answer
                else:  # which of them it was, each tells by itself
                    self._apart |= set(run)
                    left += run
            if not left:
                return [told[n] for n in range(len(self._items))]
            attempt = _Attempt(self)
            attempt.send(left, self._apart)

    def may_write(self, txn: WriteTxn) -> bool:
        """Whether all groups ahead are stored or refused, or are in this very transaction. Writer thread."""
        ahead = self._ahead
        return ahead is None or ahead._finished or ahead._attempt.went_well(txn)

    def send(self, work: Sequence[Callable[[WriteTxn], list[StoreAnswer]]]) -> Queued:
        """Queue transactions for the writer."""
        return self._line.store.queue_all(work, self._line.deadline)

    def pick(self, run: _Run) -> list[Ready]:
        """The items of a run."""
        return [self._items[n] for n in run]


class _Attempt:
    """The transactions of one try. Once a run is refused, what stands behind it must not overtake it."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._runs: list[_Run] = []
        self._queued: Queued | None = None
        self._broken = self._again = False  # the rest, or only some item, has to be done again
        self._ended_in: WriteTxn | None = None  # in which the last one was written
        self._written = -1  # the last one that was not refused

    def send(self, left: _Run, apart: Collection[int]) -> None:
        """Queue what is ``left`` of the group; those in ``apart`` one by one."""
        self._runs = list(_runs(left, apart))
        self._queued = self._group.send([self._work(n, run[0] not in apart) for n, run in enumerate(self._runs)])

    def outcomes(self) -> Iterable[tuple[_Run, list[StoreAnswer] | MemxdError]]:
        """What came of each run, once all are done."""
        assert self._queued is not None
        return zip(self._runs, self._queued.outcomes(), strict=True)

    def went_well(self, txn: WriteTxn) -> bool:
        """Whether nothing of it has to be done again, as far as ``txn`` can tell. Writer thread."""
        if self._broken or self._again or self._ended_in is None:
            return False
        kept = self._queued is not None and (self._written < 0 or self._queued.is_kept(self._written))
        return self._ended_in is txn or kept  # a COMMIT that failed takes back what went well

    def _work(self, number: int, together: bool) -> Callable[[WriteTxn], list[StoreAnswer]]:
        """The transaction of a run, or of a single item with all that may be to do for it."""
        run, last = self._group.pick(self._runs[number]), number == len(self._runs) - 1

        def work(txn: WriteTxn) -> list[StoreAnswer]:
            if self._broken or not self._group.may_write(txn):
                self._broken = True
                raise Apart(set())
            try:
                stored = store_run(txn, run) if together else [store_one(txn, run[0])]
                self._written = number
            except BaseException as error:
                self._broken = together
                self._again = self._again or isinstance(error, EqualRowGone)
                raise
            finally:
                if last:
                    self._ended_in = txn
            return stored

        return work


def _runs(positions: Sequence[int], apart: Collection[int]) -> Iterator[_Run]:
    """Neighbours that are not ``apart``, together; the others one by one."""
    for alone, run in groupby(positions, lambda n: n in apart):
        if alone:
            yield from ([n] for n in run)
        else:
            yield list(run)
