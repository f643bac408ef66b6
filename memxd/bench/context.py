"""What a question is given: options, texts, vectors, built stores, an opened engine, progress.

Owns ``Options`` (what the command line asked for) and ``Bench``. Measures nothing itself. Questions import this module
and ``measure``; ``runner`` makes the one ``Bench`` of a run and closes it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from memxd._fast import Kernels, load_kernels
from memxd.bench.progress import Progress
from memxd.bench.stores import SCOPE, BuiltStore, Recipe, build, open_embedder_for
from memxd.bench.texts import Source
from memxd.bench.vectors import Vectors
from memxd.embed import Embedder
from memxd.engine.engine import Engine
from memxd.engine.ids import system_clock, uuid7_factory

__all__ = ["FULL_SIZES", "QUICK_SIZES", "SCOPE", "Bench", "Options"]

FULL_SIZES = (10_000, 100_000, 220_349, 1_000_000)
QUICK_SIZES = (3_000, 10_000)
#: The size that the budgets name.
BUDGET_SIZE = 220_349
LARGE_SIZE = 1_000_000
#: As the daemon sets it.
_SWITCH_SECONDS = 1e-4


@dataclass(frozen=True, slots=True)
class Options:
    """``work``: where stores are kept. ``out``: where the report goes. ``data``: a set of texts, None: generated.

    ``sizes`` ascending; ``only`` names of questions, none = all; ``quick``: small sizes, few samples, for function;
    ``fresh``: build stores anew and forget earlier results; ``strict``: a peer that is not installed is an error.
    """

    work: Path
    out: Path
    data: Path | None = None
    sizes: tuple[int, ...] = FULL_SIZES
    only: tuple[str, ...] = ()
    quick: bool = False
    fresh: bool = False
    strict: bool = False
    seed: int = 7
    hashing: bool = False


@dataclass(slots=True)
class Bench:
    """One run's means. Use as a context manager."""

    options: Options
    progress: Progress
    source: Source
    kernels: Kernels = field(default_factory=lambda: load_kernels("auto"))
    _closing: ExitStack = field(default_factory=ExitStack)
    _embedder: Embedder | None = None
    _stores: dict[int, BuiltStore] = field(default_factory=dict)
    _questions: dict[tuple[int, int], list[str]] = field(default_factory=dict)

    @classmethod
    def open(cls, options: Options, progress: Progress) -> Bench:
        """Raises InvalidArgumentError for a ``data`` folder that holds no set."""
        return cls(options, progress, Source.open(options.data, options.seed))

    def __enter__(self) -> Bench:
        before = sys.getswitchinterval()
        self._closing.callback(sys.setswitchinterval, before)
        sys.setswitchinterval(_SWITCH_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    # -- sizes and samples -------------------------------------------------------------------------------------------

    @property
    def quick(self) -> bool:
        """Whether this run is for function, not for figures."""
        return self.options.quick

    @property
    def sizes(self) -> tuple[int, ...]:
        """The store sizes of this run, ascending; those beyond a set's texts are left out."""
        limit = self.source.limit
        sizes = tuple(s for s in self.options.sizes if limit is None or s <= limit)
        return sizes or ((limit,) if limit else ())

    @property
    def main(self) -> int:
        """The size that budgets are about: 220,349, or the largest one below it that this run has."""
        return max((s for s in self.sizes if s <= BUDGET_SIZE), default=self.sizes[0])

    def judged(self, size: int) -> bool:
        """Whether figures at this size may be held against the budgets."""
        return not self.quick and size >= BUDGET_SIZE

    def samples(self, full: int, quick: int = 20) -> int:
        """How often to measure."""
        return quick if self.quick else full

    def rng(self, *path: int) -> np.random.Generator:
        """Seeded by the run's seed and these numbers."""
        return np.random.default_rng((self.options.seed, *path))

    # -- texts and vectors -------------------------------------------------------------------------------------------

    def questions(self, n: int, among: int) -> list[str]:
        """``n`` different questions about the first ``among`` texts."""
        if (n, among) not in self._questions:
            self._questions[n, among] = self.source.questions(n, among)
        return self._questions[n, among]

    @property
    def vectors(self) -> Vectors:
        """The generator of the stores' vectors, in the embedder's dimension."""
        return Vectors(self.embedder.info.dimension, self.options.seed)

    def query_vectors(self, n: int) -> NDArray[np.float32]:
        """float32[n, dimension], of the stores' structure."""
        return self.vectors.queries(n)

    @property
    def embedder(self) -> Embedder:
        """The default model's, or the hashing stand-in where the model is not installed or not wanted."""
        if self._embedder is None:
            self._embedder = open_embedder_for(self.options.work, self.progress, hashing=self.options.hashing)
            self._closing.callback(self._embedder.close)
        return self._embedder

    @property
    def real_model(self) -> bool:
        """Whether the embedder is a model, not the stand-in."""
        return self.embedder.info.backend == "onnx"

    # -- stores ------------------------------------------------------------------------------------------------------

    def recipe(self, size: int) -> Recipe:
        """What decides a store of ``size`` records."""
        return Recipe(size, self.source, self.vectors, self.embedder.info.id)

    def store(self, size: int) -> BuiltStore:
        """A store of ``size`` records in scope ``SCOPE``, built now or found; do not write to it (see ``copy``)."""
        if size not in self._stores:
            recipe, options = self.recipe(size), self.options
            self._stores[size] = build(recipe, options.work, self.embedder, self.progress, fresh=options.fresh)
        return self._stores[size]

    @contextmanager
    def copy(self, size: int) -> Iterator[BuiltStore]:
        """A copy of a store that may be written to; gone afterwards."""
        built = self.store(size)
        with self.folder("copy-") as folder:
            shutil.copytree(built.folder, folder / "data", symlinks=True)
            yield BuiltStore(folder / "data", size, built.seconds)

    @contextmanager
    def folder(self, prefix: str = "run-") -> Iterator[Path]:
        """An empty folder of mode 0700 below ``work`` (so on the same disk); gone afterwards."""
        self.options.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.options.work) as name:
            yield Path(name)

    @contextmanager
    def engine(self, folder: Path, readers: int = 8) -> Iterator[Engine]:
        """An engine over a data folder, opened as the daemon does, in this process."""
        engine = Engine.open(
            folder,
            embedder=self.embedder,
            kernels=self.kernels,
            clock=system_clock,
            ids=uuid7_factory(),
            readers=readers,
        )
        try:
            yield engine
        finally:
            engine.close()
