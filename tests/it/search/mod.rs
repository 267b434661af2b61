//! What people type into a search, and what they get: words, phrases, code, filters, pages, and never a secret.

mod changes;
mod edges;
mod fuzz;
mod phrases;
mod questions;
mod real;
mod secrets;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::claude;
use annals_testkit::codex::{answer, line, meta, prompt, rollout, text_of};
use annals_testkit::server::{Server, escaped};
use annals_testkit::worlds::planted::secrets;
use annals_testkit::{Bench, Ran};

/// The answer to a query, which may be empty.
#[track_caller]
pub fn run_search(bench: &Bench, query: &str, options: &[&str]) -> Value {
    let ran = bench.run(&[&["search", "--json", "--limit", "500"], options, &["--", query]].concat());
    assert!(ran.code <= 1, "{query:?}: {}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["results"].as_array().unwrap().is_empty(), ran.code == 1, "{query:?}: {answer:#}");
    answer
}

/// Sessions by id, other items by title.
pub fn names(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap().iter();
    let name = |result: &Value| match result["session_id"].as_str() {
        Some(id) => id.to_owned(),
        None => result["title"].as_str().unwrap().to_owned(),
    };
    results.map(name).collect()
}

pub fn passages(answer: &Value) -> Vec<Value> {
    let results = answer["results"].as_array().unwrap().iter();
    results.flat_map(|result| result["passages"].as_array().unwrap().clone()).collect()
}

pub fn id(number: usize) -> String {
    format!("0199a1b2-0000-7000-8000-{number:012}")
}

/// A session whose title contains none of the words that follow.
pub fn talk(bench: &Bench, number: usize, texts: &[&str]) -> std::path::PathBuf {
    let mut lines = vec![meta(&id(number))];
    lines.extend(prompt(&format!("Session {number}.")));
    texts.iter().for_each(|text| lines.extend(answer(text)));
    bench.transcript(&rollout(&id(number)), &lines)
}

const TEXTS: &[&str] = &[
    "Fix the flaky login test please",
    "The login page is slow",
    "flaky weather today",
    "an exact\nphrase  Here, broken over\tlines",
    "a phrase that is exact, but not here",
    "authentication with authorize and OAuth",
    "see src/foo.rs and std::fs::read in fn main() after ECONNRESET",
    "src and foo and rs apart; main stands before fn; read fs std",
    "call parse_line and getUserName",
    "parse the next line, get a user a name",
    "修复登录问题",
    "登山的记录很好",
    "Die Größe der ÜBERSICHT ist naïve",
    "red fox",
    "blue fox",
    "green fox",
];

/// One session for each of the texts, numbered from 1.
fn texts() -> Bench {
    let bench = Bench::new();
    TEXTS.iter().zip(1..).for_each(|(text, number)| drop(talk(&bench, number, &[text])));
    bench.sync();
    bench
}

#[track_caller]
fn assert_finds(bench: &Bench, query: &str, mode: &str, numbers: &[usize]) {
    let answer = run_search(bench, query, &[]);
    let found: BTreeSet<String> = names(&answer).into_iter().collect();
    let expected: BTreeSet<String> = numbers.iter().map(|number| id(*number)).collect();
    assert_eq!(found, expected, "{query}: {answer:#}");
    assert_eq!((&answer["mode"], &answer["query"]), (&mode.into(), &query.into()));
    assert_eq!((&answer["total"], &answer["complete"]), (&numbers.len().into(), &true.into()), "{query}");
}

#[test]
fn words_phrases_alternatives_and_prefixes_match() {
    let bench = texts();
    for (query, numbers) in [
        ("login flaky", &[1][..]),
        ("FLAKY", &[1, 3]),
        ("flaky AND login", &[1]),
        ("flaky -login", &[3]),
        ("-login flaky", &[3]),
        ("flaky -\"login  TEST\"", &[3]),
        ("flaky -\"test login\"", &[1, 3]),
        ("red OR blue fox", &[14, 15]),
        ("fox red OR blue OR green", &[14, 15, 16]),
        ("fox -red -blue", &[16]),
        ("\"red fox\" OR \"blue fox\"", &[14, 15]),
        ("\"fox red\"", &[]),
        ("exact phrase", &[4, 5]),
        ("\"exact phrase here\"", &[4]),
        ("\"Exact   PHRASE\"", &[4]),
        ("\"broken over lines\"", &[4]),
        ("auth*", &[6]),
        ("authoriz*", &[6]),
        ("auth", &[]),
        ("nowhere", &[]),
    ] {
        assert_finds(&bench, query, "all", numbers);
    }
}

#[test]
fn code_is_found_as_written_and_by_its_parts() {
    let bench = texts();
    for (query, numbers) in [
        ("src/foo.rs", &[7][..]),
        ("foo.rs", &[7]),
        ("src foo rs", &[7, 8]),
        ("fn main", &[7, 8]),
        ("\"fn main\"", &[7]),
        ("econnreset", &[7]),
        ("ECONNRESET", &[7]),
        ("std::fs::read", &[7]),
        ("fs::read", &[7]),
        ("parse_line", &[9]),
        ("getUserName", &[9]),
        ("getusername", &[9]),
        ("parse", &[9, 10]),
        ("line", &[9, 10]),
        ("user name", &[9, 10]),
        ("src/foo*", &[7]),
    ] {
        assert_finds(&bench, query, "all", numbers);
    }
}

#[test]
fn scripts_without_spaces_and_letters_with_marks_are_found() {
    let bench = texts();
    for (query, numbers) in [
        ("修复登录", &[11][..]),
        ("\"登录问题\"", &[11]),
        ("登录", &[11]),
        ("登", &[11, 12]),
        ("录", &[11, 12]),
        ("录登", &[]),
        ("größe", &[13]),
        ("übersicht", &[13]),
        ("\"größe DER übersicht\"", &[13]),
        ("naïve", &[13]),
        ("über*", &[13]),
        ("Groesse", &[]),
    ] {
        assert_finds(&bench, query, "all", numbers);
    }
}

#[test]
fn questions_find_the_closest_matches() {
    let bench = texts();
    assert_finds(&bench, "how did we fix the flaky weather tests", "any", &[1, 3]);
    let best = run_search(&bench, "when was that login test fixed?", &[]);
    assert_eq!((&best["mode"], &names(&best)[0]), (&"any".into(), &id(1)), "{best:#}");
    let ran = bench.run(&["search", "how", "did", "we", "fix", "the", "flaky", "weather"]);
    assert!(ran.code == 0 && ran.stderr.contains("closest matches"), "{}", ran.stderr);
    let nothing = bench.run(&["search", "nowhere"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""));
    assert!(nothing.stderr.contains("hint: "), "{}", nothing.stderr);
}

/// Highlights are where the words are.
#[test]
fn highlights_point_at_the_words() {
    let bench = texts();
    let long = format!("{} the needle is Größer {}", "vorher ".repeat(300), "after ".repeat(300));
    talk(&bench, 20, &[&long]);
    bench.sync();
    for (query, words) in [
        ("flaky login", &["flaky", "login"][..]),
        ("\"exact phrase\"", &["exact phrase"]),
        ("auth*", &["authentication", "authorize"]),
        ("line", &["parse_line", "line"]),
        ("which weathers were flaky", &["flaky", "weather"]),
        ("src/foo.rs", &["src/foo.rs"]),
        ("登录", &["登录"]),
        ("größer needle", &["größer", "needle"]),
        ("ÜBERSICHT", &["übersicht"]),
    ] {
        let answer = run_search(&bench, query, &[]);
        let mut seen = BTreeSet::new();
        for passage in passages(&answer) {
            let letters: Vec<char> = passage["snippet"].as_str().unwrap().chars().collect();
            assert!(letters.len() <= 204, "{passage:#}");
            let marks: Vec<[usize; 2]> = serde_json::from_value(passage["highlights"].clone()).unwrap();
            assert!(!marks.is_empty(), "{query}: {passage:#}");
            for [start, length] in marks {
                let marked: String = letters[start..start + length].iter().collect();
                seen.insert(marked.to_lowercase());
            }
        }
        let expected: BTreeSet<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(seen, expected, "{query}: {answer:#}");
    }
}

const ENGINE: &str = claude::ONE;

/// A session of each client and a library item of one, all about zebras.
fn zebras() -> Bench {
    let bench = Bench::new();
    let edit = json!({"type": "tool_use", "id": "toolu_edit", "name": "Edit", "input": {
        "file_path": "/home/ada/engine/src/stripes.rs", "old_string": "horse", "new_string": "zebra"}});
    let block = json!({"tool_use_id": "toolu_edit", "type": "tool_result", "content": "changed"});
    let patch = json!([{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
        "lines": ["-horse", "+zebra"]}]);
    let detail = json!({"filePath": "/home/ada/engine/src/stripes.rs", "structuredPatch": patch});
    let message = json!({"role": "user", "content": [block]});
    let changed = json!({"message": message, "toolUseResult": detail});
    let lines = [
        claude::prompt_row(ENGINE, 1, "Where is the zebra?"),
        claude::answer_row(
            ENGINE,
            2,
            "m1",
            json!({"type": "thinking", "thinking": "a zebra?", "signature": ""}),
            1,
        ),
        claude::answer_row(ENGINE, 3, "m2", claude::text("The zebra is here."), 2),
        claude::answer_row(ENGINE, 4, "m3", claude::call("toolu_bash", "echo zebra"), 3),
        claude::result(ENGINE, 5, "toolu_bash", "zebra seen"),
        claude::answer_row(ENGINE, 6, "m4", edit, 4),
        claude::row(ENGINE, 7, "user", changed),
    ];
    claude::write(&bench, claude::FOLDER, ENGINE, &text_of(&lines));
    let git = r#""cwd":"/home/ada/loom","git":{"branch":"feature/weave"}"#;
    let mut lines = vec![meta(&id(1)).replace(r#""cwd":"/home/ada/engine""#, git)];
    lines.push(line(0, "turn_context", r#"{"model":"gpt-5.1-codex","effort":"low"}"#));
    let [item, event] = prompt("Weave a zebra.");
    lines.extend([event, item]);
    lines.extend([annals_testkit::codex::call(3, "zebra"), annals_testkit::codex::output(4, "zebra")]);
    lines.extend(answer("The zebra is woven."));
    bench.transcript(&rollout(&id(1)), &lines);
    std::fs::create_dir_all(bench.codex().join("prompts")).unwrap();
    std::fs::write(bench.codex().join("prompts/stripes.md"), "Draw a zebra.\n").unwrap();
    bench.sync();
    bench
}

/// Filters in the query, the same as parameters if there are such, whose sessions are found, and their roles.
#[rustfmt::skip]
const FILTERS: &[(&str, &str, &[&str], &[&str])] = &[
    ("source:claude_code kind:message", "source=claude_code&kind=message", &["engine"], &["assistant", "thinking", "user"]),
    ("source:codex_cli role:user", "source=codex_cli&role=user", &["loom"], &["user"]),
    ("project:/home/ada/engine", "project=/home/ada/engine", &["engine"], &[]),
    ("project:/home/ada", "project=/home/ada", &["engine", "loom"], &[]),
    ("project:/home/ad", "project=/home/ad", &[], &[]),
    ("project:Loom", "project=Loom", &["loom"], &[]),
    ("project:\"/home/ada/loom\"", "project=/home/ada/loom/", &["loom"], &[]),
    ("role:user", "role=user", &["engine", "loom"], &["user"]),
    ("role:assistant", "role=assistant", &["engine", "loom"], &["assistant"]),
    ("role:thinking", "role=thinking", &["engine"], &["thinking"]),
    ("role:tool", "role=tool", &["engine", "loom"], &["tool"]),
    ("kind:call", "kind=call", &["engine", "loom"], &["tool"]),
    ("kind:result", "kind=result", &["engine", "loom"], &["tool"]),
    ("kind:library", "kind=library", &["prompts stripes"], &["library"]),
    ("kind:message", "kind=message", &["engine", "loom"], &["assistant", "thinking", "user"]),
    ("tool:Bash", "", &["engine"], &["tool"]),
    ("tool:bash kind:result", "", &["engine"], &["tool"]),
    ("tool:shell", "", &["loom"], &["tool"]),
    ("tool:none", "", &[], &[]),
    ("file:stripes.rs", "", &["engine"], &["tool"]),
    ("file:src/Stripes.rs", "", &["engine"], &["tool"]),
    ("file:/home/ada/engine/src/stripes.rs", "", &["engine"], &["tool"]),
    ("file:lib/stripes.rs", "", &[], &[]),
    ("model:claude-sonnet-4-5 role:assistant", "", &["engine"], &["assistant"]),
    ("model:gpt-5 role:assistant", "", &["loom"], &["assistant"]),
    ("branch:main", "", &["engine"], &[]),
    ("branch:weave", "", &["loom"], &[]),
    ("since:2026-11-01 kind:message", "since=2026-11-01T00:00:00Z&kind=message", &["loom"], &[]),
    ("until:2026-11-01", "until=2026-11-01T00:00:00Z", &["engine"], &[]),
    ("since:2026-03-02T10:00:00Z until:2026-03-03T00:00:00Z", "since=2026-03-02T10:00:00Z&until=2026-03-03T00:00:00Z", &["engine"], &[]),
    ("source:claude_code project:engine tool:Bash branch:main model:claude since:2026-03-01 until:2026-04-01 kind:result",
     "", &["engine"], &["tool"]),
    ("source:claude_code project:engine tool:Bash branch:weave", "", &[], &[]),
];

#[test]
fn filters_narrow_in_the_query_and_as_parameters() {
    let bench = zebras();
    let server = Server::without_refresh(&bench);
    for (filter, parameters, expected, roles) in FILTERS {
        let name = |name: &&str| match *name {
            "engine" => ENGINE.to_owned(),
            "loom" => id(1),
            other => other.to_owned(),
        };
        let expected: BTreeSet<String> = expected.iter().map(name).collect();
        let path = |query: &str| format!("/api/v1/search?limit=500&q={}", escaped(query));
        let mut answers = vec![
            run_search(&bench, &format!("zebra {filter}"), &[]),
            run_search(&bench, &format!("{filter} zebra"), &[]),
            server.json(&path(&format!("zebra {filter}"))),
        ];
        if !parameters.is_empty() {
            answers.push(server.json(&format!("{}&{parameters}", path("zebra"))));
        }
        for answer in &answers {
            assert_eq!(names(answer).into_iter().collect::<BTreeSet<_>>(), expected, "{filter}: {answer:#}");
            let found: BTreeSet<String> =
                passages(answer).iter().map(|passage| passage["role"].as_str().unwrap().to_owned()).collect();
            let roles: BTreeSet<String> = roles.iter().map(|role| (*role).to_owned()).collect();
            assert!(roles.is_empty() || found == roles, "{filter}: {answer:#}");
            assert_eq!(answer["mode"], "all", "{filter}");
        }
        // Without a word, a filter shows everything that matches.
        let alone = run_search(&bench, filter, &[]);
        let alone: BTreeSet<String> = names(&alone).into_iter().collect();
        assert!(alone.is_superset(&expected), "{filter} alone: {alone:?}");
    }
    for wrong in ["role:king", "kind:word", "since:soon", "until:x", "source:nobody", "-zebra", "", "::"] {
        let ran = bench.run(&["search", "--", wrong]);
        assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{wrong}: {}", ran.stderr);
        assert_eq!(server.get(&format!("/api/v1/search?q={}", escaped(wrong))).status, 400, "{wrong}");
    }
}

#[test]
fn each_result_has_its_position_and_a_resume_command() {
    let bench = zebras();
    let answer = run_search(&bench, "zebra", &["--sort", "recent"]);
    let results = answer["results"].as_array().unwrap();
    let of = |name: &str| results.iter().find(|result| result["session_id"] == name).unwrap();
    assert_eq!(of(ENGINE)["resume_command"], format!("claude --resume {ENGINE}"));
    assert_eq!(of(&id(1))["resume_command"], format!("codex resume {}", id(1)));
    assert_eq!(
        (&of(&id(1))["git_branch"], &of(&id(1))["cwd"]),
        (&"feature/weave".into(), &"/home/ada/loom".into())
    );
    assert_eq!(
        (&of(ENGINE)["source"], &of(ENGINE)["provider_label"]),
        (&"claude_code".into(), &"Claude Code".into())
    );
    let shown = bench.json(&["show", ENGINE]);
    let entries = shown["messages"].as_array().unwrap();
    for query in
        ["zebra role:user", "zebra role:thinking", "\"zebra is here\"", "tool:Bash zebra", "file:stripes.rs"]
    {
        for passage in passages(&run_search(&bench, &format!("{query} source:claude_code"), &[])) {
            let message = passage["message_id"].as_str().unwrap();
            let position = passage["position"].as_u64().unwrap();
            let entry = &entries[position as usize];
            assert_eq!(
                (&entry["id"], &entry["seq"]),
                (&message.into(), &position.into()),
                "{query}: {passage:#}"
            );
            for at in [message, &message[..6], &position.to_string()] {
                let from = bench.json(&["show", ENGINE, "--at", at]);
                let rest = from["messages"].as_array().unwrap();
                assert_eq!(rest.as_slice(), &entries[position as usize..], "{at}");
                assert_eq!(bench.run(&["show", ENGINE, "--at", at]).code, 0, "{at}");
            }
        }
    }
    let ran = bench.run(&["show", ENGINE, "--at", "ffffffffffff"]);
    assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{}", ran.stderr);
}

/// Collects all pages, and checks that each result appears once.
#[track_caller]
pub fn assert_pages(bench: &Bench, query: &str, options: &[&str], limit: &str) -> Vec<String> {
    let whole = names(&run_search(bench, query, options));
    let (mut paged, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let from: Vec<&str> = cursor.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]).collect();
        let page = bench
            .run(&[&["search", "--json", "--limit", limit], options, &from[..], &["--", query]].concat());
        let page: Value = serde_json::from_str(&page.stdout).unwrap();
        paged.extend(names(&page));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
        assert!(paged.len() < 1_000, "no end");
    }
    let once: BTreeSet<&String> = paged.iter().collect();
    assert_eq!(once.len(), paged.len(), "{query}: some came twice");
    assert_eq!(once, whole.iter().collect::<BTreeSet<_>>(), "{query}: some never came");
    paged
}

#[test]
fn pages_show_each_result_once_best_or_recent_first() {
    let bench = Bench::new();
    for number in 1..=30 {
        let mut lines = vec![meta(&id(number))];
        let words = format!("gears {}", "and more words ".repeat(number * 7 % 11));
        lines.extend(
            answer(&words).map(|line| line.replace("T10:00:02", &format!("T10:{:02}:02", number * 13 % 60))),
        );
        bench.transcript(&rollout(&id(number)), &lines);
    }
    bench.sync();
    assert_eq!(assert_pages(&bench, "gears", &[], "7").len(), 30);
    assert_eq!(assert_pages(&bench, "kind:message", &[], "4").len(), 30);
    let recent = assert_pages(&bench, "gears", &["--sort", "recent"], "7");
    let mut expected: Vec<usize> = (1..=30).collect();
    expected.sort_by_key(|number| std::cmp::Reverse(number * 13 % 60));
    assert_eq!(recent, expected.into_iter().map(id).collect::<Vec<_>>());
    assert_eq!(run_search(&bench, "gears", &[])["total"], 30);
    let ran = bench.run(&["search", "gears", "--cursor", "x"]);
    assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{}", ran.stderr);
}

/// A secret next to the word, wherever the edge of the snippet falls in it.
#[test]
fn no_snippet_shows_any_part_of_a_secret() {
    let bench = Bench::new();
    let all = secrets();
    let (mut texts, mut parts) = (Vec::new(), BTreeSet::new());
    for (at, secret) in all.iter().enumerate() {
        // The prefix of many only says what it is; the rest must not be shown.
        let rest = &secret.value.as_bytes()[secret.value.len() / 3..];
        parts.extend(rest.windows(10).map(|part| String::from_utf8(part.to_vec()).unwrap()));
        for step in 0..20 {
            let space = "word ".repeat((step * 3 + at) % 60) + &"x".repeat(step % 5);
            texts.push(format!("needle {space} {} after", secret.in_context));
            texts.push(format!("{} before {} {space} needle", "far ".repeat(100), secret.in_context));
        }
    }
    for (number, texts) in texts.chunks(3).enumerate() {
        talk(&bench, number, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    bench.sync();
    let server = Server::without_refresh(&bench);
    let results = server.list("/api/v1/search?q=needle&limit=10", "results");
    let found = passages(&json!({"results": results}));
    assert_eq!(found.len(), texts.len(), "every message is shown");
    for passage in &found {
        let snippet = passage["snippet"].as_str().unwrap();
        let leak =
            snippet.as_bytes().windows(10).find(|part| parts.contains(&*String::from_utf8_lossy(part)));
        assert!(leak.is_none(), "{snippet}");
    }
    assert!(found.iter().any(|passage| passage["snippet"].as_str().unwrap().contains("[secret:")));
}

#[test]
fn members_find_only_their_own() {
    let bench = Bench::new();
    let mut tokens = Vec::new();
    for (name, number) in [("lovelace", 1), ("somerville", 2)] {
        let added = bench.json(&["members", "add", name]);
        tokens.push(added["token"].as_str().unwrap().to_owned());
        let home = bench.folder.path().join(name);
        let own = Bench::new();
        talk(&own, number, &[&format!("the shared secretary of {name}")]);
        annals_testkit::files::copy_folder(&own.codex(), &home);
        std::fs::create_dir_all(home.join("prompts")).unwrap();
        std::fs::write(home.join(format!("prompts/{name}.md")), format!("a shared prompt of {name}"))
            .unwrap();
        let mut command = bench.command(&["sync", "--member", name]);
        let ran = Ran::of(command.env("CODEX_HOME", &home).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let server = Server::without_refresh(&bench);
    for (at, own, other) in [(0, "lovelace", "somerville"), (1, "somerville", "lovelace")] {
        for (query, found) in [
            ("shared", 2),
            ("shared kind:library", 1),
            ("shared kind:message", 1),
            ("\"shared prompt\" OR \"shared secretary\"", 2),
            ("source:codex_cli shared", 2),
            ("sha*", 2),
            (own, 2),
        ] {
            let answer = server.json_as(&tokens[at], &format!("/api/v1/search?q={}", escaped(query)));
            assert_eq!(names(&answer).len(), found, "{own} asks {query}: {answer:#}");
            assert!(!answer["results"].to_string().contains(other), "{own} asks {query}: {answer:#}");
        }
        for query in [other.to_owned(), format!("shared {other} kind:library"), format!("{other} project:/")]
        {
            let answer = server.json_as(&tokens[at], &format!("/api/v1/search?q={}", escaped(&query)));
            assert!(!answer["results"].to_string().contains(other), "{own} asks {query}: {answer:#}");
        }
    }
    let all = server.json("/api/v1/search?q=shared");
    assert_eq!(names(&all).len(), 4, "the owner sees all: {all:#}");
}
