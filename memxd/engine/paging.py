"""Opaque page tokens.

Owns the form of a token: the cursor after the last row, bound by a digest to scope, filter and order, so that a token
used with another question is refused instead of answering nonsense. Not a secret: it opens nothing that the caller
could not list anyway. ``bound_to`` is a digest of canonical.py. Called by the verbs that page.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from memxd.engine.validate import fail

_VERSION = 1
#: Longer ones were never handed out. They are not even parsed: what nests too deeply would stop the parser.
_LONGEST = 1_000
_INT64 = 2**63


def encode(bound_to: str, cursor: list[Any]) -> str:
    """A token for the page after ``cursor`` (JSON values)."""
    body = json.dumps([_VERSION, bound_to, cursor], separators=(",", ":")).encode()
    check = hashlib.blake2b(body, digest_size=4).digest()
    return base64.urlsafe_b64encode(check + body).decode().rstrip("=")


def decode(bound_to: str, token: str, kinds: tuple[Any, ...]) -> list[Any] | None:
    """The cursor of ``token``; None for an empty one.

    Raises InvalidArgumentError for anything this daemon did not hand out for the same question.
    """
    if not token:
        return None
    problem = fail("page_token", "is not one that this list handed out; start again without it")
    if len(token) > _LONGEST:
        raise problem
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        if hashlib.blake2b(raw[4:], digest_size=4).digest() != raw[:4]:
            raise problem
        version, bound, cursor = json.loads(raw[4:])
    except (ValueError, TypeError, RecursionError) as error:
        raise problem from error
    if version != _VERSION or not isinstance(cursor, list):
        raise problem
    if bound != bound_to:
        raise fail("page_token", "belongs to a list with another scope, filter or order")
    if len(cursor) != len(kinds) or not all(map(_fits, cursor, kinds)):
        raise problem
    return cursor


def _fits(value: Any, kind: Any) -> bool:
    """Whether a cursor's value is of its kind and one that the store can compare with."""
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return isinstance(value, str) or -_INT64 <= value < _INT64  # false for NaN as well
