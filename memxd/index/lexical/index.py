"""The keyword leg's face: one object that is told of changes and answers questions.

Being built: the signatures below are what the engine programs against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol

from memxd.index.lexical.hits import Int32, LexicalHits, QueryTerms, SelectedRows
from memxd.model import NO_DEADLINE, Change, Deadline, IndexStatus, TermMatch


class LexicalIndexApi(Protocol):
    """Signatures of ``LexicalIndex``; ``memxd.index.lexical.analyzer.query_terms(text) -> QueryTerms`` makes terms."""

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        kernel: ModuleType,
        k1: float = 1.2,
        b: float = 0.75,
        fold_rows: int = 2_000,
        fold_seconds: float = 30.0,
    ) -> LexicalIndexApi:
        """Open or make the index in ``directory`` (its own folder). ``kernel`` = ``load_kernels(...).bm25``. Never raises
        for what lies there: damaged or foreign files are moved aside and ``status().message`` says why; watermark 0 then."""
        ...

    def apply(self, change: Change) -> None:
        """Called by the one applier, in revision order. Visible to the next search. ``text`` not None: index it;
        ``features`` None: remove; else only the watermark moves."""
        ...

    def search(
        self, terms: QueryTerms, selection: SelectedRows, k: int, also: Int32 | None = None, deadline: Deadline = NO_DEADLINE
    ) -> LexicalHits:
        """The k best selected rows. Raises IndexUnavailableError when closed or damaged."""
        ...

    def explain(
        self, terms: QueryTerms, rids: Sequence[int], selection: SelectedRows
    ) -> list[tuple[TermMatch, ...]]:
        """For each rid its matching terms, in query order; the scores sum (in that order) to the BM25 score bit for bit."""
        ...

    @property
    def watermark(self) -> int:
        """Newest revision that searches see."""
        ...

    @property
    def durable_watermark(self) -> int:
        """Newest revision that survives a crash; changes after it are replayed."""
        ...

    def flush(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Make everything applied so far durable. Raises IndexUnavailableError when that fails."""
        ...

    def rebuild(
        self, changes: Iterator[Change], total: int, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Build anew from all rows, beside, and swap. ``changes`` must read a snapshot that was begun after this call
        began (a generator is fine); apply() may go on meanwhile. ``progress(done, total)``."""
        ...

    def status(self) -> IndexStatus: ...

    def close(self) -> None:
        """Bounded final flush; the child process is joined. Twice is fine."""
        ...
