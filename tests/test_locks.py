"""A lock goes with its process, names it, and is waited for on request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memxd.errors import AlreadyRunningError
from memxd.locks import FileLock

HOLD = "import sys, time; from pathlib import Path; from memxd.locks import FileLock\n" + (
    "with FileLock(Path(sys.argv[1]), 'it'): print('held', flush=True); time.sleep(60)"
)


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(AlreadyRunningError, match=f"pid {holder.pid}"):
            FileLock(path, "it").acquire()
        holder.send_signal(signal.SIGKILL)
    with FileLock(path, "it"):
        assert path.read_text().strip() == str(os.getpid())


def test_a_released_lock_can_be_taken_again_and_keeps_its_file(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "x.lock", "it")
    inode = 0
    for _ in range(2):
        with lock:
            inode = inode or lock.path.stat().st_ino
            assert lock.path.stat().st_ino == inode
    lock.release()


def test_a_waiter_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    first = FileLock(tmp_path / "x.lock", "it").acquire()
    threading.Timer(0.2, first.release).start()
    began = time.monotonic()
    FileLock(tmp_path / "x.lock", "it").acquire(timeout=10).release()
    assert 0.1 < time.monotonic() - began < 5


def test_the_file_is_private(tmp_path: Path) -> None:
    with FileLock(tmp_path / "x.lock", "it"):
        assert (tmp_path / "x.lock").stat().st_mode & 0o777 == 0o600
