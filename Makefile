# make demo    a real Kafka, five apps on live messages, trending on Spark, their page (APP=stocks runs one; ARGS=…)
# make test    what must hold before each merge: style, types, tests with a real broker and a real Spark
# make slow    the tests of several seconds each that make test leaves out: faults, both engines, whole apps
# make quick   the developer's loop: style, types, and the tests that need neither; PKG=sketches for one folder's
# make bench   every speed claim against its peer, as a table
# make docs    the documentation as a site, in build/site; its search needs no network
# make sbom    a bill of materials of the core, in CycloneDX; ARGS="--extra spark" adds an extra
# make soak    long campaigns: 2,000 faults, 250 M tuples, 100,000 broken images of sketches (docs/evidence/faults.md)
# make versions  a small matrix of tests on each version of PySpark that works, each in its own environment
# make bounds  the laws once more with every array access of the kernels checked (five to ten minutes)
# make clean   remove the virtual environment and caches

PYTHON ?= python3
# INSTALL=yes lets apt-get install Java and Python's venv if they are missing, as root on Debian.
INSTALL ?=
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
DEV    := $(VENV)/.dev

# Tests start hundreds of processes, which would each compile all modules again where no bytecode may be kept.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test slow quick prepared style types bench docs sbom soak versions bounds clean setup

help:
	@sed -n 's/^# \(make .*\)/  \1/p' Makefile

setup: $(DEV)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "streamgauge needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { [ "$(INSTALL)" = yes ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -y -q python3-venv; } \
	  || { echo "Python's venv module is missing; on Debian, apt-get install python3-venv installs it, or, as root," \
	            "make $(MAKECMDGOALS) INSTALL=yes"; exit 1; }
	@INSTALL=$(INSTALL) $(PYTHON) apps/set_up.py $(VENV) apps
	@touch $(STAMP)

# The demo needs nothing of what tests and types are checked with.
$(DEV): $(STAMP)
	@INSTALL=$(INSTALL) $(PYTHON) apps/set_up.py $(VENV) dev
	@touch $(DEV)

demo: $(STAMP)
	@$(BIN)/streamgauge demo apps $(APP) --engine mixed $(ARGS)

# Tests on all cores would compile one kernel several times over; the demo compiles the few that it runs.
$(VENV)/.warm: $(STAMP)
	@$(BIN)/streamgauge env warm
	@touch $@

# PKG names a folder of the package; the laws are tests of sketches and samples, too.
PKG   :=
TESTS := $(if $(PKG),tests/$(PKG) $(if $(filter sketches% sampling%,$(PKG)),tests/laws))

test: style prepared
	@$(BIN)/python -m pytest -n auto -m "not soak and not slow" $(TESTS) $(ARGS)

slow: prepared
	@$(BIN)/python -m pytest -n auto -m "slow and not soak" $(TESTS) $(ARGS)

quick: style prepared
	@$(BIN)/python -m pytest -q -x -n auto -m "not soak and not slow and not kafka and not spark" $(TESTS) $(ARGS)

# Types are checked on one core while the others compile.
prepared: $(DEV)
	@$(MAKE) --no-print-directory -j 2 types $(VENV)/.warm

style: $(DEV)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python tests/words.py

# The root is the package under another name than its folder's: mypy sees it through a link of the right name.
types: $(DEV)
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/streamgauge
	@cd $(VENV)/src && ../bin/mypy --config-file streamgauge/pyproject.toml -p streamgauge

$(VENV)/.bench: $(DEV)
	@INSTALL=$(INSTALL) $(PYTHON) apps/set_up.py $(VENV) dev,bench
	@touch $@

bench: $(VENV)/.bench
	@$(BIN)/python -m bench $(ARGS)

# MkDocs stays out of the environment of tests, whose packages it might change.
$(VENV)/docs/.ready: pyproject.toml
	@$(PYTHON) -m venv $(VENV)/docs
	@sed -n 's/^docs = \[\(.*\)\].*/\1/p' pyproject.toml | tr -d '" ' | tr ',' '\n' | grep -v streamgauge \
	  | xargs $(VENV)/docs/bin/python -m pip --disable-pip-version-check install -q ruff
	@touch $@

docs: $(VENV)/docs/.ready
	@NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build -q
	@echo "build/site is ready; to see it: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/site 8000"

# In a folder of its own: the lock file that uv needs is no part of the project.
sbom: $(STAMP)
	@mkdir -p build/sbom && cp pyproject.toml build/sbom
	@cd build/sbom && ../../$(BIN)/uv export -q --preview-features sbom-export --format cyclonedx1.5 \
	  --no-emit-project $(ARGS) -o ../sbom.json
	@echo build/sbom.json

soak: $(DEV)
	@$(BIN)/python -m pytest -m soak -o timeout=0 $(ARGS)
	@STREAMGAUGE_WHOLE_LAWS=1 $(BIN)/python -m pytest -q -n auto -m "not soak" tests/laws

versions: $(DEV)
	@$(BIN)/python -m pytest -m soak -o timeout=0 -k matrix tests/spark_udafs/test_versions.py $(ARGS)

bounds: $(DEV)
	@NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -q -m "not spark and not soak" \
	  tests/laws tests/sketches tests/sampling $(ARGS)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
