# Everything is made inside the checkout: the environment is .venv, and nothing else is written outside it.
# Needed: make, and Python 3.11 or newer. Another interpreter: make test PYTHON=/path/to/python

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
NEW_ENOUGH := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
FIND_PYTHON = $(firstword $(foreach p,python3.11 python3 python3.12 python3.13 python3.14 python,$(shell $(p) -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo $(p))))

.PHONY: help demo test bench check clean

help: ## Say what there is to make.
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

demo: $(VENV)/.package ## Run files of tool calls, writes to a tracker among them, and show the results.
	@mkdir -p build
	@rm -f build/issues.db build/issues.db-wal build/issues.db-shm
	$(BIN)/harbor-async tracker init build/issues.db
	$(BIN)/harbor-async tracker add build/issues.db T-1 'The pump drips'
	$(BIN)/harbor-async tracker add build/issues.db T-2 'Article QX-9999 cannot be ordered'
	$(BIN)/harbor-async tracker add build/issues.db T-3 'Refunds are slow'
	@echo
	$(BIN)/harbor-async tools examples/tracker.py
	@echo
	TRACKER=build/issues.db $(BIN)/harbor-async run examples/tracker.py examples/tracker_calls.jsonl -o build/tracker.jsonl || test $$? -eq 1
	@echo
	$(BIN)/harbor-async tracker list build/issues.db
	@echo
	$(BIN)/harbor-async tracker history build/issues.db T-1
	@echo
	@echo 'The four failures are meant: a state and an issue that are not there, a blank comment, an unknown operation.'
	@echo 'A larger file, with slow and failing tools, broken lines and wrong arguments:'
	$(BIN)/harbor-async run examples/catalog.py examples/calls.jsonl -o build/demo.jsonl || test $$? -eq 1
	@echo
	@echo 'Each call has its answer in build/demo.jsonl, as a success, a refusal and a cut connection:'
	@for call in call_001 call_110 call_060; do grep -m 1 "\"id\":\"$$call\"" build/demo.jsonl; done

test: $(VENV)/.test ## Run the tests, on asyncio and trio.
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: $(VENV)/.test ## Measure the shell against the hand-written floor.
	$(BIN)/python -m bench.smoke

check: $(VENV)/.dev ## Run every gate of CI.
	$(BIN)/nox

clean: ## Remove the environment and everything built.
	rm -rf $(VENV) .nox .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist docs/_build

# One stamp a level, so that a second make installs nothing. A changed pyproject.toml installs again.
# An environment that is there already and works is taken as it is.
$(VENV)/.venv:
	@if $(BIN)/python -c 'import pip; $(NEW_ENOUGH)' >/dev/null 2>&1; then exit 0; fi; \
	python='$(or $(PYTHON),$(FIND_PYTHON))'; \
	if ! "$${python:-false}" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then \
		echo "harbor_async needs Python 3.11 or newer with its venv module (Debian: apt-get install python3-venv)." >&2; \
		echo "Found: $${python:-none on the PATH}. Name another one: make PYTHON=/path/to/python3.11 ..." >&2; \
		exit 1; \
	fi; \
	"$$python" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.package: $(VENV)/.venv pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	@touch $@

$(VENV)/.test: $(VENV)/.package pyproject.toml
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.dev: $(VENV)/.test pyproject.toml
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@
