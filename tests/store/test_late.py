"""Rows kept for a transaction's end: seen where they are asked for, gone with the function that made them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from memxd.store.late import Late, Request


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(
        "PRAGMA foreign_keys = ON;"
        "CREATE TABLE changes(revision INTEGER PRIMARY KEY, rid, at, parts, dead_vids);"
        "CREATE TABLE requests(request_no INTEGER PRIMARY KEY, scope_no, rpc, request_id, body_hash, answer,"
        " created_at, UNIQUE(scope_no, rpc, request_id));"
        "CREATE TABLE request_rids(rid, request_no REFERENCES requests(request_no) ON DELETE CASCADE);"
    )
    yield made
    made.close()


def _request(id: str, answer: str, rid: int = 1) -> Request:
    return Request((1, "Store", id), b"body", answer, 0, (rid, rid))


def _answers(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return connection.execute(
        "SELECT answer, rid FROM requests JOIN request_rids USING (request_no) ORDER BY request_no"
    ).fetchall()


def test_what_waits_is_recalled_and_written_once(connection: sqlite3.Connection) -> None:
    late = Late(connection)
    late.add_change(1, 7, 0, 3, None)
    late.add_request(_request("a", "first"))
    waiting = late.recall((1, "Store", "a"))
    assert waiting is not None
    assert waiting.answer == "first"
    late.write()
    late.write()
    assert late.recall((1, "Store", "a")) is None  # the database has it
    assert _answers(connection) == [("first", 1)]
    assert connection.execute("SELECT revision, rid FROM changes").fetchall() == [(1, 7)]


def test_a_function_taken_back_leaves_what_others_made_even_when_it_made_them_be_written(
    connection: sqlite3.Connection,
) -> None:
    late = Late(connection)
    connection.execute("BEGIN")
    late.add_change(1, 7, 0, 3, None)
    late.add_request(_request("a", "kept"))
    mark = late.mark()
    connection.execute("SAVEPOINT member")
    late.add_change(2, 8, 0, 3, None)
    late.add_request(_request("b", "taken back"))
    late.write()
    connection.execute("ROLLBACK TO member")
    late.back_to(mark)
    assert late.recall((1, "Store", "a")) is not None
    assert late.recall((1, "Store", "b")) is None
    late.write()
    connection.execute("COMMIT")
    assert _answers(connection) == [("kept", 1)]
    assert connection.execute("SELECT revision FROM changes").fetchall() == [(1,)]


def test_an_expired_answer_to_the_same_id_gives_way_with_its_memories(connection: sqlite3.Connection) -> None:
    for answer, rid in (("old", 1), ("new", 2)):
        late = Late(connection)
        late.add_request(_request("a", answer, rid))
        late.write()
    assert _answers(connection) == [("new", 2)]
    assert connection.execute("SELECT rid FROM request_rids").fetchall() == [(2,)]
