"""The keyword leg's face: one object that is told of changes and answers questions by BM25.

Owns the folder (``current``, ``new`` while rebuilding, ``broken`` for the last one found damaged) and the life of its
parts: ``state`` (what is searched), ``folding`` (what makes it durable), the rebuild. Does not analyse questions
(``analyzer.query_terms`` does). The selection is the wall between scopes, statistics are those of its scope. One thread
applies, in the order of revisions; any number search.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from memxd._fast.bm25_py import Bm25Kernel, Postings
from memxd.errors import IndexUnavailableError, MemxdError
from memxd.index.lexical import searching
from memxd.index.lexical.child import ChildError
from memxd.index.lexical.files import SET_ASIDE, DamagedError, await_unlocked, exchange, set_aside
from memxd.index.lexical.folding import Folding, refusal
from memxd.index.lexical.hits import Float64, Int32, LexicalHits, Prior, QueryTerms, SelectedRows
from memxd.index.lexical.rebuilding import build, entry_of
from memxd.index.lexical.searching import FEW, Asked
from memxd.index.lexical.segment import Committed, open_folder
from memxd.index.lexical.snapshot import Frozen
from memxd.index.lexical.stamp import stamp
from memxd.index.lexical.state import Entry, State
from memxd.model import NO_DEADLINE, Change, Deadline, IndexKind, IndexState, IndexStatus, TermMatch

__all__ = ["Asked", "LexicalIndex"]

_log = logging.getLogger(__name__)
_CLOSE_SECONDS = 10.0
#: What is left for a child that has used up those.
_LAST_SECONDS = 1.0
_ORPHAN_SECONDS = 2.0
_NOTHING = np.empty(0, np.int32)
#: Changes taken over in one step; searches wait for it.
_AT_ONCE = 8


class LexicalIndex:
    """See the module. Make one with ``open``."""

    def __init__(
        self, directory: Path, database_id: str, bm25: searching.Bm25, fold_rows: int, fold_seconds: float
    ) -> None:
        self._directory = directory
        self._folder = directory / "current"
        self._bm25 = bm25
        self._stamp = stamp(database_id)
        self._message = ""
        self._damage = ""
        self._closed = False
        self._heard = 0  # the newest revision since the last rebuild began
        # What happened during a rebuild, to be told to the new index too. The lock makes "taken over and noted" one
        # step for the applier, so that an exchange never falls between the two.
        self._journal: list[Entry] | None = None
        self._applying = threading.Lock()
        self._state = State(bm25.kernel)
        committed = self._open_folder()
        self._state.replace(committed, committed.manifest.watermark if committed else 0)
        self._folding = Folding(self._state, self._folder, self._stamp, fold_rows, fold_seconds)

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        kernel: Bm25Kernel,
        database_id: str = "",
        k1: float = 1.2,
        b: float = 0.75,
        fold_rows: int = 2_000,
        fold_seconds: float = 30.0,
    ) -> LexicalIndex:
        """Open or make the index in ``directory``, a folder of its own; ``kernel`` is ``load_kernels(...).bm25``.

        The tail goes to disk after ``fold_rows`` documents or ``fold_seconds`` seconds. Nothing that lies in the folder
        raises: damaged or foreign files are moved aside, ``status().message`` says why, and the watermark is 0. Raises
        ValueError for k1 or b out of range, OSError when the folder cannot be made.
        """
        return cls(directory, database_id, searching.Bm25(kernel, k1, b), fold_rows, fold_seconds)

    def _open_folder(self) -> Committed | None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for leftover in ("new", "old"):
            shutil.rmtree(self._directory / leftover, ignore_errors=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        await_unlocked(self._folder, _ORPHAN_SECONDS)
        try:
            committed = open_folder(self._folder, self._stamp, self._bm25.kernel)
        except DamagedError as error:
            self._message = f"the keyword index was set aside and is built anew: {error}"
            _log.warning("%s", self._message)
            set_aside(self._folder, self._directory / SET_ASIDE)
            committed = None
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return committed

    # -- the applier ------------------------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """``apply_all`` for one."""
        self.apply_all((change,))

    def apply_all(self, changes: Sequence[Change]) -> None:
        """Take changes over; the next search sees them. Called by one thread, in the order of revisions.

        A text is indexed anew; ``features`` None removes the row; anything else moves only the watermark.
        """
        for at in range(0, len(changes), _AT_ONCE):
            part = changes[at : at + _AT_ONCE]
            entries = [entry for entry in map(entry_of, part) if entry is not None]
            with self._applying:
                self._heard = max(self._heard, part[-1].revision)
                self._state.take(entries, part[-1].revision, len(part))
                if self._journal is not None:
                    self._journal += entries
        self._folding.changed()

    def rest(self, seconds: float) -> None:
        """Write nothing by itself for so long: the child process would take the start's time. ``flush`` still does."""
        self._folding.rest(seconds)

    # -- searchers --------------------------------------------------------------------------------------------------

    def search(
        self,
        terms: QueryTerms,
        selection: SelectedRows,
        k: int,
        also: Int32 | None = None,
        deadline: Deadline = NO_DEADLINE,
        prior: Prior | None = None,
    ) -> LexicalHits:
        """The k best selected rows, and what the rows ``also`` (int32, >= 0, any order) get.

        Statistics (N, df, average length) are counted over every living row of the selection's scope. ``prior`` smooths
        the word match. Raises IndexUnavailableError when closed or damaged, DeadlineExceededError.
        """
        besides = _NOTHING if also is None else np.ascontiguousarray(also, np.int32)
        return self.ask(terms, selection, k, besides, deadline, prior)[0]

    def ask(
        self, terms: QueryTerms, selection: SelectedRows, k: int, also: Int32, deadline: Deadline, prior: Prior | None
    ) -> tuple[LexicalHits, Asked]:
        """As ``search``, and what the method ``also`` needs to answer for more rows later."""
        self._check()
        deadline.check()
        frozen, postings = self._freeze(terms, selection, also, selection.rids if len(selection) <= FEW else None)
        scored = searching.score(self._bm25, frozen, postings, terms, prior, selection, k, also)
        return searching.hits(terms, scored), Asked(frozen, postings, terms, prior, selection)

    def also(self, asked: Asked, rids: Int32) -> tuple[Float64, Float64]:
        """``also_scores`` and ``also_match`` of more rows (int32, >= 0, any order), by the same statistics; one that
        got another text since ``ask`` gets 0.0. When segments were exchanged meanwhile, all as it is now."""
        frozen, postings, terms, prior, selection = asked
        places = self._state.places(frozen.snapshot, rids)
        if places is None:
            self._check()
            frozen, postings = self._freeze(terms, selection, rids)
        else:
            frozen = frozen._replace(places=None, also=places)
        scored = searching.score(self._bm25, frozen, postings, terms, prior, selection, 0, rids)
        return scored.also, scored.also_match

    def explain(self, terms: QueryTerms, rids: Sequence[int], selection: SelectedRows) -> list[tuple[TermMatch, ...]]:
        """For each rid the terms it matches, in query order; their scores summed in that order are its BM25 score."""
        self._check()
        wanted = np.array(rids, np.int32)
        frozen, postings = self._freeze(terms, selection, wanted)
        return searching.explain(self._bm25, frozen, postings, terms, selection, wanted)

    def _freeze(
        self, terms: QueryTerms, selection: SelectedRows, also: Int32, few: Int32 | None = None
    ) -> tuple[Frozen, list[Postings | None]]:
        try:
            frozen = self._state.freeze(terms.terms, selection.scope_no, also, few)
            return frozen, searching.gather(frozen, terms.terms)
        except DamagedError as error:
            raise self._damaged(error) from error

    def holds(self, rid: int) -> bool:
        """Whether a search could find this row. Raises IndexUnavailableError when closed or damaged."""
        self._check()
        return bool(self._state.freeze((), 0, np.array([rid], np.int32)).also[0] >= 0)

    def _check(self) -> None:
        if self._closed or self._damage:
            raise IndexUnavailableError(f"the keyword index is {'closed' if self._closed else 'damaged'}")

    def _damaged(self, error: DamagedError) -> IndexUnavailableError:
        self._damage = str(error)
        _log.error("the keyword index is damaged and needs a rebuild: %s", error)
        return IndexUnavailableError("the keyword index is damaged")

    # -- life -------------------------------------------------------------------------------------------------------

    @property
    def watermark(self) -> int:
        """The newest revision that searches see."""
        return self._state.watermark

    @property
    def durable_watermark(self) -> int:
        """The newest revision that survives a crash; later changes are to be applied again after one."""
        return self._state.durable

    def flush(self, deadline: Deadline = NO_DEADLINE) -> None:
        """Make everything applied so far durable. Raises IndexUnavailableError or a storage error."""
        self._check()
        self._folding.flush(deadline)

    def rebuild(
        self,
        changes: Iterator[Change],
        total: int = 0,
        progress: Callable[[int, int], None] | None = None,
        *,
        revision: int = 0,
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        """Build the index anew from all rows, beside, and swap; the old one answers until then.

        ``changes``: one Change with text for each row, read from a snapshot of the store that begins after this call
        does (a generator that opens it at its first step is right); ``apply`` may go on meanwhile. ``progress(done,
        total)`` is called as it goes. ``revision``: the rows are at least this new, whatever they say themselves.
        Raises IndexUnavailableError or a storage error when it cannot be written, DeadlineExceededError and
        CancelledError; the old one stays then.
        """
        if self._closed:
            raise IndexUnavailableError("the keyword index is closed")
        with self._applying:
            self._journal, self._heard = [], 0
        fresh = self._directory / "new"
        try:
            # Not the watermark so far: the old index may be of a future that the store does not have.
            watermark = build(fresh, self._stamp, changes, revision, total, progress, deadline.passed)
            self._exchange(fresh, watermark, deadline)
        except (ChildError, DamagedError, OSError) as error:
            deadline.check()
            raise refusal(error) from error
        finally:
            self._journal = None

    def _exchange(self, fresh: Path, watermark: int, deadline: Deadline) -> None:
        old = self._directory / "old"
        with self._folding.paused(deadline):
            committed = open_folder(fresh, self._stamp, self._bm25.kernel)
            exchange(self._folder, fresh, old)
            with self._applying:
                self._state.replace(committed, max(watermark, self._heard), self._journal or ())
                self._journal = None
            self._message = self._damage = ""
            self._folding.renewed()
        self._folding.changed()
        shutil.rmtree(old, ignore_errors=True)

    def status(self) -> IndexStatus:
        """How the index is. ``message``: damage, what was set aside at open, or why the tail is not durable."""
        living, tail, dead, size = self._state.counts()
        if self._journal is not None:
            state = IndexState.REBUILDING
        else:
            state = IndexState.FAILED if self._closed or self._damage or self._folding.damaged else IndexState.READY
        return IndexStatus(
            kind=IndexKind.KEYWORD,
            state=state,
            watermark=self._state.watermark,
            durable_watermark=self._state.durable,
            entries=living,
            tail_entries=tail,
            dead_entries=dead,
            size_bytes=size,
            stamp=stamp(),
            message=self._damage or self._folding.message or self._message,
        )

    def close(self) -> None:
        """Make the tail durable (10 seconds at most; what is left is applied again at the next start) and end the
        child process. Twice is fine."""
        if self._closed:
            return
        patience = _CLOSE_SECONDS
        try:
            self._folding.flush(Deadline(Deadline().monotonic() + _CLOSE_SECONDS))
        except MemxdError as error:
            _log.warning("the keyword index closes with an unwritten tail: %s", error)
            patience = _LAST_SECONDS
        self._closed = True
        self._folding.stop(patience)
