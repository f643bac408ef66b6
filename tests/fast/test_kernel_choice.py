"""Which kernels run: compiled, Python, or what there is, said aloud."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import pytest

from memxd._fast import KERNEL_NAMES, load_kernels
from memxd.errors import ConfigError


@pytest.fixture
def without_extension(monkeypatch: pytest.MonkeyPatch) -> str:
    """The last kernel of the table cannot be loaded, as where no compiler was."""
    missing = f"memxd._fast._{KERNEL_NAMES[-1]}"
    load = importlib.import_module

    def import_module(name: str, package: str | None = None) -> Any:
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return load(name, package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    return missing


def test_auto_takes_the_compiled_kernels(caplog: pytest.LogCaptureFixture) -> None:
    kernels = load_kernels("auto")
    assert kernels.name == "c"
    assert not caplog.records
    for name in KERNEL_NAMES:
        assert getattr(kernels, name).__name__ == f"memxd._fast._{name}"


def test_py_takes_the_twins() -> None:
    kernels = load_kernels("py")
    assert kernels.name == "py"
    for name in KERNEL_NAMES:
        assert getattr(kernels, name).__name__ == f"memxd._fast.{name}_py"


def test_auto_falls_back_as_a_whole_and_says_so(without_extension: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        kernels = load_kernels("auto")
    assert kernels == load_kernels("py")
    assert without_extension in caplog.text


def test_c_is_refused_where_an_extension_lacks(without_extension: str) -> None:
    with pytest.raises(ConfigError, match=without_extension):
        load_kernels("c")


def test_a_pair_offers_the_same_functions() -> None:
    compiled, twins = load_kernels("c"), load_kernels("py")
    for name in KERNEL_NAMES:
        c, py = getattr(compiled, name), getattr(twins, name)
        offered = {f for f, v in vars(py).items() if callable(v) and getattr(v, "__module__", "") == py.__name__}
        public = {f for f in offered if not f.startswith("_") and not isinstance(getattr(py, f), type)}
        assert public
        assert {f for f in public if not callable(getattr(c, f, None))} == set()
