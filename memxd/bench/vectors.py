"""Vectors with the structure of real ones, seeded: topics and sub-topics in 48 latent dimensions, a common mean.

Owns the generator only. Random pairs have a cosine of about .6 and a few come near 1, as with sentence models; which
topic a row belongs to is known, so that a filter can go with it. Row i is the same in every store of one seed and
dimension. Called by ``context`` and ``stores``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]

#: Changes whenever other vectors come out: part of the recipe of a store.
GENERATOR = "vectors-1"
TOPICS = 300
_SUBTOPICS = 20
_LATENT = 48
_BLOCK = 10_000


@dataclass(frozen=True, slots=True)
class Vectors:
    """A generator of unit vectors float32[n, dimension]."""

    dimension: int
    seed: int = 7

    @property
    def recipe(self) -> str:
        """What decides them, for the recipe of a store."""
        return f"{GENERATOR} {self.dimension} {self.seed}"

    def rows(self, start: int, stop: int) -> tuple[Float32, Int32]:
        """Of rows start..stop-1: (vectors float32[m, dimension], topic int32[m] in 0..TOPICS-1), m = stop - start."""
        parts = [self._block(number) for number in range(start // _BLOCK, -(-stop // _BLOCK))]
        first = start // _BLOCK * _BLOCK
        vectors = np.concatenate([v for v, _ in parts])[start - first : stop - first]
        return vectors, np.concatenate([t for _, t in parts])[start - first : stop - first]

    def topics(self, n: int) -> Int32:
        """int32[n]: the topic of each of the first n rows."""
        return np.concatenate([self._places(number)[0] for number in range(-(-n // _BLOCK))])[:n]

    def queries(self, n: int) -> Float32:
        """float32[n, dimension]: vectors of the same structure that belong to no row."""
        return self._draw(np.random.default_rng((self.seed, 2, n)), n, None)[0]

    def query_topics(self, n: int) -> Int32:
        """int32[n]: the topics that ``queries(n)`` are about."""
        return self._draw(np.random.default_rng((self.seed, 2, n)), n, None)[1]

    def _block(self, number: int) -> tuple[Float32, Int32]:
        rng = np.random.default_rng((self.seed, 1, number))
        return self._draw(rng, _BLOCK, self._places(number))

    def _places(self, number: int) -> tuple[Int32, Int32]:
        rng = np.random.default_rng((self.seed, 0, number))
        return rng.integers(0, TOPICS, _BLOCK, np.int32), rng.integers(0, _SUBTOPICS, _BLOCK, np.int32)

    def _draw(self, rng: np.random.Generator, n: int, places: tuple[Int32, Int32] | None) -> tuple[Float32, Int32]:
        """``n`` vectors at these (topic, sub-topic), None = anywhere."""
        base = np.random.default_rng((self.seed, 9))
        d = self.dimension
        project = _normal(base, _LATENT, d) / 7.0
        mean = _normal(base, 1, d)
        topics = _normal(base, TOPICS, _LATENT)
        subtopics = _normal(base, TOPICS * _SUBTOPICS, _LATENT) * 0.6
        topic, sub = places or (rng.integers(0, TOPICS, n, np.int32), rng.integers(0, _SUBTOPICS, n, np.int32))
        latent = topics[topic] + subtopics[topic * _SUBTOPICS + sub] + _normal(rng, n, _LATENT) * 0.45
        made = latent @ project + mean * 1.6 + _normal(rng, n, d) * 0.12
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return made.astype(np.float32), topic


def _normal(rng: np.random.Generator, rows: int, columns: int) -> Float32:
    return rng.standard_normal((rows, columns), np.float32)
