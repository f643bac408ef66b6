"""The short way to JSON gives the text that the encoder gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memxd.engine.quickjson import QuickJson
from memxd.model import MemoryType, Scope, State

_VALUES: list[Any] = [
    "", 'a "quoted" \\ text\n\t', "zwölf \u2028 \U0001f600", 0, -7, 1 << 60, True, False, None, 0.5, 1e300, -0.0, 1e-7,
    float("inf"), (), ("a", "ü"), [], [1, [2]], {}, {"k": {"z": [None]}}, MemoryType.EPISODIC, State.ARCHIVED,
]  # fmt: skip


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize("value", _VALUES, ids=repr)
def test_every_value_reads_as_the_encoder_writes_it(value: Any, ascii: bool) -> None:
    encoder = json.JSONEncoder(ensure_ascii=ascii, separators=(",", ":"))
    quick = QuickJson(encoder.encode, ascii=ascii)
    assert quick.value(value) == encoder.encode(value)
    names = ("plain", 'q"ü')
    assert quick.record(quick.names(names), (value, value)) == encoder.encode(dict.fromkeys(names, value))


def test_a_scope_is_a_list_of_its_names() -> None:
    quick = QuickJson(json.dumps, ascii=False)
    assert json.loads(quick.value(Scope('a"', "b"))) == ['a"', "b"]


def test_a_record_needs_as_many_values_as_names() -> None:
    quick = QuickJson(json.dumps, ascii=False)
    with pytest.raises(ValueError, match="shorter"):
        quick.record(quick.names(("a", "b")), (1,))
