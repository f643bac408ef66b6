"""memx add, get, edit, forget, list, count: what is sent, what is shown, what is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from scripted import refuse

from memxd.v1 import memory_pb2, memory_service_pb2

pb = memory_service_pb2
MEMORY = memory_pb2.Memory(
    id="0190c2d0-0000-7000-8000-000000000001",
    scope=memory_pb2.Scope(agent_id="a", user_id="u"),
    content="first line\nsecond \x1b[31mline",
    type=1,
    tags=["x", "y"],
    metadata={"year": 2026, "name": "Bob"},
    importance=0.5,
    created_at=Timestamp(seconds=1_700_000_000),
    updated_at=Timestamp(seconds=1_700_000_000),
    state=1,
    revision=5,
)


@pytest.fixture
def store(server: Any) -> Any:
    server.on("Store", lambda r, c: pb.StoreResponse(memory=MEMORY, revision=5))
    server.on("Get", lambda r, c: pb.GetResponse(memory=MEMORY, revision=5))
    server.on("Update", lambda r, c: pb.UpdateResponse(memory=MEMORY, revision=6))
    server.on("Delete", lambda r, c: pb.DeleteResponse(revision=6))
    server.on("DeleteMany", lambda r, c: pb.DeleteManyResponse(deleted_count=2))
    server.on("Count", lambda r, c: pb.CountResponse(count=12))
    return server


def test_add_prints_the_id_and_sends_every_flag(store: Any, memx: Callable[..., Any]) -> None:
    done = memx(
        "add", "text", "--type", "episodic", "--tag", "x", "--tag", "y", "--meta", "year=2026", "--meta", 'no="5"',
        "--importance", "0", "--event-at", "2026-05-01", "--valid-until", "2026-06-01T00:00:00Z", "--private",
        "--source", "s", "--supersedes", "old", "--allow-duplicate",
    )  # fmt: skip
    assert (done.code, done.out, done.err) == (0, MEMORY.id + "\n", "")
    (sent,) = store.requests("Store")
    assert sent.request_id
    assert sent.memory.HasField("importance")
    assert dict(sent.memory.metadata.items()) == {"year": 2026.0, "no": "5"}
    assert sent.memory.event_at.seconds == 1_777_593_600
    assert sent.memory.private
    assert list(sent.memory.supersedes) == ["old"]


@pytest.mark.parametrize("words", [["-"], []])
def test_content_comes_from_standard_input(store: Any, memx: Callable[..., Any], words: list[str]) -> None:
    memx("add", *words, stdin="\ufeffüber\nzwei Zeilen\n".encode())
    assert store.requests("Store")[0].memory.content == "über\nzwei Zeilen\n"


def test_input_that_is_not_utf_8_is_refused_by_name(store: Any, memx: Callable[..., Any]) -> None:
    done = memx("add", stdin=b"caf\xe9")
    assert done.code == 2
    assert "UTF-8" in done.err
    assert not store.requests("Store")


def test_no_text_at_all_is_a_usage_error(store: Any, memx: Callable[..., Any]) -> None:
    for verb, words in (("add", []), ("add", ["-"]), ("search", []), ("search", ["-"])):
        done = memx(verb, *words, stdin=b" \n")
        assert done.code == 2
        assert "give it as an argument, or pipe it in" in done.err
    assert not store.requests("Store")


def test_a_known_memory_is_told(server: Any, memx: Callable[..., Any]) -> None:
    server.on("Store", lambda r, c: pb.StoreResponse(memory=MEMORY, deduplicated=True))
    done = memx("add", "text")
    assert done.out == MEMORY.id + "\n"
    assert "known already" in done.err


def test_scope_comes_from_flags_before_and_after_the_verb_then_from_the_environment(
    store: Any, memx: Callable[..., Any]
) -> None:
    env = {"MEMX_AGENT": "env-a", "MEMX_USER": "env-u"}
    memx("add", "x", env=env)
    memx("--agent", "before", "add", "x", env=env)
    memx("--agent", "before", "add", "x", "--agent", "after", env=env)
    memx("add", "x")
    scopes = [(r.scope.agent_id, r.scope.user_id) for r in store.requests("Store")]
    assert scopes == [("env-a", "env-u"), ("before", "env-u"), ("after", "env-u"), ("", "")]


def test_get_shows_all_of_it_and_json_as_well(store: Any, memx: Callable[..., Any]) -> None:
    done = memx("get", MEMORY.id)
    assert "type\tepisodic" in done.out
    assert "meta year\t2026" in done.out
    assert "stored\t2023-11-14 22:13 (" in done.out
    assert json.loads(memx("get", MEMORY.id, "--json").out)["metadata"] == {"name": "Bob", "year": 2026}


def test_get_content_is_the_very_text_when_piped_and_harmless_on_a_terminal(
    store: Any, memx: Callable[..., Any], memx_tty: Callable[..., Any]
) -> None:
    assert memx("get", "x", "--content").out == MEMORY.content + "\n"
    shown = memx_tty("get", "x", "--content").out
    assert "\x1b[31m" not in shown
    assert "second \\x1b[31mline" in shown


def test_a_missing_memory_exits_3(server: Any, memx: Callable[..., Any]) -> None:
    server.on("Get", lambda r, c: refuse(c, grpc.StatusCode.NOT_FOUND, "MEMORY_NOT_FOUND", "no such memory here"))
    done = memx("get", "x")
    assert (done.code, done.out) == (3, "")
    assert done.err == "memx: no such memory here (agent 'default', user 'default'; --agent and --user name another)\n"
    assert "(agent 'a', user 'u';" in memx("get", "x", "--user", "u", env={"MEMX_AGENT": "a"}).err


def test_edit_sends_only_what_changes(store: Any, memx: Callable[..., Any]) -> None:
    done = memx("edit", "x", "--content", "-", "--clear", "event_at", "--public", "--state", "archived", stdin=b"new")
    assert done.code == 0
    (sent,) = store.requests("Update")
    assert sorted(sent.update_mask.paths) == ["content", "event_at", "private", "state"]
    assert (sent.memory.content, sent.memory.private, sent.memory.state) == ("new", False, 3)
    assert not store.requests("Get")


def test_edit_adds_and_drops_tags_and_metadata_against_the_revision_it_read(
    store: Any, memx: Callable[..., Any]
) -> None:
    memx("edit", "x", "--add-tag", "z", "--drop-tag", "y", "--meta", "year=2027", "--drop-meta", "name")
    (sent,) = store.requests("Update")
    assert list(sent.memory.tags) == ["x", "z"]
    assert dict(sent.memory.metadata.items()) == {"year": 2027.0}
    assert sent.expected_revision == 5
    assert not store.requests("Get")[0].record_access


def test_edit_of_nothing_is_a_usage_error(store: Any, memx: Callable[..., Any]) -> None:
    assert memx("edit", "x").code == 2


def test_count_counts(store: Any, memx: Callable[..., Any]) -> None:
    assert memx("count", "--type", "episodic").out == "12\n"
    assert json.loads(memx("count", "--json").out) == {"count": 12}
    assert list(store.requests("Count")[0].filter.types) == [1]


@pytest.fixture
def pages(server: Any) -> Any:
    def script(request: Any, _: grpc.ServicerContext) -> pb.ListResponse:
        start = int(request.page_token or 0)
        page = [memory_pb2.Memory(id=str(i), content=f"number {i}", type=2, state=1) for i in range(start, start + 2)]
        return pb.ListResponse(memories=page, next_page_token=str(start + 2) if start < 4 else "", revision=9)

    server.on("List", script)
    return server


def test_a_page_tells_that_there_is_more(pages: Any, memx: Callable[..., Any]) -> None:
    done = memx("list", "-n", "2", "--order", "importance_desc")
    assert [line.split("\t")[-1] for line in done.out.splitlines()] == ["content", "number 0", "number 1"]
    assert "--page-token 2" in done.err
    assert (pages.requests("List")[0].page_size, pages.requests("List")[0].order) == (2, 5)
    page = json.loads(memx("list", "--json", "--page-token", "4").out)
    assert list(page) == ["memories", "next_page_token", "revision"]


def test_a_narrow_terminal_shows_the_id_whole_and_no_page_token(pages: Any, memx_tty: Callable[..., Any]) -> None:
    long = "0190c2d0-0000-7000-8000-000000000001"
    page = pb.ListResponse(
        memories=[memory_pb2.Memory(id=long, content="text " * 50, type=2, state=2)], next_page_token="token" * 24
    )
    pages.on("List", lambda r, c: page)
    for width in (60, 80, 160):
        shown = memx_tty("list", "-n", "1", width=width).out
        assert long in shown
        assert "[superseded] text" in shown
        assert "tokentoken" not in shown
        assert "there are more: --all, or a larger --limit" in shown


def test_list_all_is_one_json_document_a_line(pages: Any, memx: Callable[..., Any]) -> None:
    lines = memx("list", "--all", "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == list("012345")
    assert len(memx("list", "--all").out.splitlines()) == 7
