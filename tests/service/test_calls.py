"""What happens around every call, over a real socket: admission, errors, malformed bytes, deadlines, streams."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memxd.autostart import is_serving
from memxd.errors import InvalidArgumentError, MemoryNotFoundError
from memxd.v1 import memory_pb2
from memxd.v1 import memory_service_pb2 as pb

GET = "/memxd.v1.MemoryService/Get"


def refusal(call: Callable[[], Any]) -> tuple[str, str, str]:
    """(code, reason, message) of a call that must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    made = rpc_status.from_call(caught.value)
    assert made is not None, caught.value
    info = error_details_pb2.ErrorInfo()
    assert made.details[0].Unpack(info)
    return caught.value.code().name, info.reason, made.message


def test_before_the_engine_is_open_calls_are_refused_and_health_says_so(starting: Any) -> None:
    code, reason, _ = refusal(lambda: starting.memory.Get(pb.GetRequest(id="x")))
    assert (code, reason) == ("UNAVAILABLE", "NOT_READY")
    assert not is_serving(starting.path)


def test_a_call_is_answered(running: Any) -> None:
    assert is_serving(running.path)
    answer = running.memory.Get(pb.GetRequest(id="x"))
    assert (answer.memory.id, answer.memory.scope.agent_id, answer.revision) == ("x", "default", 7)


def test_a_refusal_arrives_with_its_reason(running: Any) -> None:
    running.engine.errors["x"] = MemoryNotFoundError("no memory of this id")
    assert refusal(lambda: running.memory.Get(pb.GetRequest(id="x"))) == (
        "NOT_FOUND",
        "MEMORY_NOT_FOUND",
        "no memory of this id",
    )


def test_an_unexpected_exception_keeps_its_text_to_itself(running: Any, caplog: pytest.LogCaptureFixture) -> None:
    running.engine.errors["x"] = ValueError("the secret text")
    with caplog.at_level(logging.DEBUG, "memxd"):
        code, reason, message = refusal(lambda: running.memory.Get(pb.GetRequest(id="x")))
    assert (code, reason) == ("INTERNAL", "INTERNAL")
    log_id = message.split("log id ")[1].split(";")[0]
    assert "secret" not in message
    fields = [getattr(record, "fields", {}) for record in caplog.records]
    found = next(f for f in fields if f.get("log_id") == log_id)
    assert found["type"] == "ValueError"
    assert "in get" in found["traceback"]
    assert "the secret text" not in str(fields)


@pytest.mark.parametrize("raw", [b"\xff\xff\xff", b"\x12\x02\xff\xfe", b"\x0a\x05ab", b"\x0b" * 200])
def test_bytes_that_are_no_request_are_an_invalid_argument(running: Any, raw: bytes) -> None:
    code, reason, _ = refusal(lambda: running.channel.unary_unary(GET)(raw))
    assert (code, reason) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")


def test_log_lines_name_no_scope_in_clear(running: Any, caplog: pytest.LogCaptureFixture) -> None:
    scope = memory_pb2.Scope(agent_id="very-private-agent", user_id="ann")
    with caplog.at_level(logging.DEBUG, "memxd"):
        running.memory.Get(pb.GetRequest(scope=scope, id="x"))
    lines = [record.fields for record in caplog.records if hasattr(record, "fields")]
    call = next(line for line in lines if line.get("rpc") == "Get")
    assert call["code"] == "OK"
    assert len(call["scope"]) == 16
    assert "very-private-agent" not in str(lines)


def test_careless_clients_do_not_fill_the_log(running: Any, starting: Any, caplog: pytest.LogCaptureFixture) -> None:
    running.engine.errors["x"] = MemoryNotFoundError("no memory of this id")
    with caplog.at_level(logging.INFO, "memxd"):
        for _ in range(20):
            refusal(lambda: running.memory.Get(pb.GetRequest(id="x")))
        running.gate.drain()
        for _ in range(20):
            refusal(lambda: running.memory.Get(pb.GetRequest(id="x")))
    assert 1 <= len(caplog.records) <= 5
    assert {record.getMessage() for record in caplog.records} == {"calls refused"}


def test_one_call_too_many_is_refused_at_once_with_a_time_to_retry(running: Any) -> None:
    held = [running.memory.Get.future(pb.GetRequest(id="hold")) for _ in range(3)]
    for _ in range(2):  # two run, one waits
        assert running.engine.entered.acquire(timeout=5)
    eventually(lambda: running.gate.calls.held == 3)
    began = time.monotonic()
    with pytest.raises(grpc.RpcError) as caught:
        running.memory.Get(pb.GetRequest(id="x"))
    assert time.monotonic() - began < 1
    made = rpc_status.from_call(caught.value)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = error_details_pb2.RetryInfo()
    assert made is not None
    assert made.details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() > 0
    assert is_serving(running.path), "health is answered also when every worker is busy"
    running.engine.release.set()
    assert [call.result(timeout=5).memory.id for call in held] == ["hold"] * 3
    assert running.memory.Get(pb.GetRequest(id="x")).memory.id == "x"


def test_the_callers_deadline_reaches_the_engine(running: Any) -> None:
    running.memory.Get(pb.GetRequest(id="x"), timeout=30)
    running.memory.Get(pb.GetRequest(id="x"))
    left = running.engine.deadlines[0].remaining()
    assert left is not None
    assert 25 < left < 31
    assert running.engine.deadlines[1].remaining() is None


def test_a_cancelled_call_stops_the_work(running: Any) -> None:
    call = running.memory.Get.future(pb.GetRequest(id="hold"))
    assert running.engine.entered.acquire(timeout=5)
    call.cancel()
    eventually(lambda: running.gate.calls.held == 0)


def test_a_draining_daemon_refuses_new_calls_and_finishes_running_ones(running: Any) -> None:
    call = running.memory.Get.future(pb.GetRequest(id="hold"))
    assert running.engine.entered.acquire(timeout=5)
    running.gate.drain()
    code, reason, _ = refusal(lambda: running.memory.Get(pb.GetRequest(id="x")))
    assert (code, reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
    assert not running.gate.wait_idle(0.05, lambda: False)
    assert not running.gate.wait_idle(60, lambda: True), "a second signal hurries"
    running.engine.release.set()
    assert running.gate.wait_idle(5, lambda: False)
    assert call.result(timeout=5).memory.id == "hold"


# -- StoreMany -----------------------------------------------------------------------------------------------------


def item(content: str, **fields: Any) -> pb.StoreManyRequest:
    return pb.StoreManyRequest(memory=pb.NewMemory(content=content, **fields))


def test_a_bad_item_is_answered_in_its_place_and_spoils_nothing(running: Any) -> None:
    items = [item("a"), item("b", type=99), item("c", importance=float("nan")), item("d")]  # type: ignore[arg-type]
    answers = list(running.memory.StoreMany(iter(items)))
    assert [answer.index for answer in answers] == [0, 1, 2, 3]
    assert [answer.WhichOneof("result") for answer in answers] == ["stored", "error", "error", "stored"]
    assert [answer.error.field for answer in answers[1:3]] == ["memory.type", "memory.importance"]
    assert answers[3].stored.memory.content == "d"


def test_bytes_that_are_no_item_are_answered_in_their_place(running: Any) -> None:
    raw = running.channel.stream_stream(
        "/memxd.v1.MemoryService/StoreMany", response_deserializer=pb.StoreManyResponse.FromString
    )
    answers = list(raw(iter([b"\xff\xff", item("a").SerializeToString()])))
    assert [answer.WhichOneof("result") for answer in answers] == ["error", "stored"]
    assert answers[0].error.reason == "INVALID_ARGUMENT"


def test_an_item_is_answered_before_the_next_one_is_sent(running: Any) -> None:
    to_send: queue.Queue[pb.StoreManyRequest | None] = queue.Queue()
    answers = running.memory.StoreMany(iter(to_send.get, None), timeout=20)
    for content in ("a", "b", "c"):
        to_send.put(item(content))
        assert next(answers).stored.memory.content == content
    to_send.put(None)
    assert list(answers) == []


def test_an_idle_stream_ends_when_the_daemon_stops(running: Any) -> None:
    to_send: queue.Queue[pb.StoreManyRequest | None] = queue.Queue()
    answers = running.memory.StoreMany(iter(to_send.get, None), timeout=20)
    to_send.put(item("a"))
    next(answers)
    running.gate.drain()
    code, reason, _ = refusal(lambda: next(answers))
    assert (code, reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
    assert running.gate.wait_idle(5, lambda: False)
    to_send.put(None)


def test_a_cancelled_stream_leaves_no_thread_behind(running: Any) -> None:
    to_send: queue.Queue[pb.StoreManyRequest | None] = queue.Queue()
    answers = running.memory.StoreMany(iter(to_send.get, None), timeout=20)
    to_send.put(item("a"))
    next(answers)
    answers.cancel()
    to_send.put(None)
    eventually(lambda: running.gate.streams.held == 0)
    eventually(lambda: not any(t.name == "memxd-stream-reader" for t in threading.enumerate()))


def test_a_client_that_does_not_read_is_not_read_for_ever(running: Any) -> None:
    sent = 0

    def endless() -> Iterator[pb.StoreManyRequest]:
        nonlocal sent
        while sent < 100_000:
            sent += 1
            yield item("x" * 20_000)

    answers = running.memory.StoreMany(endless(), timeout=60)
    next(answers)
    last = -1
    while last != sent:
        last = sent
        time.sleep(0.5)
    assert sent < 5_000
    answers.cancel()


def test_streams_have_a_limit_of_their_own(running: Any) -> None:
    to_send: queue.Queue[pb.StoreManyRequest | None] = queue.Queue()
    answers = running.memory.StoreMany(iter(to_send.get, None), timeout=20)
    to_send.put(item("a"))
    next(answers)
    code, reason, message = refusal(lambda: list(running.memory.StoreMany(iter([item("b")]))))
    assert (code, reason) == ("RESOURCE_EXHAUSTED", "OVERLOADED")
    assert "streams" in message
    assert running.memory.Get(pb.GetRequest(id="x")).memory.id == "x", "other calls go on"
    to_send.put(None)


# -- sizes and items -----------------------------------------------------------------------------------------------


def test_a_page_that_would_be_too_large_is_shortened_and_continues(running: Any) -> None:
    running.engine.contents = [f"{n:03}" + "x" * 60_000 for n in range(100)]
    seen, token, pages = [], "", 0
    while True:
        page = running.memory.List(pb.ListRequest(page_size=100, page_token=token))
        assert page.ByteSize() <= 3_670_016
        seen += [memory.content[:3] for memory in page.memories]
        pages += 1
        token = page.next_page_token
        if not token:
            break
    assert seen == [f"{n:03}" for n in range(100)]
    assert pages == 2


def test_one_bad_question_of_many_is_answered_in_its_place(running: Any) -> None:
    questions = [pb.SearchRequest(query="aa"), pb.SearchRequest(query="b", mode=77), pb.SearchRequest(query="ccc")]  # type: ignore[arg-type]
    results = running.memory.SearchMany(pb.SearchManyRequest(searches=questions)).results
    assert [r.WhichOneof("result") for r in results] == ["response", "error", "response"]
    assert results[1].error.field == "mode"
    assert results[2].response.revision == 3


@pytest.mark.parametrize("count", [0, 33])
def test_the_number_of_questions_is_bounded(running: Any, count: int) -> None:
    many = pb.SearchManyRequest(searches=[pb.SearchRequest(query="a")] * count)
    assert refusal(lambda: running.memory.SearchMany(many))[:2] == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")


def test_erasing_much_needs_the_scope_spelled_out(running: Any) -> None:
    for scope in (None, memory_pb2.Scope(), memory_pb2.Scope(agent_id="a"), memory_pb2.Scope(user_id="u")):
        _, reason, message = refusal(lambda s=scope: running.memory.DeleteMany(pb.DeleteManyRequest(scope=s)))
        assert reason == InvalidArgumentError.reason
        assert message.startswith("scope")


def eventually(check: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until it holds."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)
