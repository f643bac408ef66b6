"""The client needs nothing but the standard library, grpcio and protobuf, and is quick to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import memxd

# typing_extensions is grpcio's own requirement.
PROGRAM = """
import sys

ALLOWED = set(sys.stdlib_module_names) | {"grpc", "google", "memxd", "typing_extensions"}
OURS = {"memxd", "memxd.errors", "memxd.error_base", "memxd.start_errors", "memxd.model", "memxd.v1", "memxd.client"}
OURS |= {"memxd.socket_path", "memxd.address"}


class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ALLOWED:
            raise ModuleNotFoundError(name)
        if name.split(".")[0] == "memxd" and ".".join(name.split(".")[:2]) not in OURS:
            raise ModuleNotFoundError(name)
        return None


sys.meta_path.insert(0, Wall())
import memxd, memxd.errors, memxd.model, memxd.client
import memxd.v1.memory_service_pb2, memxd.v1.admin_service_pb2_grpc
from memxd.client import failures, Client
from memxd.errors import DaemonUnreachableError

try:
    Client("/nowhere/s.sock", timeout=0.2).count()
except DaemonUnreachableError:
    print("lean")
"""


def test_the_client_imports_only_what_a_lean_install_has() -> None:
    root = str(Path(memxd.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=root, timeout=60, check=False
    )
    assert done.stdout.strip() == "lean", done.stderr


def test_importing_the_package_alone_loads_nothing_else() -> None:
    root = str(Path(memxd.__file__).parents[1])
    program = "import sys; before = set(sys.modules); import memxd; print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=root, timeout=60, check=True
    )
    assert done.stdout.strip() == "['memxd']"
