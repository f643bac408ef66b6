# Every target works alone on a machine with Python 3.11 and a C compiler. `make` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
# Which interpreter makes the environment; the first Python >= 3.11 on the PATH by default.
PYTHON ?=
# Test processes at once.
JOBS ?= 2
# Further arguments for pytest, such as ARGS="-k scope -x".
ARGS ?=
export PYTHON VENV

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS=$$'\t' read -r name text; do printf '  \033[1m%-14s\033[0m %s\n' "$$name" "$$text"; done

.PHONY: demo
demo: env ## Build everything, start a daemon, store 200 memories, ask questions, show the answers
	@$(PY) examples/demo.py

.PHONY: test
test: ## Set up, then linters, types, layers, the contract and every test
	@scripts/stages.sh test env-test tools lint types layers proto-check tests

.PHONY: test-all
test-all: ## What CI runs and the audit: test with coverage, audit, kernels with sanitizers, an installed wheel, stubs in other languages, the demo
	@COVERAGE=1 scripts/stages.sh test-all test audit debug wheel-check other-languages demo

.PHONY: test-fast
test-fast: env-test ## The tests without the slow ones
	@$(PY) -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(ARGS)

.PHONY: test-floors
test-floors: env-test ## The tests without the slow ones, with the lowest versions that pyproject.toml allows
	@scripts/test_floors.sh $(ARGS)

.PHONY: tests
tests: env-test ## The tests alone; COVERAGE=1 adds a coverage report
	@rm -f .coverage .coverage.*
	@$(PY) -m pytest -n $(JOBS) --dist loadfile $(if $(COVERAGE),--cov=memxd --cov-report=term:skip-covered --cov-report=html:coverage --durations=15) $(ARGS)

.PHONY: lint
lint: env-test ## ruff, the linter and the formatter's check
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .

.PHONY: format
format: env-test ## Let ruff format and mend what it can
	@$(PY) -m ruff check --fix . ; $(PY) -m ruff format .

.PHONY: types
types: env-test ## mypy --strict
	@$(PY) -m mypy

.PHONY: layers
layers: env-test ## import-linter: imports go downward only
	@$(VENV)/bin/lint-imports

.PHONY: proto
proto: env-test tools ## Write memxd/v1, the descriptor and docs/API.md from proto/; refuses a breaking change (ALLOW_BREAKING=1)
	@$(if $(ALLOW_BREAKING),echo "not checked for breaking changes",scripts/check_proto.sh --before-writing)
	@$(PY) -m scripts.gen_proto && $(PY) -m scripts.gen_api_docs

.PHONY: docs
docs: env-test ## Write docs/API.md and docs/CONFIGURATION.md from the proto, the errors and the settings
	@$(PY) -m scripts.gen_api_docs && $(PY) -m scripts.gen_config_docs

.PHONY: proto-check
proto-check: env-test tools ## buf lint, buf breaking, and whether generated files equal proto/
	@scripts/check_proto.sh
	@$(PY) -m scripts.gen_proto --check && $(PY) -m scripts.gen_api_docs --check

.PHONY: wheel-check
wheel-check: env-test ## Build the wheel, install it into an empty environment, run a daemon from it
	@$(PY) -m scripts.wheel_check

.PHONY: other-languages
other-languages: env tools ## Generate stubs for Go and TypeScript and run the examples against a daemon
	@scripts/other_languages.sh

.PHONY: bench
bench: env-test ## How fast memxd is, beside its peers; ARGS="--quick" or "--data DIR --sizes 10k,100k --only keyword"
	@$(PY) -m memxd.bench speed $(if $(CI_REQUIRE_TOOLS),--strict) $(ARGS)

.PHONY: debug
debug: env-test ## The kernels' tests with bounds checks and sanitizers
	@scripts/debug_kernels.sh $(ARGS)

.PHONY: fuzz
fuzz: env-test ## Random and damaged requests, socket bytes, files and indexes; ARGS="--seed 7 --seconds 600 [--what index]"
	@PYTHONPATH=. GRPC_VERBOSITY=NONE $(PY) tests/fuzz/fuzz_run.py $(ARGS)

.PHONY: torture
torture: env-test ## Kill a daemon under load again and again and compare; ARGS="--kills 200 --seed 7 [--points P...] [--json]" or "--faults"
	@PYTHONPATH=. GRPC_VERBOSITY=NONE $(PY) tests/torture/torture_run.py $(ARGS)

.PHONY: audit
audit: env-test ## Known vulnerabilities in what is installed, secrets in what is committed; says what it could not look at
	@$(PY) scripts/audit.py $(ARGS)

.PHONY: model-wheel
model-wheel: env ## Build the default model as a data wheel of our own into dist/
	@$(PY) scripts/build_model_wheel.py --out dist

.PHONY: tools
tools: ## Fetch pinned buf and grpcurl into .tools/, where npm and go are there
	@scripts/tools.sh

.PHONY: env
env: ## Make .venv with what the daemon needs, and compile the kernels
	@scripts/bootstrap.sh run

.PHONY: env-test
env-test: ## Make .venv with the tests' tools besides, and compile the kernels
	@scripts/bootstrap.sh test

.PHONY: clean
clean: clean-venv ## Remove everything made here but not committed
	@rm -rf .tools build dist coverage .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .demo *.egg-info
	@find memxd tests scripts examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: clean-venv
clean-venv:
	@rm -rf $(VENV)
	@rm -f memxd/_fast/*.so
