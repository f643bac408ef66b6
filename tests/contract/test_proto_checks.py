"""The contract's checks do catch what they are for (they run over the real contract in ``make proto-check``)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUF = ROOT / ".tools" / "node_modules" / ".bin" / "buf"

pytestmark = pytest.mark.tools


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The contract and its checks in a folder of their own."""
    if not BUF.exists():
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail("buf lacks and CI_REQUIRE_TOOLS=1")
        pytest.skip("no buf (make tools)")
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    (tmp_path / ".tools").symlink_to(ROOT / ".tools")
    return tmp_path


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the checks in the folder."""
    return subprocess.run(
        [folder / "scripts" / "check_proto.sh"], cwd=folder, capture_output=True, text=True, check=False
    )


def edit(folder: Path, change: Callable[[str], str]) -> None:
    """Change memory.proto."""
    path = folder / "proto" / "memxd" / "v1" / "memory.proto"
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")


def test_the_contract_as_it_is_passes(copy: Path) -> None:
    done = check(copy)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("string content = 3;", "string text = 3;"),
        ("double importance = 7;", "float importance = 7;"),
        ("MEMORY_TYPE_EMOTIONAL = 4;", "MEMORY_TYPE_EMOTIONAL = 9;"),
    ],
    ids=["renamed field", "another type", "renumbered value"],
)
def test_a_change_that_breaks_clients_is_refused_as_such(copy: Path, old: str, new: str) -> None:
    edit(copy, lambda text: text.replace(old, new))
    done = check(copy)
    assert done.returncode == 100, done.stdout + done.stderr
    assert "break clients" in done.stderr


def test_a_new_field_is_no_break(copy: Path) -> None:
    old = "  bool bidirectional = 7;"
    edit(copy, lambda text: text.replace(old, f"{old}\n  // Something that no client knows yet.\n  bool fresh = 40;"))
    done = check(copy)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_field_without_a_comment_is_refused(copy: Path) -> None:
    edit(copy, lambda text: text.replace("  bool bidirectional = 7;", "  bool bidirectional = 7;\n  bool silent = 40;"))
    done = check(copy)
    assert done.returncode == 100, done.stdout + done.stderr
    assert "comment" in (done.stdout + done.stderr).lower()


def test_a_check_that_cannot_run_is_not_taken_for_a_break(copy: Path) -> None:
    (copy / "proto" / "memxd.v1.binpb").write_bytes(b"no descriptor")
    done = check(copy)
    assert done.returncode not in (0, 100)
    assert "at fault" in done.stderr
