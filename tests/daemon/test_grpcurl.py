"""The real grpcurl against the real daemon: what a stranger with a generic tool gets to see.

It knows the contract by reflection alone. Skipped with a reason where grpcurl lacks (``make tools`` fetches it).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.tools


@pytest.fixture
def grpcurl(daemon: Any) -> Any:
    """Call grpcurl on the daemon's socket: ``grpcurl(*arguments, message=...)``."""
    here = ROOT / ".tools" / "bin" / "grpcurl"
    tool = str(here) if here.exists() else shutil.which("grpcurl")
    if tool is None:
        if os.environ.get("CI_REQUIRE_TOOLS") == "1":
            pytest.fail("grpcurl lacks and CI_REQUIRE_TOOLS=1")
        pytest.skip("no grpcurl (make tools needs go)")

    def call(*arguments: str, message: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        given = [] if message is None else ["-d", json.dumps(message)]
        command = [tool, "-plaintext", "-unix", *given, str(daemon.socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    return call


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a call that must succeed answered."""
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_list_names_the_services(grpcurl: Any) -> None:
    done = grpcurl("list")
    assert done.returncode == 0, done.stderr
    names = set(done.stdout.split())
    assert {"memxd.v1.MemoryService", "memxd.v1.AdminService", "grpc.health.v1.Health"} <= names


def test_describe_shows_every_call(grpcurl: Any) -> None:
    done = grpcurl("describe", "memxd.v1.MemoryService")
    assert done.returncode == 0, done.stderr
    assert "rpc Search ( .memxd.v1.SearchRequest ) returns ( .memxd.v1.SearchResponse );" in done.stdout
    assert "rpc StoreMany ( stream .memxd.v1.StoreManyRequest )" in done.stdout


def test_describe_shows_a_message(grpcurl: Any) -> None:
    done = grpcurl("describe", "memxd.v1.Scope")
    assert done.returncode == 0, done.stderr
    assert "optional string agent_id = 1;" in done.stdout


def test_what_was_stored_is_found(grpcurl: Any) -> None:
    stored = answer(
        grpcurl(
            "memxd.v1.MemoryService/Store", message={"memory": {"content": "The spare key is under the third pot."}}
        )
    )
    found = answer(
        grpcurl("memxd.v1.MemoryService/Search", message={"query": "where is the spare key?", "explain": True})
    )
    (hit,) = found["hits"]
    assert hit["memory"]["id"] == stored["memory"]["id"]
    assert hit["memory"]["scope"] == {"agent_id": "default", "user_id": "default"}
    assert hit["explanation"]["terms"]


def test_health_is_serving(grpcurl: Any) -> None:
    assert answer(grpcurl("grpc.health.v1.Health/Check", message={})) == {"status": "SERVING"}
    one = answer(grpcurl("grpc.health.v1.Health/Check", message={"service": "memxd.v1.MemoryService"}))
    assert one == {"status": "SERVING"}


def test_a_refusal_shows_its_reason_and_field(grpcurl: Any) -> None:
    done = grpcurl("memxd.v1.MemoryService/Search", message={"query": " "})
    assert done.returncode != 0
    for part in (
        "Code: InvalidArgument",
        '"reason": "INVALID_ARGUMENT"',
        '"domain": "memxd"',
        "BadRequest",
        '"field": "query"',
    ):
        assert part in done.stderr


def test_an_unknown_call_is_unimplemented(grpcurl: Any) -> None:
    done = grpcurl("memxd.v1.MemoryService/Forget", message={})
    assert done.returncode != 0
    assert "does not include a method named" in done.stderr


def test_a_stream_of_answers_is_shown(grpcurl: Any) -> None:
    done = grpcurl("memxd.v1.AdminService/Rebuild", message={"kind": "INDEX_KIND_COLUMNS"})
    assert done.returncode == 0, done.stderr
    assert '"finished": true' in done.stdout
