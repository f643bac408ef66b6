"""Many clients at once, in processes of their own, and what they saw together.

Owns starting the client processes (``client_process.py``), letting them begin at one moment, and collecting their
tallies. Up to sixteen clients are one process each; more share sixteen processes as threads, because a Python client
takes a core share of its own that would otherwise be measured as the daemon's. Called by the questions that need more
than one caller.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memxd.bench.client_process import Job, Load
from memxd.bench.served import Served, clean_environ

#: Seconds beyond the load itself that a client may take to start and to end.
_GRACE = 120.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """What all clients saw together. Arrays float64[n, 2]: seconds since the start, milliseconds of the call."""

    seconds: float
    searches: Floats
    stores: Floats
    refusals: Floats
    failures: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Answered calls a second, searches and stores together."""
        return (len(self.searches) + len(self.stores)) / self.seconds

    @property
    def search_ms(self) -> Floats:
        """Latency of each answered search."""
        return self.searches[:, 1]

    @property
    def store_ms(self) -> Floats:
        """Latency of each answered store."""
        return self.stores[:, 1]


def put_load(served: Served, texts: Sequence[str], load: Load) -> Seen:
    """Run the load to its end. Client c of n takes every n-th text, so that no two ask the same.

    Raises RuntimeError when a client fails in a way that is neither an answer nor a refusal for overload.
    """
    with running_load(served, texts, load) as collect:
        return collect()


@contextmanager
def running_load(served: Served, texts: Sequence[str], load: Load) -> Iterator[_Collect]:
    """The load, running beside the block; call what it yields to wait for its end. No client outlives the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="memxd-load-")))
        file = folder / "texts"
        file.write_text("\n".join(" ".join(text.split()) for text in texts), encoding="utf-8")
        processes = [_start(stack) for _ in range(min(load.clients, load.processes))]
        shares = [len(part) for part in np.array_split(np.arange(load.clients), len(processes))]
        firsts = np.cumsum([0, *shares[:-1]]).tolist()
        for process, threads, first in zip(processes, shares, firsts, strict=True):
            job = Job(str(served.socket), *served.whose, str(file), threads, first)
            _tell(process, json.dumps(asdict(job) | asdict(load)))
        for process in processes:
            if _hear(process) != "ready":
                raise RuntimeError("a client process did not start")
        for process in processes:
            _tell(process, "go")
        yield _Collect(processes, load)


class _Collect:
    """Waits for the clients' tallies."""

    def __init__(self, processes: list[subprocess.Popen[str]], load: Load) -> None:
        self._processes, self._load = processes, load

    def __call__(self) -> Seen:
        """Everything that was seen; raises RuntimeError for a client that failed."""
        tallies = []
        for process in self._processes:
            out, _ = process.communicate(timeout=self._load.seconds + _GRACE)
            if process.returncode != 0:
                raise RuntimeError(f"a client process ended with {process.returncode}")
            tallies.extend(json.loads(out))
        failures = tuple(text for tally in tallies for text in tally["failures"])
        searches, stores, refusals = (
            _rows([row for tally in tallies for row in tally[kind]]) for kind in ("searches", "stores", "refusals")
        )
        return Seen(self._load.seconds, searches, stores, refusals, failures)


def _rows(rows: list[list[float]]) -> Floats:
    return np.array(sorted(map(tuple, rows)), np.float64).reshape(-1, 2)


def _start(stack: ExitStack) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "memxd.bench.client_process"]
    process = subprocess.Popen(
        command, env=clean_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
