# Everything a contributor runs. `make test` is what CI runs. It needs the Rust toolchain and, for the tests of
# the web page and of live collection, Chromium, its driver, npm, python3 and openssl, which it installs with apt-get when missing.

.PHONY: test bench bench-smoke lint format screenshots

test:
	@echo "make test: needs the Rust toolchain (crates come through cargo);"
	@echo "make test installs schemathesis into target/api-venv (PyPI, with pip), axe-core into target/browser (npm), and,"
	@echo "where they are missing, the Debian packages chromium, chromium-driver, npm, python3 and openssl (apt-get, with sudo); nothing else"
	tests/browser/setup
	cargo test --locked
	tests/api/run

lint:
	cargo fmt --check
	cargo clippy --locked --all-targets -- --deny warnings

format:
	cargo fmt

# The full tables: 1 GB of made-up transcripts or exports of each client and 3 GB to search in, minutes. Exits 1 when a limit is
# exceeded.
bench:
	tests/browser/setup
	cargo bench --locked --bench archive

# The same tables on 20 MB: shows that the bench itself works.
bench-smoke:
	tests/browser/setup
	cargo bench --locked --bench archive -- --smoke

# A picture of every page, on made-up work, into docs/.
screenshots:
	tests/browser/setup
	cargo bench --locked --bench screenshots -- docs
