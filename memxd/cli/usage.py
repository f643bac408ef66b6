"""How flags and verbs read in ``--help``: words such as TIME and TAG in place of Python's types, and whole sentences.

Owns the names of values and the form of the usage line; changes nothing about what is accepted. ``scope.py`` calls it
for every verb.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any

from typer.core import TyperArgument, TyperCommand
from typer.models import ArgumentInfo, ParameterInfo

_BY_NAME = {
    "meta": "KEY=VALUE", "drop_meta": "KEY", "supersedes": "ID", "ids": "ID", "socket": "PATH", "timeout": "SECONDS",
    "page_token": "TOKEN", "agent": "NAME", "user": "NAME", "address": "URL", "token_file": "FILE",
}  # fmt: skip
_TIMES = frozenset({"since", "until", "event_since", "event_until", "event_at", "valid_until", "as_of", "asked_at"})
_BY_KIND: dict[Any, str] = {int: "N", float: "NUMBER", str: "TEXT"}


class Command(TyperCommand):
    """A verb whose help writes ID where typer writes {ID} and ID <str>; choices are still spelled out."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument) and not parameter.type_descriptor.is_choice:
                vars(parameter)["display_type_rich"] = lambda ctx: None

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [p.removeprefix("{").removesuffix("}") for p in super().collect_usage_pieces(ctx)]


def name_value(parameter: inspect.Parameter) -> None:
    """Give an option or argument the word that stands for its value, unless it has one."""
    annotation = parameter.annotation
    info = next((m for m in getattr(annotation, "__metadata__", ()) if isinstance(m, ParameterInfo)), None)
    if info is None or info.metavar is not None:
        return
    kind = _kind(typing.get_args(annotation)[0])
    if isinstance(info, ArgumentInfo):
        info.metavar = _BY_NAME.get(parameter.name, parameter.name.upper())
    elif isinstance(kind, type) and issubclass(kind, Enum):
        info.metavar = "|".join(str(word.value) for word in kind)
    elif kind is not bool:
        info.metavar = _word(parameter.name, kind)


def _word(name: str, kind: Any) -> str:
    if name in _TIMES:
        return "TIME"
    return "TAG" if "tags" in name else _BY_NAME.get(name) or _BY_KIND.get(kind, "TEXT")


def _kind(annotation: Any) -> Any:
    """The type of one value: without None, and of a list that of its items."""
    kinds = [k for k in typing.get_args(annotation) if k is not type(None)]
    return _kind(kinds[0]) if kinds else annotation


def summary(function: Callable[..., Any]) -> str:
    """The first line of a verb's help, whole, for the list of verbs."""
    return (inspect.getdoc(function) or "").split("\n\n")[0]
