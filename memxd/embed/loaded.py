"""A model folder opened for use: manifest, tokenizer and session in one object.

Owns how a text becomes windows of token ids and those become one vector, and the checks a folder passes when opened.
``onnx`` runs it in threads; ``default_model`` and ``models`` open and verify it. Files: ``manifest``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from memxd.embed.base import Vector, mean_unit
from memxd.embed.manifest import (
    DATA_FILE,
    MANIFEST,
    MODEL_FILE,
    TOKENIZER_FILES,
    Golden,
    ModelManifest,
    damaged_files,
    file_sha256,
)
from memxd.embed.session import OnnxSession
from memxd.embed.tokenizer import Tokenizer, open_tokenizer
from memxd.errors import EmbedderUnavailableError, ModelFileError
from memxd.model import NO_DEADLINE, Deadline

#: What may follow a prefix within one window, at least.
_MIN_ROOM = 8
_PROBE = "memxd"


class LoadedModel:
    """An opened model; ``embed`` may be called from many threads at once."""

    def __init__(self, manifest: ModelManifest, tokenizer: Tokenizer, session: OnnxSession, model_id: str) -> None:
        self.manifest = manifest
        self.tokenizer = tokenizer
        self.id = model_id
        self._session = session
        self._prefixes = {p: tokenizer.encode(p) if p else [] for p in (manifest.query_prefix, manifest.passage_prefix)}
        #: Tokens of text that fit beside the longer prefix and the special tokens.
        self.capacity = manifest.window_tokens - tokenizer.special_tokens - max(map(len, self._prefixes.values()))
        if self.capacity < _MIN_ROOM:
            raise ModelFileError(f"{MANIFEST}: window_tokens leaves no room for text beside the prefixes")

    @classmethod
    def open(cls, folder: Path) -> LoadedModel:
        """Open a model folder by its manifest, compare the hashes in it and run the model once.

        Its id is the manifest's plus a fingerprint of everything that shapes its vectors. ModelFileError says what is
        wrong.
        """
        manifest = ModelManifest.read(folder)
        if bad := damaged_files(folder, manifest.files):
            raise ModelFileError(f"files of model {manifest.id} in {folder} are missing or damaged: {', '.join(bad)}")
        return cls.open_checked(folder, manifest, f"{manifest.id}-{fingerprint(folder, manifest)}")

    @classmethod
    def open_checked(cls, folder: Path, manifest: ModelManifest, model_id: str) -> LoadedModel:
        """Open files whose hashes the caller has checked, and run the model once; ModelFileError if it does not."""
        session = OnnxSession(folder, manifest)
        model = cls(manifest, open_tokenizer(folder), session, model_id)
        try:
            model.embed(manifest.query_prefix, _PROBE)
        except EmbedderUnavailableError as error:
            raise ModelFileError(f"model {manifest.id} in {folder} does not work: {error}") from error
        return model

    def embed(self, prefix: str, text: str, deadline: Deadline = NO_DEADLINE) -> Vector:
        """The text's vector; a text longer than the window is read in windows whose vectors are averaged."""
        vectors = []
        for ids in self.windows(prefix, text):
            deadline.check()
            vectors.append(self._session.run(ids))
        return mean_unit(vectors)

    def windows(self, prefix: str, text: str) -> list[list[int]]:
        """Token ids of each window, prefix and special tokens included; windows of one text are of equal size.

        Equal, because they are averaged with equal weight: a last window of three words would count too much.
        """
        wrap, room = self.tokenizer.wrap, self.manifest.window_tokens - self.tokenizer.special_tokens
        whole = self.tokenizer.encode(prefix + text)
        if len(whole) <= room:
            return [wrap(whole)]
        head = self._prefixes[prefix] if prefix in self._prefixes else self.tokenizer.encode(prefix)
        ids = self.tokenizer.encode(text)
        count = -(-len(ids) // (room - len(head)))
        size = -(-len(ids) // count)
        return [wrap([*head, *ids[start : start + size]]) for start in range(0, len(ids), size)]

    def worst_golden(self, golden: Sequence[Golden]) -> float:
        """The lowest cosine between golden vectors and what this machine computes now; 1.0 for none."""
        cosines = [1.0]
        for item in golden:
            expected = item.unit()
            if expected.shape != (self.manifest.dimension,):
                raise ModelFileError(f"{MANIFEST}: a golden vector has {len(expected)} numbers")
            try:
                cosines.append(float(expected @ self.embed("", item.text)))
            except EmbedderUnavailableError:
                # A variant that cannot compute at all is as bad as one that computes nonsense.
                cosines.append(-1.0)
        return min(cosines)


def model_files(folder: Path) -> list[str]:
    """Names of the files that make up the model in a folder, the manifest apart; sorted."""
    return sorted(name for name in (MODEL_FILE, DATA_FILE, *TOKENIZER_FILES) if (folder / name).is_file())


def fingerprint(folder: Path, manifest: ModelManifest) -> str:
    """12 hex digits that change whenever a file or a setting that shapes the vectors does."""
    shape = {
        "files": {name: manifest.files.get(name) or file_sha256(folder / name) for name in model_files(folder)},
        "pooling": manifest.pooling,
        "prefixes": [manifest.query_prefix, manifest.passage_prefix],
        "ports": [manifest.input_ids, manifest.attention_mask, manifest.token_type_ids, manifest.output],
        "window": manifest.window_tokens,
    }
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:12]
