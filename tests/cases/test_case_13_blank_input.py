"""Case 13: what nobody can see is no query, no content and no name: refused by field, before anything is embedded."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import casekit
from casekit import Case, assert_refused, fresh_scope
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from requestkit import FILTERED, KINDS, NEW, SEARCHES, TEXTS, Seed, make

BLANK = [
    "", " ", "   ", "\t\n\r\v\f", "\u200b", "\ufeff", "\u2060", "\u00a0", "\u3000", "\u2003\u2009", "\u00ad", "\u200d",
    "\u3164", "\u2800", "\u115f\u1160", "\uffa0", "\u180e", "\u034f", "\u061c", "\u202e\u202c", "\u0301", "\ufe0f",
    "\0", "\x7f", "\u2028\u2029", "\x85", "\U000e0020\U000e007f", " \u200b \ufeff\n",
]  # fmt: skip
VISIBLE = ["x", ".", "0", "-", "😀", "𝄞", "名", "\u00b7", "¨", "|", "£", "\u0e01\u0e34", " . "]


class Counting:
    """An embedding service that counts the texts it is asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        counting = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                counting.texts += body["input"]
                rows = [{"index": i, "embedding": [1.0, float(len(t)), 2.0, 3.0]} for i, t in enumerate(body["input"])]
                raw = json.dumps({"data": rows}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def environ(self) -> dict[str, str]:
        return {
            "MEMXD_OPENAI_BASE_URL": f"http://127.0.0.1:{self.server.server_port}/v1",
            "MEMXD_OPENAI_MODEL": "counting",
            "MEMXD_OPENAI_DIMENSION": "4",
        }


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[Case, Counting]]:
    service = Counting()
    with casekit.world() as world:
        yield world.start(embedder="openai", extra=service.environ), service
    service.server.shutdown()
    service.server.server_close()


@pytest.fixture(scope="module")
def seed(counted: tuple[Case, Counting]) -> Seed:
    return Seed.into(counted[0], fresh_scope("blank"))


@pytest.mark.parametrize("blank", BLANK, ids=ascii)
def test_blank_is_refused_by_its_field_before_any_embedding(
    counted: tuple[Case, Counting], seed: Seed, blank: str
) -> None:
    case, service = counted
    before = len(service.texts)
    for rpc in TEXTS:
        assert_refused(case.call(rpc, make(rpc, seed, memory__content=blank)), "memory.content")
        assert_refused(case.call(rpc, make(rpc, seed, memory__content="fine", memory__tags=[blank])), "memory.tags")
    for rpc in SEARCHES:
        assert_refused(case.call(rpc, make(rpc, seed, query=blank)), "query")
    for rpc in KINDS:
        for part in ("agent_id", "user_id"):
            answer = case.call(rpc, make(rpc, seed, **{f"scope__{part}": blank}))
            assert_refused(answer, f"scope.{part}")
    for rpc in FILTERED:
        for name in ("tags_any", "tags_all", "tags_none"):
            answer = case.call(rpc, make(rpc, seed, **{f"filter__{name}": [blank]}))
            assert_refused(answer, f"filter.{name}")
    for rpc in ("Get", "Delete", "Update", "DeleteLink"):
        assert_refused(case.call(rpc, make(rpc, seed, id=blank)), "id")
    assert len(service.texts) == before, "nothing was embedded"
    assert case.count(seed.scope) == 2


def test_the_service_is_asked_for_what_can_be_seen(counted: tuple[Case, Counting], seed: Seed) -> None:
    case, service = counted
    before = len(service.texts)
    case.call("Store", make("Store", seed, memory__content="visible", memory__allow_duplicate=True))
    case.call("Search", make("Search", seed, query="visible too"))
    assert len(service.texts) == before + 2


@pytest.mark.parametrize("text", VISIBLE, ids=ascii)
def test_a_single_visible_sign_is_enough(hashing: Case, scope: mem.Scope, text: str) -> None:
    seed = Seed.into(hashing, scope)
    for rpc in NEW:
        answer = hashing.call(rpc, make(rpc, seed, memory__content=f"\u200b {text}\n", memory__allow_duplicate=True))
        assert answer.memory.content == text.strip()
    assert not hasattr(hashing.call("Search", make("Search", seed, query=text)), "reason")
    named = mem.Scope(agent_id=text, user_id=scope.agent_id)
    hashing.store(named, "inside")
    assert hashing.count(named) == 1


def test_an_absent_memory_is_a_blank_one(hashing: Case, scope: mem.Scope) -> None:
    assert_refused(hashing.call("Store", pb.StoreRequest(scope=scope)), "memory.content")
    assert_refused(hashing.call("StoreMany", pb.StoreManyRequest(scope=scope)), "memory.content")


def test_one_blank_item_does_not_spoil_the_others(hashing: Case, scope: mem.Scope) -> None:
    contents = ["first", "", "second", "\u200b", "third"]
    requests = (pb.StoreManyRequest(scope=scope, memory=pb.NewMemory(content=c)) for c in contents)
    answers = list(hashing.memory.StoreMany(requests, timeout=20))
    assert [a.WhichOneof("result") for a in answers] == ["stored", "error", "stored", "error", "stored"]
    assert {a.error.field for a in answers if a.HasField("error")} == {"memory.content"}
    searches = [pb.SearchRequest(scope=scope, query=q) for q in ("first", " ", "third", "\ufeff")]
    many = hashing.memory.SearchMany(pb.SearchManyRequest(searches=searches), timeout=20)
    assert [r.WhichOneof("result") for r in many.results] == ["response", "error", "response", "error"]
    assert {r.error.field for r in many.results if r.HasField("error")} == {"query"}


def test_an_empty_request_of_every_rpc_is_refused_or_answered_never_a_fault(hashing: Case) -> None:
    for rpc in KINDS:
        empty: Any = type(KINDS[rpc](Seed(mem.Scope(), "", "", "")))()
        try:
            answer = hashing.call(rpc, empty)
        except IndexError:  # a SearchMany without searches answers nothing
            continue
        if isinstance(answer, casekit.Refusal):
            assert answer.reason == "INVALID_ARGUMENT", (rpc, answer)
            assert answer.fields, rpc
