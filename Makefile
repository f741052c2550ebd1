# The contributor's menu. Needs Python >= 3.10, pip and cargo; everything else goes into .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python

# What the installed package is made of; Python sources are used in place, so they need no stamp.
NATIVE := pyproject.toml Cargo.toml Cargo.lock $(shell find rust -name '*.rs')
# pip and maturin both look at VIRTUAL_ENV; CONDA_PREFIX beside it makes maturin refuse to choose.
IN_VENV := env -u CONDA_PREFIX -u PYTHONPATH PIP_QUIET=1 VIRTUAL_ENV="$(abspath $(VENV))" PATH="$(abspath $(BIN)):$$PATH"
CODE    := python tests tools benchmarks examples packaging
# The tests start some hundred processes; without bytecode each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help dev demo example test test-rust test-python test-slow test-torch test-ray test-browser test-oldest test-newest coverage explore fuzz kills memcheck mutants soak format lint bench study shows licences docs clean

help: ## show this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.made:
	@command -v cargo >/dev/null || { echo "error: cargo is not on PATH; install Rust from https://rustup.rs" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "error: $(PYTHON) is older than 3.10; try make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check 'maturin>=1.7,<2'
	@touch $@

# The package alone, built with optimisation: enough to use it.
$(VENV)/.package: $(VENV)/.made $(NATIVE)
	$(IN_VENV) maturin develop --release --quiet
	@touch $@

# The package with what tests and checks need; a newer .dev stands for .package too.
$(VENV)/.dev: $(VENV)/.made $(NATIVE)
	$(IN_VENV) maturin develop --release --quiet --extras dev,bench
	@touch $(VENV)/.package $@

# Only what the `docs` extra names: the site needs no native build.
READ_TOML := __import__("tomllib" if __import__("sys").version_info >= (3, 11) else "pip._vendor.tomli", fromlist=["load"])
$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check \
	  $$($(PY) -c 'print(*$(READ_TOML).load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@

dev: $(VENV)/.dev ## build everything into .venv, ready to work on

demo: $(VENV)/.package ## train and compare taggers on the bundled corpora (under two minutes)
	$(BIN)/tagwise compare

example: $(VENV)/.package ## one of the programs to copy: NAME=addresses, ingredients, references, notes, chunking, pos
	$(PY) -m examples.$(NAME) $(ARGS)

test: test-rust test-python ## all tests, Rust and Python

test-rust: $(VENV)/.made ## the core's own tests
	cargo test --no-default-features

test-python: $(VENV)/.dev ## the Python tests (ARGS="-k name" to choose; TAGWISE_DATA=... for measuring corpora)
	$(PY) -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev ## the Python tests that are marked slow: whole sessions of a shell
	$(PY) -m pytest -m slow $(ARGS)

# torch is several GB: its environment lies outside the clone, and is made once (see tools/environments.py).
test-torch: $(VENV)/.dev ## the tests of tagwise.torch, in an environment of their own (ARGS="-m cuda" on a machine with a GPU)
	PYTHONPATH="$(abspath python)" $$($(PY) tools/environments.py torch) -m pytest tests/torch $(ARGS)

# The same for Ray.
test-ray: $(VENV)/.dev ## the tests of tagwise.ray on a cluster of this machine, in an environment of their own
	PYTHONPATH="$(abspath python)" $$($(PY) tools/environments.py ray) -m pytest tests/ray $(ARGS)

# Packages of tagwise[web], and playwright, which drives the system's Chromium: an environment outside the clone as well.
test-browser: $(VENV)/.dev ## the tests of tagwise.apps.web, serve and annotate, in an environment of their own, with Chromium if it is there
	PYTHONPATH="$(abspath python)" $$($(PY) tools/environments.py browser) -m pytest tests/web tests/cli/test_options_serve.py $(ARGS)

# The package's own needs at the lower bounds of pyproject.toml, and at what the index has today. Both take the core that `make dev` built:
# abi3 serves every Python. The command line's own tests look at tables of one version of rich, and are not for these.
OLDEST ?= python3.10
NEWEST ?= python3.13
SUPPORTED := tests/unit tests/laws tests/e2e tests/foreign
test-oldest: $(VENV)/.dev ## tests with the oldest versions that are supported, in an environment of their own (OLDEST=python3.10)
	@$(OLDEST) -c "" || { echo "error: $(OLDEST) does not run; make test-oldest OLDEST=/path/to/python names another" >&2; exit 1; }
	PYTHONPATH="$(abspath python)" $$($(OLDEST) tools/environments.py oldest) -m pytest -m "not slow" $(or $(ARGS),$(SUPPORTED))

test-newest: $(VENV)/.dev ## tests with the newest versions there are, likewise (NEWEST=python3.13)
	@$(NEWEST) -c "" || { echo "error: $(NEWEST) does not run; make test-newest NEWEST=/path/to/python names another" >&2; exit 1; }
	PYTHONPATH="$(abspath python)" $$($(NEWEST) tools/environments.py newest) -m pytest -m "not slow" $(or $(ARGS),$(SUPPORTED))

coverage: $(VENV)/.dev ## lines and branches of the package that the Python tests reach: 95 % or more
	rm -rf target/coverage && mkdir -p target/coverage/site
	$(BIN)/coverage run -m pytest -n auto --maxprocesses 4 --dist worksteal --ignore tests/unit/test_corpus_fuzz.py $(ARGS)  # traced, its mutations would crawl
	# The environment of torch has no coverage: it borrows this one's.
	ln -s "$$($(PY) -c 'import coverage, os; print(os.path.dirname(coverage.__file__))')" target/coverage/site/coverage
	PYTHONPATH="$(abspath python):$(abspath target/coverage/site)" $$($(PY) tools/environments.py torch) -m coverage run -m pytest tests/torch
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

MINUTES ?= 5
explore: $(VENV)/.dev ## new examples for the property tests for MINUTES=5 (ARGS="--seed 2 --times 10" or a test's name)
	$(PY) -m tools.explore --minutes $(MINUTES) $(ARGS)

fuzz: $(VENV)/.dev ## damaged corpora, templates and model files for MINUTES=5 (ARGS="--count 1000000 --seed 2")
	$(PY) -m tests.fuzz --minutes $(MINUTES) $(ARGS)

kills: $(VENV)/.dev ## kill writers at 200 moments and look at what they leave (ARGS="--kills 1000 --seed 2")
	$(PY) -m tests.kill $(ARGS)

memcheck: ## the core's own tests under valgrind: reads and writes out of bounds, memory that was never set
	@command -v valgrind >/dev/null || { echo "error: valgrind is not on PATH; install it with the system's packages" >&2; exit 1; }
	valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite \
	  $$(cargo test --no-default-features --no-run --message-format=json 2>/dev/null | $(PYTHON) -c 'import json, sys; print([m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")][-1])')

soak: $(VENV)/.dev ## MINUTES=30 of mixed load in one process: memory, descriptors and threads stay flat
	$(PY) -m tests.soak --minutes $(MINUTES)

mutants: $(VENV)/.dev ## how many small faults the tests notice: a long run (ARGS="--sample 300 --seed 1")
	$(PY) -m pip install --quiet --disable-pip-version-check 'tree-sitter>=0.25' 'tree-sitter-rust>=0.24'
	$(PY) -m tools.mutation $(ARGS)

format: $(VENV)/.dev ## format Python and Rust sources
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)
	cargo fmt

lint: $(VENV)/.dev ## format check, linters, types, native stub against the binary, tools/checks
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	cargo fmt --check
	cargo clippy --all-targets --quiet -- -D warnings
	$(PY) -m mypy --strict
	$(PY) -m mypy.stubtest tagwise._core --mypy-config-file pyproject.toml
	$(PY) -m tools.checks

bench: $(VENV)/.dev ## ratios against other taggers, measured side by side (needs TAGWISE_DATA for most)
	$(PY) -m benchmarks --limit 600 $(ARGS)

study: $(VENV)/.dev ## run the study's comparisons, write its tables (ARGS="--only small-300", "--tables", "--check")
	$(PY) -m benchmarks.study $(ARGS)

shows: $(VENV)/.dev ## run the notebooks and the shell session of the documentation anew, and write what they print
	$(PY) -m tools.shows

licences: $(VENV)/.dev ## write docs/licences.md anew, from Cargo.lock and pyproject.toml
	$(PY) packaging/licences.py

docs: $(VENV)/.docs ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean: ## remove everything that was built
	rm -rf $(VENV) target site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
	find python -name '_core*.so' -delete
