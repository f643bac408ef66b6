"""Where a posting list lies among the words of its file.

Owns ``cut_list``, which ``bm25_py`` and whoever reads such a file without a kernel call; the compiled kernel does the
same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
UInt32 = npt.NDArray[np.uint32]

#: What is said of a list that does not lie within its words.
OUTSIDE = "a term points outside the postings"


def cut_list(words: Int32, count: int, offset: int, size: int) -> tuple[Int32, UInt32, Int32]:
    """``docs``, ``packed`` and ``more`` (see ``bm25_py.Postings``) of the list of ``count`` documents that begins
    ``offset`` bytes into ``words`` (int32[w]) and has ``size`` bytes. Raises ValueError when there is none."""
    at = offset // 4
    stop = at + size // 4
    if offset % 4 or size % 8 or count < 1 or size < 8 * count or at < 2 or stop > words.shape[0]:
        raise ValueError(OUTSIDE)
    return words[at : at + count], words[at + count : at + 2 * count].view(np.uint32), words[at + 2 * count : stop]
