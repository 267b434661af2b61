//! Prompts that only `history.jsonl` has: each is shown once, in its session, wherever it came from.

use serde_json::{Value, json};

use super::{FOLDER, ONE, TALK, THREE, TWO, assert_sound, counts, prompt_row, row, session, talk, write};
use annals_testkit::Bench;

/// An entry, so many seconds after the hour in which `row` counts.
fn typed(session: Option<&str>, seconds: i64, display: &str) -> Value {
    let mut entry = json!({
        "display": display, "pastedContents": {}, "timestamp": 1_772_445_600_000_i64 + seconds * 1_000 + 40,
        "project": "/home/ada/engine",
    });
    if let Some(session) = session {
        entry["sessionId"] = session.into();
    }
    entry
}

fn write_history(bench: &Bench, entries: &[Value]) {
    let lines: Vec<String> = entries.iter().map(|entry| format!("{entry}\n")).collect();
    std::fs::create_dir_all(bench.claude()).unwrap();
    std::fs::write(bench.claude().join("history.jsonl"), lines.concat()).unwrap();
}

/// Kind and words of what a session shows.
fn shown(bench: &Bench, id: &str) -> Vec<(String, String)> {
    let shown = bench.json(&["show", id]);
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|message| (message["kind"].as_str().unwrap().to_owned(), words(message))).collect()
}

fn words(message: &Value) -> String {
    message["blocks"][0]["text"].as_str().unwrap_or_default().to_owned()
}

fn found(bench: &Bench, words: &str) -> Vec<String> {
    let answer = bench.json(&["search", words]);
    let results = answer["results"].as_array().unwrap().iter();
    results.map(|result| result["session_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_whose_transcript_is_gone_keeps_its_prompts() {
    let bench = Bench::new();
    let mut paste = typed(Some(TWO), 20, "Polish [Pasted text #1 +2 lines] too");
    paste["pastedContents"] = json!({"1": {"id": 1, "type": "text", "content": "the brass\nthe dial"}});
    write_history(
        &bench,
        &[
            typed(Some(TWO), 1, "Wind the flywheel\nslowly"),
            paste,
            typed(Some(TWO), 30, "/exit"),
            typed(Some(THREE), 40, "/exit"),
        ],
    );
    bench.sync();
    let kept = [
        ("prompt", "Wind the flywheel\nslowly"),
        ("prompt", "Polish the brass\nthe dial too"),
        ("command", "/exit"),
    ];
    assert_eq!(shown(&bench, TWO), kept.map(|(kind, words)| (kind.to_owned(), words.to_owned())));
    assert_eq!(counts(&bench, TWO), [2, 2, 0, 0, 0, 0]);
    let listed = session(&bench, TWO);
    assert_eq!(listed["title"], "Wind the flywheel slowly");
    assert_eq!(listed["cwd"], "/home/ada/engine");
    assert_eq!(listed["history_only"], true);
    assert_eq!(listed["resume_command"], "");
    let cards = bench.json(&["sources"])["sources"].as_array().unwrap().clone();
    let card = cards.iter().find(|card| card["source"] == "claude_code").unwrap();
    assert_eq!(card["deleted_this_month"], 0, "the client has no transcript to delete");
    assert_eq!(listed["started_at"], "2026-03-02T10:00:01.040Z");
    assert_eq!(listed["last_message_at"], "2026-03-02T10:00:30.040Z");
    assert_eq!(found(&bench, "flywheel"), [TWO]);
    assert_eq!(found(&bench, "\"the dial too\""), [TWO]);
    assert_eq!(found(&bench, "flywheel role:user"), [TWO]);
    // A command alone makes no session.
    assert_eq!(bench.sessions().len(), 1);
    assert_sound(&bench);
}

#[test]
fn what_a_transcript_has_is_not_shown_again() {
    let queued = json!({"operation": "enqueue", "content": "Then the springs."});
    let lines = [
        talk(ONE),
        vec![
            row(ONE, 20, "queue-operation", queued),
            row(ONE, 50, "queue-operation", json!({"operation": "dequeue"})),
            prompt_row(ONE, 51, "Then the springs."),
            prompt_row(ONE, 60, "the brass\nthe dial\nPolish it."),
        ],
    ];
    let history = [
        typed(Some(ONE), 1, "oil the gears. "),
        typed(Some(ONE), 20, "Then the springs."),
        // The paste is in a separate file: only the time identifies the prompt.
        typed(Some(ONE), 60, "[Pasted text #1 +2 lines] Polish it."),
        typed(Some(ONE), 90, "This was never sent."),
    ];
    for (first, second) in [(true, false), (false, true), (true, true)] {
        let bench = Bench::new();
        if first {
            write_history(&bench, &history);
        }
        if second {
            write(&bench, FOLDER, ONE, &(lines.concat().join("\n") + "\n"));
        }
        bench.sync();
        write_history(&bench, &history);
        write(&bench, FOLDER, ONE, &(lines.concat().join("\n") + "\n"));
        bench.sync();
        let shown = shown(&bench, ONE);
        let count = |words: &str| shown.iter().filter(|(_, text)| text.contains(words)).count();
        for words in ["Oil the gears.", "Then the springs.", "Polish it.", "This was never sent."] {
            assert_eq!(count(words), 1, "{words}: {shown:?}");
        }
        assert_eq!(counts(&bench, ONE)[0], TALK[0] + 3);
        assert_eq!(session(&bench, ONE)["history_only"], false);
        assert_eq!(session(&bench, ONE)["title"], "Oil the gears.");
        assert_eq!(session(&bench, ONE)["first_message_at"], "2026-03-02T10:00:01.000Z");
        assert_eq!(found(&bench, "\"never sent\""), [ONE]);
        assert_eq!(found(&bench, "springs"), [ONE]);
        assert_sound(&bench);
    }
}

/// Old clients name the project alone.
#[test]
fn entries_without_a_session_go_to_the_one_of_their_project_and_time() {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, &(talk(ONE).join("\n") + "\n"));
    let elsewhere = |mut entry: Value| {
        entry["project"] = "/home/ada/loom".into();
        entry
    };
    write_history(
        &bench,
        &[
            typed(None, 1, "Oil the gears."),
            typed(None, 30, "And the chain?"),
            elsewhere(typed(None, 31, "Thread the loom.")),
            elsewhere(typed(None, 40, "/clear")),
            elsewhere(typed(None, 86_431, "Cut the cloth.")),
            typed(None, 7_200, "Back at the engine."),
        ],
    );
    bench.sync();
    assert_eq!(counts(&bench, ONE)[0], TALK[0] + 1);
    assert_eq!(found(&bench, "chain"), [ONE]);
    let mut others: Vec<(String, i64)> = bench
        .sessions()
        .iter()
        .filter(|session| session["session_id"] != ONE)
        .map(|session| {
            (session["cwd"].as_str().unwrap().to_owned(), session["message_count"].as_i64().unwrap())
        })
        .collect();
    others.sort();
    let each_day = [("/home/ada/engine", 1), ("/home/ada/loom", 1), ("/home/ada/loom", 1)];
    assert_eq!(others, each_day.map(|(cwd, count)| (cwd.to_owned(), count)));
    assert_eq!(found(&bench, "cloth").len(), 1);
    assert_sound(&bench);
}

/// The transcript of a session that was gone comes back, from a backup for instance.
#[test]
fn a_transcript_that_comes_later_takes_over() {
    let bench = Bench::new();
    write_history(&bench, &[typed(Some(ONE), 1, "Oil the gears."), typed(None, 30, "And the chain?")]);
    bench.sync();
    assert_eq!(counts(&bench, ONE), [1, 1, 0, 0, 0, 0]);
    assert_eq!(bench.sessions().len(), 2);
    write(&bench, FOLDER, ONE, &(talk(ONE).join("\n") + "\n"));
    bench.sync();
    assert_eq!(counts(&bench, ONE)[0], TALK[0] + 1);
    assert_eq!(bench.sessions().len(), 1);
    assert_eq!(session(&bench, ONE)["history_only"], false);
    assert_sound(&bench);
}
