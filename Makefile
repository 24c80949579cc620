# Two commands matter on a fresh machine with Python >= 3.11 and make: `make up` and `make test`.
# Everything installs into .venv from requirements/*.lock, by hash; a changed lock installs again.

BIN  := .venv/bin
ARGS ?=
UV   ?= $(BIN)/uv
# Many tests wait for real processes, so a third worker pays on two cores; WORKERS=0 runs the suite in one process.
WORKERS ?= 3
ONLY ?= $(patsubst benchmarks/%.py,%,$(wildcard benchmarks/[!_]*.py))

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
          --no-emit-index-url --upgrade

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help up test lint format bench sim chaos soak mutants docs screenshots lock wheel clean

help: ## Print the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

up: .venv/base.stamp ## Run everything in one process on ./hourhand.db (ARGS='--port 9000 --no-demo')
	@exec $(BIN)/python tools/foreground.py $(BIN)/hourhand up $(ARGS)

test: lint ## The whole gate: lint, types, import rules, tests (ARGS='tests/core -k cron')
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(ARGS)

lint: .venv/dev.stamp ## Lint, format check, types and import rules only
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy --strict src
	@$(BIN)/lint-imports --no-logo

format: .venv/dev.stamp ## Mend what ruff can mend
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: .venv/dev.stamp ## Measure everything, or one question (ONLY=wheel); see benchmarks/README.md
	@set -e; for name in $(ONLY); do echo "== $$name"; $(BIN)/python -m benchmarks.$$name $(ARGS); done

sim: .venv/dev.stamp ## Simulated clusters and faults from seeds (SEED=7 for one in full, SEEDS=200 for many)
	@exec $(BIN)/python -m tests.sim $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

chaos: .venv/dev.stamp ## Half an hour of kills and faults against the real commands (CHAOS_MINUTES=2)
	@exec $(BIN)/python -m pytest -m chaos $(ARGS)

soak: .venv/dev.stamp ## Long load on a real store
	@exec $(BIN)/python -m pytest -m soak $(ARGS)

mutants: .venv/dev.stamp ## Switch off one safeguard after the other; the tests must notice each (ARGS='fence-grows cut')
	@exec $(BIN)/python -m tests.mutants $(ARGS)

docs: .venv/base.stamp ## Write again what documents say of states, settings, routes, metrics and limits
	@$(BIN)/python tools/docs.py

screenshots: .venv/dev.stamp ## Make the pictures of the page in docs/images again, in a real browser
	@$(BIN)/python -m tools.screenshots

lock: .venv/dev.stamp ## Pin the newest versions again, with hashes
	@test -x "$(UV)" || command -v "$(UV)" >/dev/null || $(INSTALL) uv
	@$(COMPILE) pyproject.toml requirements/build.in -o requirements/base.lock
	@$(COMPILE) --all-extras pyproject.toml requirements/build.in requirements/dev.in -c requirements/base.lock -o requirements/dev.lock

wheel: .venv/base.stamp ## Build dist/*.whl
	@$(BIN)/python -m hatchling build --target wheel

clean: ## Remove the environment, caches and builds; databases stay
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# The dev set contains the base set at the same versions, so that it satisfies both stamps.
.venv/base.stamp: requirements/base.lock pyproject.toml tools/venv.sh
	@sh tools/venv.sh .venv
	@echo "installing requirements/base.lock into .venv"
	@$(INSTALL) --require-hashes -r requirements/base.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev.stamp: requirements/dev.lock requirements/base.lock pyproject.toml tools/venv.sh
	@sh tools/venv.sh .venv
	@echo "installing requirements/dev.lock into .venv"
	@$(INSTALL) --require-hashes -r requirements/dev.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch .venv/base.stamp $@
