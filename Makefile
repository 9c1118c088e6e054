# Everything is installed into .venv by scripts/bootstrap, once, and again when a lock changes: what the demo needs, and
# for other targets more. Written for the make 3.81 and the bash 3.2 of macOS too.
# ARGS goes to the command behind a target: make test ARGS="-k pairs", make lock ARGS="--upgrade".
SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
BASE := .venv/.base
DEV := .venv/.dev
MODELS := .venv/.models
RENDER := .venv/.render
DATAFLOW := .venv/.dataflow
WORDNET := .venv/.wordnet
ARGS ?=
BENCH ?= $(sort $(filter-out benchmarks/corrections.py benchmarks/cuts.py benchmarks/faces.py,$(wildcard benchmarks/[a-z]*.py)))

.PHONY: help demo test quick check runners extras harnesses labelstudio interpreters bench docs site dev models render dataflow lock clean
ifneq ($(shell cat .venv/.made-for 2>/dev/null),$(CURDIR))
.PHONY: $(BASE)  # .venv is another checkout's
endif

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' Makefile

# What cannot be had on this machine is left out, and the demo says so.
demo: $(BASE) ## Build and verify small datasets; ARGS=--all renders, draws and scores too (8 GB)
	-@$(MAKE) --no-print-directory $(WORDNET) $(if $(filter --all,$(ARGS)),$(MODELS))
	$(if $(filter --all,$(ARGS)),-@$(MAKE) --no-print-directory $(RENDER))
	$(BIN)/eqforge demo $(ARGS)

test: $(DEV) $(WORDNET) ## Run the tests
	$(BIN)/pytest $(ARGS)

quick: $(DEV) ## Run the tests of the files changed since HEAD, or since a commit: make quick SINCE=main
	@tests=$$(scripts/changed_tests $(SINCE)); [ -z "$$tests" ] || $(BIN)/pytest $$tests $(ARGS)

check: $(DEV) ## Lint, formatting, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

runners: $(DEV) $(MODELS) $(RENDER) $(WORDNET) ## Run the tests of all engines, Flink and Prism too: needs Java, Maven and Go
	deploy/flink/fetch
	deploy/prism/fetch
	EQFORGE_RUNNERS=all $(BIN)/pytest tests/runners $(ARGS)

extras: $(DEV) $(WORDNET) ## Install each extra from the wheel into a clean environment, and try it (15 GB, for a while)
	EQFORGE_EXTRAS=all EQFORGE_PYTHONS="$(EQFORGE_PYTHONS)" $(BIN)/pytest tests/extras $(ARGS)

harnesses: $(DEV) $(MODELS) ## Run lmms-eval and VLMEvalKit themselves on what is exported to them (0.3 GB)
	EQFORGE_HARNESSES=all $(BIN)/pytest tests/extras/test_harnesses.py $(ARGS)

labelstudio: $(DEV) $(WORDNET) ## Have votes given in Label Studio itself, installed for a while (1 GB)
	EQFORGE_LABEL_STUDIO=all $(BIN)/pytest tests/extras/test_label_studio.py $(ARGS)

interpreters: $(DEV) $(WORDNET) ## Build the same bytes with every Python there is; EQFORGE_PYTHONS="..." names more
	EQFORGE_PYTHONS="$(EQFORGE_PYTHONS)" $(BIN)/pytest tests/extras/test_interpreters.py $(ARGS)

bench: $(DEV) ## Run the benchmarks, or one: make bench BENCH=benchmarks/writer.py
	for file in $(BENCH); do echo "== $$file"; $(BIN)/python "$$file" $(ARGS) || exit 1; done

docs: $(DEV) ## Write the pages, and parts of pages, that follow from the code
	$(BIN)/python -m tools.rule_precision
	$(BIN)/python -m scripts.tables

site: $(DEV) ## Write the documentation as a site that opens from the folder, out/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

models: $(MODELS) ## Add the packages of the neural models and the evaluation to .venv (6 GB)

render: $(RENDER) ## Add kubric and Blender to .venv (1 GB)

dataflow: $(DATAFLOW) ## Add Beam's part for Google Cloud to .venv

dev: $(DEV) ## Add the packages of the tests and checks to .venv

lock: ## Resolve pyproject.toml into requirements/*.lock
	scripts/bootstrap
	scripts/lock $(ARGS)

clean: ## Remove .venv, caches and build products; datasets stay
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE): requirements/base.lock pyproject.toml setup.py scripts/bootstrap
	scripts/bootstrap base
	touch $@

$(DEV): $(BASE) requirements/dev.lock
	scripts/bootstrap dev
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
