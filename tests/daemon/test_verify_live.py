"""Verify finds what should not be and nothing else; after Compact no file holds anything of an erased memory."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from typing import Any

from commandkit import memx

from memxd.client import AsyncClient, Client


def fill(client: Client) -> list[str]:
    ids = [client.store(f"fact number {n} of {n * n}", tags=[f"tag {n % 3}"]).memory.id for n in range(30)]
    client.update(ids[0], content="another fact")
    client.update(ids[1], state="archived")
    client.delete(ids[2])
    client.store("a newer fact", supersedes=[ids[3]])
    client.store("<private>nothing of this is indexed</private>")
    client.create_link(ids[4], ids[5], "related")
    return ids


def test_a_sound_store_has_no_problems_also_while_it_is_written(daemon: Any, environ: dict[str, str]) -> None:
    done = threading.Event()
    with Client(daemon.socket) as client:
        fill(client)

        def write() -> None:
            with Client(daemon.socket) as other:
                number = 0
                while not done.is_set():
                    id = other.store(f"meanwhile {number}").memory.id
                    other.update(id, content=f"changed {number}")
                    number += 1
                    if number % 2:
                        other.delete(id)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                *_, last = client.verify()
                assert (last.finished, last.problems) == (True, ())
        finally:
            done.set()
            writer.join()
    told = memx(daemon, environ, "verify")
    assert (told.returncode, told.stdout.endswith("memories, everything is as it should be\n")) == (0, True)


def test_what_is_wrong_is_told_with_its_place(daemon: Any, start_daemon: Any, environ: dict[str, str]) -> None:
    with Client(daemon.socket) as client:
        ids = fill(client)
        client.flush()
    assert daemon.stop() == 0
    database = sqlite3.connect(daemon.data_dir / "memxd.db", isolation_level=None)
    database.execute("UPDATE memories SET content_hash = content_hash + 1 WHERE id = ?", (ids[7],))
    database.execute("UPDATE memories SET state = 2 WHERE id = ?", (ids[8],))
    database.execute("UPDATE chunks SET vector = zeroblob(length(vector)) WHERE rid = "
                     "(SELECT rid FROM memories WHERE id = ?)", (ids[9],))  # fmt: skip
    database.execute("UPDATE links SET target_rid = 9999 WHERE type = 2")
    database.execute("DELETE FROM chunks WHERE rid = (SELECT rid FROM memories WHERE id = ?)", (ids[10],))
    database.close()
    again = start_daemon()
    with Client(again.socket) as client:
        *_, last = client.verify()
    found = {(p.part, ids.index(p.id) if p.id else None) for p in last.problems}
    assert {
        ("database", None),
        ("database", 7),
        ("columns", 7),
        ("columns", 8),
        ("vector", 9),
        ("vector", None),
    } == found
    told = memx(again, environ, "verify", "--json")
    assert (told.returncode, len(json.loads(told.stdout)["problems"])) == (5, len(last.problems))
    assert "memx rebuild" in memx(again, environ, "verify").stderr


def test_after_compact_no_file_holds_anything_of_an_erased_memory(daemon: Any, environ: dict[str, str]) -> None:
    words = (b"zyxwvq", b"qqtagqq", b"oldzyxw", b"keymetaq")
    with Client(daemon.socket) as client:
        kept = client.store("a fact that stays", tags=["stays"]).memory.id
        gone = client.store("oldzyxw before", tags=["qqtagqq"], metadata={"keymetaq": 1}).memory.id
        client.update(gone, content="zyxwvq now")
        client.flush()
        assert words_found(daemon, words)
        client.delete(gone)
        done = memx(daemon, environ, "compact")
        assert (done.returncode, "columns: written anew, 1 entries" in done.stdout) == (0, True), done.stderr
        assert words_found(daemon, words) == set()
        (daemon.data_dir / "before-restore-20260101-000000").mkdir()
        again = memx(daemon, environ, "compact")
        assert again.stdout.startswith(
            "vector: nothing erased was left in it\nkeyword: nothing erased was left in it\n"
        )
        assert "before-restore-20260101-000000" in again.stderr
        (daemon.data_dir / "before-restore-20260101-000000").rmdir()
        assert client.search("a fact that stays").hits[0].memory.id == kept

    async def both() -> tuple[Any, Any]:
        async with AsyncClient(daemon.socket) as client:
            compacted = [step async for step in client.compact()]
            return compacted, [step async for step in client.verify()]

    compacted, verified = asyncio.run(both())
    assert compacted[-1].finished
    assert (verified[-1].finished, verified[-1].problems, verified[-1].done) == (True, (), 1)


def words_found(daemon: Any, words: tuple[bytes, ...]) -> set[bytes]:
    data = b"".join(path.read_bytes() for path in daemon.data_dir.rglob("*") if path.is_file())
    return {word for word in words if word in data}
