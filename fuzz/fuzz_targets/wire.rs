//! Runs the check `wire` on what libFuzzer makes up.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| annals_fuzz::wire(bytes));
