"""One byte form for a request, whatever process or hash seed wrote it.

Owns the digest that binds page tokens to their question and request ids to their body. Called by paging.py and
idempotency.py.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from memxd.engine.quickjson import QuickJson

_SCALARS = frozenset((str, int, float, bool, type(None)))
_Maker = Callable[[Any], Any]
_makers: dict[type[Any], _Maker] = {}
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _slow(value: Any) -> str:
    if type(value) is memoryview:  # as the encoder would, without it
        kind, shape, digest = _of_memory(value)
        return f'["{kind}",{str(shape).replace(" ", "")},"{digest}"]'
    return _ENCODER.encode(_plain(value))


_QUICK = QuickJson(_slow, ascii=True)


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
    if isinstance(value, memoryview):
        return _of_memory
    if isinstance(value, bytes):
        return lambda v: v.hex()
    return lambda v: v


def _of_memory(value: memoryview) -> list[Any]:
    """A vector: its numbers as text would cost more than storing it does."""
    return [value.format, list(value.shape or ()), hashlib.blake2b(value.cast("B"), digest_size=16).hexdigest()]


def _of_fields(names: tuple[str, ...]) -> _Maker:
    def plain(value: Any) -> dict[str, Any]:
        fields = [(name, getattr(value, name)) for name in names]
        return {name: each if type(each) in _SCALARS else _plain(each) for name, each in fields}

    return plain


def digest(*parts: object) -> str:
    """128 bits as hex over dataclasses, mappings, sets, sequences, arrays (as contiguous memory) and scalars; equal
    values give equal digests, where an array equals only an array of its type."""
    text = f"[{','.join(map(_text, parts))}]"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    """``value`` made plain, as JSON with sorted keys."""
    names = _names(type(value))  # type: ignore[arg-type]  # a type is hashable
    if names is None:
        return _QUICK.value(value)
    return _QUICK.record(names[0], [getattr(value, name) for name in names[1]])


@cache
def _names(kind: type[Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The fields of a dataclass in order of their names, as text begins and as they are; None for other types."""
    if not dataclasses.is_dataclass(kind):
        return None
    ordered = tuple(sorted(field.name for field in dataclasses.fields(kind)))
    return _QUICK.names(ordered), ordered
