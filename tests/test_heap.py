"""Memory that is not used goes back to the system; where the C library cannot do that, nothing happens."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from types import SimpleNamespace

import pytest

from memxd.heap import give_back, limit_arenas

CODE = """
from memxd.heap import give_back, limit_arenas
def held():
    return int([l for l in open("/proc/self/smaps_rollup") if l.startswith("Rss:")][0].split()[1])
limit_arenas()
small = [bytearray(40_000) for _ in range(2_000)]
last = bytearray(40_000)
del small
before = held()
give_back()
print(before - held())
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="glibc"
)
def test_freed_pages_return_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 40_000  # of 80 MB, in KiB


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace())
    limit_arenas()
    give_back()
