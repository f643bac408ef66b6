"""Every refusal has a reason, a wire code and a line in docs/API.md."""

from __future__ import annotations

import ast
import re

import house
from memxd import errors

#: Where the classes are kept; everybody finds all of them in memxd.errors.
HOMES = ("memxd.errors", "memxd.error_base", "memxd.start_errors")


def classes() -> list[type[errors.MemxdError]]:
    """Every error class that the one module shows."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.MemxdError)]
    return [kind for kind in found if kind.__module__ in HOMES]


def test_every_class_but_groups_has_a_reason_of_its_own() -> None:
    reasons = [kind.__dict__["reason"] for kind in classes() if kind is not errors.MemxdError]
    assert len(set(reasons)) == len(reasons)
    assert all(re.fullmatch(r"[A-Z][A-Z_]{2,62}", reason) for reason in reasons)


def test_every_reason_is_documented() -> None:
    page = house.text("docs/API.md").split("## Errors\n", 1)[1].split("\n## ", 1)[0]
    lacking = [reason for reason in errors.BY_REASON if f"| `{reason}` |" not in page]
    assert not lacking


def test_every_refusal_of_a_call_has_a_wire_code() -> None:
    from memxd.service import status

    mapped = set(status.CODES)
    for kind in classes():
        at_start = issubclass(kind, errors.StartupError)
        assert at_start or any(base in mapped for base in kind.__mro__), kind.__name__


def test_errors_are_raised_from_the_one_module() -> None:
    # An exception class elsewhere that is a MemxdError would be missing in the table, the client and the page.
    strangers = [
        f"{name}:{node.lineno} {node.name}"
        for name in house.modules()
        if name.removesuffix(".py").replace("/", ".") not in HOMES
        for node in ast.walk(house.tree(name))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if any(isinstance(base, ast.Name) and base.id in {kind.__name__ for kind in classes()} for base in node.bases)
    ]
    assert not strangers


def test_no_exception_is_swallowed() -> None:
    silent = [
        f"{name}:{node.lineno}"
        for name in house.modules()
        for node in ast.walk(house.tree(name))
        if isinstance(node, ast.ExceptHandler)
        if node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
        if all(isinstance(statement, ast.Pass | ast.Continue) for statement in node.body)
    ]
    assert not silent
