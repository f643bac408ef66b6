"""The default backend: an encoder in this process, through onnxruntime.

Owns threads, cache and life cycle around a ``LoadedModel``; ``factory`` opens it. As many texts are embedded at once as
there are threads, each on one core, questions before passages. The same text gives the same vector bit for bit,
whatever else runs and however many threads there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np

from memxd.embed.base import Matrix, ModelInfo, Span, Vector, frozen
from memxd.embed.cache import QueryCache
from memxd.embed.chunking import ChunkRule, split_text
from memxd.embed.cpu import cores
from memxd.embed.loaded import LoadedModel
from memxd.embed.pool import WorkerPool, wait_for
from memxd.errors import EmbedderUnavailableError
from memxd.model import NO_DEADLINE, Deadline


class OnnxEmbedder:
    """``Embedder`` over a loaded model. ``threads`` 0 = one per core; ``message`` tells people why this variant."""

    def __init__(self, model: LoadedModel, *, threads: int = 0, query_cache: int = 4096, message: str = "") -> None:
        manifest = model.manifest
        self.info = ModelInfo(
            id=model.id,
            dimension=manifest.dimension,
            window_tokens=manifest.window_tokens,
            backend="onnx",
            variant=manifest.variant,
            remote=False,
            tau=manifest.tau,
            cosine_low=manifest.cosine_low,
            cosine_high=manifest.cosine_high,
            query_prefix=manifest.query_prefix,
            passage_prefix=manifest.passage_prefix,
            cosine_shift_cjk=manifest.cosine_shift_cjk,
            cosine_shift_cross=manifest.cosine_shift_cross,
        )
        self._model = model
        self._rule = ChunkRule.for_window(model.capacity)
        self._cache = QueryCache(query_cache)
        self._pool = WorkerPool(threads or cores(), "memxd-embed")
        self._chosen = message
        self._failure = ""
        self._closed = False

    @property
    def available(self) -> bool:
        """False when the last text failed or the embedder is closed."""
        return not self._closed and not self._failure

    @property
    def message(self) -> str:
        """The last failure, else why this variant was chosen."""
        return "closed" if self._closed else self._failure or self._chosen

    def embed_query(self, text: str, deadline: Deadline = NO_DEADLINE) -> Vector:
        """As ``Embedder.embed_query``."""
        self._check(deadline)
        found = self._cache.get(text)
        if found is None:
            found = frozen(self._pool.run(lambda: self._embed(self.info.query_prefix, text, deadline), deadline))
            self._cache.put(text, found)
        return found

    def embed_passages(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> Matrix:
        """As ``Embedder.embed_passages``; the first failure ends the call."""
        self._check(deadline)
        if len(texts) == 1:  # somebody waits for just this: no thread in between
            [text] = texts
            return self._pool.run(lambda: self._embed(self.info.passage_prefix, text, deadline), deadline)[np.newaxis]
        rows = np.empty((len(texts), self.info.dimension), dtype=np.float32)
        waiting: deque[tuple[int, Future[Vector]]] = deque()
        try:
            for number, text in enumerate(texts):
                if len(waiting) == 2 * self._pool.size:
                    self._collect(waiting, rows, deadline)
                waiting.append((number, self._submit(text, deadline)))
            while waiting:
                self._collect(waiting, rows, deadline)
        finally:
            for _, future in waiting:
                future.cancel()
        return rows

    def split(self, text: str) -> list[Span]:
        """As ``Embedder.split``, measured in the model's own tokens."""
        return split_text(text, self._model.tokenizer.count, self._rule)

    def close(self) -> None:
        """Finish running texts, drop queued ones, join the threads."""
        self._closed = True
        self._pool.close()
        self._cache.clear()

    def _check(self, deadline: Deadline) -> None:
        if self._closed:
            raise EmbedderUnavailableError("the embedder is closed")
        deadline.check()

    def _submit(self, text: str, deadline: Deadline) -> Future[Vector]:
        return self._pool.submit(lambda: self._embed(self.info.passage_prefix, text, deadline), urgent=False)

    def _embed(self, prefix: str, text: str, deadline: Deadline) -> Vector:
        """Runs on a pool thread, or on the caller's when there is room."""
        try:
            vector = self._model.embed(prefix, text, deadline)
        except EmbedderUnavailableError as error:
            self._failure = error.message
            raise
        self._failure = ""
        return vector

    @staticmethod
    def _collect(waiting: deque[tuple[int, Future[Vector]]], rows: Matrix, deadline: Deadline) -> None:
        """Wait for the oldest text and keep its row."""
        number, future = waiting[0]
        rows[number] = wait_for(future, deadline)
        waiting.popleft()
