# Everything is installed into .venv by scripts/bootstrap, once, and again when a lock changes.
# ARGS goes to the command behind a target: make test ARGS="-k pairs", make lock ARGS="--upgrade".
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
BASE := .venv/.base
MODELS := .venv/.models
RENDER := .venv/.render
DATAFLOW := .venv/.dataflow
WORDNET := .venv/.wordnet
ARGS ?=
BENCH ?= $(sort $(filter-out benchmarks/corrections.py benchmarks/cuts.py,$(wildcard benchmarks/[a-z]*.py)))

.PHONY: help demo test check runners extras bench docs models render dataflow lock clean
ifneq ($(shell cat .venv/.made-for 2>/dev/null),$(CURDIR))
.PHONY: $(BASE)  # .venv is another checkout's
endif

help: ## List the commands
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16

demo: $(BASE) $(MODELS) $(RENDER) $(WORDNET) ## Build and verify small datasets of every sort, offline
	$(BIN)/eqforge demo $(ARGS)

test: $(BASE) $(WORDNET) ## Run the tests
	$(BIN)/pytest $(ARGS)

check: $(BASE) ## Lint, formatting, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

runners: $(BASE) $(MODELS) $(RENDER) $(WORDNET) ## Run the tests of all engines, Flink and Prism too: needs Java, Maven and Go
	$(BIN)/eqforge setup flink
	$(BIN)/eqforge setup prism
	EQFORGE_RUNNERS=all $(BIN)/pytest tests/runners $(ARGS)

extras: $(BASE) $(WORDNET) ## Install each extra from the wheel into a clean environment, and try it (15 GB, for a while)
	EQFORGE_EXTRAS=all $(BIN)/pytest tests/extras $(ARGS)

bench: $(BASE) ## Run the benchmarks, or one: make bench BENCH=benchmarks/writer.py
	for file in $(BENCH); do echo "== $$file"; $(BIN)/python "$$file" $(ARGS); done

docs: $(BASE) ## Write the pages, and parts of pages, that follow from the code
	$(BIN)/python scripts/reasons.py >docs/reference/reasons.md
	$(BIN)/python scripts/tables.py

models: $(MODELS) ## Add the packages of the neural models and the evaluation to .venv (6 GB)

render: $(RENDER) ## Add kubric and Blender to .venv (1 GB)

dataflow: $(DATAFLOW) ## Add Beam's part for Google Cloud to .venv

lock: ## Resolve pyproject.toml into requirements/*.lock
	scripts/bootstrap
	scripts/lock $(ARGS)

clean: ## Remove .venv, caches and build products; datasets stay
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE): requirements/base.lock pyproject.toml setup.py scripts/bootstrap
	scripts/bootstrap base
	touch $@

$(MODELS): $(BASE) requirements/models.lock
	scripts/bootstrap models
	touch $@

$(RENDER): $(BASE) requirements/render.lock
	scripts/bootstrap render
	touch $@

$(DATAFLOW): $(BASE) requirements/dataflow.lock
	scripts/bootstrap dataflow
	touch $@

$(WORDNET): | $(BASE)
	scripts/bootstrap wordnet
	touch $@
