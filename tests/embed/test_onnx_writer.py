"""What the ONNX writer writes is what onnxruntime reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memxd.embed.onnx_writer import Graph, Port, write_model
from memxd.embed.wire import bytes_field, float_field, int_field, text_field, varint
from memxd.native import onnxruntime


def _graph() -> Graph:
    graph = Graph(
        [Port("x", "float32", ("rows", 4))], [Port("y", "float32", ("rows", 300)), Port("z", "float32", (1,))]
    )
    rng = np.random.default_rng(0)
    graph.weight("w", rng.normal(size=(300, 4)).astype(np.float32).T)
    graph.weight("b", np.arange(300, dtype=np.float32))
    graph.weight("axes", np.array([0, 1], np.int64))
    product = graph.node("MatMul", "x", "w")
    graph.node("Add", product, "b", output="y")
    summed = graph.node("ReduceSum", "y", "axes", keepdims=0)
    graph.node("LeakyRelu", graph.node("Reshape", summed, graph.weight("shape", np.array([1], np.int64))),
               output="z", alpha=0.5)  # fmt: skip
    return graph


def _run(path: Path, x: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": x}))


@pytest.mark.parametrize("external", [True, False])
def test_onnxruntime_loads_and_computes_the_graph(tmp_path: Path, external: bool) -> None:
    graph = _graph()
    write_model(graph, tmp_path / "m.onnx", external=external)
    assert (tmp_path / "m.onnx.data").exists() is external
    x = -np.ones((3, 4), np.float32)
    y, z = _run(tmp_path / "m.onnx", x)
    expected = x @ graph.weights["w"] + graph.weights["b"]
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    total = expected.sum()
    np.testing.assert_allclose(z, [total if total > 0 else total / 2], rtol=1e-4)


def test_the_bytes_depend_on_the_graph_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_model(_graph(), tmp_path / name / "m.onnx")
    for file in ("m.onnx", "m.onnx.data"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_large_weights_are_aligned_for_mapping(tmp_path: Path) -> None:
    graph = Graph([], [])
    graph.weight("small", np.ones(300, np.float32))
    graph.weight("large", np.full((1 << 18) + 1, 2, np.float32))
    write_model(graph, tmp_path / "m.onnx")
    data = (tmp_path / "m.onnx.data").read_bytes()
    assert data.index(np.float32(2).tobytes()) == 4096


def test_a_name_twice_or_an_unknown_type_is_refused() -> None:
    graph = Graph([], [])
    graph.weight("w", np.ones(1, np.float32))
    with pytest.raises(ValueError, match="two weights"):
        graph.weight("w", np.ones(1, np.float32))
    with pytest.raises(ValueError, match="float64"):
        graph.weight("v", np.ones(1))


def test_fields_are_those_of_the_encoding_guide() -> None:
    assert varint(150) == b"\x96\x01"
    assert varint(127) == b"\x7f"
    assert varint(128) == b"\x80\x01"
    assert varint(-1) == b"\xff" * 9 + b"\x01"
    assert int_field(1, 150) == b"\x08\x96\x01"
    assert text_field(2, "testing") == b"\x12\x07testing"
    assert bytes_field(3, b"") == b"\x1a\x00"
    assert float_field(1, 1.0) == b"\x0d\x00\x00\x80\x3f"
