"""Named places where a crash would hurt most, so that a test can make one happen there.

Owns the names and their meaning, and ``reach``, which the code calls at those places: it does nothing, for the price of
one look, unless a process was armed. Only the torture harness arms one, from an entry script of its own
(tests/torture/torture_armed.py): no setting, environment variable or request does. Called by store, index and engine.
"""

from __future__ import annotations

from collections.abc import Callable

#: Every place, and what has happened when it is reached. A test sees to it that each is reached, and that no other is.
POINTS = {
    "embedded": "texts have their vectors, nothing is written yet",
    "commit.before": "all of a group is written within its transaction, COMMIT is next",
    "commit.after": "COMMIT is done; no index and no caller knows of it",
    "commit.index": "one of the three indexes was told of a commit (reached three times for each)",
    "commit.told": "every index was told of a commit, no caller is answered yet",
    "checkpoint.before": "the log is about to be folded into the database and cut",
    "checkpoint.after": "the log was folded into the database and cut",
    "migration.step": "a step of a migration has run within its transaction; COMMIT is next",
    "migration.done": "a migration was committed, the copy made before it does not have its name yet",
    "file.written": "a file of an index was written and synced beside the one it replaces",
    "file.replaced": "a file of an index took the place of the former one by a rename",
    "vector.data": "vectors and rows are synced, the manifest that speaks of them is not written",
    "vector.swap": "a next generation of the vector index is used in memory, its manifest is not written",
    "vector.swapped": "the next generation's manifest is written, the former one's files are still there",
    "keyword.asked": "the writing process was told to write a segment and is at it",
    "keyword.written": "the writing process has committed a segment, the daemon has not taken it over",
    "keyword.moved": "a rebuild has moved the former keyword index away, the new one is not in its place",
    "keyword.replaced": "the new keyword index is in its place on disk, not yet in memory",
    "backup.copying": "some of the database's pages are copied",
    "backup.copied": "the copy is whole and synced, its manifest is not written",
    "restore.checked": "the backup's database lies checked beside the one that is there",
    "restore.moving": "a piece of the old store was moved aside, its database is still in place",
    "restore.replaced": "the restored database is in its place, not yet synced",
    "compact.rebuilt": "an index was written anew, others wait",
}

_act: Callable[[str], None] | None = None


def reach(name: str) -> None:
    """A place of ``POINTS`` is reached."""
    if _act is not None:
        _act(name)


def arm(act: Callable[[str], None]) -> None:
    """Have ``act(name)`` called at every place from now on, on the thread that reaches it. For tests alone."""
    global _act
    _act = act
