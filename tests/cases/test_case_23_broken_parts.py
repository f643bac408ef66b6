"""Case 23: a part that breaks is told as such: a partial answer with the cause, an error when nothing can answer."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from casekit import MODES, Case, Refusal, World, flush, fresh_scope, rebuild, word
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

CAUSES = {
    "vector": pb.DEGRADED_CAUSE_VECTOR_INDEX_UNAVAILABLE,
    "keyword": pb.DEGRADED_CAUSE_KEYWORD_INDEX_UNAVAILABLE,
}
KINDS = {"vector": admin_pb.INDEX_KIND_VECTOR, "keyword": admin_pb.INDEX_KIND_KEYWORD}
OTHER = {"vector": "keyword", "keyword": "vector"}


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[::7] = bytes(b ^ 0xFF for b in raw[::7])
    with path.open("r+b") as file:
        file.write(raw)


HOW = {"cut": cut, "empty": empty, "flip": flip}


def damage(case: Case, kind: str, how: str) -> None:
    """Spoil every file of an index under the daemon's feet."""
    for path in (case.daemon.data_dir / "index" / kind).rglob("*"):
        if path.is_file() and path.stat().st_size:
            HOW[how](path)


@pytest.fixture
def stocked(world: World) -> tuple[Case, mem.Scope]:
    case, scope = world.start(), fresh_scope()
    case.store_all(scope, [pb.NewMemory(content=f"fact about {word(n)}") for n in range(300)])
    rebuild(case)
    flush(case)
    return case, scope


def ask(case: Case, scope: mem.Scope, n: int, mode: str) -> pb.SearchResponse | Refusal:
    request = pb.SearchRequest(scope=scope, query=f"fact about {word(n)}", mode=MODES[mode], k=3)
    return case.call("Search", request)  # type: ignore[no-any-return]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", KINDS)
def test_one_index_broken_while_running(stocked: tuple[Case, mem.Scope], world: World, kind: str, how: str) -> None:
    case, scope = stocked
    damage(case, kind, how)
    partial = ask(case, scope, 5, "hybrid")
    assert isinstance(partial, pb.SearchResponse), partial
    assert [d.cause for d in partial.degraded] == [CAUSES[kind]]
    assert partial.degraded[0].message
    assert partial.hits[0].memory.content == f"fact about {word(5)}"
    alone = ask(case, scope, 6, kind)
    assert isinstance(alone, Refusal)
    assert (alone.code.name, alone.reason) == ("UNAVAILABLE", "INDEX_UNAVAILABLE")
    whole = ask(case, scope, 7, OTHER[kind])
    assert isinstance(whole, pb.SearchResponse)
    assert not whole.degraded
    # Both the daemon and its store go on.
    case.store(scope, f"fact about {word(9_000)}")
    status = case.admin.Status(admin_pb.StatusRequest(), timeout=20)
    (index,) = [i for i in status.indexes if i.kind == KINDS[kind]]
    assert index.state == admin_pb.INDEX_STATE_FAILED
    assert index.message
    assert any(line["level"] == "error" for line in case.daemon.log_lines)
    # A rebuild mends it, with what was stored meanwhile.
    list(case.admin.Rebuild(admin_pb.RebuildRequest(kind=KINDS[kind]), timeout=60))
    check_whole(case, scope)
    assert case.daemon.stop() == 0
    check_whole(world.start(), scope)


def check_whole(case: Case, scope: mem.Scope) -> None:
    for mode in MODES:
        for n in (5, 299, 9_000):
            answer = ask(case, scope, n, mode)
            assert isinstance(answer, pb.SearchResponse), (mode, answer)
            assert not answer.degraded
            assert answer.hits[0].memory.content == f"fact about {word(n)}", mode


@pytest.mark.parametrize("kind", KINDS)
def test_a_restart_mends_it_as_well(stocked: tuple[Case, mem.Scope], world: World, kind: str) -> None:
    case, scope = stocked
    damage(case, kind, "cut")
    ask(case, scope, 5, "hybrid")
    case.store(scope, f"fact about {word(9_000)}")
    case.daemon.stop()
    again = world.start()
    assert any(line["level"] == "warning" for line in again.daemon.log_lines), "it says so"
    check_whole(again, scope)


def test_both_indexes_broken_is_an_error_in_every_mode(stocked: tuple[Case, mem.Scope]) -> None:
    case, scope = stocked
    for kind in KINDS:
        damage(case, kind, "cut")
    for mode in MODES:
        answer = ask(case, scope, 5, mode)
        assert isinstance(answer, Refusal), mode
        assert (answer.code.name, answer.reason) == ("UNAVAILABLE", "INDEX_UNAVAILABLE")
    many = pb.SearchManyRequest(searches=[pb.SearchRequest(scope=scope, query="fact")] * 2)
    results = case.memory.SearchMany(many, timeout=20).results
    assert {r.error.reason for r in results} == {"INDEX_UNAVAILABLE"}
    assert all(r.error.retryable for r in results)
    # What does not need an index goes on.
    assert case.count(scope) == 300
    assert case.store(scope, "still stored").id
    rebuild(case)
    case.store(scope, f"fact about {word(9_000)}")
    check_whole(case, scope)


def test_nothing_known_is_not_said_while_half_is_broken_without_saying_so(stocked: tuple[Case, mem.Scope]) -> None:
    case, scope = stocked
    damage(case, "vector", "cut")
    answer = case.search(scope, "xylophone")
    assert answer.rejected
    assert [d.cause for d in answer.degraded] == [CAUSES["vector"]]


def test_index_folders_that_vanish_while_running(stocked: tuple[Case, mem.Scope], world: World) -> None:
    """What is open stays open; what is written next says what it lacks, and the next start has all of it."""
    case, scope = stocked
    shutil.rmtree(case.daemon.data_dir / "index")
    for mode in MODES:
        assert isinstance(ask(case, scope, 5, mode), pb.SearchResponse)
    case.store(scope, f"fact about {word(9_000)}")
    answer = case.call("Flush", admin_pb.FlushRequest())
    assert not isinstance(answer, Refusal) or answer.reason != "INTERNAL"
    case.daemon.stop()
    check_whole(world.start(), scope)


class Service:
    """An embedding service that can be switched off."""

    def __init__(self) -> None:
        self.broken = False
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                rows = [{"index": i, "embedding": vector(text)} for i, text in enumerate(body["input"])]
                raw = json.dumps({"data": rows}).encode()
                self.send_response(500 if service.broken else 200)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.environ = {
            "MEMXD_OPENAI_BASE_URL": f"http://127.0.0.1:{self.server.server_port}/v1",
            "MEMXD_OPENAI_MODEL": "switchable",
            "MEMXD_OPENAI_DIMENSION": "32",
            "MEMXD_OPENAI_TIMEOUT": "1",
        }


def vector(text: str) -> list[float]:
    made = [0.01] * 32
    for token in text.lower().split():
        made[sum(token.encode()) % 32] += 1.0
    return made


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_an_embedder_that_is_down(world: World, service: Service) -> None:
    case, scope = world.start(embedder="openai", extra=service.environ), fresh_scope()
    case.store(scope, "the first fact is known")
    assert not case.search(scope, "first fact known").degraded
    service.broken = True
    pending = case.store(scope, "the second fact is pending")
    assert pending.vector_pending
    answer = case.search(scope, "second fact pending")
    assert pb.DEGRADED_CAUSE_EMBEDDER_UNAVAILABLE in [d.cause for d in answer.degraded]
    assert answer.hits[0].memory.id == pending.id, "found by its words at once"
    alone = case.call("Search", pb.SearchRequest(scope=scope, query="second fact now", mode=MODES["vector"]))
    assert isinstance(alone, Refusal)
    assert (alone.code.name, alone.reason) == ("UNAVAILABLE", "EMBEDDER_UNAVAILABLE")
    assert not case.search(scope, "second fact pending", mode=MODES["keyword"]).degraded
    damage(case, "keyword", "cut")
    rebuild(case)
    flush(case)
    damage(case, "keyword", "cut")
    nothing = case.call("Search", pb.SearchRequest(scope=scope, query="second fact pending"))
    assert isinstance(nothing, Refusal)
    assert nothing.code.name == "UNAVAILABLE"
