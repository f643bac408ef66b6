"""A first session with memx: no daemon runs, the first verb starts one, and the rest is asked and answered."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import commandkit
import pytest

Run = Callable[..., commandkit.Done]


@pytest.fixture
def memx(environ: dict[str, str]) -> Iterator[Run]:
    """Runs memx in a home of its own; the daemon it starts is stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="memx-") as folder:
        environment = environ | {
            "XDG_RUNTIME_DIR": folder,
            "XDG_DATA_HOME": f"{folder}/data",
            "XDG_CONFIG_HOME": f"{folder}/config",
            "MEMXD_EMBEDDER": "hashing",
        }

        def run(*words: str, stdin: str = "") -> commandkit.Done:
            return commandkit.memx(None, environment, *words, stdin=stdin)

        yield run
        daemon = json.loads(run("version", "--json").stdout)["daemon"]
        if daemon is not None:
            os.kill(daemon["pid"], signal.SIGTERM)
            with (Path(folder) / "data" / "memxd" / "memxd-data.lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # held until the last file is written


def test_a_first_session(memx: Run) -> None:
    assert memx("--no-start", "count").returncode == 4
    first = memx("add", "Ada drinks her coffee black.", "--tag", "coffee")
    assert (first.returncode, first.stderr) == (0, "")
    old = first.stdout.strip()
    assert memx("add", "-", stdin="用户喜欢喝咖啡\n").returncode == 0
    found = json.loads(memx("search", "Ada coffee", "--json").stdout)
    assert found["hits"][0]["memory"]["id"] == old
    unknown = memx("search", "zirconium quarks")
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("Nothing known")
    elsewhere = memx("search", "Ada coffee", "--user", "bob")
    assert elsewhere.returncode == 1
    assert "nothing in this scope" in elsewhere.stderr

    new = memx("add", "Ada drinks tea now.", "--supersedes", old).stdout.strip()
    assert "Ada drinks her coffee black." not in memx("list").stdout
    assert f"superseded by {new}" in memx("get", old).stdout
    assert memx("links", new).stdout.count("supersedes") == 1
    assert memx("edit", new, "--content", "-", stdin="Ada drinks green tea.").returncode == 0
    assert memx("get", new, "--content").stdout == "Ada drinks green tea.\n"
    assert memx("count").stdout == "2\n"
    assert "keyword\tready" in memx("status").stdout
    blank = memx("add", "  ")
    assert (blank.returncode, blank.stderr.count("\n")) == (2, 1)
    assert "memory.content" in blank.stderr
    assert memx("forget", new).returncode == 0
    assert memx("get", new).returncode == 3
    assert memx("count").stdout == "2\n"  # what it superseded is back
    assert memx("forget", "--all", "--agent", "default", "--user", "default", "--yes").stdout == "erased 2 memories\n"


def test_many_at_once_start_one_daemon(memx: Run) -> None:
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda i: memx("add", f"memory {i}"), range(20)))
    assert [(d.returncode, d.stderr) for d in done] == [(0, "")] * 20
    assert memx("count").stdout == "20\n"


def test_what_is_old_or_of_little_worth_is_set_aside_brought_back_and_erased(memx: Run) -> None:
    scope = ("--agent", "default", "--user", "default")
    for number, wanted in enumerate(("0.1", "0.2", "0.9")):
        assert memx("add", f"jotting {number}", "--importance", wanted).returncode == 0
    ended = memx("add", "an offer", "--valid-until", "2026-01-01").stdout.strip()
    assert memx("archive", "--importance-below", "0.5", "--dry-run").stdout.startswith("would archive 2 memories")
    assert memx("archive", "--importance-below", "0.5").stdout == "archived 2 memories\n"
    assert memx("count").stdout == "1\n"
    assert memx("count", "--expired").stdout == "1\n"
    assert memx("unarchive", "--importance-below", "0.15").stdout == "brought back 1 memory\n"
    assert memx("forget", "--expired", "--archive").stdout == "archived 1 memory\n"
    assert memx("unarchive", ended).stdout == "brought back 1 memory\n"
    looked = memx("forget", "--expired", "--dry-run", *scope)
    assert looked.stdout.splitlines()[0] == "would erase 1 memory, the oldest first:"
    assert ended in looked.stdout
    assert memx("forget", "--expired", "--yes", *scope).stdout == "erased 1 memory\n"
    assert memx("forget", "--older-than", "1d", "--yes", *scope).stdout == "erased 0 memories\n"
    assert memx("forget", "--state", "archived", "--yes", *scope).stdout == "erased 1 memory\n"
    assert memx("count").stdout == "2\n"
