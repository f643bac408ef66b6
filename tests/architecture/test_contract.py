"""Generated code equals the proto, and every call is documented and tried over the socket."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import house
from memxd.v1 import admin_service_pb2, memory_service_pb2

SERVICES = [
    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
]
CALLS = [(service.name, method.name) for service in SERVICES for method in service.methods]


def check(module: str) -> None:
    """Run a generator with --check."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--check"], cwd=house.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_generated_code_and_descriptor_equal_the_proto() -> None:
    check("scripts.gen_proto")


def test_the_api_page_is_up_to_date() -> None:
    check("scripts.gen_api_docs")


@pytest.mark.parametrize(("service", "call"), CALLS)
def test_every_call_is_documented(service: str, call: str) -> None:
    page = house.text("docs/API.md")
    section = page.split(f"## {service}\n", 1)[1].split("\n## ", 1)[0]
    assert f"| `{call}` |" in section


@pytest.mark.parametrize(("service", "call"), CALLS)
def test_every_call_is_tried_over_the_socket(service: str, call: str) -> None:
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", call).lower()
    pattern = re.compile(rf"\.({call}|{snake})\(")
    tests = [n for n in house.tracked() if re.match(r"tests/(daemon|contract|client|cli)/.*\.py$", n)]
    assert [name for name in tests if pattern.search(house.text(name))], f"no test calls {service}.{call}"


def test_every_field_and_value_says_what_it_means() -> None:
    # buf's COMMENTS rules say the same; this one runs where there is no buf.
    silent = []
    for name in house.tracked():
        if not name.startswith("proto/") or not name.endswith(".proto"):
            continue
        lines = house.text(name).splitlines()
        for number, line in enumerate(lines):
            member = re.match(r"\s+(?:optional |repeated )?[\w.<>, ]+ \w+ = \d+;|\s+[A-Z_]+ = \d+;|\s+rpc \w+", line)
            if member and not lines[number - 1].strip().startswith("//"):
                silent.append(f"{name}:{number + 1}")
    assert not silent


def test_the_limits_in_the_proto_are_the_limits_in_the_code() -> None:
    from memxd.model import Limits

    contract = " ".join(house.text(name) for name in house.tracked() if name.endswith(".proto"))
    # Each limit as a reader finds it in the contract's comments.
    stated = {
        "SCOPE_PART": "1..128 printable",
        "CONTENT": "1..65,536 characters",
        "QUERY": "1..2,000 characters",
        "TAGS": "at most 32",
        "TAG": "1..64 characters",
        "METADATA_BYTES": "16 KiB",
        "SOURCE": "256 characters",
        "REQUEST_ID": "At most 64 printable",
        "K": "1..200",
        "K_DEFAULT": "Absent = 10",
        "PAGE": "1..500",
        "PAGE_DEFAULT": "Absent = 50",
        "FILTER_IDS": "at most 1,000",
        "FILTER_METADATA_KEYS": "At most 16 keys",
        "SEARCHES": "1..32 searches",
        "EXPAND_LINKS": "0..3",
        "TRAVERSE_DEPTH": "1..6",
        "TRAVERSE_NODES": "1..500",
        "RRF_K": "1..10,000",
        "WEIGHT": "0..1,000",
    }
    for name, words in stated.items():
        assert words in contract, words
        value = int(getattr(Limits, name))
        assert any(figure in words for figure in (f"{value:,}", f"{value // 1024} KiB")), (name, value, words)
