# Everything here works on a machine with only Python 3.11+ and make.
PYTHON ?= python3
BIN := .venv/bin
# The stamp names the version, so that another PYTHON makes another .venv.
READY := .venv/ready-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
.DEFAULT_GOAL := help
.PHONY: help setup demo serve test soak bench hammer lint lock

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

setup: $(READY) ## create .venv and install everything from requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Staylog needs Python 3.11 to 3.13; name one: make PYTHON=python3.13 setup") if not (3, 11) <= sys.version_info < (3, 14) else 0'
	@echo "Setting up .venv from requirements.lock (about a minute, once)"
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $@

test: setup ## run the tests, but for the long ones
	@$(BIN)/python -m pytest -n auto $(ARGS)

soak: setup ## run the long tests, which `make test` leaves out
	@$(BIN)/python -m pytest -m soak $(ARGS)

lint: setup ## ruff, mypy --strict and the layer rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

bench: setup ## compare with peers and bounds, in one run
	@$(BIN)/python -m benchmarks $(ARGS)

serve: setup ## run the service on http://127.0.0.1:8080, with its data in ./data
	@$(BIN)/staylog serve $(ARGS)

hammer: setup ## kill a writing ledger again and again, and look whether anything is lost (ARGS=--help)
	@$(BIN)/python -m tests.crash.hammer $(ARGS)

demo: setup ## tell the story end to end, then leave the service running
	@$(BIN)/python -m demo $(ARGS)

lock: ## pin what pyproject.toml asks for, with hashes and without host names
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet pip-tools
	@.venv-lock/bin/pip-compile --quiet --all-extras --generate-hashes --strip-extras --allow-unsafe --no-header --no-annotate \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file requirements.lock pyproject.toml
	@rm -rf .venv-lock
