# Everything a contributor runs. `make test` is what CI runs, and all it needs is the Rust toolchain and python3.

.PHONY: test bench bench-smoke lint format

test:
	@echo "make test: needs the Rust toolchain (crates come through cargo) and python3;"
	@echo "make test installs schemathesis into target/api-venv (PyPI, with pip), and nothing else"
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
	cargo bench --locked --bench archive

# The same tables on 20 MB: shows that the bench itself works.
bench-smoke:
	cargo bench --locked --bench archive -- --smoke
