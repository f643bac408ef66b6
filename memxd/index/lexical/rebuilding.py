"""Builds a whole keyword index beside the living one, in a child process that also analyses the texts.

Owns the stream of texts to that child, and what a change means to the index. Called by ``LexicalIndex``, which swaps
the folders afterwards.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from memxd.index.lexical.analyzer import document_terms
from memxd.index.lexical.child import Child
from memxd.index.lexical.state import Entry
from memxd.model import Change

#: A batch is small, because while it is made into JSON no other thread of the daemon runs.
_ROWS = 500
_CHARACTERS = 100_000


def build(
    folder: Path,
    stamp: str,
    changes: Iterator[Change],
    watermark: int,
    total: int,
    progress: Callable[[int, int], None] | None,
    ended: Callable[[], bool],
) -> int:
    """Write all rows into ``folder`` (made anew) as one segment; the revision it then reflects: ``watermark`` or the
    newest of the changes. Given up when ``ended`` says True. Raises ChildError, OSError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    child = Child(folder, stamp)
    done = 0
    rows: list[tuple[int, int, str]] = []
    size, at_work = 0, False  # the child analyses one batch while the next is read
    try:
        for change in changes:
            watermark = max(watermark, change.revision)
            if change.features is not None and change.text is not None:
                rows.append((change.rid, change.features.scope_no, change.text))
                size += len(change.text)
            done += 1
            if len(rows) >= _ROWS or size >= _CHARACTERS:
                if at_work:
                    child.answer(ended)
                child.tell({"op": "texts"}, [json.dumps(rows).encode()], ended)
                rows, size, at_work = [], 0, True
                if progress is not None:
                    progress(done, total)
        if at_work:
            child.answer(ended)
        child.ask({"op": "texts"}, [json.dumps(rows).encode()], ended)
        child.ask({"op": "finish", "watermark": watermark}, ended=ended)
    finally:
        child.close()
    if progress is not None:
        progress(done, total)
    return watermark


def entry_of(change: Change) -> Entry | None:
    """What the state keeps of a change; None when nothing of ours changed."""
    if change.features is None:
        return Entry(change.rid, None, 0, -1, change.revision)
    if change.text is None:
        return None
    terms, length = change.terms or document_terms(change.text)
    return Entry(change.rid, terms, length, change.features.scope_no, change.revision)
