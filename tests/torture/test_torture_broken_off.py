"""kill -9 in the middle of a backup and of a restore: no half is taken for a whole, and the old data is never worse."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2
from memxd.v1 import memory_service_pb2 as pb
from torture_process import Kill, Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SCOPE = memory_pb2.Scope(agent_id="broken", user_id="off")


@pytest.fixture
def process() -> Iterator[Process]:
    with tempfile.TemporaryDirectory(prefix="mxb-") as folder:
        made = Process(Path(os.path.realpath(folder)))
        yield made
        made.kill()


def store(process: Process, *contents: str) -> None:
    for content in contents:
        request = pb.StoreRequest(scope=SCOPE, memory=pb.NewMemory(content=content))
        process.memory.Store(request, timeout=30)


def held(process: Process) -> set[str]:
    listed = process.memory.List(pb.ListRequest(scope=SCOPE, page_size=500), timeout=30)
    return {memory.content for memory in listed.memories}


def sound(process: Process) -> bool:
    *_, last = process.admin.Verify(admin_pb.VerifyRequest(), timeout=60)
    return not last.problems


@pytest.mark.parametrize("point", ["backup.copying", "backup.copied"])
def test_a_backup_that_was_broken_off_is_not_taken_for_one(process: Process, point: str) -> None:
    process.trigger.touch()
    process.start(Kill(point))
    store(process, "one fact", "another fact")
    folder = process.folder / "copy"
    with pytest.raises(grpc.RpcError):
        list(process.admin.Backup(admin_pb.BackupRequest(directory=str(folder)), timeout=30))
    assert process.wait(10) == -9
    for command in (("restore", str(folder), "--verify"), ("restore", str(folder), "--move-aside")):
        refused = process.memx(Kill(), *command)
        assert refused.returncode != 0
        assert "broken off" in refused.stderr
    process.start()
    assert held(process) == {"one fact", "another fact"}
    assert sound(process)


@pytest.mark.parametrize(
    ("point", "hit"), [("restore.checked", 1), ("restore.moving", 1), ("restore.moving", 2), ("restore.replaced", 1)]
)
def test_a_restore_that_was_broken_off_leaves_the_old_data_or_the_new(process: Process, point: str, hit: int) -> None:
    process.start()
    store(process, "before the backup")
    folder = process.folder / "copy"
    list(process.admin.Backup(admin_pb.BackupRequest(directory=str(folder)), timeout=30))
    store(process, "after the backup")
    process.kill()
    process.trigger.touch()
    killed = process.memx(Kill(point, hit), "restore", str(folder), "--move-aside")
    process.trigger.unlink()
    done = killed.returncode == 0  # the log was folded and is gone: nothing was left to be moved a second time
    assert done or killed.returncode == -9, killed.stderr
    process.start()
    new = done or point == "restore.replaced"
    assert held(process) == {"before the backup"} | (set() if new else {"after the backup"})
    assert sound(process)
    process.kill()
    again = process.memx(Kill(), "restore", str(folder), "--move-aside")
    assert again.returncode == 0, again.stderr
    process.start()
    assert held(process) == {"before the backup"}
    assert sound(process)
