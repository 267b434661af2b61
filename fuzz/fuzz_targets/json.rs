//! Runs the check `json` on what libFuzzer makes up.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| annals_fuzz::json(bytes));
