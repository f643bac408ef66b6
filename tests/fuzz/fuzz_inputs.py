"""Files that are not what they claim to be: the config file, and everything that import reads.

Owns the sorts of files, what a sound one looks like, how it is damaged, and what may come of reading it: an answer, or
a refusal of ours, and neither anything else nor for ever. ``check`` is run on bytes, so that what once broke something
is a file in ``corpus/`` that a test reads again. Every function is a pure product of its random generator, but for
``check``, which gets a folder of its own.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz_bytes import mutate
from memxd.cli import foreign
from memxd.config import SETTINGS, Config
from memxd.engine.reading_lines import named, read_line
from memxd.errors import MemxdError
from memxd.model import Scope

CORPUS = Path(__file__).parent / "corpus"
#: Seconds that reading one small file may take, on a busy machine.
PATIENCE = 20.0
UUID = "0198c5f2-7c1e-7b3a-9d7e-2f1c3a4b5d6e"
NASTY = (
    "1e999", "-1e999", "NaN", "1" * 5_000, "-9223372036854775809", "1e308", '"\\ud800"', "[" * 3_000, '{"a":' * 3_000,
    "null", "true", '""', '"\\u0000"', "[]", "{}", "0", "-1", '"~nobody-here/x"', '"\x00"', "9e18", "253402300800",
    "0x" + "f" * 5_000, "1979-05-27T07:32:00Z", "inf",
)  # fmt: skip


@dataclass(frozen=True)
class Sort:
    """One sort of file. ``read`` may raise MemxdError and nothing else."""

    name: str
    sound: Callable[[random.Random], bytes]
    read: Callable[[Path], object]

    def make(self, rng: random.Random) -> bytes:
        """A file, mostly damaged."""
        raw = self.sound(rng)
        which = rng.randrange(10)
        if which == 0:
            return raw
        if which == 1:
            return rng.randbytes(rng.choice((0, 1, 50, 5_000)))
        if which < 6:
            raw = _swapped(rng, raw)
        return mutate(rng, raw, self.sound(rng)) if which > 3 else raw

    def check(self, data: bytes, folder: Path) -> str | None:
        """What is wrong with how this file is read; None = nothing."""
        path = folder / f"{self.name}.input"
        path.write_bytes(data)
        path.chmod(0o600)
        began = time.monotonic()
        try:
            self.read(path)
        except MemxdError:
            pass  # a refusal
        except Exception as error:
            return f"{self.name}: {type(error).__name__}: {str(error)[:200]}"
        took = time.monotonic() - began
        return f"{self.name}: took {took:.0f} s" if took > PATIENCE else None


def _swapped(rng: random.Random, raw: bytes) -> bytes:
    """One value of the text replaced by a nasty one."""
    ends = [at for at, byte in enumerate(raw) if byte in b',:=}]\n\t"']
    if len(ends) < 2:
        return raw
    at = rng.randrange(len(ends) - 1)
    nasty = rng.choice(NASTY).encode("utf-8", "surrogatepass")
    return raw[: ends[at] + 1] + nasty + raw[ends[at + rng.choice((0, 1))] :]


def _config(rng: random.Random) -> bytes:
    lines = []
    for setting in rng.sample(SETTINGS, rng.randint(1, 6)):
        value = rng.choice((setting.default, "text", 5, -1, 1e300, True, [1], {"a": 1}))
        lines.append(f"{setting.name} = {'{ a = 1 }' if isinstance(value, dict) else json.dumps(value, default=str)}")
    return "\n".join(lines).replace("null", '""').encode()


def _read_config(path: Path) -> object:
    return Config.load(environ={"HOME": str(path.parent)}, file=path)


def _lines(rng: random.Random) -> bytes:
    memory = {
        "kind": "memory", "id": UUID, "content": "Ada drinks tea.", "type": "semantic", "tags": ["tea"],
        "metadata": {"a": [1, {"b": None}]}, "importance": 0.5, "created_at": "2026-03-01T09:30:00.000000Z",
        "updated_at": "2026-03-02T10:00:00Z", "access_count": 3, "event_at": "2026-03-01T09:30:00+05:30",
        "model_id": "hashing", "chunks": [{"begin": 0, "end": 5, "vector": "AAAAAAAA"}],
    }  # fmt: skip
    version = {
        "kind": "version", "memory_id": UUID, "number": 1, "content": "old", "type": "semantic", "importance": 0.5,
        "updated_at": "2026-03-01T09:30:00Z", "replaced_at": "2026-03-02T10:00:00Z",
    }  # fmt: skip
    link = {
        "kind": "link", "id": UUID, "source_id": UUID, "target_id": UUID, "type": "related", "strength": 0.7,
        "created_at": "2026-03-02T11:00:00Z", "metadata": {"why": "so"},
    }  # fmt: skip
    header = {"kind": "header", "format": "memxd-export", "version": 1, "agent_id": "a", "user_id": "u"}
    some = rng.choices((header, memory, version, link), k=rng.randint(1, 4))
    return b"".join(json.dumps(each).encode() + b"\n" for each in some)


def _read_lines(path: Path) -> object:
    for raw in path.read_bytes().split(b"\n"):
        named(raw)
        try:
            read_line(raw, Scope())
        except MemxdError:
            continue  # refused, and the next line is read
    return None


def _memex(rng: random.Random) -> bytes:
    row = {"id": 7, "content": "Ada drinks tea.", "memory_type": "episodic", "importance": 1.5, "agent_id": "a",
           "metadata": {"k": "v"}, "created_at": "2026-01-01T00:00:00"}  # fmt: skip
    if rng.random() < 0.5:
        copied = "id, content, memory_type, importance, metadata, created_at"
        cells = '7\tAda\\tdrinks\\n\tepisodic\t1.5\t{"k": 1}\t2026-01-01 00:00:00+00'
        return f"SET x = 1;\nCOPY public.memories ({copied}) FROM stdin;\n{cells}\n\\.\n".encode()
    return json.dumps([row] * rng.randint(1, 3)).encode()


def _graph(rng: random.Random) -> bytes:
    entity = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["drinks tea", "likes cats"]}
    relation = {"type": "relation", "from": "Ada", "to": "ACME", "relationType": "works_at"}
    return b"\n".join(json.dumps(each).encode() for each in rng.choices((entity, relation), k=rng.randint(1, 4)))


def _mem0(rng: random.Random) -> bytes:
    row = {"id": UUID, "memory": "Ada drinks tea.", "user_id": "ada", "categories": ["food"], "metadata": {"k": 1},
           "created_at": rng.choice((1_700_000_000, "2026-01-01T00:00:00Z")), "run_id": "r"}  # fmt: skip
    return json.dumps(rng.choice(([row], {"results": [row]}, {"memories": [row, row]}))).encode()


def _memx(rng: random.Random) -> bytes:
    """A SQLite file, in which values may be of any type."""
    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE TABLE memories(id, content, embedding, type, tags, metadata, importance, access_count,"
        " last_accessed_at, created_at, updated_at, retrieval_count, last_retrieved_at);"
        "CREATE TABLE memory_links(id, source_id, target_id, link_type, strength, bidirectional, metadata,"
        " created_at, updated_at);"
    )

    def odd(value: object) -> object:
        return rng.choice((None, -1, 2**62, 1e308, "", "[", b"\xff", "9" * 30)) if rng.random() < 0.1 else value

    memory = (UUID, "Ada drinks tea.", b"\0", "episodic", '["tea"]', '{"a": 1}', 0.9, 2, 1, 1_700_000_000, 2, 3, None)
    link = ("l", UUID, UUID, "related", 0.5, 1, None, 1_700_000_000, 1)
    for _ in range(rng.randint(1, 3)):
        database.execute(f"INSERT INTO memories VALUES ({','.join('?' * 13)})", [odd(v) for v in memory])
        database.execute(f"INSERT INTO memory_links VALUES ({','.join('?' * 9)})", [odd(v) for v in link])
    database.commit()
    raw = database.serialize()
    database.close()
    return raw


def _reader(system: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        lines = list(foreign.read(system, path))
        for line in lines:
            try:
                read_line(line.rstrip(b"\n"), Scope())
            except MemxdError:
                continue  # the daemon refuses it in its place
        return None

    return read


SORTS = {
    sort.name: sort
    for sort in (
        Sort("config", _config, _read_config),
        Sort("lines", _lines, _read_lines),
        Sort("memex", _memex, _reader("memex")),
        Sort("mcp-memory", _graph, _reader("mcp-memory")),
        Sort("mem0", _mem0, _reader("mem0")),
        Sort("memx", _memx, _reader("memx")),
    )
}


def attack(sort: Sort, folder: Path, seed: int, *, count: int = 0, seconds: float = 0.0) -> Iterator[tuple[bytes, str]]:
    """Files one after the other, until ``count`` or ``seconds`` are over (0 = no bound); those that broke something,
    each kind once, with what happened."""
    rng, end = random.Random(f"{sort.name} {seed}"), time.monotonic() + seconds
    seen: set[str] = set()
    number = 0
    while (not count or number < count) and (not seconds or time.monotonic() < end):
        number += 1
        data = sort.make(rng)
        problem = sort.check(data, folder)
        if problem is not None and problem[:60] not in seen:
            seen.add(problem[:60])
            yield data, problem


def save(sort: Sort, data: bytes) -> Path:
    """Keep what broke something, for the test that reads it again."""
    folder = CORPUS / sort.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:12]
    path.write_bytes(data)
    return path
