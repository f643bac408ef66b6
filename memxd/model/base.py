"""Time, JSON and the bounds of the contract: what every other noun is made of.

Instants are ``Micros``: whole microseconds since the Unix epoch in UTC, as int. Owns the limits in one place; the
proto's comments and docs/API.md state the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Micros: TypeAlias = int
#: Returns the present instant; injected everywhere, so that tests own time.
Clock: TypeAlias = Callable[[], Micros]
#: Makes a new UUIDv7 in lower case for an instant; injected everywhere.
IdFactory: TypeAlias = Callable[[Micros], str]
#: JSON object as Python values.
Json: TypeAlias = Mapping[str, Any]

SECOND: Micros = 1_000_000
DAY: Micros = 86_400 * SECOND


class Limits:
    """Bounds of the contract; docs/API.md and the proto's comments state the same numbers."""

    SCOPE_PART = 128
    CONTENT = 65_536
    QUERY = 2_000
    TAGS = 32
    TAG = 64
    METADATA_BYTES = 16_384
    METADATA_DEPTH = 32
    SOURCE = 256
    REQUEST_ID = 64
    SUPERSEDES = 32
    K = 200
    K_DEFAULT = 10
    PAGE = 500
    PAGE_DEFAULT = 50
    FILTER_TAGS = 32
    FILTER_IDS = 1_000
    FILTER_METADATA_KEYS = 16
    SEARCHES = 32
    EXPAND_LINKS = 3
    TRAVERSE_DEPTH = 6
    TRAVERSE_NODES = 500
    WEIGHT = 1_000.0
    RRF_K = 10_000
    HALF_LIFE_MIN: Micros = SECOND
    HALF_LIFE_MAX: Micros = 36_525 * DAY
    ANSWER_BYTES = 3_670_016  # 3.5 MiB
    MESSAGE_BYTES = 4 * 1024 * 1024
    #: One line of an import; what memxd writes stays far below.
    LINE_BYTES = 2 * 1024 * 1024
    REQUEST_ID_TTL: Micros = DAY
    #: Timestamps outside 0001..9999 are not RFC 3339.
    TIME_MIN: Micros = -62_135_596_800 * SECOND
    TIME_MAX: Micros = 253_402_300_800 * SECOND - 1
