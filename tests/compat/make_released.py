"""Makes the database of a released schema, once, by the released code itself: a daemon, a client, a kill.

    git worktree add /tmp/released v0.1.0 && cd /tmp/released && python setup.py build_ext --inplace
    PYTHONPATH=/tmp/released python .../tests/compat/make_released.py .../tests/compat/schema-1

Run it for every release whose schema is a new one, before the next migration is written, and commit the two files:
``schema-N.tar.gz`` (memxd.db, and the log that the kill left) and ``schema-N.json`` (what must be found in it). Never
make one of them anew: that is the point of it.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from memxd import __version__
from memxd.client import Client

QUESTIONS = {
    "default": ["coffee without sugar", "notice period", "咖啡", "draft of the plan", "only in the log"],
    "coder/ada": ["the release is cut on Fridays", "café by the river"],
}


@contextmanager
def served(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon on ``folder``, by the code that PYTHONPATH names."""
    command = [sys.executable, "-m", "memxd", "serve", "--socket", str(folder / "run" / "m.sock")]
    command += ["--data-dir", str(folder / "data"), "--embedder", "hashing"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMX", "XDG_"))}
    with subprocess.Popen(command, env=kept | {"HOME": str(folder)}) as daemon:
        try:
            yield daemon
        finally:
            daemon.kill()


def client(folder: Path, **scope: str) -> Client:
    """A client that waits until the daemon serves."""
    made = Client(folder / "run" / "m.sock", **scope)
    end = time.monotonic() + 30
    while not (folder / "run" / "m.sock").exists() and time.monotonic() < end:
        time.sleep(0.05)
    made.wait_ready(30)
    return made


def at(text: str) -> int:
    """A time in microseconds."""
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


def fill(mine: Client, other: Client) -> None:
    """Something of everything that the schema has a place for."""
    coffee = mine.store("She drinks her coffee without sugar.", tags=["taste", "Ünïcode"], importance=0.75).memory
    mine.update(coffee.id, content="She drinks her coffee without sugar, mostly.", metadata={"cup": 2, "hot": True})
    mine.update(coffee.id, tags=["taste"])
    notice = mine.store("The notice period is 2 months.", type="semantic").memory
    newer = mine.store("The notice period is 3 months.", supersedes=[notice.id]).memory
    asian = mine.store("用户喜欢喝咖啡", source="chat", event_at=at("2026-01-02T03:04:05Z")).memory
    mine.store("A draft of the plan.", valid_until=at("2999-01-01T00:00:00Z"))
    mine.store("Ended long ago.", valid_until=at("2020-01-01T00:00:00Z"))
    put_away = mine.store("Put away, not thrown away.").memory
    mine.update(put_away.id, state="archived")
    mine.store("The code is 1234.", private=True)
    mine.store("Seen <private>but not this</private> by nobody else.")
    erased = mine.store("Erased for good.").memory
    mine.delete(erased.id)
    mine.create_link(coffee.id, asian.id, "related", strength=0.5, bidirectional=True)
    mine.create_link(newer.id, coffee.id, "caused_by", metadata={"why": "none"})
    other.store("The release is cut on Fridays.", type="procedural")
    other.store("They met in the café by the river.", type="episodic", event_at=at("2025-06-01T12:00:00Z"))
    for _ in range(3):
        mine.get(coffee.id)
    mine.search("coffee without sugar", k=2)


def facts(folder: Path, mine: Client, other: Client) -> dict[str, Any]:
    """What must be found again."""
    mine.flush()
    time.sleep(2)  # counters are written every second
    lines = {
        name: [
            json.loads(line)
            for line in b"".join(s.lines for s in view.export(include_private=True, vectors=True)).splitlines()
        ]
        for name, view in (("default", mine), ("coder/ada", other))
    }
    status = mine.status()
    return {
        "memxd": __version__,
        "schema": status.engine.schema_version,
        "revision": status.engine.revision,
        "lines": lines,
        "questions": QUESTIONS,
    }


def main() -> None:
    """Make both files."""
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="mxr-") as name, ExitStack() as stack:
        folder = Path(name)
        first = stack.enter_context(served(folder))
        with client(folder) as mine, client(folder, agent_id="coder", user_id="ada") as other:
            fill(mine, other)
        first.send_signal(signal.SIGTERM)
        first.wait(30)
        second = stack.enter_context(served(folder))
        with client(folder) as mine, client(folder, agent_id="coder", user_id="ada") as other:
            retried = {"content": "Stored once, only in the log.", "request_id": "retry-me"}
            answered = mine.store(**retried).memory
            told = facts(folder, mine, other) | {"retried": retried | {"id": answered.id}, "at": time.time_ns() // 1000}
            second.kill()
            second.wait(30)
        data = folder / "data"
        assert (data / "memxd.db-wal").stat().st_size > 0
        with tarfile.open(f"{out}.tar.gz", "w:gz") as archive:
            for file in ("memxd.db", "memxd.db-wal"):
                archive.add(data / file, file)
        raw = sqlite3.connect(data / "memxd.db")
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
        told["tables"] = {
            table: raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for (table,) in raw.execute(tables).fetchall()
        }
        raw.close()
        Path(f"{out}.json").write_text(json.dumps(told, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
