"""Damaged config files and imports are read or refused, never anything else; what broke something is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz_inputs import CORPUS, SORTS, attack

KEPT = sorted(path for path in CORPUS.rglob("*") if path.is_file() and path.parent.name in SORTS)


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke_something_is_read_again(path: Path, tmp_path: Path) -> None:
    assert SORTS[path.parent.name].check(path.read_bytes(), tmp_path) is None


@pytest.mark.parametrize("name", SORTS)
def test_a_fixed_attack_is_withstood(name: str, tmp_path: Path) -> None:
    found = [problem for _, problem in attack(SORTS[name], tmp_path, seed=20_260_301, count=300)]
    assert not found, f"make fuzz ARGS='--what {name}' keeps the files: {found}"


@pytest.mark.parametrize("name", SORTS)
def test_what_is_sound_is_read(name: str, tmp_path: Path) -> None:
    import random

    sort = SORTS[name]
    if name == "config":
        pytest.skip("a sound config file of random values is mostly refused")
    refused = 0
    for seed in range(20):
        path = tmp_path / "sound"
        path.write_bytes(sort.sound(random.Random(seed)))
        try:
            sort.read(path)
        except Exception:
            refused += 1
    assert refused < 20, "nothing is read at all: the attack stays on the surface"
