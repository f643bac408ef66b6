"""What the architecture tests look at: tracked files, modules, and their imports.

Owns reading and parsing, once per process; the rules stand in the tests beside it. Reads only files that git tracks
or would track, so that build output and the environment do not count.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATED = "memxd/v1/"


@functools.cache
def tracked() -> tuple[str, ...]:
    """Paths of all files of the project relative to its root, sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file()))


@functools.cache
def text(name: str) -> str:
    """The text of a file; an empty one for binary files."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@functools.cache
def modules() -> tuple[str, ...]:
    """Every hand-written Python module of the package."""
    return tuple(n for n in tracked() if n.startswith("memxd/") and n.endswith(".py") and not n.startswith(GENERATED))


@functools.cache
def tree(name: str) -> ast.Module:
    """The parsed module."""
    return ast.parse(text(name), filename=name)


def dotted(name: str) -> str:
    """``memxd/store/writer.py`` -> ``memxd.store.writer``."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(name: str) -> Iterator[str]:
    """Every module that a module imports, wherever in it the import stands."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                package = dotted(name).split(".")
                keep = len(package) - node.level + (1 if name.endswith("__init__.py") else 0)
                base = ".".join([*package[:keep], *([node.module] if node.module else [])])
            else:
                base = node.module or ""
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@functools.cache
def pyproject() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads(text("pyproject.toml"))
