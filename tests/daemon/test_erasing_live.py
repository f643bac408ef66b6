"""After Delete and Compact no file of the data directory holds anything of an erased memory, in whatever form.

Every file is looked through, whatever made it: database, log, indexes and their tails, what is kept of a damaged index,
kept answers, the daemon's own log. Not erased, as docs/OPERATIONS.md says: backups, exports, stores set aside, copies
from before an upgrade; the names of scopes, and for a day request ids.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandkit import memx

from memxd.client import Client

#: Where in a memory: a word that stands nowhere else. Some are not ASCII.
WORDS = {
    "content": "zyxwvqone",
    "cyrillic": "щукожвотр",
    "chinese": "鑰匙龍藏處",
    "earlier": "oldzyxwtwo",
    "private": "hiddenqqx",
    "tag": "qqtagthree",
    "key": "keymetaqfour",
    "value": "valmetaqfive",
    "deep": "deepmetaqsix",
    "source": "srcqqseven",
    "link": "linkmetaqqeight",
    "asked": "askedqqnine",
}


def forms(word: str) -> Iterator[bytes]:
    """The word as files may spell it, and what is left of it as a term of an index."""
    stem = word[:8]
    for text in {stem, stem.upper(), stem.capitalize()}:
        yield text.encode()
        yield text.encode("utf-16-le")
        yield text.encode("utf-16-be")
        yield json.dumps(text)[1:-1].encode()
        yield text.encode("unicode_escape")


def found(folder: Path) -> dict[str, set[str]]:
    """Which words stand in which files, by the file's path within the folder."""
    out: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            names = {name for name, word in WORDS.items() if any(form in data for form in forms(word))}
            if names:
                out[str(path.relative_to(folder))] = names
    return out


def holding(folder: Path, needle: bytes) -> list[str]:
    return [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and needle in p.read_bytes()]


def tell(client: Client) -> str:
    """Store, change, link and find a memory with every word in it; its id."""
    w = WORDS
    other = client.store("a fact that stays", tags=["stays"]).memory.id
    gone = client.store(f"{w['earlier']} was here first", source=w["source"], request_id="told once").memory.id
    text = f"{w['content']} {w['cyrillic']} {w['chinese']} <private>{w['private']}</private> and so on"
    metadata = {w["key"]: w["value"], "inner": {"list": [w["deep"], 1]}}
    client.update(gone, content=text, tags=[w["tag"]], metadata=metadata, request_id="changed once")
    client.create_link(gone, other, "related", metadata={"why": w["link"]})
    client.search(f"{w['asked']} {w['content']}")
    client.search(text, mode="keyword")
    client.flush()
    return gone


def test_nothing_of_an_erased_memory_is_left_in_any_file(start_daemon: Any, environ: dict[str, str]) -> None:
    daemon = start_daemon("--log-level", "debug")
    with Client(daemon.socket) as client:
        id_ = tell(client)
        client.store("a further fact, so that an index has something to keep")
        client.flush()
        with sqlite3.connect(f"file:{daemon.data_dir}/memxd.db?mode=ro", uri=True) as database:
            [vector] = database.execute(
                "SELECT c.vector FROM chunks AS c JOIN memories AS m USING (rid) WHERE m.id = ?", (id_,)
            ).fetchone()
        database.close()
        before = found(daemon.data_dir)
        told = set().union(*before.values())
        assert told == set(WORDS) - {"asked"}, before
        assert any(path.startswith("index/keyword") for path in before), before
        middle = len(vector) // 2
        needle = vector[middle - 48 : middle + 48]
        assert np.frombuffer(needle, np.float16).any()
        assert len(holding(daemon.data_dir, needle)) >= 2
        client.delete(id_)
        done = memx(daemon, environ, "compact")
        assert done.returncode == 0, done.stderr
        assert found(daemon.data_dir) == {}
        assert holding(daemon.data_dir, needle) == []
        assert client.search("a fact that stays", mode="keyword").hits
    assert daemon.stop() == 0
    assert found(daemon.data_dir) == {}
    assert not any(word in daemon.log for word in WORDS.values())


DAMAGED = {
    "keyword": "keyword/current/manifest.json",
    "terms": "keyword/current/*.trm",
    "vector": "vector/manifest.bin",
    "columns": "columns/columns.bin",
}


@pytest.mark.parametrize("which", DAMAGED)
def test_what_is_left_of_a_damaged_index_goes_with_a_compaction(start_daemon: Any, which: str) -> None:
    daemon = start_daemon()
    with Client(daemon.socket) as client:
        id_ = tell(client)
    assert daemon.stop() == 0
    [file] = (daemon.data_dir / "index").glob(DAMAGED[which])
    file.write_bytes(file.read_bytes()[:-7] + b"damaged")
    daemon = start_daemon()
    with Client(daemon.socket) as client:
        client.delete(id_)
        if which == "keyword":
            assert any("broken" in path for path in found(daemon.data_dir))
        list(client.compact())
        assert found(daemon.data_dir) == {}
        assert client.search("a fact that stays", mode="keyword").hits
