"""Lines of an import that come together are answered, and stored, as if each had come alone."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from memxd.engine import Engine
from memxd.model import NO_FILTER, Change, Conflict, Filter, ImportStep, Ranking, Scope, SearchQuery

A, B = Scope("a"), Scope("b")
_LONG_AGO = "2025-01-01T00:00:00Z"


def _id(n: int) -> str:
    return f"0198c5f2-7c1e-7b3a-9d7e-{n:012x}"


def _memory(n: int, **more: Any) -> bytes:
    line = {"kind": "memory", "id": _id(n), "content": f"note {n}", "created_at": "2026-03-01T09:30:00Z"}
    return json.dumps(line | more).encode()


def _version(n: int, number: int = 1) -> bytes:
    times = {"updated_at": "2026-03-01T09:30:00Z", "replaced_at": "2026-03-02T09:30:00Z"}
    return json.dumps({"kind": "version", "memory_id": _id(n), "number": number, "content": "before", **times}).encode()


def _link(n: int, source: int, target: int, type: str = "related") -> bytes:
    ends = {"source_id": _id(source), "target_id": _id(target)}
    return json.dumps(
        {"kind": "link", "id": _id(n), **ends, "type": type, "created_at": "2026-03-01T09:30:00Z"}
    ).encode()


def _vector(engine: Engine, content: str) -> dict[str, Any]:
    info = engine._vectors.embedder.info
    vector = np.zeros(info.dimension, "<f2")
    vector[3] = 1
    chunk = {"start": 0, "end": len(content), "vector": b64encode(vector.tobytes()).decode()}
    return {"model_id": info.id, "chunks": [chunk]}


def _lines(engine: Engine) -> list[bytes]:
    return [
        _memory(1, tags=["b", "a", "b"], metadata={"n": 1, "deep": [1, None]}, importance=0.25, source="s"),
        _memory(2, state="archived", access_count=3, last_accessed_at="2026-03-03T08:00:00Z", event_at=_LONG_AGO),
        b"",
        _memory(3, content="note 3, private", private=True, valid_until="2036-01-01T00:00:00Z"),
        _version(3),
        b"no line at all",
        _memory(4, **_vector(engine, "note 4")),
        _memory(5, importance=7),
        _version(5),
        _memory(4, **_vector(engine, "note 4")),
        _memory(4, content="another note 4"),
        _memory(6),
        _memory(7, content="note 7 <private>secret</private> shown"),
        _link(20, 6, 7, "supersedes"),
        _link(21, 6, 99),
        _version(8),
        _memory(8),
        _memory(9),
    ]  # fmt: skip


def _taken(engine: Engine, scope: Scope, batches: Sequence[Sequence[bytes]], conflict: Conflict) -> list[Any]:
    steps: list[ImportStep] = list(engine.import_lines(scope, batches, conflict))
    refusals = [refusal for step in steps for refusal in step.refusals]
    last = steps[-1]
    return [refusals, (last.lines, last.added, last.unchanged, last.replaced, last.kept, last.refused)]


def _whole(engine: Engine, scope: Scope) -> list[str]:
    whole = b"".join(step.lines for step in engine.export(scope, include_private=True, vectors=True)).decode()
    return [line for line in whole.splitlines() if '"header"' not in line]


@pytest.mark.parametrize("conflict", list(Conflict))
def test_lines_in_one_group_are_taken_as_lines_that_come_alone(engine: Engine, conflict: Conflict) -> None:
    lines = _lines(engine)
    for more in (lines, [*lines, _memory(2, content="other"), _memory(10), _memory(9, content="other too")]):
        together = _taken(engine, A, [more], conflict)
        alone = _taken(engine, B, [[line] for line in more], conflict)
        assert together == alone
        assert _whole(engine, A) == _whole(engine, B)
    for wanted in (Filter(tags_all=frozenset({"a", "b"})), Filter(metadata={"n": 1}), Filter(importance_min=0.5)):
        assert engine.count(A, wanted)[0] == engine.count(B, wanted)[0]
    for text in ("note 4", "another", "secret", "shown"):
        asked = [SearchQuery(scope, text, k=20, ranking=Ranking(reject=False)) for scope in (A, B)]
        found = [[(hit.memory.content, hit.score) for hit in engine.search(query).hits] for query in asked]
        assert found[0] == found[1]


def test_a_run_tells_the_indexes_what_single_lines_tell(engine: Engine) -> None:
    told: dict[int, list[Change]] = {}
    listener = engine._store.on_commit
    assert listener is not None

    def note(changes: list[Change]) -> None:
        for change in changes:
            assert change.features is not None
            told.setdefault(change.features.scope_no, []).append(change)
        listener(changes)

    engine._store.on_commit = note
    lines = [line for line in _lines(engine) if b'"memory"' in line and _id(5).encode() not in line][:6]
    _taken(engine, A, [lines], Conflict.REFUSE)
    _taken(engine, B, [[line] for line in lines], Conflict.REFUSE)
    together, alone = told.values()

    def plain(change: Change) -> dict[str, Any]:
        features = change.features
        assert features is not None
        values = {name: getattr(features, name) for name in type(features).__slots__ if name not in ("rid", "scope_no")}
        spans = [(c.number, c.start, c.end, c.vector) for c in change.chunks or ()]
        return values | {"text": change.text, "chunks": spans, "dead": change.dead_vids}

    assert [plain(change) for change in together] == [plain(change) for change in alone]
    assert [change.revision for change in together] == sorted(change.revision for change in together)


def test_a_run_that_sqlite_refuses_is_taken_line_by_line(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from memxd.errors import StorageFailedError
    from memxd.store import WriteTxn

    def refuse(txn: WriteTxn, taken: Sequence[object]) -> None:
        if len(taken) > 1:
            raise StorageFailedError("not at once")

    monkeypatch.setattr(WriteTxn, "import_all", refuse)
    lines = [_memory(1), _memory(2), _link(20, 1, 2), _memory(3), b"{}"]
    refusals, counts = _taken(engine, A, [lines], Conflict.REFUSE)
    assert [refusal.line for refusal in refusals] == [5]
    assert counts == (5, 4, 0, 0, 0, 1)
    assert engine.count(A, NO_FILTER)[0] == 3
