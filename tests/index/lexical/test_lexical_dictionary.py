"""The dictionary finds what Whoosh's own reader finds, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC

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


def test_a_file_of_another_make_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.trm"
    path.write_bytes(b"nothing of the kind" * 300)
    with pytest.raises(Exception, match="header"):
        Dictionary(path)
