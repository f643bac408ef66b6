"""The hashing embedder: deterministic, shared words draw near, long texts split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memxd.embed import HashingEmbedder
from memxd.errors import DeadlineExceededError, EmbedderUnavailableError
from memxd.model import Deadline


def test_texts_that_share_words_are_nearer() -> None:
    embedder = HashingEmbedder()
    query = embedder.embed_query("where does Anna drink coffee")
    near, far = embedder.embed_passages(["Anna likes to drink coffee in Bern", "the train leaves at nine"])
    assert query @ near > 0.3 > query @ far
    zh = embedder.embed_query("咖啡")
    near, far = embedder.embed_passages(["用户喜欢喝咖啡", "火车九点出发"])
    assert zh @ near > zh @ far + 0.2


def test_the_same_text_gives_the_same_bits_in_every_process() -> None:
    vector = HashingEmbedder(16).embed_query("Anna likes tea")
    assert np.array_equal(vector, HashingEmbedder(16, query_cache=4).embed_query("Anna likes tea"))
    assert np.flatnonzero(vector).tolist() == [3, 8, 13]


@given(st.text(max_size=100), st.sampled_from([2, 8, 384]))
def test_every_text_has_a_unit_vector(text: str, dimension: int) -> None:
    embedder = HashingEmbedder(dimension)
    vector = embedder.embed_query(text)
    assert vector.shape == (dimension,)
    assert vector.dtype == np.float32
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


def test_long_texts_split_and_their_last_line_is_covered() -> None:
    embedder = HashingEmbedder(64)
    text = "The committee met again. " * 2600 + "The door code is 4711."
    spans = embedder.split(text)
    assert len(spans) > 10
    assert "4711" in text[slice(*spans[-1])]
    assert embedder.info.window_tokens == 512


def test_deadline_and_close() -> None:
    embedder = HashingEmbedder(8)
    with pytest.raises(DeadlineExceededError):
        embedder.embed_passages(["a"], Deadline(at=0.0, monotonic=lambda: 1.0))
    embedder.close()
    assert not embedder.available
    with pytest.raises(EmbedderUnavailableError):
        embedder.embed_query("a")
    with pytest.raises(ValueError, match="at least 2"):
        HashingEmbedder(1)
