"""What the case tests share: daemons as processes, requests for every RPC, and refusals as values.

``Case`` is one running daemon with raw stubs and clients; ``Refusal`` is why a call or one item of it was refused, in
one shape for failed calls, StoreMany items and SearchMany results. Every test works in a scope of its own, so that many
share one daemon.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memxd.client import Client
from memxd.v1 import admin_service_pb2 as admin_pb
from memxd.v1 import memory_pb2 as mem
from memxd.v1 import memory_service_pb2 as pb
from memxd.v1 import search_pb2

TIMEOUT = 60.0
NOBODY = "0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e"  # a UUID that no memory and no link was ever given


def _daemon_module() -> ModuleType:
    """The process class of the daemon's own tests; shared by path, since test folders are no packages."""
    name = "memxd_daemon_process"
    if name not in sys.modules:
        path = Path(__file__).parents[1] / "daemon" / "conftest.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


ROOT: Path = _daemon_module().ROOT


def clean_environ(home: Path) -> dict[str, str]:
    """This environment without a user's own settings and home."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMXD_", "MEMX_", "XDG_", "NOTIFY_"))}
    return kept | {"HOME": str(home), "PYTHONPATH": os.pathsep.join(p for p in [str(ROOT), *sys.path] if p)}


class World:
    """A folder with a home, a socket and a data directory, and the daemons started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "run" / "memxd.sock"
        self.data_dir = folder / "data"
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.environ = clean_environ(self.home)
        self.started: list[Any] = []

    def start(
        self,
        *flags: str,
        embedder: str = "hashing",
        prefix: tuple[str, ...] = (),
        extra: Mapping[str, str] | None = None,
        wait: bool = True,
        socket: Path | None = None,
        data_dir: Path | None = None,
    ) -> Case:
        """Start a daemon; it serves when this returns, unless told not to wait."""
        socket, data_dir = socket or self.socket, data_dir or self.data_dir
        command = [*prefix, sys.executable, "-m", "memxd", "serve", "--socket", str(socket)]
        command += ["--data-dir", str(data_dir), "--embedder", embedder, *flags]
        log = self.folder / f"daemon-{len(self.started)}.log"
        daemon = _daemon_module().Daemon(command, socket, data_dir, self.environ | dict(extra or {}), log)
        self.started.append(daemon)
        if wait:
            daemon.wait_serving()
        return Case(daemon)

    def close(self) -> None:
        """End whatever still runs."""
        for daemon in self.started:
            daemon.close()


@contextmanager
def world() -> Iterator[World]:
    """A world under a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="mxd-"))
    made = World(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


_numbers = itertools.count()


def word(n: int) -> str:
    """A word of letters alone: the analyzer finds parts of anything else as well."""
    return "zq" + str(n).translate(str.maketrans("0123456789", "bcdfghjkmn")) + "oz"


def fresh_scope(hint: str = "case") -> mem.Scope:
    """A scope that no other test uses."""
    return mem.Scope(agent_id=f"{hint}-{next(_numbers)}-{os.getpid()}", user_id="someone")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call, or an item of it, was refused. ``domain`` is None for items, which carry none."""

    code: grpc.StatusCode
    reason: str
    message: str
    fields: tuple[str, ...]
    metadata: Mapping[str, str]
    domain: str | None = None

    @property
    def field(self) -> str:
        """The first offending field."""
        return self.fields[0] if self.fields else ""


_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}


def refusal_of(error: grpc.RpcError) -> Refusal:
    """The details of a failed call; it fails when memxd's own are not there."""
    status = rpc_status.from_call(error)
    assert status is not None, f"no details: {error.code()} {error.details()}"
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
        if detail.Is(bad.DESCRIPTOR):
            detail.Unpack(bad)
    assert info.reason, f"no ErrorInfo: {status}"
    assert _BY_NUMBER[status.code] is error.code()
    fields = tuple(v.field for v in bad.field_violations)
    assert all(v.description for v in bad.field_violations)
    return Refusal(error.code(), info.reason, status.message, fields, dict(info.metadata), info.domain)


def _item_refusal(error: pb.ItemError) -> Refusal:
    fields = (error.field,) if error.field else ()
    return Refusal(_BY_NUMBER[error.code], error.reason, error.message, fields, dict(error.metadata))


class Case:
    """One daemon."""

    def __init__(self, daemon: Any) -> None:
        self.daemon = daemon
        self.memory, self.admin = daemon.memory, daemon.admin

    def client(self, scope: mem.Scope | None = None, **options: Any) -> Client:
        """A client bound to a scope."""
        scope = scope or mem.Scope()
        return Client(
            self.daemon.socket,
            agent_id=scope.agent_id or None,
            user_id=scope.user_id or None,
            **{"timeout": TIMEOUT} | options,
        )

    def call(self, rpc: str, request: Any) -> Any:
        """The answer of an RPC, of the first item where it is a stream or a SearchMany; or its Refusal."""
        try:
            if rpc == "StoreMany":
                return self._first_of_store_many(request)
            if rpc == "SearchMany":
                result = self.memory.SearchMany(request, timeout=TIMEOUT).results[0]
                return _item_refusal(result.error) if result.HasField("error") else result.response
            if rpc == "Rebuild":
                return list(self.admin.Rebuild(request, timeout=TIMEOUT))
            stub = self.admin if rpc in ("Status", "Flush") else self.memory
            return getattr(stub, rpc)(request, timeout=TIMEOUT)
        except grpc.RpcError as error:
            return refusal_of(error)

    def _first_of_store_many(self, request: pb.StoreManyRequest) -> Any:
        answers = list(self.memory.StoreMany(iter([request]), timeout=TIMEOUT))
        assert [a.index for a in answers] == [0]
        return _item_refusal(answers[0].error) if answers[0].HasField("error") else answers[0].stored

    def store(self, scope: mem.Scope, content: str, **fields: Any) -> mem.Memory:
        """Store one and answer it."""
        request = pb.StoreRequest(scope=scope, memory=pb.NewMemory(content=content, **fields))
        return self.memory.Store(request, timeout=TIMEOUT).memory

    def store_all(self, scope: mem.Scope, memories: list[pb.NewMemory]) -> list[mem.Memory]:
        """Store many over one stream; every one must be taken."""
        requests = (pb.StoreManyRequest(scope=scope, memory=m) for m in memories)
        answers = list(self.memory.StoreMany(requests, timeout=4 * TIMEOUT))
        assert [a.WhichOneof("result") for a in answers] == ["stored"] * len(memories)
        return [a.stored.memory for a in answers]

    def search(self, scope: mem.Scope, query: str, **fields: Any) -> pb.SearchResponse:
        """Ask."""
        return self.memory.Search(pb.SearchRequest(scope=scope, query=query, **fields), timeout=TIMEOUT)

    def found(self, scope: mem.Scope, query: str, **fields: Any) -> list[str]:
        """The contents that answer, best first."""
        return [hit.memory.content for hit in self.search(scope, query, **fields).hits]

    def count(self, scope: mem.Scope, **fields: Any) -> int:
        """How many active ones there are."""
        return self.memory.Count(pb.CountRequest(scope=scope, **fields), timeout=TIMEOUT).count


MODES = {
    "hybrid": search_pb2.SEARCH_MODE_HYBRID,
    "vector": search_pb2.SEARCH_MODE_VECTOR,
    "keyword": search_pb2.SEARCH_MODE_KEYWORD,
}


def at_once(jobs: list[Callable[[], Any]], threads: int | None = None) -> list[Any]:
    """Run the jobs in as many threads; their results in order, or the first exception."""
    with ThreadPoolExecutor(threads or len(jobs)) as pool:
        return [future.result(TIMEOUT * 3) for future in [pool.submit(job) for job in jobs]]


def assert_refused(answer: Any, field: str, reason: str = "INVALID_ARGUMENT") -> Refusal:
    """``answer`` is a refusal of ``reason`` that names ``field`` (or an element of it)."""
    assert isinstance(answer, Refusal), f"not refused: {str(answer)[:300]}"
    assert answer.reason == reason, answer
    assert answer.domain in (None, "memxd"), answer
    if field:
        head = answer.field.partition("[")[0]
        assert field in (answer.field, head), answer
        assert answer.message, answer
    return answer


def refused(call: Callable[[], Any]) -> Refusal:
    """The refusal of a raw call that must fail."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return refusal_of(caught.value)


def flush(case: Case) -> None:
    """Everything on disk."""
    case.admin.Flush(admin_pb.FlushRequest(), timeout=TIMEOUT)


def rebuild(case: Case) -> None:
    """Every index anew."""
    list(case.admin.Rebuild(admin_pb.RebuildRequest(), timeout=2 * TIMEOUT))
