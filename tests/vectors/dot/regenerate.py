"""Writes cases.json anew from the plain twin: run it when the canonical order changes on purpose, and say so.

Numbers are bit patterns (float32 as u32, float16 as u16), so that no reader's decimal parsing matters.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from memxd._fast import dot_py


def bits(values: np.ndarray) -> list[int]:
    """The values as unsigned integers of the same width."""
    return [int(v) for v in values.view(f"u{values.itemsize}").ravel()]


def case(dimension: int, rows: int, seed: int) -> dict[str, object]:
    """One matrix with chains of up to three rows per rid, and what every function answers about it."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((rows, dimension)).astype(np.float16)
    matrix[rows // 2] = matrix[0]  # equal cosines: ties go to the smaller rid and the earlier row
    query = rng.standard_normal(dimension).astype(np.float32)
    head = np.full(rows, -1, np.int32)
    after = np.full(rows, -1, np.int32)
    row = 0
    for rid in range(1, rows, 2):
        length = min(1 + rid % 3, rows - row)
        for step in range(length):
            if step:
                after[row - 1] = row
            else:
                head[rid] = row
            row += 1
    rids = np.arange(rows, dtype=np.int32)
    best, where = dot_py.best_by_rid(query, matrix, head, after, rids)
    top = dot_py.search_rids(query, matrix, head, after, rids, 4)
    return {
        "dimension": dimension,
        "query": bits(query),
        "matrix": bits(matrix),
        "head": head.tolist(),
        "after": after.tolist(),
        "dot_rows": bits(dot_py.dot_rows(query, matrix, rids)),
        "best": [None if w < 0 else b for b, w in zip(bits(best), where, strict=True)],
        "best_rows": where.tolist(),
        "top_rids": top[0].tolist(),
        "top_cosines": bits(top[1]),
        "top_rows": top[2].tolist(),
    }


if __name__ == "__main__":
    cases = [case(d, 12, seed) for seed, d in enumerate((1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 40, 64))]
    Path(__file__).with_name("cases.json").write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")
