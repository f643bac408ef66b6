#!/usr/bin/env bash
# Puts pinned outside tools into .tools/: buf (by npm) and grpcurl (by go). Where npm or go lacks, or cannot fetch,
# it says so and goes on, because the tests that need the tool skip with a reason; under CI_REQUIRE_TOOLS=1 that is an
# error. Called by `make tools`.
set -euo pipefail
cd "$(dirname "$0")/.."

BUF_VERSION=1.75.0
GRPCURL_VERSION=v1.9.4
missing=0
lacks() { printf 'without %s: %s\n' "$1" "$2" >&2; missing=1; }
mkdir -p .tools

buf=.tools/node_modules/.bin/buf
if [ "$("$buf" --version 2>/dev/null)" != "$BUF_VERSION" ]; then
    if ! command -v npm >/dev/null 2>&1; then
        lacks buf "npm is not installed"
    elif ! npm install --prefix .tools --no-audit --no-fund --no-save --ignore-scripts --loglevel=error "@bufbuild/buf@$BUF_VERSION" >&2 ||
        ! "$buf" --version >/dev/null; then
        lacks buf "npm could not install @bufbuild/buf@$BUF_VERSION"
    fi
fi

if [ "$(cat .tools/bin/.grpcurl-version 2>/dev/null)" != "$GRPCURL_VERSION" ] || [ ! -x .tools/bin/grpcurl ]; then
    if ! command -v go >/dev/null 2>&1; then
        lacks grpcurl "go is not installed"
    elif ! GOBIN="$PWD/.tools/bin" GOFLAGS=-mod=mod go install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$GRPCURL_VERSION" >&2; then
        lacks grpcurl "go could not install grpcurl@$GRPCURL_VERSION"
    else
        echo "$GRPCURL_VERSION" > .tools/bin/.grpcurl-version
    fi
fi

if [ $missing -ne 0 ] && [ "${CI_REQUIRE_TOOLS:-}" = 1 ]; then
    echo "CI_REQUIRE_TOOLS=1: a lacking tool is an error" >&2
    exit 1
fi
