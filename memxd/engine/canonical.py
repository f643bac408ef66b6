"""One byte form for a request, whatever process or hash seed wrote it.

Owns the digest that binds page tokens to their question and request ids to their body. Called by paging.py and
idempotency.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

_SCALARS = frozenset((str, int, float, bool, type(None)))
_Maker = Callable[[Any], Any]
_makers: dict[type[Any], _Maker] = {}
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    maker = _makers.get(kind)
    if maker is None:
        maker = _makers[kind] = _maker(value)
    return maker(value)


def _maker(value: Any) -> _Maker:
    """What makes a value of this type plain."""
    if dataclasses.is_dataclass(value):
        return _of_fields(tuple(field.name for field in dataclasses.fields(value)))
    if isinstance(value, Mapping):
        return lambda v: {str(k): _plain(each) for k, each in v.items()}
    if isinstance(value, set | frozenset):
        return lambda v: sorted((_plain(each) for each in v), key=repr)
    if isinstance(value, list | tuple):
        return lambda v: [_plain(each) for each in v]
    if isinstance(value, memoryview):  # a vector: its numbers as text would cost more than storing it does
        return lambda v: [v.format, list(v.shape or ()), hashlib.blake2b(v.cast("B"), digest_size=16).hexdigest()]
    if isinstance(value, bytes):
        return lambda v: v.hex()
    return lambda v: v


def _of_fields(names: tuple[str, ...]) -> _Maker:
    def plain(value: Any) -> dict[str, Any]:
        fields = [(name, getattr(value, name)) for name in names]
        return {name: each if type(each) in _SCALARS else _plain(each) for name, each in fields}

    return plain


def digest(*parts: object) -> str:
    """128 bits as hex over dataclasses, mappings, sets, sequences, arrays (as contiguous memory) and scalars; equal
    values give equal digests, where an array equals only an array of its type."""
    return hashlib.blake2b(_ENCODER.encode(_plain(parts)).encode(), digest_size=16).hexdigest()
