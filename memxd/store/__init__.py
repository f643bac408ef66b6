"""SQLite, the truth: records, vectors, links, history, request ids and the log of changes.

Owns the database file, its schema and migrations, the one writer thread and the pool of readers. Nothing is
acknowledged before its COMMIT. Knows no index, no embedder and no wire; validation is the engine's. Called by the
engine only, through the names below.
"""

from memxd.store.backup import Manifest
from memxd.store.exporting import BEGINNING, Place, Whole
from memxd.store.importing import Taken
from memxd.store.inserting import NewRow
from memxd.store.jobs import Queued
from memxd.store.next_vectors import NextModel
from memxd.store.store import Store
from memxd.store.transactions import ReadTxn, WriteTxn
from memxd.store.types import (
    CommitListener,
    CounterListener,
    Cursor,
    Edge,
    NewChunk,
    Remembered,
    Row,
    RowPage,
    ScopeTotals,
    Terms,
    Totals,
    Version,
)

__all__ = [
    "BEGINNING",
    "CommitListener",
    "CounterListener",
    "Cursor",
    "Edge",
    "Manifest",
    "NewChunk",
    "NewRow",
    "NextModel",
    "Place",
    "Queued",
    "ReadTxn",
    "Remembered",
    "Row",
    "RowPage",
    "ScopeTotals",
    "Store",
    "Taken",
    "Terms",
    "Totals",
    "Version",
    "Whole",
    "WriteTxn",
]
