"""Where the vector index lives: one folder, and a second one while the model changes.

Owns the names of the two folders, which of them is the store's at a start (the one whose stamp says so; after a change
of model that is the second, which then takes the first one's name), and the removal of the other. Owns no index's
content. Called by indexes.py at opening and by reembedding.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from memxd._fast.protocols import DotKernel
from memxd.index.durable import clear_way
from memxd.index.vector import VectorIndex, made_for

_FOLDERS = ("vector", "vector.next")


class VectorPlaces:
    """The folders below ``directory``. One per set of indexes."""

    def __init__(self, directory: Path, database_id: str, dot: DotKernel) -> None:
        self._first, self._second = (directory / name for name in _FOLDERS)
        self._database_id = database_id
        self._dot = dot
        self._used = self._first

    def open(self, model_id: str, dimension: int) -> VectorIndex:
        """The index of this model; the folder that is not its is removed."""
        clear_way(self._first)
        if made_for(self._second, model_id, dimension, self._database_id):
            shutil.rmtree(self._first, ignore_errors=True)
            self._second.rename(self._first)
        shutil.rmtree(self._second, ignore_errors=True)
        return self._open(self._first, model_id, dimension)

    def begin(self, model_id: str, dimension: int) -> VectorIndex:
        """An empty index of another model in the folder that is not in use."""
        free = self._free
        shutil.rmtree(free, ignore_errors=True)
        return self._open(free, model_id, dimension)

    def exchange(self) -> None:
        """What ``begin`` has made is in use from now on."""
        self._used = self._free

    def remove_other(self) -> None:
        """Remove the folder that is not in use; its index is closed."""
        shutil.rmtree(self._free, ignore_errors=True)

    @property
    def _free(self) -> Path:
        return self._second if self._used == self._first else self._first

    def _open(self, folder: Path, model_id: str, dimension: int) -> VectorIndex:
        return VectorIndex.open(
            folder, model_id=model_id, dimension=dimension, dot=self._dot, database_id=self._database_id
        )
