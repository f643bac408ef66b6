"""The query cache: least recently used out first, safe under threads."""

from __future__ import annotations

import threading

import numpy as np

from memxd.embed.cache import QueryCache


def _vector(number: int) -> np.ndarray:
    return np.array([number], np.float32)


def test_the_least_recently_used_leaves() -> None:
    cache = QueryCache(2)
    cache.put("a", _vector(1))
    cache.put("b", _vector(2))
    assert cache.get("a") is not None
    cache.put("c", _vector(3))
    assert cache.get("b") is None
    assert cache.get("a") is not None
    assert len(cache) == 2
    cache.clear()
    assert len(cache) == 0


def test_size_zero_remembers_nothing() -> None:
    cache = QueryCache(0)
    cache.put("a", _vector(1))
    assert cache.get("a") is None


def test_threads_see_only_whole_entries() -> None:
    cache = QueryCache(8)
    wrong: list[str] = []

    def work(seed: int) -> None:
        for i in range(2000):
            number = (seed * 7 + i) % 20
            cache.put(str(number), _vector(number))
            found = cache.get(str(number))
            if found is not None and found[0] != number:
                wrong.append(str(number))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert len(cache) <= 8
