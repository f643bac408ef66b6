"""Kill after kill on one data directory: which point comes next, what is done to reach it, what is checked afterwards.

Owns the schedule, the operator who flushes, rebuilds, backs up and compacts beside the clients, the rounds of a restore
and of a migration, and the tally. Used by ``torture_run`` (``make torture``) and by the test that runs twenty kills.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from memxd.failpoints import POINTS
from memxd.v1 import admin_service_pb2 as admin_pb
from torture_check import check
from torture_client import Client
from torture_model import Verdict
from torture_process import Kill, Process

CLIENTS = 4
#: Seconds of load after which a point that was not reached counts as missed.
PATIENCE = 30.0
RANDOM = "at random"
STARTING = "while starting"
#: What the operator does all the time, so that a point comes by; "" = the clients alone reach it.
OPERATION = {
    "checkpoint": "compact", "file": "flush", "vector.data": "flush", "vector.swap": "rebuild",
    "vector.swapped": "rebuild", "keyword": "flush",
    "keyword.moved": "rebuild", "keyword.replaced": "rebuild", "backup": "backup", "compact": "compact",
}  # fmt: skip
#: Points of which one process comes by many: not always the first time.
OFTEN = {"embedded": 30, "commit.before": 30, "commit.after": 30, "commit.index": 90, "commit.told": 30, "file": 4}


@dataclass
class Row:
    """What came of the kills at one point."""

    kills: int = 0
    missed: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    restarts: list[float] = field(default_factory=list)


def schedule(points: Sequence[str], seed: int) -> Iterator[str]:
    """Which point is next, without end: all of them in turn, in another order each time. What lies behind others (a
    restore's last step, a copy that is whole) stands first, so that a short run comes by every place."""
    order = random.Random(f"schedule {seed}")
    first = [p for p in ("restore.replaced", "migration.done", "backup.copied", "compact.rebuilt") if p in points]
    first += [p for p in points if p.startswith(("vector", "keyword", "checkpoint")) or p == RANDOM]
    yield from first
    left = [p for p in points if p not in first]
    while True:
        order.shuffle(left)
        yield from left
        left = list(points)


class Torture:
    """One run. ``told`` is called with a line about each kill."""

    def __init__(self, folder: Path, seed: int, embedder: str = "hashing", told: Callable[[str], None] = print) -> None:
        self.process = Process(folder, embedder)
        self.clients = [Client(number, seed) for number in range(CLIENTS)]
        self.table: dict[str, Row] = {}
        self._random = random.Random(f"rounds {seed}")
        self._told = told
        self._seed = seed
        self._backups = folder / "backups"
        self._backups.mkdir()
        self._number = 0

    @property
    def failed(self) -> bool:
        """Whether anything is not as it must be."""
        return any(row.verdict for row in self.table.values()) or any(c.problems for c in self.clients)

    def run(self, kills: int, points: Sequence[str]) -> None:
        """So many kills, then an orderly stop and a last look."""
        order = schedule(points, self._seed)
        following = next(order)
        self.process.start(self._kill_at(following))
        for number in range(kills):
            point, following = following, next(order)
            self._round(point, following)
            row = self.table[point]
            trouble = " FAILED" if row.verdict else ""
            self._told(f"{number + 1}/{kills} {point}: served again after {row.restarts[-1]:.2f} s{trouble}")
            if self.failed:
                return
        code = self.process.stop()
        row = self.table.setdefault("orderly stop", Row())
        if code != 0:
            row.verdict.mismatches.append(f"exit code {code} after SIGTERM")
        row.restarts.append(self.process.start())
        row.verdict.add(check(self.process, self.clients))

    def close(self) -> None:
        """Leave nothing running."""
        self.process.kill()

    # -- one round ---------------------------------------------------------------------------------------------------

    def _round(self, point: str, following: str) -> None:
        """Die at one point, start again armed for the one that follows, compare."""
        row = self.table.setdefault(point, Row())
        if point.startswith("restore."):
            self._restore(point, row)
        elif point.startswith("migration."):
            self._migration(point, row)
        elif point == STARTING:
            self._starting(row)
        else:
            self._load(point, row)
        row.kills += 1
        row.restarts.append(self.process.start(self._kill_at(following)))
        row.verdict.add(check(self.process, self.clients))

    def _load(self, point: str, row: Row) -> None:
        """Clients and operator at work until the daemon is gone."""
        stop = threading.Event()
        operations = self._operation(point)
        working = [threading.Thread(target=c.run, args=(self.process.memory, stop)) for c in self.clients]
        working.append(threading.Thread(target=self._operate, args=(operations, self.process.admin, stop)))
        for thread in working:
            thread.start()
        if point == RANDOM:
            time.sleep(self._random.uniform(0.05, 1.5))
        else:
            self.process.trigger.touch()
            if self.process.wait(PATIENCE) is None:
                row.missed += 1
                row.verdict.mismatches.append(f"{point} was not reached in {PATIENCE} s")
        self.process.kill()
        stop.set()
        for thread in working:
            thread.join()
        self.process.trigger.unlink(missing_ok=True)
        for client in self.clients:
            row.verdict.mismatches += client.problems
            client.problems = []

    def _kill_at(self, point: str) -> Kill:
        """How the daemon is to die, once the trigger is there; a restore and a migration are other processes."""
        if point not in POINTS or point.startswith(("restore.", "migration.")):
            return Kill()
        most = OFTEN.get(point, OFTEN.get(point.partition(".")[0], 1))
        late = point in ("keyword.asked", "checkpoint.before", "backup.copying")
        delay = self._random.uniform(0.0, 0.05) if late and self._random.random() < 0.7 else 0.0
        return Kill(point, self._random.randint(1, most), delay)

    def _operation(self, point: str) -> list[str]:
        if point == RANDOM:
            return ["flush", "rebuild", "backup", "compact"]
        what = OPERATION.get(point, OPERATION.get(point.partition(".")[0], ""))
        return [what] if what else []

    def _operate(self, operations: Sequence[str], admin: Any, stop: threading.Event) -> None:
        """The operator: one of these after the other until the daemon is gone."""
        chance = random.Random(self._random.random())
        while operations and not stop.is_set():
            what = chance.choice(operations)
            with suppress(grpc.RpcError):  # the daemon is gone, or a flush met a rebuild
                if what == "flush":
                    admin.Flush(admin_pb.FlushRequest(), timeout=30)
                elif what == "rebuild":
                    list(admin.Rebuild(admin_pb.RebuildRequest(kind=chance.randint(1, 3)), timeout=60))
                elif what == "compact":
                    list(admin.Compact(admin_pb.CompactRequest(), timeout=60))
                else:
                    self._backup(admin)
            stop.wait(0.02)

    def _backup(self, admin: Any) -> Path:
        """A backup in a folder of its own; earlier ones go."""
        for old in self._backups.iterdir():
            shutil.rmtree(old)
        self._number += 1
        folder = self._backups / str(self._number)
        list(admin.Backup(admin_pb.BackupRequest(directory=str(folder)), timeout=60))
        return folder

    # -- processes that are killed while nobody is served --------------------------------------------------------------

    def _restore(self, point: str, row: Row) -> None:
        """A backup, some changes, kill -9, and a restore that is killed: all is as before it, or as in the backup."""
        folder = self._backup(self.process.admin)
        then = [client.model.copy() for client in self.clients]
        self._work(0.4)
        self.process.trigger.touch()
        done = self.process.memx(Kill(point), "restore", str(folder), "--move-aside")
        self.process.trigger.unlink()
        if done.returncode != -9:
            row.missed += 1
            row.verdict.mismatches.append(f"{point} was not reached: {done.returncode} {done.stderr}")
        if point == "restore.replaced":
            for client, model in zip(self.clients, then, strict=True):
                client.model = model

    def _work(self, seconds: float) -> None:
        """Clients alone for so long, then kill -9."""
        stop = threading.Event()
        working = [threading.Thread(target=c.run, args=(self.process.memory, stop)) for c in self.clients]
        for thread in working:
            thread.start()
        time.sleep(seconds)
        self.process.kill()
        stop.set()
        for thread in working:
            thread.join()

    def _migration(self, point: str, row: Row) -> None:
        """The next start finds a schema that is one version older than its own, and is killed in the middle."""
        self._work(0.3)
        self.process.steps += 1
        self.process.trigger.touch()
        self.process.begin(Kill(point))
        if self.process.wait(PATIENCE) is None:
            row.missed += 1
            row.verdict.mismatches.append(f"{point} was not reached")
        self.process.kill()
        self.process.trigger.unlink()

    def _starting(self, row: Row) -> None:
        """Killed once more while it starts."""
        self._work(0.3)
        self.process.begin()
        self.process.wait(self._random.uniform(0.3, 2.0))
        self.process.kill()


def all_points() -> list[str]:
    """What can be named: every failpoint, and the two kinds of chance."""
    return [*POINTS, RANDOM, STARTING]
