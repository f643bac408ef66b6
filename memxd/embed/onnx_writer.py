"""An ONNX graph as plain data, and its file format.

Owns ``Graph`` (nodes, weights, inputs, outputs) and how it is written: a ModelProto, with large weights in one data
file beside it that onnxruntime maps into memory. Knows no model; ``e5_graph`` builds one. Field numbers are those of
onnx.proto3 (IR version 9); the tests load what is written here into onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memxd.embed.wire import bytes_field, float_field, int_field, text_field

Attribute: TypeAlias = int | float | str | Sequence[int]
Array: TypeAlias = NDArray[Any]

#: TensorProto.DataType by numpy name.
DATA_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "float16": 10}
#: Operator domain of onnxruntime's own operators.
MICROSOFT = "com.microsoft"

_IR_VERSION = 9
_OPSETS = (("", 20), (MICROSOFT, 1))
_INLINE_BELOW = 1024
_PAGE, _LINE = 4096, 64
_PAGED_ABOVE = 1 << 20


@dataclass(frozen=True, slots=True)
class Node:
    """One operator: value names in and out ("" = an optional input left out)."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: str
    attributes: dict[str, Attribute]


@dataclass(frozen=True, slots=True)
class Port:
    """A graph input or output: numpy type name, and dimensions (a name = any size)."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(slots=True)
class Graph:
    """A graph under construction. Names of weights are the caller's, names of values are made here."""

    inputs: list[Port]
    outputs: list[Port]
    nodes: list[Node] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)

    def weight(self, name: str, array: Array) -> str:
        """Add a constant (made contiguous) and return its name; ValueError for a name in use or an unknown type."""
        if name in self.weights:
            raise ValueError(f"two weights called {name}")
        if array.dtype.name not in DATA_TYPES:
            raise ValueError(f"weight {name} has type {array.dtype.name}, which this writer does not know")
        self.weights[name] = np.ascontiguousarray(array)
        return name

    def node(self, op: str, *inputs: str, domain: str = "", output: str = "", **attributes: Attribute) -> str:
        """Add an operator with one output and return that value's name (``output`` if given)."""
        return self.split_node(op, *inputs, domain=domain, outputs=1, output=output, **attributes)[0]

    def split_node(
        self, op: str, *inputs: str, outputs: int, domain: str = "", output: str = "", **attributes: Attribute
    ) -> tuple[str, ...]:
        """Add an operator with several outputs and return their names."""
        base = output or f"v{len(self.nodes)}"
        names = (base, *(f"{base}.{i}" for i in range(1, outputs)))
        self.nodes.append(Node(op, inputs, names, domain, attributes))
        return names


def write_model(graph: Graph, model_path: Path, *, external: bool = True) -> None:
    """Write ``model_path``; with ``external`` also ``<model_path>.data``, little-endian, for weights of 1 KiB and more.

    The bytes depend on the graph alone. OSError as the file system raises it.
    """
    if not external:
        tensors = [_tensor(name, array) for name, array in graph.weights.items()]
    else:
        data_path = model_path.with_name(model_path.name + ".data")
        with data_path.open("wb") as data:
            tensors = [_stored(name, array, data, data_path.name) for name, array in graph.weights.items()]
    model_path.write_bytes(_model(graph, tensors))


def _stored(name: str, array: Array, data: IO[bytes], location: str) -> bytes:
    """A TensorProto; a large array goes to the data file, aligned so that it can be mapped and read by lines."""
    if array.nbytes < _INLINE_BELOW:
        return _tensor(name, array)
    data.write(b"\0" * (-data.tell() % (_PAGE if array.nbytes > _PAGED_ABOVE else _LINE)))
    offset = data.tell()
    data.write(_little_endian(array))
    entries = (("location", location), ("offset", str(offset)), ("length", str(array.nbytes)))
    external = b"".join(bytes_field(13, text_field(1, key) + text_field(2, value)) for key, value in entries)
    return _tensor_head(name, array) + external + int_field(14, 1)


def _little_endian(array: Array) -> bytes:
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _tensor_head(name: str, array: Array) -> bytes:
    dims = b"".join(int_field(1, size) for size in array.shape)
    return dims + int_field(2, DATA_TYPES[array.dtype.name]) + text_field(8, name)


def _tensor(name: str, array: Array) -> bytes:
    return _tensor_head(name, array) + bytes_field(9, _little_endian(array))


def _attribute(name: str, value: Attribute) -> bytes:
    """An AttributeProto: name, value and its type (1 float, 2 int, 3 string, 7 ints)."""
    head = text_field(1, name)
    if isinstance(value, float):
        return head + float_field(2, value) + int_field(20, 1)
    if isinstance(value, int):
        return head + int_field(3, value) + int_field(20, 2)
    if isinstance(value, str):
        return head + text_field(4, value) + int_field(20, 3)
    return head + b"".join(int_field(8, item) for item in value) + int_field(20, 7)


def _node(node: Node, number: int) -> bytes:
    names = b"".join(text_field(1, name) for name in node.inputs)
    names += b"".join(text_field(2, name) for name in node.outputs)
    attributes = b"".join(bytes_field(5, _attribute(key, value)) for key, value in node.attributes.items())
    domain = text_field(7, node.domain) if node.domain else b""
    return names + text_field(3, f"{node.op}_{number}") + text_field(4, node.op) + attributes + domain


def _port(port: Port) -> bytes:
    """A ValueInfoProto of a tensor type."""
    dims = b"".join(bytes_field(1, text_field(2, d) if isinstance(d, str) else int_field(1, d)) for d in port.shape)
    tensor = int_field(1, DATA_TYPES[port.dtype]) + bytes_field(2, dims)
    return text_field(1, port.name) + bytes_field(2, bytes_field(1, tensor))


def _model(graph: Graph, tensors: Sequence[bytes]) -> bytes:
    """A ModelProto."""
    body = b"".join(bytes_field(1, _node(node, number)) for number, node in enumerate(graph.nodes))
    body += text_field(2, "memxd") + b"".join(bytes_field(5, tensor) for tensor in tensors)
    body += b"".join(bytes_field(11, _port(port)) for port in graph.inputs)
    body += b"".join(bytes_field(12, _port(port)) for port in graph.outputs)
    opsets = b"".join(
        bytes_field(8, (text_field(1, domain) if domain else b"") + int_field(2, version))
        for domain, version in _OPSETS
    )
    return int_field(1, _IR_VERSION) + text_field(2, "memxd") + bytes_field(7, body) + opsets
