"""A stop that hangs is ended, and says where it hung."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

HANGS = """
import time
from memxd.signals import Signals
with Signals({limit}) as signals:
    print("ready", flush=True)
    signals.wait(lambda: None, 60.0, lambda: None)
    time.sleep({seconds})
"""


def _stop(limit: float, seconds: float) -> tuple[int, str, float]:
    script = HANGS.format(limit=limit, seconds=seconds)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    return process.returncode, told, time.monotonic() - began


def test_a_hung_stop_is_ended_with_every_stack() -> None:
    code, told, seconds = _stop(0.5, 50)
    assert code == 1
    assert "most recent call first" in told
    assert seconds < 20


def test_a_stop_in_time_is_left_alone() -> None:
    code, told, _ = _stop(30, 0.1)
    assert (code, told) == (0, "")
