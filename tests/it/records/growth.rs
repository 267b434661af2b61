//! Homes that grow between two lists: what changed since the state of the first makes it the second.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::files::files_below;
use annals_testkit::homes::ClientHome;

annals_testkit::over_homes! { changes_of_growing_homes_lead_to_their_lists }

fn changes_of_growing_homes_lead_to_their_lists(homes: &[ClientHome]) {
    let (mut grown, mut changed) = (0, 0);
    for ClientHome { source, path } in homes {
        let bench = Bench::with_home(source, path);
        let whole = cut(&bench, source);
        if whole.is_empty() {
            continue;
        }
        bench.sync();
        let manifest = bench.json(&["manifest", source]);
        let streams = manifest["streams"].as_array().unwrap().iter();
        let streams: Vec<String> =
            streams.map(|stream| format!("{source}/{}", stream["name"].as_str().unwrap())).collect();
        let before: Vec<Value> = streams.iter().map(|stream| list(&bench, stream, &[])).collect();
        for (file, bytes) in &whole {
            std::fs::write(file, bytes).unwrap();
        }
        bench.sync();
        for (stream, before) in streams.iter().zip(&before) {
            let changes = list(&bench, stream, &["--cursor", before["state"].as_str().unwrap()]);
            assert_eq!(changes["mode"], "changes", "{} {stream}", path.display());
            let mut records = by_key(before);
            for change in changes["records"].as_array().unwrap() {
                let key = change["key"].as_str().unwrap().to_owned();
                match change["removed"] == true {
                    true => drop(records.remove(&key)),
                    false => drop(records.insert(key, change["data"].clone())),
                }
                changed += 1;
            }
            let after = by_key(&list(&bench, stream, &[]));
            for (key, data) in &after {
                assert_eq!(records.get(key), Some(data), "{} {stream} {key}", path.display());
            }
            assert_eq!(records.len(), after.len(), "{} {stream}", path.display());
        }
        grown += 1;
    }
    println!("{grown} homes grew, {changed} changed records followed");
    assert!(grown > 3 && changed > 50, "{grown} {changed}");
}

/// Leaves the first half of the lines of each transcript, and returns all of them.
fn cut(bench: &Bench, source: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut whole = Vec::new();
    for file in files_below(&bench.home_of(source)) {
        let Some(bytes) =
            file.extension().filter(|end| *end == "jsonl").and_then(|_| std::fs::read(&file).ok())
        else {
            continue;
        };
        let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).map(|at| at + 1).collect();
        if ends.len() > 3 {
            std::fs::write(&file, &bytes[..ends[ends.len() / 2 - 1]]).unwrap();
            whole.push((file, bytes));
        }
    }
    whole
}

fn list(bench: &Bench, stream: &str, options: &[&str]) -> Value {
    // An empty list ends with exit code 1.
    let ran = bench.run(&[&["records", stream, "--full", "--json"], options].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{stream} {options:?}: {}", ran.stderr))
}

fn by_key(list: &Value) -> BTreeMap<String, Value> {
    let records = list["records"].as_array().unwrap().iter();
    records.map(|record| (record["key"].as_str().unwrap().to_owned(), record["data"].clone())).collect()
}
