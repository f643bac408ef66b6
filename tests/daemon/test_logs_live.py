"""What a daemon's log tells of calls, and what it never tells: a word in every field of every call stays out of it."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import field_mask_pb2, struct_pb2

from memxd.autostart import target
from memxd.v1 import admin_service_pb2 as admin
from memxd.v1 import memory_pb2, search_pb2
from memxd.v1 import memory_service_pb2 as pb

MARK = "zebrafinch"
SCOPE = memory_pb2.Scope(agent_id=f"{MARK}-agent", user_id=f"{MARK}-user")
NOBODY = "0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e"
SECONDS = 20


def marked(what: str) -> str:
    return f"{MARK} {what}"


def memory(content: str = "content", **more: Any) -> pb.NewMemory:
    metadata = struct_pb2.Struct()
    metadata.update({MARK: marked("value"), "deep": [marked("inner")]})
    fields = {"content": marked(content), "tags": [marked("tag")], "metadata": metadata, "source": marked("source")}
    return pb.NewMemory(**(fields | more))  # type: ignore[arg-type]


def filters() -> memory_pb2.Filter:
    wanted = memory_pb2.Filter(tags_any=[marked("tag")], tags_none=[marked("other")])
    wanted.metadata.update({MARK: marked("value")})
    return wanted


def good_calls(daemon: Any, folder: Path) -> None:
    """Every RPC once, as it is meant."""
    call, upkeep = daemon.memory, daemon.admin
    first, second = (
        call.Store(pb.StoreRequest(scope=SCOPE, memory=memory(f"number {n}"), request_id=f"{MARK}-{n}")).memory.id
        for n in range(2)
    )
    list(call.StoreMany(iter([pb.StoreManyRequest(scope=SCOPE, memory=memory("of many"))])))
    call.Get(pb.GetRequest(scope=SCOPE, id=first))
    call.List(pb.ListRequest(scope=SCOPE, filter=filters()))
    call.Count(pb.CountRequest(scope=SCOPE, filter=filters()))
    mask = field_mask_pb2.FieldMask(paths=["content"])
    patch = pb.MemoryPatch(content=marked("changed"))
    call.Update(pb.UpdateRequest(scope=SCOPE, id=first, memory=patch, update_mask=mask))
    question = pb.SearchRequest(scope=SCOPE, query=marked("question"), filter=filters(), explain=True, timings=True)
    call.Search(question)
    call.SearchMany(pb.SearchManyRequest(searches=[question]))
    link = pb.CreateLinkRequest(scope=SCOPE, source_id=first, target_id=second, type=memory_pb2.LINK_TYPE_RELATED)
    link.metadata.update({MARK: marked("why")})
    made = call.CreateLink(link).link.id
    call.ListLinks(pb.ListLinksRequest(scope=SCOPE, memory_id=first))
    call.Traverse(pb.TraverseRequest(scope=SCOPE, start_id=first))
    lines = b"".join(part.lines for part in call.Export(pb.ExportRequest(scope=SCOPE)))
    other = memory_pb2.Scope(agent_id=MARK, user_id="other")
    list(call.Import(iter([pb.ImportRequest(scope=other), pb.ImportRequest(lines=lines)])))
    call.DeleteLink(pb.DeleteLinkRequest(scope=SCOPE, id=made))
    call.Delete(pb.DeleteRequest(scope=SCOPE, id=second))
    upkeep.Status(admin.StatusRequest())
    upkeep.Flush(admin.FlushRequest())
    for answers in (
        upkeep.Rebuild(admin.RebuildRequest()),
        upkeep.Backup(admin.BackupRequest(directory=str(folder / MARK))),
        upkeep.Verify(admin.VerifyRequest()),
        upkeep.Compact(admin.CompactRequest()),
    ):
        list(answers)
    call.DeleteMany(pb.DeleteManyRequest(scope=other, filter=filters()))


def bad_calls(daemon: Any, folder: Path) -> Iterator[Callable[[], Any]]:
    """Calls that fail in different ways, with the word in what is wrong."""
    call, upkeep = daemon.memory, daemon.admin
    yield lambda: call.Store(pb.StoreRequest(scope=SCOPE, memory=memory(content=MARK * 10_000)))
    yield lambda: call.Store(pb.StoreRequest(scope=SCOPE, memory=memory(tags=[MARK * 20])))
    yield lambda: call.Store(pb.StoreRequest(scope=memory_pb2.Scope(agent_id=MARK * 30), memory=memory()))
    yield lambda: call.Store(pb.StoreRequest(scope=SCOPE, memory=memory(supersedes=[MARK])))
    yield lambda: call.Store(pb.StoreRequest(scope=SCOPE, memory=memory("another"), request_id=f"{MARK}-0"))
    yield lambda: call.Get(pb.GetRequest(scope=SCOPE, id=MARK))
    yield lambda: call.Get(pb.GetRequest(scope=SCOPE, id=NOBODY))
    yield lambda: call.List(pb.ListRequest(scope=SCOPE, page_token=MARK))
    yield lambda: call.Search(pb.SearchRequest(scope=SCOPE, query=MARK, k=-1))
    yield lambda: call.Search(pb.SearchRequest(scope=SCOPE, query=MARK, vector=[1.0], model_id=MARK))
    yield lambda: call.Search(pb.SearchRequest(scope=SCOPE, query=MARK, time_zone=MARK))
    yield lambda: call.Search(pb.SearchRequest(scope=SCOPE, query=MARK * 500))
    yield lambda: call.Update(pb.UpdateRequest(scope=SCOPE, id=NOBODY, update_mask={"paths": [MARK]}))
    yield lambda: call.Traverse(pb.TraverseRequest(scope=SCOPE, start_id=MARK))
    yield lambda: list(call.Import(iter([pb.ImportRequest(scope=SCOPE, first_line=-1)])))
    yield lambda: list(upkeep.Backup(admin.BackupRequest(directory=str(folder / MARK))))
    yield lambda: list(upkeep.Backup(admin.BackupRequest(directory=MARK)))
    yield lambda: daemon.channel.unary_unary("/memxd.v1.MemoryService/Store")(MARK.encode() * 9)
    yield lambda: daemon.channel.unary_unary(f"/memxd.v1.MemoryService/{MARK}")(b"")


@pytest.mark.parametrize(("level", "more"), [("info", ()), ("info", ("--slow-ms", "1")), ("debug", ())])
def test_no_word_of_any_field_of_any_call_is_in_the_log(
    start_daemon: Any, tmp_path: Path, level: str, more: tuple[str, ...]
) -> None:
    daemon = start_daemon("--log-level", level, *more)
    methods = {name for kind in (pb, admin) for service in kind.DESCRIPTOR.services_by_name.values() for name in
               service.methods_by_name}  # fmt: skip
    good_calls(daemon, tmp_path)
    for call in bad_calls(daemon, tmp_path):
        with pytest.raises(grpc.RpcError):
            call()
    lines = b'{"kind":"memory","id":"%s"}\nzebrafinch\n' % MARK.encode()
    answers = list(
        daemon.memory.Import(iter([pb.ImportRequest(scope=SCOPE), pb.ImportRequest(lines=lines)]), timeout=SECONDS)
    )
    assert answers[-1].refused == 2
    counted = {c.method for c in daemon.admin.Status(admin.StatusRequest()).calls}
    assert counted == methods
    assert daemon.stop() == 0
    assert MARK not in daemon.log.lower()
    told = {line["rpc"] for line in daemon.log_lines if "rpc" in line}
    assert told == methods if level == "debug" else told <= methods


def test_a_line_tells_id_method_scope_code_time_and_sizes(start_daemon: Any) -> None:
    daemon = start_daemon("--log-level", "debug")
    stored, call = daemon.memory.Store.with_call(
        pb.StoreRequest(scope=SCOPE, memory=memory()), metadata=[("x-request-id", "agent-7/turn:12")]
    )
    assert dict(call.trailing_metadata())["x-request-id"] == "agent-7/turn:12"
    line = daemon_line(daemon, "agent-7/turn:12")
    assert (line["rpc"], line["code"], line["level"]) == ("Store", "OK", "debug")
    assert re.fullmatch(r"[0-9a-f]{16}", line["scope"])
    assert line["ms"] > 0
    assert line["in"] > 100
    assert line["out"] == stored.ByteSize()
    _, call = daemon.memory.Count.with_call(
        pb.CountRequest(scope=SCOPE), metadata=[("x-request-id", "no spaces, please")]
    )
    made = dict(call.trailing_metadata())["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]+", made)
    with pytest.raises(grpc.RpcError) as caught:
        daemon.memory.Get(pb.GetRequest(scope=SCOPE, id=NOBODY), metadata=[("x-request-id", "gone-1")])
    assert dict(caught.value.trailing_metadata())["x-request-id"] == "gone-1"
    refused = daemon_line(daemon, "gone-1")
    assert (refused["code"], refused["reason"]) == ("NOT_FOUND", "MEMORY_NOT_FOUND")
    assert refused["scope"] == line["scope"] == daemon_line(daemon, made)["scope"]
    absent = daemon.memory.Count.with_call(pb.CountRequest(), metadata=[("x-request-id", "no-scope")])
    assert absent
    spelled = memory_pb2.Scope(agent_id="default", user_id="default")
    daemon.memory.Count(pb.CountRequest(scope=spelled), metadata=[("x-request-id", "spelled")])
    assert daemon_line(daemon, "no-scope")["scope"] == daemon_line(daemon, "spelled")["scope"]


def test_scopes_are_hashed_with_a_key_of_the_data_directory(start_daemon: Any, tmp_path: Path) -> None:
    seen = []
    for run in range(3):
        folder = tmp_path / ("other" if run == 2 else "data")
        daemon = start_daemon("--log-level", "debug", data_dir=folder)
        daemon.memory.Count(pb.CountRequest(scope=SCOPE), metadata=[("x-request-id", "same")])
        seen.append(daemon_line(daemon, "same")["scope"])
        assert (folder / "memxd-log.key").stat().st_mode & 0o777 == 0o600
        assert daemon.stop() == 0
    assert seen[0] == seen[1] != seen[2]


def test_a_slow_search_is_told_with_its_stages_and_the_threshold_can_be_changed(
    start_daemon: Any, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("slow_ms = 0\n")
    file.chmod(0o600)
    daemon = start_daemon(extra={"MEMXD_CONFIG": str(file)})
    for number in range(20):
        daemon.memory.Store(pb.StoreRequest(scope=SCOPE, memory=memory(f"number {number} {'word ' * 300}")))

    def ask(id_: str) -> None:
        for number in range(40):  # the first of them on cold caches; one of them takes a millisecond
            metadata = [("x-request-id", f"{id_}-{number}")]
            question = pb.SearchRequest(scope=SCOPE, query=f"{MARK} {number} " + "word " * 100, k=50, explain=True)
            daemon.memory.Search(question, metadata=metadata)

    ask("before")
    assert "before-" not in daemon.log
    file.write_text("slow_ms = 1\n")
    daemon.signal(signal.SIGHUP)
    end = time.monotonic() + 20
    while "settings reloaded" not in daemon.log:
        assert time.monotonic() < end
        time.sleep(0.02)
    ask("after")
    [line, *_] = [each for each in daemon.log_lines if str(each.get("id", "")).startswith("after-")]
    assert (line["message"], line["level"], line["rpc"]) == ("slow call", "info", "Search")
    assert set(line["stages"]) >= {"filter", "keyword", "vector", "rank", "fetch", "total"}
    assert line["hits"] > 0
    assert MARK not in daemon.log


def test_on_a_terminal_lines_are_for_people(start_daemon: Any) -> None:
    daemon = start_daemon("--log-level", "debug", "--log-format", "text")
    daemon.memory.Count(pb.CountRequest(), metadata=[("x-request-id", "plain")])
    daemon_text = [line for line in daemon.log.splitlines() if "id=plain" in line]
    assert re.search(r"DEBUG +memxd\.rpc: call id=plain rpc=Count scope=[0-9a-f]{16} code=OK ms=", daemon_text[0])


def daemon_line(daemon: Any, id_: str) -> dict[str, Any]:
    """The line of the call with this id: written just after its answer."""
    end = time.monotonic() + 10
    while True:
        found = [line for line in daemon.log_lines if line.get("id") == id_]
        if found:
            return dict(json.loads(json.dumps(found[0])))
        assert time.monotonic() < end, daemon.log
        time.sleep(0.01)


def test_channels_of_other_clients_get_an_id_too(daemon: Any) -> None:
    with grpc.insecure_channel(target(daemon.socket)) as channel:
        call = channel.unary_unary("/memxd.v1.MemoryService/Count")
        _, info = call.with_call(b"")
        assert "x-request-id" in dict(info.trailing_metadata())
        ask = search_pb2.SEARCH_MODE_KEYWORD
        assert daemon.memory.Search(pb.SearchRequest(query="nothing", mode=ask)).rejected
