"""The report of a run as JSON: written question by question, read back, and laid beside another one.

Owns the file format (``SCHEMA``), the parts that let an interrupted run go on, and the comparison of two reports.
``tables`` and ``plots`` show a ``Report``; ``runner`` makes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from memxd.bench.measure import Budget, Measurement, Result
from memxd.errors import InvalidArgumentError

#: Grows with every change that a reader of the file must know of.
SCHEMA = 1
REPORT, PARTS = "report.json", "parts"


@dataclass(frozen=True, slots=True)
class Part:
    """One question's result; ``revision`` of the sources and ``load`` (start, end) while it was asked."""

    question: str
    title: str
    result: Result
    seconds: float = 0.0
    revision: str = ""
    load: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Report:
    """A run. ``run``: date, seed, sizes, texts, vectors, command, quick. ``machine``: see ``machine.describe``."""

    run: Mapping[str, Any]
    machine: Mapping[str, Any]
    parts: tuple[Part, ...] = ()
    schema: int = SCHEMA

    @property
    def budgets(self) -> list[Budget]:
        """Every row of the budgets table."""
        return [budget for part in self.parts for budget in part.result.budgets]

    @property
    def measurements(self) -> list[Measurement]:
        """Every row of figures."""
        return [row for part in self.parts for row in part.result.measurements]

    @property
    def missed(self) -> list[Budget]:
        """The budgets that are judged and not kept."""
        return [budget for budget in self.budgets if budget.met is False]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "schema": self.schema,
            "run": dict(self.run),
            "machine": dict(self.machine),
            "parts": [part_to_json(part) for part in self.parts],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Report:
        """Raises InvalidArgumentError for a file of another schema."""
        if value.get("schema") != SCHEMA:
            raise InvalidArgumentError(f"a report of schema {value.get('schema')}, this version reads {SCHEMA}")
        return cls(value["run"], value["machine"], tuple(part_from_json(part) for part in value["parts"]))

    @classmethod
    def read(cls, path: Path) -> Report:
        """A report's file, or the folder it lies in."""
        path = path / REPORT if path.is_dir() else path
        try:
            return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidArgumentError(f"{path} is no report of the bench: {error}") from error


def part_to_json(part: Part) -> dict[str, Any]:
    """Plain JSON values; budgets with their verdict and ratio."""
    shown = asdict(part)
    shown["result"]["budgets"] = [asdict(b) | {"met": b.met, "ratio": b.ratio} for b in part.result.budgets]
    return shown


def part_from_json(value: Mapping[str, Any]) -> Part:
    """The inverse of ``part_to_json``."""
    result = value["result"]
    return Part(
        question=value["question"],
        title=value["title"],
        result=Result(
            measurements=tuple(Measurement(**m) for m in result["measurements"]),
            budgets=tuple(Budget(**{f.name: b[f.name] for f in fields(Budget)}) for b in result["budgets"]),
            notes=tuple(result["notes"]),
            skipped=tuple(result["skipped"]),
            curves=result["curves"],
        ),
        seconds=value["seconds"],
        revision=value["revision"],
        load=(value["load"][0], value["load"][1]),
    )


@dataclass(frozen=True, slots=True)
class PartStore:
    """Parts in ``folder``; ``fingerprint`` is what must be equal for an earlier part to count."""

    folder: Path
    fingerprint: str

    def save(self, part: Part) -> None:
        """Keep it, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        value = {"schema": SCHEMA, "fingerprint": self.fingerprint, "part": part_to_json(part)}
        write(self.folder / f"{part.question}.json", json.dumps(value, ensure_ascii=False, indent=1))

    def find(self, question: str) -> Part | None:
        """What an earlier run with the same fingerprint found."""
        try:
            value = json.loads((self.folder / f"{question}.json").read_text(encoding="utf-8"))
            if value["schema"] != SCHEMA or value["fingerprint"] != self.fingerprint:
                return None
            return part_from_json(value["part"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # none there, or written by something else: it is measured again

    def forget(self, questions: Sequence[str]) -> None:
        """Remove the parts of these questions."""
        for question in questions:
            (self.folder / f"{question}.json").unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Replace a file in one step."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in two reports; ``ratio`` = new / old of the medians."""

    question: str
    stage: str
    size: int
    variant: str
    unit: str
    old: float
    new: float
    ratio: float = field(default=0.0)


def compare(old: Report, new: Report) -> list[Change]:
    """What both reports measured, in the order of the new one."""
    before = {(m.question, m.stage, m.size, m.variant, m.unit): m for m in old.measurements}
    changes = []
    for m in new.measurements:
        was = before.get((m.question, m.stage, m.size, m.variant, m.unit))
        if was is not None:
            ratio = m.p50 / was.p50 if was.p50 else 0.0
            changes.append(Change(m.question, m.stage, m.size, m.variant, m.unit, was.p50, m.p50, ratio))
    return changes
