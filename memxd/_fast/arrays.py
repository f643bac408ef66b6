"""Array types of the kernels, and the checks that the plain Python twins make at their entry.

The compiled kernels get the same refusals from their typed views. Twins of every kernel module use this; nobody
else needs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


def check_array(name: str, array: NDArray[Any], dtype: type[np.generic], length: int | None = None) -> int:
    """Refuse what the compiled twin's typed views refuse too; answers the length."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a numpy array")
    if array.dtype != dtype or array.ndim != 1 or not array.flags.c_contiguous:
        raise ValueError(f"{name} must be a contiguous one-dimensional array of {np.dtype(dtype).name}")
    if length is not None and len(array) != length:
        raise ValueError(f"{name} has {len(array)} values instead of {length}")
    return len(array)


def check_at_least(name: str, value: int, least: int) -> None:
    """Refuse a number below the least one allowed."""
    if value < least:
        raise ValueError(f"{name} must be at least {least}")
