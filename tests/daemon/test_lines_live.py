"""Export and import by the commands, as docs/OPERATIONS.md has them, and by the asyncio client."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from commandkit import memx

from memxd.client import AsyncClient, Client
from memxd.errors import InvalidArgumentError
from memxd.v1 import memory_service_pb2 as pb


def test_every_scope_moves_to_another_store(
    daemon: Any, start_daemon: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "all.jsonl"
    with Client(daemon.socket) as client:
        for user in ("ada", "bob"):
            view = client.scope(user_id=user)
            view.store(f"{user} drinks her coffee black.")
            view.store("The code is 1234.", private=True)
    done = memx(daemon, environ, "export", str(file), "--every-scope")
    assert (done.returncode, done.stderr) == (
        0, "4 lines (2 memories, 0 versions, 0 links) exported\n"
        "2 private ones were left out; --include-private takes them along\n",
    )  # fmt: skip
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert memx(daemon, environ, "export", str(file)).returncode == 2
    assert memx(daemon, environ, "export", str(file), "--every-scope", "--force").returncode == 0
    other = start_daemon(socket=tmp_path / "run2" / "memxd.sock", data_dir=tmp_path / "data2")
    told = memx(other, environ, "import", str(file))
    assert (told.returncode, told.stdout) == (
        0, "4 lines (2 memories, 0 versions, 0 links): 2 added, 0 unchanged, 0 replaced, 0 kept, 0 refused\n",
    )  # fmt: skip
    assert memx(other, environ, "export", "-", "--every-scope").stdout == file.read_text()
    assert memx(other, environ, "count", "--user", "bob").stdout == "1\n"
    one = memx(other, environ, "import", "-", "--here", "--agent", "both", "--json", stdin=file.read_text())
    assert json.loads(one.stdout)["added"] == 2
    assert memx(other, environ, "count", "--agent", "both").stdout == "2\n"


def test_refused_lines_are_told_and_an_import_goes_on_behind_a_line(daemon: Any, environ: dict[str, str]) -> None:
    with Client(daemon.socket) as client:
        for content in ("one", "two"):
            view = client.scope(agent_id="first")
            view.store(content)
        lines = b"".join(step.lines for step in view.export()).decode().splitlines()
    text = "\n".join([lines[0], lines[1].replace('"one"', '" "'), lines[2]])
    done = memx(daemon, environ, "import", "-", "--here", stdin=text)
    assert done.returncode == 5
    assert done.stderr.startswith("line 2 (memory ")
    assert "content: must not be blank" in done.stderr
    assert (
        done.stdout
        == "3 lines (2 memories, 0 versions, 0 links): 1 added, 0 unchanged, 0 replaced, 0 kept, 1 refused\n"
    )
    rest = memx(daemon, environ, "import", "-", "--here", "--from-line", "3", "--json", stdin=text)
    assert json.loads(rest.stdout) == {
        "lines": 3, "memories": 1, "versions": 0, "links": 0,
        "added": 0, "unchanged": 1, "replaced": 0, "kept": 0, "refused": 0, "refusals": [],
    }  # fmt: skip
    assert memx(daemon, environ, "import", "/nowhere/at/all").returncode == 2


def test_the_asyncio_client_moves_lines_and_copies_the_store(daemon: Any, tmp_path: Path) -> None:
    async def move() -> tuple[Any, Any, Any]:
        async with AsyncClient(daemon.socket) as client:
            await client.store("one")
            lines = b"".join([step.lines async for step in client.export(vectors=True)]).splitlines()
            view = client.scope(user_id="other")
            steps = [step async for step in view.import_lines(lines)]
            copies = [step async for step in client.backup(tmp_path / "copy")]
            return lines, steps, copies

    lines, steps, copies = asyncio.run(move())
    assert len(lines) == 2
    assert (steps[-1].added, steps[-1].lines) == (1, 2)
    assert (copies[-1].finished, copies[-1].memories) == (True, 2)


def test_what_the_callers_own_iterator_raises_is_raised_after_what_came_before(daemon: Any) -> None:
    with Client(daemon.socket) as client:
        client.store("one")
        [_, line] = b"".join(step.lines for step in client.export()).splitlines()

        def lines() -> Any:
            yield line
            raise OSError("the disk is gone")

        told: list[int] = []
        steps = client.scope(user_id="other").import_lines(lines())
        with pytest.raises(OSError, match="gone"):
            told.extend(step.added for step in steps)
        assert told == [1]
        with pytest.raises(InvalidArgumentError, match="on_conflict"):
            list(client.import_lines([line], on_conflict="whatever"))
    assert list(daemon.memory.Import(iter([pb.ImportRequest(lines=b"\n\n")]), timeout=20))[-1].lines == 2


@pytest.mark.parametrize(
    "header",
    [
        {"format": "memxd-export", "version": True},
        {"format": "memxd-export", "version": "1"},
        {"format": "memxd-export", "version": 2},
        {"format": "memxd-export"},
        {"format": 1, "version": 1},
        {"version": 1},
    ],
)
def test_a_header_that_is_not_ours_ends_the_import_before_any_line(daemon: Any, header: dict[str, Any]) -> None:
    lines = [json.dumps({"kind": "header", **header}).encode(), b'{"kind":"memory","id":"x","content":"y"}']
    with Client(daemon.socket) as client:
        with pytest.raises(InvalidArgumentError, match=r"header\."):
            list(client.import_lines(lines))
        assert client.count() == 0


def test_a_line_that_is_too_long_for_any_message_is_refused_in_its_place(daemon: Any) -> None:
    good = {"kind": "memory", "content": "Ada drinks tea.", "created_at": "2026-01-01T00:00:00Z"}
    good["id"] = "01a22d6e-5fc4-792f-a869-b2f63b6bc9bd"
    with Client(daemon.socket) as client:
        steps = list(client.import_lines([b"x" * 5_000_000, json.dumps(good).encode()]))
        refusals = [refusal for step in steps for refusal in step.refusals]
        assert [(refusal.line, "more than" in refusal.message) for refusal in refusals] == [(1, True)]
        assert (steps[-1].added, client.count()) == (1, 1)
