"""The three derived indexes as one: opened, caught up, told of changes, flushed.

Owns their life: replay or rebuild (rebuilding.py) at start, the order in which a commit reaches them, the periodic
flush that moves their durable watermarks, and the pruning of the change log behind them. Owns no file format (index/
does) and no truth (store/ does). Called by the engine; ``on_commit`` by the store's writer thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

from memxd._fast import Kernels
from memxd.engine.rebuilding import Index, Rebuilding, public
from memxd.engine.vector_places import VectorPlaces
from memxd.errors import CancelledError, MemxdError
from memxd.failpoints import reach
from memxd.index.columns import Columns
from memxd.index.durable import clear_way
from memxd.index.lexical.index import LexicalIndex
from memxd.index.vector import VectorIndex
from memxd.model import DAY, NO_DEADLINE, Change, Clock, Deadline, IndexKind, IndexStatus, Micros, Progress
from memxd.store import Store
from memxd.threads import Steady, at_rest, at_work

log = logging.getLogger(__name__)

#: Seconds between two flushes of the indexes' files.
FLUSH_SECONDS = 30.0
#: An index is flushed earlier when it has so many changes that a crash would lose: what a start can catch up with in
#: well under a second. The keyword index does so by itself.
FLUSH_CHANGES = {IndexKind.COLUMNS: 5_000, IndexKind.VECTOR: 5_000}
#: Changes that an index is told of at once.
APPLIED = 16
COUNTERS_EVERY = 10  # flushes, after which the columns are written even if only counters have changed
#: The change log is pruned at every so many flushes.
PRUNE_EVERY = 120
#: How long the change log is kept at least.
KEEP_CHANGES: Micros = 7 * DAY
#: A missing or stale index of at most so many rows is mended before the daemon is ready, larger ones behind its back.
SMALL = 20_000
#: So many missed changes are replayed at most; with more, building anew (behind the daemon's back) is better.
REPLAYED = 50_000
#: Changes that are read and then taken over together.
_REPLAYED_AT_ONCE = 500
#: Seconds after the opening in which the keyword index does not begin to write by itself: both cores are the start's.
_REST_SECONDS = 3.0
_PAUSE_SECONDS = 1.0  # after a flush that failed, and between two tries to write what a disk refused
_MEND_SECONDS = 5.0  # until the next round, when an index could not be built anew in this one


class Indexes:
    """Columns, vectors and words. ``open`` returns when searches may begin; see the class's verbs for the rest."""

    def __init__(
        self, store: Store, clock: Clock, columns: Columns, vector: VectorIndex, words: LexicalIndex, at: VectorPlaces
    ) -> None:
        self.columns, self.vector, self.lexical, self.places = columns, vector, words, at
        self._store, self._clock = store, clock
        by_kind: dict[IndexKind, Index] = {IndexKind.COLUMNS: columns, IndexKind.VECTOR: vector}
        self._by_kind = by_kind | {IndexKind.KEYWORD: words}
        #: Called by the writer thread between two steps of a long commit: searches may go first.
        self.between: Callable[[], None] = lambda: None
        self._stop = threading.Event()
        self._wake = threading.Event()  # there is something to flush, or the end has come
        self._rebuilding = Rebuilding(store, self._by_kind, self._stop)
        self.is_whole = self._rebuilding.is_whole
        self._threads: list[threading.Thread] = []

    @classmethod
    def open(
        cls, folder: Path, store: Store, *, clock: Clock, kernels: Kernels, model: tuple[str, int], k1: float, b: float
    ) -> Indexes:
        """Open all three below ``folder``, catch up with the store, follow it. ``model``: id and dimension."""
        columns_folder, words = folder / "columns", folder / "keyword"
        clear_way(columns_folder)
        clear_way(words)

        def opened() -> Indexes:
            mine = store.identity
            places = VectorPlaces(folder, mine, kernels.dot)
            lexical = partial(LexicalIndex.open, words, kernel=kernels.bm25, database_id=mine, k1=k1, b=b)
            # Reading and summing up files is done without the interpreter's lock.
            with ThreadPoolExecutor(2, "memxd-open-index") as beside:
                opening = beside.submit(places.open, *model), beside.submit(lexical)
                columns = Columns.open(columns_folder, database_id=mine, kernel=kernels.choose)
            return cls(store, clock, columns, opening[0].result(), opening[1].result(), places)

        self = opened()
        if self._ahead():
            # Built anew one after the other, they would look right as soon as the store has come to their revision.
            log.warning("the database is older than its indexes (a copy put back?): all of them are built anew")
            self.close()
            store.renew_identity()
            self = opened()
        self._begin()
        return self

    def _begin(self) -> None:
        """Follow the store from here on; returns when searches may begin."""
        self._store.on_commit = self.on_commit
        self._store.on_counters = self.columns.count_bump
        self.lexical.rest(_REST_SECONDS)
        behind = self._catch_up()
        with self._store.read() as read:
            small = not read.holds_more_than(SMALL)
        for kind in behind:
            # Columns decide what is visible at all: nothing can be answered without them.
            if small or kind is IndexKind.COLUMNS:
                self._rebuild_before_serving(kind)
            else:
                self._rebuilding.mark_unready(kind)
                self._spawn(f"memxd-rebuild-{kind.name.lower()}", partial(self._rebuilding.run_logged, kind))
        self._spawn("memxd-index-flush", self._flush_loop)

    def _rebuild_before_serving(self, kind: IndexKind) -> None:
        self._rebuilding.mark_failed(kind)  # unless the rebuild succeeds
        self._rebuilding.run_logged(kind)

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = Steady(target, name, daemon=False)
        self._threads.append(thread)
        thread.start()

    # -- following the store ---------------------------------------------------------------------------------------

    def on_commit(self, changes: list[Change]) -> None:
        """Tell every index, before the writers are answered. Called by the store's writer thread."""
        seen = [public(change) for change in changes]
        for kind, index in self._by_kind.items():
            if self._rebuilding.is_deaf(kind):
                continue  # what it missed comes with its rebuild
            try:
                for at in range(0, len(seen), APPLIED):
                    index.apply_all(seen[at : at + APPLIED])
                    if len(seen) > APPLIED:
                        self.between()
            except Exception as error:  # the commit stands: the other indexes must learn of it, and this one be mended
                self._rebuilding.mark_failed(kind)
                log.exception("the %s index failed and will be rebuilt: %s", kind.name.lower(), type(error).__name__)
            reach("commit.index")
        if self.vector.waits or any(map(self._is_due, FLUSH_CHANGES)):
            self._wake.set()

    def _is_due(self, kind: IndexKind) -> bool:
        index = self._by_kind[kind]
        return index.watermark - index.durable_watermark >= FLUSH_CHANGES[kind]

    def _ahead(self) -> bool:
        """Whether an index reflects more than the store holds."""
        with self._store.read() as read:
            return any(index.watermark > read.revision() for index in self._by_kind.values())

    def _catch_up(self) -> list[IndexKind]:
        """Replay what the indexes missed, all at once; answers those that must be rebuilt."""
        rebuilt: list[IndexKind] = []
        late: list[tuple[Index, int]] = []
        with self._store.read() as read:
            target = read.revision()
            for kind, index in self._by_kind.items():
                missed = target - index.watermark
                if not missed:
                    continue
                if not read.can_replay(index.watermark) or missed > REPLAYED:
                    rebuilt.append(kind)
                else:
                    late.append((index, index.watermark))
            if target == 0 or not late:
                return rebuilt if target else []
            count = 0
            changes = map(public, read.changes_since(min(since for _, since in late)))
            while batch := list(islice(changes, _REPLAYED_AT_ONCE)):
                for index, since in late:  # rows that were not touched since, it has as they are
                    index.apply_all([change for change in batch if change.revision > since])
                count += len(batch)
        log.info("replayed %d changes into the indexes", count)
        return rebuilt

    def rebuild(self, kind: IndexKind | None, deadline: Deadline = NO_DEADLINE) -> Iterator[Progress]:
        """Build one index (None: every one) anew while searches go on; yields progress."""
        for each in [kind] if kind is not None else list(self._by_kind):
            yield from self._rebuilding.stream(each, deadline)

    # -- durability ----------------------------------------------------------------------------------------------------

    def _flush_loop(self) -> None:
        rounds = 0
        until_stop = Deadline(is_cancelled=self._stop.is_set)
        next_round = time.monotonic() + FLUSH_SECONDS
        while True:
            at_rest()
            until = max(0.0, next_round - time.monotonic())
            if self.vector.waits:
                self._stop.wait(min(_PAUSE_SECONDS, until))
                self.vector.retry()
            else:
                self._wake.wait(until)
            self._wake.clear()
            at_work()
            if self._stop.is_set():
                return
            try:
                if time.monotonic() < next_round:
                    self._flush_due()
                    continue
                next_round = time.monotonic() + FLUSH_SECONDS
                self._rebuilding.mend()
                if not all(map(self.is_whole, IndexKind)):
                    next_round = time.monotonic() + _MEND_SECONDS
                durable = self.flush(until_stop)
                if rounds % COUNTERS_EVERY == COUNTERS_EVERY - 1:
                    self.columns.flush(until_stop)
                if rounds % PRUNE_EVERY == 0:
                    self._prune(durable)
                rounds += 1
            except CancelledError:
                return  # the last flush is ``close``'s
            except MemxdError as error:
                log.error("flushing the indexes failed, will try again: %s", error.message)
                self._stop.wait(_PAUSE_SECONDS)

    def _flush_due(self) -> None:
        """Flush the indexes that have many changes which a crash would lose."""
        self._store.require_present()
        for kind in FLUSH_CHANGES:
            if self._is_due(kind):
                self._by_kind[kind].flush()

    def flush(self, deadline: Deadline = NO_DEADLINE) -> int:
        """Make every index durable; returns the lowest revision their files reflect.

        Raises the error of the first that failed, after all were tried.
        """
        self._store.require_present()
        problem: MemxdError | None = None
        for index in self._by_kind.values():
            if index.durable_watermark == index.watermark and not (index is self.vector and self.vector.waits):
                continue
            try:
                index.flush(deadline)
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
        """Raise IndexUnavailableError for an index whose answers would lack something."""
        self._rebuilding.require(kind)

    def status(self) -> tuple[IndexStatus, ...]:
        """How each index is, in the order of IndexKind."""
        return tuple(self._rebuilding.status(kind) for kind in IndexKind)

    def use_vector(self, index: VectorIndex) -> VectorIndex:
        """Put the index of another model in the place of the present one, which is answered. On the writer thread."""
        former, self.vector = self.vector, index
        self._by_kind[IndexKind.VECTOR] = index
        self._rebuilding.mark_whole(IndexKind.VECTOR)
        self.places.exchange()
        return former

    def stop(self) -> None:
        """Stop the threads of this module; rebuilds end early and begin again at the next start."""
        self._stop.set()
        self._wake.set()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Flush and close every index. Call ``stop`` and close the store's writer first.

        What cannot be written is logged and made up for at the next start: the store has everything.
        """
        for kind, index in self._by_kind.items():
            try:
                index.close()
            except (MemxdError, OSError) as error:
                text = error.message if isinstance(error, MemxdError) else error.strerror
                log.warning("the %s index was not written, the next start makes up for it: %s", kind.name.lower(), text)
