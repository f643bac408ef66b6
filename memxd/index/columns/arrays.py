"""The by-rid arrays of the columns. (Signatures first; growth follows.)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: Stands for "no such instant" in the instant arrays: event (absent), valid_until (never ends), last_retrieved (never).
NO_EVENT = np.iinfo(np.int64).min
FOREVER = np.iinfo(np.int64).max
NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class ColumnArrays:
    """Features by rid; every array has length ``capacity``. Read only for all but ``Columns``. Values of one row may
    change under a reader; the arrays themselves never shrink or move within one ``ColumnArrays``.

    Instants are microseconds since 1970.
    """

    type: npt.NDArray[np.uint8]  #: MemoryType
    state: npt.NDArray[np.uint8]  #: State; 0 = no such row
    scope: npt.NDArray[np.int32]  #: scope number
    importance: npt.NDArray[np.float32]
    created: npt.NDArray[np.int64]
    event: npt.NDArray[np.int64]  #: NO_EVENT when absent
    valid_until: npt.NDArray[np.int64]  #: FOREVER when absent
    last_retrieved: npt.NDArray[np.int64]  #: NEVER when absent
    reference: npt.NDArray[np.int64]  #: last_retrieved, else event, else created (profile balanced)
    retrieved_or_created: npt.NDArray[np.int64]  #: last_retrieved, else created (profile memx)
    access: npt.NDArray[np.uint32]
    retrieval: npt.NDArray[np.uint32]
    content_hash: npt.NDArray[np.uint64]
    fold_hash: npt.NDArray[np.uint64]
    tag_hash: npt.NDArray[np.uint64]  #: 0 = no tags
    private: npt.NDArray[np.uint8]  #: 1 = private

    @property
    def capacity(self) -> int:
        """Length of every array."""
        return self.state.shape[0]
