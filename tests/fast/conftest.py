"""Both sets of kernels; a missing extension fails here rather than hiding half of the tests."""

from __future__ import annotations

import pytest

from memxd._fast import Kernels, load_kernels


@pytest.fixture(params=["c", "py"], scope="session")
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """Each test runs with the compiled kernels and with their twins."""
    return load_kernels(request.param)


@pytest.fixture(scope="session")
def compiled() -> Kernels:
    return load_kernels("c")


@pytest.fixture(scope="session")
def twins() -> Kernels:
    return load_kernels("py")
