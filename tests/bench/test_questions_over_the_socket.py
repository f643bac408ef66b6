"""Each question that needs a daemon or an index runs for function, at sizes where its figures mean nothing."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from memxd.bench.context import Bench, Options
from memxd.bench.measure import Result
from memxd.bench.progress import Progress
from memxd.bench.registry import chosen
from memxd.bench.served import family

pytestmark = [
    pytest.mark.timeout(600),  # daemons, clients and copies; a busy machine takes its time
    # CI asks the same questions once, by test_bench_quick.
    pytest.mark.skipif(os.environ.get("CI_REQUIRE_TOOLS") == "1", reason="the quick bench run asks these too"),
]
SIZES = (300, 600)
Ask = Callable[[str], Result]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all, so that stores are built once; the hashing embedder needs no model."""
    work = tmp_path_factory.mktemp("work")
    options = Options(work=work, out=work / "report", sizes=SIZES, quick=True, hashing=True)
    with Bench.open(options, Progress(quiet=True)) as opened:
        yield opened


@pytest.fixture
def ask(bench: Bench) -> Iterator[Ask]:
    """Asks a question and looks that nothing of it is left: no process, no copy of a store."""
    before = set(family(multiprocessing.current_process().pid or 0))

    def asked(name: str) -> Result:
        (question,) = chosen((name,))
        return question.load()(bench)

    yield asked
    assert set(family(multiprocessing.current_process().pid or 0)) <= before
    assert not [path.name for path in bench.options.work.iterdir() if path.name.startswith(("copy-", "parents-"))]


def stages(result: Result) -> set[str]:
    """What was measured; every row is plain JSON and names a question that is in the list."""
    json.dumps([asdict(row) for row in (*result.measurements, *result.budgets)])
    json.dumps(dict(result.curves))
    assert len({row.question for row in result.measurements}) == 1
    assert all(budget.met is None for budget in result.budgets), "quick runs judge nothing"
    return {row.stage for row in result.measurements}


@pytest.mark.slow
def test_a_search_is_measured_end_to_end(ask: Ask) -> None:
    result = ask("socket")
    assert {"search over the socket", "first search after start", "vector", "fetch"} <= stages(result)
    variants = {row.variant for row in result.measurements if row.stage == "search over the socket"}
    assert {"empty call", "memxd, cached", "memxd, embedded", "memxd, cached, 4 clients"} <= variants
    assert {row.variant for row in result.measurements if "parents" in row.stage} == {"MemX rebuilt", "memex rebuilt"}


@pytest.mark.slow
def test_filters_are_held_against_both_oracles(ask: Ask) -> None:
    result = ask("filters")
    recalls = [row for row in result.measurements if row.stage.startswith("recall@30")]
    assert len(recalls) == 9 * 2
    assert {row.p50 for row in recalls} == {1.0}  # so small a store is scanned
    assert {budget.size for budget in result.budgets} == {max(SIZES)}


@pytest.mark.slow
def test_the_vector_leg_stands_beside_its_peers(ask: Ask) -> None:
    result = ask("vector")
    assert {"100 nearest", "a fifth deleted: recall@30"} <= stages(result)
    assert {"memxd", "USearch, one view", "numpy, float32"} <= {row.variant for row in result.measurements}
    assert {"memxd", "USearch, one view", "numpy, float32"} <= set(result.curves["recall"])


@pytest.mark.slow
def test_writing_is_measured_alone_and_beside_searches(ask: Ask) -> None:
    result = ask("writing")
    assert {"Store", "import, vectors given", "import, embedded here"} <= stages(result)
    assert len(result.budgets) == 5


@pytest.mark.slow
def test_crowds_are_served_and_refused(ask: Ask) -> None:
    result = ask("concurrency")
    assert {"mixed: search", "mixed: store", "cached: search", "overload: refusal"} <= stages(result)


@pytest.mark.slow
def test_starts_are_timed_also_after_a_kill(ask: Ask) -> None:
    result = ask("start")
    variants = {row.variant for row in result.measurements if row.stage == "start to SERVING"}
    assert variants == {"after a clean stop", "after kill -9 in an import"}


@pytest.mark.slow
def test_memory_is_read_while_searches_go_on(ask: Ask) -> None:
    result = ask("memory")
    assert all(row.p50 > 10 for row in result.measurements if row.stage.startswith("PSS"))


@pytest.mark.slow
def test_many_small_scopes_are_searched(ask: Ask) -> None:
    assert {"start to SERVING", "search in one of many scopes, cached"} <= stages(ask("scopes"))


@pytest.mark.slow
def test_searches_are_measured_beside_other_work(ask: Ask) -> None:
    result = ask("stall")
    variants = [row.variant for row in result.measurements]
    assert variants[0] == "memxd, alone"
    assert len([v for v in variants if "beside" in v]) == 5


def daemons(pid: int) -> list[int]:
    """The daemons below a process."""
    lines = {p: Path(f"/proc/{p}/cmdline") for p in family(pid)}
    return [p for p, line in lines.items() if line.exists() and b"\0serve\0" in line.read_bytes()]


@pytest.mark.slow
def test_a_bench_that_is_ended_takes_its_daemon_along(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memxd.bench", "speed", "--quick", "--hashing", "--sizes", "300"]
    command += ["--only", "start", "--work", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as bench:
        until = time.monotonic() + 100
        while not (started := daemons(bench.pid)) and time.monotonic() < until and bench.poll() is None:
            time.sleep(0.01)
        bench.terminate()
        bench.communicate(timeout=60)
    assert bench.returncode == 128 + signal.SIGTERM
    assert started, "no daemon was started"
    assert not [pid for pid in started if family(pid)]
