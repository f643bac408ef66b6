"""The child process that builds or extends a graph: ``python build.py <options as JSON>``, nothing of memxd imported.

Reads vectors of a flat float16 file and adds them to a USearch index (key = row), from nothing or from the file of a
former run, saves it beside, and writes its links anew as flat arrays by row, which is what the daemon maps and walks.
Syncs the links and prints what the manifest says of both. Between batches it looks whether the parent still holds the
other end of its standard input, and ends when it does not: it never outlives the daemon by more than a batch. Started
by ``upkeep`` only. A file that USearch wrote otherwise than expected is refused, not guessed at.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from usearch.index import Index

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
_PART = 65_536  # nodes converted at once
_PIECE = 1 << 22  # bytes summed at once
_ORDERED = 16_384  # rows put in order at once
_FOLLOWERS = 40  # rows to one that others are put in order by


def step_back(nice: int) -> None:
    """Take only what nobody else wants: where the system has such a class, a core that does this counts as idle to
    whoever wakes up. A sandbox may refuse it; the parent's log says so, and the work goes on."""
    try:
        os.nice(nice)
    except OSError as error:
        print(f"the building process does not step back behind others: {error}", file=sys.stderr)
        return
    if sys.platform == "linux":
        try:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        except OSError:
            return  # a container that forbids it; being nice must do


def orphaned() -> bool:
    """True when the parent is gone (its end of our standard input is closed; it never writes)."""
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable)


def build(options: dict[str, Any]) -> dict[str, Any] | None:
    """Build and save; None when the parent went away."""
    rows, dimension = options["rows"], options["dimension"]
    matrix = np.memmap(options["vectors"], np.float16, mode="r", shape=(rows, dimension))
    # The vectors have unit length: their inner product orders as the cosine does, in two thirds of the time.
    index = Index(
        ndim=dimension,
        metric="ip",
        dtype="f16",
        connectivity=options["connectivity"],
        expansion_add=options["expansion_add"],
    )
    first, base = 0, options["base"]
    if base is not None and sums(base["path"]) == [base["size"], base["xor"], base["sum"]]:
        index.load(base["path"])
        first = base["rows"]
    for keys in batches(matrix, first, options["batch"]):
        if orphaned():
            return None
        index.add(keys.astype(np.uint64), np.ascontiguousarray(matrix[keys]), copy=True, threads=options["threads"])
    index.save(options["out"])
    told = write_links(options["out"], options["links"], rows)
    told["from_row"] = first
    # USearch's own file is not synced: it is large, and should a power cut damage it, its sums tell, and the next graph
    # is built from nothing.
    seal(options["links"])
    os.chmod(options["out"], 0o600)
    told["links_sums"], told["out_sums"] = sums(options["links"]), sums(options["out"])
    return told


def batches(matrix: npt.NDArray[np.float16], first: int, size: int) -> Iterator[Int64]:
    """Rows from ``first`` on, in lists of at most ``size``, neighbours after each other: adding one finds in the caches
    what the one before has read. The graph is as good, in two thirds of the time."""
    for begin in range(first, len(matrix), _ORDERED):
        end = min(begin + _ORDERED, len(matrix))
        # What is added first to an empty graph holds the rest together: as it came.
        order = begin + (by_neighbourhood(matrix[begin:end]) if begin else np.arange(end - begin))
        yield from (order[at : at + size] for at in range(0, len(order), size))


def by_neighbourhood(vectors: npt.NDArray[np.float16]) -> Int64:
    """An order of unit vectors float16[n, d], n > 0, in which near ones are near: by the nearest of some of them, and
    these in a chain, each the nearest to the one before that is left. Always the same for the same vectors."""
    heads = vectors[::_FOLLOWERS].astype(np.float32)
    parts = (vectors[at : at + 2048].astype(np.float32) @ heads.T for at in range(0, len(vectors), 2048))
    nearest = np.concatenate([np.argmax(part, axis=1) for part in parts])
    between, left = heads @ heads.T, np.ones(len(heads), np.bool_)
    place, at = np.zeros(len(heads), np.int64), 0
    for number in range(len(heads)):
        place[at], left[at] = number, False
        at = int(np.argmax(np.where(left, between[at], -np.inf)))
    return np.argsort(place[nearest], kind="stable")


def write_links(source: str, target: str, rows: int) -> dict[str, Any]:
    """The links of a USearch file (format 2) as the daemon walks them: int32[rows, fan] on level 0, int32[rows] the
    place of a row's first block above, int32[blocks, upper_fan]; negative = none. Raises ValueError for a surprise."""
    raw = np.memmap(source, np.uint8, mode="r")
    count, width = struct.unpack("<II", raw[:8].tobytes())
    at = 8 + count * width
    if raw[at : at + 7].tobytes() != b"usearch" or raw[at + 7] != 2:
        raise ValueError("USearch wrote a file of a format that is not known")
    at += 64
    nodes, upper_fan, fan, top, entry = struct.unpack("<5Q", raw[at : at + 40].tobytes())
    levels = raw[at + 40 : at + 40 + 2 * nodes].view("<i2").astype(np.int64)
    sizes = 14 + 4 * fan + levels * (4 + 4 * upper_fan)  # u64 key, i16 level, then for each level u32 count and slots
    places = at + 40 + 2 * nodes + np.cumsum(sizes) - sizes
    if int(places[-1] + sizes[-1]) != len(raw) or nodes != count:
        raise ValueError("USearch wrote a file of a layout that is not known")
    keys = _numbers(raw, places, 8).view("<u8")[:, 0].astype(np.int64)
    if int(keys.max()) >= rows:
        raise ValueError("the graph knows rows that are not there")
    links, first, upper = _by_row(raw, places, levels, keys, (rows, fan, upper_fan))
    with open(target, "wb") as file:
        for part in (links, first, upper):
            file.write(part.astype("<i4").tobytes())
    return {
        "entries": nodes,
        "fan": fan,
        "blocks": len(upper),
        "upper_fan": upper_fan,
        "entry": int(keys[entry]),
        "levels": top,
    }


def _by_row(
    raw: npt.NDArray[np.uint8], places: Int64, levels: Int64, keys: Int64, shape: tuple[int, int, int]
) -> tuple[Int32, Int32, Int32]:
    rows, fan, upper_fan = shape
    links = np.full((rows, fan), -1, np.int32)
    for begin in range(0, len(places), _PART):
        part = slice(begin, begin + _PART)
        links[keys[part]] = _slots(raw, places[part] + 10, fan, keys)
    high = np.flatnonzero(levels > 0)
    starts = np.cumsum(levels[high]) - levels[high]
    first = np.full(rows, -1, np.int32)
    first[keys[high]] = starts
    upper = np.full((int(levels.sum()), upper_fan), -1, np.int32)
    for level in range(1, int(levels.max(initial=0)) + 1):
        there = levels[high] >= level
        lists = places[high[there]] + 14 + 4 * fan + (level - 1) * (4 + 4 * upper_fan)
        upper[starts[there] + level - 1] = _slots(raw, lists, upper_fan, keys)
    return links, first, upper


def _slots(raw: npt.NDArray[np.uint8], lists: Int64, width: int, keys: Int64) -> npt.NDArray[np.int64]:
    """Lists of slots as rows, -1 behind each one's end."""
    numbers = _numbers(raw, lists, 4 + 4 * width).view("<u4").astype(np.int64)
    used = np.arange(width) < numbers[:, :1]
    return np.where(used, keys[np.where(used, numbers[:, 1:], 0)], -1)


def _numbers(raw: npt.NDArray[np.uint8], places: Int64, width: int) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(raw[places[:, None] + np.arange(width)])


def seal(path: str) -> None:
    """Sync a file and keep it from others."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fchmod(handle, 0o600)
        os.fsync(handle)
    finally:
        os.close(handle)


def sums(path: str) -> list[int]:
    """[size, xor, sum] of a file, as ``durable.block_sums`` makes them; of a missing one, of nothing."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return [0, 0, 0]
    raw = np.memmap(path, np.uint8, mode="r")
    whole = len(raw) // 8 * 8
    last = int.from_bytes(raw[whole:].tobytes(), "little")
    xor, total = last, last
    for begin in range(0, whole, _PIECE):
        words = raw[begin : min(begin + _PIECE, whole)].view(np.uint64)
        xor ^= int(np.bitwise_xor.reduce(words))
        total += int(np.add.reduce(words, dtype=np.uint64))
    return [len(raw), xor, total % 2**64]


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    step_back(arguments["nice"])
    result = build(arguments)
    if result is None:
        sys.exit(1)
    print(json.dumps(result), flush=True)
