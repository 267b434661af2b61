//! Assistants that are read by what all sources share: their homes are kept whole, counted once and traced. Runs on the
//! fixtures, and with `make test-real` on homes of real clients. What files contain is counted independently here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::lineage::blamed;
use annals_testkit::checks::{
    assert_accounts_add_up, assert_rebuilds, assert_restores_of, assert_up_to_date_of,
};
use annals_testkit::files::{append, files_below};
use annals_testkit::homes::{ClientHome, of, regular};
use annals_testkit::{Bench, fixtures};

annals_testkit::over_homes! { homes_are_kept_whole, counts_agree_with_an_independent_count }

const SOURCES: [&str; 7] = ["gemini_cli", "opencode", "copilot_cli", "qwen_code", "kimi_code", "cline", "pi"];

fn homes_are_kept_whole(homes: &[ClientHome]) {
    let mut checked = 0;
    for source in SOURCES {
        for home in of(homes, source) {
            let bench = Bench::with_home(source, &home);
            bench.sync_of(source);
            assert_restores_of(&bench, source, &home);
            assert_accounts_add_up(&bench, &home);
            assert_up_to_date_of(&bench, source);
            assert_rebuilds(&bench);
            if !home.ends_with("unknown_shapes/home") {
                for file in bench.accounts() {
                    let strange = ["unknown", "malformed"].map(|status| file[status]["lines"].clone());
                    assert_eq!(strange, [0, 0], "{file}");
                    assert!(file["types"]["drift"].is_null(), "{file}");
                }
            }
            checked += 1;
        }
    }
    assert!(checked >= 4, "only {checked} homes");
}

/// What the transcripts of a home contain.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub sessions: usize,
    pub answers: i64,
    pub calls: i64,
    pub prompt_tokens: i64,
    pub output_tokens: i64,
}

fn counts_agree_with_an_independent_count(homes: &[ClientHome]) {
    for home in regular(homes).filter(|home| SOURCES.contains(&home.source)) {
        let bench = Bench::with_home(home.source, &home.path);
        bench.sync_of(home.source);
        let expected = match home.source {
            "pi" => count_pi(&home.path),
            "opencode" => crate::opencode::count(&home.path),
            "copilot_cli" => crate::copilot::count(&home.path),
            "qwen_code" => count_qwen(&home.path),
            "kimi_code" => count_kimi(&home.path),
            "cline" => count_cline(&home.path),
            _ => count_documents(&home.path, "gemini"),
        };
        let mut found = Counted::default();
        for session in bench.sessions() {
            let number = |name: &str| session[name].as_i64().unwrap();
            let tokens = |name: &str| session["tokens"][name].as_i64().unwrap();
            // A prompt log has sessions without a transcript.
            found.sessions += usize::from(!session["models"].as_array().unwrap().is_empty());
            found.answers += number("assistant_message_count");
            found.calls += number("tool_call_count");
            found.prompt_tokens += tokens("input") + tokens("cache_read") + tokens("cache_write");
            found.output_tokens += tokens("output");
        }
        assert_eq!(found, expected, "{}", home.path.display());
        println!("{}: {found:?}", home.path.display());
    }
}

pub fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    match serde_json::from_str::<Value>(&text) {
        Ok(document) => vec![document],
        Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    }
}

/// By the ids of messages and calls, within their session; the last record of a message has its numbers.
fn count_documents(home: &Path, answer: &str) -> Counted {
    let mut answers: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut calls = BTreeSet::new();
    for path in files_below(home).into_iter().filter(|path| path.to_string_lossy().contains("/chats/")) {
        let lines = lines_of(&path);
        let session = lines.iter().find_map(|line| line["sessionId"].as_str()).unwrap_or_default().to_owned();
        let listed = lines.iter().flat_map(|line| line["messages"].as_array().into_iter().flatten());
        for message in lines.iter().chain(listed).filter(|message| message["type"] == answer) {
            for call in message["toolCalls"].as_array().into_iter().flatten() {
                calls.insert((session.clone(), call["id"].as_str().unwrap().to_owned()));
            }
            let id = message["id"].as_str().unwrap().to_owned();
            answers.insert((session.clone(), id), message["tokens"].clone());
        }
    }
    let sum = |names: &[&str]| {
        let numbers = |tokens: &Value| names.iter().filter_map(|name| tokens[*name].as_i64()).sum::<i64>();
        answers.values().map(numbers).sum()
    };
    Counted {
        sessions: answers.keys().map(|(session, _)| session).collect::<BTreeSet<_>>().len(),
        answers: answers.len() as i64,
        calls: calls.len() as i64,
        prompt_tokens: sum(&["input", "tool"]),
        output_tokens: sum(&["output", "thoughts"]),
    }
}

/// By the ids of records, which a fork names; an answer is what has usage. Older clients wrote documents.
fn count_qwen(home: &Path) -> Counted {
    let mut counted = count_documents(home, "qwen");
    let mut seen = BTreeSet::new();
    for path in files_below(home).into_iter().filter(|path| path.to_string_lossy().contains("/projects/")) {
        let is_transcript = path.extension().is_some_and(|ending| ending == "jsonl");
        let lines = if is_transcript { lines_of(&path) } else { Vec::new() };
        let mut answers = 0;
        for line in lines.iter().filter(|line| line["type"] == "assistant") {
            answers += usize::from(line["usageMetadata"].is_object());
            let origin = &line["forkedFrom"]["messageUuid"];
            if !seen.insert(if origin.is_null() { line["uuid"].clone() } else { origin.clone() }.to_string())
            {
                continue;
            }
            let usage = |name: &str| line["usageMetadata"][name].as_i64().unwrap_or(0);
            let calls = line["message"]["parts"].as_array().into_iter().flatten();
            counted.calls += calls.filter(|part| part["functionCall"].is_object()).count() as i64;
            counted.answers += i64::from(line["usageMetadata"].is_object());
            counted.prompt_tokens += usage("promptTokenCount");
            counted.output_tokens += usage("totalTokenCount") - usage("promptTokenCount");
        }
        counted.sessions += usize::from(answers > 0);
    }
    counted
}

/// An answer is a step with content; a fork repeats lines as they are.
fn count_kimi(home: &Path) -> Counted {
    let mut counted = Counted::default();
    let (mut steps, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for path in files_below(home).into_iter().filter(|path| path.ends_with("wire.jsonl")) {
        let lines = lines_of(&path);
        counted.sessions += usize::from(lines.iter().any(|line| line["type"] == "usage.record"));
        for line in lines.into_iter().filter(|line| seen.insert(line.to_string())) {
            let event = &line["event"];
            let usage = |name: &str| line["usage"][name].as_i64().unwrap_or(0);
            if line["type"] == "usage.record" {
                let prompt = ["inputOther", "inputCacheRead", "inputCacheCreation"].map(usage);
                counted.prompt_tokens += prompt.iter().sum::<i64>();
                counted.output_tokens += usage("output");
            }
            counted.calls += i64::from(event["type"] == "tool.call");
            if event["type"] == "tool.call" || event["type"] == "content.part" {
                steps.insert(event["stepUuid"].to_string());
            }
        }
    }
    counted.answers = steps.len() as i64;
    counted
}

/// Answers and usage are in one document, or in two that belong to a task. Models that call tools with markup begin it with
/// the name of the tool.
fn count_cline(home: &Path) -> Counted {
    let mut counted = Counted::default();
    for path in files_below(home).into_iter().filter(|path| path.extension().is_some_and(|end| end == "json"))
    {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let document = lines_of(&path).into_iter().next().unwrap_or_default();
        if name == "ui_messages.json" {
            for shown in document.as_array().unwrap().iter().filter(|shown| shown["say"] == "api_req_started")
            {
                let request: Value = serde_json::from_str(shown["text"].as_str().unwrap()).unwrap();
                counted.prompt_tokens += request["tokensIn"].as_i64().unwrap_or(0);
                counted.output_tokens += request["tokensOut"].as_i64().unwrap_or(0);
            }
        }
        if name == "task_metadata.json" {
            counted.sessions += 1;
        }
        if !name.ends_with(".messages.json") && name != "api_conversation_history.json" {
            continue;
        }
        counted.sessions += usize::from(name.ends_with(".messages.json"));
        let messages = document.as_array().or_else(|| document["messages"].as_array()).unwrap();
        for message in messages.iter().filter(|message| message["role"] == "assistant") {
            if message["metadata"]["displayOnly"] == true {
                continue;
            }
            counted.answers += 1;
            counted.prompt_tokens += message["metrics"]["inputTokens"].as_i64().unwrap_or(0);
            counted.output_tokens += message["metrics"]["outputTokens"].as_i64().unwrap_or(0);
            for block in message["content"].as_array().unwrap() {
                let text = block["text"].as_str().unwrap_or_default();
                let marks = ["read_file", "replace_in_file", "write_to_file", "execute_command"];
                let marked = marks.iter().any(|mark| text.contains(&format!("<{mark}>\n")));
                counted.calls += i64::from(block["type"] == "tool_use" || marked);
            }
        }
    }
    counted
}

/// By the ids of lines and their times, which a fork repeats.
fn count_pi(home: &Path) -> Counted {
    let mut counted = Counted::default();
    let mut seen = BTreeSet::new();
    for path in files_below(home).into_iter().filter(|path| path.to_string_lossy().ends_with(".jsonl")) {
        let mut answers = 0;
        for line in lines_of(&path) {
            let message = &line["message"];
            let content = message["content"].as_array().cloned().unwrap_or_default();
            if message["role"] != "assistant" || content.is_empty() {
                continue;
            }
            answers += 1;
            if !seen.insert((line["id"].to_string(), message["timestamp"].to_string())) {
                continue;
            }
            let number = |name: &str| message["usage"][name].as_i64().unwrap_or(0);
            counted.answers += 1;
            counted.calls += content.iter().filter(|part| part["type"] == "toolCall").count() as i64;
            counted.prompt_tokens += number("input") + number("cacheRead") + number("cacheWrite");
            counted.output_tokens += number("output");
        }
        counted.sessions += usize::from(answers > 0);
    }
    counted
}

#[test]
fn lines_are_traced_to_the_call_that_wrote_them() {
    for (source, call) in [
        ("gemini_cli", "write_file__1"),
        ("opencode", "call_1"),
        ("copilot_cli", "call_1"),
        ("qwen_code", "call_3"),
        ("kimi_code", "call_3"),
        ("cline", "call_3"),
        ("pi", "call_3"),
    ] {
        let bench = fixtures::synced(source, &fixtures::case(source, "lines"));
        let file = bench.folder.path().join("gauge/NOTES.txt");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "The dial needs oil.\nTwice a year.\n").unwrap();
        let blame = blamed(&bench, &file);
        let spans = blame["spans"].as_array().unwrap();
        assert!(!spans.is_empty());
        for span in spans {
            let origin = &blame["origins"][span["origin"].as_u64().unwrap() as usize];
            assert_eq!((&origin["call_id"], &span["grade"]), (&call.into(), &"exact".into()), "{span}");
        }
    }
}

#[test]
fn a_sub_agent_is_found_from_the_call_that_started_it() {
    let bench = fixtures::synced("gemini_cli", &fixtures::case("gemini_cli", "lines"));
    let shown = bench.json(&["show", "5e550000-0000-4000-8000-000000000001"]);
    let blocks =
        shown["messages"].as_array().unwrap().iter().flat_map(|entry| entry["blocks"].as_array().unwrap());
    let started: Vec<&Value> = blocks.filter(|block| block["agent_session_id"].is_string()).collect();
    assert_eq!(started.len(), 1, "{shown}");
    let agent = bench.json(&["show", started[0]["agent_session_id"].as_str().unwrap()]);
    assert_eq!(agent["session"]["parent_session_id"], "5e550000-0000-4000-8000-000000000001");
    assert_eq!(agent["session"]["cwd"], "/home/ada/gauge");
}

#[test]
fn the_cost_of_a_client_is_its_own() {
    let bench = fixtures::synced("pi", &fixtures::case("pi", "lines"));
    let sessions = bench.sessions();
    let first = sessions.iter().find(|session| session["title"] == "Dial oil").unwrap();
    assert!(first["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{first}");
    let fork = sessions.iter().find(|session| session["parent_kind"] == "fork").unwrap();
    assert_eq!(fork["assistant_message_count"], 1, "copied answers count where they were given: {fork}");
}

/// After a compression, the client writes the messages that it keeps once more, under new ids.
#[test]
fn what_a_compression_keeps_is_shown_once() {
    let bench = fixtures::synced("gemini_cli", &fixtures::case("gemini_cli", "lines"));
    let files = files_below(&bench.user());
    let path = files.iter().find(|path| path.ends_with("session-2026-03-02T09-00-5e550000.jsonl")).unwrap();
    let id = "5e550000-0000-4000-8000-000000000001";
    let shown = |bench: &Bench| {
        let shown = bench.json(&["show", id, "--full"]);
        shown["messages"].as_array().unwrap().len()
    };
    let before = shown(&bench);
    let at = "2026-03-02T09:01:00.000Z";
    let listed = |id: &str, kind: &str, text: &str| json!({"id": id, "timestamp": at, "type": kind, "content": [{"text": text}]});
    let kept = json!({"$set": {"lastUpdated": at, "messages": [
        listed("n1", "user", "<state_snapshot>\n<overall_goal>Wind it.</overall_goal>\n</state_snapshot>"),
        listed("n2", "gemini", "Got it. Thanks for the additional context!"),
        listed("n3", "user", "Please oil the dial in dial.rs"),
        {"id": "n4", "timestamp": at, "type": "gemini", "content": [{"text": "I look at the dial first."},
            {"functionCall": {"id": "read_file__1", "name": "read_file", "args": {}}}]},
        {"id": "n5", "timestamp": at, "type": "user", "content": [{"functionResponse": {"id": "read_file__1",
            "name": "read_file", "response": {"output": "fn dial() {}"}}}]},
        listed("n6", "gemini", "The dial is oiled."),
    ]}});
    // What a person types again is another prompt.
    let typed = listed("n7", "user", "Please oil the dial in dial.rs");
    append(path, &format!("{kept}\n{typed}\n"));
    bench.sync();
    assert_eq!(shown(&bench), before + 2, "the summary and the prompt");
    let sessions = bench.sessions();
    let session = sessions.iter().find(|session| session["session_id"] == id).unwrap();
    let again = fixtures::synced("gemini_cli", &fixtures::case("gemini_cli", "lines"));
    let sessions = again.sessions();
    let first = sessions.iter().find(|session| session["session_id"] == id).unwrap();
    let count = |session: &Value| session["message_count"].as_i64().unwrap();
    assert_eq!(count(session), count(first) + 1);
    assert_eq!(session["tokens"], first["tokens"]);
}

#[test]
fn sources_go_by_the_names_people_use_and_absent_ones_are_one_line() {
    let bench = fixtures::synced("gemini_cli", &fixtures::case("gemini_cli", "lines"));
    for name in ["gemini_cli", "gemini", "Gemini CLI"] {
        let found = bench.json(&["sessions", "--all", "--source", name]);
        assert_eq!(found["sessions"].as_array().unwrap().len(), 3, "{name}: {found}");
        assert!(bench.json(&["sync", name])["sources"].as_array().unwrap().len() == 1);
    }
    let found = bench.json(&["search", "source:gemini twelve"]);
    assert_ne!(found["results"].as_array().map(Vec::len), Some(0), "{found}");
    let listed = bench.run(&["sources"]).stdout;
    let absent: Vec<&str> = listed.lines().filter(|line| line.starts_with("Not found: ")).collect();
    assert_eq!(absent.len(), 1, "{listed}");
    assert!(absent[0].contains("Codex CLI") && !absent[0].contains("Gemini CLI"), "{listed}");
    assert!(!listed.contains("hint: run `codex`"), "{listed}");
    assert!(bench.run(&["sources", "--all"]).stdout.contains("hint: run `codex`"));
    let synced = bench.run(&["sync"]);
    let sources: Vec<&str> = synced.stdout.lines().skip(1).filter_map(|row| row.split(' ').next()).collect();
    assert_eq!(sources, ["gemini_cli"], "{}", synced.stdout);
    assert!(synced.stderr.contains("Not found: ") && !synced.stderr.contains("hint:"), "{}", synced.stderr);
    let named = bench.run(&["sync", "codex"]);
    assert!(
        named.stdout.contains("codex_cli") && named.stderr.contains("hint: run `codex`"),
        "{}",
        named.stdout
    );
}
