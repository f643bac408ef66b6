"""A posting list's frequencies and lengths in one word each, as the kernel streams them.

Owns the packing: frequency << 16 | length, each capped at ``LARGE``, and beside it ``more``, the frequencies that do
not fit with their positions. Lengths need no such list, the exact ones stand with the documents. Pure functions; used
by whoever writes or reads posting lists (``codec``, ``tail``, ``merge``)."""

from __future__ import annotations

import numpy as np

from memxd._fast.bm25_py import LARGE
from memxd.index.lexical.hits import Int32, UInt32

_NOTHING = np.empty(0, np.int32)


def pack(tfs: Int32, lengths: Int32) -> tuple[UInt32, Int32]:
    """(packed uint32[n], more int32[2j] = position, frequency) of ``tfs`` int32[n] >= 1 and ``lengths`` int32[n] >= 0
    of their documents."""
    high, low = np.minimum(tfs, LARGE).astype(np.uint32), np.minimum(lengths, LARGE).astype(np.uint32)
    packed: UInt32 = np.asarray((high << 16) | low, np.uint32)
    if int(tfs.max(initial=0)) < LARGE:
        return packed, _NOTHING
    at = np.flatnonzero(tfs >= LARGE).astype(np.int32)
    return packed, np.column_stack((at, tfs[at])).astype(np.int32).ravel()


def frequencies(packed: UInt32, more: Int32) -> Int32:
    """The frequencies int32[n] of a packed list. Raises IndexError when ``more`` points outside it."""
    tfs = (packed >> 16).astype(np.int32)
    tfs[more[::2]] = more[1::2]
    return tfs
