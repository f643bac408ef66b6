"""Damaged index files never stop a start and never change an answer: a few fixed rounds; ``make fuzz`` goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz_index import World, rounds


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_fixed_rounds_of_damage_are_withstood(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        assert any(name.startswith("keyword/") for name in world.files)
        assert any(name.startswith("vector/") for name in world.files)
        assert list(rounds(world, 20_260_301, count=3)) == []
    finally:
        world.daemon.close()
