"""A real engine in process: real store, real indexes, the hashing embedder, a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memxd._fast import load_kernels
from memxd.embed import EmbedSettings, open_embedder
from memxd.engine import Engine, uuid7_factory
from memxd.model import SECOND, Micros


class MovableClock:
    """Time that stands still until a test moves it."""

    def __init__(self, now: Micros) -> None:
        self.now = now

    def __call__(self) -> Micros:
        return self.now

    def forward(self, micros: Micros) -> None:
        self.now += micros


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(1_760_000_000 * SECOND)


OpenEngine = Callable[[], Engine]


def _opener(tmp_path: Path, clock: MovableClock, settings: EmbedSettings, models: Path) -> Iterator[OpenEngine]:
    embedder = open_embedder(settings, models)
    engines: list[Engine] = []

    def open_() -> Engine:
        engine = Engine.open(
            tmp_path / "data", embedder=embedder, kernels=load_kernels(), clock=clock, ids=uuid7_factory()
        )
        engines.append(engine)
        return engine

    yield open_
    for engine in engines:
        engine.close()
    embedder.close()


@pytest.fixture
def open_engine(tmp_path: Path, clock: MovableClock) -> Iterator[OpenEngine]:
    """Opens an engine on the same directory each time; whatever is still open at the end is closed."""
    yield from _opener(tmp_path, clock, EmbedSettings(backend="hashing"), tmp_path / "models")


@pytest.fixture
def open_real_engine(
    tmp_path: Path, clock: MovableClock, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenEngine]:
    """The same with the model that ships; converted once for all tests of this process."""
    models = tmp_path_factory.getbasetemp() / "real-models"
    yield from _opener(tmp_path, clock, EmbedSettings(), models)


@pytest.fixture
def engine(open_engine: OpenEngine) -> Engine:
    return open_engine()
