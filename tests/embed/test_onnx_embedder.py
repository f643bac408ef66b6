"""The default model at work: golden vectors, the same bits every time, windows, deadlines, closing."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memxd.embed import EmbedSettings, default_model, open_embedder
from memxd.embed.convert import model_id
from memxd.embed.default_model import open_default
from memxd.embed.golden import E5_GOLDEN
from memxd.embed.loaded import LoadedModel
from memxd.embed.onnx import OnnxEmbedder
from memxd.errors import CancelledError, DeadlineExceededError, EmbedderUnavailableError, ModelFileError
from memxd.model import Deadline

pytestmark = pytest.mark.model

TEXTS = ["Anna takes the 7:42 train.", "用户喜欢喝咖啡，不喜欢茶。", "しりとり 🦊 café", "x" * 1200, "a"]


def test_info_says_what_the_model_is(e5: OnnxEmbedder) -> None:
    assert e5.info.id == model_id("i8")
    assert (e5.info.dimension, e5.info.window_tokens, e5.info.variant, e5.info.remote) == (384, 512, "i8", False)
    assert e5.available
    assert e5.message.startswith("8-bit variant")


@pytest.mark.parametrize(("int8_dot", "variant"), [(True, "i8"), (False, "q4")])
def test_the_cpu_decides_the_variant(
    weights: Path, tmp_path: Path, int8_dot: bool, variant: str, caplog: pytest.LogCaptureFixture
) -> None:
    model, message = open_default(tmp_path, int8_dot=int8_dot)
    assert model.manifest.variant == variant
    assert model.worst_golden(E5_GOLDEN) >= model.manifest.golden_minimum
    if not int8_dot:
        assert "no int8 dot product" in message
        assert "no int8 dot product" in caplog.text


def test_a_variant_that_misses_the_golden_vectors_is_left_aside(
    default_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LoadedModel, "worst_golden", lambda self, _: 0.5 if self.manifest.variant == "i8" else 1.0)
    model, message = open_default(default_dir, int8_dot=True)
    assert model.manifest.variant == "q4"
    assert "i8: golden vectors at cosine 0.5000" in message


def test_when_no_variant_works_every_reason_is_told(default_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadedModel, "worst_golden", lambda *_: 0.5)
    monkeypatch.setattr(default_model, "default_folder", lambda d, _: d / "models" / model_id("i8"))
    with pytest.raises(ModelFileError, match=r"i8: golden.*q4: "):
        open_default(default_dir, int8_dot=True)


def test_vectors_are_the_same_bits_alone_together_and_with_any_number_of_threads(default_dir: Path) -> None:
    results = []
    for threads in (1, 2, 1):
        embedder = open_embedder(EmbedSettings(threads=threads, query_cache=0), default_dir)
        rows = embedder.embed_passages(TEXTS * 2)
        assert rows.dtype == np.float32
        assert rows.shape == (2 * len(TEXTS), 384)
        assert np.array_equal(rows[: len(TEXTS)], rows[len(TEXTS) :])
        alone = np.stack([embedder.embed_passages([text])[0] for text in TEXTS])
        assert np.array_equal(alone, rows[: len(TEXTS)])
        results.append((rows, np.stack([embedder.embed_query(text) for text in TEXTS])))
        embedder.close()
    for rows, queries in results[1:]:
        assert np.array_equal(rows, results[0][0])
        assert np.array_equal(queries, results[0][1])


def test_vectors_have_unit_length_and_meaning(e5: OnnxEmbedder) -> None:
    rows = e5.embed_passages(["用户喜欢喝咖啡", "The train leaves at nine", *TEXTS])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert e5.embed_passages([]).shape == (0, 384)
    query = e5.embed_query("what does the user like to drink")
    assert query @ rows[0] > query @ rows[1]


def test_a_question_beyond_the_window_is_windowed_not_cut(e5: OnnxEmbedder) -> None:
    filler = "nothing of interest here " * 120
    plain, tail = e5.embed_query(filler), e5.embed_query(filler + "the door code is 4711")
    assert np.linalg.norm(tail) == pytest.approx(1, abs=1e-5)
    assert not np.array_equal(plain, tail)


def test_windows_are_even_and_fit(default_dir: Path) -> None:
    model, _ = open_default(default_dir)
    windows = model.windows("query: ", "word " * 1400)
    sizes = [len(ids) for ids in windows]
    assert len(windows) == 3
    assert max(sizes) <= 512
    assert max(sizes) - min(sizes) <= 3
    assert len({tuple(ids[:3]) for ids in windows}) == 1


def test_a_question_is_remembered(default_dir: Path) -> None:
    embedder = open_embedder(EmbedSettings(query_cache=2), default_dir)
    first = embedder.embed_query("tea?")
    assert embedder.embed_query("tea?") is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1
    embedder.close()


_PARTS = st.sampled_from(
    [
        "Anna likes tea. ",
        "他喜欢喝咖啡。",
        "word " * 200,
        "字" * 300,
        "\n",
        "\ufdfa" * 40,
        "🦊",
        "x" * 900,
        "e\u0301" * 99,
    ]
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PARTS, min_size=1, max_size=25).map("".join))
def test_every_chunk_fits_the_window_in_the_models_own_tokens(e5: OnnxEmbedder, text: str) -> None:
    spans = e5.split(text)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    tokenizer = e5._model.tokenizer
    assert max(tokenizer.count(["passage: " + text[a:b] for a, b in spans])) + 2 <= 512


def test_a_fact_in_the_last_line_of_the_longest_text_is_found(e5: OnnxEmbedder) -> None:
    text = ("The committee met and talked about the weather of the week. " * 2000)[:65_490] + "\nThe door code is 4711."
    spans = e5.split(text)
    last = e5.embed_passages([text[slice(*spans[-1])], text[slice(*spans[0])]])
    query = e5.embed_query("what is the door code")
    assert query @ last[0] > query @ last[1]


def test_deadlines_and_cancelling_end_the_work(e5: OnnxEmbedder) -> None:
    with pytest.raises(DeadlineExceededError):
        e5.embed_query("tea?", Deadline(at=1.0, monotonic=lambda: 2.0))
    ticks = iter(range(1000))
    with pytest.raises(DeadlineExceededError):
        e5.embed_passages(["tea"] * 500, Deadline(at=40.0, monotonic=lambda: float(next(ticks))))
    looks = iter(range(1000))
    with pytest.raises(CancelledError):
        e5.embed_passages(["tea"] * 500, Deadline(is_cancelled=lambda: next(looks) > 20))
    assert e5.available


def test_many_threads_may_ask_at_once(e5: OnnxEmbedder) -> None:
    expected = e5.embed_query("tea?")
    wrong: list[int] = []

    def ask(number: int) -> None:
        if not all(np.array_equal(e5.embed_query("tea?"), expected) for _ in range(5)):
            wrong.append(number)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert wrong == []


def test_closing_joins_the_threads_and_refuses_further_calls(default_dir: Path) -> None:
    before = set(threading.enumerate())
    embedder = open_embedder(EmbedSettings(threads=2), default_dir)
    assert [t.name for t in set(threading.enumerate()) - before].count("memxd-embed-1") == 1
    embedder.close()
    embedder.close()
    assert set(threading.enumerate()) <= before
    assert not embedder.available
    with pytest.raises(EmbedderUnavailableError):
        embedder.embed_query("tea?")
    with pytest.raises(EmbedderUnavailableError):
        embedder.embed_passages(["tea"])
