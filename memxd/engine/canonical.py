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


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(v) for v in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, memoryview):
        return value.tolist()
    if isinstance(value, bytes):
        return value.hex()
    return value


def digest(*parts: object) -> str:
    """128 bits as hex over dataclasses, mappings, sets, sequences and scalars; equal values give equal digests."""
    text = json.dumps(_plain(parts), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
