//! Lists continue where they stopped, end with a state, and are narrowed by the declared cursor field.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use annals_testkit::Bench;

use super::StreamRecords;

/// Reads each stream again: in three pages, after its state, and since the time of the record in its middle. Returns how many
/// lists that were.
pub fn assert_lists_continue(
    bench: &Bench,
    source: &str,
    streams: &BTreeMap<String, StreamRecords>,
) -> usize {
    let mut lists = 0;
    for (name, StreamRecords { declared, records }) in streams.iter().filter(|(_, all)| all.records.len() > 1)
    {
        let stream = format!("{source}/{name}");
        // An empty list ends with exit code 1.
        let list = |options: &[&str]| {
            let ran = bench.run(&[&["records", stream.as_str(), "--json"], options].concat());
            serde_json::from_str::<Value>(&ran.stdout)
                .unwrap_or_else(|_| panic!("{stream} {options:?}: {}", ran.stderr))
        };
        let limit = records.len().div_ceil(3).to_string();
        let (mut paged, mut cursor) = (Vec::new(), None::<String>);
        let state = loop {
            let page = match &cursor {
                Some(cursor) => list(&["--limit", &limit, "--cursor", cursor]),
                None => list(&["--limit", &limit]),
            };
            paged.extend(keys_of(page["records"].as_array().unwrap()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break page["state"].as_str().unwrap().to_owned(),
            }
        };
        assert_eq!(paged, keys_of(records), "pages of {stream}");
        let after = list(&["--cursor", &state]);
        assert_eq!(
            (&after["mode"], &after["records"]),
            (&"changes".into(), &Value::Array(Vec::new())),
            "{stream}"
        );
        lists += 2;
        let field = declared["cursor_field"].as_str().unwrap();
        let mut times: Vec<Timestamp> =
            records.iter().filter_map(|record| time(&record["data"][field])).collect();
        times.sort_unstable();
        if let Some(middle) = times.get(times.len() / 2) {
            let is_since = |record: &&Value| time(&record["data"][field]).is_none_or(|time| time >= *middle);
            let expected: Vec<Value> = records.iter().filter(is_since).cloned().collect();
            let since = list(&["--since", &middle.to_string()]);
            let found = keys_of(since["records"].as_array().unwrap());
            assert_eq!(found, keys_of(&expected), "{stream} since {middle}");
            lists += 1;
        }
    }
    lists
}

fn keys_of(records: &[Value]) -> Vec<String> {
    records.iter().map(|record| record["key"].as_str().unwrap().to_owned()).collect()
}

/// Clients write times as text, or as seconds or milliseconds since 1970.
fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => match number.as_i64()? {
            number @ 100_000_000_000.. => Timestamp::from_millisecond(number).ok(),
            number => Timestamp::from_second(number).ok(),
        },
        _ => None,
    }
}
