"""Case 25: what is exported and imported into an empty store is exported again as the same bytes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

import pytest

from casekit import Case, World
from memxd.client import Client
from memxd.errors import InvalidArgumentError
from memxd.model import ImportStep
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

SCOPE = {"agent_id": "coder", "user_id": "Ada Lovelace"}


def client_of(case: Case) -> Client:
    return Client(case.daemon.socket, **SCOPE, timeout=60)


def another(world: World) -> Case:
    """A second daemon, on a store of its own."""
    return world.start(socket=world.folder / "run2" / "memxd.sock", data_dir=world.folder / "data2")


def fill(client: Client) -> dict[str, str]:
    """A scope with everything an export has to carry; ids by what they are."""
    old = client.store("Ada drinks her coffee black.", tags=["coffee", "Müsli"], importance=0.1 + 0.2).memory.id
    new = client.store("Ada drinks tea now.", supersedes=[old], event_at=1_770_000_000_000_001).memory.id
    edited = client.store("Trains leave at noon.", metadata={"n": 1, "x": [1.5, None, {"é": True}]}).memory.id
    client.update(edited, content="Trains leave at one.", tags=["train"])
    client.update(edited, content="Trains leave at two. 火车\u2028", importance=1.0, valid_until=4_000_000_000_000_000)
    archived = client.store("Old address: 5 Long Lane", type="procedural", source="letter.txt").memory.id
    client.update(archived, state="archived")
    hidden = client.store("The code is 1234.", private=True).memory.id
    client.create_link(new, edited, "related", strength=1 / 3, bidirectional=True, metadata={"why": "both of Ada"})
    client.create_link(hidden, edited, "caused_by")
    for _ in range(3):
        client.get(edited)
    client.search("when do trains leave")
    client.flush()
    return {"old": old, "new": new, "edited": edited, "archived": archived, "hidden": hidden}


def exported(client: Client, **wishes: Any) -> bytes:
    return b"".join(step.lines for step in client.export(**wishes))


def taken(client: Client, data: bytes | Iterable[bytes], **wishes: Any) -> ImportStep:
    lines = data.splitlines(keepends=True) if isinstance(data, bytes) else data
    *_, last = client.import_lines(lines, **wishes)
    return last


@pytest.mark.parametrize("vectors", [False, True], ids=["embedded anew", "with vectors"])
def test_a_round_trip_is_equal_byte_for_byte(world: World, vectors: bool) -> None:
    here, there = world.start(), another(world)
    with client_of(here) as source, client_of(there) as target:
        ids = fill(source)
        data = exported(source, include_private=True, vectors=vectors)
        lines = [json.loads(line) for line in data.splitlines()]
        assert [line["kind"] for line in lines].count("version") == 2
        assert (b'"chunks"' in data) == vectors
        done = taken(target, data)
        assert (done.refused, done.added, done.lines) == (0, len(lines) - 1, len(lines))
        assert exported(target, include_private=True, vectors=vectors) == data
        assert target.get(ids["old"], record_access=False).superseded_by == ids["new"]
        assert target.get(ids["edited"], record_access=False).access_count == 3
        again = taken(target, data)
        assert (again.unchanged, again.added, again.refused) == (len(lines) - 1, 0, 0)
        for mode in ("vector", "keyword"):
            hits = target.search("Trains leave at two", mode=mode).hits
            assert hits[0].memory.id == ids["edited"], mode
    assert [i.entries for i in there.admin.Status(admin_pb.StatusRequest(), timeout=20).indexes] == [
        i.entries for i in here.admin.Status(admin_pb.StatusRequest(), timeout=20).indexes
    ]


def test_private_memories_stay_and_what_they_superseded_does_not_come_back(world: World) -> None:
    here, there = world.start(), another(world)
    with client_of(here) as source, client_of(there) as target:
        ids = fill(source)
        secret = source.store("Ada drinks mate now.", private=True, supersedes=[ids["new"]]).memory.id
        *_, last = source.export()
        data = exported(source)
        assert (last.finished, last.private_left_out, last.done) == (True, 2, 4)
        assert b"mate" not in data
        assert b"1234" not in data
        assert secret.encode() not in data
        assert taken(target, data).refused == 0
        assert exported(target) == data
        assert "Ada drinks tea now." not in [m.content for m in target.iter_list()]
        assert taken(source, data).refused == 0  # home again, it changes nothing


def test_each_refused_line_is_told_with_its_number_and_reason(world: World) -> None:
    case = world.start()
    with Client(case.daemon.socket, agent_id="refused", user_id=str(uuid.uuid4())) as client:
        good = line(content="good")
        bad = [
            b"{",
            b"[]",
            b'{"kind":"poem"}',
            line(content="   "),
            line(id="no uuid"),
            line(surprise=1),
            line(created_at="yesterday"),
            line(created_at="2026-01-01T00:00:00"),
            line(importance=2),
            line(tags="coffee"),
            line(access_count=-1),
            line(access_count=True),
            line(state="superseded"),
            line(content=None),
            b'{"kind":"memory","id":"' + b"x" * 3_000_000 + b'"}',
            line(content="x" * 70_000),
            b'{"kind":"memory","content":"\\ud800"}',
            b"[" * 100_000,
            line(metadata={"a": float("inf")}),
            link(source_id=str(uuid.uuid4())),
        ]
        steps = list(client.import_lines([good, b"", *bad, line(content="good as well")]))
        last = steps[-1]
        refusals = [refusal for step in steps for refusal in step.refusals]
        assert [refusal.line for refusal in refusals] == list(range(3, 3 + len(bad)))
        assert all(refusal.reason and refusal.message for refusal in refusals)
        assert {refusal.reason for refusal in refusals[:-1]} == {"INVALID_ARGUMENT"}
        assert refusals[-1].reason == "MEMORY_NOT_FOUND"
        assert (last.added, last.refused, last.lines) == (2, len(bad), len(bad) + 3)
        assert client.count() == 2


def line(**fields: Any) -> bytes:
    whole = {"kind": "memory", "id": str(uuid.uuid4()), "content": "text", "created_at": "2026-01-01T00:00:00Z"}
    return json.dumps(whole | fields).encode()


def link(**fields: Any) -> bytes:
    whole = {"kind": "link", "id": str(uuid.uuid4()), "source_id": str(uuid.uuid4()), "target_id": str(uuid.uuid4())}
    return json.dumps(whole | {"type": "related", "created_at": "2026-01-01T00:00:00Z"} | fields).encode()


def test_an_id_that_is_taken_is_refused_kept_or_replaced(world: World) -> None:
    case = world.start()
    with Client(case.daemon.socket, agent_id="conflict", user_id=str(uuid.uuid4())) as client:
        id, other = str(uuid.uuid4()), str(uuid.uuid4())
        first = line(id=id, content="the first text", tags=["a"], metadata={"k": 1})
        assert taken(client, [first, line(id=other), link(source_id=id, target_id=other)]).added == 3
        client.update(id, content="changed here")
        second = line(id=id, content="the second text", access_count=7)
        version = json.dumps(
            {
                "kind": "version", "memory_id": id, "number": 1, "content": "an earlier text",
                "updated_at": "2026-01-01T00:00:00Z", "replaced_at": "2026-01-02T00:00:00Z",
            }
        ).encode()  # fmt: skip
        refused = taken(client, [second, version])
        assert (refused.refused, [r.reason for r in refused.refusals]) == (
            2, ["MEMORY_ALREADY_EXISTS", "MEMORY_NOT_FOUND"],
        )  # fmt: skip
        assert taken(client, [second, version], on_conflict="keep").kept == 2
        assert client.get(id, record_access=False).content == "changed here"
        done = taken(client, [second, version], on_conflict="replace")
        assert (done.replaced, done.added, done.refused) == (1, 1, 0)
        found = client.get(id, record_access=False)
        assert (found.content, found.tags, found.access_count) == ("the second text", (), 7)
        assert [hit.memory.id for hit in client.search("the second text").hits][:1] == [id]
        assert client.search("changed here", mode="keyword").hits == ()
        assert len(client.list_links(id).links) == 1
        assert exported(client).count(b'"version","memory_id"') == 1


def test_a_file_of_another_kind_ends_the_import(world: World) -> None:
    case = world.start()
    with Client(case.daemon.socket, agent_id="header") as client:
        for header in ({"format": "other", "version": 1}, {"format": "memxd-export", "version": 2}, {}):
            with pytest.raises(InvalidArgumentError, match="header"):
                taken(client, [json.dumps({"kind": "header", **header}).encode(), line()])
        assert client.count() == 0


def test_the_raw_calls_answer_as_the_contract_says(world: World) -> None:
    case = world.start()
    scope = mem.Scope(agent_id="raw", user_id="raw")
    request = pb.ImportRequest(scope=scope, first_line=10, lines=line() + b"\n" + line())
    [answer] = case.memory.Import(iter([request]), timeout=60)
    assert (answer.lines, answer.added) == (11, 2)
    parts = list(case.memory.Export(pb.ExportRequest(scope=scope), timeout=60))
    assert parts[-1].finished
    assert b"".join(part.lines for part in parts).count(b"\n") == 3
    assert list(case.memory.Import(iter([]), timeout=60)) == []
