"""One byte form for a request, whatever process or hash seed wrote it.

Owns the digest that binds page tokens to their question and request ids to their body. Called by paging.py and
idempotency.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

_SCALARS = frozenset((str, int, float, bool, type(None)))
_known_fields: dict[type[Any], tuple[str, ...] | None] = {}
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    names = _fields(type(value))
    if names is not None:
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(v) for v in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, memoryview):  # a vector: its numbers as text would cost more than storing it does
        return [value.format, list(value.shape or ()), hashlib.blake2b(value.cast("B"), digest_size=16).hexdigest()]
    if isinstance(value, bytes):
        return value.hex()
    return value


def _fields(kind: type[Any]) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for other types."""
    if kind not in _known_fields:
        names = tuple(getattr(kind, "__dataclass_fields__", ()))
        _known_fields[kind] = names if dataclasses.is_dataclass(kind) else None
    return _known_fields[kind]


def digest(*parts: object) -> str:
    """128 bits as hex over dataclasses, mappings, sets, sequences, arrays (as contiguous memory) and scalars; equal
    values give equal digests, where an array equals only an array of its type."""
    return hashlib.blake2b(_ENCODER.encode(_plain(parts)).encode(), digest_size=16).hexdigest()
