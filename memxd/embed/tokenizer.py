"""Text -> token ids, for models that run here.

Owns the two tokenizers behind one protocol: SentencePiece (the default model) and the ``tokenizers`` library (models
from a folder; an optional extra, imported only when such a model is opened). ``loaded`` opens one per model folder.
Ids come without special tokens; ``wrap`` adds them, so that a long text can be cut into windows of ids first.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from sentencepiece import SentencePieceProcessor

from memxd.embed.manifest import TOKENIZER_FILES
from memxd.embed.sentencepiece_model import normalise
from memxd.errors import ModelFileError


class Tokenizer(Protocol):
    """Turns text into ids. Safe to call from many threads."""

    @property
    def special_tokens(self) -> int:
        """How many ids ``wrap`` adds."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids without special tokens."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """How many ids each text has, without special tokens."""
        ...

    def wrap(self, ids: Sequence[int]) -> list[int]:
        """The ids with the model's special tokens around them."""
        ...


def open_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model folder; ModelFileError when it lacks or cannot be read."""
    json_file, piece_file = (folder / name for name in TOKENIZER_FILES)
    if piece_file.is_file():
        return SentencePieceTokenizer(piece_file)
    if json_file.is_file():
        return JsonTokenizer(json_file)
    raise ModelFileError(f"{folder} has no tokenizer: neither {' nor '.join(TOKENIZER_FILES)}")


class SentencePieceTokenizer:
    """A SentencePiece unigram model with its begin and end pieces."""

    special_tokens = 2

    def __init__(self, path: Path) -> None:
        try:
            # From bytes: the library's own file reader cannot open every path.
            self._model = SentencePieceProcessor(model_proto=path.read_bytes())
        except (OSError, RuntimeError) as error:
            raise ModelFileError(f"cannot read the tokenizer {path}: {error}") from error
        self._bos, self._eos = self._model.bos_id(), self._model.eos_id()
        if min(self._bos, self._eos) < 0:
            raise ModelFileError(f"the tokenizer {path} has no begin or end piece")

    def encode(self, text: str) -> list[int]:
        """Ids of the normalised text."""
        ids: list[int] = self._model.encode(normalise(text))
        return ids

    def count(self, texts: Sequence[str]) -> list[int]:
        """Number of ids of each text."""
        return [len(self.encode(text)) for text in texts]

    def wrap(self, ids: Sequence[int]) -> list[int]:
        """begin, ids, end."""
        return [self._bos, *ids, self._eos]


class JsonTokenizer:
    """A tokenizer.json, read by the ``tokenizers`` library. Its own truncation and padding are switched off."""

    def __init__(self, path: Path) -> None:
        try:
            library = import_module("tokenizers")
        except ImportError as error:
            raise ModelFileError(
                'models with a tokenizer.json need one more package: pip install "memxd[models]"'
            ) from error
        try:
            self._tokenizer: Any = library.Tokenizer.from_str(path.read_text(encoding="utf-8"))
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self._head, self._tail = self._specials()
        except Exception as error:  # the library raises bare Exception for a bad file
            raise ModelFileError(f"cannot read the tokenizer {path}: {error}") from error
        self.special_tokens = len(self._head) + len(self._tail)

    def encode(self, text: str) -> list[int]:
        """Ids of the text; lone surrogates, which the library cannot take, count as U+FFFD."""
        clean = text.encode("utf-8", "replace").decode("utf-8")
        ids: list[int] = self._tokenizer.encode(clean, add_special_tokens=False).ids
        return ids

    def count(self, texts: Sequence[str]) -> list[int]:
        """Number of ids of each text."""
        return [len(self.encode(text)) for text in texts]

    def wrap(self, ids: Sequence[int]) -> list[int]:
        """The ids between the special tokens that the file's post-processor adds."""
        return [*self._head, *ids, *self._tail]

    def _specials(self) -> tuple[list[int], list[int]]:
        """Special ids before and after a text, seen on a sample."""
        encoding = self._tokenizer.encode("a", add_special_tokens=True)
        inner = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
        if not inner:
            raise ValueError("it finds no token in a plain letter")
        return list(encoding.ids[: inner[0]]), list(encoding.ids[inner[-1] + 1 :])
