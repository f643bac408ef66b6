"""The child process that builds a graph: ``python build.py <options as JSON>``, nothing of memxd imported.

Reads the first ``rows`` vectors of a flat float16 file, adds them to a USearch index (key = row), saves it beside,
syncs it, and prints ``{"size", "xor", "sum"}``. Between batches it looks whether the parent still holds the other end
of its standard input, and ends when it does not: it never outlives the daemon by more than a batch. Started by
``upkeep`` only.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

import numpy as np
from usearch.index import Index


def orphaned() -> bool:
    """True when the parent is gone (its end of our standard input is closed; it never writes)."""
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable)


def build(options: dict[str, Any]) -> dict[str, int] | None:
    """Build and save; None when the parent went away."""
    rows, dimension = options["rows"], options["dimension"]
    matrix = np.memmap(options["vectors"], np.float16, mode="r", shape=(rows, dimension))
    index = Index(
        ndim=dimension,
        metric="cos",
        dtype="f16",
        connectivity=options["connectivity"],
        expansion_add=options["expansion_add"],
        expansion_search=options["expansion_search"],
    )
    for begin in range(0, rows, options["batch"]):
        if orphaned():
            return None
        end = min(begin + options["batch"], rows)
        keys = np.arange(begin, end, dtype=np.uint64)
        index.add(keys, np.ascontiguousarray(matrix[begin:end]), copy=True, threads=options["threads"])
    index.save(options["out"])
    return seal(options["out"])


def seal(path: str) -> dict[str, int]:
    """Sync the file; its size and sums, as ``durable.block_sums`` makes them."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fchmod(handle, 0o600)
        os.fsync(handle)
    finally:
        os.close(handle)
    raw = np.fromfile(path, np.uint8)
    whole = len(raw) // 8 * 8
    words = raw[:whole].view(np.uint64)
    last = int.from_bytes(raw[whole:].tobytes(), "little")
    total = (int(np.add.reduce(words, dtype=np.uint64)) + last) % 2**64
    return {"size": len(raw), "xor": int(np.bitwise_xor.reduce(words)) ^ last, "sum": total}


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    os.nice(arguments["nice"])
    result = build(arguments)
    if result is None:
        sys.exit(1)
    print(json.dumps(result), flush=True)
