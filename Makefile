# quick: build what is needed and run the main job · test · check · bench: the same lines that CI runs.

PYTHON ?= python3
# make fresh ON='13 user': on Debian 13 as an ordinary user only.
ON     ?=
# make test TESTS='tests/plan/test_schedule.py tests/model/test_run_directory.py': these tests only, and no servers are fetched for them.
TESTS  ?=
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := agents/rust
STAMPS := .make
# Twice as many workers as cores, since many tests wait. Compiled files are kept (an empty value switches the variable off): the tests
# start the command hundreds of times.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $$((2 * $$(nproc))) --dist loadfile --durations 20
SHELL  := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: quick test test-all check bench docs fresh ready dev servers schema clean help

help:
	@echo "make quick   build, then measure what encryption costs here (one minute of load)"
	@echo "make test    get the servers that the tests need, and run the quick tests: at most 15 minutes on two cores"
	@echo "make test-all  all tests: exhaustive simulations, old server versions, vendors' servers, long studies too"
	@echo "make check   formatting, lint and types, Python and Rust"
	@echo "make fresh   make quick and some tests in minimal Debian 12 and 13 roots, as root and as a user (as root, with mmdebstrap)"
	@echo "make docs    build the documentation site into site/docs, without a network"
	@echo "make bench   ratios against peers and against our own aims, into benchmarks/latest.json"

quick: ready
	@status=0; $(BIN)/ciphercost quick || status=$$?; \
	printf '\n%s\n' "To call ciphercost yourself: source $(VENV)/bin/activate"; exit $$status

test: dev $(if $(TESTS),,servers)
	cd $(RUST) && cargo test --release --quiet
	$(PYTEST) -m 'not exhaustive' $(TESTS)

test-all: dev $(if $(TESTS),,servers)
	cd $(RUST) && cargo test --release --quiet
	$(PYTEST) $(TESTS)

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	cd $(RUST) && cargo fmt --check
	cd $(RUST) && cargo clippy --release --all-targets --quiet -- -D warnings

bench: dev servers
	$(BIN)/python benchmarks/run.py

fresh:
	@bash tests/fresh.sh $(ON)

docs: dev
	$(BIN)/python tools/docs.py

schema: ready
	$(BIN)/python -m ciphercost.model.schema > docs/result.schema.json

# ── what the targets above need ──────────────────────────────────────────────────────────────────────────────────────

ready: $(STAMPS)/agent $(STAMPS)/python
dev: ready $(STAMPS)/dev

$(STAMPS)/venv:
	@bash agents/needs.sh $(PYTHON)
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet 'maturin>=1.7,<2'
	touch $@

$(STAMPS)/agent: $(STAMPS)/venv $(RUST)/Cargo.toml $(RUST)/Cargo.lock $(RUST)/pyproject.toml $(RUST)/build.rs $(shell find $(RUST)/src -name '*.rs')
	@bash agents/needs.sh $(PYTHON)
	@echo "building the agent (OpenSSL, SQLCipher and ciphercost-agent: some minutes the first time)"
	@# Without isolation, so that cargo sees the same surroundings each time and builds OpenSSL once.
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --force-reinstall --no-deps --no-build-isolation ./$(RUST)
	touch $@

$(STAMPS)/python: $(STAMPS)/agent pyproject.toml
	$(BIN)/pip install --quiet --editable .
	touch $@

$(STAMPS)/dev: $(STAMPS)/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

servers: ready
	@bash tests/servers.sh $(BIN)/ciphercost

clean:
	-$(BIN)/ciphercost clean
	rm -rf $(VENV) $(STAMPS) $(RUST)/target
