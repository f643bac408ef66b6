"""The torture from the command line: ``make torture ARGS="--kills 200 --seed 7"``.

Prints each kill and at the end a table; exit code 1 when anything was lost, came back or does not match. ``--faults``
runs the table of file system faults instead. Owns arguments and tables only.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from torture_rounds import Row, Torture, all_points


def rows(torture: Torture) -> list[dict[str, Any]]:
    """The table as data, the sum last."""
    total = Row()
    found = []
    for point, row in torture.table.items():
        found.append(_facts(point, row))
        total.kills += row.kills
        total.verdict.add(row.verdict)
        total.restarts += row.restarts
    for client in torture.clients:
        total.verdict.mismatches += client.problems
    return [*found, _facts("all", total)]


def _facts(point: str, row: Row) -> dict[str, Any]:
    return {
        "point": point,
        "kills": row.kills,
        "lost": len(row.verdict.lost),
        "resurrected": len(row.verdict.resurrected),
        "mismatches": len(row.verdict.mismatches),
        "restart_p50": round(statistics.median(row.restarts), 2) if row.restarts else None,
        "restart_max": round(max(row.restarts), 2) if row.restarts else None,
    }


def show(table: list[dict[str, Any]]) -> str:
    """The table for people, as Markdown."""
    names = list(table[0])
    lines = [names, ["-" * len(name) for name in names]]
    lines += [[str(row[name]) for name in names] for row in table]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines)


def kills(wanted: argparse.Namespace) -> int:
    """The run of kills."""
    began = time.monotonic()
    told = partial(print, file=sys.stderr if wanted.json else sys.stdout, flush=True)
    with tempfile.TemporaryDirectory(prefix="mxt-") as folder:
        torture = Torture(Path(folder), wanted.seed, wanted.embedder, told)
        try:
            torture.run(wanted.kills, wanted.points or all_points())
        finally:
            torture.close()
        missing = sorted(set(wanted.points or all_points()) & set(all_points()) - set(torture.table))
    calls = sum(client.calls for client in torture.clients)
    facts = {"seed": wanted.seed, "seconds": round(time.monotonic() - began), "calls": calls, "not_run": missing}
    if wanted.json:
        print(json.dumps(facts | {"table": rows(torture)}))
    else:
        print(show(rows(torture)))
        print(f"seed {wanted.seed}, {calls:,} calls acknowledged, {facts['seconds']} s")
    for row in torture.table.values():
        for line in (row.verdict.lost + row.verdict.resurrected + row.verdict.mismatches)[:20]:
            print(line, file=sys.stderr)
    return 1 if torture.failed else 0


def main() -> int:
    """Parse and run."""
    parser = argparse.ArgumentParser(description="Kill a daemon of its own again and again, and compare.")
    parser.add_argument("--kills", type=int, default=200, help="how many (default 200)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="default: a new one")
    parser.add_argument("--points", nargs="+", choices=all_points(), metavar="POINT", help="only these; default: all")
    parser.add_argument("--embedder", default="hashing", help="hashing (default, fast) or onnx")
    parser.add_argument("--json", action="store_true", help="the table as JSON; progress on standard error")
    parser.add_argument("--faults", action="store_true", help="faults of the file system instead of kills")
    wanted = parser.parse_args()
    if wanted.faults:
        from torture_faults import run

        return run(wanted.json)
    return kills(wanted)


if __name__ == "__main__":
    sys.exit(main())
