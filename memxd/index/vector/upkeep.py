"""The thread that keeps the vector index small and quick, and the child process it owns.

``Upkeep`` waits until the index says that a new generation is worth while, lets a burst of changes settle, and runs the
index's renewal; a failure is told in the index's status and tried again later. ``build_graph`` runs the child and ends
it when asked. Knows no files but the two it hands over. Owned by ``VectorIndex``, which joins it at close.
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

from memxd.errors import MemxdError
from memxd.index.vector import build
from memxd.index.vector.files import GRAPH
from memxd.index.vector.manifest import GraphFile
from memxd.index.vector.rows import Rows
from memxd.index.vector.tuning import VectorTuning

__all__ = ["GraphBuildError", "Upkeep", "build_graph"]

_log = logging.getLogger(__name__)
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
        self._thread = threading.Thread(target=self._run, name="memxd-vector", daemon=True)
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
            self._wake.wait()
            self._wake.clear()
            while not self._stop.is_set() and self._due():
                if not self._settled():
                    self._stop.wait(_POLL)
                    continue
                if not self._attempt():
                    self._stop.wait(self._tuning.retry_seconds)
            if self._stop.is_set():
                return

    def _settled(self) -> bool:
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


def build_graph(directory: Path, rows: Rows, count: int, tuning: VectorTuning, ended: Callable[[], bool]) -> GraphFile:
    """A graph over rows 0..count-1 (all alive), built in a child process and synced under its final name.

    ``ended`` is asked all the time; when it says True the child is killed and GraphBuildError raised, as for a child
    that fails.
    """
    name = GRAPH.format(rows.generation)
    options = {
        "vectors": str(rows.vectors_path),
        "rows": count,
        "dimension": rows.dimension,
        "out": str(directory / name),
        "connectivity": tuning.connectivity,
        "expansion_add": tuning.expansion_add,
        "expansion_search": tuning.expansion_search,
        "threads": tuning.build_threads,
        "batch": tuning.build_batch,
        "nice": 10,
    }
    command = [sys.executable, "-P", str(Path(build.__file__)), json.dumps(options)]
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
    result = json.loads(out)
    return GraphFile(name, count, count, result["size"], (result["xor"], result["sum"]))
