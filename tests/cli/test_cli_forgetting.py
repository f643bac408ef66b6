"""memx forget, archive, unarchive: what is selected, what is asked, what can be had back, what is sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from scripted import refuse

from memxd.cli import undoing
from memxd.v1 import memory_pb2, memory_service_pb2

pb = memory_service_pb2
MEMORY = memory_pb2.Memory(
    id="0190c2d0-0000-7000-8000-000000000001", content="first line\nsecond \x1b[31mline", type=2, state=1, revision=5,
    created_at=Timestamp(seconds=1_700_000_000), updated_at=Timestamp(seconds=1_700_000_000),
    metadata={"year": 2026},
)  # fmt: skip


@pytest.fixture
def store(server: Any) -> Any:
    server.on("Get", lambda r, c: pb.GetResponse(memory=MEMORY, revision=5))
    server.on("Update", lambda r, c: pb.UpdateResponse(memory=MEMORY, revision=6))
    server.on("Delete", lambda r, c: pb.DeleteResponse(revision=6))
    server.on("DeleteMany", lambda r, c: pb.DeleteManyResponse(deleted_count=2))
    server.on("List", lambda r, c: pb.ListResponse(memories=[MEMORY]))
    server.on("Count", lambda r, c: pb.CountResponse(count=1))
    return server


def test_forget_by_id_does_not_ask(store: Any, memx: Callable[..., Any]) -> None:
    done = memx("forget", "x", "y")
    assert (done.code, done.out) == (0, "erased 2 memories\n")
    assert [r.id for r in store.requests("Delete")] == ["x", "y"]


def test_forget_goes_on_after_a_missing_id_and_still_exits_3(store: Any, memx: Callable[..., Any]) -> None:
    def script(request: Any, context: grpc.ServicerContext) -> pb.DeleteResponse:
        if request.id == "gone":
            refuse(context, grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND", "no such memory here")
        return pb.DeleteResponse(revision=1)

    store.on("Delete", script)
    done = memx("forget", "gone", "y")
    assert (done.code, done.out) == (3, "erased 1 memory\n")


def test_forget_by_filter_needs_the_scope_spelled_out(store: Any, memx: Callable[..., Any]) -> None:
    for words in (["--tag", "x"], ["--all"], ["--tag", "x", "--agent", "a"]):
        done = memx("forget", *words, "--yes")
        assert done.code == 2
        assert "--agent and --user" in done.err
    assert not store.requests("DeleteMany")


def test_forget_by_filter_asks_and_obeys(store: Any, memx: Callable[..., Any], memx_tty: Callable[..., Any]) -> None:
    scope = ["--agent", "a", "--user", "u"]
    nobody = memx("forget", "--tag", "x", *scope)
    assert nobody.code == 2
    assert nobody.err.startswith("memx: standard input is no terminal to ask on; give --yes")
    no = memx_tty("forget", "--tag", "x", *scope, keys=b"n\n")
    assert no.code == 5
    assert "Erase 2 memories of agent 'a', user 'u' for good?" in no.out
    assert all(r.dry_run for r in store.requests("DeleteMany"))
    yes = memx_tty("forget", "--tag", "x", *scope, keys=b"y\n")
    assert yes.code == 0
    assert "erased 2 memories" in yes.out
    assert not store.requests("DeleteMany")[-1].dry_run


def test_forget_dry_run_erases_nothing_and_shows_the_first(store: Any, memx: Callable[..., Any]) -> None:
    words = ["forget", "--tag", "x", "--agent", "a", "--user", "u", "--dry-run"]
    found = json.loads(memx(*words, "--json").out)
    assert (found["deleted_count"], found["dry_run"], [m["id"] for m in found["first"]]) == (2, True, [MEMORY.id])
    told = memx(*words).out.splitlines()
    assert told[0] == "would erase 2 memories, the oldest first:"
    assert told[1] == f"  {MEMORY.id}  2023-11-14 22:13  first line second \\x1b[31mline"
    assert told[2] == "  and 1 more"
    assert list(store.requests("List")[0].filter.states) == [1, 2, 3]
    assert all(r.dry_run for r in store.requests("DeleteMany"))
    assert memx("forget", "x", "--dry-run").out == "would erase 1 memory\n"
    assert not store.requests("Delete")


def test_forget_without_anything_is_a_usage_error(store: Any, memx: Callable[..., Any]) -> None:
    assert memx("forget").code == 2
    assert memx("forget", "x", "--all").code == 2


def test_filter_flags_for_cleaning_up_say_what_they_mean(store: Any, memx: Callable[..., Any]) -> None:
    assert memx("count", "--older-than", "90d", "--importance-below", "0.3", "--unused-since", "30d").code == 0
    sent = store.requests("Count")[-1].filter
    now = time.time()
    assert sent.created.end.seconds == pytest.approx(now - 90 * 86_400, abs=60)
    assert sent.unused_since.seconds == pytest.approx(now - 30 * 86_400, abs=60)
    assert (sent.importance_below, list(sent.states)) == (0.3, [])
    memx("count", "--expired")
    sent = store.requests("Count")[-1].filter
    assert sent.valid_until.end.seconds == pytest.approx(now, abs=60)
    assert list(sent.states) == [1]
    memx("count", "--after", "2026-01-01", "--before", "2026-02-01")
    span = store.requests("Count")[-1].filter.created
    assert (span.start.seconds, span.end.seconds) == (1_767_225_600, 1_769_904_000)
    for words in (["--older-than", "90"], ["--older-than", "+9d"], ["--older-than", "9d", "--until", "now"]):
        refused = memx("count", *words)
        assert (refused.code, "--older-than" in refused.err) == (2, True)


def test_many_go_in_slices_the_oldest_first(store: Any, memx: Callable[..., Any]) -> None:
    left = [501, 1]

    def erase(request: Any, _: grpc.ServicerContext) -> pb.DeleteManyResponse:
        if request.dry_run:
            return pb.DeleteManyResponse(deleted_count=502)
        return pb.DeleteManyResponse(deleted_count=left.pop(0) if left else 0)

    store.on("DeleteMany", erase)
    done = memx("forget", "--tag", "x", "--agent", "a", "--user", "u", "--yes")
    assert (done.code, done.out) == (0, "erased 502 memories\n")
    sent = [r for r in store.requests("DeleteMany") if not r.dry_run]
    assert {(tuple(r.filter.ids), tuple(r.filter.tags_any), tuple(r.filter.states)) for r in sent} == {
        ((MEMORY.id,), ("x",), (1, 2, 3))
    }
    assert {(r.order, r.page_size) for r in store.requests("List")} == {(2, 500)}


def test_archive_and_unarchive_by_id_change_the_state_only(store: Any, memx: Callable[..., Any]) -> None:
    assert memx("archive", "x", "y").out == "archived 2 memories\n"
    assert memx("forget", "x", "--archive").out == "archived 1 memory\n"
    assert not store.requests("Delete")
    assert memx("unarchive", "x").out == "brought back 1 memory\n"
    sent = store.requests("Update")
    assert [(list(r.update_mask.paths), r.memory.state) for r in sent] == [(["state"], 3)] * 3 + [(["state"], 1)]
    assert (memx("archive").code, memx("archive", "x", "--tag", "y").code, memx("unarchive").code) == (2, 2, 2)


def test_archive_by_filter_takes_active_ones_and_tells_refusals(store: Any, memx: Callable[..., Any]) -> None:
    def change(request: Any, context: grpc.ServicerContext) -> pb.UpdateResponse:
        refuse(context, grpc.StatusCode.ALREADY_EXISTS, "MEMORY_ALREADY_EXISTS", "this change would make it equal")

    would = memx("archive", "--tag", "x", "--dry-run")
    assert would.out.startswith("would archive 1 memory, the oldest first:\n")
    assert not store.requests("Update")
    assert memx("archive", "--tag", "x").out == "archived 1 memory\n"
    assert list(store.requests("Count")[-1].filter.states) == []
    assert memx("archive", "--tag", "x", "--state", "superseded").code == 2
    store.on("Update", change)
    done = memx("unarchive", "--tag", "x", "--json")
    assert (done.code, json.loads(done.out)) == (5, {"count": 0, "dry_run": False})
    assert "would make it equal" in done.err
    assert list(store.requests("List")[-1].filter.states) == [3]


def test_on_a_terminal_ids_are_set_aside_before_they_go(
    store: Any, memx_tty: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    undone = memx_tty("forget", MEMORY.id, keys=b"\x03", key_after="Ctrl-C")
    assert undone.code == 5
    assert "nothing was erased" in undone.out
    aside, back = store.requests("Update")
    assert (sorted(aside.update_mask.paths), aside.memory.state) == (["metadata", "state"], 3)
    assert set(aside.memory.metadata.fields) == {"year", undoing.MARK}
    assert back.memory.state == 1
    assert not store.requests("Delete")
    assert memx_tty("forget", MEMORY.id, "--yes").out == "erased 1 memory\n"
    assert len(store.requests("Update")) == 2


def test_an_erasure_that_was_broken_off_shows_as_pending(store: Any, memx: Callable[..., Any]) -> None:
    pending = memory_pb2.Memory()
    pending.CopyFrom(MEMORY)
    pending.state = memory_pb2.MEMORY_STATE_ARCHIVED
    pending.metadata.update({undoing.MARK: "2026-05-01T10:00:00+00:00"})
    store.on("Get", lambda r, c: pb.GetResponse(memory=pending, revision=5))
    store.on("List", lambda r, c: pb.ListResponse(memories=[pending]))
    assert "archived, to be erased" in memx("get", MEMORY.id).out
    assert "[to be erased] first line" in memx("list", "--state", "archived").out
    assert memx("unarchive", MEMORY.id).code == 0
    sent = store.requests("Update")[-1]
    assert (set(sent.memory.metadata.fields), sent.memory.state) == ({"year"}, 1)
