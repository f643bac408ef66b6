#!/usr/bin/env bash
# Runs the kernels' tests with bounds checks and the address and undefined-behaviour sanitizers, in a copy of the
# package so that the ordinary build stays as it is. Called by `make debug`; arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
compiler=$("$root/.venv/bin/python" -c 'import os, sysconfig; print((os.environ.get("CC") or sysconfig.get_config_var("CC")).split()[0])')
library=$("$compiler" -print-file-name=libasan.so)
if [ ! -e "$library" ]; then
    echo "no libasan for $compiler: install GCC's sanitizer library (libasan)" >&2
    exit 1
fi
copy=build/debug
mkdir -p "$copy/tests"
cp -R setup.py pyproject.toml README.md LICENSE NOTICE "$copy/"
for part in memxd tests/fast tests/vectors tests/architecture; do
    rm -rf "${copy:?}/$part"
    cp -R "$part" "$copy/$part"
done
rm -f "$copy"/memxd/_fast/*.so
cd "$copy"
MEMXD_DEBUG_EXTENSIONS=1 MEMXD_REQUIRE_EXTENSIONS=1 "$root/.venv/bin/python" setup.py --quiet build_ext --inplace -j "${JOBS:-2}"
# The interpreter keeps memory on purpose until it exits: leaks are not looked for.
LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    PYTHONPATH=$PWD PYTHONMALLOC=malloc "$root/.venv/bin/python" -c \
    'import memxd, sys; assert "debug" in memxd.__file__, memxd.__file__; import pytest; sys.exit(pytest.main(sys.argv[1:]))' \
    tests/fast -q -p no:cacheprovider -n "${JOBS:-2}" "$@"
