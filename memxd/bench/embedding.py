"""What does memxd add to its tokenizer and its model, alone, in bulk and with many callers; does its memory stay flat?

Owns the comparison with the bare tokenizer and ``session.run`` on the same model files with the same session options
(one thread a run, no spinning), by texts of 10, 40 and 200 tokens that no cache knows. Needs the default model; without
it the question is skipped. Asked by ``runner``.
"""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from memxd import native
from memxd.bench.context import Bench
from memxd.bench.machine import cores, resident_mb
from memxd.bench.measure import Budget, Measurement, Result, Timed, alternate
from memxd.bench.texts import Source
from memxd.embed import Embedder, EmbedSettings, open_embedder
from memxd.embed.convert import expected_manifest
from memxd.embed.default_model import default_folder
from memxd.embed.e5_graph import Variant
from memxd.embed.manifest import MODEL_FILE
from memxd.embed.tokenizer import open_tokenizer

_NAME = "embedding"
_BARE = "bare tokenizer + session.run"
_TOKENS = (10, 40, 200)
_CALLERS = (1, 2, 4, 16)
#: What memxd may take, as a multiple of the bare tokenizer and session.run.
_ALLOWED = 1.15
#: Questions asked in a row of the same session: memxd and the bare one hold the same weights twice, and who follows the
#: other finds the processor's caches filled with the wrong copy, which alone is a third of a short run.
_RUN = 8
#: Milliseconds for a question of 10 tokens.
_QUESTION_MS = 4.5
#: Megabytes that memory may grow by after the first fifth of the texts.
_GROWTH_MB = 20.0


class Bare:
    """The tokenizer and the session without memxd around them. ``run`` may be called from many threads."""

    def __init__(self, work: Path, variant: Variant) -> None:
        folder, manifest = default_folder(work, variant), expected_manifest(variant)
        self.prefix = manifest.query_prefix
        self.tokenizer = open_tokenizer(folder)
        options = native.onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        path = str(folder / MODEL_FILE)
        self._session: Any = native.onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = {port.name for port in self._session.get_inputs()}
        fills = {manifest.attention_mask: 1, manifest.token_type_ids: 0}
        self._ids = manifest.input_ids
        self._fills = {name: fill for name, fill in fills.items() if name in names}

    def encode(self, text: str) -> list[int]:
        """Text to ids."""
        return self.tokenizer.wrap(self.tokenizer.encode(self.prefix + text))

    def run(self, ids: Sequence[int]) -> NDArray[np.floating]:
        """Ids to whatever the model gives."""
        tokens = np.array([ids], np.int64)
        feed = {self._ids: tokens} | {name: np.full_like(tokens, fill) for name, fill in self._fills.items()}
        return np.asarray(self._session.run(None, feed)[0])

    def embed(self, text: str) -> NDArray[np.floating]:
        """Both."""
        return self.run(self.encode(text))


def run(bench: Bench) -> Result:
    """One question at a time, in bulk, by many callers, and memory."""
    if not bench.real_model:
        return Result(notes=("not measured: this run has no embedding model",))
    settings = EmbedSettings(backend="onnx", query_cache=0)
    embedder = open_embedder(settings, bench.options.work)
    try:
        bare = Bare(bench.options.work, cast("Variant", embedder.info.variant))
        measurements, budgets = _alone(bench, embedder, bare)
        measurements += _bulk(bench, embedder, bare)
        by_callers, curves = _many(bench, embedder, bare)
    finally:
        embedder.close()
    grown, budget = _memory(bench)
    note = f"one text a run, one thread a run, as many texts at once as there are cores ({cores()})"
    return Result((*measurements, *by_callers, *grown), (*budgets, budget), (note,), curves={"clients": curves})


# -- one question ------------------------------------------------------------------------------------------------------


def _alone(bench: Bench, embedder: Embedder, bare: Bare) -> tuple[list[Measurement], list[Budget]]:
    """Each text by memxd, by the bare pair, and by the two halves of that, in turn."""
    measurements, budgets = [], []
    for tokens in _TOKENS:
        n = bench.samples(200 if tokens < 100 else 80, 8)
        texts = list(itertools.islice(of_length(bare, bench.source, tokens), n))
        calls: dict[str, Callable[[tuple[str, list[int]]], object]] = {
            "memxd": lambda item: embedder.embed_query(item[0]),
            _BARE: lambda item: bare.embed(item[0]),
            "tokenizer": lambda item: bare.encode(item[0]),
            "session.run": lambda item: bare.run(item[1]),
        }
        times = alternate(calls, [(text, bare.encode(text)) for text in texts], run=_RUN)
        stage = f"a question of {tokens} tokens"
        measurements += [Measurement.of(_NAME, stage, 0, name, times[name], "ms") for name in ("memxd", _BARE)]
        measurements += _stages(times, tokens)
        budgets += _budgets(bench, tokens, times["memxd"], times[_BARE], _BARE)
    return measurements, budgets


def _budgets(bench: Bench, tokens: int, ours: Timed, theirs: Timed, peer: str) -> list[Budget]:
    mine, bare = ours.p50 * 1e3, theirs.p50 * 1e3
    name = f"embed a question of {tokens} tokens, {_ALLOWED}x the bare model"
    row = Budget(_NAME, name, 0, mine, _ALLOWED * bare, "ms", peer=peer, peer_figure=bare, judged=not bench.quick)
    if tokens != _TOKENS[0]:
        return [row]
    return [row, replace(row, name=f"embed a question of {tokens} tokens", budget=_QUESTION_MS)]


def _stages(times: dict[str, Timed], tokens: int) -> list[Measurement]:
    """Where the time of one question goes; what is neither tokenizer nor model is memxd's own."""
    share_of = f"{tokens} tokens"
    halves = ("tokenizer", "session.run")
    rows = [Measurement.of(_NAME, name, 0, "memxd", times[name], "ms", share_of=share_of) for name in halves]
    own = max(0.0, times["memxd"].p50 - sum(times[name].p50 for name in halves))
    return [*rows, Measurement.one(_NAME, "memxd's own", 0, "memxd", own * 1e3, "ms", share_of=share_of)]


def of_length(bare: Bare, source: Source, tokens: int) -> Iterator[str]:
    """Different texts of about ``tokens`` tokens with the special ones, made of the source's words. Ends with a set's
    last text."""
    words: list[str] = []
    room = tokens - bare.tokenizer.special_tokens - len(bare.tokenizer.encode(bare.prefix))
    for text in source.texts(source.limit or 1_000_000):
        if not text.isascii():
            continue
        words += text.split()
        while words and bare.tokenizer.count([" ".join(words)])[0] >= room:
            taken = len(words)
            while taken > 1 and bare.tokenizer.count([" ".join(words[:taken])])[0] > room:
                taken -= 1
            yield " ".join(words[:taken])
            words = words[taken:]


# -- in bulk and by many callers ---------------------------------------------------------------------------------------


def _bulk(bench: Bench, embedder: Embedder, bare: Bare) -> list[Measurement]:
    """Texts a second of passages handed over together, in turn with the bare model in as many threads."""
    batch, rounds = bench.samples(64, 8), bench.samples(8, 2)
    texts = list(itertools.islice(bench.source.texts(batch * rounds + batch), batch * rounds))
    batches = [texts[at : at + batch] for at in range(0, len(texts), batch)]
    with ThreadPoolExecutor(cores(), "bench-bare") as pool:
        times = alternate(
            {"memxd": embedder.embed_passages, "bare, a thread a core": lambda b: list(pool.map(bare.embed, b))},
            batches,
            warmup=1,
        )
    stage = f"texts in bulk, {batch} at a time"
    return [Measurement.one(_NAME, stage, 0, name, batch / t.p50, "1/s", texts=len(texts)) for name, t in times.items()]


def _many(bench: Bench, embedder: Embedder, bare: Bare) -> tuple[list[Measurement], dict[str, list[list[float]]]]:
    """Latency and texts a second with 1 to 16 callers, each asking its next question when it has an answer."""
    measurements: list[Measurement] = []
    variants: dict[str, Callable[[str], object]] = {"memxd": embedder.embed_query, "bare session": bare.embed}
    curves: dict[str, list[list[float]]] = {name: [] for name in variants}
    texts = of_length(bare, bench.source, 10)
    each = bench.samples(240, 16)
    for callers in _CALLERS:
        for name, call in variants.items():
            times, seconds = together(
                call, [list(itertools.islice(texts, max(2, each // callers))) for _ in range(callers)]
            )
            rate = times.size / seconds
            stage = f"questions of 10 tokens, {callers} callers"
            measurements.append(Measurement.of(_NAME, stage, 0, name, times, "ms", per_second=rate))
            curves[name].append([callers, rate])
    return measurements, curves


def together(call: Callable[[str], object], texts: Sequence[Sequence[str]]) -> tuple[NDArray[np.float64], float]:
    """One thread for each list of texts: (seconds of each call, seconds in all). An error of a thread is raised."""
    gate = threading.Barrier(len(texts) + 1)

    def ask(mine: Sequence[str]) -> list[float]:
        gate.wait()
        taken = []
        for text in mine:
            began = time.perf_counter()
            call(text)
            taken.append(time.perf_counter() - began)
        return taken

    with ThreadPoolExecutor(len(texts), "bench-caller") as pool:
        waiting = [pool.submit(ask, mine) for mine in texts]
        gate.wait()
        began = time.perf_counter()
        taken = [seconds for future in waiting for seconds in future.result()]
        return np.array(taken), time.perf_counter() - began


# -- memory ------------------------------------------------------------------------------------------------------------


def _memory(bench: Bench) -> tuple[list[Measurement], Budget]:
    """Resident memory of a process of its own over texts of mixed length."""
    texts = bench.samples(10_000, 300)
    task = (str(bench.options.work), bench.options.data, bench.options.seed, texts)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        waiting = pool.apply_async(resident_over, task)
        with bench.progress.work(f"memory over {texts:,} texts of mixed length", 1) as step:
            points = waiting.get()
            step(1)
    settled, last, most = points[len(points) // 5], points[-1], max(points)
    stage = f"resident memory over {texts:,} texts of mixed length"
    row = Measurement.one(_NAME, stage, 0, "memxd", last, "MB", after_a_fifth=round(settled, 1), most=round(most, 1))
    name = "embedding: memory grown after the first fifth of the texts"
    return [row], Budget(_NAME, name, 0, most - settled, _GROWTH_MB, "MB", judged=not bench.quick)


def resident_over(work: str, data: Path | None, seed: int, texts: int) -> list[float]:
    """Embed ``texts`` passages of 5 to 500 words; resident MB at 21 moments. Runs in a process of its own."""
    embedder = open_embedder(EmbedSettings(backend="onnx", query_cache=0), Path(work))
    source = Source.open(data, seed)
    stream = itertools.chain.from_iterable(itertools.repeat(list(source.texts(2_000))))
    # Lengths by a heavy tail, the longest early and late alike.
    lengths = np.clip(np.random.default_rng((seed, 14)).lognormal(3.2, 0.9, texts), 5, 500).astype(int).tolist()
    points = []
    try:
        for number, words in enumerate(lengths):
            if number % max(1, texts // 20) == 0:
                points.append(resident_mb())
            text = next(stream)
            while len(text.split()) < words:
                text = f"{text} {next(stream)}"
            embedder.embed_passages([" ".join(text.split()[:words])])
        return [*points, resident_mb()]
    finally:
        embedder.close()
