# Commands for contributors. Needs Python >= 3.10, pip and cargo. Everything else is installed into .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python

# Sources of the native module. Python sources are used in place and need no rebuild.
NATIVE := pyproject.toml Cargo.toml Cargo.lock $(shell find rust -name '*.rs')
# pip and maturin both use VIRTUAL_ENV. maturin fails if CONDA_PREFIX is set too.
IN_VENV := env -u CONDA_PREFIX -u PYTHONPATH PIP_QUIET=1 VIRTUAL_ENV="$(abspath $(VENV))" PATH="$(abspath $(BIN)):$$PATH"
CODE    := python tests tools benchmarks examples packaging
# The tests start several hundred processes, each of which would compile the package without cached bytecode.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help dev demo example test test-rust test-python test-slow test-torch test-ray test-browser test-oldest test-newest coverage explore fuzz kills memcheck mutants soak format lint bench study shows licences docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.made:
	@command -v cargo >/dev/null || { echo "error: cargo is not on PATH; install Rust from https://rustup.rs" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "error: $(PYTHON) is older than 3.10; try make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check 'maturin>=1.7,<2'
	@touch $@

# The package alone, in an optimized build.
$(VENV)/.package: $(VENV)/.made $(NATIVE)
	$(IN_VENV) maturin develop --release --quiet
	@touch $@

# The package with the dependencies of tests and checks. A newer .dev includes .package.
$(VENV)/.dev: $(VENV)/.made $(NATIVE)
	$(IN_VENV) maturin develop --release --quiet --extras dev,bench
	@touch $(VENV)/.package $@

# Only the `docs` extra: the site needs no native build.
READ_TOML := __import__("tomllib" if __import__("sys").version_info >= (3, 11) else "pip._vendor.tomli", fromlist=["load"])
$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check \
	  $$($(PY) -c 'print(*$(READ_TOML).load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

dev: $(VENV)/.dev ## build the package with all development tools into .venv

demo: $(VENV)/.package ## train and compare taggers on the bundled corpora (under two minutes)
	$(BIN)/tagwise compare

example: $(VENV)/.package ## run an example: NAME=addresses, ingredients, references, notes, chunking, pos
	$(PY) -m examples.$(NAME) $(ARGS)

test: test-rust test-python ## run all tests, Rust and Python

test-rust: $(VENV)/.made ## run the Rust tests
	cargo test --no-default-features

test-python: $(VENV)/.dev ## run the Python tests (ARGS="-k name" to select, TAGWISE_DATA=... for corpora that are not bundled)
	$(PY) -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev ## run the slow Python tests: whole shell sessions
	$(PY) -m pytest -m slow $(ARGS)

# torch takes several GB: its environment is outside of the clone and is created once (see tools/environments.py).
test-torch: $(VENV)/.dev ## run the tests of tagwise.torch in a separate environment (ARGS="-m cuda" on a machine with a GPU)
	PYTHONPATH="$(abspath python)" $$($(PY) tools/environments.py torch) -m pytest tests/torch $(ARGS)

# Ray has a separate environment too.
test-ray: $(VENV)/.dev ## run the tests of tagwise.ray in a separate environment, on a local cluster
	PYTHONPATH="$(abspath python)" $$($(PY) tools/environments.py ray) -m pytest tests/ray $(ARGS)

# Packages of tagwise[web] and playwright, which controls the Chromium of the system, in a separate environment.
test-browser: $(VENV)/.dev ## run the tests of tagwise.apps.web, serve and annotate in a separate environment, with Chromium if it is installed
	PYTHONPATH="$(abspath python)" $$($(PY) tools/environments.py browser) -m pytest tests/web tests/cli/test_options_serve.py $(ARGS)

# Dependencies at the lower bounds of pyproject.toml, and at the newest versions on the index. Both use the core built by `make dev`, since
# abi3 works with every Python. The tests of the command line are excluded: they compare tables of one version of rich.
OLDEST ?= python3.10
NEWEST ?= python3.13
SUPPORTED := tests/unit tests/laws tests/e2e tests/foreign
test-oldest: $(VENV)/.dev ## run the tests with the oldest supported versions in a separate environment (OLDEST=python3.10)
	@$(OLDEST) -c "" || { echo "error: $(OLDEST) does not run; set another one with make test-oldest OLDEST=/path/to/python" >&2; exit 1; }
	PYTHONPATH="$(abspath python)" $$($(OLDEST) tools/environments.py oldest) -m pytest -m "not slow" $(or $(ARGS),$(SUPPORTED))

test-newest: $(VENV)/.dev ## run the tests with the newest versions in a separate environment (NEWEST=python3.13)
	@$(NEWEST) -c "" || { echo "error: $(NEWEST) does not run; set another one with make test-newest NEWEST=/path/to/python" >&2; exit 1; }
	PYTHONPATH="$(abspath python)" $$($(NEWEST) tools/environments.py newest) -m pytest -m "not slow" $(or $(ARGS),$(SUPPORTED))

coverage: $(VENV)/.dev ## measure line and branch coverage of the Python tests (at least 95 %)
	rm -rf target/coverage && mkdir -p target/coverage/site
	$(BIN)/coverage run -m pytest -n auto --maxprocesses 4 --dist worksteal --ignore tests/unit/test_corpus_fuzz.py $(ARGS)  # too slow with tracing
	# The environment of torch has no coverage package and uses the one of .venv.
	ln -s "$$($(PY) -c 'import coverage, os; print(os.path.dirname(coverage.__file__))')" target/coverage/site/coverage
	PYTHONPATH="$(abspath python):$(abspath target/coverage/site)" $$($(PY) tools/environments.py torch) -m coverage run -m pytest tests/torch
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

MINUTES ?= 5
explore: $(VENV)/.dev ## run the property tests with new examples for MINUTES=5 (ARGS="--seed 2 --times 10" or the name of a test)
	$(PY) -m tools.explore --minutes $(MINUTES) $(ARGS)

fuzz: $(VENV)/.dev ## fuzz corpora, templates and model files for MINUTES=5 (ARGS="--count 1000000 --seed 2")
	$(PY) -m tests.fuzz --minutes $(MINUTES) $(ARGS)

kills: $(VENV)/.dev ## kill writing processes at 200 moments and check the files they leave (ARGS="--kills 1000 --seed 2")
	$(PY) -m tests.kill $(ARGS)

memcheck: ## run the Rust tests under valgrind: out-of-bounds access, uninitialized memory, leaks
	@command -v valgrind >/dev/null || { echo "error: valgrind is not on PATH; install it with the package manager of the system" >&2; exit 1; }
	valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite \
	  $$(cargo test --no-default-features --no-run --message-format=json 2>/dev/null | $(PYTHON) -c 'import json, sys; print([m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")][-1])')

soak: $(VENV)/.dev ## MINUTES=30 of mixed load in one process: memory, descriptors and threads must stay constant
	$(PY) -m tests.soak --minutes $(MINUTES)

mutants: $(VENV)/.dev ## run mutation tests, which takes an hour or more (ARGS="--sample 300 --seed 1")
	$(PY) -m pip install --quiet --disable-pip-version-check 'tree-sitter>=0.25' 'tree-sitter-rust>=0.24'
	$(PY) -m tools.mutation $(ARGS)

format: $(VENV)/.dev ## format Python and Rust sources
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)
	cargo fmt

lint: $(VENV)/.dev ## check format, linters, types, the native stub, and the repository (tools/checks)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	cargo fmt --check
	cargo clippy --all-targets --quiet -- -D warnings
	$(PY) -m mypy --strict
	$(PY) -m mypy.stubtest tagwise._core --mypy-config-file pyproject.toml
	$(PY) -m tools.checks

bench: $(VENV)/.dev ## compare speed with other taggers (most benchmarks need TAGWISE_DATA)
	$(PY) -m benchmarks --limit 600 $(ARGS)

study: $(VENV)/.dev ## run the comparisons of the study and write its tables (ARGS="--only small-300", "--tables", "--check")
	$(PY) -m benchmarks.study $(ARGS)

shows: $(VENV)/.dev ## run the notebooks, the shell session and the pages of the documentation and update their output
	$(PY) -m tools.shows
	PYTHONPATH="$(abspath .)" $(PY) -m tools.shows.refresh $(ARGS)

licences: $(VENV)/.dev ## update docs/internals/licences.md from Cargo.lock and pyproject.toml
	$(PY) packaging/licences.py

docs: $(VENV)/.docs ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean: ## remove all build products
	rm -rf $(VENV) target site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
	find python -name '_core*.so' -delete
