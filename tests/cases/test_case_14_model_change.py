"""Case 14: another embedding model: noticed, every memory embedded again while it serves, never mixed, never wiped."""

from __future__ import annotations

import hashlib
import json
import math
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from casekit import MODES, TIMEOUT, Case, World, fresh_scope, word
from memxd.embed.convert import SOURCE_DISTRIBUTION, SOURCE_FILE, find_installed
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb

COUNT = 400
#: Texts of one transaction of the daemon, and of one request to the endpoint on top.
BATCH = 64


class Endpoint:
    """An OpenAI-compatible service on this machine. A test holds it, breaks it, and sees which texts came."""

    def __init__(self, dimension: int, model: str) -> None:
        endpoint = self
        self.dimension, self.model = dimension, model
        self.texts: list[str] = []
        self.allowed: float = math.inf  # texts, until it stands still
        self.status = 200

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.answer(self, request["input"])

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler, texts: list[str]) -> None:
        until = time.monotonic() + TIMEOUT
        while len(self.texts) >= self.allowed and self.status == 200 and time.monotonic() < until:
            time.sleep(0.01)
        data = []
        if self.status == 200:
            self.texts += texts
            data = [{"index": n, "embedding": vector(text, self.dimension)} for n, text in enumerate(texts)]
        body = json.dumps({"data": data}).encode()
        try:
            handler.send_response(self.status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)
        except OSError:
            handler.close_connection = True  # the daemon was killed meanwhile

    @property
    def flags(self) -> dict[str, str]:
        return {
            "MEMXD_OPENAI_BASE_URL": f"http://127.0.0.1:{self.server.server_port}/v1",
            "MEMXD_OPENAI_MODEL": self.model,
            "MEMXD_OPENAI_DIMENSION": str(self.dimension),
            "MEMXD_OPENAI_TIMEOUT": "60",
            "MEMXD_OPENAI_BATCH": "16",
        }

    def close(self) -> None:
        self.allowed = math.inf
        self.server.shutdown()
        self.server.server_close()


def vector(text: str, dimension: int) -> list[float]:
    """Words as random directions, added up."""
    made = [0.001] * dimension
    for token in text.lower().split():
        source = random.Random(hashlib.sha256(token.encode()).digest())
        made = [x + source.gauss(0, 1) for x in made]
    return made


@pytest.fixture
def endpoint() -> Iterator[Callable[..., Endpoint]]:
    made: list[Endpoint] = []

    def open_(dimension: int, model: str = "far") -> Endpoint:
        made.append(Endpoint(dimension, model))
        return made[-1]

    yield open_
    for one in made:
        one.close()


def status(case: Case) -> admin_pb.StatusResponse:
    return case.admin.Status(admin_pb.StatusRequest(), timeout=TIMEOUT)


def change(case: Case) -> admin_pb.ModelChange | None:
    told = status(case)
    return told.model_change if told.HasField("model_change") else None


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT
    while not what():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def fact(n: int) -> str:
    return f"{word(n)} likes {word(n + 1_000)} more than {word(n + 2_000)}"


def stocked(world: World, **how: object) -> tuple[Case, mem.Scope]:
    case, scope = world.start(**how), fresh_scope()  # type: ignore[arg-type]
    case.store_all(scope, [pb.NewMemory(content=fact(n)) for n in range(COUNT)])
    return case, scope


def by_meaning(case: Case, scope: mem.Scope, n: int) -> bool:
    return case.found(scope, fact(n), mode=MODES["vector"], k=1) == [fact(n)]


def verified(case: Case) -> None:
    last = list(case.admin.Verify(admin_pb.VerifyRequest(), timeout=TIMEOUT))[-1]
    assert list(last.problems) == []


def exported(case: Case, scope: mem.Scope) -> list[dict[str, object]]:
    parts = case.memory.Export(pb.ExportRequest(scope=scope, vectors=True, include_private=True), timeout=TIMEOUT)
    lines = b"".join(part.lines for part in parts).splitlines()
    return [line for line in map(json.loads, lines) if line.get("kind") == "memory"]


@pytest.mark.parametrize(("dimension", "model"), [(768, "far"), (384, "near")])
def test_killed_in_the_middle_it_goes_on_and_the_former_model_answers(
    world: World, endpoint: Callable[..., Endpoint], dimension: int, model: str
) -> None:
    case, scope = stocked(world)
    case.daemon.stop()
    there = endpoint(dimension, model)
    there.allowed = 150
    case = world.start(embedder="openai", extra=there.flags)
    until(lambda: (c := change(case)) is not None and c.done >= BATCH)
    told = change(case)
    assert told is not None
    assert told.former_serves
    assert (told.from_id, told.to_dimension, told.total) == ("hashing-384-1", dimension, COUNT)
    assert by_meaning(case, scope, 7)
    assert not case.search(scope, fact(7)).degraded
    later = case.store(scope, fact(COUNT))
    assert not later.vector_pending
    assert by_meaning(case, scope, COUNT)
    case.daemon.signal(signal.SIGKILL)
    case.daemon.wait()
    there.allowed = math.inf
    case = world.start(embedder="openai", extra=there.flags)
    until(lambda: change(case) is None)
    passages = list(there.texts)
    assert {fact(n) for n in range(COUNT + 1)} <= set(passages)
    assert len(passages) <= COUNT + 1 + 2 * BATCH, "what was made before the kill was made again"
    after = status(case)
    assert after.model.id == f"{model}@{dimension}"
    assert (after.memories, after.vectors_pending) == (COUNT + 1, 0)
    assert all(by_meaning(case, scope, n) for n in (0, 7, 399, COUNT))
    verified(case)
    lines = [line for line in exported(case, scope) if line.get("chunks")]
    assert len(lines) == COUNT + 1
    assert {line["model_id"] for line in lines} == {after.model.id}


def test_words_answer_where_the_former_model_is_gone(world: World, endpoint: Callable[..., Endpoint]) -> None:
    first = endpoint(64, "gone")
    case, scope = stocked(world, embedder="openai", extra=first.flags)
    case.daemon.stop()
    second = endpoint(96, "new")
    second.allowed = 0
    case = world.start(embedder="openai", extra=second.flags)
    answer = case.search(scope, fact(7))
    assert answer.hits[0].memory.content == fact(7)
    assert pb.DEGRADED_CAUSE_MODEL_MISMATCH in [d.cause for d in answer.degraded]
    assert "embedded again" in answer.degraded[0].message
    pending = case.store(scope, fact(COUNT))
    assert pending.vector_pending
    second.allowed = math.inf
    until(lambda: change(case) is None and status(case).vectors_pending == 0)
    assert not case.search(scope, fact(7)).degraded
    assert all(by_meaning(case, scope, n) for n in (0, 7, COUNT))
    verified(case)


def test_it_goes_on_when_the_endpoint_returns(world: World, endpoint: Callable[..., Endpoint]) -> None:
    case, scope = stocked(world)
    case.daemon.stop()
    there = endpoint(96)
    there.status = 503
    case = world.start(embedder="openai", extra=there.flags)
    until(lambda: (c := change(case)) is not None and c.message != "")
    assert by_meaning(case, scope, 7)
    there.status = 200
    until(lambda: change(case) is None)
    assert by_meaning(case, scope, 7)
    verified(case)


def test_there_and_back_keeps_every_vector(world: World, endpoint: Callable[..., Endpoint]) -> None:
    case, scope = stocked(world)
    before = exported(case, scope)
    case.daemon.stop()
    there = endpoint(96)
    there.allowed = 100
    case = world.start(embedder="openai", extra=there.flags)
    until(lambda: (c := change(case)) is not None and c.done >= BATCH)
    case.daemon.signal(signal.SIGKILL)
    case.daemon.wait()
    case = world.start()
    assert change(case) is None
    assert exported(case, scope) == before
    assert all(by_meaning(case, scope, n) for n in (0, 399))
    verified(case)


def test_vectors_of_another_model_are_made_anew_by_an_import(world: World, endpoint: Callable[..., Endpoint]) -> None:
    case, scope = stocked(world)
    parts = case.memory.Export(pb.ExportRequest(scope=scope, vectors=True), timeout=TIMEOUT)
    lines = b"".join(part.lines for part in parts)
    case.daemon.stop()
    there = endpoint(96)
    other = world.start(embedder="openai", extra=there.flags, data_dir=world.folder / "other")
    *_, last = other.memory.Import(iter([pb.ImportRequest(scope=scope, lines=lines)]), timeout=TIMEOUT)
    assert (last.added, last.refused) == (COUNT, 0)
    assert status(other).vectors_pending == 0
    assert all(by_meaning(other, scope, n) for n in (0, 7, 399))
    verified(other)


def test_the_command_changes_the_model_and_waits(world: World) -> None:
    """From the stand-in to the model on board, of as many dimensions, through ``memx models use``."""
    if find_installed(SOURCE_DISTRIBUTION, SOURCE_FILE) is None:
        pytest.skip(f"{SOURCE_DISTRIBUTION} is not installed (it has no wheel for every platform)")
    config = world.home / "config" / "memxd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('embedder = "hashing"\n')
    config.chmod(0o600)
    environ = {"XDG_CONFIG_HOME": str(world.home / "config"), "MEMXD_SOCKET": str(world.socket)}
    environ |= {"MEMXD_DATA_DIR": str(world.data_dir)}

    def memx(*words: str) -> Any:
        command = [sys.executable, "-m", "memxd.cli", *words, "--json"]
        done = subprocess.run(
            command, env=world.environ | environ, capture_output=True, text=True, timeout=4 * TIMEOUT, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    try:
        for n in range(3):
            memx("add", f"{word(n)} lives in town number {n}")
        listed = memx("models")
        assert [model["in_use"] for model in listed["models"]] == [False]
        assert listed["serving"]["id"] == "hashing-384-1"
        done = memx("models", "use", "default", "--wait")
        assert (done["restarted"], done["change"]) == (True, None)
        listed = memx("models")
        assert [model["in_use"] for model in listed["models"]] == [True]
        assert listed["serving"]["id"] == listed["models"][0]["id"]
        told = memx("status")["engine"]
        assert (told["memories"], told["vectors_pending"], told["model_change"]) == (3, 0, None)
        assert memx("search", f"where does {word(1)} live")["hits"][0]["memory"]["content"].startswith(word(1))
        assert memx("verify")["problems"] == []
    finally:
        memx("stop")
