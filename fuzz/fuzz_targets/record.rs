//! Lines of any kind go through `record`, whole and in pieces: no panic, and the same tape both times.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = annals::fuzz_record(bytes, bytes.len().max(1));
    let pieces = annals::fuzz_record(bytes, 7);
    assert_eq!(whole, pieces);
});
