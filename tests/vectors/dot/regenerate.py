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
    best, where = dot_py.best_by_rid(query, matrix, head, after, np.arange(len(after), dtype=np.int32), rids)
    top = dot_py.search_rids(query, matrix, head, after, rids, 4)
    return {
        "dimension": dimension,
        "query": bits(query),
        "matrix": bits(matrix),
        "head": head.tolist(),
        "after": after.tolist(),
        "dot_rows": bits(dot_py.dot_rows(query, matrix, rids)),
        "best": [None if w < 0 else b for b, w in zip(bits(best.astype(np.float32)), where, strict=True)],
        "best_rows": where.tolist(),
        "top_rids": top[0].tolist(),
        "top_cosines": bits(top[1]),
        "top_rows": top[2].tolist(),
    }


def walk(share: float, seed: int) -> dict[str, object]:
    """A graph of forty nodes in three levels, five more rows, a selection, and what a walk finds."""
    rng = np.random.default_rng(seed)
    nodes, rows = 40, 45
    matrix, query = rng.standard_normal((rows, 16)).astype(np.float16), rng.standard_normal(16).astype(np.float32)
    by_row = np.arange(rows, dtype=np.int32)
    by_row[7] = -1
    links = rng.integers(-3, nodes, (nodes, 5)).astype(np.int32)
    at = np.full(nodes, -1, np.int32)
    at[::4] = np.arange(0, 20, 2)
    upper = (4 * rng.integers(0, nodes // 4, (20, 3))).astype(np.int32)
    mask = (rng.random(rows) < share).astype(np.uint8)
    rids = np.flatnonzero(mask).astype(np.int32)
    effort = dot_py.Effort(near=6, some=8, wide=20, needed=4, budget=1000, share=share)
    head, after = np.arange(rows, dtype=np.int32), np.full(rows, -1, np.int32)
    graph = dot_py.GraphArrays(links, at, upper, 8, 2)
    found = dot_py.search_graph(query, matrix, head, after, by_row, graph, mask, rids, rows, 5, effort)
    return {
        "query": bits(query),
        "matrix": bits(matrix),
        "by_row": by_row.tolist(),
        "links": links.tolist(),
        "at": at.tolist(),
        "upper": upper.tolist(),
        "entry": 8,
        "levels": 2,
        "mask": mask.tolist(),
        "effort": list(effort),
        "top_rids": found[0].tolist(),
        "top_cosines": bits(found[1]),
        "compared": found[3],
    }


if __name__ == "__main__":
    cases = [case(d, 12, seed) for seed, d in enumerate((1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 40, 64))]
    walks = [walk(share, seed) for seed, share in enumerate((1.0, 0.7, 0.4, 0.15))]
    text = json.dumps({"cases": cases, "walks": walks}, separators=(",", ":"))
    Path(__file__).with_name("cases.json").write_text(text + "\n")
