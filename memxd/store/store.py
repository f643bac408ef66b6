"""The store's front door: opening, writing, reading, counting, closing.

Owns the life of the database's connections and the order in which they come and go. What can be done within a
transaction is in the modules around. Called by the engine, which alone sets the listeners.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TypeVar

from memxd.errors import MemxdError, StorageFailedError
from memxd.failpoints import reach
from memxd.model import NO_DEADLINE, Clock, Deadline, IdFactory, Scope
from memxd.store.backup import Manifest, back_up
from memxd.store.base import Context
from memxd.store.connection import BUSY_MILLISECONDS, DATABASE, connect, create_files, storage_error
from memxd.store.counters import Counters
from memxd.store.identity import database_id
from memxd.store.jobs import Queued
from memxd.store.migrating import migrate
from memxd.store.presence import Presence
from memxd.store.readers import ReaderPool
from memxd.store.soundness import check, damaged, glance, is_damage
from memxd.store.transactions import ReadTxn, WriteTxn
from memxd.store.types import CommitListener, CounterListener, Row
from memxd.store.writer import Writer

#: Between two tries to empty the log.
_AGAIN_SECONDS = 0.01

T = TypeVar("T")


class Store:
    """The truth on disk: ``memxd.db`` in a directory, one writer thread, a pool of readers.

    One Store at a time may have a directory; the daemon's lock sees to that.
    """

    def __init__(
        self, path: Path, version: int, identity: str, context: Context, writer: Writer, readers: ReaderPool
    ) -> None:
        """Called by ``open`` only."""
        with readers.snapshot(NO_DEADLINE) as read:
            context.recent.changed(read.revision(), {})
        self._path = path
        self._version = version
        self._identity = identity
        self._context = context
        self._writer = writer
        self._readers = readers

    @classmethod
    def open(cls, directory: Path, *, clock: Clock, ids: IdFactory, readers: int = 4, look: bool = True) -> Store:
        """Open or make the database, migrate it if it is older (a copy is left beside), and start the writer.

        ``look`` False: whoever opens calls ``look`` before anything is answered, beside what else takes time.

        Raises DatabaseDamagedError, SchemaTooNewError, MigrationFailedError, StorageReadOnlyError, StorageFullError,
        StorageFailedError.
        """
        context, path = Context(clock, ids, Counters()), directory / DATABASE
        try:
            create_files(directory)
            connection = _checked(path, _connected(path), whole=look)
            try:
                version = migrate(connection, path, clock())
                identity = database_id(connection)
                presence = Presence(path)
                pool = ReaderPool(path, context, readers)
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise (damaged(path, error) if is_damage(error) else storage_error(error)) from error
        writer = Writer(connection, context, presence)
        writer.start()
        return cls(path, version, identity, context, writer, pool)

    def look(self) -> None:
        """Have SQLite look through the database for a moment. Raises DatabaseDamagedError for a damaged one."""
        try:
            _checked(self._path, connect(self._path, writer=False), whole=True).close()
        except sqlite3.Error as error:
            raise storage_error(error) from error

    def require_present(self) -> None:
        """Raise StorageFailedError when the data directory was removed or replaced under the running daemon: whoever
        writes beside the database must not write into a successor's files."""
        self._writer.check_presence()

    @property
    def on_commit(self) -> CommitListener | None:
        """Called on the writer thread after COMMIT and before the callers are answered, with the changes in revision
        order. Should not raise: what it is told of is stored already, so its error is logged and goes nowhere."""
        return self._writer.on_commit

    @on_commit.setter
    def on_commit(self, listener: CommitListener | None) -> None:
        self._writer.on_commit = listener

    @property
    def revision(self) -> int:
        """The newest committed revision; what ``read().revision()`` would say, without asking SQLite."""
        return self._context.recent.revision

    def give_way(self, between: Callable[[], None]) -> None:
        """Call this on the writer thread between two of many rows that are stored at once."""
        self._context.between = between

    @property
    def on_counters(self) -> CounterListener | None:
        """Called on the writer thread after a flush of counters, with the new totals. As ``on_commit``."""
        return self._writer.on_counters

    @on_counters.setter
    def on_counters(self, listener: CounterListener | None) -> None:
        self._writer.on_counters = listener

    @property
    def schema_version(self) -> int:
        """The schema's version (PRAGMA user_version)."""
        return self._version

    @property
    def identity(self) -> str:
        """The database's random id (32 hexadecimal digits): what is derived from it carries it."""
        return self._identity

    def renew_identity(self) -> None:
        """Give the database another id: what was derived from it before counts no more. Raises as ``write``."""
        self._identity = self.write(WriteTxn.renew_identity)

    def write(self, fn: Callable[[WriteTxn], T], deadline: Deadline = NO_DEADLINE) -> T:
        """Run ``fn`` in a transaction on the writer thread and return its result once it is durable and applied.

        What is queued commits as one group; an exception of ``fn`` undoes only what it did and is raised here. A
        deadline that passes while queued: not executed. Raises StorageFullError, StorageReadOnlyError,
        StorageFailedError, ShuttingDownError, DeadlineExceededError, CancelledError.
        """
        return self._writer.submit(fn, deadline)

    def write_all(
        self, fns: Sequence[Callable[[WriteTxn], T]], deadline: Deadline = NO_DEADLINE
    ) -> list[T | MemxdError]:
        """As ``write`` for several functions, in order, each on its own but with as few commits as possible.

        A function that raises a MemxdError, or is not executed because the deadline passed, has that error as its
        answer; the others go on. Any other exception is raised.
        """
        return self.queue_all(fns, deadline).outcomes()

    def queue_all(self, fns: Sequence[Callable[[WriteTxn], T]], deadline: Deadline = NO_DEADLINE) -> Queued:
        """As ``write_all``, but does not wait: ``outcomes`` of what this answers does."""
        return self._writer.queue_all(fns, deadline)

    def read(self, deadline: Deadline = NO_DEADLINE) -> AbstractContextManager[ReadTxn]:
        """A snapshot: ``with store.read(deadline) as txn``. Waits for a free reader; do not nest.

        A statement that runs past the deadline is interrupted (DeadlineExceededError, CancelledError).
        """
        return self._readers.snapshot(deadline)

    def scope_no(self, scope: Scope, deadline: Deadline = NO_DEADLINE) -> int | None:
        """The number of a scope, or None when nothing was ever stored in it. Asks SQLite for unknown ones only."""
        known = self._context.numbers.get(scope)
        if known is None:
            with self._readers.snapshot(deadline) as read:
                known = read.scope_no(scope)
        return known

    def survivors(
        self, scope_no: int, rids: Sequence[int], deadline: Deadline = NO_DEADLINE
    ) -> tuple[dict[int, Row], int]:
        """The rows of up to a few hundred ``rids`` by rid, without those that are gone or of another scope, and the
        revision they are of. Raises as ``read``, but does not interrupt itself."""
        return self._readers.survivors(scope_no, rids, deadline)

    def count_access(self, rid: int) -> None:
        """Count one Get. In memory; flushed every second and at close."""
        self._context.counters.count_access(rid, self._context.clock())

    def count_retrievals(self, rids: Collection[int]) -> None:
        """Count hits returned by a search."""
        self._context.counters.count_retrievals(rids, self._context.clock())

    def flush_counters(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Write the counts to the database now; returns when they are durable and the listener was told."""
        self._writer.flush_counters(deadline)

    def sizes(self) -> tuple[int, int]:
        """Bytes of the database file and of its write-ahead log."""
        log = self._path.with_name(self._path.name + "-wal")
        return self._path.stat().st_size, log.stat().st_size if log.exists() else 0

    def back_up(self, folder: Path, progress: Callable[[int, int], None], deadline: Deadline = NO_DEADLINE) -> Manifest:
        """Write a consistent copy with its manifest into an empty folder, on a connection of its own: writers go on.

        ``progress(done, total)`` in bytes. What was begun is removed when it fails. Raises InvalidArgumentError for an
        unsafe folder, and as ``read``.
        """
        self.require_present()
        try:
            return back_up(self._path, folder, self._context.clock(), self._version, progress, deadline)
        except (sqlite3.Error, OSError) as error:
            raise storage_error(error, reading=True) from error

    def empty_log(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Fold the write-ahead log into the database and cut it to nothing. Raises StorageFailedError when a long
        reader is in the way, and as ``write``."""
        deadline.check()
        self.require_present()
        patience = time.monotonic() + BUSY_MILLISECONDS / 1e3
        try:
            with closing(connect(self._path, writer=True)) as connection:
                # SQLite waits for readers and writers, but not for the writer thread's own folding of the log.
                while True:
                    reach("checkpoint.before")
                    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                    reach("checkpoint.after")
                    if not busy:
                        return
                    if time.monotonic() > patience:
                        break
                    deadline.check()
                    time.sleep(_AGAIN_SECONDS)
        except sqlite3.Error as error:
            raise storage_error(error) from error
        raise StorageFailedError("somebody reads for long, so that the log cannot be emptied now; try again")

    def close(self) -> None:
        """Finish what is queued, wait for readers, flush counters, fold the log into the database, join the thread.

        New reads are refused at once, new writes when the readers are back (ShuttingDownError). Twice is fine.
        """
        self._readers.close()
        self._writer.close()


def _connected(path: Path) -> sqlite3.Connection:
    try:
        return connect(path, writer=True)
    except sqlite3.Error as error:
        if is_damage(error):
            raise damaged(path, error) from error
        raise


def _checked(path: Path, connection: sqlite3.Connection, *, whole: bool) -> sqlite3.Connection:
    """The connection, when a look at the database found nothing wrong; else it is closed and DatabaseDamagedError or
    sqlite3.Error raised. ``whole``: SQLite's check as well."""
    try:
        glance(connection)
        if whole and (problem := check(connection)):
            raise damaged(path, problem)
    except BaseException as error:
        connection.close()
        if is_damage(error):
            raise damaged(path, error) from error
        raise
    return connection
