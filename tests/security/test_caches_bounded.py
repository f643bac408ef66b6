"""What is remembered of requests has a bound in bytes: whoever sends long texts, again and again, fills no memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from memxd.embed.cache import QueryCache
from memxd.embed.hashing import HashingEmbedder
from memxd.engine import candidates, validate
from memxd.errors import InvalidArgumentError
from memxd.model import Limits, Scope
from memxd.service.convert import values
from memxd.store.recent import BUDGET
from memxd.v1 import memory_service_pb2 as pb

MIB = 1 << 20


def grown(act: Callable[[int], object], times: int) -> int:
    """Bytes that are still held after so many different calls."""
    act(-1)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(times):
            act(number)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_scopes_that_are_too_long_are_not_remembered() -> None:
    """Each may be as long as a message; 256 of them were."""

    def ask(number: int) -> None:
        request = pb.CountRequest(scope={"agent_id": f"{number}" + "x" * MIB, "user_id": "ada"})
        with pytest.raises(InvalidArgumentError):
            validate.scope(values.scope(request))

    assert grown(ask, 40) < 4 * MIB
    assert values.scope(pb.CountRequest(scope={"agent_id": "coder"})) == Scope("coder", "default")


def test_long_questions_are_not_remembered() -> None:
    """One of 2,000 ideographs is 400 kB of words; 1,024 of them were kept."""

    def ask(number: int) -> None:
        candidates.analyse("".join(chr(0x4E00 + (number * 7 + n * 13) % 20_000) for n in range(Limits.QUERY)))

    assert grown(ask, 40) < 4 * MIB


def test_short_questions_stay_within_their_figure() -> None:
    """docs/SECURITY.md names it."""

    def ask(number: int) -> None:
        candidates.analyse("".join(chr(0x4E00 + (number * 7 + n * 13) % 20_000) for n in range(200)))

    assert grown(ask, 100) / 100 * 1_024 < 64 * MIB


def test_query_vectors_stay_within_their_figure() -> None:
    cache = QueryCache(4_096)
    embedder = HashingEmbedder(384)
    vector = embedder.embed_query("tea")

    def ask(number: int) -> None:
        cache.put(f"{number}" + "茶" * (Limits.QUERY - 8), vector.copy())

    assert grown(ask, 200) / 200 * 4_096 < 32 * MIB


def test_rows_that_were_read_last_have_a_budget() -> None:
    assert BUDGET == 16 * MIB
