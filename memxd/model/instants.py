"""Instants as text: RFC 3339 in UTC, to the microsecond.

Owns the one spelling that files of ours use (``2026-03-01T09:30:00.000000Z``), so that the same instant is always the
same text, and the reading of any RFC 3339 time with a zone. Knows no zones by name. Called by whoever writes manifests
and export lines.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memxd.model.base import Micros

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def to_rfc3339(at: Micros) -> str:
    """The instant as text, always with six digits of a second and Z."""
    return (_EPOCH + timedelta(microseconds=at)).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def from_rfc3339(text: str) -> Micros:
    """The instant that a text names. Raises ValueError for one that is no time of the years 1..9999 with a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    try:
        return (moment - _EPOCH) // _MICRO
    except OverflowError:
        raise ValueError("a time outside the years 1..9999") from None
