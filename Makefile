# Everything a newcomer types. Needs python3 (3.11 or newer) and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help matrix test check unit interpreter bench clean

help:
	@echo "make matrix   set up, then run the 2,592-cell panel into runs/panel"
	@echo "make test     set up with the test tools, then check style, types, imports and run all tests"
	@echo "make check    style, types and import contracts only"
	@echo "make bench    the measurements of docs/measurements.md (minutes; not part of the tests)"

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@touch $@

$(VENV)/.run: $(VENV)/.python pyproject.toml
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --editable ".[service,homeassistant,models,report,data]"
	@touch $@

$(VENV)/.test: $(VENV)/.run
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --editable ".[local,inspect]" --group test
	@touch $@

# The weights of the small model that tests start, beside the environment.
.models/smollm2-135m.gguf: $(VENV)/.test
	RETIRE_MODELS=.models $(BIN)/retire models fetch smollm2-135m

# A real Home Assistant in an environment of its own; this release runs on Python 3.11 alone.
.homeassistant/.ready: $(VENV)/.python deploy/homeassistant/requirements.txt
	@if $(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then \
	  $(PYTHON) -m venv .homeassistant && \
	  VIRTUAL_ENV=.homeassistant $(BIN)/uv pip install --quiet --no-deps -r deploy/homeassistant/requirements.txt && \
	  touch $@; \
	else echo "Python 3.11 is needed for the Home Assistant tests; they are left out"; fi

matrix: $(VENV)/.run
	$(BIN)/retire matrix --out runs/panel

check: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two workers, a file at a time: files share nothing, tests of one file may share a run.
test: check .models/smollm2-135m.gguf .homeassistant/.ready
	$(BIN)/python -m pytest -n 2 --dist loadfile

unit: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/unit tests/golden tests/architecture

# A first look at another interpreter: make interpreter PYTHON=python3.13 VENV=.venv-3.13
interpreter: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/unit tests/contract/test_servers.py
	sed -e '/_L0[2-6]$$/d' -e '/- eager$$/d' -e '/- drifting$$/d' -e '/^repetitions/s/3/1/' \
	  bundles/protocols/panel.yaml >$(VENV)/small.yaml
	rm -rf $(VENV)/small
	$(BIN)/retire matrix --protocol $(VENV)/small.yaml --out $(VENV)/small

bench: $(VENV)/.run
	$(BIN)/python -m tests.bench.panel

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
