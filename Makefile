# The documented commands; CI calls the same ones. `make` alone lists them.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
COMPILED := .venv/.compiled
GENERATORS := .venv/generators
PEERS := .venv/peers
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
  --no-emit-index-url --no-emit-find-links --no-emit-package dither --no-emit-package pip --custom-compile-command "make lock"
# On a terminal it shows what it downloads.
PIP = -m pip install $$([ -t 2 ] || echo -qq) --disable-pip-version-check --no-compile --no-deps
PYTEST_ARGS ?=
# Tests wait for servers, disks and browsers about half of their time: four of them keep two cores busy.
# tests/conftest.py says in which order.
SPREAD := -n 4 --dist loadfile --no-loadscope-reorder
SERVE_ARGS ?= --data-dir .dither --port 8000
DEMO_ARGS ?=
BENCH_ARGS ?=
# A run with ten million people takes half an hour, and 12 GB of disk.
SCALE_LARGEST ?= 10000000
# Commands that the browser client is built and tested with, and their Debian packages where they differ.
BROWSER_TOOLS := chromium node:nodejs npm
HAS_NODE := command -v node >/dev/null && command -v npm >/dev/null

# Python files are compiled when they are first imported: `pip install` would compile all, and tests that start
# hundreds of processes must not compile the same ones again and again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup setup-browser setup-model lock sdk format check golden mutants test test-quick test-js test-r test-model test-storms test-slow test-statistical coverage demo serve migrate peers bench bench-scale docs screenshots thirty-answers check-migrations audit-dependencies release clean
.DEFAULT_GOAL := help

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 26

setup: $(STAMP) ## make .venv with everything in it; .venv/bin/dither is the command

$(STAMP): requirements-dev.lock pyproject.toml client/pyproject.toml research/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "installing the $$(grep -c '^[a-z].*==' requirements-dev.lock) packages of requirements-dev.lock into .venv; the first time takes a minute or two"
	@$(BIN)/python $(PIP) --require-hashes -r requirements-dev.lock
	@$(BIN)/python $(PIP) --no-build-isolation -e . -e ./client -e ./research
	@touch $(STAMP)

setup-browser: ## build client/js; installs Chromium and Node.js where they are missing (Debian, as root)
	@missing=(); \
	for tool in $(BROWSER_TOOLS); do command -v "$${tool%:*}" >/dev/null || missing+=("$${tool#*:}"); done; \
	[ "$${#missing[@]}" -eq 0 ] && exit; \
	if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$${missing[@]}" && exit; \
	fi; \
	if [ "$$DITHER_TEST_BROWSER" = required ]; then echo "missing: $${missing[*]}" >&2; exit 1; fi; \
	echo "browser tests are skipped: missing $${missing[*]} (not root, or no apt-get to install them with)" >&2
	@if $(HAS_NODE); then \
	  cd client/js && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci; } && npm run build; \
	fi

setup-model: setup-browser ## install what runs the model of the ledger (tests/model), where there is Node.js
	@if $(HAS_NODE); then \
	  cd tests/model && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts; }; \
	fi

lock: ## renew the lock files from pyproject.toml (needs uv: pip install uv)
	$(COMPILE) --upgrade --extra dev --extra embedded --extra telemetry -o requirements-dev.lock pyproject.toml
	$(COMPILE) --constraint requirements-dev.lock --extra embedded --extra telemetry -o requirements.lock pyproject.toml
	echo hatchling | $(COMPILE) --constraint requirements-dev.lock -o requirements-build.lock -
	echo cyclonedx-bom | $(COMPILE) -o requirements-release.lock -
	echo openapi-python-client | $(COMPILE) -o requirements-generators.lock -
# What diffprivlib 0.6.6 imports of scikit-learn, later versions do not have.
	printf 'diffprivlib\nscikit-learn<1.7\n' | $(COMPILE) -o requirements-peers.lock -

sdk: setup ## make the SDK's models from the OpenAPI document, and its synchronous methods from the asynchronous ones
	$(BIN)/python client/models.py
	$(BIN)/python client/unasync.py

format: setup ## sort imports and format the code
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

check: setup ## lint, format, types and import contracts, without changing anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

# What makes a client from the OpenAPI document needs an older typer than the command: an environment of its own.
$(GENERATORS)/.stamp: requirements-generators.lock | setup
	$(PYTHON) -m venv --clear $(GENERATORS)
	@$(GENERATORS)/bin/python $(PIP) --require-hashes -r requirements-generators.lock
	@touch $@

# A library that `accuracy` compares with needs scikit-learn, which nothing else does.
$(PEERS)/.stamp: requirements-peers.lock | setup
	$(PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/bin/python $(PIP) --require-hashes -r requirements-peers.lock
	@touch $@

peers: $(PEERS)/.stamp ## install what the benchmark `accuracy` compares with, in an environment of its own

# The processes that share the tests begin together, and each would compile the same modules. What is wrong with a
# test, the tests say.
$(COMPILED): $(STAMP)
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

test: check test-js setup-model $(COMPILED) $(GENERATORS)/.stamp ## everything that must hold: check, then all tests but the slow ones
	DITHER_TEST_ENTROPY=$${DITHER_TEST_ENTROPY:-commit} PYTHONHASHSEED=0 $(BIN)/python -m pytest -m "not slow" $(SPREAD) $(PYTEST_ARGS)

test-quick: setup ## the tests that take no time, on a real database too, while you work
	PYTHONHASHSEED=0 $(BIN)/python -m pytest --hypothesis-profile=quick -m "not slow and not long and not system and not statistical" $(SPREAD) $(PYTEST_ARGS)

test-js: setup-browser ## the tests of the browser client that need no browser
	@if $(HAS_NODE); then cd client/js && npm test; else echo "test-js is skipped: missing nodejs or npm" >&2; fi

test-r: setup ## the tests of the package for R; installs R where it is missing (Debian, as root)
	@command -v Rscript >/dev/null || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
	  r-base-core r-cran-httr2 r-cran-jsonlite r-cran-tibble; }
	DITHER_TEST_R=required PYTHONHASHSEED=0 $(BIN)/python -m pytest tests/system/test_r.py $(PYTEST_ARGS)

test-model: setup setup-model ## the model of the ledger: its promises, planted faults and traces, with numbers
	PYTHONHASHSEED=0 $(BIN)/python -m pytest -m "not slow" tests/model $(PYTEST_ARGS)

test-storms: setup ## storms by seed and the search for what explains them; STORM=7 replays the storm of a seed
	PYTHONHASHSEED=0 $(BIN)/python -m $(if $(STORM),tests.storms $(STORM),pytest tests/storms -k "not many" $(PYTEST_ARGS))

mutants: setup ## plant faults in a copy of the tree, and run the tests that must find each
	$(BIN)/python -m tests.mutants $(MUTANTS)

golden: setup ## renew the files in tests/golden after a change of what the API answers
	GOLDEN=renew $(BIN)/python -m pytest tests/golden

test-slow: setup setup-model ## the tests that take longer than a minute each
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

test-statistical: setup ## the statistical tests and privacy audits, on fresh entropy
	DITHER_TEST_ENTROPY=os $(BIN)/python -m pytest -m statistical $(PYTEST_ARGS)

coverage: setup setup-model ## the tests again, with the part of the code that they run; fails below the floor
	$(BIN)/python -m coverage erase
	PYTHONHASHSEED=0 $(BIN)/python -m coverage run -m pytest -m "not slow" $(SPREAD) $(PYTEST_ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

demo: setup ## the whole service on real data, in the foreground until interrupted
	$(BIN)/dither demo $(DEMO_ARGS)

serve: setup ## the service with its embedded PostgreSQL under .dither
	$(BIN)/dither serve $(SERVE_ARGS)

migrate: setup ## bring the schema of DITHER_DATABASE_URL (or .dither) up to date
	$(BIN)/dither migrate $(if $(DITHER_DATABASE_URL),,--data-dir .dither)

bench: setup $(PEERS)/.stamp ## the benchmarks, as ratios measured in one run
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

bench-scale: setup ## what each step costs by size, up to SCALE_LARGEST people: renews docs/scale.json
	rm -f docs/scale.json
	$(BIN)/python -m benchmarks scale --largest $(SCALE_LARGEST) --result docs/scale.json

docs: setup ## regenerate the reference pages that are made from the code, and build the site into site/
	$(BIN)/python -m docs.generate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

screenshots: export DITHER_TEST_BROWSER = required
screenshots: setup-browser setup ## take the pictures of the dashboard in docs/screenshots again
	SCREENSHOTS=1 $(BIN)/python -m pytest tests/system/test_dashboard.py \
	  tests/system/test_importing.py tests/system/test_walk.py

thirty-answers: setup-browser setup ## from an empty directory to thirty answers by link, as people do it, with the time
	$(BIN)/python -m tools.thirty_answers

check-migrations: ## that no migration of a tagged release was edited
	$(BIN)/python3 -m tools.migrations

audit-dependencies: ## known vulnerabilities of what the locks pin (needs pip-audit: pip install pip-audit)
	$(BIN)/python3 -m tools.dependencies pip-audit requirements.lock requirements-dev.lock requirements-build.lock requirements-release.lock requirements-generators.lock requirements-peers.lock

release: setup setup-browser check-migrations ## wheels, packages for npm and R, image context and bill of materials into dist/, checked, with their hashes
	$(BIN)/python -m tools.release dist

clean: ## remove what the tools left behind; keeps .venv and .dither
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* .import_linter_cache build dist site
	find app client research tests tools migrations benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
