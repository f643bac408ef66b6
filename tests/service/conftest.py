"""A real gRPC server on a real socket, over an engine whose answers the test decides.

The engine is a stand-in on purpose: here it is about admission, errors and streams, and a test must be able to hold a
call in the middle. The real engine is driven in tests/daemon.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from memxd.autostart import target
from memxd.engine.courtesy import Courtesy
from memxd.engine.stream import Grouped, groups
from memxd.errors import MemxdError
from memxd.model import Deadline, Memory, MemoryType, Page, Scope, SearchAnswer, State, StoreAnswer
from memxd.service.convert.admin import ProcessFacts
from memxd.service.gate import Gate
from memxd.service.server import Server
from memxd.service.socket import SocketClaim
from memxd.v1 import memory_service_pb2_grpc


def make_memory(**changes: Any) -> Memory:
    """A memory with every required field."""
    fields: dict[str, Any] = {
        "id": "0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e",
        "scope": Scope("a", "u"),
        "content": "likes tea",
        "type": MemoryType.SEMANTIC,
        "tags": (),
        "metadata": {},
        "importance": 0.5,
        "created_at": 1_700_000_000_000_001,
        "updated_at": 1_700_000_000_000_001,
        "event_at": None,
        "valid_until": None,
        "state": State.ACTIVE,
        "private": False,
        "source": "",
        "revision": 1,
    }
    return Memory(**(fields | changes))


class ScriptedEngine:
    """Answers ``get`` by the id: "hold" waits for ``release``, an error in ``errors`` is raised, else a memory."""

    def __init__(self) -> None:
        self.courtesy = Courtesy()
        self.release = threading.Event()
        self.entered = threading.Semaphore(0)
        self.errors: dict[str, Exception] = {}
        self.deadlines: list[Deadline] = []
        self.pages: list[int | None] = []
        self.contents: list[str] = []

    def get(self, scope: Scope, id: str, record_access: bool, deadline: Deadline) -> tuple[Memory, int]:
        """One memory, or what the test wants."""
        self.deadlines.append(deadline)
        if id == "hold":
            self.entered.release()
            while not self.release.wait(0.01):
                deadline.check()
        if id in self.errors:
            raise self.errors[id]
        return make_memory(id=id, scope=scope), 7

    def store_groups(self, items: Grouped[Any], deadline: Deadline) -> Iterator[list[StoreAnswer | MemxdError]]:
        """Each item stored, each refusal handed through."""
        for group in groups(items, 64):
            yield [
                item if isinstance(item, MemxdError) else StoreAnswer(make_memory(content=item[1].content), number)
                for number, item in enumerate(group)
            ]

    def list(self, scope: Scope, filter: object, *, page_size: int | None, page_token: str, **_: Any) -> Page:
        """Pages over ``contents``; the token is the next position."""
        self.pages.append(page_size)
        begin = int(page_token or 0)
        end = min(len(self.contents), begin + (page_size or 50))
        memories = tuple(make_memory(id=str(n), content=self.contents[n]) for n in range(begin, end))
        return Page(memories, str(end) if end < len(self.contents) else "", 9)

    def delete_many(self, *_: Any, **__: Any) -> tuple[int, int]:
        """Must never be reached by a request without a scope."""
        raise AssertionError("erased without a scope")

    def search_many(self, queries: Sequence[Any], deadline: Deadline) -> Sequence[SearchAnswer | MemxdError]:
        """An empty answer for each question."""
        return [SearchAnswer((), revision=len(query.query)) for query in queries]


class Running:
    """A server and what a test wants of it."""

    def __init__(self, path: Path, gate: Gate, server: Server, engine: ScriptedEngine, channel: grpc.Channel) -> None:
        self.path, self.gate, self.server, self.engine, self.channel = path, gate, server, engine, channel
        self.memory = memory_service_pb2_grpc.MemoryServiceStub(channel)


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[Running]:
    """A server whose engine is not open yet; room for two calls at once and one more waiting, one stream."""
    with SocketClaim(tmp_path / "socket" / "memxd.sock", {}) as claim:
        gate = Gate(workers=2, max_pending=3, max_streams=1)
        facts = ProcessFacts("0", 1, 1, str(claim.path), str(tmp_path), "UTC")
        server = Server(gate, facts, max_pending=3, with_reflection=True)
        server.start(claim)
        engine = ScriptedEngine()
        with grpc.insecure_channel(target(claim.path)) as channel:
            yield Running(claim.path, gate, server, engine, channel)
        engine.release.set()
        server.close()


@pytest.fixture
def running(starting: Running) -> Running:
    """A server that serves."""
    starting.gate.open(starting.engine)  # type: ignore[arg-type]  # the stand-in has the verbs these tests call
    starting.server.set_serving(True)
    return starting
