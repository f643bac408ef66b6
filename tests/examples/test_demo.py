"""``make demo`` does what it says: all it checks holds, in plain text when piped, and the daemon ends cleanly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(300)
def test_demo_shows_what_it_promises(tmp_path: Path) -> None:
    demo = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "LANG": "C.UTF-8"},
    )
    assert demo.returncode == 0, demo.stdout[-3_000:] + demo.stderr[-3_000:]
    assert "NOT SO" not in demo.stdout
    assert " checks, 0 failed" in demo.stdout
    assert "daemon stopped cleanly" in demo.stdout
    assert "nothing known" in demo.stdout
    assert "\x1b" not in demo.stdout
    assert demo.stderr == ""


def test_demo_needs_a_daemon_that_answers(tmp_path: Path) -> None:
    demo = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), "--socket", str(tmp_path / "none.sock")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "LANG": "C.UTF-8"},
    )
    assert demo.returncode == 1
    assert "no memxd daemon answers" in demo.stderr
    assert "Traceback" not in demo.stderr
