"""The readers: a pool of connections, each lent to one snapshot at a time.

Owns the pool, the snapshot around each use, and the interruption of statements that run past their caller's deadline.
Waits for a free connection as long as the deadline allows. Called by ``store.py`` for every read.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memxd.errors import MemxdError, ShuttingDownError
from memxd.model import NO_DEADLINE, Deadline
from memxd.store.base import Context
from memxd.store.connection import connect, storage_error
from memxd.store.transactions import ReadTxn

#: SQLite asks after so many steps of its machine (well under a millisecond) whether to go on.
_STEPS = 10_000
#: How often a waiting caller is asked whether it is still there.
_PATIENCE = 0.05


class ReaderPool:
    """``size`` read-only connections to one database."""

    def __init__(self, path: Path, context: Context, size: int) -> None:
        self._context = context
        self._free: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._size = size
        self._closing = threading.Event()
        self._close_lock = threading.Lock()
        try:
            for _ in range(size):
                self._free.put(connect(path, writer=False))
        except BaseException:
            self._size = self._free.qsize()
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
            self._free.put(connection)

    def close(self) -> None:
        """Lend no more, wait until all are back, and close them. Twice is fine."""
        self._closing.set()
        with self._close_lock:
            for _ in range(self._size):
                self._free.get().close()
            self._size = 0

    def _borrow(self, deadline: Deadline) -> sqlite3.Connection:
        while True:
            if self._closing.is_set():
                raise ShuttingDownError("the daemon is stopping")
            left = deadline.remaining()
            try:
                return self._free.get(timeout=_PATIENCE if left is None else min(left, _PATIENCE))
            except queue.Empty:
                deadline.check()


def _is_over(deadline: Deadline) -> bool:
    try:
        deadline.check()
    except MemxdError:  # the snapshot raises it again, on the caller's stack
        return True
    return False
