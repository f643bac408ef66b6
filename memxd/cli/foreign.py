"""Other systems' files as lines of ours: MemX, memex, the MCP memory server, mem0 (docs/OPERATIONS.md).

Owns what each of their fields becomes. Ids that are UUIDs stay, others are made of what they name, so that the same
file gives the same ids again. Vectors are not taken along: they are of other models. What cannot be read becomes a line
that the daemon refuses in its place, with the reason. Called by ``memx import --from``.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memxd.errors import InvalidArgumentError

_NAMES = uuid.UUID("6d656d78-6400-5000-8000-000000000001")
_TYPES = ("episodic", "semantic", "procedural", "emotional", "reflective")
_LINKS = ("similar", "related", "contradicts", "extends", "supersedes", "caused_by", "temporal")
_COPY = re.compile(r"^COPY\s+(?:\S+\.)?\"?memories\"?\s*\((.*)\)\s+FROM\s+stdin;", re.IGNORECASE)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TAG = 64

Lines = Iterator[dict[str, Any]]


def read(system: str, path: Path) -> Iterator[bytes]:
    """The lines of a file of ``system``: "memx", "memex", "mcp-memory" or "mem0". Raises InvalidArgumentError."""
    try:
        stored = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        readers: dict[str, Callable[[], Lines]] = {
            "memx": lambda: _memx(path),
            "memex": lambda: _by_scope(_memex(row, stored) for row in _memex_rows(_text(path))),
            "mcp-memory": lambda: _graph(_text(path), stored),
            "mem0": lambda: _by_scope(_mem0(row, stored) for row in _list(json.loads(_text(path)))),
        }
        for line in readers[system]():
            kept = {key: value for key, value in line.items() if value not in (None, [], {}, "")}
            yield json.dumps(kept, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
    except OSError as error:
        raise InvalidArgumentError.field("file", f"cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise InvalidArgumentError.field("file", f"is no file of {system}: nested too deep") from error
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise InvalidArgumentError.field("file", f"is no file of {system}: {error}") from error


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _id(system: str, *names: object) -> str:
    """The id itself when it is a UUID, else one made of the names."""
    if len(names) == 1:
        try:
            return str(uuid.UUID(str(names[0])))
        except ValueError:
            pass  # not a UUID: named below
    return str(uuid.uuid5(_NAMES, "\0".join([system, *map(str, names)])))


def _time(value: Any, otherwise: datetime | None = None) -> str | None:
    """Seconds since 1970, or a time as text; without a zone it is taken as UTC."""
    if value is None or value == "":
        return None if otherwise is None else otherwise.isoformat()
    moment = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _word(value: Any, known: tuple[str, ...], otherwise: str) -> str:
    word = str(value or "").strip().lower()
    return word if word in known else otherwise


def _json(value: Any, kind: type, key: str) -> Any:
    """A column that holds JSON, as text or read already; what is of another kind is kept under ``key``."""
    found = json.loads(value) if isinstance(value, str) and value else value
    return found if isinstance(found, kind) or not found else {key: found} if kind is dict else [str(found)]


def _memx(path: Path) -> Lines:
    from memxd.store import memx_file

    for table, row in memx_file.rows(path):
        common = {"id": _id("memx", row["id"]), "created_at": _time(row["created_at"])}
        metadata = _json(row.get("metadata"), dict, "metadata")
        if table == "memory_links":
            kind = _word(row["link_type"], _LINKS, "related")
            yield {
                "kind": "link",
                **common,
                "source_id": _id("memx", row["source_id"]),
                "target_id": _id("memx", row["target_id"]),
                "type": kind,
                "strength": row.get("strength"),
                "bidirectional": bool(row.get("bidirectional")) and kind != "supersedes",
                "metadata": metadata,
            }
            continue
        yield {
            "kind": "memory",
            **common,
            "content": row["content"],
            "type": _word(row["type"], _TYPES, "semantic"),
            "tags": _json(row.get("tags"), list, "tags"),
            "metadata": metadata,
            "importance": row.get("importance"),
            "updated_at": _time(row.get("updated_at")),
            "access_count": row.get("access_count"),
            "last_accessed_at": _time(row.get("last_accessed_at")),
            "retrieval_count": row.get("retrieval_count"),
            "last_retrieved_at": _time(row.get("last_retrieved_at")),
        }


def _by_scope(records: Iterable[tuple[tuple[str, str], dict[str, Any]]]) -> Lines:
    """The memories of each scope behind a header, in the order in which scopes first appear."""
    scopes: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for scope, line in records:
        scopes.setdefault(scope, []).append(line)
    for (agent, user), lines in scopes.items():
        yield {"kind": "header", "format": "memxd-export", "version": 1, "agent_id": agent, "user_id": user}
        yield from lines


def _scope(row: dict[str, Any]) -> tuple[str, str]:
    return str(row.get("agent_id") or "default"), str(row.get("user_id") or "default")


def _memex(row: dict[str, Any], stored: datetime) -> tuple[tuple[str, str], dict[str, Any]]:
    importance = row.get("importance")
    return _scope(row), {
        "kind": "memory",
        "id": _id("memex", row["id"]),
        "content": row["content"],
        "type": _word(row.get("memory_type"), _TYPES, "semantic"),
        # Theirs is 0..2 with 1 in the middle.
        "importance": None if importance in (None, "") else float(importance) / 2,
        "metadata": _json(row.get("metadata"), dict, "metadata"),
        "created_at": _time(row.get("created_at"), stored),
        "updated_at": _time(row.get("updated_at")),
    }


def _memex_rows(text: str) -> list[dict[str, Any]]:
    """Rows of a Postgres dump (COPY), or of JSON: a list, or an object a line."""
    lines = text.split("\n")  # U+2028 and the like are no ends of lines here
    for number, line in enumerate(lines):
        if found := _COPY.match(line):
            names = [name.strip().strip('"') for name in found[1].split(",")]
            end = lines.index("\\.", number)
            return [dict(zip(names, map(_unescaped, row.split("\t")), strict=True)) for row in lines[number + 1 : end]]
    if text.lstrip().startswith("["):
        return _list(json.loads(text))
    return [json.loads(line) for line in lines if line.strip()]


def _unescaped(cell: str) -> str | None:
    if cell == "\\N":
        return None
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), cell)


def _list(value: Any) -> list[dict[str, Any]]:
    """The records: a list, or an object that holds it."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("results", "memories", "data") if key in value), None)
    return list(value)


def _mem0(row: dict[str, Any], stored: datetime) -> tuple[tuple[str, str], dict[str, Any]]:
    metadata = dict(row.get("metadata") or {})
    metadata |= {key: row[key] for key in ("run_id", "app_id", "actor_id", "role") if row.get(key)}
    return _scope(row), {
        "kind": "memory",
        "id": _id("mem0", row["id"]),
        "content": row["memory"] if "memory" in row else row["data"],
        "tags": [str(tag)[:_TAG] for tag in row.get("categories") or ()],
        "metadata": metadata,
        "created_at": _time(row.get("created_at"), stored),
        "updated_at": _time(row.get("updated_at")),
    }


def _graph(text: str, stored: datetime) -> Lines:
    """Each observation and each relation is a memory; a relation is linked with the entities that it joins."""
    records = [json.loads(line) for line in text.split("\n") if line.strip()]
    at = stored.isoformat()
    first: dict[str, str] = {}
    for entity in (record for record in records if record["type"] == "entity"):
        name, kind = entity["name"], entity.get("entityType", "")
        for observation in entity.get("observations") or [""]:
            id = _id("mcp-memory", name, observation)
            first.setdefault(name, id)
            yield {
                "kind": "memory",
                "id": id,
                "content": f"{name}: {observation}" if observation else f"{name} ({kind})" if kind else name,
                "tags": [kind[:_TAG]] if kind.strip() else [],
                "metadata": {"entity": name, "entity_type": kind},
                "created_at": at,
            }
    for relation in (record for record in records if record["type"] == "relation"):
        source, target, kind = relation["from"], relation["to"], relation["relationType"]
        id = _id("mcp-memory", source, kind, target)
        yield {
            "kind": "memory",
            "id": id,
            "content": f"{source} {kind.replace('_', ' ')} {target}",
            "metadata": {"from": source, "relation": kind, "to": target},
            "created_at": at,
        }
        for end in dict.fromkeys(name for name in (source, target) if name in first):
            yield {
                "kind": "link",
                "id": _id("mcp-memory", id, first[end]),
                "source_id": id,
                "target_id": first[end],
                "type": "related",
                "created_at": at,
            }
