"""What the feature tests share: real daemons, an embedding service to switch on and off, and the formulas of the docs.

Every test works in a scope of its own, so that many share one daemon. The formulas are written out here once more, in
plain Python, from docs/RETRIEVAL.md and not from the code they check.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import casekit
from memxd.client import Client
from memxd.embed.hashing import HashingEmbedder
from memxd.model import DAY, Explanation, Hit, SearchAnswer

HASHING = "hashing-384-1"
NOBODY = "0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e"  # a UUID that no memory and no link was ever given


class World(casekit.World):
    """A folder in which a test starts daemons, one after the other, and asks whichever serves."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._clients: list[Client] = []

    def serve(self, *flags: str, **options: Any) -> Any:
        """A daemon that serves, as a process; the one before it must have been stopped."""
        return self.start(*flags, **options).daemon

    def client(self, **options: Any) -> Client:
        """A client of whatever daemon serves."""
        made = Client(self.socket, **{"timeout": 60.0} | options)
        self._clients.append(made)
        return made

    def close(self) -> None:
        """End whatever still runs."""
        for client in self._clients:
            client.close()
        super().close()


@contextmanager
def world() -> Iterator[World]:
    """A world under a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="mxf-"))
    made = World(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


_names = itertools.count()


def fresh_scope(client: Client) -> Client:
    """A view of the client on a scope that nothing else uses."""
    number = next(_names)
    return client.scope(agent_id=f"agent-{number}", user_id=f"user-{number}")


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The first true value of ``condition``; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"not so within {seconds} s"
        time.sleep(0.05)
    return value


# -- asking --------------------------------------------------------------------------------------------------------


def ask(client: Client, query: str, **options: Any) -> SearchAnswer:
    """A search that leaves no trace, explained."""
    return client.search(query, **{"explain": True, "record_retrieval": False, **options})


def contents(answer: SearchAnswer) -> list[str]:
    return [hit.memory.content for hit in answer.hits]


def ids(answer: SearchAnswer) -> list[str]:
    return [hit.memory.id for hit in answer.hits]


def why(hit: Hit) -> Explanation:
    assert hit.explanation is not None
    return hit.explanation


def causes(answer: SearchAnswer) -> list[str]:
    return [d.cause.name for d in answer.degraded]


def axis(number: int, *more: tuple[int, float], dimension: int = 384) -> list[float]:
    """A vector along one axis, with parts of others: ``axis(0, (1, 0.5))`` has cosine 1/sqrt(1.25) to ``axis(0)``."""
    vector = [0.0] * dimension
    vector[number] = 1.0
    for place, part in more:
        vector[place] = part
    return vector


# -- formulas ------------------------------------------------------------------------------------------------------


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def relevance(place: float, words: float = 0.0) -> float:
    """From the cosine's place in the model's band, cut to -1..2, and the word match."""
    return sigmoid(-3.2 + 4.2 * min(2.0, max(-1.0, place)) + 2.6 * words)


def rrf(why: Explanation, k: int = 60, vector_weight: float = 1.0, keyword_weight: float = 1.0) -> float:
    """Cormack, Clarke, Buettcher 2009, with a weight for each leg."""
    found = 0.0
    if why.vector_rank is not None:
        found += vector_weight / (k + why.vector_rank)
    if why.keyword_rank is not None:
        found += keyword_weight / (k + why.keyword_rank)
    return found


def recency(since: int, asked_at: int, half_life: int = 30 * DAY) -> float:
    return float(2.0 ** (-max(0, asked_at - since) / half_life))


def frequency(uses: int) -> float:
    return min(1.0, math.log(uses + 1) / 10.0)


def raw_score(why: Explanation) -> float:
    return sum(f.value * f.weight for f in (why.semantic, why.recency, why.frequency, why.importance))


def z_scores(raws: Sequence[float]) -> list[float]:
    """Population z-scores; 0 where nothing differs."""
    mean = sum(raws) / len(raws)
    deviation = math.sqrt(sum((r - mean) ** 2 for r in raws) / len(raws))
    return [(r - mean) / deviation if deviation > 1e-12 else 0.0 for r in raws]


# -- an embedding service ------------------------------------------------------------------------------------------


class Service:
    """An OpenAI-compatible embedding service on this machine: vectors of the hashing embedder, off and on at will.

    It also answers as an HTTP proxy for any host, so that a daemon can be given an address that is not this machine's.
    ``texts`` are those it was sent.
    """

    def __init__(self, dimension: int = 64, port: int = 0) -> None:
        self.texts: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._embedder = HashingEmbedder(dimension)
        self._server: ThreadingHTTPServer | None = None
        self.port = port
        self.on()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def is_on(self) -> bool:
        return self._server is not None

    def on(self) -> None:
        """Answer, on the same port as before."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def off(self) -> None:
        """Close the port: connections are refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.requests.append(body)
                service.headers.append(dict(self.headers))
                service.texts.extend(body["input"])
                rows = service._embedder.embed_passages(body["input"]).tolist()
                data = [{"index": n, "embedding": row} for n, row in enumerate(rows)]
                answer = json.dumps({"data": data}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler

    def flags(self, model: str = "m", dimension: int = 64, **more: str) -> list[str]:
        """The daemon's flags to use it."""
        named = {"openai-base-url": self.url, "openai-model": model, "openai-dimension": str(dimension), **more}
        return [part for name, value in named.items() for part in (f"--{name}", value)]
