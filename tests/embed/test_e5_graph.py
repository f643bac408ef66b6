"""Both graph variants against a plain numpy encoder, on a random two-layer model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memxd.embed.e5_file import E5File
from memxd.embed.e5_graph import Variant, build_graph, int8_rows
from memxd.embed.manifest import MODEL_FILE, ModelManifest
from memxd.embed.onnx_writer import write_model
from memxd.embed.session import OnnxSession

F = NDArray[np.float32]


def _norm(x: F, gain: F, bias: F) -> F:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12) * gain + bias


def _gelu(x: F) -> F:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _reference(model: E5File, ids: list[int]) -> F:
    """Devlin et al. 2019, float32, no tricks."""
    hidden, heads = model.shape.hidden, model.shape.heads
    size = hidden // heads
    f = model.floats
    x = model.matrix("emb.word", hidden)[ids] + f("emb.pos").reshape(-1, hidden)[: len(ids)] + f("emb.type")[:hidden]
    x = _norm(x, f("emb.ln.w"), f("emb.ln.b"))
    for number in range(model.shape.layers):
        p = f"l{number}."
        q, k, v = (x @ model.matrix(f"{p}{c}.w", hidden).T + f(f"{p}{c}.b") for c in "qkv")
        mixed = []
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            weights = np.exp(q[:, part] @ k[:, part].T / math.sqrt(size))
            mixed.append(weights / weights.sum(axis=1, keepdims=True) @ v[:, part])
        attended = np.concatenate(mixed, axis=1) @ model.matrix(p + "ao.w", hidden).T + f(p + "ao.b")
        x = _norm(x + attended, f(p + "aln.w"), f(p + "aln.b"))
        inner = _gelu(x @ model.matrix(p + "fi.w", hidden).T + f(p + "fi.b"))
        outer = inner @ model.matrix(p + "fo.w", model.shape.feed_forward).T + f(p + "fo.b")
        x = _norm(x + outer, f(p + "oln.w"), f(p + "oln.b"))
    total = x.mean(axis=0)
    return total / np.linalg.norm(total)


@pytest.mark.parametrize(("variant", "least"), [("i8", 0.995), ("q4", 0.999)])
def test_the_graph_computes_the_encoder(tiny_e5: Path, tmp_path: Path, variant: Variant, least: float) -> None:
    with E5File(tiny_e5) as model:
        write_model(build_graph(model, variant), tmp_path / MODEL_FILE)
        session = OnnxSession(tmp_path, ModelManifest("tiny", 64, "none", 16))
        for ids in ([0, 2], [0, 5, 6, 7, 2], [0, *[5, 8, 9] * 4, 6, 7, 2]):
            got = session.run(ids)
            assert float(np.linalg.norm(got)) == pytest.approx(1, abs=1e-5)
            assert float(got @ _reference(model, ids)) > least


def test_int8_rows_are_within_half_a_step() -> None:
    matrix = np.random.default_rng(3).normal(size=(5, 96)).astype(np.float32)
    matrix[2] = 0
    values, scales = int8_rows(matrix)
    assert values.dtype == np.int8
    assert np.abs(values).max() == 127
    assert (np.abs(values * scales[:, None] - matrix) <= scales[:, None] * 0.5001).all()
