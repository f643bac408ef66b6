"""A file system that refuses: a full disk, a used up quota, no permission, a failing disk; one daemon through all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from torture_faults import FAULTS, Outcome, endure_all
from torture_shim import compiler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(compiler() is None, reason="no C compiler: the shim that makes calls fail cannot be built"),
]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Outcome]]:
    with tempfile.TemporaryDirectory(prefix="mxf-") as folder:
        yield {outcome.name: outcome for outcome in endure_all(Path(os.path.realpath(folder)))}


@pytest.mark.parametrize("name", [fault.name for fault in FAULTS])
def test_a_refusal_is_clear_searches_go_on_and_all_is_well_when_it_is_over(
    outcomes: dict[str, Outcome], name: str
) -> None:
    assert outcomes[name].problems == []


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.store], ids=lambda fault: fault.name)
def test_a_refused_store_says_what_to_do(outcomes: dict[str, Outcome], fault: object) -> None:
    name = getattr(fault, "name", "")
    advice = {"STORAGE_FULL": "free some space", "STORAGE_READ_ONLY": "check its owner, mode and mount"}
    assert advice.get(outcomes[name].store, "check the disk") in outcomes[name].message


def test_no_half_written_index_is_believed_after_a_kill_under_a_fault(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["kill -9 under a fault, restart"].problems == []
