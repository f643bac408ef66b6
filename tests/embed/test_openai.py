"""The HTTP embedder against a real local server that behaves well and badly."""

from __future__ import annotations

import json
import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from memxd.embed.openai import COOL_DOWN, OpenAIEmbedder, estimate_tokens
from memxd.embed.openai_presets import PRESETS, Preset
from memxd.embed.retry import RetryPolicy
from memxd.embed.settings import EmbedSettings
from memxd.errors import ConfigError, DeadlineExceededError, EmbedderUnavailableError
from memxd.model import Deadline

#: status, headers, body; the body None = good vectors.
Reply = tuple[int, dict[str, str], Any]
KEY = "key-nobody-may-see"


class Service:
    """A server that answers from a script, then well; keeps what it was asked."""

    def __init__(self) -> None:
        self.script: list[Reply | Callable[[dict[str, Any]], Reply]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.hold = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.requests.append({"path": self.path, **body})
                service.headers.append({k.lower(): v for k, v in self.headers.items()})
                step = service.script.pop(0) if service.script else (200, {}, None)
                status, headers, answer = step(body) if callable(step) else step
                raw = answer if isinstance(answer, bytes) else json.dumps(answer or good(body)).encode()
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def vector(text: str) -> list[float]:
    return [float(len(text)), float(text.count("a")), 1.0, 2.0]


def good(body: dict[str, Any]) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(body["input"])]
    # Services may answer in any order; the index counts.
    return {"object": "list", "data": rows[::-1], "model": body["model"]}


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.close()


class Rig:
    """An embedder whose sleeps are recorded instead of slept."""

    def __init__(self, service: Service, **keys: Any) -> None:
        self.slept: list[float] = []
        self.now = 100.0
        shape = {"batch": 3, "window_tokens": 8192, **{k: keys.pop(k) for k in ("batch", "window_tokens") if k in keys}}
        preset = Preset("test", f"http://127.0.0.1:{service.server.server_port}/v1", "m", 4, needs_key=False, **shape)
        self.embedder = OpenAIEmbedder(
            preset, **{"key": KEY, "rng": random.Random(1), "sleep": self.slept.append, "monotonic": lambda: self.now,
            "timeout": 5.0, **keys},
        )  # fmt: skip


@pytest.fixture
def rig(service: Service) -> Iterator[Rig]:
    made = Rig(service)
    yield made
    made.embedder.close()


def test_vectors_come_in_the_order_of_the_texts_in_batches(service: Service, rig: Rig) -> None:
    texts = ["a", "bb", "aaa", "dddd", "eeeee"]
    rows = rig.embedder.embed_passages(texts)
    expected = np.array([vector(t) for t in texts], np.float32)
    np.testing.assert_allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)
    assert [len(r["input"]) for r in service.requests] == [3, 2]
    assert service.requests[0]["path"] == "/v1/embeddings"
    assert "dimensions" not in service.requests[0]
    assert service.headers[0]["authorization"] == f"Bearer {KEY}"
    assert rig.embedder.embed_passages([]).shape == (0, 4)


def test_questions_are_remembered(service: Service, rig: Rig) -> None:
    assert rig.embedder.embed_query("tea?") is rig.embedder.embed_query("tea?")
    assert len(service.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_overload_and_faults_are_tried_again_with_jitter(service: Service, rig: Rig, status: int) -> None:
    service.script = [(status, {}, {"error": "busy"})] * 2
    rig.embedder.embed_query("tea?")
    assert len(service.requests) == 3
    assert 0 <= rig.slept[0] <= 0.25
    assert 0 <= rig.slept[1] <= 0.5
    assert rig.embedder.available


def test_retry_after_is_honoured(service: Service, rig: Rig) -> None:
    service.script = [
        (429, {"retry-after": "3"}, {}),
        (503, {"date": "Mon, 01 Jan 2024 00:00:00 GMT", "retry-after": "Mon, 01 Jan 2024 00:00:02 GMT"}, {}),
    ]
    rig.embedder.embed_query("tea?")
    assert rig.slept == [3.0, 2.0]


def test_a_wait_longer_than_the_policy_or_the_deadline_is_not_waited(service: Service, rig: Rig) -> None:
    service.script = [(429, {"retry-after": "3600"}, {})]
    with pytest.raises(EmbedderUnavailableError, match="HTTP 429"):
        rig.embedder.embed_query("tea?")
    rig.now += COOL_DOWN
    service.script = [(429, {"retry-after": "5"}, {})]
    with pytest.raises(EmbedderUnavailableError, match="HTTP 429"):
        rig.embedder.embed_query("tea?", Deadline(at=time.monotonic() + 2))
    assert rig.slept == []


def test_after_the_last_try_it_is_unavailable_and_calls_fail_at_once_for_a_while(service: Service, rig: Rig) -> None:
    service.script = [(500, {}, {})] * 4
    with pytest.raises(EmbedderUnavailableError, match="HTTP 500"):
        rig.embedder.embed_query("tea?")
    assert len(service.requests) == 4
    assert not rig.embedder.available
    with pytest.raises(EmbedderUnavailableError, match="HTTP 500"):
        rig.embedder.embed_passages(["tea"])
    assert len(service.requests) == 4
    rig.now += COOL_DOWN
    rig.embedder.embed_query("tea?")
    assert rig.embedder.available


@pytest.mark.parametrize(("status", "told"), [(401, "refuses the key"), (404, "does not know"), (400, "HTTP 400")])
def test_a_refusal_is_not_tried_again(service: Service, rig: Rig, status: int, told: str) -> None:
    service.script = [(status, {}, {})]
    with pytest.raises(EmbedderUnavailableError, match=told):
        rig.embedder.embed_query("tea?")
    assert len(service.requests) == 1


def _rows(*embeddings: Any) -> dict[str, Any]:
    return {"data": [{"index": i, "embedding": e} for i, e in enumerate(embeddings)]}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (_rows([1.0] * 3), "3 numbers a vector, not 4"),
        (_rows([1.0] * 4, [1.0] * 4), "2 vectors for 1 texts"),
        ({"data": []}, "0 vectors for 1 texts"),
        ({"data": [{"index": 5, "embedding": [1.0] * 4}]}, "1 vectors for 1 texts"),
        (_rows([0.0] * 4), "without direction"),
        (_rows([1.0, float("nan"), 0.0, 0.0]), "without direction"),
        (_rows(["x", 1, 2, 3]), "not of the agreed form"),
        ({"data": 7}, "not of the agreed form"),
        ([1], "not of the agreed form"),
        ({"nothing": 1}, "not of the agreed form"),
        (b"<html>", "not of the agreed form"),
    ],
)
def test_answers_are_checked(service: Service, rig: Rig, answer: Any, told: str) -> None:
    service.script = [(200, {}, answer)]
    with pytest.raises(EmbedderUnavailableError, match=told):
        rig.embedder.embed_query("tea?")


def test_a_silent_service_times_out(service: Service) -> None:
    def silent(_: dict[str, Any]) -> Reply:
        service.hold.wait(10)
        return 200, {}, None

    service.script = [silent, silent]
    rig = Rig(service, timeout=0.1, retries=RetryPolicy(tries=2))
    with pytest.raises(EmbedderUnavailableError, match="ReadTimeout"):
        rig.embedder.embed_query("tea?")
    rig.now += COOL_DOWN
    service.script = [silent]
    began = time.monotonic()
    with pytest.raises((DeadlineExceededError, EmbedderUnavailableError)):
        rig.embedder.embed_query("tea?", Deadline(at=began + 0.1))
    assert time.monotonic() - began < 3
    rig.embedder.close()


def test_nobody_listening_is_unavailable(service: Service) -> None:
    rig = Rig(service)
    service.server.server_close()
    service.server.shutdown()
    with pytest.raises(EmbedderUnavailableError, match="does not answer"):
        rig.embedder.embed_query("tea?")
    assert len(rig.slept) == 3
    rig.embedder.close()


def test_texts_and_key_are_never_logged_or_told(service: Service, rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service.script = [(400, {}, {"error": f"bad input: secret tea, {KEY}"})]
    with pytest.raises(EmbedderUnavailableError) as caught:
        rig.embedder.embed_passages(["secret tea"])
    told = caplog.text + str(caught.value) + rig.embedder.message + repr(EmbedSettings(openai_key=KEY))
    assert "secret" not in told
    assert KEY not in told


def test_long_texts_are_windowed_and_averaged(service: Service) -> None:
    rig = Rig(service, window_tokens=64)
    row = rig.embedder.embed_passages(["Anna likes tea. " * 40])[0]
    sent = [text for request in service.requests for text in request["input"]]
    assert len(sent) > 3
    assert "".join(sent) == "Anna likes tea. " * 40
    assert max(map(estimate_tokens, sent)) <= 64
    assert float(np.linalg.norm(row)) == pytest.approx(1, abs=1e-6)
    rig.embedder.close()


def test_a_closed_embedder_refuses(rig: Rig) -> None:
    rig.embedder.close()
    assert not rig.embedder.available
    with pytest.raises(EmbedderUnavailableError, match="closed"):
        rig.embedder.embed_query("tea?")


def test_closing_ends_a_request_that_waits_for_its_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        preset = Preset("test", f"http://127.0.0.1:{silent.getsockname()[1]}/v1", "m", 4, 8192, 3, needs_key=False)
        embedder = OpenAIEmbedder(preset, timeout=60.0)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(embedder.embed_query, "who answers?")
            peer, _ = silent.accept()
            with peer:
                assert peer.recv(1)  # the request is out
                embedder.close()
                with pytest.raises(EmbedderUnavailableError, match="closed"):
                    asked.result(10)


@pytest.mark.parametrize("name", ["deepinfra", "openai", "siliconflow", "ollama", "lmstudio"])
def test_presets_open_without_contact(name: str) -> None:
    embedder = OpenAIEmbedder.from_settings(EmbedSettings("openai", openai_preset=name, openai_key="k"))
    assert embedder.info.dimension == PRESETS[name].dimension
    assert embedder.info.remote is (name not in {"ollama", "lmstudio"})
    embedder.close()


def test_settings_override_the_preset(service: Service) -> None:
    url = f"http://localhost:{service.server.server_port}"
    embedder = OpenAIEmbedder.from_settings(
        EmbedSettings("openai", openai_preset="ollama", openai_base_url=url, openai_model="other", openai_dimension=4)
    )
    assert embedder.info.id == "other@4"
    assert (embedder.info.query_prefix, embedder.info.remote) == ("", False)
    embedder.embed_query("tea?")
    assert service.requests[0]["dimensions"] == 4
    assert "authorization" not in service.headers[0]
    embedder.close()


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, "openai_base_url"),
        ({"openai_preset": "none"}, "openai_preset must be one of"),
        ({"openai_preset": "openai"}, "openai_key"),
        ({"openai_preset": "ollama", "openai_model": "other"}, "openai_dimension"),
        ({"openai_base_url": "http://localhost"}, "openai_model"),
        ({"openai_preset": "ollama", "openai_timeout": 0.0}, "openai_timeout"),
        ({"openai_base_url": "ftp://x", "openai_model": "m", "openai_dimension": 4}, "openai_base_url"),
    ],
)
def test_settings_that_make_no_sense_are_named(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        OpenAIEmbedder.from_settings(EmbedSettings("openai", **keys))
