# `make demo` and `make test` are all a newcomer needs: both build the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= results

.PHONY: setup demo test test-slow bench bench-robustness bench-scale certificates docs dist evidence lint format clean

setup: $(STAMP)

# Installed again only when pyproject.toml changes; the package itself is editable, and compiled here
# as pip compiles what it copies: where PYTHONDONTWRITEBYTECODE is set, each command would do it anew.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("mtbayes needs Python 3.11 or newer; try: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m compileall -q src
	touch $@

# Below 90 seconds on two cores, once installed.
demo: $(STAMP)
	$(BIN)/mtbayes demo --out $(OUT)

# One thread for BLAS in each worker: threads that wait for each other spin.
test test-slow: export OMP_NUM_THREADS = 1
test: lint
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

# What `make test` leaves out because it takes longer.
test-slow: $(STAMP)
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m slow

# Ours beside PyTorch, bayesian-torch, NumPyro and scikit-learn; about an hour alone, a third of it
# with `--quick`.
bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps bayesian-torch==0.5.0
	$(BIN)/python benchmarks/speed.py --out $(OUT)/bench

# The estimators beside deep ensembles, cleanlab and scikit-learn on dirty labels and targets; hours.
# `make bench-robustness ROBUSTNESS=--quick` is the short one. Set MTBAYES_DATA for the large sets.
bench-robustness: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	$(BIN)/python benchmarks/robustness.py $(ROBUSTNESS) --out $(OUT)/robustness

# Rows larger than memory, devices and processes; about half an hour and 1 GB of files below SCRATCH.
bench-scale: $(STAMP)
	$(BIN)/python benchmarks/scale.py --out $(OUT)/scale $(if $(SCRATCH),--scratch $(SCRATCH))

# How tight certificates are, on MNIST from the folder in MTBAYES_DATA; half an hour or more.
certificates: $(STAMP)
	$(BIN)/python benchmarks/certificates.py --out $(OUT)/certificates

# The site, into site/: open site/index.html. Once its tools are installed no network is needed.
# Not --quiet: mkdocs would not count the warnings that it hides, and a dead link would pass.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	touch $@

# Fills the tables of the pages from docs/measured and writes docs/evidence.md; ends with an error if any
# number shown is older than the code it measures.
# `python tools/evidence.py --record NAME ...` notes that numbers were measured on this commit.
evidence:
	$(PYTHON) tools/measured.py
	$(PYTHON) tools/evidence.py

# Both files of a release in dist/, and the wheel tried with the oldest and the newest dependencies; about
# ten minutes. `make dist DIST="--python python3.12 python3.13"` tries it on other Pythons too.
dist: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'build>=1.2'
	$(BIN)/python tools/dist.py $(DIST)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) results site build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
