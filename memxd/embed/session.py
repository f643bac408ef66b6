"""One ONNX encoder in memory: token ids in, one vector out.

Owns onnxruntime's session and its thread settings, and the pooling of models that do none themselves. One text per
run: int8 activations are scaled per run, so in a batch a text's vector would depend on its neighbours; alone it is the
same bit for bit every time. One thread per run without spinning, because memxd runs as many texts at once as there are
cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memxd.embed.base import Vector, measured
from memxd.embed.manifest import MODEL_FILE, ModelManifest
from memxd.errors import EmbedderUnavailableError, ModelFileError
from memxd.native import onnxruntime

_ERRORS_ONLY = 3
_LENGTH_TOLERANCE = 0.01
#: Tokens of a text whose mask is kept for the next one of the same length.
_SHORT = 128


class OnnxSession:
    """An encoder; ``run`` may be called from many threads at once."""

    def __init__(self, folder: Path, manifest: ModelManifest) -> None:
        self._manifest = manifest
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        options.log_severity_level = _ERRORS_ONLY
        path = folder / MODEL_FILE
        if not path.is_file():
            raise ModelFileError(f"{folder} has no {MODEL_FILE}")
        try:
            self._session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions share no base but Exception
            raise ModelFileError(f"onnxruntime cannot open {path}: {_first_line(error)}") from error
        self._constants = self._find_constants()
        self._kept: dict[tuple[int, int], NDArray[np.int64]] = {}
        self._output = self._find_output()

    def run(self, ids: Sequence[int]) -> Vector:
        """The vector of one token sequence (special tokens included), float32 (dimension,), unit length.

        EmbedderUnavailableError when the model fails or its vector has a wrong size or no direction.
        """
        feed = {name: self._filled(len(ids), fill) for name, fill in self._constants.items()}
        feed[self._manifest.input_ids] = np.array([ids], np.int64)
        try:
            (raw,) = self._session.run([self._output], feed)
        except Exception as error:  # onnxruntime's exceptions share no base but Exception
            raise EmbedderUnavailableError(f"the embedding model failed: {_first_line(error)}") from error
        vector = self._pool(np.asarray(raw))
        if vector.shape != (self._manifest.dimension,):
            raise EmbedderUnavailableError(
                f"the embedding model gave shape {vector.shape}, not ({self._manifest.dimension},)"
            )
        length, made = measured(vector)
        if not self._manifest.normalise and abs(length - 1) > _LENGTH_TOLERANCE:
            raise EmbedderUnavailableError("the embedding model's vectors are not of length 1; set normalise to true")
        return made

    def _filled(self, tokens: int, fill: int) -> NDArray[np.int64]:
        """int64(1, tokens) of one number, read-only; those of short texts are kept."""
        found = self._kept.get((tokens, fill))
        if found is None:
            found = np.full((1, tokens), fill, np.int64)
            found.flags.writeable = False
            if tokens <= _SHORT:
                self._kept[tokens, fill] = found
        return found

    def _pool(self, raw: NDArray[np.floating]) -> NDArray[np.floating]:
        """(1, dimension) or (1, tokens, dimension) -> (dimension,); other shapes come back as they are."""
        if self._manifest.pooling == "none":
            return raw.reshape(raw.shape[1:]) if raw.ndim == 2 and len(raw) == 1 else raw
        if raw.ndim != 3:
            return raw
        # One text without padding: the plain mean is the masked mean.
        return np.asarray(raw[0].mean(axis=0) if self._manifest.pooling == "mean" else raw[0, 0])

    def _find_constants(self) -> dict[str, int]:
        """What to feed beside the ids, by input name: mask 1, token type 0."""
        manifest = self._manifest
        known = {manifest.attention_mask: 1, manifest.token_type_ids: 0}
        types = {str(port.name): port.type for port in self._session.get_inputs()}
        if manifest.input_ids not in types:
            raise ModelFileError(f"the model has no input {manifest.input_ids}; its inputs are {', '.join(types)}")
        if unknown := sorted(set(types) - {*known, manifest.input_ids}):
            raise ModelFileError(f"the model wants inputs that memxd does not know: {', '.join(unknown)}")
        if wrong := sorted(name for name, kind in types.items() if kind != "tensor(int64)"):
            raise ModelFileError(f"the model's inputs must be int64: {', '.join(wrong)}")
        return {name: fill for name, fill in known.items() if name in types and name != manifest.input_ids}

    def _find_output(self) -> str:
        names = [port.name for port in self._session.get_outputs()]
        wanted = self._manifest.output or names[0]
        if wanted not in names:
            raise ModelFileError(f"the model has no output {wanted}; its outputs are {', '.join(names)}")
        return str(wanted)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
