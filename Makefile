# Everything here sets itself up: a machine with Python >= 3.11, pip and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt
RESULTS ?= all
SCALE ?= smoke
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help run test lint reproduce bench soak-solver soak-kill soak-pairs soak-fuzz soak-load test-lowest docs docs-open sbom clean

help:  ## Show what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

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
	$(ONE_THREAD) $(BIN)/pytest -n 2 --dist loadgroup

# Warnings are errors; then every link inside is followed, and nothing may come from the network.
docs: $(VENV)/.dev  ## Build the site into docs/_build/html
	$(ONE_THREAD) $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build/html -d docs/_build/doctrees
	$(BIN)/python scripts/check_site.py docs/_build/html

docs-open: docs  ## Build the site and say where it is
	@echo "open file://$(CURDIR)/docs/_build/html/index.html"

reproduce: $(VENV)/.dev  ## Reproduce the paper: RESULTS="label-noise tsne" SCALE=cpu (or smoke, paper)
	$(ONE_THREAD) $(BIN)/python -m reproduction $(RESULTS) --scale $(SCALE)

bench: $(VENV)/.dev  ## Measure speed and memory against peers in the same run
	$(ONE_THREAD) $(BIN)/python -m benchmarks

# The soaks keep where they are in .soak, and go on from there.
soak-solver: $(VENV)/.dev  ## Compare the solver with its oracles on 100,000 problems (hours)
	$(ONE_THREAD) $(BIN)/python -m tools.soak.solver

soak-kill: $(VENV)/.dev  ## Kill commands 200 times at random moments; they end bitwise the same
	$(ONE_THREAD) $(BIN)/python -m tools.soak.kill

soak-pairs: $(VENV)/.dev  ## Start 50 pairs of commands on one folder; none mixes its results with another
	$(ONE_THREAD) $(BIN)/python -m tools.soak.pairs

soak-fuzz: $(VENV)/.dev  ## Damage files, make up command lines, give kmm numbers of any magnitude
	$(ONE_THREAD) $(BIN)/python -m tools.soak.fuzz
	$(ONE_THREAD) $(BIN)/python -m tools.soak.readers
	$(ONE_THREAD) $(BIN)/python -m tools.soak.numbers

soak-load: $(VENV)/.dev  ## 300 epochs, a table of a million rows, 200 queued runs
	$(ONE_THREAD) $(BIN)/python -m tools.soak.load

$(LOWEST)/.dev: pyproject.toml constraints.txt scripts/lowest_versions.py
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(PYTHON) scripts/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet -c $(LOWEST)/constraints.txt -e '.[all]' --group test --group paper
	@touch $@

test-lowest: $(LOWEST)/.dev  ## Run the tests with the oldest versions of what diw needs, except torch
	$(ONE_THREAD) $(LOWEST)/bin/pytest -n 2 --dist loadgroup $(TESTS)

sbom: $(VENV)/.run  ## List what the core needs: docs/licences.md, and an SBOM (CycloneDX) in dist
	$(BIN)/python scripts/list_dependencies.py docs/licences.md dist/sbom.json

clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) $(LOWEST) docs/_build docs/gallery docs/repository .pytest_cache .ruff_cache .import_linter_cache .hypothesis
