"""What the CPU says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from memxd.embed.cpu import cores, has_int8_dot


@pytest.mark.parametrize(
    ("machine", "text", "expected"),
    [
        ("x86_64", "flags\t\t: fpu avx2 avx512_vnni\n", True),
        ("x86_64", "flags\t\t: fpu avx2 avx_vnni\n", True),
        ("x86_64", "processor : 0\nflags : fpu avx2\n", False),
        ("aarch64", "Features\t: fp asimd asimddp\n", True),
        ("aarch64", "Features\t: fp asimd\n", False),
        ("x86_64", "nothing of use\n", None),
        ("riscv64", "flags : avx512_vnni\n", None),
    ],
)
def test_linux(tmp_path: Path, machine: str, text: str, expected: bool | None) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert has_int8_dot(system="Linux", machine=machine, cpuinfo=path) is expected


def test_other_systems(tmp_path: Path) -> None:
    assert has_int8_dot(system="Darwin", machine="arm64") is True
    assert has_int8_dot(system="Darwin", machine="x86_64") is None
    assert has_int8_dot(system="Linux", machine="x86_64", cpuinfo=tmp_path / "none") is None


def test_there_is_a_core() -> None:
    assert cores() >= 1
