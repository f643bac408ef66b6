"""Every kernel is a pair: compiled and plain, with one list, and the compiled one is what runs."""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
from pathlib import Path

import pytest

import house

KERNELS = sorted(Path(name).stem.removeprefix("_") for name in house.tracked() if name.endswith(".pyx"))


def test_there_are_kernels_and_all_lie_in_fast() -> None:
    assert KERNELS
    assert all(name.startswith("memxd/_fast/_") for name in house.tracked() if name.endswith(".pyx"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_has_a_twin_with_the_same_functions(kernel: str) -> None:
    compiled = importlib.import_module(f"memxd._fast._{kernel}")
    twin = importlib.import_module(f"memxd._fast.{kernel}_py")
    public = {
        name: value
        for name, value in vars(twin).items()
        if inspect.isfunction(value) and value.__module__ == twin.__name__ and not name.startswith("_")
    }
    assert public
    for name, function in public.items():
        other = getattr(compiled, name)
        assert list(inspect.signature(other).parameters) == list(inspect.signature(function).parameters), name


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_compiled_kernel_is_an_extension(kernel: str) -> None:
    found = importlib.import_module(f"memxd._fast._{kernel}").__file__ or ""
    assert found.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)), found


def test_no_extension_is_lost() -> None:
    from memxd._fast import load_kernels

    assert load_kernels("c").name == "c"
    assert load_kernels("auto").name == "c"
    assert load_kernels("py").name == "py"


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_has_shared_vectors(kernel: str) -> None:
    names = [name for name in house.tracked() if name.startswith("tests/vectors/" + kernel)]
    assert names, f"no vector file for {kernel} in tests/vectors/"
