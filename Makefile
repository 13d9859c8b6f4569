# make demo   a first look: environment, real runs, reports, the leaderboard
# make light  a light installation in .venv-light: score, compare and report on files with outputs; a minute, 0.5 GB
# make test   the tests, real processes included (6 minutes on two cores); those of Ray, tutorials, kills and the like run where
#             what they are about has changed since the main branch, and it says what was left out
# make test-all  all tests (a quarter of an hour)
# make coverage  all tests, and the lines that none of them reaches; also of the processes that tests start, so twice as long
# make check  lint, types, layers, unit tests, property and contract tests with few examples, without those of a second or
#             more and those of very long texts (a minute)
# make axe    axe-core from the npm registry, for the tests of accessibility
# make docs   the documentation as a site, in build/site; links are checked
# make bench  the benchmark table (docs/speed.md)
# make pythons  modules and unit tests on each Python of 3.10 to 3.13 that is installed, without torch (tools/pythons.py)
# make mutants  do the tests notice when the code is wrong? One module after the other, with its tests (tools/mutants.py;
#               what changes nothing: tests/mutants.md). All take hours; name some, or draw a sample of each

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LIGHT ?= .venv-light
WORKERS ?= 2

# PYTHONS=--few for a selection
PYTHONS ?=
.PHONY: axe demo light test test-all coverage check lint unit unit-half unit-rest pythons docs pictures format bench mutants clean

demo: $(VENV)/.installed
	$(BIN)/python tools/demo.py

# HELM without what it needs for models in this process: its scores need a part of what it declares, and its own commands
# all of it, so they are taken out. setuptools comes with the environments of Python 3.10 and 3.11.
light:
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-light.txt
	$(LIGHT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "crfm-helm>=0.5.16,<0.6" .
	$(LIGHT)/bin/python -m pip uninstall --quiet --yes setuptools
	cd $(LIGHT)/bin && rm -f helm-run helm-summarize helm-server helm-create-plots crfm-proxy-server
	$(LIGHT)/bin/helm-ext score examples/tables/facts.csv --arg output=falcon --output-path $(LIGHT)/out

# Files in the order of their names, which begins with the long ones: reordered, they would be the end.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test: lint docs
	$(PYTEST) --nightly changed -rs tests

test-all: lint docs
	$(PYTEST) -rs tests

coverage: $(VENV)/.ready
	$(PYTEST) --cov --cov-report=term:skip-covered tests

check: lint unit

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two processes side by side: of thousands of small tests, what xdist's workers tell of each, and that both import all of
# them, was a quarter of the processor time. The two halves take about as long.
UNIT := $(BIN)/python -m pytest -m "not slow and not long" -k "not hostile and not million" --hypothesis-profile=check
HALF := tests/unit/formats tests/unit/scoring

unit: $(VENV)/.ready
	$(MAKE) --no-print-directory -j2 $(if $(filter output-sync,$(.FEATURES)),--output-sync) unit-half unit-rest

unit-half:
	$(UNIT) $(HALF)

unit-rest:
	$(UNIT) $(HALF:%=--ignore %) tests/unit tests/property tests/contract

pythons:
	$(PYTHON) tools/pythons.py $(PYTHONS)

# For the tests of accessibility, which say so where it is missing
axe:
	npm install --silent --no-audit --no-fund --no-save --ignore-scripts --prefix build/axe axe-core@4.14.1

docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# After a change of what helm-server's pages show. Needs Chromium. HELM's columns stand in the order of a set: the seed
# keeps them in one order.
pictures: export PYTHONHASHSEED = 0
pictures: demo
	$(BIN)/python tools/pictures.py

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.ready
	$(BIN)/python -m benchmarks

# Which modules, and how many changes of each: MUTANTS="scoring/stops" or MUTANTS="--sample 50 scoring/* hub/meta"
MUTANTS ?=
mutants: $(VENV)/.ready
	$(BIN)/python tools/mutants.py $(MUTANTS)

# torchvision is HELM's dependency, for images. Where the registry has it only for another build of torch it does not
# import, and transformers then fails to load any model; without it, text models load.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "Installing HELM, helm-ext and what they need into $(VENV): some minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/python -c "import torchvision" 2>/dev/null || $(BIN)/python -m pip uninstall --quiet --yes torchvision
	touch $@

$(VENV)/.ready: $(VENV)/.installed
	@echo "Installing what tests and documentation need into $(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	$(BIN)/python -c "import torchvision" 2>/dev/null || $(BIN)/python -m pip uninstall --quiet --yes torchvision
	touch $@

clean:
	rm -rf $(VENV) .demo build mutants .mypy_cache .ruff_cache .pytest_cache .coverage .coverage.* htmlcov
