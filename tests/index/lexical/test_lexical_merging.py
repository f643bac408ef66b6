"""What the writing child makes of many posting lists at once is what each list by itself says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whoosh.codec import whoosh3

from memxd._fast.bm25_py import LARGE
from memxd.index.lexical import folding
from memxd.index.lexical import merge as merging
from memxd.index.lexical.codec import FlatCodec, map_words, read_documents, read_list
from memxd.index.lexical.merge import merge
from memxd.index.lexical.packing import frequencies
from memxd.index.lexical.postings import Flat, Gathered, Source, unpack
from memxd.index.lexical.reading import SegmentPostings
from memxd.index.lexical.tail import Tail
from memxd.index.lexical.writer import IndexFolder

Text = dict[str, int]
Content = dict[str, dict[int, int]]  # term -> rid -> frequency


def gathered(texts: dict[int, Text]) -> Source:
    source = Gathered()
    for rid, counts in texts.items():
        source.add(rid, counts, sum(counts.values()), rid % 3)
    return source.source()


def tail(texts: dict[int, Text]) -> Tail:
    made = Tail()
    for rid, counts in texts.items():
        made.add(rid, counts, sum(counts.values()), rid % 3)
    return made


def content(texts: dict[int, Text]) -> Content:
    expected: Content = {}
    for rid, counts in texts.items():
        for term, count in counts.items():
            expected.setdefault(term, {})[rid] = count
    return expected


def told(rids: Any, pieces: Any) -> Content:
    """What flat lists say; refuses terms or documents out of order."""
    found: Content = {}
    before = b""
    for terms, counts, docs, tfs in pieces:
        assert len(terms) == len(counts)
        for term, at, count in zip(terms, np.cumsum(counts) - counts, counts, strict=True):
            assert before < term or not before
            before = term
            own = docs[at : at + count]
            assert count > 0
            assert (own[1:] > own[:-1]).all()
            found[term.decode()] = dict(zip(rids[own].tolist(), tfs[at : at + count].tolist(), strict=True))
    return found


WORDS = st.sampled_from(["a", "b", "ab", "中", "中文", "é", "z" * 20, "1,000"])
TEXTS = st.dictionaries(WORDS, st.integers(1, 2 * LARGE), max_size=6)


@given(st.lists(TEXTS, max_size=30), st.sets(st.integers(0, 29)), st.integers(1, 4), st.sampled_from([1, 3, 1 << 20]))
@settings(max_examples=150, deadline=None)
def test_a_merge_holds_what_is_alive_in_order(texts: list[Text], dead: set[int], ways: int, piece: int) -> None:
    parts = [dict(list(enumerate(texts))[way::ways]) for way in range(ways)]
    sources = [gathered(part) for part in parts if part]
    for source in sources:
        source.alive[np.isin(source.rids, list(dead))] = 0
    if not sources:
        return
    before, merging.PIECE = merging.PIECE, piece
    try:
        merged = merge(sources)
        rids, lengths, scopes, starts = merged.documents
        found = told(rids, merged.lists)
    finally:
        merging.PIECE = before
    living = {rid: counts for rid, counts in enumerate(texts) if rid not in dead}
    assert found == content(living)
    assert dict(zip(rids.tolist(), lengths.tolist(), strict=True)) == {r: sum(c.values()) for r, c in living.items()}
    assert rids.tolist() == sorted(living, key=lambda rid: (rid % 3, rid))
    assert np.repeat(scopes, np.diff(starts)).tolist() == [rid % 3 for rid in rids.tolist()]


@given(st.lists(TEXTS, max_size=20), st.sets(st.integers(0, 19)))
@settings(max_examples=100, deadline=None)
def test_a_packed_tail_is_unpacked_as_it_was(texts: list[Text], dead: set[int]) -> None:
    numbered = dict(enumerate(texts))
    made = tail(numbered)
    for doc in dead & set(numbered):
        made.kill(doc)
    source, plain = unpack(b"".join(made.pack())), gathered(numbered)
    assert source.rids.tolist() == plain.rids.tolist()
    assert source.lengths.tolist() == plain.lengths.tolist()
    assert source.scopes.tolist() == plain.scopes.tolist()
    assert source.alive.tolist() == [int(rid not in dead) for rid in numbered]
    for one, other in zip(source.postings, plain.postings, strict=True):  # type: ignore[call-overload]
        assert list(one) == list(other)


def test_a_batch_cut_short_is_refused() -> None:
    data = b"".join(tail({1: {"a": 1}}).pack())
    with pytest.raises(ValueError, match="cut short"):
        unpack(data[:-1])


TEXT = {n: {"often": 1 + n % 3, f"once{n}": LARGE + n, "many": LARGE - 1 + n % 4} for n in range(50)}


def segment_of(folder: Path) -> tuple[IndexFolder, Any]:
    index = IndexFolder(folder, "stamp")
    index.fold(gathered(TEXT), {}, 1)
    return index, index._index._read_toc().segments[0]


def test_a_segment_says_what_was_written_whoever_reads_it(tmp_path: Path) -> None:
    index, segment = segment_of(tmp_path)
    rids = read_documents(tmp_path / segment.make_filename(".doc")).rids
    words = map_words(tmp_path / segment.make_filename(".pst"))
    singly: Content = {}
    for (_, term), info in FlatCodec().terms_reader(index._storage, segment).items():
        docs, packed, more = read_list(words, info)
        tfs = frequencies(packed, more)
        singly[term.decode()] = dict(zip(rids[docs].tolist(), tfs.tolist(), strict=True))
        assert (info.min_id(), info.max_id()) == (int(docs[0]), int(docs[-1]))
        assert (info.weight(), info.max_weight()) == pytest.approx((tfs.sum(), tfs.max()))
    assert singly == content(TEXT)
    postings = SegmentPostings(index._storage, segment)
    for first in range(0, len(postings.terms), 7):
        last = min(first + 7, len(postings.terms))
        piece = Flat(postings.terms[first:last], postings.counts[first:last], *postings.read(first, last))
        assert told(rids, [piece]).items() <= singly.items()


def test_a_term_is_noted_as_whoosh_notes_it(tmp_path: Path) -> None:
    index, segment = segment_of(tmp_path)
    reader = FlatCodec().terms_reader(index._storage, segment)
    for key, noted in reader._tindex.items():
        info = whoosh3.W3TermInfo.from_bytes(noted)
        length = info._length if isinstance(info._length, int) else info._length[0]
        info.set_extent(info._offset, length)
        info._minlength, info._maxlength = 1, 0
        assert info.to_bytes() == noted, key


def test_a_term_that_points_outside_is_refused(tmp_path: Path) -> None:
    index, segment = segment_of(tmp_path)
    path = tmp_path / segment.make_filename(".pst")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="outside"):
        SegmentPostings(index._storage, segment)


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([], []),
        ([5], []),
        ([900, 5], []),  # one large and one small: as it should be
        ([900, 5, 7], [1, 2]),
        ([5, 900, 7, 8], [0, 2, 3]),
        ([90_000, 15_000, 5, 4_000], [1, 2, 3]),
        ([900_000, 25_000, 10, 20], [2, 3]),  # the middle one is left until the others weigh enough
        ([900_000, 25_000, 6_000, 300], [1, 2, 3]),
        ([900_000, 25_000, 10], []),
    ],
)
def test_a_quiet_moment_leaves_one_large_and_one_small_segment(sizes: list[int], chosen: list[int]) -> None:
    assert merging.to_merge([(size, 0) for size in sizes], tidy=True) == chosen
    assert merging.to_merge([(size, 0) for size in sizes]) == []  # in a busy one they may be eight


def test_an_index_left_alone_puts_its_small_segments_together(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_TIDY_SECONDS", 0.2)
    for rid in range(4):
        bench.put(rid, f"common word{rid}")
        bench.index.flush()
    before = bench.hits("common word2")
    end = time.monotonic() + 30
    while len(list((bench.directory / "current").glob("*.pst"))) > 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(list((bench.directory / "current").glob("*.pst"))) <= 2
    after = bench.hits("common word2")
    assert after.rids.tolist() == before.rids.tolist() == [2, 0, 1, 3]
    assert after.scores.tobytes() == before.scores.tobytes()
