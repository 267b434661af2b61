//! Forgetting in the homes of every client: whatever files a client keeps a session in, lists of many sessions included,
//! nothing of it is left, and what other sessions have stays and comes in.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use annals_testkit::homes::{fixtures, regular};
use annals_testkit::{Bench, fixtures as cases};

/// Shorter ones may be part of anything.
const SHORTEST: usize = 16;

/// What people and assistants said in a session, each text by itself.
fn texts_of(bench: &Bench, session: &str) -> Vec<String> {
    let shown = bench.json(&["show", session, "--full"]);
    let blocks = shown["messages"].as_array().unwrap().iter().flat_map(|message| {
        let blocks = message["blocks"].as_array().unwrap().iter();
        blocks.filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str())
    });
    blocks.filter(|text| text.len() >= SHORTEST).map(str::to_owned).collect()
}

#[test]
fn nothing_of_a_forgotten_session_is_left() {
    let mut checked = 0;
    for home in regular(&fixtures()) {
        let bench = Bench::with_home(home.source, &home.path);
        bench.sync_of(home.source);
        let sessions: Vec<Value> =
            bench.json_or_nothing(&["sessions", "--all"])["sessions"].as_array().unwrap().clone();
        let id = |session: &Value| session["session_id"].as_str().unwrap().to_owned();
        let related =
            |session: &Value| !session["parent_session_id"].is_null() || !session["copied_from"].is_null();
        // Of a session with copies or helpers, their texts are another matter.
        let alone = |session: &&Value| {
            let is_named = |other: &Value| {
                other["parent_session_id"] == session["session_id"]
                    || other["copied_from"] == session["session_id"]
            };
            !related(session) && !sessions.iter().any(is_named)
        };
        let others = |chosen: &str| -> String {
            let others = sessions.iter().map(id).filter(|other| other != chosen);
            others.map(|other| bench.run(&["show", &other, "--json", "--full"]).stdout).collect()
        };
        let chosen = sessions.iter().filter(alone).map(id).find_map(|session| {
            let elsewhere = others(&session);
            let is_own = |text: &String| !elsewhere.contains(json!(text).to_string().trim_matches('"'));
            let texts: Vec<String> = texts_of(&bench, &session).into_iter().filter(is_own).collect();
            (!texts.is_empty()).then_some((session, texts))
        });
        let Some((session, texts)) = chosen else { continue };
        let forgot = bench.run(&["forget", &session, "--yes", "--verify"]);
        assert_eq!(forgot.code, 0, "{}: {session}: {}{}", home.path.display(), forgot.stdout, forgot.stderr);
        for sync in ["before another sync", "after it"] {
            for text in texts.iter().take(3) {
                let left = bench.run(&["forget", "--verify", "--text", text]);
                assert_eq!(
                    left.code,
                    0,
                    "{sync} {}: {session}: {text}: {}",
                    home.path.display(),
                    left.stdout
                );
            }
            bench.sync_of(home.source);
        }
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} homes");
}

fn done(bench: &Bench, arguments: &[&str]) {
    let ran = bench.run(arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
}

/// Every byte that the archive writes back.
fn restored(bench: &Bench) -> String {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("restored");
    done(bench, &["restore", "--to", to.to_str().unwrap()]);
    let files = annals_testkit::files::files_below(&to).into_iter();
    files.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()).collect()
}

fn write(path: &Path, value: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, serde_json::to_string_pretty(value).unwrap()).unwrap();
}

fn prompt(session: &str, number: u64, text: &str) -> Value {
    json!({"sessionId": session, "messageId": number, "type": "user", "message": text,
           "timestamp": format!("2026-03-02T09:00:{number:02}.000Z")})
}

const FIRST: &str = "5e550000-aaaa-4000-8000-000000000001";
const SECOND: &str = "5e550000-bbbb-4000-8000-000000000002";

fn prompt_log(bench: &Bench) -> PathBuf {
    bench.home_of("gemini_cli").join("tmp/gauge/logs.json")
}

#[test]
fn prompts_of_other_sessions_stay_in_a_log_that_all_share() {
    let bench = Bench::new();
    let log = [prompt(FIRST, 0, "forget the copper kettle"), prompt(SECOND, 0, "keep the iron kettle")];
    write(&prompt_log(&bench), &json!(log));
    bench.sync_of("gemini_cli");
    done(&bench, &["forget", FIRST, "--yes", "--verify"]);

    for _ in 0..2 {
        let left = restored(&bench);
        assert!(!left.contains("copper") && left.contains("keep the iron kettle"), "{left}");
        let prompts = bench.json(&["records", "gemini_cli/history"]).to_string();
        assert!(!prompts.contains("copper") && prompts.contains("iron kettle"), "{prompts}");
        let audit = bench.json(&["audit"]);
        let gemini =
            audit["sources"].as_array().unwrap().iter().find(|source| source["source"] == "gemini_cli");
        assert_eq!(gemini.unwrap()["lines"]["unknown"]["lines"], 0, "{audit}");
        done(&bench, &["rebuild"]);
        bench.sync_of("gemini_cli");
    }
}

#[test]
fn a_log_of_forgotten_sessions_takes_the_prompts_of_new_ones() {
    let bench = Bench::new();
    write(&prompt_log(&bench), &json!([prompt(FIRST, 0, "forget the copper kettle")]));
    bench.sync_of("gemini_cli");
    done(&bench, &["forget", FIRST, "--yes", "--verify"]);
    let log = [prompt(FIRST, 0, "forget the copper kettle"), prompt(SECOND, 0, "keep the iron kettle")];
    write(&prompt_log(&bench), &json!(log));
    bench.sync_of("gemini_cli");

    let left = restored(&bench);
    assert!(!left.contains("copper") && left.contains("keep the iron kettle"), "{left}");
    let found = bench.json(&["search", "iron kettle"]);
    assert_eq!(found["results"][0]["session_id"], SECOND, "{found}");
}

#[test]
fn the_card_of_a_forgotten_task_stays_away_when_the_client_rewrites_it() {
    let bench = Bench::new();
    let list = bench.home_of("cline").join("data/state/taskHistory.json");
    let task = |id: &str, task: &str, tokens: u64| {
        json!({"id": id, "ts": 1_772_442_330_000_i64, "task": task, "tokensIn": tokens, "tokensOut": 1,
               "cwdOnTaskInitialization": "/home/ada/gauge", "modelId": "claude-sonnet-4-5"})
    };
    for id in ["1772442300000", "1772442400000"] {
        let talk = json!([{"role": "user", "content": [{"type": "text", "text": format!("<task>\ntask {id}\n</task>")}]}]);
        write(&bench.home_of("cline").join(format!("data/tasks/{id}/api_conversation_history.json")), &talk);
    }
    write(
        &list,
        &json!([task("1772442300000", "copper kettle", 1), task("1772442400000", "iron kettle", 1)]),
    );
    bench.sync_of("cline");
    done(&bench, &["forget", "1772442300000", "--yes", "--verify"]);
    write(
        &list,
        &json!([task("1772442300000", "copper kettle", 2), task("1772442400000", "iron kettle", 2)]),
    );
    bench.sync_of("cline");

    let left = restored(&bench);
    assert!(!left.contains("copper") && left.contains("iron kettle"), "{left}");
    let titles: Vec<Value> = bench.sessions().iter().map(|session| session["title"].clone()).collect();
    assert_eq!(titles, ["iron kettle"]);
}

#[test]
fn the_files_of_a_conversation_go_with_it_also_when_a_database_has_it_too() {
    for case in ["files", "taken_over"] {
        let bench = cases::synced("opencode", &cases::case("opencode", case));
        assert!(restored(&bench).contains("says twelve now"), "{case}");
        done(&bench, &["forget", "ses_aaaa0001", "--yes", "--verify"]);
        for _ in 0..2 {
            let left = restored(&bench);
            assert!(!left.contains("says twelve now") && !left.contains("A note is enough"), "{case}");
            bench.sync_of("opencode");
        }
    }
}
