"""``memxd-model.json``: what a model folder says about itself.

Owns the file's format and its validation, and the hashes of the files beside it. ``loaded`` opens a folder by it,
``convert`` and ``models`` write it. docs/CONFIGURATION.md describes it for people who bring a model of their own.

A folder holds model.onnx (and model.onnx.data), a tokenizer (tokenizer.json or sentencepiece.model) and this file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from memxd.embed.base import Vector, unit
from memxd.errors import EmbedderUnavailableError, ModelFileError

MANIFEST = "memxd-model.json"
MODEL_FILE = "model.onnx"
DATA_FILE = "model.onnx.data"
TOKENIZER_FILES = ("tokenizer.json", "sentencepiece.model")

Pooling: TypeAlias = Literal["mean", "cls", "none"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_BYTES = 4 * 1024 * 1024
_READ = 1 << 20


@dataclass(frozen=True, slots=True)
class Golden:
    """A text (prefix included) and its vector, base64 of little-endian float16."""

    text: str
    vector: str

    def unit(self) -> Vector:
        """The vector at unit length; ModelFileError when it is damaged."""
        try:
            raw = np.frombuffer(base64.b64decode(self.vector, validate=True), "<f2")
            return unit(raw.astype(np.float32))
        except (binascii.Error, ValueError, EmbedderUnavailableError) as error:
            raise ModelFileError(f"{MANIFEST}: a golden vector is damaged: {error}") from error

    @classmethod
    def of(cls, text: str, vector: Vector) -> Golden:
        """Keep a vector."""
        return cls(text, base64.b64encode(vector.astype("<f2").tobytes()).decode("ascii"))


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """A model folder's description. Required in the file: id, dimension, pooling, window_tokens.

    ``window_tokens`` counts prefix and special tokens. ``pooling`` "none" = the graph's output is the vector already.
    ``normalise`` false = the output has length 1 by itself, which is then checked instead.
    Empty ``input_ids``.. names mean the usual ones; empty ``output`` = the graph's first. ``files`` maps names to
    SHA-256; filled in when the folder is installed. Cosine fields as in ``ModelInfo``; the defaults suit models
    whose unrelated texts lie near 0, such as MiniLM.
    """

    id: str
    dimension: int
    pooling: Pooling
    window_tokens: int
    normalise: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    input_ids: str = "input_ids"
    attention_mask: str = "attention_mask"
    token_type_ids: str = "token_type_ids"
    output: str = ""
    variant: str = ""
    tau: float = 0.3
    cosine_low: float = 0.1
    cosine_high: float = 0.8
    cosine_shift_cjk: float = 0.0
    cosine_shift_cross: float = 0.0
    files: Mapping[str, str] = field(default_factory=dict)
    golden: tuple[Golden, ...] = ()
    golden_minimum: float = 0.99

    @classmethod
    def read(cls, folder: Path) -> ModelManifest:
        """The manifest of a folder; ModelFileError saying which key is wrong and what it may be."""
        path = folder / MANIFEST
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise ModelFileError(f"{folder} is no model folder: cannot read {MANIFEST}: {error.strerror}") from error
        if len(raw) > _MAX_BYTES:
            raise ModelFileError(f"{path} is larger than {_MAX_BYTES} bytes")
        try:
            value = json.loads(raw)
        except ValueError as error:
            raise ModelFileError(f"{path} is not JSON: {error}") from error
        return cls.parse(value, str(path))

    @classmethod
    def parse(cls, value: object, where: str) -> ModelManifest:
        """From a JSON value; ``where`` names the file in errors."""
        return _Parser(value, where).manifest()

    def to_json(self) -> str:
        """The file's text; the same manifest always gives the same text."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["files"] = dict(sorted(self.files.items()))
        plain["golden"] = [{"text": g.text, "vector": g.vector} for g in self.golden]
        return json.dumps(plain, ensure_ascii=False, indent=2) + "\n"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, hex; ModelFileError when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_READ):
                digest.update(block)
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror}") from error
    return digest.hexdigest()


def damaged_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Names among ``files`` (name -> SHA-256) that are missing or differ, sorted."""
    return [
        name
        for name, expected in sorted(files.items())
        if not (folder / name).is_file() or file_sha256(folder / name) != expected
    ]


class _Parser:
    """Reads one JSON value key by key; every complaint names the file and the key."""

    def __init__(self, value: object, where: str) -> None:
        self._where = where
        if not isinstance(value, dict):
            raise ModelFileError(f"{where} must hold a JSON object")
        self._value: dict[str, Any] = value
        if unknown := sorted(set(value) - set(ModelManifest.__dataclass_fields__)):
            raise ModelFileError(f"{where}: unknown keys {', '.join(unknown)}")

    def manifest(self) -> ModelManifest:
        default = ModelManifest("default", 1, "mean", 16)
        values: dict[str, Any] = {
            "id": self._text("id", None, pattern=_ID),
            "dimension": self._int("dimension", 1, 16_384),
            "pooling": self._text("pooling", None, allowed=get_args(Pooling)),
            "window_tokens": self._int("window_tokens", 16, 1_000_000),
            "normalise": self._bool("normalise", default.normalise),
            "files": self._files(),
            "golden": self._golden(),
        }
        values |= {name: self._text(name, getattr(default, name)) for name in _TEXTS}
        values |= {name: self._cosine(name, getattr(default, name)) for name in _COSINES}
        manifest = ModelManifest(**values)
        if manifest.cosine_low >= manifest.cosine_high:
            raise self._wrong("cosine_low", "below cosine_high")
        return manifest

    def _wrong(self, key: str, expected: str) -> ModelFileError:
        return ModelFileError(f"{self._where}: {key} must be {expected}")

    def _text(
        self,
        key: str,
        default: str | None,
        *,
        pattern: re.Pattern[str] | None = None,
        allowed: tuple[str, ...] = (),
    ) -> str:
        value = self._value.get(key, default)
        if not isinstance(value, str) or len(value) > 1000:
            raise self._wrong(key, "a text")
        if allowed and value not in allowed:
            raise self._wrong(key, "one of " + ", ".join(allowed))
        if pattern is not None and not pattern.fullmatch(value):
            raise self._wrong(key, "1 to 100 letters, digits, dots, dashes or underscores")
        return value

    def _int(self, key: str, low: int, high: int) -> int:
        value = self._value.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._wrong(key, f"a whole number from {low} to {high}")
        return value

    def _bool(self, key: str, default: bool) -> bool:
        value = self._value.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def _cosine(self, key: str, default: float) -> float:
        value = self._value.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not -1 <= value <= 1:
            raise self._wrong(key, "a number from -1 to 1")
        return float(value)

    def _files(self) -> dict[str, str]:
        value = self._value.get("files", {})
        if not isinstance(value, dict):
            raise self._wrong("files", "an object of file names and SHA-256 sums")
        for name, digest in value.items():
            plain = Path(name).name == name and name not in {"", ".", ".."}
            if not plain or not isinstance(digest, str) or not _SHA256.fullmatch(digest):
                raise self._wrong("files", "an object of plain file names and SHA-256 sums")
        return dict(value)

    def _golden(self) -> tuple[Golden, ...]:
        value = self._value.get("golden", [])
        if not isinstance(value, list):
            raise self._wrong("golden", "a list")
        out = []
        for item in value:
            if not isinstance(item, dict) or {type(item.get("text")), type(item.get("vector"))} != {str}:
                raise self._wrong("golden", "a list of objects with text and vector")
            out.append(Golden(item["text"], item["vector"]))
        return tuple(out)


_TEXTS = ("query_prefix", "passage_prefix", "input_ids", "attention_mask", "token_type_ids", "output", "variant")
_COSINES = ("tau", "cosine_low", "cosine_high", "cosine_shift_cjk", "cosine_shift_cross", "golden_minimum")
