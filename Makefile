# Every target sets itself up from a bare clone that has python3 (>= 3.11) and pip.
PYTHON ?= python3
# The test environment holds what today's code uses; `pip install 'transect[all]'` is for people.
TEST_EXTRAS := fusion,geo,cdff,video,foxglove,postgis,archive,view,docs,test
# Debian packages: a server for the store of products, programs that say whether others can read what we write, a browser.
APT_EXTRAS ?= postgresql-postgis gdal-bin python3-gdal chromium-headless-shell
WORKERS ?= 2

venv := .venv/bin/python
core := .venv/.installed-core
full := .venv/.installed-test

export PYTHON APT_EXTRAS
# pytest keeps the tests that it has compiled: to compile them again takes every worker ten seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-changed lint types imports contracts pytest coverage fuzz bench docs pictures constraints clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(core) ## a guided tour on data that it makes itself
	@.venv/bin/transect demo

test: lint ## lint, types, import contract and all tests
	@$(MAKE) --no-print-directory -j 2 contracts pytest

test-changed: $(full) ## the tests of what changed since main (BASE=REV); of one data set, only its own
	@tests="$$($(venv) -m tools.changed_tests $(if $(BASE),--base $(BASE)))" && \
	if [ -z "$$tests" ]; then echo "no test is affected"; else $(venv) -m pytest -q -n $(WORKERS) $$tests $(ARGS); fi

contracts: types imports

lint: $(full) ## ruff: rules and formatting
	@$(venv) -m ruff check
	@$(venv) -m ruff format --check

types: $(full) ## pyright, strict on src/
	@$(venv) -m pyright

imports: $(full) ## the layering of the packages
	@.venv/bin/lint-imports --no-logo

pytest: $(full) ## the tests alone; ARGS="-k name" chooses
	@$(venv) -m pytest -q -n $(WORKERS) $(ARGS)

coverage: $(full) ## the tests with branch coverage per package; ARGS="tests/formats" chooses
	@status=0; $(venv) -m pytest -q -n $(WORKERS) --cov --cov-report= $(ARGS) || status=$$?; \
	$(venv) tools/package_coverage.py && exit $$status

fuzz: $(full) ## mutated files, killed commands, new random examples; ARGS="--seconds 600 name" chooses
	@$(venv) -m tools.fuzz --workers $(WORKERS) $(ARGS)

docs: $(full) ## the site of all pages, with the reference, in site/
	@NO_MKDOCS_2_WARNING=1 $(venv) -m mkdocs build --quiet --strict
	@echo "open site/index.html"

pictures: $(full) ## draw the pictures of docs/robots and docs/field-days again
	@for r in argo ida interact weeder; do \
	  .venv/bin/transect draw robot $$r --dpi 100 -o docs/robots && \
	  .venv/bin/transect draw frames $$r --dpi 90 -o docs/robots/$$r-frames.png || exit 1; \
	done
	@TRANSECT=.venv/bin/transect tools/draw-field-days.sh docs/field-days

bench: $(full) ## ours beside a peer, as a ratio; ARGS="--json FILE name" chooses
	@$(venv) -m benchmarks $(ARGS)

setup: $(full) ## only make .venv and install

constraints: $(full) ## move constraints.txt and docs/dependencies.md to the newest versions
	@tools/constraints.sh --upgrade
	@tools/setup.sh $(TEST_EXTRAS)
	@$(venv) tools/dependencies_page.py

clean: ## remove .venv and everything generated
	rm -rf .venv dist build site .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(core): pyproject.toml constraints.txt tools/setup.sh
	@tools/setup.sh fusion,geo
	@touch $@

$(full): pyproject.toml constraints.txt tools/setup.sh tools/apt-extras.sh
	@tools/apt-extras.sh
	@tools/setup.sh $(TEST_EXTRAS)
	@touch $(core) $@
