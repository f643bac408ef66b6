"""Modules stay small and say what they own."""

from __future__ import annotations

import ast
import re

import house

MODULE_LINES = 300
#: A kernel keeps its loops and the functions that call them in one file.
KERNEL_LINES = 600
FUNCTION_LINES = 40
#: Shorter modules and functions may speak for themselves.
SMALL_MODULE, SMALL_FUNCTION = 60, 8


def described() -> list[tuple[str, str]]:
    """Every module with its docstring."""
    return [(name, ast.get_docstring(house.tree(name)) or "") for name in house.modules()]


def test_every_module_says_what_it_owns() -> None:
    silent = [name for name, doc in described() if not doc]
    assert not silent


def test_module_docstrings_have_three_to_twelve_lines() -> None:
    wrong = {
        name: len(doc.splitlines())
        for name, doc in described()
        if len(house.text(name).splitlines()) > SMALL_MODULE and not name.endswith("__init__.py")
        if not 3 <= len(doc.splitlines()) <= 12
    }
    assert not wrong


def test_modules_stay_small() -> None:
    kernels = [name for name in house.tracked() if name.endswith(".pyx")]
    limits = dict.fromkeys(house.modules(), MODULE_LINES) | dict.fromkeys(kernels, KERNEL_LINES)
    long = {name: n for name, limit in limits.items() if (n := len(house.text(name).splitlines())) > limit}
    assert not long


def test_functions_have_at_most_forty_lines() -> None:
    long = {}
    for name in house.modules():
        for node in ast.walk(house.tree(name)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                lines = (node.end_lineno or 0) - body[0].lineno + 1
                if lines > FUNCTION_LINES:
                    long[f"{name}:{node.lineno} {node.name}"] = lines
    assert not long


def test_public_functions_and_classes_have_docstrings() -> None:
    silent = [
        f"{name}:{node.lineno} {node.name}"
        for name in house.modules()
        for node in house.tree(name).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if not node.name.startswith("_") and not ast.get_docstring(node)
        if isinstance(node, ast.ClassDef) or (node.end_lineno or 0) - node.lineno >= SMALL_FUNCTION
    ]
    assert not silent


def test_nothing_is_left_for_later() -> None:
    marks = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
    found = [
        f"{name}:{number}"
        for name in house.tracked()
        if not name.startswith(("LICENSE", "clients/")) or name.endswith(".py")
        for number, line in enumerate(house.text(name).splitlines(), 1)
        if marks.search(line)
    ]
    assert not found
