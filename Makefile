# `make` from a clean clone needs python3 (3.11 or newer), make and git, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SMALL := $(VENV)/.demo
STAMP := $(VENV)/.installed
JOBS ?= 2
# pip says what it collects, and draws a bar in a terminal; PIP_QUIET=1 makes it silent.
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

# One thread a process: the tests run in JOBS processes, and torch's small matrices gain
# nothing from more threads.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
# The demo's packages are compiled where they are imported, not all of them at once; each
# process would do that anew if nothing was kept.
export PYTHONDONTWRITEBYTECODE :=

TUTORIALS := $(sort $(wildcard tutorials/*.py))

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all slow slow-tenth lint format docs tutorials notebooks packages \
	floors newest versions attacks mutants soak coverage browser clean FORCE

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(STAMP)  ## make .venv with everything (again whenever pyproject.toml changes)

# torch first, at one version that has a local CPU build here: resolved together with the
# rest, pip may pick a newer CUDA build of several gigabytes.
$(SMALL): pyproject.toml
	@echo "1. A virtual environment in $(VENV), and torch for the CPU (half a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --no-compile torch==2.13.0
	@echo "2. BoTorch, matplotlib, the command line (half a minute)"
	@$(PIP) install --no-compile -e '.[benchmarks,cli]'
	@touch $@

$(STAMP): $(SMALL)
	@echo "3. Ax, Optuna, Xopt, and the tools of the developers (a minute or two)"
	@$(PIP) install -e '.[all]'
	@touch $@

demo: $(SMALL)  ## a short run of the benchmarks, with a table and a picture
	$(BIN)/python -m benchmarks demo

PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=10 \
	--doctest-modules --doctest-glob='*.md' \
	tests botorch_drbo benchmarks/problems $(wildcard docs/*.md)

test: $(STAMP)  ## the tests that are not slow, with the examples in the docstrings
	$(PYTEST) -m 'not slow'

test-all: $(STAMP)  ## all tests, the slow ones included
	$(PYTEST)

slow-tenth: $(STAMP)  ## a tenth of the slow tests, another one after each commit
	$(PYTEST) -m slow --tenth $(shell git rev-list --count HEAD)

slow: $(STAMP)  ## measure all tests, and write anew which of them are slow
	$(PYTEST) --record-slow

lint: $(STAMP)  ## ruff, pyright, who may import whom, how large files and rooms are
	! git grep -nE '^(<<<<<<<|>>>>>>>) '
	$(BIN)/python .ci/small_files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python .ci/size.py

format: $(STAMP)  ## let ruff format and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)  ## the pages of docs/ into build/docs, every warning an error
	rm -rf build/docs
	$(BIN)/python -m sphinx -W --keep-going -E -q -b html docs build/docs
	@echo "open build/docs/index.html"

# Selenium is for this alone, in an environment of its own.
SELENIUM := build/selenium/bin/python
ifneq ($(and $(shell command -v chromium),$(shell command -v chromedriver)),)
browser: docs $(SELENIUM)  ## the site and a report in Debian's Chromium: console, widths, search
	rm -rf build/browser && mkdir -p build/browser
	cd build/browser && ../../$(BIN)/botorch-drbo example farm \
		| sed -n 's/^  botorch-drbo recommend/report/p' | xargs ../../$(BIN)/botorch-drbo
	$(SELENIUM) .ci/browser build/browser farm.html
	$(SELENIUM) .ci/browser build/docs index.html search.html
else
browser:
	@echo "no browser here, nothing was checked: apt-get install chromium chromium-driver"
endif

$(SELENIUM):
	$(PYTHON) -m venv build/selenium
	$@ -m pip --disable-pip-version-check --no-input install -q selenium

tutorials: $(TUTORIALS:tutorials/%.py=build/tutorials/%.ipynb)  ## run every tutorial, small budgets
	@echo "tutorials run: $(words $(TUTORIALS))"

build/tutorials/%.ipynb: tutorials/%.py $(STAMP) FORCE
	@mkdir -p $(@D)
	SMOKE_TEST=1 $(BIN)/python .ci/notebook $< $@

notebooks: $(TUTORIALS:.py=.ipynb)  ## run every tutorial in full, into the committed notebooks

tutorials/%.ipynb: tutorials/%.py $(STAMP) FORCE
	$(BIN)/python .ci/notebook $< $@

packages: $(STAMP)  ## wheel and sdist: built, installed into new environments, used
	.ci/packages $(BIN)/python

floors: $(STAMP)  ## the lowest versions that pyproject.toml allows: installed, tested
	.ci/floors $(BIN)/python

newest: $(STAMP)  ## the newest versions that pyproject.toml allows: installed, tested
	RESOLUTION=highest .ci/floors $(BIN)/python

versions: floors newest  ## both

attacks: $(STAMP)  ## random problems and damaged files, many of each (20 minutes of one core)
	BOTORCH_DRBO_ATTACKS=many $(BIN)/python -m pytest -n $(JOBS) --dist worksteal \
		tests/attacks tests/optimizer/test_damage.py tests/optimizer/test_all_problems.py \
		tests/recipes_golden

mutants: $(STAMP)  ## 200 small faults, one at a time: how many do the tests notice (an hour)
	$(BIN)/python -m tests.mutation --record --jobs $(JOBS)
	$(BIN)/python -m tests.mutation --sample 200 --seed 1 --jobs $(JOBS)
	$(BIN)/python -m tests.mutation --report

soak: $(STAMP)  ## 1,000 asks and tells with a model: memory, time of an ask
	$(BIN)/python -m tests.attacks.soak --rounds 1000

coverage: $(STAMP)  ## lines and branches of the library that all tests reach
	$(PYTEST) --cov=botorch_drbo --cov-branch --cov-report=term

clean:  ## remove what was built; .venv stays
	rm -rf build dist docs/tutorials docs/api/classes docs/api/recipes docs/inventories docs/project docs/command_line.md .pytest_cache .ruff_cache .hypothesis
