"""Fixtures of the client's tests: a scripted server, and both clients behind one blocking face."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memxd.client import AsyncClient, Client, Retry

_SPEC = importlib.util.spec_from_file_location("scripted", Path(__file__).with_name("scripted.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
scripted = sys.modules.setdefault("scripted", importlib.util.module_from_spec(_SPEC))
_SPEC.loader.exec_module(scripted)

#: Fast and without chance.
QUICK = Retry(attempts=4, first_pause=0.001, longest_pause=0.01, jitter=lambda: 0.0)


@pytest.fixture
def socket() -> Iterator[Path]:
    """A path short enough for a socket, whatever the test's own folder is called."""
    with tempfile.TemporaryDirectory(prefix="memxd-") as folder:
        yield Path(folder) / "s.sock"


@pytest.fixture
def server(socket: Path) -> Iterator[Any]:
    running = scripted.Scripted(socket)
    running.start()
    yield running
    running.stop()


class Blocking:
    """AsyncClient with Client's face, so that each test runs against both. Streams come back as lists."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = AsyncClient(*arguments, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            async def carry_out() -> Any:
                made = getattr(self._client, name)(*arguments, **options)
                return [item async for item in made] if hasattr(made, "__aiter__") else await made

            return self._loop.run_until_complete(carry_out())

        return call

    def close(self) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


@pytest.fixture(params=["blocking", "asyncio"])
def make_client(request: pytest.FixtureRequest, socket: Path) -> Iterator[Callable[..., Any]]:
    """Makes a client of either kind for the test's socket."""
    made: list[Any] = []

    def make(**options: Any) -> Any:
        options = {"retry": QUICK, "timeout": 5.0, **options}
        made.append((Client if request.param == "blocking" else Blocking)(socket, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: Callable[..., Any]) -> Any:
    return make_client()
