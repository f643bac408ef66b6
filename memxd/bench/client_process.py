"""One client process of a load: ``python -m memxd.bench.client_process``, told by JSON lines on standard input.

Owns the closed loop of its threads: each sends a search or a store, waits for the answer, sends the next. Latencies are
taken around memxd's own blocking client, so they hold what a caller sees. Threads of one process share one channel, as
threads of an agent would. Decides nothing: texts, shares and times come in the job. Started by ``load.py`` only.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path

from memxd.client import NO_RETRY, Client, rank
from memxd.errors import MemxdError, OverloadedError

#: The stores' vectors are drawn, the questions' are the model's own: far from each other, so that every question would
#: be refused as unknown, and a refusal is cheaper than an answer.
SHOW_ALL = rank(reject=False)


@dataclass(frozen=True, slots=True)
class Load:
    """What to put on a daemon: ``clients`` closed loops for ``seconds``.

    ``store_share``: share of calls that store, 0..1. ``distinct``: no question is asked twice; else all clients ask the
    first ``repeated`` over and over, their vectors cached. ``pause``: seconds that a client waits after a refusal.
    ``processes``: how many processes the clients share at most.
    """

    clients: int
    seconds: float
    store_share: float = 0.0
    distinct: bool = True
    repeated: int = 64
    pause: float = 0.02
    seed: int = 0
    processes: int = 16


@dataclass(frozen=True, slots=True)
class Job:
    """One process's part of a load: ``threads`` clients, the first of which is number ``first``.

    ``texts``: a file with one text a line, of which client c of n takes every n-th.
    """

    socket: str
    agent: str
    user: str
    texts: str
    threads: int
    first: int


@dataclass(slots=True)
class Tally:
    """What one client saw: (seconds since the start, milliseconds) for each answered search, store and refusal."""

    searches: list[tuple[float, float]] = field(default_factory=list)
    stores: list[tuple[float, float]] = field(default_factory=list)
    refusals: list[tuple[float, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class _Loop(threading.Thread):
    """One closed loop."""

    def __init__(self, load: Load, client: Client, number: int, texts: list[str], go: threading.Event) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self._load, self._client, self._number, self._texts, self._go = load, client, number, texts, go
        self.tally = Tally()

    def run(self) -> None:
        load, chance = self._load, random.Random(self._load.seed * 1_000_003 + self._number)
        asked = stored = 0
        self._go.wait()
        began = time.perf_counter()
        while (since := time.perf_counter() - began) < load.seconds:
            if chance.random() < load.store_share:
                text = f"{self._texts[stored % len(self._texts)]} {self._number} {stored}"
                stored += 1
                self._call(self.tally.stores, since, partial(self._client.store, text))
            else:
                text = self._texts[asked % len(self._texts)]
                asked += 1
                search = partial(self._client.search, text, ranking=SHOW_ALL, record_retrieval=False)
                self._call(self.tally.searches, since, search)

    def _call(self, into: list[tuple[float, float]], since: float, call: Callable[[], object]) -> None:
        began = time.perf_counter()
        try:
            call()
        except OverloadedError:
            into = self.tally.refusals
        except MemxdError as error:
            self.tally.failures.append(f"{error.reason}: {error.message}"[:200])
            return
        into.append((round(since, 4), round((time.perf_counter() - began) * 1e3, 4)))
        if into is self.tally.refusals:
            time.sleep(self._load.pause)


def work(job: Job, load: Load) -> list[Tally]:
    """Connect and warm up, say "ready", wait for a line, run every loop to its end; what each client saw."""
    lines = Path(job.texts).read_text(encoding="utf-8").splitlines()
    go = threading.Event()
    with Client(job.socket, agent_id=job.agent, user_id=job.user, timeout=60.0, retry=NO_RETRY) as client:
        loops = [
            _Loop(load, client, n, lines[n :: load.clients] if load.distinct else lines[: load.repeated], go)
            for n in range(job.first, job.first + job.threads)
        ]
        for loop in loops:
            loop.start()
        client.wait_ready(60.0)  # connects, and is never one call too many
        for text in lines[: load.repeated] if job.first == 0 and not load.distinct else ():
            client.search(text, record_retrieval=False)  # from now on their vectors are cached
        print("ready", flush=True)
        sys.stdin.readline()
        go.set()
        for loop in loops:
            loop.join()
    return [loop.tally for loop in loops]


def main() -> None:
    """Read the job, do it, print the tallies as one line of JSON."""
    told = json.loads(sys.stdin.readline())
    mine = {field.name: told.pop(field.name) for field in fields(Job)}
    print(json.dumps([asdict(tally) for tally in work(Job(**mine), Load(**told))]), flush=True)


if __name__ == "__main__":
    main()
