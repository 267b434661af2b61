//! Runs the check `redact` on what libFuzzer makes up.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| annals_fuzz::redact(bytes));
