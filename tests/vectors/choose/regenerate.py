"""Writes cases.json anew from the plain twin: run it when a rule changes on purpose, and say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from memxd._fast import choose_py
from memxd.index.columns.arrays import DTYPES

COLUMNS = ("state", "type", "valid_until", "created", "event", "importance", "tag_set")
NO_EVENT, FOREVER = -(2**63), 2**63 - 1


def columns(rows: int, seed: int) -> dict[str, list[Any]]:
    """By-rid arrays as lists, small values so that limits are hit."""
    rng = np.random.default_rng(seed)
    event, until = rng.integers(0, 30, rows), rng.integers(0, 30, rows)
    return {
        "state": rng.integers(0, 4, rows).tolist(),
        "type": rng.integers(1, 6, rows).tolist(),
        "valid_until": [FOREVER if rng.random() < 0.6 else int(value) for value in until],
        "created": rng.integers(0, 30, rows).tolist(),
        "event": [NO_EVENT if rng.random() < 0.5 else int(value) for value in event],
        "importance": (rng.integers(0, 11, rows) / 8).tolist(),
        "tag_set": rng.integers(0, 5, rows).tolist(),
    }


def case(rows: int, seed: int, gaps: bool) -> dict[str, Any]:
    """Arrays, rids, and what several wishes answer about them."""
    rng = np.random.default_rng(seed + 100)
    by_rid = columns(rows, seed)
    arrays = [np.array(by_rid[name], np.float64 if name == "importance" else DTYPES[name]) for name in COLUMNS]
    rids = np.flatnonzero(rng.random(rows) < 0.7).astype(np.int32) if gaps else np.arange(rows, dtype=np.int32)
    table = [0] * 256
    for value in (1, 3):
        table[value] = 1
    wishes: list[dict[str, Any]] = []
    for rule in range(4):
        for number in range(4):
            wish = {
                "rule": rule,
                "now": 12,
                "states": [1, 3] if rule == 0 else None,
                "types": [1, 3] if number == 1 else None,
                "tags": [0, 1, 0, 1, 1] if number in (2, 3) else None,
                "created": [5, 20] if number in (1, 3) else None,
                "event": [3, 25] if number == 2 else None,
                "importance_min": 0.5 if number == 3 else None,
            }
            tables = [np.array(table, np.uint8) if wish[name] else None for name in ("states", "types")]
            tags = None if wish["tags"] is None else np.array(wish["tags"], np.uint8)
            chosen, begin, end = choose_py.choose(
                rids, *arrays, rule, 12, *tables, tags, wish["created"], wish["event"], wish["importance_min"]
            )
            wishes.append(wish | {"chosen": chosen.tolist(), "begin": begin, "end": end})
    grouped, starts = choose_py.group(arrays[-1], arrays[0])
    return {"columns": by_rid, "rids": rids.tolist(), "wishes": wishes, "group": [grouped.tolist(), starts.tolist()]}


if __name__ == "__main__":
    cases = [case(rows, seed, bool(seed % 2)) for seed, rows in enumerate((1, 2, 7, 40, 41))]
    Path(__file__).with_name("cases.json").write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")
