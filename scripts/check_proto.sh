#!/usr/bin/env bash
# Lints proto/ with buf and refuses changes that would break a client: against the committed descriptor, against that of
# the commit before, and against that of the newest release (tag v*). Called by `make proto-check` and, with --before-writing, by `make proto`.
set -euo pipefail
cd "$(dirname "$0")/.."

buf=.tools/node_modules/.bin/buf
descriptor=proto/memxd.v1.binpb
if [ ! -x "$buf" ]; then
    [ "${CI_REQUIRE_TOOLS:-}" != 1 ] || { echo "buf lacks and CI_REQUIRE_TOOLS=1" >&2; exit 1; }
    echo "skipped buf lint and buf breaking: no buf (make tools)" >&2
    exit 0
fi

breaking() { # NAME FILE
    local code=0
    "$buf" breaking --against "$2#format=binpb" || code=$?
    case $code in
        0) echo "buf breaking: nothing broken since $1" ;;
        100) echo "buf breaking: the lines above break clients of $1" >&2; exit 100 ;;
        *) echo "buf breaking did not run (exit $code): the check itself is at fault" >&2; exit "$code" ;;
    esac
}

"$buf" lint
echo "buf lint: clean"
breaking "the committed descriptor" "$descriptor"
[ "${1:-}" = --before-writing ] && exit 0

old=$(mktemp)
trap 'rm -f "$old"' EXIT
release=$(git describe --tags --match 'v*' --abbrev=0 2>/dev/null || true)
for commit in ${release:+"$release"} HEAD^; do
    if git show "$commit:$descriptor" > "$old" 2>/dev/null; then breaking "$commit" "$old"; fi
done
