"""Daemons for the cases: two that all tests share, each in a scope of its own, and worlds for those that break one.

``hashing`` runs with the hashing embedder, ``real`` with the model that ships.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import casekit
from casekit import Case, World
from memxd.v1 import memory_pb2


@pytest.fixture(scope="session")
def hashing() -> Iterator[Case]:
    with casekit.world() as made:
        yield made.start()


@pytest.fixture(scope="session")
def real() -> Iterator[Case]:
    with casekit.world() as made:
        yield made.start(embedder="onnx")


@pytest.fixture
def world() -> Iterator[World]:
    """A folder of its own, in which the test starts what it likes."""
    with casekit.world() as made:
        yield made


@pytest.fixture
def scope(request: pytest.FixtureRequest) -> memory_pb2.Scope:
    """A scope that no other test uses."""
    return casekit.fresh_scope(request.node.name[:40].replace("[", "-"))
