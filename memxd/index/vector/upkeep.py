"""The thread that keeps the vector index small and quick, and the child process it owns.

``Upkeep`` waits until the index says that a renewal is worth while, lets a burst of changes settle, and runs it; a
failure is told in the index's status and tried again later. ``build_graph`` runs the child and ends it when asked.
Knows no files but those it hands over. Owned by ``VectorIndex``, which joins it at close.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memxd.errors import MemxdError
from memxd.index.vector.files import GRAPH, LINKS
from memxd.index.vector.manifest import GraphFile
from memxd.index.vector.rows import Rows
from memxd.index.vector.tuning import VectorTuning
from memxd.threads import Steady, at_rest, at_work

__all__ = ["GraphBuildError", "Upkeep", "build_graph"]

_log = logging.getLogger(__name__)
#: Run, never imported: it loads USearch (memxd/native.py says why that matters).
_CHILD = Path(__file__).with_name("build.py")
#: The child takes what nobody else wants: an import or a search beside it has the cores to itself.
_NICE = 19
_POLL = 0.05  # seconds between two looks at the child and at what the owner wants


class GraphBuildError(Exception):
    """The child failed; the text says how."""


class Upkeep:
    """A thread named "memxd-vector". ``due`` answers 0 (nothing to do), 1 (when things settle) or 2 (at once)."""

    def __init__(
        self, tuning: VectorTuning, due: Callable[[], int], renew: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        self._tuning = tuning
        self._due = due
        self._renew = renew
        self._failed = failed
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._last_change = time.monotonic()
        self._not_before = self._last_change + tuning.settle_seconds  # a start needs all cores for itself
        self._thread = Steady(self._run, "memxd-vector", "has graphs of vectors built")
        self._thread.start()

    def changed(self, due: bool) -> None:
        """The index changed; ``due`` says that renewing it may be worth while."""
        self._last_change = time.monotonic()
        if due:
            self._wake.set()

    def stop(self) -> None:
        """End and join. Idempotent."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            at_rest()
            self._wake.wait()
            self._wake.clear()
            at_work()
            while not self._stop.is_set() and self._due():
                if not self._settled():
                    self._stop.wait(_POLL)
                    continue
                if not self._attempt():
                    self._stop.wait(self._tuning.retry_seconds)
            if self._stop.is_set():
                return

    def _settled(self) -> bool:
        if time.monotonic() < self._not_before:
            return False
        return self._due() > 1 or time.monotonic() - self._last_change >= self._tuning.settle_seconds

    def _attempt(self) -> bool:
        try:
            self._renew()
        except (MemxdError, GraphBuildError, OSError) as error:
            text = str(error) if isinstance(error, MemxdError | GraphBuildError) else (error.strerror or "disk error")
            _log.warning("the vector index could not be renewed: %s", text)
            self._failed(f"the graph could not be renewed: {text}")
            return False
        return True


def build_graph(
    directory: Path, rows: Rows, base: GraphFile | None, tuning: VectorTuning, ended: Callable[[], bool]
) -> GraphFile:
    """A graph over all present rows, made in a child process under its final names: from ``base`` on, a
    graph over the first of these rows, or (None, or its file is damaged) from nothing.

    ``ended`` is asked all the time; when it says True the child is killed and GraphBuildError raised, as for a child
    that fails.
    """
    count = rows.count
    graph, links = GRAPH.format(rows.generation, count), LINKS.format(rows.generation, count)
    options = {
        "vectors": str(rows.vectors_path),
        "rows": count,
        "dimension": rows.dimension,
        "base": None if base is None else _base(directory, base),
        "out": str(directory / graph),
        "links": str(directory / links),
        "connectivity": tuning.connectivity,
        "expansion_add": tuning.expansion_add,
        "threads": tuning.build_threads,
        "batch": tuning.build_batch,
        "nice": _NICE,
    }
    told = _run([sys.executable, "-P", str(_CHILD), json.dumps(options)], ended)
    if base is not None and told["from_row"] != base.rows:
        _log.warning("the graph of the vector index could not be extended, its file is damaged: it was built anew")
    shape = {name: told[name] for name in ("entries", "fan", "blocks", "upper_fan", "entry", "levels")}
    sums = {"links_sums": told["links_sums"], "base_sums": told["out_sums"]}
    return GraphFile.of({"links": links, "base": graph, "rows": count, **shape, **sums})


def _base(directory: Path, base: GraphFile) -> dict[str, Any]:
    size, xor, total = base.base_sums
    return {"path": str(directory / base.base), "rows": base.rows, "size": size, "xor": xor, "sum": total}


def _run(command: list[str], ended: Callable[[], bool]) -> dict[str, Any]:
    """What the child tells. Raises GraphBuildError."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child:  # closes the pipes and waits
        try:
            while child.poll() is None:
                if ended():
                    raise GraphBuildError("stopped before it was done")
                time.sleep(_POLL)
            out, err = child.communicate()
        finally:
            child.kill()
    if child.returncode != 0:
        last = err.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise GraphBuildError(f"the building process ended with {child.returncode}: {last[0]}")
    for line in err.decode(errors="replace").splitlines():
        _log.info("building the graph: %s", line)
    told: dict[str, Any] = json.loads(out)
    return told
