"""One generation of the vector index as a whole: rows, graph, saver; and how the next one is made from it.

Owns when a generation is due for renewal, and the order of steps of a next one: copy what lives, build a graph over
the copy, catch up with what happened meanwhile, so that the index needs its lock only for the last moment. As long as
few rows are dead, a generation stays and its graph is extended instead. Knows nothing of changes' revisions. Used by
``VectorIndex``.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memxd.index.vector.files import remove
from memxd.index.vector.graph import Graph
from memxd.index.vector.manifest import GraphFile, Manifest, ManifestError, Saver, load_rows
from memxd.index.vector.rows import Rows
from memxd.index.vector.tuning import VectorTuning
from memxd.index.vector.upkeep import GraphBuildError, build_graph
from memxd.model import Change

__all__ = ["Generation", "Successor"]

_log = logging.getLogger(__name__)
_BATCH = 512  # rows of the store taken over at once
_CATCH_UP = 1024  # rows that may be left for the last moment


@dataclass(slots=True)
class Generation:
    """What is searched and saved together. ``graph`` None: everything is scanned."""

    rows: Rows
    saver: Saver
    graph: Graph | None = None

    @classmethod
    def begin(cls, directory: Path, number: int, dimension: int) -> Generation:
        """An empty one. Files of an abandoned one of this number are removed first; a removed directory is made."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove(directory, number)
        rows = Rows(directory, number, dimension)
        return cls(rows, Saver(directory, rows))

    @classmethod
    def load(
        cls,
        directory: Path,
        manifest: Manifest,
        alive: npt.NDArray[np.bool_],
        blocks: npt.NDArray[np.uint64],
    ) -> tuple[Generation, str]:
        """What the manifest describes, and a message when its graph is not usable (the rows serve without it).

        Raises ManifestError, OSError.
        """
        rows = load_rows(directory, manifest, alive, blocks)
        generation = cls(rows, Saver.loaded(directory, rows, manifest, blocks))
        if manifest.graph is not None:
            try:
                generation.graph = Graph(directory, manifest.graph)
            except (ManifestError, OSError) as error:
                text = str(error) if isinstance(error, ManifestError) else "the graph file cannot be opened"
                return generation, f"{text}: vectors are scanned until it is built again"
        return generation, ""

    def whole(self) -> bool:
        """False when a mapped file was cut short under us: reading it would kill the process."""
        return self.rows.whole() and (self.graph is None or self.graph.whole())

    def put(self, change: Change) -> None:
        """Take over a row's chunks; idempotent. Raises OSError or DimensionError, with nothing changed."""
        if not self.whole():
            raise OSError(errno.EIO, "a file of the index was cut short")
        if change.features is None:
            self.rows.replace(change.rid, ())
        elif change.chunks is not None:
            self.rows.replace(change.rid, change.chunks)
        elif change.dead_vids:
            self.rows.drop_vids(change.rid, change.dead_vids)

    def put_new(self, changes: Sequence[Change]) -> bool:
        """Take over the chunks of rows that have none yet, all at once; False, and nothing changed, when they are not
        all such. Raises OSError or DimensionError, with nothing changed."""
        items = [(change.rid, change.chunks) for change in changes if change.features is not None and change.chunks]
        rids = {rid for rid, _ in items}
        if len(rids) < len(changes) or any(map(self.rows.chain, rids)):
            return False
        if not self.whole():
            raise OSError(errno.EIO, "a file of the index was cut short")
        self.rows.add(items)
        return True

    def fill(self, changes: Iterator[Change], total: int, progress: Callable[[int, int], None] | None) -> int:
        """Take over all rows of the store (each rid once) into an empty generation, telling ``progress(done, total)``
        now and then; answers the latest revision. Raises OSError, DimensionError."""
        done = latest = 0
        while batch := list(islice(changes, _BATCH)):
            self.rows.extend([(change.rid, change.chunks or ()) for change in batch])
            done += len(batch)
            latest = max(latest, *(change.revision for change in batch))
            if progress is not None:
                progress(done, total)
        self.rows.chain_all()
        if progress is not None and not done:
            progress(0, total)
        return latest

    def catch_up(self, changes: list[Change]) -> tuple[Generation, int]:
        """Take over what happened since; answers itself and the latest revision."""
        for change in changes:
            self.put(change)
        return self, max((change.revision for change in changes), default=0)

    @property
    def tail(self) -> int:
        """Rows that the graph does not know."""
        return self.rows.count - (self.graph.rows if self.graph else 0)

    @property
    def dead(self) -> int:
        """Rows that no longer count."""
        return self.rows.count - self.rows.live

    def worn(self, tuning: VectorTuning) -> bool:
        """True when so many rows are dead that a next generation should leave them out."""
        return self.dead > max(tuning.dead_min, tuning.dead_share * self.rows.count)

    def renewal_due(self, tuning: VectorTuning) -> int:
        """0 = good as it is, 1 = a next generation or a larger graph is worth while, 2 = overdue."""
        if self.worn(tuning):
            return 1
        if self.rows.live < tuning.graph_min:
            return 0
        limit = min(tuning.tail_max, max(tuning.tail_min, tuning.tail_share * self.rows.live))
        # Each extension takes a core from those who write and writes the whole graph: while changes go on, it waits
        # until it is worth it.
        overdue = max(tuning.overdue_min, tuning.overdue_share * self.rows.live)
        return 0 if self.tail <= limit else 2 if self.tail > overdue else 1

    def extended(self, directory: Path, tuning: VectorTuning, ended: Callable[[], bool]) -> Graph:
        """A graph that knows all present rows, beside the present one. Takes long; without any lock. Raises OSError,
        GraphBuildError, ManifestError."""
        base = self.graph_file()
        try:
            file = build_graph(directory, self.rows, base, tuning, ended)
        except GraphBuildError as error:
            if base is None or ended():
                raise
            _log.warning("the graph of the vector index could not be extended and is built anew: %s", error)
            file = build_graph(directory, self.rows, None, tuning, ended)
        return Graph(directory, file)

    def delete_files(self) -> None:
        """Close and remove the files; searches that still run keep their mappings."""
        self.rows.close()
        remove(self.rows.vectors_path.parent, self.rows.generation)

    def graph_names(self) -> list[str]:
        """The files of the graph."""
        return [self.graph.file.links, self.graph.file.base] if self.graph else []

    def graph_file(self) -> GraphFile | None:
        """What the manifest says of the graph."""
        return self.graph.file if self.graph else None


class Successor:
    """A generation in the making: ``old``'s live rows, renumbered without gaps, with a graph."""

    def __init__(self, directory: Path, old: Generation, tuning: VectorTuning) -> None:
        self._directory = directory
        self._old = old
        self._tuning = tuning
        self._seen = 0  # rows of the old one looked at
        self._origin = np.empty(0, np.int64)  # by new row: the old one
        self.new = Generation.begin(directory, old.rows.generation + 1, old.rows.dimension)

    def prepare(self, ended: Callable[[], bool]) -> None:
        """The long part, without any lock: copy, build, copy again. Raises OSError, GraphBuildError, ManifestError."""
        self._copy()
        rows = self.new.rows
        if rows.count >= max(1, self._tuning.graph_min):
            rows.sync()
            self.new.graph = self.new.extended(self._directory, self._tuning, ended)
        while self._old.rows.count - self._seen > _CATCH_UP:
            self._copy()
        rows.sync()

    def finish(self) -> Generation:
        """The short part, while nobody applies: the last rows, the deaths, the chains."""
        self._copy()
        died = np.flatnonzero(self._old.rows.view().rids[self._origin] < 0)
        self.new.rows.bury(died)
        self.new.rows.chain_all()
        return self.new

    def _copy(self) -> None:
        end = self._old.rows.count
        alive = self._seen + np.flatnonzero(self._old.rows.view().rids[self._seen : end] >= 0)
        self.new.rows.copy_from(self._old.rows, alive)
        self._origin = np.concatenate([self._origin, alive])
        self._seen = end
