"""The table of this folder's README names every row, every line and every test, and nothing that is not there."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path

FOLDER = Path(__file__).parent
ROWS = {f"X{n}" for n in (*range(1, 11), 14, 15)} | {"E1", "E3", "E4", "E5", "E6"}
LINES = {
    "Scope", "Ids", "States", "Duplicates", "Update", "Superseding", "Access and retrieval", "Time",
    "Ranking profiles", "Rejection and relevance", "Determinism", "Degraded", "private", "Sizes", "Retries", "Links",
    "Errors", "Reserved fields",
}  # fmt: skip


def table() -> list[tuple[str, list[str], list[str]]]:
    """(row, files, patterns of test names) of each line of the tables."""
    found = []
    for line in (FOLDER / "README.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[2].startswith("test_"):
            found.append((cells[0], cells[2].split(", "), re.findall(r"`([^`]+)`", cells[3])))
    return found


def docstrings() -> dict[str, dict[str, str]]:
    """Docstrings of the tests by name, by file."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        functions = [n for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.FunctionDef)]
        found[path.name] = {f.name: ast.get_docstring(f) or "" for f in functions if f.name.startswith("test_")}
    return found


def test_every_row_and_line_is_in_the_table() -> None:
    assert {row for row, _, _ in table()} >= ROWS | LINES


def test_everything_named_exists() -> None:
    known = docstrings()
    for row, files, patterns in table():
        assert patterns, row
        for pattern in patterns:
            assert any(fnmatchcase(name, pattern) for file in files for name in known[file]), (row, pattern)
        for file in files:
            assert any(fnmatchcase(name, pattern) for pattern in patterns for name in known[file]), (row, file)


def test_every_test_is_named_and_names_its_row() -> None:
    for file, names in docstrings().items():
        patterns = [p for _, files, patterns in table() if file in files for p in patterns]
        for name, docstring in names.items():
            assert any(fnmatchcase(name, p) for p in patterns), (file, name)
            assert re.match(r"(X|E)\d|SEMANTICS", docstring), (file, name)
