"""Daemons for the feature tests: one with the hashing embedder and one with the real model, each shared by all tests
(every test in a scope of its own), and worlds for tests that restart or break one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import featurekit
from featurekit import Service, World
from memxd.client import Client
from memxd.embed.convert import SOURCE_DISTRIBUTION, SOURCE_FILE, find_installed


@pytest.fixture(scope="session")
def hashing_world() -> Iterator[World]:
    with featurekit.world() as made:
        made.serve()
        yield made


@pytest.fixture(scope="session")
def real_world() -> Iterator[World]:
    if find_installed(SOURCE_DISTRIBUTION, SOURCE_FILE) is None:
        pytest.skip(f"{SOURCE_DISTRIBUTION} is not installed (it has no wheel for every platform)")
    with featurekit.world() as made:
        made.serve(embedder="onnx")
        yield made


@pytest.fixture
def client(hashing_world: World) -> Iterator[Client]:
    """A scope of its own at the daemon with the hashing embedder."""
    with hashing_world.client() as made:
        yield featurekit.fresh_scope(made)


@pytest.fixture
def real(real_world: World) -> Iterator[Client]:
    """A scope of its own at the daemon with the model that ships."""
    with real_world.client() as made:
        yield featurekit.fresh_scope(made)


@pytest.fixture
def world() -> Iterator[World]:
    """A folder of its own, in which the test starts what it likes."""
    with featurekit.world() as made:
        yield made


@pytest.fixture
def service() -> Iterator[Service]:
    """An embedding service with 64 dimensions."""
    made = Service(64)
    yield made
    made.off()
