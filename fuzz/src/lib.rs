//! The checks that fuzzers run, one function each: `cargo fuzz` calls them through libFuzzer, `smoke` calls them on stable.

use annals_sources::json::{Json, Opened, Scan};

/// A check, by the name of its target.
pub type Check = (&'static str, fn(&[u8]));

pub const CHECKS: [Check; 8] = [
    ("containers", containers),
    ("elements", elements),
    ("index", index),
    ("json", json),
    ("query", query),
    ("record", record),
    ("redact", redact),
    ("wire", wire),
];

/// Zips of any kind, and zstd frames: read to the end or refused.
pub fn containers(bytes: &[u8]) {
    annals::fuzz_containers(bytes).expect("a file in the temporary folder");
    let mut decoder = zstd::stream::read::Decoder::new(bytes).expect("a decoder");
    let mut limited = std::io::Read::take(&mut decoder, 1 << 24);
    drop(std::io::copy(&mut limited, &mut std::io::sink()));
}

/// A file splits into the same elements however it arrives.
pub fn elements(bytes: &[u8]) {
    assert_eq!(annals::fuzz_elements(bytes, bytes.len().max(1)), annals::fuzz_elements(bytes, 7));
}

/// Tables and blocks of the text index: broken ones end where they break.
pub fn index(bytes: &[u8]) {
    annals_store::fuzz_index(bytes);
}

/// What is JSON is read, scanned or not, and as the same value as serde_json has.
pub fn json(bytes: &[u8]) {
    let scan = Scan::new(bytes);
    for object in scan.line().objects() {
        let Ok((_, object)) = object else { break };
        for (_, value) in object.fields() {
            let _ = (value.text(), value.integer(), value.boolean(), value.head(20), value.tail(20));
        }
    }
    let _ = (Opened::parse(bytes, 3).is_some(), Json::fields_of_start(bytes).len());
    assert_eq!(scan.line().json().map(Json::value), Json::parse(bytes).map(Json::value));
    if let (Some(ours), Ok(theirs)) = (Json::parse(bytes), serde_json::from_slice::<serde_json::Value>(bytes))
    {
        assert_eq!(ours.value(), theirs);
    }
}

/// Any text is a query or is refused.
pub fn query(bytes: &[u8]) {
    annals::fuzz_query(&String::from_utf8_lossy(bytes));
}

/// Lines of any kind go through `record`, whole and in pieces: the same tape both times.
pub fn record(bytes: &[u8]) {
    assert_eq!(annals::fuzz_record(bytes, bytes.len().max(1)), annals::fuzz_record(bytes, 7));
}

/// Masking masked text changes nothing.
pub fn redact(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let redactor = annals_redact::Redactor::new([7; 32]);
    let once = redactor.mask(&text).into_owned();
    assert_eq!(redactor.mask(&once), once);
}

/// A line of a connector is a message or is refused.
pub fn wire(bytes: &[u8]) {
    annals::fuzz_wire(bytes);
}
