# quick: build what is needed and run the main job · test · check · bench: the same lines that CI runs.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := agents/rust
STAMPS := .make
SHELL  := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: quick test check bench ready dev servers schema clean help

help:
	@echo "make quick   build, then measure what encryption costs here (one minute of load)"
	@echo "make test    get the servers that the tests need, and run the tests"
	@echo "make check   formatting, lint and types, Python and Rust"
	@echo "make bench   ratios against peers and against our own aims, into benchmarks/latest.json"

quick: ready
	$(BIN)/ciphercost quick

test: dev servers
	cd $(RUST) && cargo test --release --quiet
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations 30

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd $(RUST) && cargo fmt --check
	cd $(RUST) && cargo clippy --release --all-targets --quiet -- -D warnings

bench: dev servers
	$(BIN)/python benchmarks/run.py

schema: ready
	$(BIN)/python -m ciphercost.schema > docs/result.schema.json

# ── what the targets above need ──────────────────────────────────────────────────────────────────────────────────────

ready: $(STAMPS)/agent $(STAMPS)/python
dev: ready $(STAMPS)/dev

$(STAMPS)/venv:
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet 'maturin>=1.7,<2'
	touch $@

$(STAMPS)/agent: $(STAMPS)/venv $(RUST)/Cargo.toml $(RUST)/Cargo.lock $(RUST)/pyproject.toml $(shell find $(RUST)/src -name '*.rs')
	@command -v cargo >/dev/null || { echo "cargo is needed to build the agent: install Rust (Debian: apt-get install cargo; or rustup)"; exit 2; }
	@command -v cc >/dev/null || { echo "a C compiler is needed to build the agent's OpenSSL and SQLCipher (Debian: apt-get install build-essential)"; exit 2; }
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
