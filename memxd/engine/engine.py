"""The engine's face: every verb of the contract, in one object.

Owns the composition of store, indexes, vectors and kernels, their order of opening and closing, and nothing of what
the verbs do (storing, records, links, search). The doors call it with the dataclasses of ``memxd.model``; it raises
``MemxdError`` and nothing else on purpose.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from memxd._fast import Kernels
from memxd.embed import Embedder
from memxd.engine.backfill import Backfill
from memxd.engine.backup import Backups
from memxd.engine.compacting import Compacting
from memxd.engine.courtesy import Courtesy
from memxd.engine.exporting import Exporting
from memxd.engine.importing import Importing
from memxd.engine.indexes import Indexes
from memxd.engine.links import Links
from memxd.engine.profiles import RankingDefaults
from memxd.engine.records import Records
from memxd.engine.reembedding import Reembedding
from memxd.engine.search import Searching
from memxd.engine.storing import Storing
from memxd.engine.validate import integer
from memxd.engine.vectors import Vectors, model_of, open_vectors, stored_model
from memxd.engine.verifying import Verifying
from memxd.errors import MemxdError
from memxd.model import (
    NO_DEADLINE,
    Change,
    Clock,
    Deadline,
    EngineStatus,
    IdFactory,
    IndexKind,
    IndexState,
    IndexStatus,
    Progress,
)
from memxd.store import Store


@dataclass(frozen=True, slots=True)
class Tuning:
    """What an operator may set: BM25's k1 and b, and the defaults of profile ``balanced``."""

    k1: float = 1.2
    b: float = 0.75
    ranking: RankingDefaults = field(default_factory=RankingDefaults)

    def public(self) -> dict[str, float]:
        """By name, for Status."""
        r = self.ranking
        return {
            "bm25.k1": self.k1,
            "bm25.b": self.b,
            "rrf_k": float(r.rrf_k),
            "half_life_seconds": r.half_life / 1e6,
            "weight.semantic": r.semantic,
            "weight.recency": r.recency,
            "weight.frequency": r.frequency,
            "weight.importance": r.importance,
            "weight.vector": r.vector_weight,
            "weight.keyword": r.keyword_weight,
            "reject_below": r.reject_below,
        }


class Engine:
    """The memory itself. Safe to call from many threads; ``close`` once, at the end."""

    def __init__(
        self,
        directory: Path,
        store: Store,
        indexes: Indexes,
        vectors: Vectors,
        target: Embedder,
        kernels: Kernels,
        clock: Clock,
        tuning: Tuning,
    ) -> None:
        self._directory = directory
        self._store = store
        self._indexes = indexes
        self._vectors = vectors
        self._kernels = kernels
        self._tuning = tuning
        backfill = self._backfill = Backfill(store, vectors)
        store.on_commit = _both(indexes.on_commit, backfill.noticed)
        backfill.start()
        courtesy = self.courtesy = Courtesy()
        self._reembedding = Reembedding(store, indexes, vectors, target, courtesy, backfill.renew)
        self._closing = _way_out(store, indexes, backfill, self._reembedding)
        indexes.between = courtesy.step_aside
        store.give_way(courtesy.step_aside)
        storing = Storing(store, vectors, courtesy)
        records = Records(store, indexes, vectors, clock)
        links = Links(store)
        searching = Searching(store, indexes, vectors, kernels, clock, tuning.ranking, backfill.pending_in)
        # The verbs, one by one: each lives with its kind.
        self.store = storing.store
        self.store_many = storing.store_many
        self.store_groups = storing.store_groups
        self.get = records.get
        self.list = records.list
        self.count = records.count
        self.update = records.update
        self.delete = records.delete
        self.delete_many = records.delete_many
        self.search = courtesy.first(searching.search)
        self.search_many = searching.search_many
        self.create_link = links.create
        self.delete_link = links.delete
        self.list_links = links.list
        self.traverse = links.traverse
        self.backup = Backups(store).backup
        self.verify = Verifying(store, indexes).verify
        self.compact = Compacting(store, indexes, directory / "index", self._reembedding.under_way).compact
        self.export = Exporting(store).export
        self.import_lines = Importing(store, vectors, courtesy).import_lines
        self._reembedding.start()

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        embedder: Embedder | Callable[[], Embedder],
        kernels: Kernels,
        clock: Clock,
        ids: IdFactory,
        tuning: Tuning | None = None,
        readers: int = 8,
        former: Callable[[str], Embedder | None] = lambda _id: None,
    ) -> Engine:
        """Open the store in ``directory``, catch the indexes up and begin to serve.

        The caller keeps ownership of ``embedder`` (close it after the engine); a function that gives it is called when
        it is needed, which is late, unless the store is empty. ``former`` opens the model that the store's vectors are
        of, if it is not that one (None: it is not to be had); the engine closes it. Raises StartupError and the store's
        errors, and what that function raises; a damaged index is no reason to fail.
        """
        tuning = tuning or Tuning()
        store = Store.open(directory, clock=clock, ids=ids, readers=readers, look=False)
        try:
            # SQLite looks through its pages without the interpreter's lock, so it costs the start little beside this.
            with ThreadPoolExecutor(1, "memxd-look") as beside:
                looking = beside.submit(store.look)
                try:
                    model = stored_model(store) or model_of(_made(embedder))
                    indexes = Indexes.open(
                        directory / "index",
                        store,
                        clock=clock,
                        kernels=kernels,
                        model=model,
                        k1=tuning.k1,
                        b=tuning.b,
                    )
                except MemxdError:
                    looking.result()  # of a damaged database this knows better what to say
                    raise
        except BaseException:
            store.close()
            raise
        try:
            looking.result()
            vectors = open_vectors(store, _made(embedder), former)
        except BaseException:
            indexes.stop()
            store.close()
            indexes.close()
            raise
        return cls(directory, store, indexes, vectors, _made(embedder), kernels, clock, tuning)

    # -- administration --------------------------------------------------------------------------------------------

    def status(self, max_scopes: int | None = None, deadline: Deadline = NO_DEADLINE) -> EngineStatus:
        """How everything is; ``max_scopes`` 0..1,000, None = 100."""
        limit = integer("max_scopes", max_scopes, 100, 0, 1_000)
        with self._store.read(deadline) as read:
            revision = read.revision()
            totals = read.totals()
            scopes = read.scopes(limit) if limit else []
        database, wal = self._store.sizes()
        indexes = tuple(map(self._index_status, self._indexes.status()))
        return EngineStatus(
            revision=revision,
            memories=totals.memories,
            links=totals.links,
            vectors_pending=totals.vectors_pending,
            indexes=indexes,
            model=self._vectors.current.status(),
            kernels=self._kernels.name,
            scopes=tuple((s.scope, s.total, s.active) for s in scopes),
            scope_count=totals.scopes,
            database_bytes=database,
            wal_bytes=wal,
            index_bytes=sum(i.size_bytes for i in indexes),
            free_bytes=shutil.disk_usage(self._directory).free,
            schema_version=self._store.schema_version,
            ranking=self._tuning.public(),
            model_change=self._reembedding.status(),
        )

    def _index_status(self, status: IndexStatus) -> IndexStatus:
        """The vector index works, but is of no use, while its model is not the embedder's."""
        space = self._vectors.current
        if status.kind is not IndexKind.VECTOR or space.matched:
            return status
        return replace(status, state=IndexState.MISMATCHED, message=space.mismatch().message)

    def flush(self, deadline: Deadline = NO_DEADLINE) -> int:
        """Write counters and indexes out; returns the revision every index file then reflects."""
        self._store.flush_counters(deadline)
        return self._indexes.flush(deadline)

    def rebuild(self, kind: IndexKind | None, deadline: Deadline = NO_DEADLINE) -> Iterator[Progress]:
        """Build one index (None: every one) anew from the store while searches go on."""
        return self._indexes.rebuild(kind, deadline)

    def let_go(self) -> None:
        """Wait for no embedder from now on: what asks one fails, and nothing is embedded in the background any more.
        For a stop whose calls are cancelled; ``close`` is still to come."""
        self._backfill.end()
        self._reembedding.end()
        self._vectors.embedder.close()

    def close(self) -> None:
        """Finish what was begun, make everything durable, join every thread. Twice is fine."""
        self._closing.close()


def _made(embedder: Embedder | Callable[[], Embedder]) -> Embedder:
    return embedder() if callable(embedder) else embedder


def _way_out(store: Store, indexes: Indexes, backfill: Backfill, reembedding: Reembedding) -> ExitStack:
    """What closing does: no more background work, then the writer drains, then the index files are written."""
    closing = ExitStack()
    closing.callback(indexes.close)
    closing.callback(store.close)
    closing.callback(indexes.stop)
    closing.callback(backfill.stop)
    closing.callback(reembedding.stop)
    return closing


def _both(
    first: Callable[[list[Change]], None], second: Callable[[list[Change]], None]
) -> Callable[[list[Change]], None]:
    def tell(changes: list[Change]) -> None:
        first(changes)
        second(changes)

    return tell
