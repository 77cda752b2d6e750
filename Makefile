# make demo    a real Kafka, five apps on live messages, trending on Spark, their page (APP=stocks runs one; ARGS=…)
# make test    everything that must hold: style, types, tests with a real broker and a real Spark
# make quick   the developer's loop: style, types, and the tests that need neither
# make bench   every speed claim against its peer, as a table
# make soak    long campaigns: 500 faults, 250 M tuples, 100,000 broken images of sketches (docs/faults.md)
# make bounds  the laws once more with every array access of the kernels checked (five to ten minutes)
# make clean   remove the virtual environment and caches

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Tests start hundreds of processes, which would each compile all modules again where no bytecode may be kept.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test quick style types bench soak bounds clean setup

help:
	@sed -n 's/^# \(make .*\)/  \1/p' Makefile

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "streamgauge needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -y -q python3-venv; } \
	  || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "setting up $(VENV), once: about 700 MB are fetched, 400 of them Spark; how long that takes is up to your line"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -q --upgrade "pip>=24" "setuptools>=77"
	@PYTHONWARNINGS=ignore $(PIP) install -e ".[dev]"
	@$(BIN)/python -m streamgauge.apps.java --install
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/streamgauge demo apps $(APP) --engine mixed $(ARGS)

# Tests on all cores would compile one kernel several times over; the demo compiles the few that it runs.
$(VENV)/.warm: $(STAMP)
	@$(BIN)/streamgauge warm
	@touch $@

test: style types $(VENV)/.warm
	@$(BIN)/python -m pytest -n auto -m "not soak" $(ARGS)

quick: style types $(VENV)/.warm
	@$(BIN)/python -m pytest -q -x -m "not soak and not kafka and not spark" $(ARGS)

style: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# The root is the package under another name than its folder's: mypy sees it through a link of the right name.
types: $(STAMP)
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/streamgauge
	@cd $(VENV)/src && ../bin/mypy --config-file streamgauge/pyproject.toml -p streamgauge

$(VENV)/.bench: $(STAMP)
	@$(PIP) install -q -e ".[dev,bench]"
	@touch $@

bench: $(VENV)/.bench
	@$(BIN)/python -m bench $(ARGS)

soak: $(STAMP)
	@$(BIN)/python -m pytest -m soak $(ARGS)

bounds: $(STAMP)
	@NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -m "not spark and not soak" \
	  tests/laws tests/sketches tests/sampling $(ARGS)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
