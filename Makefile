# Bankside. `make help` says what there is.

PYTHON ?= python3
RUN := .venv/bin/python
ARGS ?=
ONLY ?=
SERVICE ?=
MINUTES ?= 10
SEED ?=
BANK ?=

# With compiled code kept, a service starts in half the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up down status logs demo check format test faults recovery bench screenshots recording migrate clean lock sbom environment

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: environment ## Start everything on this machine; BANK=increase-fake for another bank
	@$(RUN) -m deploy.local up $(if $(BANK),--bank $(BANK))

# To stop a stack and to look at it, the environment that it runs in is enough: a new lock, or no network, changes nothing.
STANDING := $(if $(wildcard .venv/bin/python),,environment)

down: $(STANDING) ## Stop everything; the data stays
	@$(RUN) -m deploy.local down

status: $(STANDING) ## Show every part; succeeds when all is ready
	@$(RUN) -m deploy.local status

logs: $(STANDING) ## Follow the logs; of one part with SERVICE=gateway
	@$(RUN) -m deploy.local logs $(SERVICE)

demo: environment ## Play a business's story on the running stack
	@$(RUN) -m libs.demo.story

check: environment ## Lint, format, types, import rules, migrations, alerts, advisories, the previous release beside this
	.venv/bin/ruff check
	.venv/bin/ruff check --preview --select PLC2701
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	@$(RUN) -m deploy.local requirements --promtool
	.venv/bin/pytest -q -n 2 --no-loadscope-reorder tests/schema tests/upgrades
	@$(RUN) -m deploy.local.audit

format: environment ## Put the code into its format
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

test: environment ## Run all tests, on servers of their own; choose with ARGS="-k nonce"
	@$(RUN) -m deploy.local requirements --browser --node
	.venv/bin/pytest -n 8 --no-loadscope-reorder -m "not recovery" --ignore tests/schema --ignore tests/upgrades $(ARGS)

faults: environment ## Break a stack with two of everything: MINUTES=10, SEED=7 to repeat a run
	@$(RUN) -m deploy.local requirements --faketime
	@$(RUN) -m tests.faults.campaign --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGS)

recovery: environment ## Run the fault tests of recovery in time, on a machine that does nothing else
	@$(RUN) -m deploy.local requirements
	BANKSIDE_TEST_STRICT=1 .venv/bin/pytest tests/faults/test_stalled_routes.py tests/faults/test_restored_database.py tests/faults/test_servers.py $(ARGS)

bench: environment ## Measure, beside the limits; one key with ONLY=read_path, more with ARGS
	@$(RUN) -m deploy.local requirements
	@$(RUN) -m tests.benchmarks $(if $(ONLY),--only $(ONLY)) $(ARGS)

screenshots: environment ## Take pictures of the console's pages on the running stack, after make demo
	@$(RUN) -m deploy.local requirements --browser
	@$(RUN) -m deploy.console.screenshots

recording: environment ## Record make up && make demo as text, in a checkout without a stack
	@$(RUN) -m deploy.console.recording

migrate: environment ## Bring the running stack's database to the newest revision
	@$(RUN) -m deploy.local migrate

clean: $(STANDING) ## Stop everything and throw its data away
	@$(RUN) -m deploy.local clean

lock: environment ## Write uv.lock anew after a change of the dependencies
	.tools/uv/bin/uv lock

sbom: environment ## Write sbom.cdx.json: what the images carry of the lock, as CycloneDX
	.tools/uv/bin/uv export --quiet --frozen --all-extras --no-default-groups --format cyclonedx1.5 --output-file sbom.cdx.json

environment:
	@$(PYTHON) deploy/local/bootstrap.py $(if $(filter file,$(origin PYTHON)),--prefer-system)
