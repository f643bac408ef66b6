"""Backup: a consistent copy of the store in a folder, told step by step.

Owns the verb; the copying, the folder's rules and the manifest are the store's. Called by the engine's face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from memxd.engine.told import told
from memxd.engine.validate import fail
from memxd.model import NO_DEADLINE, BackupStep, Deadline
from memxd.store import Store


class Backups:
    """The verb ``backup``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def backup(self, directory: str, deadline: Deadline = NO_DEADLINE) -> Iterator[BackupStep]:
        """Copy everything into an empty folder; yields progress, the last step ``finished``.

        Raises InvalidArgumentError for a folder that is not absolute, not empty or not safe, and the store's errors;
        a caller that goes away takes the copy along.
        """
        if not directory or "\0" in directory:
            raise fail("directory", "must be the absolute path of an empty folder or of one to be made")

        def work(tell: Callable[[BackupStep], None], until: Deadline) -> BackupStep:
            self._store.flush_counters(until)
            made = self._store.back_up(Path(directory), lambda done, total: tell(BackupStep(done, total)), until)
            return BackupStep(made.bytes, made.bytes, True, made.revision, made.memories, made.links, made.sha256)

        return told("memxd-backup", work, deadline)
