# make book: build the course into _build/html      make test: check everything
# Both create .venv first; nothing is installed outside it. Choose a Python with PYTHON=python3.12.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
LAB_INSTALLED := $(VENV)/installed-lab
COLAB_PYTHON ?= python3.13
COLAB := .venv-colab
NBGRADER := .venv-nbgrader

# --dist loadscope keeps the cells of a notebook on one worker, in order; tests/conftest.py says which tests it may part.
PYTEST := $(BIN)/python -m pytest
PARALLEL := -n auto --dist loadscope
# Strict: every output is compared. tools/nbval.cfg says what is not.
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=120 --nbval-sanitize-with=tools/nbval.cfg

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help venv book pdf test lint lab lab-kit bench gpu sass colab nbgrader notebooks clean

help:
	@echo "make book       build the course into _build/html and say where to open it"
	@echo "make pdf        print the book into _build/lanewise.pdf; needs Chromium"
	@echo "make test       lint, type-check, unit tests, browser tests if Chromium is found, strict nbval"
	@echo "make lab        open JupyterLab on the labs"
	@echo "make lab-kit    pack the labs for a class: one zip with the wheel, the notebooks and a README"
	@echo "make notebooks  run every chapter and lab again, make the labs of their sources, write normal forms"
	@echo "make bench      print how fast the model and the tracer are"
	@echo "make gpu        on a machine with an NVIDIA GPU: tests marked gpu, times and counters of every kernel, nbval"
	@echo "make sass       add NVIDIA's compiler, so that make test also checks what kernels become"
	@echo "make colab      compile and test every kernel with the versions of Google Colab; needs python3.13"
	@echo "make nbgrader   mark the labs with nbgrader, in an environment of its own"
	@echo "make venv       only create .venv and install"
	@echo "make clean      remove .venv, _build and caches"

venv: $(INSTALLED)

$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Lanewise needs Python 3.11 or newer; '$(PYTHON)' is older or missing. Name one: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
	    echo "Python cannot create virtual environments. On Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(BIN)/pip install --quiet --requirement requirements.txt
	@touch $@

# From nothing each time: an incremental build keeps removed pages, and style sheets that have changed since.
book: $(INSTALLED)
	@rm -rf _build
	$(BIN)/jupyter-book build . -W -n --keep-going --quiet
	@echo "The book is built. Open $(CURDIR)/_build/html/index.html"

pdf: book
	$(BIN)/python -m tools.pdf

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy

test: lint book
	$(PYTEST) $(PARALLEL) $(NBVAL) tests tools src README.md book labs

lab: $(LAB_INSTALLED)
	$(BIN)/jupyter lab labs

$(LAB_INSTALLED): $(INSTALLED)
	$(BIN)/pip install --quiet --editable '.[lab]'
	@touch $@

lab-kit: $(INSTALLED)
	@$(BIN)/python -m tools.lab_kit

bench: $(INSTALLED)
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit 1; done

# What is recorded and current is skipped, so this can be interrupted and run again. All steps run, also after one
# that fails (no permission to read counters, say); the last one says whether any did.
gpu: $(INSTALLED)
	@failed=; \
	$(PYTEST) -m gpu tests || failed="$$failed tests"; \
	$(BIN)/lanewise measure --all || failed="$$failed measure"; \
	$(BIN)/lanewise counters --all || failed="$$failed counters"; \
	$(PYTEST) $(NBVAL) book labs || failed="$$failed notebooks"; \
	test -z "$$failed" || { echo "make gpu: failed:$$failed" >&2; exit 1; }

sass: $(INSTALLED)
	$(BIN)/pip install --quiet --editable '.[sass]'

# The versions that Colab has, in an environment of their own. The tests' configuration there needs no browser.
colab: $(COLAB)/installed
	PYTHONPATH=src $(COLAB)/bin/python -m pytest --noconftest -m "not gpu" -n auto tests/test_ptx*.py tests/kernels/test_compile.py

$(COLAB)/installed: requirements-colab.txt
	@$(COLAB_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' || { \
	    echo "Colab has Python 3.13; '$(COLAB_PYTHON)' is another or missing. Name one: make colab COLAB_PYTHON=.." >&2; exit 1; }
	$(COLAB_PYTHON) -m venv --clear $(COLAB)
	$(COLAB)/bin/pip install --quiet --requirement requirements-colab.txt
	@touch $@

# nbgrader is a third of a gigabyte, and instructors alone need it.
nbgrader: $(NBGRADER)/installed
	$(NBGRADER)/bin/python -m pytest --noconftest -m nbgrader tests/test_nbgrader.py

$(NBGRADER)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(NBGRADER)
	$(NBGRADER)/bin/pip install --quiet nbgrader==0.9.6 'pytest>=8.3,<10' --editable '.[grade]'
	@touch $@

notebooks: $(INSTALLED)
	$(BIN)/python -m tools.notebooks book/*.ipynb
	$(BIN)/python -m tools.labs

clean:
	rm -rf $(VENV) $(COLAB) $(NBGRADER) _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
