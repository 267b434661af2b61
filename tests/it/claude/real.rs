//! Homes written by real clients of Claude Code, if a directory of them is given: everything is kept, and counts
//! agree with an independent count made here. Runs on the fixtures, and with `make test-real` on homes of real
//! clients.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::SOURCE;
use annals_testkit::Bench;
use annals_testkit::checks::{assert_accounts_add_up, assert_restores_of};
use annals_testkit::files::files_below;
use annals_testkit::homes::{ClientHome, of};

annals_testkit::over_homes! { everything_is_kept_and_nothing_counted_twice, sessions_outlive_their_files, counts_agree_with_an_independent_count, sub_agents_and_separate_outputs_are_complete }

fn everything_is_kept_and_nothing_counted_twice(homes: &[ClientHome]) {
    for home in of(homes, SOURCE) {
        let bench = Bench::with_home(SOURCE, &home);
        let first = bench.sync_of(SOURCE);
        assert!(first["captured_bytes"].as_u64().unwrap() > 0, "{}", home.display());
        assert_eq!(first["lines"]["malformed"].as_i64().unwrap(), torn_lines(&home), "{first}");
        assert_restores_of(&bench, SOURCE, &home);
        assert_accounts_add_up(&bench, &home);
        let before = bench.everything();
        assert_eq!(bench.sync_of(SOURCE)["captured_bytes"], 0, "{}", home.display());
        assert_eq!(bench.run(&["rebuild"]).code, 0);
        assert!(bench.everything() == before, "{}: rebuild changed rows", home.display());
    }
}

fn sessions_outlive_their_files(homes: &[ClientHome]) {
    for home in of(homes, SOURCE) {
        let bench = Bench::with_home(SOURCE, &home);
        bench.sync();
        let before = bench.sessions();
        for folder in ["projects", "file-history", "todos", "tasks"] {
            let _ = std::fs::remove_dir_all(bench.claude().join(folder));
        }
        bench.sync();
        let after = bench.sessions();
        assert_eq!(before.len(), after.len());
        for (was, is) in before.iter().zip(&after) {
            // The history is not removed.
            assert_eq!(is["source_gone"], is["history_only"] == false, "{is}");
            let mut is = is.clone();
            is["source_gone"] = false.into();
            assert_eq!(*was, is);
            let shown = bench.json(&["show", is["session_id"].as_str().unwrap()]);
            let shown_count = shown["messages"].as_array().unwrap().len() as i64;
            assert!(shown_count >= is["message_count"].as_i64().unwrap(), "{is}");
        }
    }
}

fn counts_agree_with_an_independent_count(homes: &[ClientHome]) {
    for home in of(homes, SOURCE) {
        let bench = Bench::with_home(SOURCE, &home);
        bench.sync();
        let counted = count_home(&home);
        let sessions = bench.sessions();
        // Sessions without a transcript are not counted here: their prompts are in the history alone.
        let found: BTreeMap<String, Numbers> = sessions
            .iter()
            .filter(|session| session["history_only"] == false)
            .map(|session| (session["session_id"].as_str().unwrap().to_owned(), numbers_of(session)))
            .collect();
        let names: BTreeSet<&String> = found.keys().collect();
        assert_eq!(names, counted.keys().collect::<BTreeSet<_>>(), "{}", home.display());

        let mut all = Sets::default();
        counted.values().for_each(|sets| all.add(sets));
        let mut sum = Numbers::default();
        for numbers in found.values() {
            sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        assert_eq!(sum, all.numbers(), "{}: totals", home.display());
        let mut alone = 0;
        for (name, sets) in &counted {
            let shares = counted.iter().any(|(other, others)| other != name && sets.meets(others));
            if !shares {
                alone += 1;
                assert_eq!(found[name], sets.numbers(), "{} {name}", home.display());
            }
        }
        assert!(alone > 0 || counted.len() < 3, "{}", home.display());
    }
}

/// Sub-agents, their parents, and separately stored outputs match the files.
fn sub_agents_and_separate_outputs_are_complete(homes: &[ClientHome]) {
    for home in of(homes, SOURCE) {
        let bench = Bench::with_home(SOURCE, &home);
        bench.sync();
        let files = files_below(&home);
        let read = |stream: &str| -> Vec<Value> {
            let ran = bench.run(&["records", &format!("claude_code/{stream}"), "--full", "--reveal"]);
            ran.stdout
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone())
                .collect()
        };
        let agents: BTreeSet<String> = transcripts(&home)
            .iter()
            .map(|path| stem(path))
            .filter(|name| name.starts_with("agent-"))
            .collect();
        let found = read("subagent_transcripts");
        let names: BTreeSet<String> =
            found.iter().map(|agent| agent["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, agents, "{}", home.display());
        let sessions: HashSet<String> = transcripts(&home).iter().map(|path| stem(path)).collect();
        for agent in &found {
            let parent = agent["parent_session_id"].as_str().unwrap();
            assert!(sessions.contains(parent), "{}: {agent}", home.display());
        }
        let mut whole: BTreeMap<String, String> = BTreeMap::new();
        for path in
            files.iter().filter(|path| path.components().any(|part| part.as_os_str() == "tool-results"))
        {
            let names: Vec<String> =
                path.components().rev().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
            whole.insert(format!("{}/{}", names[2], names[0]), std::fs::read_to_string(path).unwrap());
        }
        let full = read("tool_results_full");
        let full: BTreeMap<String, String> = full
            .iter()
            .map(|record| {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                (text(&record["id"]), text(&record["text"]))
            })
            .collect();
        assert_eq!(full, whole, "{}", home.display());
        // Every marker in a transcript leads to the complete text.
        let calls = read("tool_calls");
        for (id, key) in markers(&home) {
            let outputs = calls.iter().filter(|call| call["call_id"] == *id);
            let mut outputs = outputs.map(|call| call["output"].as_str().unwrap()).peekable();
            assert!(outputs.peek().is_some(), "{id}");
            assert!(outputs.all(|output| output == whole[&key]), "{}: {id}", home.display());
        }
    }
}

/// Messages, user records, answers, calls, and tokens: input, output, cache read, cache write.
type Numbers = [i64; 8];

fn numbers_of(session: &Value) -> Numbers {
    let tokens = &session["tokens"];
    [
        &session["message_count"],
        &session["user_message_count"],
        &session["assistant_message_count"],
        &session["tool_call_count"],
        &tokens["input"],
        &tokens["output"],
        &tokens["cache_read"],
        &tokens["cache_write"],
    ]
    .map(|number| number.as_i64().unwrap())
}

/// The content of a transcript, by the client's ids.
#[derive(Debug, Default)]
struct Sets {
    messages: HashSet<String>,
    users: HashSet<String>,
    answers: HashSet<String>,
    calls: HashSet<String>,
    tokens: HashMap<String, [i64; 4]>,
}

impl Sets {
    fn add(&mut self, other: &Sets) {
        self.messages.extend(other.messages.iter().cloned());
        self.users.extend(other.users.iter().cloned());
        self.answers.extend(other.answers.iter().cloned());
        self.calls.extend(other.calls.iter().cloned());
        for (id, tokens) in &other.tokens {
            // Copies of an answer have the same numbers.
            assert_eq!(self.tokens.entry(id.clone()).or_insert(*tokens), tokens, "{id}");
        }
    }

    fn meets(&self, other: &Sets) -> bool {
        !self.users.is_disjoint(&other.users)
            || !self.messages.is_disjoint(&other.messages)
            || !self.answers.is_disjoint(&other.answers)
            || !self.calls.is_disjoint(&other.calls)
    }

    fn numbers(&self) -> Numbers {
        let mut tokens = [0; 4];
        for answer in self.tokens.values() {
            tokens.iter_mut().zip(answer).for_each(|(sum, number)| *sum += number);
        }
        let count = |set: &HashSet<String>| set.len() as i64;
        let [input, output, read, written] = tokens;
        let (messages, users) = (count(&self.messages), count(&self.users));
        [messages, users, count(&self.answers), count(&self.calls), input, output, read, written]
    }
}

/// Counts by reading all lines as plain JSON.
fn count_home(home: &Path) -> BTreeMap<String, Sets> {
    let mut counted: BTreeMap<String, Sets> = BTreeMap::new();
    for path in transcripts(home) {
        let name = stem(&path);
        let rows = rows_of(&path);
        let sets = counted.entry(name.clone()).or_default();
        for (at, row) in rows.iter().enumerate() {
            let aside = name.starts_with("agent-") || row["isSidechain"] == true;
            match row["type"].as_str() {
                Some("user") => count_user(&rows, at, aside, sets),
                Some("assistant") => count_answer(row, aside && !name.starts_with("agent-"), sets),
                Some("attachment") => count_queued(row, aside, sets),
                Some("queue-operation") if is_taken_up(&rows, at) => {
                    sets.messages.insert(format!("queued {name} {at}"));
                }
                _ => {}
            }
        }
    }
    counted
}

fn count_user(rows: &[Value], at: usize, aside: bool, sets: &mut Sets) {
    let row = &rows[at];
    let content = &row["message"]["content"];
    let holds_result =
        content.as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "tool_result"));
    if row["isMeta"] == true || row["isCompactSummary"] == true || holds_result {
        return;
    }
    let text = text_of(content);
    let mut id = row["uuid"].as_str().unwrap().to_owned();
    sets.users.insert(id.clone());
    // Clients of 2025 assigned new ids to rewritten rows; the text and the next answer are still the same.
    let patch = row["version"].as_str().and_then(|version| version.strip_prefix("1.0."));
    if patch.is_some_and(|patch| patch.len() < 3) && !aside {
        let main = rows[at..].iter().filter(|row| row["isSidechain"] != true);
        let answer = main.filter(|row| row["message"]["model"] != "<synthetic>");
        let answer = answer.filter_map(|row| row["message"]["id"].as_str()).next();
        id = answer.map_or(id, |answer| format!("{text} {answer}"));
    }
    let machine = [
        "<command-",
        "<local-command-",
        "<bash-",
        "<agent-notification>",
        "<task-notification>",
        "[Request interrupted",
        "Unknown slash command: ",
    ];
    let context = [
        "<session-start-hook>",
        "<user-prompt-submit-hook>",
        "<post-tool-use-hook>",
        "Caveat: The messages below",
        "[Image: source:",
    ];
    let others = ["<teammate-message", "<cross-session-message", "<channel ", "Another Claude session"];
    let hook = text.lines().next().is_some_and(|line| line.ends_with("hook feedback:"));
    let mut starts = machine.iter().chain(&context).chain(&others);
    let pictured = content.as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "image"));
    let typed = !hook && !starts.any(|start| text.starts_with(start)) && (!text.is_empty() || pictured);
    if typed && !aside && row["origin"]["kind"] != "task-notification" {
        sets.messages.insert(id);
    }
}

/// The texts of a row without what an editor or the client added.
fn text_of(content: &Value) -> String {
    let parts = content.as_array().cloned().unwrap_or_else(|| vec![content.clone()]);
    let texts = parts.iter().filter_map(|part| part.as_str().or(part["text"].as_str()));
    let mut text = texts.collect::<Vec<_>>().join("\n");
    for tag in ["ide_opened_file", "ide_selection", "system-reminder"] {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let mut from = 0;
        while let Some(start) = text[from..].find(&open).map(|at| from + at) {
            from = start + open.len();
            let Some(end) = text[start..].find(&close).filter(|_| !text[..start].ends_with('`')) else {
                continue;
            };
            text.replace_range(start..start + end + close.len(), "");
            from = start;
        }
    }
    text.trim().to_owned()
}

/// A prompt that was queued and taken out of the queue, and is in no other row.
fn is_taken_up(rows: &[Value], at: usize) -> bool {
    let Some(text) = rows[at]["content"].as_str().filter(|_| rows[at]["operation"] == "enqueue") else {
        return false;
    };
    let elsewhere = |row: &Value| {
        let texts = [text_of(&row["message"]["content"]), text_of(&row["attachment"]["prompt"])];
        let unsent = row["operation"] == "popAll" || row["reason"] == "cancelled";
        texts.iter().any(|texts| texts.contains(text)) || (unsent && row["content"] == text)
    };
    let taken = rows[at..].iter().any(|row| row["operation"] == "remove" || row["operation"] == "dequeue");
    taken && !text.starts_with(['<', '/']) && !rows.iter().any(elsewhere)
}

fn count_answer(row: &Value, aside: bool, sets: &mut Sets) {
    let message = &row["message"];
    let id = message["id"].as_str().or(row["uuid"].as_str()).unwrap().to_owned();
    sets.answers.insert(id.clone());
    let calls = message["content"].as_array().into_iter().flatten();
    let calls = calls.filter(|block| block["type"] == "tool_use");
    sets.calls.extend(calls.map(|block| block["id"].as_str().unwrap().to_owned()));
    if message["model"] == "<synthetic>" {
        return;
    }
    if !aside {
        sets.messages.insert(id.clone());
    }
    let number = |name: &str| message["usage"][name].as_i64().unwrap_or(0);
    let tokens = [
        number("input_tokens"),
        number("output_tokens"),
        number("cache_read_input_tokens"),
        number("cache_creation_input_tokens"),
    ];
    // The last record has the numbers.
    sets.tokens.insert(id, tokens);
}

fn count_queued(row: &Value, aside: bool, sets: &mut Sets) {
    let attachment = &row["attachment"];
    let typed = attachment["commandMode"].as_str().is_none_or(|mode| mode == "prompt")
        && attachment["origin"]["kind"].as_str().is_none_or(|kind| kind == "human");
    if attachment["type"] == "queued_command" && typed && !aside {
        sets.messages.insert(row["uuid"].as_str().unwrap().to_owned());
    }
}

/// Tool call and `<session>/<file>` of every separately stored output.
fn markers(home: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for row in transcripts(home).iter().flat_map(|path| rows_of(path)) {
        for block in row["message"]["content"].as_array().into_iter().flatten() {
            let text = block["content"].as_str().unwrap_or("");
            if let Some((_, rest)) = text.split_once("Full output saved to: ") {
                let path: Vec<&str> = rest.lines().next().unwrap().rsplit('/').collect();
                let id = block["tool_use_id"].as_str().unwrap().to_owned();
                found.push((id, format!("{}/{}", path[2], path[0])));
            }
        }
    }
    found
}

fn transcripts(home: &Path) -> Vec<PathBuf> {
    let files = files_below(&home.join("projects")).into_iter();
    files
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.ends_with(".jsonl") && name != "resume-head.jsonl" && name != "journal.jsonl"
        })
        .collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn rows_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Lines that are not JSON and end with a newline: others may still be completed.
fn torn_lines(home: &Path) -> i64 {
    let torn = transcripts(home).into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n') && !line.trim().is_empty());
        lines.filter(|line| serde_json::from_str::<Value>(line).is_err()).count() as i64
    });
    torn.sum()
}
