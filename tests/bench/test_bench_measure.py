"""Percentiles, budgets and the timing loop."""

from __future__ import annotations

import gc
from collections import Counter

import numpy as np
import pytest

from memxd.bench.measure import Budget, Measurement, Timed, alternate, quiet, timed


def test_a_measurement_tells_percentiles_in_its_unit() -> None:
    m = Measurement.of("q", "s", 10, "memxd", np.arange(1, 101) / 1e3, "ms", note="x")
    assert (m.n, m.p50, m.p90, m.p99, m.min, m.mean) == pytest.approx((100, 50.5, 90.1, 99.01, 1.0, 50.5))
    assert m.extra == {"note": "x"}


def test_cpu_time_stands_beside_wall_time() -> None:
    m = Measurement.of("q", "s", 0, "memxd", Timed(np.array([2e-6, 4e-6]), np.array([1e-6, 1e-6])), "us")
    assert (m.p50, m.extra["cpu_p50"]) == pytest.approx((3.0, 1.0))


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing was measured"):
        Measurement.of("q", "s", 0, "memxd", np.empty(0), "ms")


@pytest.mark.parametrize(
    ("measured", "budget", "at_least", "met"), [(1, 2, False, True), (3, 2, False, False), (3, 2, True, True)]
)
def test_a_budget_is_met_or_missed(measured: float, budget: float, at_least: bool, met: bool) -> None:
    assert Budget("q", "b", 1, measured, budget, "ms", at_least=at_least).met is met


def test_a_budget_of_a_small_run_is_not_judged() -> None:
    assert Budget("q", "b", 1, 9.0, 1.0, "ms", judged=False).met is None


def test_the_ratio_tells_how_many_times_better_than_the_peer() -> None:
    assert Budget("q", "b", 1, 2.0, 9.0, "ms", peer="p", peer_figure=8.0).ratio == 4.0
    assert Budget("q", "b", 1, 600.0, 1.0, "1/s", at_least=True, peer="p", peer_figure=200.0).ratio == 3.0
    assert Budget("q", "b", 1, 2.0, 9.0, "ms").ratio is None


def test_every_variant_gets_every_input_and_slow_ones_fewer() -> None:
    asked: Counter[str] = Counter()
    order: list[str] = []

    def call(name: str) -> object:
        def ask(item: int) -> None:
            asked[name] += 1
            order.append(name)

        return ask

    times = alternate({"a": call("a"), "b": call("b"), "slow": call("slow")}, range(10), warmup=0, limits={"slow": 3})
    assert (times["a"].wall.size, times["b"].wall.size, times["slow"].wall.size) == (10, 10, 3)
    assert asked == {"a": 10, "b": 10, "slow": 3}
    first = [name for name in order if name != "slow"][::2]
    assert {"a", "b"} == set(first)  # who goes first changes


def test_each_call_gets_a_run_of_inputs_before_the_next_call() -> None:
    asked: list[tuple[str, int]] = []
    calls = {"a": lambda n: asked.append(("a", n)), "b": lambda n: asked.append(("b", n))}
    times = alternate(calls, range(5), warmup=0, run=3)
    assert (times["a"].wall.size, times["b"].wall.size) == (5, 5)
    for name in calls:
        assert [n for asker, n in asked if asker == name] == [0, 1, 2, 3, 4]
    assert [n for _, n in asked[:6]] == [0, 1, 2, 0, 1, 2]


def test_warming_up_does_not_count() -> None:
    calls = []
    assert timed(lambda: calls.append(1), 4, warmup=2).wall.size == 4
    assert len(calls) == 6


def test_the_collector_rests_while_calls_are_timed() -> None:
    assert gc.isenabled()
    with quiet():
        assert not gc.isenabled()
    assert gc.isenabled()
