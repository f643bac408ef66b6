#!/usr/bin/env bash
# Runs make targets one after another, stops at the first that fails, and always prints how long each took.
# Usage: scripts/stages.sh TITLE TARGET...   Called by `make test` and .ci/run.
set -uo pipefail
cd "$(dirname "$0")/.."

title=$1
shift
table=()
result=0
begin=$SECONDS
for target in "$@"; do
    printf '\n== %s\n' "$target"
    start=$SECONDS
    ${MAKE:-make} --no-print-directory "$target"
    code=$?
    table+=("$(printf '%6d s  %-6s %s' $((SECONDS - start)) "$([ $code -eq 0 ] && echo ok || echo FAILED)" "$target")")
    if [ $code -ne 0 ]; then
        result=$code
        break
    fi
done
printf '\n-- %s\n' "$title"
printf '%s\n' "${table[@]}"
printf '%6d s  %s\n' $((SECONDS - begin)) "$([ $result -eq 0 ] && echo 'all ok' || echo 'RED')"
exit $result
