"""The writer: the one thread that changes the database.

Owns the writing connection, group commit, and the order "COMMIT, then the indexes, then the callers". Each queued
function runs within a savepoint, so that one that fails undoes only itself; what is queued meanwhile commits together,
since the disk's flush is what a commit costs. Between groups it flushes counters, forgets expired request ids, and
empties the write-ahead log after an erasure and when a long reader has let it grow. Called by ``store.py``; tells the
engine's listeners.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from memxd.errors import MemxdError
from memxd.failpoints import reach
from memxd.model import Deadline
from memxd.store.base import Context, Mark
from memxd.store.connection import BUSY_MILLISECONDS, LOG_BYTES
from memxd.store.jobs import Inbox, Job, Queued
from memxd.store.presence import Presence
from memxd.store.transactions import WriteTxn
from memxd.store.types import CommitListener, CounterListener
from memxd.threads import Steady, at_rest, at_work

T = TypeVar("T")
_log = logging.getLogger(__name__)

THREAD_NAME = "memxd-writer"
_GROUP_MEMBERS = 256
_GROUP_SECONDS = 0.02
_TICK_SECONDS = 1.0
_FORGET_SECONDS = 60.0


class Writer:
    """Runs functions in transactions on its own thread, from ``start`` to ``close``."""

    def __init__(self, connection: sqlite3.Connection, context: Context, presence: Presence) -> None:
        self._connection = connection
        self._presence = presence
        self._context = context
        self.on_commit: CommitListener | None = None
        self.on_counters: CounterListener | None = None
        self._inbox = Inbox()
        self._must_empty_log = False
        self._failing = False
        self._next_tick = self._next_forget = 0.0
        self._thread = Steady(self._run, THREAD_NAME, "writes, and tells the indexes", vital=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def submit(self, fn: Callable[[WriteTxn], T], deadline: Deadline) -> T:
        """Run ``fn`` on the writer thread; return or raise what it does, once that is durable and told."""
        self._refuse_own_thread()
        job = Job.of(fn, deadline)
        self._inbox.put((job,), deadline)
        try:
            result: T = job.wait()
        except BaseException:
            job.future.cancel()  # a caller that leaves early (Ctrl-C) takes its work along, unless it has begun
            raise
        return result

    def queue_all(self, fns: Sequence[Callable[[WriteTxn], T]], deadline: Deadline) -> Queued:
        """As ``submit`` for several at once, which commit together; a refusal stands in its place. Does not wait for
        them."""
        self._refuse_own_thread()
        jobs = [Job.of(fn, deadline) for fn in fns]
        try:
            self._inbox.put(jobs, deadline)
        except MemxdError as refusal:
            return Queued(jobs, refusal)
        return Queued(jobs, None)

    def flush_counters(self, deadline: Deadline) -> None:
        """Write pending counts; returns when they are durable and told."""
        self.submit(self._flush, deadline)

    def close(self) -> None:
        """Refuse new work, finish what is queued, flush counters, close the connection, join. Twice is fine."""
        self._inbox.close()
        self._thread.join()

    def _refuse_own_thread(self) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a function on the writer thread cannot wait for the writer thread")

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._work()
            self._keep_house(final=True)
        finally:
            self._inbox.refuse_rest()
            self._connection.close()

    def _work(self) -> None:
        while True:
            at_rest()
            try:
                jobs = self._inbox.take(_TICK_SECONDS)
            except queue.Empty:
                ended = False
            else:
                if jobs is None:
                    return
                at_work()
                ended = self._group(jobs)
            if time.monotonic() >= self._next_tick:
                ended |= self._keep_house()
            if ended:
                return

    def _group(self, jobs: Sequence[Job]) -> bool:
        """Run ``jobs`` and what is queued behind them in one transaction; True when the end of the queue was met."""
        until = time.monotonic() + _GROUP_SECONDS
        waiting, ended = deque(jobs), False
        while waiting:  # more than once only after SQLite has rolled a whole transaction back
            done: list[tuple[Job, Any]] = []
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self.check_presence()
                txn = WriteTxn(self._connection, self._context)
            except (sqlite3.Error, MemxdError) as error:
                self._abort([(job, None) for job in waiting if job.begin()], error)
                return ended
            whole = True
            while waiting and whole and not txn.sealed:
                job = waiting.popleft()
                if job.begin():
                    whole = self._member(txn, job, done)
                if self._has_room(txn, waiting, done, until) and whole and not ended:
                    ended = self._take_more(waiting)
            if whole:
                self._commit(txn, done)
        return ended

    @staticmethod
    def _has_room(txn: WriteTxn, waiting: deque[Job], done: list[tuple[Job, Any]], until: float) -> bool:
        """Whether the transaction may take what is queued next."""
        full = txn.sealed or len(done) >= _GROUP_MEMBERS
        return not waiting and not full and time.monotonic() < until

    def _take_more(self, waiting: deque[Job]) -> bool:
        """Add what is queued next, if anything; True when that is the end of the queue."""
        try:
            more = self._inbox.take(0)
        except queue.Empty:
            return False
        waiting.extend(more or ())
        return more is None

    def _member(self, txn: WriteTxn, job: Job, done: list[tuple[Job, Any]]) -> bool:
        """Run one function within its savepoint; False when the whole transaction is gone."""
        mark = txn.mark()
        try:
            self._connection.execute("SAVEPOINT member")  # first: what raises below is undone to here
            job.deadline.check()
            result = job.fn(txn)
            self._connection.execute("RELEASE member")
        except BaseException as error:
            whole = self._undo(txn, mark)
            job.future.set_exception(self._refusal(error))
            if not whole:
                lost = error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError("rolled back")
                self._abort(done, lost)
            return whole
        done.append((job, result))
        return True

    def _undo(self, txn: WriteTxn, mark: Mark) -> bool:
        """Take back what one function did; False when that cannot be done but for the whole transaction."""
        txn.back_to(mark)
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO member")
                self._connection.execute("RELEASE member")
        except sqlite3.Error:
            return False
        return self._connection.in_transaction

    def _commit(self, txn: WriteTxn, done: list[tuple[Job, Any]]) -> None:
        recent = self._context.recent
        recent.changing(change.rid for change in txn.changes)
        try:
            txn.write_late()
            reach("commit.before")
            self._connection.execute("COMMIT")
            reach("commit.after")
            self.check_presence()  # again: what was committed to a file without a name is not stored
        except (sqlite3.Error, MemxdError) as error:
            self._abort(done, error)
            return
        self._must_empty_log |= txn.erased
        totals = self._context.counters.committed()
        recent.changed(txn.revision(), totals)
        if txn.committed is not None:
            txn.committed()
        if txn.changes and self.on_commit is not None:
            _tell(self.on_commit, txn.changes)
        if totals and self.on_counters is not None:
            told = [(rid, counts.accesses, counts.retrievals, counts.retrieved_at) for rid, counts in totals.items()]
            _tell(self.on_counters, told)
        reach("commit.told")
        for job, result in done:
            job.future.set_result(result)

    def check_presence(self) -> None:
        """Raise StorageFailedError when the database's files are not where they were opened."""
        refusal = self._presence.refusal()
        if refusal is not None:
            raise refusal

    def _abort(self, members: list[tuple[Job, Any]], error: BaseException) -> None:
        """Nothing of this transaction is stored: roll back, and say so to every member."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._context.counters.aborted()
        self._context.recent.changed(self._context.recent.revision, {})
        refusal = self._refusal(error) if members else error
        for job, _ in members:
            job.future.set_exception(refusal)

    def _refusal(self, error: BaseException) -> BaseException:
        """What the caller sees of an error on this thread."""
        if not isinstance(error, sqlite3.Error):
            return error
        refusal = self._presence.meaning(error)
        refusal.__cause__ = error
        return refusal

    # -- between groups --------------------------------------------------------------------------------------------

    def _keep_house(self, final: bool = False) -> bool:
        """Do what is due; True when the end of the queue was met meanwhile."""
        now = time.monotonic()
        self._next_tick = now + _TICK_SECONDS
        due: list[Callable[[WriteTxn], Any]] = []
        if self._context.counters.waiting:
            due.append(self._flush)
        if final or now >= self._next_forget:
            self._next_forget = now + _FORGET_SECONDS
            due.append(WriteTxn.forget_requests)
        ended = False
        errors: list[BaseException | None] = []
        for task in due:
            job = Job.of(task)
            ended |= self._group((job,))
            errors.append(job.future.exception())
        if final or self._must_empty_log or self._presence.log_bytes() > LOG_BYTES:
            errors.append(self._empty_log())
        self._report(next((error for error in errors if error is not None), None))
        return ended

    def _flush(self, txn: WriteTxn) -> None:
        self._context.counters.flush(self._connection)

    def _empty_log(self) -> sqlite3.Error | None:
        """Fold the write-ahead log into the database and cut it to nothing; later, when a reader is in the way."""
        try:
            self._connection.execute("PRAGMA busy_timeout = 0")  # writers must not wait for a long snapshot
            reach("checkpoint.before")
            busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            reach("checkpoint.after")
        except sqlite3.Error as error:
            return error
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        self._must_empty_log = bool(busy)
        return None

    def _report(self, error: BaseException | None) -> None:
        """Log trouble in keeping house when it begins, not every second; it is tried again each time."""
        if error is not None and not self._failing:
            _log.warning("counters, request ids or the log could not be tidied, will try again: %s", error)
        self._failing = error is not None


def _tell(listener: Callable[[T], None], news: T) -> None:
    """Tell a listener of what is committed. That it is committed stays true whatever the listener does."""
    try:
        listener(news)
    except Exception:
        _log.exception("a listener of the store failed; what it was told of is stored")
