# make run Q="..."   answer one question          make test    the default test suite
# make check         lint, types, import arrows   make evals   the offline eval suites
Q ?= what GPU for 70B QLoRA?
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := --extra build --extra llm --extra http --extra mcp --extra slack --extra postgres

.PHONY: run test test-slow check evals setup bench clean lock

run: $(VENV)/.run
	@$(BIN)/advisor ask "$(Q)"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m slow

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

evals: $(VENV)/.dev
	$(BIN)/advisor eval run

bench: $(VENV)/.dev
	$(BIN)/python -m evals.bench

setup: $(VENV)/.run

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The stamp files keep a second `make run` from touching the network.
$(VENV)/.run: $(VENV)/bin/python requirements.lock pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@$(BIN)/python -m knowledge.build > /dev/null
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

clean:
	rm -rf $(VENV) knowledge/knowledge.db .pytest_cache .mypy_cache .ruff_cache

lock: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml $(EXTRAS) --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-annotate --no-header -q -o requirements.lock
	$(BIN)/uv pip compile pyproject.toml $(EXTRAS) --extra dev --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-annotate --no-header -c requirements.lock -q -o requirements-dev.lock
