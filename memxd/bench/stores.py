"""Stores of a known content, built once through the real engine and kept.

Owns the recipe (its hash names the folder, so that another generator, seed or model never meets an old store), the
records' features and tags, and the waiting until indexes are durable and the graph is built. ``Bench.store`` calls it.

Tags, for filters: ``any-50``, ``any-5``, ``any-05`` fall on 50 %, 5 % and 0.5 % of the records at random, ``any-few``
on 5 records; ``topic-50``, ``topic-20``, ``topic-5``, ``topic-05`` on the records of as large a share of the topics.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memxd._fast import load_kernels
from memxd.bench.progress import Progress, Step
from memxd.bench.texts import Source
from memxd.bench.vectors import TOPICS, Int32, Vectors
from memxd.embed import Embedder, EmbedSettings, open_embedder
from memxd.engine.engine import Engine
from memxd.engine.ids import system_clock, uuid7_factory
from memxd.engine.storing import Item
from memxd.errors import MemxdError, ModelFileError, StartupError
from memxd.index.vector.tuning import VectorTuning
from memxd.model import DAY, IndexKind, IndexState, IndexStatus, MemoryType, Micros, NewMemory, Scope

SCOPE = Scope("bench", "one")
#: Changes whenever other records come out.
_RECIPE = "records-1"
_DONE = "bench.json"
_SPREAD = 730 * DAY
#: 2026-01-01, the moment after the newest record.
_NEWEST = 1_767_225_600_000_000
_BLOCK = 5_000
_PATIENCE = 3_600.0
SHARES = {"any-50": 0.5, "any-5": 0.05, "any-05": 0.005}
TOPIC_SHARES = {"topic-50": 0.5, "topic-20": 0.2, "topic-5": 0.05, "topic-05": 0.005}
FEW = "any-few"
_TYPES = (MemoryType.SEMANTIC, MemoryType.EPISODIC, MemoryType.PROCEDURAL)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides a store's content."""

    size: int
    source: Source
    vectors: Vectors
    model_id: str

    @property
    def text(self) -> str:
        """One line; equal lines are equal stores."""
        return f"{_RECIPE} {self.size} | {self.source.recipe} | {self.vectors.recipe} | {self.model_id}"

    @property
    def name(self) -> str:
        """The folder's name."""
        return f"store-{self.size}-{hashlib.sha256(self.text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class BuiltStore:
    """``folder``: a data directory, as ``memxd serve --data-dir`` takes it. ``seconds``: what building it took."""

    folder: Path
    size: int
    seconds: float

    @property
    def bytes(self) -> int:
        """On disk, without the embedding model."""
        return sum(f.stat().st_size for f in self.folder.rglob("*") if f.is_file() and "models" not in f.parts)


def open_embedder_for(work: Path, progress: Progress, *, hashing: bool) -> Embedder:
    """The default model (kept in ``work`` for all stores); the hashing stand-in of the same dimension where it cannot
    be opened or is not wanted. The report names which."""
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not hashing:
        try:
            return open_embedder(EmbedSettings(backend="onnx"), work)
        except ModelFileError as error:
            progress.line(f"no embedding model, so questions are hashed and embedding is not measured: {error}")
    return open_embedder(EmbedSettings(backend="hashing"), work)


def build(recipe: Recipe, work: Path, embedder: Embedder, progress: Progress, *, fresh: bool = False) -> BuiltStore:
    """The store in ``work``, found or built. ``fresh``: built anew."""
    folder = work / recipe.name
    known = _found(folder, recipe)
    if known is not None and not fresh:
        renew(known, embedder, progress)
        return known
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    (work / "models").mkdir(mode=0o700, exist_ok=True)
    (folder / "models").symlink_to(work / "models")
    began = time.monotonic()
    with progress.work(f"building a store of {recipe.size:,} records", recipe.size) as step:
        _fill(folder, recipe, embedder, step)
    seconds = time.monotonic() - began
    (folder / _DONE).write_text(json.dumps({"recipe": recipe.text, "seconds": seconds}))
    built = BuiltStore(folder, recipe.size, seconds)
    progress.line(f"  built {folder}: {built.bytes / 1e6:,.0f} MB in {seconds:,.0f} s; kept for later runs")
    return built


def _found(folder: Path, recipe: Recipe) -> BuiltStore | None:
    try:
        done = json.loads((folder / _DONE).read_text())
    except (OSError, ValueError):
        return None  # none there, or a build that was interrupted
    return BuiltStore(folder, recipe.size, float(done["seconds"])) if done.get("recipe") == recipe.text else None


def _fill(folder: Path, recipe: Recipe, embedder: Embedder, step: Step) -> None:
    clock = _Clock(recipe.size)
    engine = Engine.open(folder, embedder=embedder, kernels=load_kernels("auto"), clock=clock, ids=uuid7_factory())
    try:
        for number, answer in enumerate(engine.store_many(records(recipe, clock)), 1):
            if isinstance(answer, MemxdError):
                raise answer
            if number % 1_000 == 0 or number == recipe.size:
                step(number)
        engine.flush()
        _await_indexes(engine)
    finally:
        engine.close()


def renew(built: BuiltStore, embedder: Embedder, progress: Progress) -> None:
    """Open a store that an earlier version may have written: its engine migrates the database and builds anew what
    indexes are of another format."""
    engine = Engine.open(
        built.folder, embedder=embedder, kernels=load_kernels("auto"), clock=system_clock, ids=uuid7_factory()
    )
    try:
        if not _settled(engine):
            progress.line(f"  {built.folder.name}: indexes of another version are built anew")
        _await_indexes(engine)
        engine.flush()
    finally:
        engine.close()


def _settled(engine: Engine) -> bool:
    """Whether every index is ready, and the vectors are in the graph but for the usual tail."""
    indexes = engine.status(0).indexes
    (vector,) = (s for s in indexes if s.kind is IndexKind.VECTOR)
    ready = all(index.state is IndexState.READY for index in indexes)
    return ready and graph_settled(vector)


def graph_settled(vector: IndexStatus) -> bool:
    """Whether the graph knows all vectors but those that the index leaves outside for a while."""
    limits = VectorTuning()
    usual = max(limits.tail_min, limits.tail_share * vector.entries)
    return vector.entries < limits.graph_min or vector.tail_entries <= min(usual, limits.tail_max)


def _await_indexes(engine: Engine) -> None:
    """Until they are as those of a daemon that runs for a while."""
    until = time.monotonic() + _PATIENCE
    while not _settled(engine):
        if time.monotonic() > until:
            raise StartupError(f"the indexes were not built within {_PATIENCE:.0f} s")
        time.sleep(0.2)


class _Clock:
    """Time goes by as records are stored, two years in all."""

    def __init__(self, size: int) -> None:
        self.step = _SPREAD // max(1, size)
        self.now: Micros = _NEWEST - _SPREAD

    def __call__(self) -> Micros:
        return self.now


def records(recipe: Recipe, clock: _Clock | None = None, start: int = 0) -> Iterator[Item]:
    """Items for ``Engine.store_many``: records ``start`` to ``recipe.size``, vectors given."""
    texts = recipe.source.texts(recipe.size, start)
    for block in range(start // _BLOCK * _BLOCK, recipe.size, _BLOCK):
        first, stop = max(start, block), min(block + _BLOCK, recipe.size)
        vectors, topics = recipe.vectors.rows(first, stop)
        features = _features(recipe.vectors.seed, block, first, topics)
        for vector, (tags, kind, importance, event) in zip(vectors, features, strict=True):
            if clock is not None:
                clock.now += clock.step
            memory = NewMemory(
                content=next(texts),
                type=_TYPES[kind],
                tags=tags,
                importance=importance,
                event_at=event,
                allow_duplicate=True,
                vector=tuple(vector.tolist()),
                model_id=recipe.model_id,
            )
            yield SCOPE, memory, ""


def _features(
    seed: int, block: int, first: int, topics: Int32
) -> Iterator[tuple[tuple[str, ...], int, float, Micros | None]]:
    """(tags, type, importance, event) of records ``first`` and on; drawn by whole blocks, so that they do not depend
    on the store's size."""
    rng = np.random.default_rng((seed, 5, block))
    luck = rng.random((_BLOCK, len(SHARES) + 2))
    kinds = rng.integers(0, len(_TYPES), _BLOCK)
    for n, topic in enumerate(topics.tolist(), first):
        at = n - block
        tags = [tag for column, tag in enumerate(SHARES) if luck[at, column] < SHARES[tag]]
        tags += [tag for tag, share in TOPIC_SHARES.items() if topic < max(1, round(share * TOPICS))]
        if n % 400 == 7 and n < 2_000:
            tags.append(FEW)
        importance = round(float(luck[at, -1]), 3)
        event = int(_NEWEST - luck[at, -2] * _SPREAD) if luck[at, -2] < 0.3 else None
        yield tuple(tags), int(kinds[at]), importance, event
