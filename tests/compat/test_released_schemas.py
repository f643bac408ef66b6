"""A database of every schema that was ever released is opened by today's daemon, with everything that was in it.

The files were made by the released code itself (make_released.py), the newest memories only in the log that a kill
left. A release with a new schema adds its own file; none is ever made anew.
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import casekit
from memxd.client import Client
from memxd.model import SECOND
from memxd.store import Store, migrating, schema

HERE = Path(__file__).parent
NEWEST = len(schema.MIGRATIONS)
#: What the questions find first, by whichever leg.
ANSWERS = {
    "coffee without sugar": "She drinks her coffee without sugar, mostly.",
    "notice period": "The notice period is 3 months.",
    "咖啡": "用户喜欢喝咖啡",
    "draft of the plan": "A draft of the plan.",
    "only in the log": "Stored once, only in the log.",
    "the release is cut on Fridays": "The release is cut on Fridays.",
    "café by the river": "They met in the café by the river.",
}


@dataclass(frozen=True)
class Released:
    """A released schema, and what its database must hold."""

    version: int
    facts: dict[str, Any]

    def unpack(self, data: Path) -> None:
        """Its database as the data directory of a daemon that was killed."""
        data.mkdir(mode=0o700)
        with tarfile.open(HERE / f"schema-{self.version}.tar.gz") as archive:
            archive.extractall(data, filter="data")


RELEASED = [
    Released(int(path.stem.removeprefix("schema-")), json.loads(path.read_text(encoding="utf-8")))
    for path in sorted(HERE.glob("schema-*.json"))
]


@pytest.fixture(params=RELEASED, ids=lambda released: f"schema-{released.version}")
def released(request: pytest.FixtureRequest) -> Released:
    found: Released = request.param
    return found


@pytest.fixture
def world() -> Iterator[casekit.World]:
    with casekit.world() as made:
        yield made


def test_every_released_schema_has_its_file_and_says_what_it_is(released: Released, tmp_path: Path) -> None:
    released.unpack(tmp_path / "data")
    assert (tmp_path / "data" / "memxd.db-wal").stat().st_size > 0
    raw = sqlite3.connect(tmp_path / "data" / "memxd.db")
    assert raw.execute("PRAGMA user_version").fetchone() == (released.version,) == (released.facts["schema"],)
    raw.close()
    assert (HERE / f"schema-{released.version}.tar.gz").stat().st_size < 100_000
    assert released.version <= NEWEST


def test_the_first_schema_is_among_them() -> None:
    assert [released.version for released in RELEASED][:1] == [1]


def holds(now: Any, then: Any) -> bool:
    """Whether everything of ``then`` is in ``now``, which may say more."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and holds(now[key], value) for key, value in then.items())
    return bool(now == then)


def exported(client: Client) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in b"".join(s.lines for s in client.export(include_private=True, vectors=True)).splitlines()
    ]


def test_a_daemon_of_today_finds_everything(released: Released, world: casekit.World) -> None:
    released.unpack(world.data_dir)
    world.start()
    for name, lines in released.facts["lines"].items():
        agent, _, user = name.partition("/")
        scope = {"agent_id": agent, "user_id": user} if user else {}
        with Client(world.socket, **scope) as client:
            found = exported(client)
            assert len(found) == len(lines)
            for now, then in zip(found, lines, strict=True):
                assert holds(now, then)
            for question in released.facts["questions"][name]:
                for mode in ("vector", "keyword"):
                    answer = client.search(question, mode=mode, k=5)
                    assert not answer.degraded
                    assert answer.hits[0].memory.content == ANSWERS[question], (mode, question)
            status = client.status()
            # What superseded and links say follows from the rows; nothing was revised by the update.
            assert (status.engine.revision, status.engine.schema_version) == (released.facts["revision"], NEWEST)
            assert list(client.verify())[-1].problems == ()
    copies = migrating.copies(world.data_dir)
    assert len(copies) == (released.version < NEWEST)


def test_request_ids_are_answered_as_before(released: Released, tmp_path: Path) -> None:
    """Within the day that they hold: the clock is the one of then."""
    released.unpack(tmp_path / "data")
    retried, at = released.facts["retried"], released.facts["at"]
    store = Store.open(tmp_path / "data", clock=lambda: at + 3_600 * SECOND, ids=str)
    try:
        with store.read() as read:
            [(scope_no, rpc)] = read._connection.execute(
                "SELECT scope_no, rpc FROM requests WHERE request_id = ?", (retried["request_id"],)
            ).fetchall()
            remembered = read.recall(scope_no, rpc, retried["request_id"])
            assert remembered is not None
            assert retried["id"] in remembered.answer
            assert read.problems() == []
            for table, rows in released.facts["tables"].items():
                [now] = read._connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                assert now >= rows, table
    finally:
        store.close()
