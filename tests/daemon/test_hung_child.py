"""A child process that hangs (stopped by a signal, stuck in the kernel) costs nobody but itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from memxd.v1 import admin_service_pb2 as admin
from memxd.v1 import memory_service_pb2 as pb

KEYWORD = admin.IndexKind.INDEX_KIND_KEYWORD

WORKERS = 2
FLAGS = ("--workers", str(WORKERS), "--drain-seconds", "1")


def _children(daemon: Any, word: str) -> list[int]:
    """The ids of the daemon's child processes whose command line holds ``word``."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, parent, *args in rows if int(parent) == daemon.pid and args and word in args[0]]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _await_child(daemon: Any, word: str) -> int:
    end = time.monotonic() + 20
    while not (found := _children(daemon, word)):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found[0]


@contextmanager
def _stopped(pid: int) -> Iterator[int]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        if _alive(pid):
            os.kill(pid, signal.SIGKILL)


def _store(daemon: Any, text: str) -> None:
    daemon.memory.Store(pb.StoreRequest(memory=pb.NewMemory(content=text)), timeout=10)


@pytest.fixture
def hung(start_daemon: Any) -> Iterator[Any]:
    """A daemon with two workers, something to flush, and an index writer that hangs; (daemon, the writer's pid)."""
    daemon = start_daemon(*FLAGS)
    _store(daemon, "one")
    daemon.admin.Flush(admin.FlushRequest(), timeout=30)
    with _stopped(_await_child(daemon, "lexical.worker")) as pid:
        _store(daemon, "two, not durable in the keyword index")
        yield daemon, pid


def test_flushes_end_at_their_deadline_and_give_their_workers_back(hung: Any) -> None:
    daemon, _ = hung
    calls = [daemon.admin.Flush.future(admin.FlushRequest(), timeout=1) for _ in range(4 * WORKERS)]
    assert {call.code() for call in calls} == {grpc.StatusCode.DEADLINE_EXCEEDED}
    _store(daemon, "answered")
    time.sleep(1)  # what was queued behind them has seen its deadline too
    retry = daemon.admin.Flush.future(admin.FlushRequest(), timeout=1)
    assert retry.code() is grpc.StatusCode.DEADLINE_EXCEEDED, "refused: the former ones still hold their places"


def test_maintenance_without_a_deadline_leaves_the_workers_and_streams_to_others(hung: Any) -> None:
    daemon, _ = hung
    calls = [daemon.admin.Flush.future(admin.FlushRequest()) for _ in range(4 * WORKERS)]
    time.sleep(0.3)
    _store(daemon, "answered meanwhile")
    assert daemon.admin.Status(admin.StatusRequest(), timeout=10).memories == 3
    items = iter([pb.StoreManyRequest(memory=pb.NewMemory(content="a stream meanwhile"))])
    assert [each.WhichOneof("result") for each in daemon.memory.StoreMany(items, timeout=10)] == ["stored"]
    for call in calls:
        call.cancel()


def test_the_stop_does_not_wait_for_it(hung: Any) -> None:
    daemon, pid = hung
    call = daemon.admin.Flush.future(admin.FlushRequest())
    time.sleep(0.3)
    daemon.signal()
    assert daemon.wait(40) == 0
    assert call.code() is not grpc.StatusCode.OK
    assert not _alive(pid)


def test_the_stop_does_not_wait_for_a_rebuild_whose_child_hangs(start_daemon: Any) -> None:
    daemon = start_daemon(*FLAGS)
    _store(daemon, "one")
    progress = daemon.admin.Rebuild(admin.RebuildRequest(kind=KEYWORD))
    with _stopped(_await_child(daemon, "keyword/new")) as pid:
        daemon.signal()
        assert daemon.wait(40) == 0
        assert not _alive(pid)
    with pytest.raises(grpc.RpcError):
        list(progress)


def test_a_cancelled_rebuild_ends_its_child(start_daemon: Any) -> None:
    daemon = start_daemon(*FLAGS)
    _store(daemon, "one")
    progress = daemon.admin.Rebuild(admin.RebuildRequest(kind=KEYWORD))
    with _stopped(_await_child(daemon, "keyword/new")) as pid:
        progress.cancel()
        end = time.monotonic() + 10
        while _alive(pid):
            assert time.monotonic() < end
            time.sleep(0.02)
    last = list(daemon.admin.Rebuild(admin.RebuildRequest(kind=KEYWORD), timeout=30))[-1]
    assert last.finished
    assert daemon.stop() == 0
