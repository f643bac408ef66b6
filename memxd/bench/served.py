"""The real daemon as a process, for the questions that go over the socket.

Owns starting ``memxd serve`` on a data directory, waiting until health says SERVING, stopping it cleanly or by SIGKILL
with all its children, and what the kernel says of its memory. However the block ends, no process of it is left: the
daemon leads a process group of its own, which is killed at the end. Measures nothing but the time to SERVING. Called by
the questions of this package.
"""

from __future__ import annotations

import compileall
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import memxd
from memxd.autostart import is_serving
from memxd.bench.stores import SCOPE
from memxd.client import NO_RETRY, Client
from memxd.config import process_environ

if TYPE_CHECKING:
    from memxd.bench.context import Bench

#: Seconds a start may take before it counts as failed; the budget is far below.
START_SECONDS = 300.0
#: Seconds a clean stop may take: it folds and writes every index.
STOP_SECONDS = 180.0
_POLL = 0.005
#: The folder from which ``memxd`` was imported: the daemon under test is this one, installed or not.
_HOME = Path(memxd.__file__).parents[1]


def clean_environ() -> dict[str, str]:
    """The process's environment without a user's own memxd settings, and with this very package on the path."""
    inherited = process_environ()
    kept = {k: v for k, v in inherited.items() if not k.startswith(("MEMXD_", "MEMX_")) and k != "NOTIFY_SOCKET"}
    paths = [str(_HOME), *(p for p in inherited.get("PYTHONPATH", "").split(os.pathsep) if p)]
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


@dataclass(slots=True)
class Served:
    """A running daemon. ``seconds_to_serving``: from the fork to the first SERVING, interpreter start included."""

    process: subprocess.Popen[bytes]
    socket: Path
    log: Path
    seconds_to_serving: float

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        return self.process.pid

    @property
    def whose(self) -> tuple[str, str]:
        """The scope that the stores' records are in: agent and user."""
        return SCOPE.agent_id, SCOPE.user_id

    def client(self, *, timeout: float = 60.0) -> Client:
        """A client that fails at the first refusal, so that no retry hides in a latency; the caller closes it."""
        agent, user = self.whose
        return Client(self.socket, agent_id=agent, user_id=user, timeout=timeout, retry=NO_RETRY)

    def pss(self) -> float:
        """Proportional set size of the daemon and its children in MB (1e6 bytes), from ``smaps_rollup``."""
        return sum(pss_bytes(pid) for pid in family(self.pid)) / 1e6

    def cpu_seconds(self) -> float:
        """CPU time that the daemon and its present children have used, all threads, user and system."""
        return sum(cpu_ticks(pid) for pid in family(self.pid)) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> float:
        """SIGTERM and wait; answers the seconds it took. Raises RuntimeError when it does not end or fails."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise RuntimeError(f"the daemon did not stop within {STOP_SECONDS:g} s; {self.last_lines()}") from late
        if code != 0:
            raise RuntimeError(f"the daemon stopped with exit code {code}; {self.last_lines()}")
        return time.perf_counter() - began

    def kill(self) -> None:
        """SIGKILL for the daemon and every child, and wait until it is gone. Twice is fine."""
        with suppress(ProcessLookupError):  # all of them have ended by themselves
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def last_lines(self) -> str:
        """The end of its log, for an error's text."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "its log ends: " + " | ".join(lines[-5:]) if lines else "its log is empty"


@contextmanager
def serve(bench: Bench, data_dir: Path, *flags: str) -> Iterator[Served]:
    """A daemon on this data directory, serving with the run's embedder; ``flags`` as for ``memxd serve``.

    Gone when the block ends; at the end of one that succeeds it is stopped cleanly, so that the directory is whole for
    the next question. Raises RuntimeError with the end of the log when it does not start.
    """
    folder = Path(tempfile.mkdtemp(prefix="memxd-bench-"))
    served: Served | None = None
    try:
        _compile()
        with _undisturbed():
            served = _start(data_dir, folder, (() if bench.real_model else ("--embedder", "hashing")) + flags)
        served.seconds_to_serving = _wait_serving(served)
        yield served
        if served.process.poll() is None:
            served.stop()
    finally:
        if served is not None:
            served.kill()
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _compile() -> None:
    """Bytecode beside the sources, as an installer leaves it: else a checkout under PYTHONDONTWRITEBYTECODE would be
    compiled at each start, which takes a third of a second. A package that others own has it already."""
    compileall.compile_dir(_HOME / "memxd", quiet=2)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that would break off the block come after it: a process that was forked must be known, to be ended."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal's handler runs here
        return
    held: list[signal.Signals] = []
    before = {
        n: signal.signal(n, lambda number, _: held.append(signal.Signals(number)))
        for n in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in held:
            signal.raise_signal(number)


def _start(data_dir: Path, folder: Path, flags: Sequence[str]) -> Served:
    socket, log = folder / "memxd.sock", folder / "log"
    command = [sys.executable, "-m", "memxd", "serve", "--socket", str(socket), "--data-dir", str(data_dir), *flags]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, env=clean_environ(), stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, start_new_session=True
        )
    return Served(process, socket, log, float("nan"))


def _wait_serving(served: Served) -> float:
    """Seconds from now until SERVING; the process was forked just before."""
    began = time.perf_counter()
    while True:
        if served.process.poll() is not None:
            raise RuntimeError(f"the daemon ended with {served.process.returncode}; {served.last_lines()}")
        if is_serving(served.socket):
            return time.perf_counter() - began
        if time.perf_counter() - began > START_SECONDS:
            raise RuntimeError(f"the daemon does not serve after {START_SECONDS:g} s; {served.last_lines()}")
        time.sleep(_POLL)


def family(pid: int) -> list[int]:
    """The process and everything below it, parents first; empty when it is gone. Linux only."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        threads = [path.name for path in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []
    found = set(children.split())
    for thread in threads:  # a child belongs to the thread that forked it
        try:
            found |= set(Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii").split())
        except OSError:
            continue  # the thread has ended meanwhile
    return [pid, *(p for child in sorted(found, key=int) for p in family(int(child)))]


def pss_bytes(pid: int) -> int:
    """Proportional set size of one process in bytes; 0 when it is gone."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")), 0)


def cpu_ticks(pid: int) -> int:
    """User and system time of one process in clock ticks; 0 when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return sum(int(field) for field in stat.rpartition(")")[2].split()[11:13])
