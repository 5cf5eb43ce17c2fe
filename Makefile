# Build, run, test and check ciphercost. CI runs the same targets. `make` lists them.

PYTHON ?= python3
# make fresh ON='13 user': only on Debian 13, only as an ordinary user.
ON     ?=
# make version TO=0.2.0: writes that version everywhere; without TO it checks that all files have the same.
TO     ?=
# make test TESTS='tests/plan/test_schedule.py tests/model/test_run_directory.py': only these tests; fetches no servers.
TESTS  ?=
# make strings PATHS='commands plan/toml': only the strings of files whose path contains one of these.
PATHS  ?=
# make faults MOMENTS=2 ONLY='disk;Ctrl-C': fewer trials of each fault; only faults whose name contains one of these.
MOMENTS ?=
ONLY    ?=
# make middle SERVERS='nginx valkey' CLIENTS=rust ATTACKS='expired;injected': only these; attacks whose name contains one of these.
SERVERS ?=
CLIENTS ?=
ATTACKS ?=
# make fuzz SECONDS_EACH=60 TARGETS='spec postgres': shorter; only these of tests/fuzz/targets and agents/rust/src/fuzz.
SECONDS_EACH ?=
TARGETS      ?=
# make audit ADVISORIES=required: fail where a database of known vulnerabilities can't be reached, instead of skipping it.
ADVISORIES ?=
# make book-runs TIME=30s FAMILIES='15-nginx-tls 40-controls': load time of each cell; only these files of book/grid; studies are 50-web-tls, ….
TIME     ?=
FAMILIES ?=
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := agents/rust
STAMPS := .make
# Every Python package in one version, with the hashes of its files: `make lock` writes them anew.
LOCKS  := release/locks
INSTALL = $(BIN)/pip install --quiet --require-hashes
# The Rust tests, which mostly wait, and beside them the tests given here. What the former print comes at the end, then each failed test.
both    = @rm -f $(STAMPS)/test-costs.tsv $(STAMPS)/tests-failed.txt; (cd $(RUST) && exec cargo test --release --quiet) > $(STAMPS)/rust-tests.log 2>&1 & rust=$$!; \
	trap 'kill $$rust 2> /dev/null' INT TERM; echo "$(1)"; status=0; $(1) || status=$$?; \
	echo 'cargo test, in $(RUST)'; wait $$rust || status=$$?; cat $(STAMPS)/rust-tests.log; \
	if [ -s $(STAMPS)/tests-failed.txt ]; then echo 'These tests failed:'; cat $(STAMPS)/tests-failed.txt; fi; exit $$status
SHELL  := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: quick test test-all check bench faults fuzz soak middle cases docs book book-runs fresh release reproducible audit fresh-wheels version ready dev servers schema strings lock clean help

help:
	@echo "make quick     build, then measure what encryption costs here (one minute of load)"
	@echo "make test      fetch the servers that the tests need, and run the quick tests (about 20 minutes on two cores)"
	@echo "make test-all  run all tests, with exhaustive simulations, old server versions, vendors' servers and long studies"
	@echo "make check     check formatting, lint and types, in Python and Rust; check the workflows"
	@echo "make fresh     run 'make quick' and some tests in minimal Debian 12 and 13 systems (needs root and mmdebstrap)"
	@echo "make release   build the wheels of both distributions into dist/, for x86_64 and aarch64"
	@echo "make reproducible  build the wheels twice, in two clones, and compare them byte by byte"
	@echo "make audit     check licences, sources and known vulnerabilities of all dependencies"
	@echo "make fresh-wheels  run 'pip install' of these wheels and 'ciphercost quick' in minimal Debian systems with only Python"
	@echo "make bench     compare with peers and with the project's own targets; writes benchmarks/latest.json"
	@echo "make faults    break real runs at random moments and judge what is left of them (hours); writes benchmarks/faults.json"
	@echo "make middle    let a man in the middle attack every server, client and command (a quarter of an hour); writes benchmarks/middle.json"
	@echo "make cases     give ciphercost what users brought and it once got wrong; prints each answer, before and now"
	@echo "make fuzz      feed every parser, of Python and Rust, what nobody would write, for ten minutes each; keeps the corpus in tests/fuzz/corpus"
	@echo "make soak      half an hour of load from a thousand connections: does memory, files or threads of any process grow?"
	@echo "make docs      build the documentation site into site/docs, without a network"
	@echo "make book      build the results book from the runs in book/runs into site/book, without a network"
	@echo "make book-runs measure what book/runs lacks of book/grid (hours, on a quiet machine, as root)"
	@echo "make lock      take the newest version of every Python package into release/locks"
	@echo "make strings   list every string that a user can see, with file and line, for review"

quick: ready
	@status=0; $(BIN)/ciphercost quick || status=$$?; \
	printf '\n%s\n' "To run ciphercost yourself: source $(VENV)/bin/activate"; exit $$status

test: dev $(if $(TESTS),,servers)
	$(call both,tests/run.sh 'not exhaustive' $(TESTS))

test-all: $(STAMPS)/fuzz $(if $(TESTS),,servers)
	$(call both,tests/run.sh '' $(TESTS))

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry --no-ansi src
	cd $(RUST) && cargo fmt --check
	cd $(RUST) && cargo clippy --release --all-targets --quiet -- -D warnings
	@bash tools/go/check.sh
	@bash tools/actionlint/run.sh

bench: dev servers
	$(BIN)/python benchmarks/run.py

fresh:
	@bash tests/fresh.sh $(ON)

strings:
	@$(PYTHON) tests/helpers/user_strings.py $(PATHS)

lock:
	@bash release/lock.sh $(PYTHON)

release:
	@bash release/wheels.sh $(PYTHON)

reproducible:
	@bash release/reproducible.sh $(PYTHON)

audit:
	@ADVISORIES='$(ADVISORIES)' bash release/audit.sh $(PYTHON)

fresh-wheels:
	@bash tests/fresh.sh wheels $(ON)

version:
	@$(PYTHON) release/version.py $(TO)

fuzz: $(STAMPS)/fuzz
	PYTHONPATH=tests:tests/helpers $(BIN)/python -m fuzz $(if $(SECONDS_EACH),--seconds $(SECONDS_EACH)) $(TARGETS)

soak: dev servers
	$(BIN)/python benchmarks/soak.py

faults: dev servers
	PYTHONPATH=tests:tests/helpers:tests/servers $(BIN)/python -m faults $(if $(MOMENTS),--moments $(MOMENTS)) $(if $(ONLY),--faults '$(ONLY)')

cases: dev
	PYTHONPATH=tests/cases $(BIN)/python -m pytest -p case_table -n $$(nproc) --dist loadfile tests/cases \
		tests/runs/test_prove_strings.py tests/runs/test_own_site.py tests/runs/test_man_in_the_login.py

middle: dev servers
	PYTHONPATH=tests:tests/helpers:tests/servers $(BIN)/python -m middle $(if $(SERVERS),--servers '$(SERVERS)') $(if $(CLIENTS),--clients '$(CLIENTS)') $(if $(ATTACKS),--attacks '$(ATTACKS)')

docs: dev
	$(BIN)/python tools/docs.py

book: ready
	$(BIN)/ciphercost book book/runs -o site/book

book-runs: ready
	$(BIN)/python tools/book.py $(if $(TIME),--time $(TIME)) $(FAMILIES)

schema: ready
	$(BIN)/python -m ciphercost.model.schema > docs/result.schema.json
	$(BIN)/python -m ciphercost.model.schema machines > docs/machines.schema.json

# ── prerequisites of the targets above ──────────────────────────────────────────────────────────────────────────────────────

ready: $(STAMPS)/agent $(STAMPS)/python
dev: ready $(STAMPS)/dev

$(STAMPS)/venv: $(LOCKS)/tools.txt
	@bash agents/needs.sh $(PYTHON)
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -r $(LOCKS)/tools.txt
	touch $@

$(STAMPS)/agent: $(STAMPS)/venv $(RUST)/Cargo.toml $(RUST)/Cargo.lock $(RUST)/pyproject.toml $(RUST)/build.rs $(shell find $(RUST)/src -name '*.rs')
	@bash agents/needs.sh $(PYTHON)
	@echo "building the agent with OpenSSL and SQLCipher (takes some minutes the first time)"
	@# Build isolation would change cargo's environment each time, and so rebuild OpenSSL.
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --force-reinstall --no-deps --no-build-isolation ./$(RUST)
	touch $@

$(STAMPS)/python: $(STAMPS)/agent pyproject.toml $(LOCKS)/run.txt
	$(INSTALL) -r $(LOCKS)/run.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(STAMPS)/dev: $(STAMPS)/python $(LOCKS)/dev.txt
	$(INSTALL) -r $(LOCKS)/dev.txt
	touch $@

$(STAMPS)/fuzz: $(STAMPS)/dev $(LOCKS)/fuzz.txt
	$(INSTALL) -r $(LOCKS)/fuzz.txt
	touch $@

servers: ready
	@bash tests/servers.sh $(BIN)/ciphercost

clean:
	-$(BIN)/ciphercost clean
	rm -rf $(VENV) $(STAMPS) $(RUST)/target
