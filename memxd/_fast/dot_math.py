"""The dot product of the dot kernel's plain twin, in the canonical order that ``dot_py`` documents.

Owns that one sum. Called by ``dot_py`` (scans) and ``dot_walk`` (walks).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memxd._fast.arrays import F32, I32

__all__ = ["F16", "dot_rows"]

F16 = NDArray[np.float16]

LANES = 16


def dot_rows(query: F32, matrix: F16, rows: I32, /) -> F32:
    """float32[m]: the dot product of ``query`` (float32[d]) with ``matrix`` (float16[n, d]) at each of ``rows``
    (int32[m]); NaN where a row is negative or >= n."""
    count, width = matrix.shape
    inside = (rows >= 0) & (rows < count)
    lanes = np.zeros((rows.shape[0], LANES), np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities in a damaged row make NaN: no match
        values = matrix[rows[inside]].astype(np.float32)
        part = np.zeros((values.shape[0], LANES), np.float32)
        for start in range(0, width, LANES):
            stop = min(start + LANES, width)
            part[:, : stop - start] += query[start:stop] * values[:, start:stop]
        lanes[inside] = part
        step = LANES // 2
        while step:
            lanes[:, :step] += lanes[:, step : 2 * step]
            step //= 2
    out = lanes[:, 0].copy()
    out[~inside] = np.nan
    return out
