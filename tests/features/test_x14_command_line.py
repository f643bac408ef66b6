"""FEATURES X14: the verbs of the command line, each as a process of its own against the running daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from featurekit import World, world
from memxd.client import Client

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    with world() as place:
        place.serve()
        yield place


@pytest.fixture
def memx(made: World) -> Run:
    """``memx`` with the daemon's socket, another data directory that must stay untouched, and no right to start one."""
    environ = made.environ | {"MEMXD_SOCKET": str(made.socket), "MEMXD_DATA_DIR": str(made.folder / "untouched")}

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memxd.cli", "--no-start", *words]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=environ, timeout=60, check=False
        )

    return run


def test_x14_every_verb_is_a_client_of_the_socket(made: World, memx: Run) -> None:
    """X14: add, search, get, list, edit, forget, count, link, links, status, version, completion; better: the parent's
    tool opened the database beside the server, ours leaves the data directory alone and both see the same at once."""
    id = memx("add", "Ada drinks tea.", "--tag", "drink").stdout.strip()
    other = memx("add", "-", stdin="The tea is from Assam.").stdout.strip()
    with made.client() as client:
        assert client.get(id, record_access=False).content == "Ada drinks tea."
        third = client.store("Tea needs four minutes.").memory.id

    assert "Ada drinks tea." in memx("search", "what does Ada drink").stdout
    explained = json.loads(memx("search", "Ada drinks", "--explain", "--json").stdout)
    assert explained["hits"][0]["memory"]["id"] == id
    assert explained["hits"][0]["explanation"]["semantic"]
    assert "Ada drinks tea." in memx("get", id).stdout
    assert third in memx("list", "--json").stdout
    assert memx("count").stdout == "3\n"
    assert memx("link", id, "related", other, "--strength", "0.4").returncode == 0
    assert "0.40" in memx("links", id).stdout
    assert memx("edit", id, "--content", "Ada drinks coffee.").returncode == 0
    assert memx("search", "coffee").returncode == 0
    assert memx("forget", id).returncode == 0
    assert memx("get", id).returncode == 3
    status = memx("status", "--json")
    assert json.loads(status.stdout)["pid"] == made.started[0].pid
    assert json.loads(memx("version", "--json").stdout)["daemon"]["pid"] == made.started[0].pid
    assert "memx" in memx("completion", "bash").stdout
    assert not (made.folder / "untouched").exists()


def test_x14_scopes_by_flags_and_environment(made: World, memx: Run) -> None:
    """X14, E1: --agent and --user choose the scope; another one sees nothing."""
    assert memx("add", "secret of bob", "--agent", "a", "--user", "bob").returncode == 0
    assert memx("count", "--agent", "a", "--user", "bob").stdout == "1\n"
    assert memx("count", "--agent", "a").stdout == "0\n"
    with Client(made.socket, agent_id="a", user_id="bob") as client:
        assert client.count() == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [(("search", "zirconium quarks"), 1), (("add", " "), 2), (("get", "not-an-id"), 2), (("nonsense",), 2)],
)
def test_x14_exit_codes_mean_something(memx: Run, words: tuple[str, ...], code: int) -> None:
    """X14: 0 done, 1 nothing known, 2 wrong use; one line on standard error, no traceback."""
    done = memx(*words)
    assert done.returncode == code
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_x14_serve_stops_in_order(world: World) -> None:
    """X14: `memxd serve` serves in the foreground and exits 0 on SIGTERM; its socket is gone."""
    daemon = world.serve()
    assert daemon.stop() == 0
    assert not world.socket.exists()
