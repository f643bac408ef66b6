"""Verify: whether the database is sound, and whether every memory stands in every index as the store has it.

Owns the comparison of each row with the columns, the words and the vectors, and the second look: an index follows the
store within a commit, so what seems wrong is looked at again on the writer's thread, where nothing moves, before it is
told. Mends nothing; Rebuild does. Called by the engine's face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from memxd.engine.indexes import Indexes
from memxd.engine.told import told
from memxd.errors import IndexUnavailableError
from memxd.model import NO_DEADLINE, Change, Deadline, IndexKind, Problem, Scope, VerifyStep
from memxd.store import Store, WriteTxn
from memxd.text import content_hash

#: No use in looking further once so much is wrong.
MOST = 200
_EVERY = 500
_NEAR = 5e-3  # between a float16 vector's cosine with itself and 1
_TRIES = 20

Tell = Callable[[VerifyStep], None]


class Verifying:
    """The verb ``verify``."""

    def __init__(self, store: Store, indexes: Indexes) -> None:
        self._store = store
        self._indexes = indexes

    def verify(self, deadline: Deadline = NO_DEADLINE) -> Iterator[VerifyStep]:
        """Look through everything; yields progress, the last step ``finished`` with all that was found (at most 200).

        Raises the store's errors. Searches and stores go on meanwhile.
        """
        return told("memxd-verify", self._look, deadline)

    def _look(self, tell: Tell, deadline: Deadline) -> VerifyStep:
        tell(VerifyStep(0, 0))
        with self._store.read(deadline) as read:
            problems = [Problem("database", text) for text in read.problems()]
            total = read.totals().memories
        whole = [kind for kind in IndexKind if self._indexes.is_whole(kind)]
        problems += [
            Problem(kind.name.lower(), "the index failed or is being built, and was not compared")
            for kind in IndexKind
            if kind not in whole
        ]
        done = 0
        for change in self._rows(deadline):
            deadline.check()
            if self._wrong(change, whole):
                problems += self._certain(change.rid, whole, deadline)
                if len(problems) >= MOST:
                    return VerifyStep(done, total, True, tuple(problems[:MOST]))
            done += 1
            if done % _EVERY == 0:
                tell(VerifyStep(done, max(total, done)))
        problems += self._counts(whole, deadline)
        return VerifyStep(done, done, True, tuple(problems[:MOST]))

    def _rows(self, deadline: Deadline) -> Iterator[Change]:
        """Every row, in short snapshots: a long one would keep the log from being emptied while others write."""
        last = 0
        while True:
            with self._store.read(deadline) as read:
                page = read.rows_after(last, read.revision())
            if not page:
                return
            yield from page
            last = page[-1].rid

    def _certain(self, rid: int, whole: list[IndexKind], deadline: Deadline) -> list[Problem]:
        """What is wrong with a row twice in a row, while nothing moves."""

        def look(txn: WriteTxn) -> tuple[list[tuple[str, str]], Scope, str]:
            now = txn.whole_row(rid)
            row = txn.row(rid)
            if row is None:
                return [], Scope(), ""  # erased meanwhile
            return self._wrong(now, whole), row.memory.scope, row.memory.id

        once, _, _ = self._store.write(look, deadline)
        again, scope, id = self._store.write(look, deadline)
        return [Problem(part, text, scope, id) for part, text in again if (part, text) in once]

    def _wrong(self, change: Change, whole: list[IndexKind]) -> list[tuple[str, str]]:
        """What does not fit, as part and words."""
        features = change.features
        if features is None or change.text is None:
            return []
        found: list[tuple[str, str]] = []
        if content_hash(change.text) != features.content_hash:
            found.append(("database", "the hash of its content is not that of its content"))
        if IndexKind.COLUMNS in whole and not self._in_columns(change):
            found.append(("columns", "is missing or differs"))
        if IndexKind.KEYWORD in whole and not self._indexes.lexical.holds(change.rid):
            found.append(("keyword", "is missing"))
        if IndexKind.VECTOR in whole and not self._in_vectors(change):
            found.append(("vector", "a vector is missing or differs"))
        return found

    def _in_columns(self, change: Change) -> bool:
        features, arrays = change.features, self._indexes.columns.arrays()
        assert features is not None
        rid = change.rid
        return rid < arrays.capacity and (
            int(arrays.state[rid]) == features.state
            and int(arrays.scope[rid]) == features.scope_no
            and int(arrays.type[rid]) == features.type
            and int(arrays.created[rid]) == features.created_at
            and int(arrays.content_hash[rid]) == features.content_hash
            and float(arrays.importance_exact[rid]) == features.importance
        )

    def _in_vectors(self, change: Change) -> bool:
        """Whether each of its vectors is the best match of itself among those the index has for it."""
        rid = np.array([change.rid], np.int32)
        for chunk in change.chunks or ():
            vector = np.frombuffer(chunk.vector, "<f2").astype(np.float32)
            try:
                cosines, _ = self._indexes.vector.cosines(vector, rid)
            except (ValueError, IndexUnavailableError):
                return False  # of another dimension, or the index has just failed
            # A vector of another length than 1 is none that was ever made; NaN is near to nothing.
            if not max(abs(float(cosines[0]) - 1.0), abs(float(vector @ vector) - 1.0)) < _NEAR:
                return False
        return True

    def _counts(self, whole: list[IndexKind], deadline: Deadline) -> list[Problem]:
        """Whether an index has more than the store: entries of erased memories, say."""

        def count(txn: WriteTxn) -> dict[IndexKind, tuple[int, int]] | None:
            status = {s.kind: s for s in self._indexes.status()}
            if any(status[kind].watermark != txn.revision() for kind in whole):
                return None  # something of this very group is not told yet
            memories, chunks = txn.totals().memories, txn.count_chunks()
            stored = {IndexKind.VECTOR: chunks, IndexKind.KEYWORD: memories, IndexKind.COLUMNS: memories}
            return {kind: (status[kind].entries, stored[kind]) for kind in whole}

        for _ in range(_TRIES):
            counted = self._store.write(count, deadline)
            if counted is not None:
                return [
                    Problem(kind.name.lower(), f"the index has {has:,} entries, the store {stored:,}")
                    for kind, (has, stored) in counted.items()
                    if has != stored
                ]
        return [Problem("database", "so much was written that entries could not be counted; verify again")]
