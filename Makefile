# Every target sets up what it needs: `make demo` and `make test` are the two commands of the README.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export RAY_USAGE_STATS_ENABLED := 0

.PHONY: setup demo check test bench clean
.DEFAULT_GOAL := help

help:
	@echo "make setup   virtual environment in $(VENV) with everything installed"
	@echo "make demo    the quick sweep on the shipped tiny target; prints the path of its report"
	@echo "make test    all tests"
	@echo "make check   ruff, formatting, mypy, import directions"
	@echo "make bench   benchmarks, one JSON line each"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Python 3.11 or newer is needed, this is %d.%d: set PYTHON=..." % v[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

demo: setup
	$(BIN)/spot run quick

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup
	$(BIN)/python -m pytest

bench: setup
	@set -e; for bench in tests/bench/bench_*.py; do $(BIN)/python $$bench; done

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
