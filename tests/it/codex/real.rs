//! Homes written by real clients, if a directory of them is given: everything is kept, and counts agree with an
//! independent count made here. Runs on the fixtures, and with `make test-real` on homes of real clients.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::checks::{assert_accounts_add_up, assert_restores};
use annals_testkit::files::files_below;
use annals_testkit::homes::{ClientHome, of};

#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    user: i64,
    assistant: i64,
    calls: i64,
    tokens: i64,
}

annals_testkit::over_homes! { everything_is_kept_and_nothing_counted_twice, counts_agree_with_an_independent_count, sessions_outlive_their_files }

fn everything_is_kept_and_nothing_counted_twice(homes: &[ClientHome]) {
    for home in of(homes, "codex_cli") {
        let bench = Bench::with_home("codex_cli", &home);
        let first = bench.sync();
        assert!(first["captured_bytes"].as_u64().unwrap() > 0, "{}", home.display());
        assert_restores(&bench, &home);
        assert_accounts_add_up(&bench, &home);
        let before = bench.everything();
        let second = bench.sync();
        assert_eq!(second["captured_bytes"], 0, "{}", home.display());
        assert_eq!(bench.run(&["rebuild"]).code, 0);
        assert!(bench.everything() == before, "{}: rebuild changed rows", home.display());
    }
}

fn counts_agree_with_an_independent_count(homes: &[ClientHome]) {
    for home in of(homes, "codex_cli") {
        let bench = Bench::with_home("codex_cli", &home);
        bench.sync();
        let expected = count_home(&home);
        let found: BTreeMap<String, Count> = bench
            .sessions()
            .iter()
            .filter(|session| session["history_only"] == false)
            .map(|session| {
                let number = |value: &Value| value.as_i64().unwrap();
                let count = Count {
                    user: number(&session["user_message_count"]),
                    assistant: number(&session["assistant_message_count"]),
                    calls: number(&session["tool_call_count"]),
                    tokens: number(&session["tokens"]["total"]),
                };
                (session["session_id"].as_str().unwrap().to_owned(), count)
            })
            .collect();
        assert_eq!(found, expected, "{}", home.display());
    }
}

fn sessions_outlive_their_files(homes: &[ClientHome]) {
    for home in of(homes, "codex_cli") {
        let bench = Bench::with_home("codex_cli", &home);
        bench.sync();
        let before = bench.sessions();
        let _ = std::fs::remove_dir_all(bench.codex().join("sessions"));
        let _ = std::fs::remove_dir_all(bench.codex().join("archived_sessions"));
        bench.sync();
        let after = bench.sessions();
        assert_eq!(before.len(), after.len());
        for (was, is) in before.iter().zip(&after) {
            // The history is not removed.
            assert_eq!(is["source_gone"], is["history_only"] == false, "{is}");
            let mut is = is.clone();
            is["source_gone"] = false.into();
            assert_eq!(*was, is);
            let id = is["session_id"].as_str().unwrap();
            let shown = bench.json(&["show", id]);
            let shown_count = shown["messages"].as_array().unwrap().len() as i64;
            assert!(shown_count >= is["message_count"].as_i64().unwrap(), "{id}");
        }
    }
}

/// Counts by reading all lines as plain JSON.
fn count_home(home: &Path) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut responses = HashSet::new();
    let mut files: Vec<PathBuf> = files_below(home)
        .into_iter()
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("rollout-"))
        .collect();
    files.sort_by_key(|path| path.file_name().unwrap().to_owned());
    for path in files {
        let lines = read_lines(&path);
        let own = lines.iter().find_map(thread_of).unwrap();
        let count = counts.entry(own.clone()).or_default();
        count_file(&lines, &own, count, &mut responses);
    }
    counts
}

fn count_file(lines: &[Value], own: &str, count: &mut Count, responses: &mut HashSet<String>) {
    let wrapped = lines[0].get("payload").is_some();
    let (mut seen_own, mut copying, mut records) = (false, false, false);
    let mut total = Value::Null;
    for line in lines {
        let payload = if wrapped { &line["payload"] } else { line };
        let (kind, inner) = (line["type"].as_str().unwrap_or(""), payload["type"].as_str().unwrap_or(""));
        if thread_of(line).is_some() {
            copying = std::mem::replace(&mut seen_own, true);
            continue;
        }
        // Ids of real turns start with their time; in made-up homes the second turn belongs to the fork.
        let turn = payload["turn_id"].as_str().unwrap_or("");
        if inner == "task_started" && (turn.len() == own.len() && turn > own || turn == "turn-2") {
            copying = false;
        }
        let info = &payload["info"];
        let before = total.clone();
        let fresh = info.is_object()
            && std::mem::replace(&mut total, info["total_token_usage"].clone()) != info["total_token_usage"];
        if copying {
            continue;
        }
        let tokens = |usage: &Value| {
            usage["input_tokens"].as_i64().unwrap() + usage["output_tokens"].as_i64().unwrap()
        };
        match (kind, inner) {
            ("event_msg", "user_message") => count.user += 1,
            ("event_msg", "agent_message") => count.assistant += 1,
            ("event_msg", "item_completed") if payload["thread_id"] == own => {
                match payload["item"]["type"].as_str() {
                    Some("UserMessage") => count.user += 1,
                    Some("AgentMessage") => count.assistant += 1,
                    _ => {}
                }
            }
            ("event_msg", "token_count") if fresh && !records => {
                // If the counter rose, the difference is exact; if it fell, it was reset.
                count.tokens += match before.is_object() && tokens(&before) <= tokens(&total) {
                    true => tokens(&total) - tokens(&before),
                    false => tokens(&info["last_token_usage"]),
                };
            }
            ("token_usage_record", _) => {
                records = true;
                if responses.insert(payload["response_id"].to_string()) {
                    count.tokens += tokens(&payload["usage"]);
                }
            }
            _ => {}
        }
        if wrapped && kind != "response_item" {
            continue;
        }
        match inner {
            "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call"
            | "tool_search_call" => {
                count.calls += 1;
            }
            "message" if !wrapped && payload["role"] == "assistant" => count.assistant += 1,
            "message" if !wrapped && payload["role"] == "user" => {
                let text = payload["content"][0]["text"].as_str().unwrap();
                count.user += i64::from(!text.starts_with('<'));
            }
            _ => {}
        }
    }
}

/// The id in a `session_meta` of any version.
fn thread_of(line: &Value) -> Option<String> {
    let meta = match line["type"].as_str() {
        Some("session_meta") => &line["payload"],
        None if line.get("timestamp").is_some() => line,
        _ => return None,
    };
    meta["id"].as_str().map(str::to_owned)
}

fn read_lines(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let text = match path.extension().unwrap().to_str().unwrap() {
        "zst" => zstd::stream::decode_all(bytes.as_slice()).unwrap(),
        _ => bytes,
    };
    if path.extension().unwrap() == "json" {
        let document: Value = serde_json::from_slice(&text).unwrap();
        let session = std::iter::once(document["session"].clone());
        return session.chain(document["items"].as_array().unwrap().iter().cloned()).collect();
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
