"""The two faces of the store: reading a snapshot, and writing.

Owns nothing but the putting together; each concept is in a module of its own. Called by ``readers.py`` and
``writer.py``, which hand these objects to the engine's functions.
"""

from __future__ import annotations

from memxd.store.changes import ChangeWrites
from memxd.store.erasing import ErasingWrites
from memxd.store.exporting import ExportReads
from memxd.store.importing import ImportWrites
from memxd.store.inserting import InsertWrites
from memxd.store.links import LinkReads
from memxd.store.listing import ListReads
from memxd.store.next_vectors import NextReads, NextWrites
from memxd.store.records import RecordReads
from memxd.store.requests import RequestReads, RequestWrites
from memxd.store.verifying import VerifyReads


class ReadTxn(RecordReads, ListReads, LinkReads, ExportReads, VerifyReads, NextReads, RequestReads):
    """One consistent snapshot of the store. Use it within its ``with`` and on one thread; keep it short.

    Memories handed out include the counts not yet flushed.
    """


class WriteTxn(ImportWrites, InsertWrites, ErasingWrites, NextWrites, RequestWrites, ChangeWrites, ReadTxn):
    """A transaction on the writer thread; sees its own changes. Everything of ReadTxn works too.

    Each change of a memory or link takes a revision of its own and is told to the indexes after COMMIT.
    """
