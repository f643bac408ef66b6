"""The fuzzer from the command line: ``make fuzz ARGS="--seed 7 --seconds 600"``.

Prints what it did and what it found; the exit code is 1 when it found something.
Owns the order of one run, which the test shares: start, guard, attack, settle, look, restart, look again.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fuzz_agents import play
from fuzz_daemon import Daemon, Vitals
from fuzz_index import World, rounds
from fuzz_inputs import SORTS, attack, save
from fuzz_session import THREADS, Session

WHAT = ("all", "requests", "agents", "inputs", "index", "graph", *SORTS)
#: Beyond what a fresh daemon holds: its pools grow to their limits and stay.
EXTRA_THREADS = 8 + 64 + 2 + 4 + 16
EXTRA_FILES = 40
#: What the daemon may hold while attacked: every thread may have the largest message in several forms.
PEAK_MIB = 700.0


def run(folder: Path, seed: int, count: int, seconds: float) -> Session:
    """One whole run; the session holds findings and tally."""
    daemon = Daemon(folder)
    try:
        daemon.start("--log-level", "debug")
        session = Session(daemon, seed)
        session.prepare()
        before, pid = daemon.vitals(), daemon.pid
        session.attack(count, seconds)
        _look(session, daemon, pid, before)
        session.close()
        _restart(session, daemon)
    finally:
        daemon.close()
    return session


def _look(session: Session, daemon: Daemon, pid: int, before: Vitals) -> None:
    """Whether the daemon is as it should be after an attack."""
    find = session.judge.find
    if not daemon.running or daemon.pid != pid:
        find("daemon", f"it died:\n{daemon.log[-3_000:]}")
        return
    if not daemon.serving():
        find("daemon", "it does not serve any more")
        return
    for problem in session.guard.problems():
        find("guard", problem)
    after = session.settle(before.threads + EXTRA_THREADS)
    session.samples.append(after)
    if after.threads > before.threads + EXTRA_THREADS:
        find("daemon", f"{before.threads} threads became {after.threads}")
    if after.files > before.files + EXTRA_FILES:
        find("daemon", f"{before.files} open files became {after.files}")
    if after.peak_mib > PEAK_MIB:
        find("daemon", f"it took {after.peak_mib:.0f} MiB")
    session.judge.log(daemon.log)


def _restart(session: Session, daemon: Daemon) -> None:
    """It stops cleanly, and everything guarded is there again."""
    if not daemon.running:
        return
    code = daemon.end()
    if code != 0:
        session.judge.find("daemon", f"exit code {code} after SIGTERM:\n{daemon.log[-3_000:]}")
    drained = [line for line in daemon.log.splitlines() if '"draining"' in line]
    if not drained or json.loads(drained[-1]) | {"calls": 0, "streams": 0} != json.loads(drained[-1]):
        session.judge.find("daemon", f"calls or streams outlived their callers: {drained}")
    daemon.start()
    with daemon.channel() as channel:
        again = session.guard.on(channel)
        for problem in again.problems():
            session.judge.find("guard after restart", problem)


def report(session: Session, seconds: float) -> str:
    """What was done and what came of it."""
    by_call: dict[str, Counter[str]] = {}
    for (what, outcome), times in session.judge.tally.items():
        by_call.setdefault(what, Counter())[outcome] += times
    lines = [f"seed {session.seed}: {session.steps} steps on {THREADS} connections in {seconds:.0f} s"]
    lines += [
        f"  {what:<26}" + "  ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common())
        for what, outcomes in sorted(by_call.items())
    ]
    if session.samples:
        top = [max(getattr(s, name) for s in session.samples) for name in ("threads", "files", "peak_mib")]
        last = session.samples[-1]
        lines.append(f"  daemon: at most {top[0]} threads, {top[1]} files, {top[2]:.0f} MiB; ")
        lines[-1] += f"in the end {last.threads} threads, {last.files} files, {last.rss_mib:.0f} MiB"
    lines.append(f"{len(session.judge.findings)} findings")
    return "\n".join([*lines, *session.judge.findings[:40]])


def agents(seed: int, count: int, seconds: float) -> int:
    """Run after run, each with a seed of its own, until ``seconds`` or ``count`` calls are over or a run fails."""
    began, calls = time.monotonic(), 0
    phases = ((1_000, signal.SIGTERM), (1_000, signal.SIGKILL), (1_000, signal.SIGKILL), (1_000, None))
    while (not count or calls < count) and (not seconds or time.monotonic() - began < seconds):
        with tempfile.TemporaryDirectory(prefix="memxd-fuzz-") as folder:
            actors = play(Path(folder), seed, phases)
        calls += sum(number for number, _ in phases)
        held = sum(len(actor.model.records) for actor in actors)
        print(f"seed {seed}: {len(actors)} agents, {held} memories in the end, all as they must be", flush=True)
        seed += 1
    return 0


def inputs(names: Sequence[str], seed: int, seconds: float) -> int:
    """Files that are read: each sort for its share of the time; what breaks something is kept in the corpus."""
    found = 0
    with tempfile.TemporaryDirectory(prefix="memxd-fuzz-") as folder:
        for name in names:
            for data, problem in attack(SORTS[name], Path(folder), seed, seconds=seconds / len(names)):
                found += 1
                print(f"{problem}\n  kept as {save(SORTS[name], data)}", flush=True)
            print(f"seed {seed}: {name} files for {seconds / len(names):.0f} s", flush=True)
    return 1 if found else 0


def index(seed: int, count: int, seconds: float, *, graph: bool) -> int:
    """Damaged index files, a daemon started on them each time."""
    found, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memxd-fuzz-") as folder:
        world = World(Path(folder), graph=graph)
        left = max(1.0, seconds - (time.monotonic() - began)) if seconds else 0.0
        for problem in rounds(world, seed, count=count, seconds=left):
            found += 1
            print(problem, flush=True)
    print(f"seed {seed}: damaged index files for {time.monotonic() - began:.0f} s, {found} findings", flush=True)
    return 1 if found else 0


def requests(seed: int, count: int, seconds: float) -> int:
    """Random and damaged requests, and garbage at the socket."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memxd-fuzz-") as folder:
        session = run(Path(folder), seed, count, seconds)
    print(report(session, time.monotonic() - began))
    return 1 if session.judge.findings else 0


def everything(seed: int, seconds: float) -> int:
    """All of it, a part of the time each."""
    return max(
        requests(seed, 0, seconds * 0.4),
        agents(seed, 0, seconds * 0.1),
        inputs(list(SORTS), seed, seconds * 0.2),
        index(seed, 0, seconds * 0.3, graph=False),
    )


def main() -> int:
    """Parse, run, report."""
    parser = argparse.ArgumentParser(description="Attack a daemon, and what reads files, with what nobody sane sends.")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="default: a new one")
    parser.add_argument(
        "--seconds", type=float, default=300.0, help="how long at most; 0 = until --count (default 300)"
    )
    parser.add_argument("--count", type=int, default=0, help="how many steps at most; 0 = until --seconds (default)")
    parser.add_argument("--what", choices=WHAT, default="all", help="what is attacked (default: all of it)")
    parser.add_argument("--agents", action="store_true", help="the same as --what agents")
    wanted = parser.parse_args()
    if not wanted.seconds and not wanted.count:
        parser.error("give --seconds or --count")
    what = "agents" if wanted.agents else wanted.what
    print(f"seed {wanted.seed}", flush=True)
    if what == "all":
        return everything(wanted.seed, wanted.seconds or 300.0)
    if what == "requests":
        return requests(wanted.seed, wanted.count, wanted.seconds)
    if what == "agents":
        return agents(wanted.seed, wanted.count, wanted.seconds)
    if what in ("index", "graph"):
        return index(wanted.seed, wanted.count, wanted.seconds, graph=what == "graph")
    return inputs(list(SORTS) if what == "inputs" else [what], wanted.seed, wanted.seconds or 60.0)


if __name__ == "__main__":
    sys.exit(main())
