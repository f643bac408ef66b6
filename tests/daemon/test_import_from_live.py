"""`memx import --from`: files of other systems, as those systems write them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from commandkit import memx

from memxd.client import Client
from memxd.model import MemoryType

ONE, TWO = "3f0c9a52-1111-4a6e-9a52-000000000001", "3f0c9a52-1111-4a6e-9a52-000000000002"


def taken_over(daemon: Any, environ: dict[str, str], system: str, file: Path) -> Any:
    done = memx(daemon, environ, "import", str(file), "--from", system, "--json")
    return json.loads(done.stdout) if done.stdout else done


def memx_database(path: Path) -> Path:
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE memories(id TEXT PRIMARY KEY, content TEXT NOT NULL, embedding F32_BLOB(4), type TEXT NOT NULL,
          tags TEXT, metadata TEXT, importance REAL DEFAULT 0.5, access_count INTEGER DEFAULT 0,
          last_accessed_at INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
          retrieval_count INTEGER DEFAULT 0, last_retrieved_at INTEGER);
        CREATE TABLE memory_links(id TEXT PRIMARY KEY, source_id TEXT NOT NULL, target_id TEXT NOT NULL,
          link_type TEXT NOT NULL, strength REAL DEFAULT 0.7, bidirectional INTEGER DEFAULT 1, metadata TEXT,
          created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
    """)
    add = "INSERT INTO memories VALUES (?, ?, x'00', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    database.execute(add, (ONE, "Ada drinks coffee.", "episodic", '["tea","b"]', '{"a":1}', 0.9, 2, 1_700_000_100,
                           1_700_000_000, 1_700_000_050, 3, None))  # fmt: skip
    database.execute(add, (TWO, "  ", "semantic", "[]", None, 0.5, 0, None, 1_700_000_000, 1_700_000_000, 0, None))
    database.execute(add, ("not-a-uuid", "Bob likes tea.", "other", None, None, 0.5, 0, None,
                           1_700_000_000, 1_700_000_000, 0, None))  # fmt: skip
    database.execute("INSERT INTO memory_links VALUES ('l1', ?, 'not-a-uuid', 'extends', 0.4, 1, NULL, 1700000000, 0)",
                     (ONE,))  # fmt: skip
    database.commit()
    database.close()
    return path


def test_a_memx_database(daemon: Any, environ: dict[str, str], tmp_path: Path) -> None:
    file = memx_database(tmp_path / "memx.db")
    done = taken_over(daemon, environ, "memx", file)
    assert (done["added"], done["refused"], done["refusals"][0]["id"]) == (3, 1, TWO)
    with Client(daemon.socket) as client:
        found = client.get(ONE, record_access=False)
        assert (found.type, found.tags, found.metadata, found.importance) == (
            MemoryType.EPISODIC, ("b", "tea"), {"a": 1}, 0.9,
        )  # fmt: skip
        assert (found.created_at, found.access_count, found.retrieval_count) == (1_700_000_000_000_000, 2, 3)
        [link] = client.list_links(ONE).links
        assert (link.type.name, link.strength, link.bidirectional) == ("EXTENDS", 0.4, True)
        assert client.search("Ada coffee").hits[0].memory.id == ONE
    again = taken_over(daemon, environ, "memx", file)
    assert (again["added"], again["unchanged"], again["refused"]) == (0, 3, 1)


@pytest.mark.parametrize("form", ["copy", "list", "lines"])
def test_rows_of_memex(daemon: Any, environ: dict[str, str], tmp_path: Path, form: str) -> None:
    rows = [
        {"id": ONE, "agent_id": "a", "user_id": "u", "content": "one\tline\nnext", "memory_type": "episodic",
         "importance": 1.0, "created_at": "2026-01-02 03:04:05.5+00"},
        {"id": "17", "agent_id": "b", "user_id": "u", "content": "two", "memory_type": "semantic",
         "importance": 2.0, "created_at": "2026-01-02 03:04:05+00"},
    ]  # fmt: skip
    if form == "copy":
        cells = ["\t".join(str(v).replace("\t", "\\t").replace("\n", "\\n") for v in row.values()) for row in rows]
        head = f"COPY public.memories ({', '.join(rows[0])}) FROM stdin;"
        text = "\n".join(["SET x;", head, *cells, "\\.", ""])
    else:
        text = json.dumps(rows) if form == "list" else "\n".join(map(json.dumps, rows))
    file = tmp_path / "memex"
    file.write_text(text)
    assert taken_over(daemon, environ, "memex", file)["added"] == 2
    with Client(daemon.socket, agent_id="a", user_id="u") as client:
        found = client.get(ONE, record_access=False)
        assert (found.content, found.importance, found.created_at) == ("one\tline\nnext", 0.5, 1_767_323_045_500_000)
        assert [m.importance for m in client.scope(agent_id="b").iter_list()] == [1.0]


def test_a_graph_of_the_mcp_memory_server(daemon: Any, environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "memory.json"
    records = [
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["speaks French", "likes tea"]},
        {"type": "entity", "name": "Anthem", "entityType": "company", "observations": []},
        {"type": "relation", "from": "Ada", "to": "Anthem", "relationType": "works_at"},
    ]
    file.write_text("\n".join(map(json.dumps, records)))
    assert taken_over(daemon, environ, "mcp-memory", file)["added"] == 6
    with Client(daemon.socket) as client:
        contents = {m.content: m for m in client.iter_list()}
        assert contents.keys() == {"Ada: speaks French", "Ada: likes tea", "Anthem (company)", "Ada works at Anthem"}
        ends = client.list_links(contents["Ada works at Anthem"].id).links
        assert {link.target_id for link in ends} == {
            contents["Ada: speaks French"].id, contents["Anthem (company)"].id,
        }  # fmt: skip
    records[0]["observations"].append("plays chess")  # type: ignore[attr-defined]
    file.write_text("\n".join(map(json.dumps, records)))
    again = taken_over(daemon, environ, "mcp-memory", file)
    assert (again["added"], again["refused"]) == (1, 0)


def test_an_export_of_mem0(daemon: Any, environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    row = {
        "id": ONE, "memory": "Likes hiking", "hash": "x", "user_id": "u", "metadata": {"k": 1},
        "categories": ["sport"], "created_at": "2024-07-26T10:29:36.630547-07:00", "updated_at": None,
    }  # fmt: skip
    file.write_text(json.dumps({"results": [row]}))
    assert taken_over(daemon, environ, "mem0", file)["added"] == 1
    with Client(daemon.socket, user_id="u") as client:
        found = client.get(ONE, record_access=False)
        assert (found.content, found.tags, found.metadata) == ("Likes hiking", ("sport",), {"k": 1})
        assert found.created_at == 1_722_014_976_630_547


@pytest.mark.parametrize("system", ["memx", "memex", "mcp-memory", "mem0"])
def test_a_file_of_something_else_is_refused_in_one_line(
    daemon: Any, environ: dict[str, str], tmp_path: Path, system: str
) -> None:
    file = tmp_path / "something"
    file.write_text("{]")
    done = taken_over(daemon, environ, system, file)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert taken_over(daemon, environ, system, tmp_path / "missing").returncode == 2
