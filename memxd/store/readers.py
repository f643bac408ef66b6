"""The readers: a pool of connections, each lent to one snapshot at a time.

Owns the pool, the snapshot around each use, and the interruption of statements that run past their caller's deadline.
Waits for a free connection as long as the deadline allows. Called by ``store.py`` for every read.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memxd.errors import MemxdError, ShuttingDownError
from memxd.model import NO_DEADLINE, Deadline
from memxd.store.base import Context
from memxd.store.connection import connect, storage_error
from memxd.store.transactions import ReadTxn
from memxd.store.types import Row

#: SQLite asks after so many steps of its machine (well under a millisecond) whether to go on.
_STEPS = 10_000
#: How often a waiting caller is asked whether it is still there.
_PATIENCE = 0.05


class ReaderPool:
    """``size`` read-only connections to one database."""

    def __init__(self, path: Path, context: Context, size: int) -> None:
        self._context = context
        # The last one back is the first to go out again: its page cache is warm.
        self._free: list[sqlite3.Connection] = []
        self._waiting = 0
        self._returned = threading.Condition()
        self._size = size
        self._closing = threading.Event()
        self._close_lock = threading.Lock()
        try:
            for _ in range(size):
                self._free.append(connect(path, writer=False))
        except BaseException:
            self._size = len(self._free)
            self.close()
            raise

    @contextmanager
    def snapshot(self, deadline: Deadline) -> Iterator[ReadTxn]:
        """A consistent snapshot for the ``with`` block."""
        connection = self._borrow(deadline)
        try:
            if deadline is not NO_DEADLINE:
                connection.set_progress_handler(lambda: _is_over(deadline), _STEPS)
            connection.execute("BEGIN")
            yield ReadTxn(connection, self._context)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                deadline.check()
            raise storage_error(error, reading=True) from error
        finally:
            connection.set_progress_handler(None, 0)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give_back(connection)

    def survivors(self, scope_no: int, rids: Sequence[int], deadline: Deadline) -> tuple[dict[int, Row], int]:
        """``ReadTxn.survivors`` without a transaction around it: one statement sees one moment as it is.

        Looks at the deadline before it begins; so few rows by their ids need no more.
        """
        deadline.check()
        connection = self._borrow(deadline)
        try:
            return ReadTxn(connection, self._context).survivors(scope_no, rids)
        except sqlite3.Error as error:
            raise storage_error(error, reading=True) from error
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Lend no more, wait until all are back, and close them. Twice is fine."""
        self._closing.set()
        with self._close_lock:
            while self._size:
                try:
                    self._take(_PATIENCE).close()
                    self._size -= 1
                except IndexError:
                    continue  # still lent

    def _borrow(self, deadline: Deadline) -> sqlite3.Connection:
        while True:
            if self._closing.is_set():
                raise ShuttingDownError("the daemon is stopping")
            try:
                return self._free.pop()  # the usual case, without a lock
            except IndexError:
                left = deadline.remaining()
            try:
                return self._take(_PATIENCE if left is None else min(left, _PATIENCE))
            except IndexError:
                deadline.check()

    def _take(self, seconds: float | None) -> sqlite3.Connection:
        """A connection as soon as one is back; IndexError when none is in time, or somebody was faster."""
        with self._returned:
            self._waiting += 1
            try:
                self._returned.wait_for(lambda: self._free, seconds)
                return self._free.pop()
            finally:
                self._waiting -= 1

    def _give_back(self, connection: sqlite3.Connection) -> None:
        self._free.append(connection)
        if self._waiting:  # who begins to wait after this look finds the connection
            with self._returned:
                self._returned.notify()


def _is_over(deadline: Deadline) -> bool:
    try:
        deadline.check()
    except MemxdError:  # the snapshot raises it again, on the caller's stack
        return True
    return False
