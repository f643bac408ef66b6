"""The dictionary finds what Whoosh's own reader finds, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC

from memxd._fast import load_kernels
from memxd.index.lexical.codec import FIELD, INDEX_NAME, TERMS, FlatCodec, schema
from memxd.index.lexical.dictionary import Dictionary
from memxd.index.lexical.postings import Gathered
from memxd.index.lexical.writer import IndexFolder


def test_every_term_is_found_where_whoosh_finds_it(tmp_path: Path) -> None:
    gathered = Gathered()
    names = [f"word{n}" for n in range(3_000)] + ["中文", "é", "z" * 300]
    for rid in range(60):
        gathered.add(rid, dict.fromkeys(names[rid::7], 1 + rid), 9, 1)
    IndexFolder(tmp_path, "stamp").fold(gathered.source(), {}, 1)
    storage = FileStorage(str(tmp_path))
    (segment,) = TOC.read(storage, INDEX_NAME, schema=schema()).segments
    whoosh = FlatCodec().terms_reader(storage, segment)
    dictionary = Dictionary(tmp_path / segment.make_filename(TERMS))
    for name in names:
        info = whoosh.term_info(FIELD, name.encode())
        offset, size = info.extent()
        assert dictionary.find(name) == (info.doc_frequency(), offset, size[0] if isinstance(size, tuple) else size)
    assert [dictionary.find(f"none{n}") for n in range(500)] == [None] * 500
    assert dictionary.find("") is None


def test_both_kernels_find_the_same_also_in_what_is_damaged(tmp_path: Path) -> None:
    gathered = Gathered()
    names = [f"w{n}" for n in range(40)] + ["x" * n for n in (50, 53, 54, 61, 62, 63, 117, 118, 300, 900)]
    gathered.add(1, dict.fromkeys(names, 1), 9, 1)
    IndexFolder(tmp_path, "stamp").fold(gathered.source(), {}, 1)
    (path,) = tmp_path.glob(f"*{TERMS}")
    dictionary = Dictionary(path)
    whole, tables, field = path.read_bytes(), dictionary._tables, dictionary._field
    kernels = [load_kernels(name).text for name in ("c", "py")]
    rng = random.Random(5)

    def outcomes(data: bytes, name: str) -> list[object]:
        found: list[object] = []
        for kernel in kernels:
            try:
                found.append(kernel.find_term(data, tables, field, name))
            except ValueError as error:
                found.append(str(error))
        return found

    for name in [*names, "none", "", "x" * 2_000]:
        first, second = outcomes(whole, name)
        assert first == second
        assert (first is not None) == (name in names)
    for _ in range(3_000):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 4, 60])):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 127, 128, 255])
        first, second = outcomes(bytes(data[: rng.choice([len(data), rng.randrange(len(data))])]), rng.choice(names))
        assert first == second
    for kernel in kernels:
        with pytest.raises(ValueError, match="256"):
            kernel.find_term(whole, tables[:-1], field, "w1")
        with pytest.raises(ValueError, match="surrogates"):
            kernel.find_term(whole, tables, field, "\ud800")


def test_a_file_of_another_make_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.trm"
    path.write_bytes(b"nothing of the kind" * 300)
    with pytest.raises(Exception, match="header"):
        Dictionary(path)
