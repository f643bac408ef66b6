"""The three derived indexes as one: opened, caught up, told of changes, rebuilt, flushed.

Owns their life: replay or rebuild at start, the order in which a commit reaches them, the periodic flush that moves
their durable watermarks, and the pruning of the change log behind them. Owns no file format (index/ does) and no truth
(store/ does). Called by the engine; ``on_commit`` and ``on_counters`` by the store's writer thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from memxd._fast import Kernels
from memxd.engine.content import public_text
from memxd.errors import IndexUnavailableError, MemxdError, ShuttingDownError
from memxd.index.columns import Columns
from memxd.index.lexical.index import LexicalIndex
from memxd.index.vector import VectorIndex
from memxd.model import DAY, Change, Clock, IndexKind, IndexState, IndexStatus, Micros, Progress
from memxd.store import Store

log = logging.getLogger(__name__)

#: Seconds between two flushes of the indexes' files.
FLUSH_SECONDS = 30.0
#: The change log is pruned at every so many flushes.
PRUNE_EVERY = 120
#: How long the change log is kept at least.
KEEP_CHANGES: Micros = 7 * DAY
#: A missing or stale index of at most so many rows is mended before the daemon is ready, larger ones behind its back.
SMALL = 20_000


class Index(Protocol):
    """What this module asks of each index."""

    @property
    def watermark(self) -> int: ...
    @property
    def durable_watermark(self) -> int: ...
    def apply(self, change: Change) -> None: ...
    def rebuild(
        self,
        changes: Iterator[Change],
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
        *,
        revision: int = 0,
    ) -> None: ...
    def flush(self) -> None: ...
    def status(self) -> IndexStatus: ...
    def close(self) -> None: ...


def _public(change: Change) -> Change:
    """The change as the indexes may see it: without the text of private spans."""
    if change.text is None:
        return change
    return replace(change, text=public_text(change.text))


class Indexes:
    """Columns, vectors and words. ``open`` returns when searches may begin; see the class's verbs for the rest."""

    def __init__(
        self, store: Store, clock: Clock, columns: Columns, vector: VectorIndex, lexical: LexicalIndex
    ) -> None:
        self.columns = columns
        self.vector = vector
        self.lexical = lexical
        self._store = store
        self._clock = clock
        self._by_kind: dict[IndexKind, Index] = {
            IndexKind.COLUMNS: columns,
            IndexKind.VECTOR: vector,
            IndexKind.KEYWORD: lexical,
        }
        self._rebuilding = {kind: threading.Lock() for kind in self._by_kind}
        #: Indexes that lack most of what the store holds, because their rebuild has not finished.
        self._unready: set[IndexKind] = set()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @classmethod
    def open(
        cls,
        directory: Path,
        store: Store,
        *,
        clock: Clock,
        kernels: Kernels,
        model_id: str,
        dimension: int,
        k1: float,
        b: float,
    ) -> Indexes:
        """Open all three below ``directory``, catch up with the store and begin to follow it."""
        columns = Columns.open(directory / "columns")
        vector = VectorIndex.open(directory / "vector", model_id=model_id, dimension=dimension, dot=kernels.dot)
        lexical = LexicalIndex.open(directory / "keyword", kernel=kernels.bm25, k1=k1, b=b)
        self = cls(store, clock, columns, vector, lexical)
        store.on_commit = self.on_commit
        store.on_counters = columns.count_bump
        behind = [kind for kind in self._by_kind if not self._catch_up(kind)]
        with store.read() as read:
            small = read.totals().memories <= SMALL
        for kind in behind:
            # Columns decide what is visible at all: nothing can be answered without them.
            if small or kind is IndexKind.COLUMNS:
                self._rebuild_logged(kind)
            else:
                self._unready.add(kind)
                self._spawn(f"memxd-rebuild-{kind.name.lower()}", partial(self._rebuild_logged, kind))
        self._spawn("memxd-index-flush", self._flush_loop)
        return self

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=False)
        self._threads.append(thread)
        thread.start()

    # -- following the store ---------------------------------------------------------------------------------------

    def on_commit(self, changes: list[Change]) -> None:
        """Tell every index, before the writers are answered. Called by the store's writer thread."""
        for change in changes:
            seen = _public(change)
            for index in self._by_kind.values():
                index.apply(seen)

    def _catch_up(self, kind: IndexKind) -> bool:
        """Replay what the index missed; False when it must be rebuilt."""
        index = self._by_kind[kind]
        with self._store.read() as read:
            target = read.revision()
            if index.watermark == target:
                return True
            if not read.can_replay(index.watermark):
                return target == 0
            missed = 0
            for change in read.changes_since(index.watermark):
                index.apply(_public(change))
                missed += 1
        log.info("replayed %d changes into the %s index", missed, kind.name.lower())
        return True

    # -- rebuilding --------------------------------------------------------------------------------------------------

    def _rebuild_logged(self, kind: IndexKind) -> None:
        log.warning(
            "rebuilding the %s index from the store: %s",
            kind.name.lower(),
            self._by_kind[kind].status().message or "it is missing or too old",
        )
        try:
            self._rebuild(kind, lambda _done, _total: None)
        except MemxdError as error:
            log.error("rebuilding the %s index failed: %s", kind.name.lower(), error.message)

    def _rebuild(self, kind: IndexKind, progress: Callable[[int, int], None]) -> None:
        with self._rebuilding[kind]:
            with self._store.read() as read:
                total, revision = read.totals().memories, read.revision()
            self._by_kind[kind].rebuild(self._rows(), total, progress, revision=revision)
        self._unready.discard(kind)

    def _rows(self) -> Iterator[Change]:
        """Every row, from a snapshot that begins at the first step: an index notes what commits from then on."""
        with self._store.read() as read:
            for change in read.all_rows():
                if self._stop.is_set():  # an early end would look like a complete rebuild
                    raise ShuttingDownError("the daemon is stopping; the rebuild begins again at the next start")
                yield _public(change)

    def rebuild(self, kind: IndexKind | None) -> Iterator[Progress]:
        """Build one index (None: every one) anew while searches go on; yields progress."""
        for each in [kind] if kind is not None else list(self._by_kind):
            yield from self._rebuild_with_progress(each)

    def _rebuild_with_progress(self, kind: IndexKind) -> Iterator[Progress]:
        events: SimpleQueue[Progress | BaseException | None] = SimpleQueue()

        def work() -> None:
            try:
                self._rebuild(kind, lambda done, total: events.put(Progress(kind, done, total)))
                self._by_kind[kind].flush()
                events.put(None)
            except BaseException as error:  # handed over to the caller below, whatever it is
                events.put(error)

        thread = threading.Thread(target=work, name=f"memxd-rebuild-{kind.name.lower()}")
        thread.start()
        last = Progress(kind, 0, 0)
        try:
            while (event := events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                last = event
                yield event
        finally:
            thread.join()
        yield Progress(kind, last.total, last.total, True, self._by_kind[kind].watermark)

    # -- durability ----------------------------------------------------------------------------------------------------

    def _flush_loop(self) -> None:
        rounds = 0
        while not self._stop.wait(FLUSH_SECONDS):
            try:
                durable = self.flush()
                if rounds % PRUNE_EVERY == 0:
                    self._prune(durable)
                rounds += 1
            except MemxdError as error:
                log.error("flushing the indexes failed, will try again: %s", error.message)

    def flush(self) -> int:
        """Make every index durable; returns the lowest revision their files reflect.

        Raises the error of the first that failed, after all were tried.
        """
        problem: MemxdError | None = None
        for index in self._by_kind.values():
            if index.durable_watermark == index.watermark:
                continue
            try:
                index.flush()
            except MemxdError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return min(index.durable_watermark for index in self._by_kind.values())

    def _prune(self, durable: int) -> None:
        """Forget changes that every index has on disk and that nobody will ask for any more."""
        before = self._clock() - KEEP_CHANGES
        self._store.write(lambda txn: txn.prune_changes(durable + 1, before))

    def require(self, kind: IndexKind) -> None:
        """Raise IndexUnavailableError while the index is being built and would miss most of what is stored."""
        if kind in self._unready:
            raise IndexUnavailableError(f"the {kind.name.lower()} index is being built; see AdminService.Status")

    def status(self) -> tuple[IndexStatus, ...]:
        """How each index is, in the order of IndexKind."""
        found = []
        for kind in IndexKind:
            status = self._by_kind[kind].status()
            if kind in self._unready or self._rebuilding[kind].locked():
                status = replace(status, state=IndexState.REBUILDING)
            found.append(status)
        return tuple(found)

    def stop(self) -> None:
        """Stop the threads of this module; rebuilds end early and begin again at the next start."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Flush and close every index. Call ``stop`` and close the store's writer first."""
        for index in self._by_kind.values():
            index.close()
