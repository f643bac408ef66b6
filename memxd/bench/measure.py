"""Times and what is told of them: samples, percentiles, budgets.

Owns the shapes that questions answer in (``Measurement``, ``Budget``, ``Result``) and the timing loop that asks memxd
and its peers in turn, so that a busy machine slows both alike. Knows no question and no peer. All arithmetic on seconds
is done in float64; what is told is in the unit that the measurement names.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
#: Calls of one kind in a row, where what is asked is how fast a caller of that kind is served.
IN_A_ROW = 50
Seconds = NDArray[np.float64]
Unit = Literal["s", "ms", "us", "1/s", "MB", "share", "count"]

#: What one second is in a unit of time; other units are told as they are.
_PER_SECOND: dict[str, float] = {"s": 1.0, "ms": 1e3, "us": 1e6}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of figures: what was measured (``stage``) of whom (``variant``) at which store size.

    ``question`` is the registered name. ``size`` = records in the store, 0 = does not matter. ``n`` samples;
    percentiles, ``min`` and ``mean`` in ``unit`` (for a rate or a share all of them are that one figure). ``extra``:
    further figures or words by name, plain JSON values; ``cpu_p50`` is the median CPU time of the calling thread.
    """

    question: str
    stage: str
    size: int
    variant: str
    unit: Unit
    n: int
    p50: float
    p90: float
    p95: float
    p99: float
    min: float
    mean: float
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, question: str, stage: str, size: int, variant: str, samples: Timed | Seconds, unit: Unit, **extra: Any
    ) -> Measurement:
        """From samples in seconds; a unit that is no time takes the samples as they are. Raises ValueError for none."""
        wall = samples.wall if isinstance(samples, Timed) else np.asarray(samples, np.float64)
        if not wall.size:
            raise ValueError(f"{question}/{stage}/{variant}: nothing was measured")
        factor = _PER_SECOND.get(unit, 1.0)
        if isinstance(samples, Timed) and samples.cpu.size:
            extra = {"cpu_p50": float(np.median(samples.cpu)) * factor, **extra}
        p50, p90, p95, p99 = (float(v) * factor for v in np.percentile(wall, (50, 90, 95, 99)))
        least, mean = float(wall.min()) * factor, float(wall.mean()) * factor
        return cls(question, stage, size, variant, unit, wall.size, p50, p90, p95, p99, least, mean, extra)

    @classmethod
    def one(
        cls, question: str, stage: str, size: int, variant: str, value: float, unit: Unit, **extra: Any
    ) -> Measurement:
        """From one figure that is already in ``unit``: a rate, a share, memory, or a time measured once."""
        v = float(value)
        return cls(question, stage, size, variant, unit, 1, v, v, v, v, v, v, extra)


@dataclass(frozen=True, slots=True)
class Budget:
    """One row of the budgets table.

    ``measured`` must be at most ``budget`` (``at_least``: at least), both in ``unit``. ``peer_figure``, in ``unit``
    too, is what ``peer`` needed in the same run, None = no peer. ``size``: records in the store measured at.
    ``judged`` False: the run was too small for the budget to mean anything (``--quick``, smaller stores). Two rows of
    one name are two sizes or variants of one promise.
    """

    question: str
    name: str
    size: int
    measured: float
    budget: float
    unit: Unit
    at_least: bool = False
    peer: str = ""
    peer_figure: float | None = None
    judged: bool = True
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the budget is kept; None where it is not judged."""
        if not self.judged:
            return None
        return self.measured >= self.budget if self.at_least else self.measured <= self.budget

    @property
    def ratio(self) -> float | None:
        """How many times better than the peer (above 1 = memxd is better); None without one."""
        if self.peer_figure is None or not self.measured or not self.peer_figure:
            return None
        return self.measured / self.peer_figure if self.at_least else self.peer_figure / self.measured


@dataclass(frozen=True, slots=True)
class Result:
    """What a question answers. ``skipped``: what was left out and why, such as a peer that is not installed.

    ``curves``: figures for plots by name, such as recall against time; plain JSON values.
    """

    measurements: tuple[Measurement, ...] = ()
    budgets: tuple[Budget, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    curves: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timed:
    """float64[n] seconds of each call: by the clock, and CPU time of the calling thread (empty = not taken)."""

    wall: Seconds
    cpu: Seconds

    @property
    def p50(self) -> float:
        """The median in seconds."""
        return float(np.median(self.wall))


@contextmanager
def quiet() -> Iterator[None]:
    """Without the garbage collector, which would bill one call for the rubbish of all."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def timed(call: Callable[[], object], n: int, warmup: int = 3) -> Timed:
    """``n`` calls without arguments."""
    return alternate({"it": lambda _: call()}, range(n), warmup=min(warmup, n))["it"]


def alternate(
    calls: Mapping[str, Callable[[T], object]],
    inputs: Sequence[T],
    *,
    warmup: int = 3,
    limits: Mapping[str, int] | None = None,
    run: int = 1,
) -> dict[str, Timed]:
    """Every call with every input, in turn, so that all of them meet the same machine.

    A call gets ``run`` inputs, then the next call the same ones; their order is drawn anew each time (seeded), since
    each leaves the caches to the next. The first ``warmup`` inputs are asked once before anything counts. ``limits``:
    how many inputs a slow one gets, spread evenly over all.
    """
    names = list(calls)
    given = {name: _spread(len(inputs), (limits or {}).get(name, len(inputs))) for name in names}
    wall: dict[str, list[int]] = {name: [] for name in names}
    cpu: dict[str, list[int]] = {name: [] for name in names}
    clock, thread = time.perf_counter_ns, time.thread_time_ns
    orders = np.random.default_rng(7)
    for item in inputs[:warmup]:
        for call in calls.values():
            call(item)
    with quiet():
        for first in range(0, len(inputs), run):
            for name in orders.permuted(names).tolist():
                for number in range(first, min(first + run, len(inputs))):
                    if number not in given[name]:
                        continue
                    call, item, c0 = calls[name], inputs[number], thread()
                    t0 = clock()
                    call(item)
                    t1 = clock()
                    cpu[name].append(thread() - c0)
                    wall[name].append(t1 - t0)
    return {name: Timed(np.array(wall[name]) / 1e9, np.array(cpu[name]) / 1e9) for name in names}


def _spread(total: int, wanted: int) -> frozenset[int]:
    """At most ``wanted`` of 0..total-1, evenly."""
    return frozenset(np.linspace(0, total - 1, min(wanted, total)).astype(int).tolist()) if total else frozenset()
