"""Embedding through an HTTP service that speaks the OpenAI protocol (``POST <base>/embeddings``).

Owns batching, windows and the checks on answers; ``retry`` how often a request is tried. ``factory`` opens it. Texts
and key go to the service only: never into logs, messages or exceptions. ``remote`` is True unless the address is this
machine's, so that the engine can keep private memories away from it.
"""

from __future__ import annotations

import ipaddress
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import numpy as np

from memxd.embed.base import Matrix, ModelInfo, Span, Vector, frozen, mean_unit, unit
from memxd.embed.cache import QueryCache
from memxd.embed.chunking import ChunkRule, split_text
from memxd.embed.connections import Connections
from memxd.embed.openai_presets import PRESETS, Preset
from memxd.embed.retry import RetryPolicy, send_with_retries
from memxd.embed.settings import EmbedSettings
from memxd.errors import ConfigError, EmbedderUnavailableError
from memxd.model import NO_DEADLINE, Deadline

#: Seconds during which further calls fail at once after a call failed: a question then is answered by keyword now
#: instead of waiting for the same timeouts again.
COOL_DOWN = 5.0
_CONNECTIONS = 8
#: A service that takes no connection for so long is down, however long an answer may take.
_CONNECT_SECONDS = 5.0

_log = logging.getLogger("memxd.embed")


def estimate_tokens(text: str) -> int:
    """An upper guess without the service's tokenizer: three ASCII characters a token, else two tokens a character."""
    plain = sum(map(str.isascii, text))
    return -(-plain // 3) + 2 * (len(text) - plain)


class OpenAIEmbedder:
    """``Embedder`` over HTTP. ``monotonic``, ``sleep`` and ``rng`` are injected; None = a sleep that ``close`` ends."""

    def __init__(
        self,
        service: Preset,
        *,
        key: str = "",
        timeout: float = 10.0,
        query_cache: int = 4096,
        send_dimension: bool = False,
        retries: RetryPolicy | None = None,
        rng: random.Random | None = None,
        sleep: Callable[[float], object] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        url = httpx.URL(service.base_url)
        self.info = ModelInfo(
            id=f"{service.model}@{service.dimension}",
            dimension=service.dimension,
            window_tokens=service.window_tokens,
            backend="openai",
            variant="",
            remote=not _is_local(url.host),
            tau=0.3,
            cosine_low=0.1,
            cosine_high=0.8,
            query_prefix=service.query_prefix,
            passage_prefix=service.passage_prefix,
        )
        self._service = service
        self._send_dimension = send_dimension
        self._timeout = timeout
        self._retries = retries or RetryPolicy()
        self._rng = rng or random.Random()
        self._ended = threading.Event()
        self._sleep = sleep or self._ended.wait
        self._monotonic = monotonic
        self._cache = QueryCache(query_cache)
        longest = max(estimate_tokens(service.query_prefix), estimate_tokens(service.passage_prefix))
        # Two special tokens, as most models have.
        self._capacity = service.window_tokens - longest - 2
        self._rule = ChunkRule.for_window(self._capacity)
        self._failure = ""
        self._failed_at = float("-inf")
        self._connections = Connections()
        self._client = httpx.Client(
            base_url=str(url).rstrip("/") + "/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            limits=httpx.Limits(max_connections=_CONNECTIONS),
            follow_redirects=False,
        )

    @classmethod
    def from_settings(cls, settings: EmbedSettings) -> OpenAIEmbedder:
        """As the settings say; ConfigError naming the setting that lacks or is wrong."""
        service = _service(settings)
        preset = PRESETS.get(settings.openai_preset)
        own_size = preset is not None and preset.model == service.model and preset.dimension == service.dimension
        return cls(
            service,
            key=settings.openai_key,
            timeout=settings.openai_timeout,
            query_cache=settings.query_cache,
            send_dimension=bool(settings.openai_dimension) and not own_size,
        )

    @property
    def available(self) -> bool:
        """False when the last call failed or the embedder is closed."""
        return not self._ended.is_set() and not self._failure

    @property
    def message(self) -> str:
        """The last failure, else which service is asked."""
        if self._ended.is_set():
            return "closed"
        return self._failure or f"{self._service.model} at {self._client.base_url.host}"

    def embed_query(self, text: str, deadline: Deadline = NO_DEADLINE) -> Vector:
        """As ``Embedder.embed_query``."""
        self._check(deadline)
        found = self._cache.get(text)
        if found is None:
            found = frozen(self._embed([text], self.info.query_prefix, deadline)[0])
            self._cache.put(text, found)
        return found

    def embed_passages(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Matrix:
        """As ``Embedder.embed_passages``; the first failure ends the call."""
        self._check(deadline)
        return self._embed(texts, self.info.passage_prefix, deadline)

    def split(self, text: str) -> list[Span]:
        """As ``Embedder.split``, measured by ``estimate_tokens``."""
        return split_text(text, _estimate_all, self._rule)

    def close(self) -> None:
        """End the requests that run, which raise as later ones do, and close the connections."""
        self._ended.set()
        self._connections.cut()
        self._client.close()
        self._cache.clear()

    def _check(self, deadline: Deadline) -> None:
        if self._ended.is_set():
            raise EmbedderUnavailableError("the embedder is closed")
        deadline.check()
        if self._failure and self._monotonic() - self._failed_at < COOL_DOWN:
            raise EmbedderUnavailableError(self._failure)

    def _embed(self, texts: Sequence[str], prefix: str, deadline: Deadline) -> Matrix:
        """One row per text: windows of all texts in batches, then averaged per text."""
        windows = [self._windows(text) for text in texts]
        flat = [prefix + part for parts in windows for part in parts]
        vectors: list[Vector] = []
        try:
            for start in range(0, len(flat), self._service.batch):
                deadline.check()
                vectors += self._request(flat[start : start + self._service.batch], deadline)
        except EmbedderUnavailableError as error:
            if self._ended.is_set():
                raise EmbedderUnavailableError("the embedder is closed") from error
            self._failure, self._failed_at = error.message, self._monotonic()
            _log.warning("embedding service: %s", error.message)
            raise
        self._failure = ""
        rows = np.empty((len(texts), self.info.dimension), dtype=np.float32)
        at = 0
        for row, parts in zip(rows, windows, strict=True):
            row[:] = mean_unit(vectors[at : at + len(parts)])
            at += len(parts)
        return rows

    def _windows(self, text: str) -> list[str]:
        """The text itself, or parts that surely fit."""
        if estimate_tokens(text) <= self._capacity:
            return [text]
        half = self._capacity // 2
        rule = ChunkRule(whole=half, target=half, overlap=0, piece=max(2, half // 4))
        return [text[a:b] for a, b in split_text(text, _estimate_all, rule)]

    def _request(self, inputs: list[str], deadline: Deadline) -> list[Vector]:
        body: dict[str, Any] = {"model": self._service.model, "input": inputs, "encoding_format": "float"}
        if self._send_dimension:
            body["dimensions"] = self.info.dimension
        response = send_with_retries(
            lambda timeout: self._client.post(
                "embeddings",
                json=body,
                timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
                extensions={"trace": self._connections.note},
            ),
            policy=self._retries,
            timeout=self._timeout,
            deadline=deadline,
            rng=self._rng,
            sleep=self._sleep,
        )
        return self._read(response, len(inputs))

    def _read(self, response: httpx.Response, count: int) -> list[Vector]:
        """The vectors in the order of the inputs; anything else than what was asked for is refused."""
        try:
            data = response.json()["data"]
            rows = {int(item["index"]): np.asarray(item["embedding"], dtype=np.float32) for item in data}
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise EmbedderUnavailableError("the embedding service's answer is not of the agreed form") from error
        if len(data) != count or sorted(rows) != list(range(count)):
            raise EmbedderUnavailableError(f"the embedding service gave {len(data)} vectors for {count} texts")
        for row in rows.values():
            if row.shape != (self.info.dimension,):
                raise EmbedderUnavailableError(
                    f"the embedding service gives {row.size} numbers a vector, not {self.info.dimension}:"
                    " set openai_dimension to what the model gives"
                )
        return [unit(rows[number]) for number in range(count)]


def _estimate_all(texts: Sequence[str]) -> list[int]:
    return [estimate_tokens(text) for text in texts]


def _is_local(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _service(settings: EmbedSettings) -> Preset:
    """The preset with the settings' own values over it."""
    preset = PRESETS.get(settings.openai_preset) if settings.openai_preset else Preset("", "", "", 0, 8192, 32, False)
    if preset is None:
        raise ConfigError(f"openai_preset must be one of {', '.join(PRESETS)}, not {settings.openai_preset!r}")
    same_model = not settings.openai_model or settings.openai_model == preset.model
    service = Preset(
        name=preset.name,
        base_url=settings.openai_base_url or preset.base_url,
        model=settings.openai_model or preset.model,
        dimension=settings.openai_dimension or (preset.dimension if same_model else 0),
        window_tokens=settings.openai_window or preset.window_tokens,
        batch=settings.openai_batch or preset.batch,
        needs_key=preset.needs_key,
        query_prefix=preset.query_prefix if same_model else "",
        passage_prefix=preset.passage_prefix if same_model else "",
    )
    if httpx.URL(service.base_url).scheme not in {"http", "https"}:
        raise ConfigError("openai_base_url must be an http or https address (or set openai_preset)")
    for key, good in (
        ("openai_model", bool(service.model)),
        ("openai_dimension", 1 <= service.dimension <= 16_384),
        ("openai_window", service.window_tokens >= 64),
        ("openai_batch", service.batch >= 1),
        ("openai_timeout", settings.openai_timeout > 0),
        ("openai_key", bool(settings.openai_key) or not service.needs_key),
    ):
        if not good:
            raise ConfigError(f"{key} is missing or out of range for the embedding service")
    return service
