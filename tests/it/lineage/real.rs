//! Files edited by sessions in homes of real clients are traced to the right session and call. Runs on the fixtures,
//! and with `make test-real` on homes of real clients. What calls wrote is read independently of the program here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::lineage::blamed;
use annals_testkit::Bench;
use annals_testkit::files::files_below;
use annals_testkit::homes::{ClientHome, of};

/// Calls of a home by what they wrote to which file.
type Written = BTreeMap<(String, Vec<String>), BTreeSet<String>>;

annals_testkit::over_homes! { edits_of_real_clients_are_traced_to_their_calls }

fn edits_of_real_clients_are_traced_to_their_calls(homes: &[ClientHome]) {
    let mut traced = 0;
    for source in ["codex_cli", "claude_code"] {
        for home in of(homes, source) {
            let bench = Bench::with_home(source, &home);
            bench.sync();
            let written = if source == "codex_cli" { patched(&home) } else { edited(&home) };
            for ((path, lines), calls) in &written {
                // In a directory of the same name; a bare file name may be in any.
                let mut parts = path.rsplit('/');
                let (name, folder) = (parts.next().unwrap(), parts.next().unwrap_or("somewhere"));
                let other = |of: &str| {
                    of.rsplit('/').next() == Some(name) && !(of.contains('/') && path.contains('/'))
                };
                let same =
                    written.iter().filter(|((of, wrote), _)| wrote == lines && (of == path || other(of)));
                let calls: BTreeSet<String> =
                    same.flat_map(|(_, calls)| calls).chain(calls).cloned().collect();
                let file = bench.folder.path().join(folder).join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(&file, lines.join("\n") + "\n").unwrap();
                let blame = blamed(&bench, &file);
                let what = format!("{}: {path}", home.display());
                for span in blame["spans"].as_array().unwrap() {
                    let start = span["start"].as_u64().unwrap() as usize;
                    let empty = lines[start - 1].trim().len() < 6;
                    let Some(origin) = span["origin"].as_u64() else {
                        assert!(empty, "{what}:{start} {:?} is nobody's", lines[start - 1]);
                        continue;
                    };
                    let origin = &blame["origins"][origin as usize];
                    assert!(["exact", "moved"].contains(&span["grade"].as_str().unwrap()), "{what} {span}");
                    let call = origin["call_id"].as_str().unwrap();
                    assert!(calls.contains(call), "{what}:{start} {call} is none of {calls:?}");
                    let tape = bench.run(&["tape", origin["session_id"].as_str().unwrap()]).stdout;
                    let edit = |line: &&str| line.contains("\"code.edit\"") && line.contains(call);
                    assert!(tape.lines().any(|line| edit(&line)), "{what}: {call} is not in its session");
                    traced += 1;
                }
            }
        }
    }
    assert!(traced >= 10, "only {traced} stretches were traced");
}

fn values(home: &Path) -> Vec<Vec<Value>> {
    let files = files_below(home).into_iter();
    let transcripts = files.filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.ends_with(".jsonl") || name.starts_with("rollout-") && name.ends_with(".json")
    });
    transcripts
        .map(|path| {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            match serde_json::from_str::<Value>(&text) {
                Ok(whole) if whole["items"].is_array() => whole["items"].as_array().unwrap().clone(),
                _ => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
            }
        })
        .collect()
}

/// What successful patches added to files: each added file, and each run of added lines.
fn patched(home: &Path) -> Written {
    let mut written = Written::new();
    for lines in values(home) {
        let payload =
            |line: &Value| if line["payload"].is_object() { line["payload"].clone() } else { line.clone() };
        let payloads: Vec<Value> = lines.iter().map(payload).collect();
        for body in &payloads {
            let item = &body["item"];
            if item["type"] == "FileChange" && item["status"] == "completed" {
                for (path, change) in item["changes"].as_object().unwrap() {
                    let text =
                        change["content"].as_str().map(|text| text.lines().map(str::to_owned).collect());
                    let diff = change["unified_diff"].as_str().unwrap_or_default().lines();
                    let added = text.unwrap_or_else(|| {
                        diff.filter_map(|line| line.strip_prefix('+').map(str::to_owned)).collect::<Vec<_>>()
                    });
                    note(&mut written, path, added, item["id"].as_str().unwrap());
                }
            }
            let is_call = ["function_call", "custom_tool_call", "local_shell_call"]
                .contains(&body["type"].as_str().unwrap_or_default());
            let Some(id) = body["call_id"].as_str().filter(|_| is_call && body["name"] != "exec") else {
                continue;
            };
            let succeeded = payloads.iter().any(|other| {
                let output = other["output"].to_string();
                other["call_id"] == id && output.contains("Success. Updated the following files")
            });
            let text = body["input"].as_str().or(body["arguments"].as_str()).unwrap_or_default().to_owned();
            let opened = serde_json::from_str::<Value>(&text).ok();
            let text = opened.map_or(text, |value| words(&value));
            if succeeded {
                patch_lines(&text, id, &mut written);
            }
        }
    }
    written
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(items) => items.iter().map(words).collect(),
        Value::Object(fields) => fields.values().map(words).collect(),
        _ => String::new(),
    }
}

fn patch_lines(text: &str, id: &str, written: &mut Written) {
    let (mut path, mut added) = (String::new(), Vec::new());
    for line in text.lines().chain(["*** End"]) {
        if let Some(line) = line.strip_prefix('+') {
            added.push(line.to_owned());
        } else if line.starts_with("*** ") || line.starts_with("@@") {
            note(written, &path, std::mem::take(&mut added), id);
            if let Some((_, named)) = line.split_once(" File: ") {
                path = named.to_owned();
            }
        }
    }
}

/// What successful edits added to files: complete lines, as in the client's own patch.
fn edited(home: &Path) -> Written {
    let mut written = Written::new();
    for rows in values(home) {
        for row in &rows {
            let blocks = row["message"]["content"].as_array().cloned().unwrap_or_default();
            for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
                let id = block["id"].as_str().unwrap();
                let path = block["input"]["file_path"].as_str().unwrap_or_default();
                let answer = rows.iter().find(|row| {
                    row["message"]["content"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .any(|block| block["tool_use_id"] == id)
                });
                let Some(answer) = answer else { continue };
                let failed = answer["message"]["content"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|block| block["is_error"] == true);
                let patch =
                    answer["toolUseResult"]["structuredPatch"].as_array().cloned().unwrap_or_default();
                if failed || path.is_empty() {
                    continue;
                }
                if block["name"] == "Write" && patch.is_empty() && answer["toolUseResult"]["type"] == "create"
                {
                    let text = block["input"]["content"].as_str().unwrap();
                    note(&mut written, path, text.lines().map(str::to_owned).collect(), id);
                }
                for hunk in &patch {
                    let added = hunk["lines"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .filter_map(|line| line.as_str().unwrap().strip_prefix('+').map(str::to_owned));
                    note(&mut written, path, added.collect(), id);
                }
            }
        }
    }
    written
}

fn note(written: &mut Written, path: &str, lines: Vec<String>, call: &str) {
    if lines.iter().any(|line| line.trim().len() >= 6) {
        written.entry((path.to_owned(), lines)).or_default().insert(call.to_owned());
    }
}
