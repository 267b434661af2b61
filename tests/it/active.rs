//! A session is active while its assistant works: the client's own marks decide, then the clock.

use serde_json::{Value, json};

use annals_testkit::codex::{ID, meta, rollout, text_of};
use annals_testkit::{Bench, clock};

use crate::claude;

fn is_active(bench: &Bench, id: &str) -> bool {
    bench.sync();
    let sessions = bench.sessions();
    let session = sessions.iter().find(|session| session["session_id"] == id).unwrap();
    session["is_active"].as_bool().unwrap()
}

#[test]
fn a_codex_session_is_active_until_its_turn_ends() {
    let event = |payload: Value| json!({"timestamp": clock::now().to_string(), "type": "event_msg", "payload": payload});
    let steps = [
        (json!({"type": "user_message", "message": "Oil the gears"}), true),
        (json!({"type": "task_started", "turn_id": "a"}), true),
        (json!({"type": "agent_message", "message": "Which ones?"}), true),
        (json!({"type": "task_complete", "turn_id": "a"}), false),
        // What comes late is not work.
        (json!({"type": "token_count", "info": null}), false),
        (json!({"type": "task_started", "turn_id": "b"}), true),
        // The turn that was replaced.
        (json!({"type": "turn_aborted", "turn_id": "a", "reason": "replaced"}), true),
        (json!({"type": "turn_aborted", "turn_id": "b", "reason": "interrupted"}), false),
        // Clients without turns.
        (json!({"type": "user_message", "message": "All of them"}), true),
        (json!({"type": "turn_aborted", "reason": "interrupted"}), false),
    ];
    let bench = Bench::new();
    let mut lines = vec![meta(ID)];
    for (payload, expected) in steps {
        lines.push(event(payload.clone()).to_string());
        bench.transcript(&rollout(ID), &lines);
        assert_eq!(is_active(&bench, ID), expected, "after {payload}");
    }
}

#[test]
fn a_claude_session_is_active_until_its_turn_ends() {
    let bench = Bench::new();
    let row = |number: usize, kind: &str, more: Value| {
        let mut row = json!({"type": kind, "uuid": format!("d4d40000-0000-4000-8000-{number:012}"),
            "sessionId": claude::ONE, "timestamp": clock::now().to_string(), "cwd": "/home/ada/engine",
            "version": "2.1.325"});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row.to_string()
    };
    let prompt = |text: &str| json!({"message": {"role": "user", "content": text}});
    let answer = |reason: Value| {
        json!({"message": {"id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": reason,
            "content": [{"type": "text", "text": "Which ones?"}]}})
    };
    let steps = [
        ("user", prompt("Oil the gears"), true),
        ("assistant", answer(Value::Null), true),
        ("assistant", answer(json!("tool_use")), true),
        ("assistant", answer(json!("end_turn")), false),
        ("ai-title", json!({"aiTitle": "Gears"}), false),
        ("user", prompt("All of them"), true),
        ("user", prompt("[Request interrupted by user]"), false),
        ("user", prompt("Go on"), true),
        ("system", json!({"subtype": "turn_duration", "durationMs": 5}), false),
    ];
    let mut lines = Vec::new();
    for (number, (kind, more, expected)) in steps.into_iter().enumerate() {
        lines.push(row(number, kind, more.clone()));
        claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&lines));
        assert_eq!(is_active(&bench, claude::ONE), expected, "after {kind} {more}");
    }
}

#[test]
fn without_a_mark_the_clock_decides() {
    let bench = Bench::new();
    let minutes_ago = |minutes: i64| {
        let at = clock::now() - std::time::Duration::from_secs(60 * minutes.unsigned_abs());
        let payload = json!({"type": "user_message", "message": "Oil the gears"});
        json!({"timestamp": at.to_string(), "type": "event_msg", "payload": payload}).to_string()
    };
    bench.transcript(&rollout(ID), &[meta(ID), minutes_ago(6)]);
    assert!(!is_active(&bench, ID));
    bench.transcript(&rollout(ID), &[meta(ID), minutes_ago(6), minutes_ago(2)]);
    assert!(is_active(&bench, ID));
}
