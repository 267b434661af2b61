# Everything a contributor runs. `make test` is what CI runs. It needs the Rust toolchain and, for the tests of
# the web page and of live collection, Chromium, its driver, npm, python3 and openssl, which it installs with apt-get when missing.

.PHONY: test test-real test-agents test-days fuzz-smoke soak bench bench-smoke questions dist lint format screenshots new-source

test:
	@echo "make test needs the Rust toolchain (crates are downloaded by cargo);"
	@echo "make test installs schemathesis, DuckDB, html5lib and mcp into target/*-venv (PyPI, with pip), axe-core into target/browser (npm), and,"
	@echo "where they are missing, the Debian packages chromium, chromium-driver, npm, python3 and openssl (apt-get, with sudo); nothing else"
	tests/browser/setup
	cargo test --locked --workspace --features annals/slow-tests
	tests/api/run
	tests/agents/conform
	if [ -n "$$ANNALS_REAL_HOMES" ]; then $(MAKE) test-real; fi

# The checks that hold for any home, over homes written by real clients: ANNALS_REAL_HOMES=DIR has them by source and version.
test-real:
	@test -d "$$ANNALS_REAL_HOMES" || { echo "make test-real: ANNALS_REAL_HOMES is not a directory" >&2; exit 1; }
	cargo test --locked --workspace --features annals/slow-tests --test it --test slow of_real_homes -- --ignored --nocapture

# The real Claude Code and Codex (npm, into target/agents) ask the archive, with a scripted model on 127.0.0.1.
test-agents:
	tests/agents/clients

# Everything again on days and at hours at which clocks turn over, in both outermost time zones, and in random order.
test-days:
	tests/days

# Every check of the fuzzers for a minute on stable, over damaged fixtures; `cargo fuzz run NAME` runs until it is stopped.
fuzz-smoke:
	cargo run --manifest-path fuzz/Cargo.toml --target-dir target --no-default-features -- 60

# A server with writers and readers for ten minutes: memory, open files, failures, lag and processor time at rest.
# ANNALS_SOAK_SECONDS=180 makes it shorter.
soak:
	cargo build --locked --release
	tests/soak

lint:
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets --features annals/test-clock,annals/slow-tests -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --locked --workspace --no-deps

format:
	cargo fmt

# The directory of a new source, with a fixture that fails until its reader is written: make new-source NAME=goose
new-source:
	crates/annals-sources/new-source "$(NAME)"

# The full tables: 1 GB of made-up transcripts or exports of each client and 3 GB to search in, minutes. Writes docs/performance.md.
# Exits 1 when a limit is exceeded. SIZES=1,3,12 measures growth to 12 GB as well: an hour, and 25 GB of disk.
SIZES ?= 1,3
bench:
	tests/browser/setup
	cargo bench --locked --features test-clock --bench archive -- --sizes $(SIZES) --document $(CURDIR)/docs/performance.md

# The same tables on 20 MB: shows that the bench itself works.
bench-smoke:
	tests/browser/setup
	cargo bench --locked --features test-clock --bench archive -- --smoke

# How well questions find their sessions, compared with plain BM25.
questions:
	cargo bench --locked --features test-clock --bench questions

# A picture of every page, on made-up work, into docs/.
screenshots:
	tests/browser/setup
	cargo bench --locked --features test-clock --bench screenshots -- docs

# What is published, into target/dist: a tarball with a static binary, and a Debian package.
dist:
	packaging/build
