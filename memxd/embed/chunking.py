"""Long texts into overlapping chunks that a model can read whole.

Owns the cutting rule; the token counter comes from the model. Every backend's ``split`` calls it. Why about 200
tokens: one vector over a full window blurs a single fact among fifteen sentences, and an encoder's cost grows faster
than the length; a chunk of about 200 keeps a paragraph together. One sentence of overlap keeps a fact that leans on
the sentence before it.

There is no cap on the number of chunks: the last line of the longest text is covered like the first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from memxd.embed.base import Span
from memxd.embed.sentences import sentences

#: Tokens of each text, without prefix and special tokens.
TokenCounter: TypeAlias = Callable[[Sequence[str]], list[int]]

_TARGET = 200
_JOINERS = "\u200d\ufe0e\ufe0f"
_SOFT_BREAKS = ",;:\u3001\uff0c\uff1a\u060c\u2014"


@dataclass(frozen=True, slots=True)
class ChunkRule:
    """Sizes in tokens: a text up to ``whole`` stays in one piece, else chunks reach ``target`` at most.

    A sentence of up to ``overlap`` tokens is repeated at the head of the next chunk. A sentence above ``target`` is
    cut into pieces of at most ``piece`` tokens, which then count as sentences.
    """

    whole: int
    target: int
    overlap: int
    piece: int

    @classmethod
    def for_window(cls, capacity: int) -> ChunkRule:
        """The rule for a model that reads ``capacity`` tokens besides prefix and special tokens (at least 8).

        Counts are added up sentence by sentence and a joint may cost a token more, hence never above 3/4.
        """
        target = max(4, min(_TARGET, capacity * 3 // 5))
        return cls(
            whole=max(4, min(target * 5 // 4, capacity * 3 // 4)),
            target=target,
            overlap=target // 3,
            piece=max(2, target // 4),
        )


def split_text(text: str, count: TokenCounter, rule: ChunkRule) -> list[Span]:
    """Half-open character spans in ascending order that cover ``text``; [] only for the empty text."""
    if not text:
        return []
    if count([text])[0] <= rule.whole:
        return [(0, len(text))]
    return _pack(*_units(text, count, rule), rule)


def _units(text: str, count: TokenCounter, rule: ChunkRule) -> tuple[list[Span], list[int]]:
    """Sentences, the overlong ones cut, with their token counts."""
    spans = sentences(text)
    sizes = count([text[a:b] for a, b in spans])
    units: list[Span] = []
    tokens: list[int] = []
    for span, size in zip(spans, sizes, strict=True):
        pieces = [span] if size <= rule.target else _hard_cut(text, span, count, rule.piece)
        units.extend(pieces)
        tokens.extend([size] if len(pieces) == 1 else count([text[a:b] for a, b in pieces]))
    return units, tokens


def _pack(units: list[Span], tokens: list[int], rule: ChunkRule) -> list[Span]:
    """Greedy: fill each chunk up to the target, start the next with the last unit again when that is short."""
    chunks: list[Span] = []
    first = 0
    while True:
        total, stop = tokens[first], first + 1
        while stop < len(units) and total + tokens[stop] <= rule.target:
            total += tokens[stop]
            stop += 1
        chunks.append((units[first][0], units[stop - 1][1]))
        if stop == len(units):
            return chunks
        again = tokens[stop - 1]
        repeat = stop - 1 > first and again <= rule.overlap and again + tokens[stop] <= rule.target
        first = stop - 1 if repeat else stop


def _hard_cut(text: str, span: Span, count: TokenCounter, limit: int) -> list[Span]:
    """Consecutive pieces of at most ``limit`` tokens, or of one character where that alone is more."""
    pieces: list[Span] = []
    start, end = span
    while start < end:
        stop = _furthest(text, start, end, count, limit)
        if stop < end:
            stop = _nicer(text, start, stop)
        pieces.append((start, stop))
        start = stop
    return pieces


def _furthest(text: str, start: int, end: int, count: TokenCounter, limit: int) -> int:
    """An end such that the piece has at most ``limit`` tokens, found by doubling and then halving the step."""
    good, step = start + 1, limit
    while (probe := min(end, start + step)) > good:
        if count([text[start:probe]])[0] > limit:
            break
        good = probe
        if probe == end:
            return end
        step *= 2
    bad = min(end, start + step)
    while bad - good > 1:
        middle = (good + bad) // 2
        if count([text[start:middle]])[0] <= limit:
            good = middle
        else:
            bad = middle
    return good


def _nicer(text: str, start: int, stop: int) -> int:
    """A better place in the last two fifths: after a comma, else after white space, else between graphemes."""
    floor = start + (stop - start) * 3 // 5
    for is_break in (_SOFT_BREAKS.__contains__, str.isspace):
        for place in range(stop, max(floor, start), -1):
            if is_break(text[place - 1]):
                return place
    for place in range(stop, max(floor, start), -1):
        if not _continues(text, place):
            return place
    return stop


def _continues(text: str, place: int) -> bool:
    """Whether a cut at ``place`` would part a letter from its marks or an emoji from its joiner."""
    if place >= len(text):
        return False
    here = text[place]
    return here in _JOINERS or text[place - 1] == "\u200d" or unicodedata.category(here).startswith("M")
