"""Nothing in the repository points at one machine or away from the code."""

from __future__ import annotations

import re
from pathlib import Path

import house

# Put together here, so that this file does not find itself.
MACHINE_PATHS = ["/wo" + "rk/", "/ro" + "ot/", "/opt/" + "wheels"]
REGISTRIES = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "registry.npm" + "js.org",
    "proxy.go" + "lang.org",
    "hugging" + "face.co",
]


def lines_with(words: list[str]) -> list[str]:
    """Every tracked line that holds one of the words."""
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name in house.tracked()
        for number, line in enumerate(house.text(name).splitlines(), 1)
        if any(word in line for word in words)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    assert not lines_with(MACHINE_PATHS)


def test_no_file_names_a_package_registry() -> None:
    assert not lines_with(REGISTRIES)


def test_links_between_documents_lead_somewhere() -> None:
    links = [
        (name, target)
        for name in house.tracked()
        if name.endswith(".md")
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", house.text(name))
    ]
    broken = [link for link in links if "://" not in link[1] and not ((house.ROOT / link[0]).parent / link[1]).exists()]
    assert not broken


def test_no_large_or_compiled_file_is_tracked() -> None:
    wrong = [
        name
        for name in house.tracked()
        if name.endswith((".so", ".c", ".onnx", ".whl", ".pyc")) or (house.ROOT / name).stat().st_size > 1_000_000
        if name != "tests/torture/torture_shim.c"  # written by hand
    ]
    assert not wrong


def test_test_files_have_unique_names() -> None:
    names = [Path(name).name for name in house.tracked() if re.search(r"^tests/.*test_\w+\.py$", name)]
    assert sorted(set(names)) == sorted(names)
    assert not [name for name in house.tracked() if name.startswith("tests/") and name.endswith("__init__.py")]
