"""The vector index under kill -9: what was flushed is there, nothing is invented, no child stays behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from vector_world import Naive, everything, stored, unit, wait_until

from memxd._fast import dot_py
from memxd.index.vector import VectorIndex, VectorTuning
from memxd.model import Change

D = 16
TUNING = VectorTuning(
    small_limit=50, exact_limit=50, kept_cost=0, graph_min=300, tail_min=100, dead_min=50, settle_seconds=0.0
)


def history(revision: int) -> Change:
    """What happens at a revision: known to the killed process and to the test."""
    rng = np.random.default_rng(revision)
    rid = int(rng.integers(0, 700))
    if rng.random() < 0.25:
        return Change(revision, rid, None)
    vectors = rng.standard_normal((int(rng.integers(1, 3)), D))
    return stored(revision, rid, (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32))


def run(folder: str) -> None:
    """The process that is killed: goes on from where the files are, tells each durable watermark."""
    index = VectorIndex.open(Path(folder), model_id="m", dimension=D, dot=dot_py, tuning=TUNING)
    print(f"open {index.watermark} {index.status().message}", flush=True)
    revision = index.watermark
    while True:
        revision += 1
        index.apply(history(revision))
        if revision % 37 == 0:
            index.flush()
            print(f"durable {index.durable_watermark}", flush=True)


def start(folder: Path) -> subprocess.Popen[str]:
    code = f"import sys; sys.path[:0] = {sys.path!r}; import test_vector_crash; test_vector_crash.run({str(folder)!r})"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ})


def processes_about(folder: Path) -> list[int]:
    """Processes whose command line names the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_whatever_was_flushed_survives_kill_9_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(11)
    sys.path.append(str(Path(__file__).parent))
    last = 0
    for _ in range(5):
        child = start(tmp_path)
        assert child.stdout is not None
        first = child.stdout.readline().split(maxsplit=2)
        assert first[0] == "open"
        assert len(first) == 2, f"opened with a message: {first}"
        assert int(first[1]) >= last
        time.sleep(rng.uniform(0.02, 0.6))
        child.send_signal(signal.SIGKILL)
        told = [line for line in child.stdout.read().splitlines() if line.startswith("durable ")]
        child.wait()
        child.stdout.close()
        last = max([last, *(int(line.split()[1]) for line in told)])
    assert last > 100
    index = VectorIndex.open(tmp_path, model_id="m", dimension=D, dot=dot_py, tuning=TUNING)
    assert index.watermark >= last
    assert not index.status().message
    naive = Naive()
    for revision in range(1, index.watermark + 1):
        naive.apply(history(revision))
    for seed in range(1):
        query = unit(np.random.default_rng(seed).standard_normal(D))
        naive.check(index, query, everything(700), 1000)
    index.close()
    names = {path.name.split("-")[0] for path in tmp_path.iterdir()}
    assert names <= {"manifest.bin", "vectors", "rows", "graph", "links"}


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc to see other processes")
def test_the_building_process_ends_with_its_parent(tmp_path: Path) -> None:
    code = f"""
import sys; sys.path[:0] = {sys.path!r}
from pathlib import Path
import numpy as np
from memxd._fast import dot_py
from memxd.index.vector import VectorIndex, VectorTuning
from vector_world import stored, unit
slow = VectorTuning(graph_min=100, tail_min=10, settle_seconds=0.0, expansion_add=2000, build_batch=8)
index = VectorIndex.open(Path({str(tmp_path)!r}), model_id="m", dimension=64, dot=dot_py, tuning=slow)
vectors = unit(np.random.default_rng(0).standard_normal((30000, 64)))
index.rebuild(iter(stored(r + 1, r, vectors[r:r + 1]) for r in range(30000)), revision=30000)
print("ready", flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdin is not None
    assert parent.stdout.readline() == "ready\n"
    wait_until(lambda: len(processes_about(tmp_path)) == 2)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    wait_until(lambda: processes_about(tmp_path) == [], seconds=20)


def test_closing_ends_a_build_that_is_under_way(tmp_path: Path) -> None:
    slow = VectorTuning(graph_min=100, tail_min=10, settle_seconds=0.0, expansion_add=2000, build_batch=8)
    index = VectorIndex.open(tmp_path, model_id="m", dimension=D, dot=dot_py, tuning=slow)
    vectors = np.random.default_rng(0).standard_normal((20_000, D)).astype(np.float32)
    index.rebuild((stored(r + 1, r, vectors[r : r + 1]) for r in range(20_000)), revision=20_000)
    wait_until(lambda: bool(processes_about(tmp_path)))
    begin = time.monotonic()
    index.close()
    assert time.monotonic() - begin < 5
    assert processes_about(tmp_path) == []
    assert [path.name.split("-")[0] for path in sorted(tmp_path.iterdir())] == ["manifest.bin", "rows", "vectors"]
    again = VectorIndex.open(tmp_path, model_id="m", dimension=D, dot=dot_py, tuning=TUNING)
    assert again.status().entries == 20_000
    again.close()
