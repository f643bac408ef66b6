"""The peers of the keyword leg: tantivy, bm25s, SQLite FTS5 and Whoosh's own searcher over the same texts.

Owns how each is built and asked, by its own documented fastest way: any word of the question, the best 30, no snippets,
no stored fields, no counting of all matches. What can be kept on disk is kept below a folder and found again. Imports
each library only when that peer is asked for. Called by ``keyword``.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from memxd.bench.progress import Step

#: A question to a peer; what it gives is not compared, since each analyses texts its own way.
Ask = Callable[[str], object]
#: Builds or opens a peer: texts (read only when it is built), a folder of its own, progress.
Build = Callable[[Iterable[str], Path, Step], Ask]

_K = 30
_WORDS = re.compile(r"\w+")
_DONE = "done"


def words(text: str) -> list[str]:
    """Lower-case words, each once: what peers with a query language are asked, so that no sign is an operator."""
    return list(dict.fromkeys(_WORDS.findall(text.lower())))


def _counted(texts: Iterable[str], step: Step) -> Iterator[tuple[int, str]]:
    for number, text in enumerate(texts):
        if number % 5_000 == 0:
            step(number)
        yield number, text


def _fresh(folder: Path) -> bool:
    """Whether ``folder`` must be filled; then it is there and empty."""
    if (folder / _DONE).is_file():
        return False
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return True


def tantivy(texts: Iterable[str], folder: Path, step: Step) -> Ask:
    """One segment, default tokenizer, mapped from disk; matches not counted, which lets it skip by block maxima (its
    Python binding counts by default, which takes a sixth longer)."""
    import tantivy as library

    schema = library.SchemaBuilder()
    schema.add_text_field("text", stored=False, tokenizer_name="default", index_option="freq")
    schema.add_integer_field("number", stored=True)
    built = _fresh(folder)
    index = library.Index(schema.build(), path=str(folder))
    if built:
        writer = index.writer(512_000_000, 1)
        for number, text in _counted(texts, step):
            writer.add_document(library.Document(text=text, number=number))
        writer.commit()
        writer.wait_merging_threads()
        (folder / _DONE).touch()
    index.reload()
    searcher = index.searcher()

    def ask(question: str) -> object:
        query = index.parse_query(" ".join(words(question)), ["text"])
        return searcher.search(query, _K, count=False).hits

    return ask


def bm25s(texts: Iterable[str], folder: Path, step: Step) -> Ask:
    """Scores computed ahead, kept on disk; one thread. ``k1`` and ``b`` as memxd's."""
    import bm25s as library

    if _fresh(folder):
        corpus = [text for _, text in _counted(texts, step)]
        tokens = library.tokenize(corpus, token_pattern=r"(?u)\w+", stopwords=None, show_progress=False)
        made = library.BM25(k1=1.2, b=0.75, method="lucene")
        made.index(tokens, show_progress=False)
        made.save(str(folder))
        (folder / _DONE).touch()
    retriever = library.BM25.load(str(folder), load_corpus=False)
    known: dict[str, int] = retriever.vocab_dict

    def ask(question: str) -> object:
        asked = [word for word in words(question) if word in known]
        return retriever.retrieve([asked], k=_K, show_progress=False, n_threads=0) if asked else None

    return ask


def fts5(texts: Iterable[str], folder: Path, step: Step) -> Ask:
    """A contentless table, words joined by OR, ordered by its own bm25."""
    built = _fresh(folder)
    database = sqlite3.connect(folder / "fts5.db", check_same_thread=False)
    if built:
        database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, content='', detail=full)")
        database.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", _counted(texts, step))
        database.execute("INSERT INTO texts(texts) VALUES ('optimize')")
        database.commit()
        (folder / _DONE).touch()

    def ask(question: str) -> object:
        match = " OR ".join(f'"{word}"' for word in words(question))
        sql = f"SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT {_K}"
        return database.execute(sql, (match,)).fetchall()

    return ask


def whoosh(texts: Iterable[str], folder: Path, step: Step) -> Ask:
    """Whoosh's own codec and searcher (BM25F), one segment, nothing stored, no stop words, words joined by OR."""
    from whoosh import index as library
    from whoosh.analysis.analyzers import StandardAnalyzer
    from whoosh.fields import TEXT, Schema
    from whoosh.query.compound import Or
    from whoosh.query.terms import Term

    schema = Schema(text=TEXT(analyzer=StandardAnalyzer(stoplist=None, minsize=1), phrase=False))
    if _fresh(folder):
        made: Any = library.create_in(str(folder), schema)
        writer = made.writer(limitmb=512)
        for _, text in _counted(texts, step):
            writer.add_document(text=text)
        writer.commit(optimize=True)
        (folder / _DONE).touch()
    searcher: Any = library.open_dir(str(folder)).searcher()

    def ask(question: str) -> object:
        return searcher.search(Or([Term("text", word) for word in words(question)]), limit=_K)

    return ask


#: Asked in turn with memxd: the others would leave it nothing of the processor's caches.
CLOSE = "tantivy"
#: Every peer with the largest store it is asked at (it takes too long beyond) and how many questions it gets at most.
PEERS: dict[str, tuple[Build, int, int]] = {
    CLOSE: (tantivy, 10_000_000, 100_000),
    "bm25s": (bm25s, 1_000_000, 100_000),
    "sqlite fts5": (fts5, 250_000, 40),
    "whoosh": (whoosh, 250_000, 40),
}
