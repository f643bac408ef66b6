"""Where texts and questions come from: a set in ``--data``, else generated with a natural vocabulary.

Owns reading a set in the memory retrieval format (``corpus.jsonl.gz`` with "content", ``queries.jsonl.gz`` with
"query") and the generator: 8 to 16 words, ranks by Zipf-Mandelbrot, p(r) ~ 1 / (r + 2.7)^1.05, steeper (1.6) beyond
rank 8,000 as in large corpora, so that new words keep coming as texts do (Heaps' law), a tenth of the texts Chinese,
names and numbers between. Text number i is the same in every store, whatever the size. Called by ``context``.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memxd.bench.words import CHINESE, CHINESE_FUNCTION, FUNCTION, NAMES, word
from memxd.errors import InvalidArgumentError

#: Changes whenever other texts come out: part of the recipe of a store.
GENERATOR = "texts-1"
_RANKS, _SHIFT, _EXPONENT = 3_000_000, 2.7, 1.05
_KNEE, _STEEP = 8_000, 1.6
_BLOCK = 10_000
_LONGEST = 16
_ASKING = ("what", "when", "where", "who", "which", "how", "did", "does", "was", "is", "about", "the")


@dataclass(frozen=True, slots=True)
class Source:
    """Texts and questions. ``label`` is what the report says; ``limit`` how many texts there are, None = any number."""

    label: str
    recipe: str
    folder: Path | None = None
    seed: int = 7
    limit: int | None = None

    @classmethod
    def open(cls, folder: Path | None, seed: int) -> Source:
        """The set in ``folder``, None = generated. Raises InvalidArgumentError when the folder holds no such set."""
        if folder is None:
            return cls(
                f"generated, Zipf-Mandelbrot vocabulary, 8-16 words, seed {seed}", f"{GENERATOR} {seed}", seed=seed
            )
        corpus = folder / "corpus.jsonl.gz"
        if not corpus.is_file():
            raise InvalidArgumentError(f"--data: {folder} holds no corpus.jsonl.gz")
        count = sum(1 for _ in _lines(corpus))
        info = corpus.stat()
        return cls(f"set {folder.name} ({count:,} texts)", f"{folder.name} {info.st_size}", folder, seed, count)

    def texts(self, n: int, start: int = 0) -> Iterator[str]:
        """Texts ``start`` to ``n``, in order. Raises InvalidArgumentError for more than there are."""
        if self.limit is not None and n > self.limit:
            raise InvalidArgumentError(f"the set holds {self.limit:,} texts, not {n:,}")
        if self.folder is not None:
            lines = _lines(self.folder / "corpus.jsonl.gz")
            for number, line in zip(range(n), lines):  # noqa: B905 (the set may be longer)
                if number >= start:
                    yield str(line["content"])
            return
        for first in range(start // _BLOCK * _BLOCK, n, _BLOCK):
            block = generate(self.seed, first // _BLOCK)
            yield from block[max(0, start - first) : n - first]

    def questions(self, n: int, among: int) -> list[str]:
        """``n`` different questions that the first ``among`` texts may answer; a set's own, when it has as many."""
        asked: list[str] = []
        if self.folder is not None and (self.folder / "queries.jsonl.gz").is_file():
            lines = _lines(self.folder / "queries.jsonl.gz")
            asked = list(dict.fromkeys(str(line["query"]) for line in lines))[:n]
        if len(asked) < n:
            asked = list(dict.fromkeys([*asked, *self._made_questions(2 * n + 20, among)]))[:n]
        return asked

    def _made_questions(self, n: int, among: int) -> list[str]:
        """4 to 9 words: some of one text in their order, function words between."""
        rng = np.random.default_rng((self.seed, 4, n))
        wanted = rng.integers(0, among, n).tolist()
        those = set(wanted)
        picked = {number: text for number, text in enumerate(self.texts(max(wanted) + 1)) if number in those}
        return [question_of(picked[number], rng) for number in wanted]


def question_of(text: str, rng: np.random.Generator) -> str:
    """A question that words of ``text`` answer."""
    words = text.split()
    if len(words) < 4:  # a script without spaces
        length = int(rng.integers(6, 13))
        start = int(rng.integers(0, max(1, len(text) - length)))
        return text[start : start + length] + "是什么"
    length = int(rng.integers(4, 10))
    content = [w for w in words if w.lower() not in FUNCTION] or words
    own = sorted(rng.permutation(len(content))[: max(2, int(length * 0.6))].tolist())
    chosen = [content[at] for at in own]
    while len(chosen) < length:
        chosen.insert(int(rng.integers(0, len(chosen))), str(rng.choice(_ASKING)))
    return " ".join(chosen)


@functools.lru_cache(maxsize=1)
def _cumulative() -> NDArray[np.float64]:
    rank = np.arange(1, _RANKS + 1) + _SHIFT
    weight = rank**-_EXPONENT
    weight[_KNEE:] = weight[_KNEE - 1] * (rank[_KNEE:] / rank[_KNEE - 1]) ** -_STEEP
    sums: NDArray[np.float64] = np.cumsum(weight)
    sums /= sums[-1]
    return sums


def generate(seed: int, block: int) -> list[str]:
    """Texts ``block`` * 10,000 and on, 10,000 of them."""
    rng = np.random.default_rng((seed, 3, block))
    ranks = np.searchsorted(_cumulative(), rng.random((_BLOCK, _LONGEST))).tolist()
    lengths = rng.integers(8, _LONGEST + 1, _BLOCK).tolist()
    kinds = rng.random(_BLOCK).tolist()
    spice = rng.integers(0, 1_000_000, _BLOCK).tolist()
    rows = zip(ranks, lengths, kinds, spice, strict=True)
    return [_chinese(r, n) if kind < 0.1 else _english(r[:n], kind, s) for r, n, kind, s in rows]


def _english(ranks: list[int], kind: float, spice: int) -> str:
    words = [word(rank) for rank in ranks]
    if kind > 0.6:
        words[spice % len(words)] = NAMES[spice % len(NAMES)]
    if kind > 0.85:
        words[(spice // 7) % len(words)] = str(spice % 3_000)
    return " ".join(words)


def _chinese(ranks: list[int], length: int) -> str:
    """About as many words; rare ranks are names in Latin script."""
    few = len(CHINESE_FUNCTION)
    made = []
    for rank in ranks[:length]:
        if rank < few:
            made.append(CHINESE_FUNCTION[rank])
        elif rank < 60_000:
            made.append(CHINESE[rank % len(CHINESE)])
        else:
            made.append(NAMES[rank % len(NAMES)])
    return "".join(made)


def _lines(path: Path) -> Iterator[dict[str, object]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)
