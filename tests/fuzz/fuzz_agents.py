"""Many agents at once on one daemon, under rebuilds and flushes, stopped and killed in the middle.

Owns the phases of one such run and the last look after each. What an agent does is ``fuzz_actor``'s, what must then be
true is ``fuzz_model``'s. Called by the test and by ``fuzz_run``.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import struct_pb2

from fuzz_actor import Actor
from fuzz_daemon import Daemon
from fuzz_outcomes import SHARED_SCOPE, Shared
from memxd.v1 import admin_service_pb2 as admin
from memxd.v1 import admin_service_pb2_grpc, memory_service_pb2_grpc
from memxd.v1 import memory_service_pb2 as pb

AGENTS = 16
SECONDS = 60.0
#: Agents act at least so fast in all, however slow the machine.
CALLS_A_SECOND = 5.0
#: After so many calls the daemon is told this; None = it may wait until everybody has finished.
Phase = tuple[int, int | None]


def play(folder: Path, seed: int, phases: Sequence[Phase]) -> list[Actor]:
    """One run; the agents with their models. Raises AssertionError for whatever is not as it must be."""
    daemon, shared = Daemon(folder), Shared()
    actors = [Actor(number, seed, shared) for number in range(AGENTS)]
    try:
        daemon.start()
        prepare(daemon, shared)
        for calls, number in phases:
            act(daemon, actors, shared, calls, number)
            assert not shared.problems, "\n".join(shared.problems)
            if number is None:
                assert daemon.end() == 0
            daemon.start()
            check(daemon, actors, shared, counted=number is not signal.SIGKILL)
    finally:
        daemon.close()
    return actors


def prepare(daemon: Daemon, shared: Shared) -> None:
    """Store the counter that all agents increment."""
    with daemon.channel() as channel:
        metadata = struct_pb2.Struct()
        metadata.update({"n": 0})
        new = pb.NewMemory(content="the counter of all agents", metadata=metadata)
        rpc = memory_service_pb2_grpc.MemoryServiceStub(channel)
        shared.counter_id = rpc.Store(pb.StoreRequest(scope=SHARED_SCOPE, memory=new), timeout=SECONDS).memory.id


def act(daemon: Daemon, actors: list[Actor], shared: Shared, calls: int, number: int | None) -> None:
    """All agents at once, until so many calls are done; then the signal comes in the middle of the next ones."""
    stop = threading.Event()
    until = shared.calls + calls
    channels = [daemon.channel() for _ in range(AGENTS // 2)]
    threads = [threading.Thread(target=a.run, args=(channels[n // 2], stop)) for n, a in enumerate(actors)]
    threads.append(threading.Thread(target=disturb, args=(channels[0], stop, shared)))
    for thread in threads:
        thread.start()
    end = time.monotonic() + 60 + calls / CALLS_A_SECOND
    while shared.calls < until and not shared.problems and time.monotonic() < end:
        time.sleep(0.01)
    if number is not None:
        daemon.end(number)
    stop.set()
    for thread in threads:
        thread.join()
    for channel in channels:
        channel.close()
    assert shared.problems or shared.calls >= until, f"only {shared.calls} of {until} calls in time"


def disturb(channel: grpc.Channel, stop: threading.Event, shared: Shared) -> None:
    """Rebuild and flush, again and again."""
    rpc = admin_service_pb2_grpc.AdminServiceStub(channel)
    rng = random.Random(3)
    while not stop.wait(rng.uniform(0.05, 0.5)):
        try:
            if rng.random() < 0.5:
                rpc.Flush(admin.FlushRequest(), timeout=SECONDS)
            else:
                list(rpc.Rebuild(admin.RebuildRequest(kind=rng.randrange(4)), timeout=SECONDS))
        except grpc.RpcError as error:
            gone = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED)
            if error.code() not in gone:
                shared.problems.append(f"rebuild or flush: {error.code().name} {error.details()}")
                return


def check(daemon: Daemon, actors: list[Actor], shared: Shared, *, counted: bool) -> None:
    """Everything acknowledged is there, in every scope, by both legs; the shared memories tell one story."""
    with daemon.channel() as channel:
        rpc: Any = memory_service_pb2_grpc.MemoryServiceStub(channel)

        def check_one(actor: Actor) -> None:
            actor.model.settle(rpc, counted=counted)
            actor.model.check_everything(rpc)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(check_one, actors))
        counter = rpc.Get(pb.GetRequest(scope=SHARED_SCOPE, id=shared.counter_id), timeout=SECONDS).memory
        reached = int(counter.metadata["n"])
        assert shared.increments <= reached <= shared.increments + shared.open_increments
        shared.increments, shared.open_increments = reached, 0
        facts = rpc.List(pb.ListRequest(scope=SHARED_SCOPE), timeout=SECONDS).memories
        found = {m.content: m for m in facts if m.id != counter.id}
        assert len(found) == len(facts) - 1, "an equal text became two memories"
        for content, id in shared.fact_ids.items():
            assert found[content].id == id
            assert shared.fact_tags[content] <= set(found[content].tags)
