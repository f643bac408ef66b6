"""The e5 encoder as an ONNX graph of onnxruntime's fused operators, pooling and unit length included.

Owns the graph and its version; called by ``convert``. Two variants of the same 4-bit weights:

* ``i8``: matrices requantised to int8 per output row (symmetric, scale = max / 127), activations quantised per run
  (QAttention, DynamicQuantizeMatMul). Needs a CPU with int8 dot products to be fast and exact.
* ``q4``: matrices stay 4-bit (MatMulNBits at accuracy level 4). Slower, independent of the CPU's int8 units.

The word table stays in its 4-bit blocks in both (GatherBlockQuantized), which is exact. Architecture: BERT (Devlin et
al. 2019), positions from 0, erf-GELU; masked sum over tokens, then L2 norm (which cancels the mean's divisor).
Input: input_ids, attention_mask, int64 (batch, sequence). Output: sentence_embedding, float32 (batch, hidden).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memxd.embed.e5_file import BLOCK, E5File
from memxd.embed.onnx_writer import DATA_TYPES, MICROSOFT, Graph, Port

Variant: TypeAlias = Literal["i8", "q4"]
#: Part of the model id: goes up whenever the graph changes a vector.
GRAPH_VERSION = 1
OUTPUT = "sentence_embedding"

_FLOAT, _INT32 = DATA_TYPES["float32"], DATA_TYPES["int32"]


def build_graph(model: E5File, variant: Variant) -> Graph:
    """The whole encoder; ModelFileError when a tensor lacks."""
    tokens: tuple[str, str] = ("batch", "sequence")
    graph = Graph(
        inputs=[Port("input_ids", "int64", tokens), Port("attention_mask", "int64", tokens)],
        outputs=[Port(OUTPUT, "float32", ("batch", model.shape.hidden))],
    )
    return _Builder(model, variant, graph).build()


def natural_nibbles(blocks: NDArray[np.void]) -> NDArray[np.uint8]:
    """Nibbles in onnxruntime's order, uint8 (rows, blocks, 16).

    The file keeps value j beside value j + 16 in byte j; onnxruntime keeps 2j beside 2j + 1.
    """
    packed = blocks["nibbles"]
    out = np.empty_like(packed)
    out[..., : BLOCK // 4] = (packed[..., 0::2] & 15) | ((packed[..., 1::2] & 15) << 4)
    out[..., BLOCK // 4 :] = (packed[..., 0::2] >> 4) | (packed[..., 1::2] & 0xF0)
    return out


def int8_rows(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 per row: values int8 (rows, columns) and scales float32 (rows,), value ~ int8 * scale."""
    scales = np.maximum(np.abs(matrix).max(axis=1), 1e-12) / 127
    rounded = np.clip(np.rint(matrix / scales[:, None]), -127, 127)
    return rounded.astype(np.int8), scales.astype(np.float32)


class _Builder:
    """Adds the parts in the order of the forward pass; each method returns the name of its result."""

    def __init__(self, model: E5File, variant: Variant, graph: Graph) -> None:
        self._model = model
        self._variant = variant
        self._graph = graph
        self._shape = model.shape

    def build(self) -> Graph:
        state = self._embeddings()
        # Both attention operators take the mask as int32.
        mask = self._graph.node("Cast", "attention_mask", to=_INT32)
        if self._variant == "i8":
            self._graph.weight("qkv.zero", np.zeros(3 * self._shape.hidden, np.int8))
        for number in range(self._shape.layers):
            state = self._layer(f"l{number}.", state, mask)
        self._pool(state)
        return self._graph

    def _embeddings(self) -> str:
        """Word + position + token type 0, then layer norm."""
        graph, hidden = self._graph, self._shape.hidden
        blocks = self._model.blocks("emb.word", hidden)
        graph.weight("words.q", natural_nibbles(blocks).reshape(len(blocks), -1))
        graph.weight("words.scale", blocks["scale"].astype(np.float16))
        words = graph.node(
            "GatherBlockQuantized", "words.q", "input_ids", "words.scale", domain=MICROSOFT,
            bits=4, block_size=BLOCK, gather_axis=0, quantize_axis=1,
        )  # fmt: skip
        words = graph.node("Cast", words, to=_FLOAT)
        types = self._model.floats("emb.type").reshape(-1, hidden)
        graph.weight("positions", self._model.floats("emb.pos").reshape(-1, hidden) + types[0])
        graph.weight("zero", np.array([0], np.int64))
        graph.weight("one", np.array([1], np.int64))
        length = graph.node("Shape", "input_ids", start=1, end=2)
        places = graph.node("Slice", "positions", "zero", length, "zero")
        gain = graph.weight("words.norm.gain", self._model.floats("emb.ln.w"))
        bias = graph.weight("words.norm.bias", self._model.floats("emb.ln.b"))
        total = graph.node("Add", words, places)
        return graph.node("LayerNormalization", total, gain, bias, axis=-1, epsilon=self._shape.epsilon)

    def _layer(self, prefix: str, state: str, mask: str) -> str:
        """Attention and feed-forward, each with its residual and layer norm."""
        hidden, wide = self._shape.hidden, self._shape.feed_forward
        heads = self._attention(prefix, state, mask)
        mixed = self._linear(prefix + "ao", heads, [prefix + "ao.w"], hidden)
        state = self._residual(mixed, state, prefix + "aln", prefix + "ao.b")
        bias = self._graph.weight(prefix + "fi.bias", self._model.floats(prefix + "fi.b"))
        inner = self._linear(prefix + "fi", state, [prefix + "fi.w"], hidden, bias)
        inner = self._graph.node("Gelu", inner, domain=MICROSOFT)
        outer = self._linear(prefix + "fo", inner, [prefix + "fo.w"], wide)
        return self._residual(outer, state, prefix + "oln", prefix + "fo.b")

    def _attention(self, prefix: str, state: str, mask: str) -> str:
        """Multi-head self-attention without its output projection."""
        graph = self._graph
        names = [f"{prefix}{part}.w" for part in "qkv"]
        joined = np.concatenate([self._model.floats(f"{prefix}{part}.b") for part in "qkv"])
        bias = graph.weight(prefix + "qkv.bias", joined)
        if self._variant == "q4":
            projected = self._linear(prefix + "qkv", state, names, self._shape.hidden, bias)
            query, key, value = graph.split_node("Split", projected, outputs=3, axis=-1, num_outputs=3)
            heads = self._shape.heads
            return graph.node("MultiHeadAttention", query, key, value, "", mask, domain=MICROSOFT, num_heads=heads)
        weight, scale = self._int8(prefix + "qkv", names, self._shape.hidden)
        values, value_scale, value_zero = graph.split_node("DynamicQuantizeLinear", state, outputs=3)
        return graph.node(
            "QAttention", values, weight, bias, value_scale, scale, mask, value_zero, "qkv.zero",
            domain=MICROSOFT, num_heads=self._shape.heads,
        )  # fmt: skip

    def _linear(self, name: str, state: str, tensors: list[str], columns: int, bias: str = "") -> str:
        """state x weightᵀ (+ bias); several tensors are stacked by output row."""
        graph = self._graph
        if self._variant == "i8":
            weight, scale = self._int8(name, tensors, columns)
            extra: tuple[str, ...] = ("", bias) if bias else ()
            return graph.node("DynamicQuantizeMatMul", state, weight, scale, *extra, domain=MICROSOFT)
        blocks = np.concatenate([self._model.blocks(tensor, columns) for tensor in tensors])
        weight = graph.weight(name + ".q", natural_nibbles(blocks))
        scale = graph.weight(name + ".scale", blocks["scale"].astype(np.float32))
        extra = ("", "", bias) if bias else ()
        return graph.node(
            "MatMulNBits", state, weight, scale, *extra, domain=MICROSOFT,
            K=columns, N=len(blocks), bits=4, block_size=BLOCK, accuracy_level=4,
        )  # fmt: skip

    def _int8(self, name: str, tensors: list[str], columns: int) -> tuple[str, str]:
        """Weight (columns, rows) and scale (rows,) of stacked tensors."""
        values, scales = int8_rows(np.concatenate([self._model.matrix(tensor, columns) for tensor in tensors]))
        return self._graph.weight(name + ".q", values.T), self._graph.weight(name + ".scale", scales)

    def _residual(self, change: str, state: str, norm: str, bias_tensor: str) -> str:
        """Layer norm of (change + bias + state)."""
        gain = self._graph.weight(norm + ".gain", self._model.floats(norm + ".w"))
        shift = self._graph.weight(norm + ".bias", self._model.floats(norm + ".b"))
        bias = self._graph.weight(bias_tensor + "ias", self._model.floats(bias_tensor))
        return self._graph.node(
            "SkipLayerNormalization", change, state, gain, shift, bias, domain=MICROSOFT, epsilon=self._shape.epsilon
        )

    def _pool(self, state: str) -> str:
        """Masked sum over the tokens, unit length."""
        weights = self._graph.node("Cast", "attention_mask", to=_FLOAT)
        weights = self._graph.node("Unsqueeze", weights, "one")
        total = self._graph.node("Squeeze", self._graph.node("MatMul", weights, state), "one")
        return self._graph.node("LpNormalization", total, axis=-1, p=2, output=OUTPUT)
