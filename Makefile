# Everything here sets itself up: a machine with Python >= 3.11, pip and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help run test lint bench soak clean

help:  ## Show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

# The stamps are newer than what they depend on, so a second make installs nothing.
$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(INSTALL) -e '.[all]' --group dev
	@touch $@

run: $(VENV)/.run  ## Compare uniform training with DIW on mislabelled images (a few minutes)
	$(BIN)/diw compare

lint: $(VENV)/.dev  ## Check style, types, the direction of imports and dead code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/vulture

test: lint  ## Lint, then run every test
	$(ONE_THREAD) $(BIN)/pytest -n 2

bench: $(VENV)/.dev  ## Measure speed and memory against peers in the same run
	$(ONE_THREAD) $(BIN)/python -m benchmarks

soak: $(VENV)/.dev  ## Compare the solver with its oracles on 100,000 problems (hours)
	$(ONE_THREAD) $(BIN)/python -m tests.matching.soak

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis
