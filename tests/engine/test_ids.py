"""Ids are UUIDv7 and ascend, whatever the clock does."""

import uuid

from memxd.engine.ids import uuid7_factory


def test_ids_are_uuid7_of_their_moment() -> None:
    id = uuid.UUID(uuid7_factory()(1_700_000_000_123_456))
    assert id.version == 7
    assert id.variant == uuid.RFC_4122
    assert id.int >> 80 == 1_700_000_000_123


def test_ids_ascend_while_the_clock_stands_or_falls_back() -> None:
    make = uuid7_factory()
    ids = [make(1_700_000_000_000_000 - (n % 7) * 1_000_000) for n in range(5_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
