//! Homes written by real clients: everything in their files is found, at the message that contains it. Runs on the
//! fixtures, and with `make test-real` on homes of real clients.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::Value;

use crate::search::{names, run_search};
use annals_testkit::Bench;
use annals_testkit::files::files_below;
use annals_testkit::homes::{ClientHome, of};

/// Number of words searched for, per kind and home.
const MOST: usize = 25;

/// Outputs stored separately are shown instead of the note that says so: words of the note are not searched for.
pub(super) const NOTE: &str = "note";

/// A text of a home, read independently of the program.
pub(super) struct HomeText {
    /// A filter for the search, so that the word must be found in such a place.
    pub filter: &'static str,
    /// The session that contains it, if any.
    pub session: Option<String>,
    pub text: String,
}

annals_testkit::over_homes! { every_word_is_found_in_its_message, separate_outputs_lead_to_their_calls, nothing_of_files_that_are_never_opened_is_found }

pub(super) fn read(source: &str, home: &Path) -> Vec<HomeText> {
    let mut texts = Vec::new();
    for path in files_below(home) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let below = path.strip_prefix(home).unwrap().to_string_lossy().into_owned();
        let first = below.split('/').next().unwrap();
        if source == "codex_cli" && name.starts_with("rollout-") {
            texts.extend(codex_transcript(&path));
        } else if source == "claude_code" && first == "projects" && name.ends_with(".jsonl") {
            texts.extend(claude_transcript(&path));
        } else if below.contains("/tool-results/") {
            let session = below.split('/').rev().nth(2).unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            texts.push(HomeText { filter: "kind:result", session: Some(session), text });
        } else if is_written(source, &below) {
            let text = std::fs::read_to_string(&path).unwrap();
            texts.push(HomeText { filter: "kind:library", session: None, text });
        }
    }
    texts
}

/// Skills, prompts, rules, instructions and memory, as their clients name them.
fn is_written(source: &str, below: &str) -> bool {
    let starts: &[&str] = match source {
        "codex_cli" => &["skills/", "prompts/", "rules/", "memories/", "AGENTS.md"],
        "claude_code" => &[
            "skills/",
            "commands/",
            "agents/",
            "rules/",
            "output-styles/",
            "plans/",
            "agent-memory/",
            "CLAUDE.md",
        ],
        _ => &[],
    };
    let own = starts.iter().any(|start| below.starts_with(start)) && !below.contains("/.system/");
    own || below.contains("/memory/") && below.ends_with(".md")
}

fn lines(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let bytes = match path.extension().unwrap().to_str().unwrap() {
        "zst" => zstd::stream::decode_all(bytes.as_slice()).unwrap(),
        _ => bytes,
    };
    if path.extension().unwrap() == "json" {
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let session = std::iter::once(document["session"].clone());
        return session.chain(document["items"].as_array().unwrap().iter().cloned()).collect();
    }
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn codex_transcript(path: &Path) -> Vec<HomeText> {
    let lines = lines(path);
    let wrapped = lines.iter().any(|line| line.get("payload").is_some());
    let head = |line: &Value| {
        let meta = if line["type"] == "session_meta" { &line["payload"] } else { line };
        meta["id"].as_str().filter(|_| line["type"] == "session_meta" || !wrapped).map(str::to_owned)
    };
    let session = lines.iter().find_map(head);
    let mut found = Vec::new();
    for line in &lines {
        let payload = if wrapped { &line["payload"] } else { line };
        let (filter, texts): (&'static str, Vec<String>) = match payload["type"].as_str() {
            _ if wrapped
                && !["response_item", "event_msg"].contains(&line["type"].as_str().unwrap_or("")) =>
            {
                continue;
            }
            Some("user_message") => ("role:user", vec![request(&text(&payload["message"]))]),
            Some("agent_message") if line["type"] == "event_msg" => {
                ("role:assistant", vec![text(&payload["message"])])
            }
            Some("message") if payload["role"] == "assistant" => {
                ("role:assistant", parts(&payload["content"]).iter().map(|text| uncited(text)).collect())
            }
            Some("function_call") => ("kind:call", values(&text(&payload["arguments"]))),
            Some("custom_tool_call") => ("kind:call", vec![text(&payload["input"])]),
            Some("function_call_output" | "custom_tool_call_output") => {
                ("kind:result", output(&payload["output"]))
            }
            _ => continue,
        };
        found.extend(texts.into_iter().map(|text| HomeText { filter, session: session.clone(), text }));
    }
    found
}

fn claude_transcript(path: &Path) -> Vec<HomeText> {
    let session = path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut texts = Vec::new();
    for row in lines(path) {
        let content = &row["message"]["content"];
        // Rows that an older client wrote about a sub-agent are among those of the session itself.
        let mut add = |filter, text| texts.push(HomeText { filter, session: Some(session.clone()), text });
        if row["isMeta"] == true || row["isCompactSummary"] == true {
            continue;
        }
        match (row["type"].as_str(), content) {
            (Some("user"), Value::String(text))
                if !text.trim_start().starts_with(['<', '[']) && !text.contains("hook feedback:") =>
            {
                add("role:user", text.clone());
            }
            (Some("user" | "assistant"), Value::Array(blocks)) => {
                for block in blocks {
                    match block["type"].as_str() {
                        Some("text") if row["type"] == "assistant" => {
                            add("role:assistant", text(&block["text"]))
                        }
                        Some("thinking") => add("role:thinking", text(&block["thinking"])),
                        Some("tool_use") => {
                            strings(&block["input"]).into_iter().for_each(|text| add("kind:call", text))
                        }
                        Some("tool_result") => {
                            for text in output(&block["content"]) {
                                let note = text.starts_with("<persisted-output>");
                                add(if note { NOTE } else { "kind:result" }, text);
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    texts
}

/// The prompt below what an editor added above it.
fn request(text: &str) -> String {
    text.split_once("## My request for Codex:").map_or(text, |(_, words)| words).to_owned()
}

/// An answer without its citations.
fn uncited(text: &str) -> String {
    text.split_once("<oai-mem-citation>").map_or(text, |(words, _)| words).to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn parts(content: &Value) -> Vec<String> {
    content.as_array().into_iter().flatten().map(|part| text(&part["text"])).collect()
}

/// All text values in a JSON document inside a text.
fn values(document: &str) -> Vec<String> {
    serde_json::from_str(document).map(|value| strings(&value)).unwrap_or_default()
}

fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// A text, texts in parts, or those in a document: field names are not content.
fn output(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner) if inner.is_object() => strings(&inner),
            _ => vec![text.clone()],
        },
        other => parts(other),
    }
}

/// Words as people type them: letters only, so that every tokenizer agrees.
fn words(text: &str) -> BTreeSet<String> {
    let cut = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let plain = cut
        .filter(|word| (4..=24).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase()));
    plain.map(str::to_owned).collect()
}

/// The rarest word of each text, with the sessions that contain it.
fn needles(texts: &[HomeText]) -> BTreeMap<(&'static str, String), BTreeSet<Option<String>>> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for text in texts {
        words(&text.text).into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
    }
    let (notes, texts): (Vec<&HomeText>, Vec<&HomeText>) = texts.iter().partition(|text| text.filter == NOTE);
    let noted: BTreeSet<String> = notes.iter().flat_map(|note| words(&note.text)).collect();
    let mut chosen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for text in &texts {
        let candidates = words(&text.text).into_iter().filter(|word| !noted.contains(word));
        let rarest = candidates.min_by_key(|word| (counts[word], std::cmp::Reverse(word.len())));
        let chosen = chosen.entry(text.filter).or_default();
        chosen.extend(rarest.filter(|_| chosen.len() < MOST));
    }
    let mut needles: BTreeMap<(&'static str, String), BTreeSet<Option<String>>> = BTreeMap::new();
    for text in &texts {
        for word in words(&text.text).intersection(&chosen[text.filter]) {
            needles.entry((text.filter, word.clone())).or_default().insert(text.session.clone());
        }
    }
    needles
}

fn every_word_is_found_in_its_message(homes: &[ClientHome]) {
    let mut searches: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for ClientHome { source, path: home } in homes {
        let bench = Bench::with_home(source, home);
        bench.sync();
        let mut shown: HashMap<String, Vec<Value>> = HashMap::new();
        for ((filter, word), sessions) in needles(&read(source, home)) {
            *searches.entry((source, filter)).or_default() += 1;
            let answer = run_search(&bench, &format!("{word} {filter}"), &[]);
            let what = format!("{}: {word} {filter}", home.display());
            let found: BTreeSet<Option<String>> = names(&answer).into_iter().map(Some).collect();
            if found.is_empty() || answer["mode"] != "all" {
                wrong.push(format!("{what} is not found"));
                continue;
            }
            if sessions.len() == 1 && !sessions.contains(&None) && !found.is_superset(&sessions) {
                wrong.push(format!("{what} is of {sessions:?}, found in {found:?}"));
            }
            for result in answer["results"].as_array().unwrap() {
                let Some(session) = result["session_id"].as_str() else { continue };
                let entries = shown.entry(session.to_owned()).or_insert_with(|| {
                    bench.json(&["show", session, "--full"])["messages"].as_array().unwrap().clone()
                });
                for passage in result["passages"].as_array().unwrap() {
                    let entry = entries.iter().find(|entry| entry["id"] == passage["message_id"]);
                    let fits = entry.is_some_and(|entry| {
                        entry["seq"] == passage["position"]
                            && entry.to_string().to_lowercase().contains(&word)
                    });
                    let marked = passage["highlights"].as_array().is_some_and(|marks| !marks.is_empty());
                    if !fits || !marked {
                        let seq = entry.map(|entry| entry["seq"].clone());
                        wrong.push(format!(
                            "{what} is not at {passage}, which is number {seq:?} of {session}"
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    println!("{searches:#?}");
    for source in ["codex_cli", "claude_code"] {
        for filter in ["role:user", "role:assistant", "kind:call", "kind:result", "kind:library"] {
            assert!(searches.contains_key(&(source, filter)), "no word of {source} for {filter}");
        }
    }
}

/// An output stored separately belongs to its call.
fn separate_outputs_lead_to_their_calls(homes: &[ClientHome]) {
    let mut searches = 0;
    for home in of(homes, "claude_code") {
        let bench = Bench::with_home("claude_code", &home);
        bench.sync();
        for path in files_below(&home) {
            let Some(folder) = path.parent().filter(|folder| folder.ends_with("tool-results")) else {
                continue;
            };
            let session = folder.parent().unwrap().file_name().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let (first, last) = (text.lines().next().unwrap(), text.lines().last().unwrap());
            let shown = bench.json(&["show", session, "--full"]);
            for line in [first, last] {
                let query = format!("\"{line}\" kind:result");
                let answer = run_search(&bench, &query, &[]);
                let whole = answer["results"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|result| result["session_id"] == session);
                let passage = &whole.unwrap_or_else(|| panic!("{query}: {answer:#}"))["passages"][0];
                let entries = shown["messages"].as_array().unwrap();
                let entry = entries.iter().find(|entry| entry["id"] == passage["message_id"]).unwrap();
                assert!(entry.to_string().contains("tool_call"), "{query}: {entry}");
                assert!(passage["tool"].is_string(), "{passage}");
                searches += 1;
            }
        }
    }
    assert!(searches > 0, "no home has such outputs");
}

fn nothing_of_files_that_are_never_opened_is_found(homes: &[ClientHome]) {
    let codex =
        ["auth.json", ".credentials.json", "secrets/x", "keys.age", "logs_2.sqlite", "shell_snapshots/a.sh"];
    let claude = [
        ".credentials.json",
        ".claude.json",
        "shell-snapshots/snapshot-bash-1.sh",
        "session-env/x/env.sh",
        "debug/x.txt",
        "dump-prompts/x.jsonl",
        "sessions/4242.json",
    ];
    for ClientHome { source, path: home } in homes {
        let bench = Bench::with_home(source, home);
        let never: &[&str] = if *source == "codex_cli" { &codex } else { &claude };
        for path in never {
            let path = bench.home_of(source).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "{\"token\": \"unspeakable marker\"}\n").unwrap();
        }
        bench.sync();
        for query in ["unspeakable", "unspeak*", "\"unspeakable marker\"", "unspeakable kind:library"] {
            assert!(names(&run_search(&bench, query, &[])).is_empty(), "{}: {query}", home.display());
        }
    }
}
