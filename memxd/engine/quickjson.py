"""JSON of records field by field, for what is written once for each memory of an import.

Owns a short way to the very text that ``json.JSONEncoder`` makes of a mapping of the fields: plain values are spelled
out here, everything else goes to the encoder. Called by ``canonical.py`` and ``answers.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from memxd.model import MemoryType, Scope, State


class QuickJson:
    """Compact JSON. ``slow`` encodes what is no plain value; with ``ascii`` other letters are escaped.

    A scope is a list of its two names.
    """

    def __init__(self, slow: Callable[[Any], str], *, ascii: bool) -> None:
        self._slow = slow
        self._text = encode_basestring_ascii if ascii else encode_basestring
        self._plain: dict[type[Any], Callable[[Any], str]] = {
            str: self._text,
            bool: lambda value: "true" if value else "false",
            type(None): lambda _: "null",
            int: int.__repr__,
            MemoryType: int.__repr__,
            State: int.__repr__,
            Scope: lambda value: f"[{self._text(value.agent_id)},{self._text(value.user_id)}]",
            float: lambda value: float.__repr__(value) if math.isfinite(value) else json.dumps(value),
            tuple: lambda value: slow(value) if value else "[]",
            dict: lambda value: slow(value) if value else "{}",
        }

    def value(self, value: Any) -> str:
        """Any value."""
        return self._plain.get(type(value), self._slow)(value)

    def names(self, names: Iterable[str]) -> tuple[str, ...]:
        """How each field of an object begins, for ``record``."""
        return tuple(f"{self._text(name)}:" for name in names)

    def record(self, names: Sequence[str], values: Iterable[Any]) -> str:
        """An object of these fields, in this order; ``names`` made by ``names``."""
        plain, slow = self._plain, self._slow
        fields = [name + plain.get(type(value), slow)(value) for name, value in zip(names, values, strict=True)]
        return f"{{{','.join(fields)}}}"
