#!/usr/bin/env bash
# Proves that the contract serves other languages: generates stubs from proto/ for Go and TypeScript, starts a daemon of
# its own, and runs examples/go and examples/typescript against it. Skips a language, with the reason, where its tools
# lack; an error under CI_REQUIRE_TOOLS=1. Called by `make other-languages`.
set -euo pipefail
cd "$(dirname "$0")/.."

PROTOC_GEN_GO=v1.36.11
PROTOC_GEN_GO_GRPC=v1.6.2
root=$PWD
home=$(mktemp -d)
daemon=
finish() {
    if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; fi
    rm -rf "$home"
}
trap finish EXIT
skip() {
    echo "skipped $1: $2" >&2
    [ "${CI_REQUIRE_TOOLS:-}" != 1 ] || exit 1
}

export MEMXD_SOCKET=$home/memxd.sock MEMXD_DATA_DIR=$home/data
.venv/bin/memxd serve 2>"$home/log" &
daemon=$!
for _ in $(seq 300); do
    .venv/bin/memx --no-start status >/dev/null 2>&1 && break
    kill -0 "$daemon" 2>/dev/null || { cat "$home/log" >&2; exit 1; }
    sleep 0.2
done

expect() { # NAME TEXT OUTPUT
    case $3 in
        *"$2"*) echo "$1: $3" ;;
        *) echo "$1 did not find its memory: $3" >&2; exit 1 ;;
    esac
}

buf=$root/.tools/node_modules/.bin/buf
if ! command -v go >/dev/null 2>&1; then
    skip Go "go is not installed"
elif [ ! -x "$buf" ]; then
    skip Go "no buf (make tools)"
else
    export GOBIN=$root/.tools/bin
    [ -x "$GOBIN/protoc-gen-go" ] || go install "google.golang.org/protobuf/cmd/protoc-gen-go@$PROTOC_GEN_GO"
    [ -x "$GOBIN/protoc-gen-go-grpc" ] || go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$PROTOC_GEN_GO_GRPC"
    found=$(cd examples/go && PATH=$GOBIN:$PATH "$buf" generate ../../proto && go run .)
    expect Go "restored every Sunday" "$found"
fi

if ! command -v npm >/dev/null 2>&1; then
    skip TypeScript "npm is not installed"
else
    found=$(cd examples/typescript && npm install --no-audit --no-fund --ignore-scripts --loglevel=error >&2 &&
        npm run --silent generate && npm run --silent check && npm run --silent start)
    expect TypeScript "frozen from 20 December" "$found"
fi
