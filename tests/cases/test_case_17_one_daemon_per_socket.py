"""Case 17: nobody takes a socket that is served; nobody is kept out by one that is not."""

from __future__ import annotations

import os
import signal
import socket as sockets
import time

import pytest

from casekit import Case, World, fresh_scope
from memxd.v1 import memory_service_pb2 as pb


def still_serves(case: Case) -> None:
    scope = fresh_scope()
    case.store(scope, "the first one serves")
    assert case.found(scope, "first one serves") == ["the first one serves"]
    with case.client(scope) as client:  # a connection made now, by the path
        assert client.count() == 1


def test_of_ten_started_at_once_one_serves_and_the_others_name_it(world: World) -> None:
    cases = [world.start(wait=False) for _ in range(10)]
    end = time.monotonic() + 60
    while sum(c.daemon.process.poll() is None for c in cases) > 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    (winner,) = [c for c in cases if c.daemon.process.poll() is None]
    winner.daemon.wait_serving()
    for loser in cases:
        if loser is not winner:
            assert loser.daemon.process.returncode == 75
            assert f"pid {winner.daemon.pid}" in loser.daemon.log
    still_serves(winner)


@pytest.mark.parametrize("mask", ["same", "relative", "symlink"])
def test_the_same_socket_by_another_name_is_the_same(world: World, mask: str) -> None:
    first = world.start()
    path = world.socket
    if mask == "symlink":
        link = world.folder / "link"
        link.symlink_to(world.socket.parent)
        path = link / world.socket.name
    elif mask == "relative":
        path = world.socket.parent / ".." / world.socket.parent.name / world.socket.name
    second = world.start(socket=path, data_dir=world.folder / "other", wait=False)
    assert second.daemon.wait() in (73, 75)
    assert second.daemon.wait() == 73 or f"pid {first.daemon.pid}" in second.daemon.log
    still_serves(first)


def test_the_second_ones_end_does_not_take_the_socket_away(world: World) -> None:
    first = world.start()
    inode = world.socket.stat().st_ino
    for _ in range(3):
        second = world.start(data_dir=world.folder / "other", wait=False)
        assert second.daemon.wait() == 75
        assert world.socket.stat().st_ino == inode
    still_serves(first)
    assert first.daemon.stop() == 0
    assert not world.socket.exists()


def test_a_second_one_while_the_first_is_still_starting(world: World) -> None:
    first = world.start(wait=False)
    lock_seen = time.monotonic() + 30
    while not world.socket.exists():
        assert time.monotonic() < lock_seen
        time.sleep(0.005)
    second = world.start(wait=False)
    assert second.daemon.wait() == 75
    first.daemon.wait_serving()
    still_serves(first)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_what_a_crash_leaves_behind_is_no_obstacle(world: World, number: int) -> None:
    scope = fresh_scope()
    first = world.start()
    stored = first.store(scope, "told before the crash")
    first.daemon.signal(number)
    first.daemon.wait()
    assert world.socket.exists(), "a stale socket"
    second = world.start()
    assert second.memory.Get(pb.GetRequest(scope=scope, id=stored.id), timeout=20).memory.content == stored.content
    still_serves(second)


def test_a_stale_socket_of_another_program_is_replaced(world: World) -> None:
    world.socket.parent.mkdir(mode=0o700)
    with sockets.socket(sockets.AF_UNIX) as stale:
        stale.bind(str(world.socket))
    assert world.socket.exists()
    still_serves(world.start())


def test_another_programs_living_socket_is_left_alone(world: World) -> None:
    world.socket.parent.mkdir(mode=0o700)
    with sockets.socket(sockets.AF_UNIX) as living:
        living.bind(str(world.socket))
        living.listen()
        refused = world.start(wait=False)
        assert refused.daemon.wait() in (73, 75)
        assert str(world.socket) in refused.daemon.log
        with sockets.socket(sockets.AF_UNIX) as visitor:
            visitor.connect(str(world.socket))


def test_a_lock_file_that_nobody_holds_says_nothing(world: World) -> None:
    """Not even when it names a process that lives."""
    first = world.start()
    locks = [p for p in (*world.socket.parent.iterdir(), *world.data_dir.iterdir()) if p.suffix == ".lock"]
    first.daemon.stop()
    assert locks
    for lock in locks:
        lock.write_text(f"{os.getpid()}\n")
    still_serves(world.start())


def test_a_stopped_one_frees_socket_and_data_for_the_next(world: World) -> None:
    for n in range(3):
        case = world.start()
        case.store(fresh_scope(), f"round {n}")
        assert case.daemon.stop() == 0


def test_clients_find_the_new_one_by_themselves(world: World) -> None:
    scope = fresh_scope()
    first = world.start()
    with first.client(scope) as client:
        client.store("before")
        first.daemon.signal(signal.SIGKILL)
        first.daemon.wait()
        world.start()
        client.wait_ready(20)
        assert [m.content for m in client.iter_list()] == ["before"]
