//! Lines of Codex transcripts: the simplest sessions that tests can use.

/// The session of most tests.
pub const ID: &str = "0199a1b2-0000-7000-8000-00000000000a";

pub fn rollout(id: &str) -> String {
    format!("rollout-2026-11-15T10-00-00-{id}.jsonl")
}

/// The first line of a wrapped transcript.
pub fn meta(id: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-11-15T10:00:00.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-11-15T10:00:00.000Z","cwd":"/home/ada/engine","originator":"codex_cli_rs","cli_version":"0.80.0","source":"cli"}}}}"#
    )
}

/// A prompt as older clients store it: response item, then event.
pub fn prompt(text: &str) -> [String; 2] {
    let text = serde_json::to_string(text).unwrap();
    [
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}}}"#
        ),
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:01.100Z","type":"event_msg","payload":{{"type":"user_message","message":{text}}}}}"#
        ),
    ]
}

/// An answer as older clients store it: event, then response item.
pub fn answer(text: &str) -> [String; 2] {
    let text = serde_json::to_string(text).unwrap();
    [
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:02.000Z","type":"event_msg","payload":{{"type":"agent_message","message":{text}}}}}"#
        ),
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:02.100Z","type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{text}}}]}}}}"#
        ),
    ]
}

/// A small complete conversation.
pub fn conversation(id: &str, words: &str) -> Vec<String> {
    let mut lines = vec![meta(id)];
    lines.extend(prompt(words));
    lines.extend(answer(&format!("about {words}")));
    lines
}

pub fn text_of(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

pub fn line(second: u32, kind: &str, payload: &str) -> String {
    let (minute, second) = (second / 60 % 60, second % 60);
    format!(
        r#"{{"timestamp":"2026-11-15T10:{minute:02}:{second:02}.500Z","type":"{kind}","payload":{payload}}}"#
    )
}

pub fn call(second: u32, id: &str) -> String {
    let payload = format!(
        r#"{{"type":"function_call","name":"shell","arguments":"{{\"command\":[\"ls\",\"{id}\"]}}","call_id":"{id}"}}"#
    );
    line(second, "response_item", &payload)
}

pub fn output(second: u32, id: &str) -> String {
    let payload = format!(
        r#"{{"type":"function_call_output","call_id":"{id}","output":"{{\"output\":\"out of {id}\",\"metadata\":{{\"exit_code\":0,\"duration_seconds\":0.2}}}}"}}"#
    );
    line(second, "response_item", &payload)
}

pub fn tokens(second: u32, total: u32, last: u32) -> String {
    let payload = format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total},"output_tokens":1}},"last_token_usage":{{"input_tokens":{last},"output_tokens":1}}}}}}"#
    );
    line(second, "event_msg", &payload)
}

/// Thirty lines that cover everything a cut could break.
pub fn busy_transcript(id: &str) -> String {
    let mut lines = vec![meta(id), line(0, "turn_context", r#"{"model":"gpt-5.1-codex","effort":"low"}"#)];
    lines.extend(prompt("größer → 設定 🚀 \"quoted\" \\ back"));
    lines.extend([call(1, "one"), call(1, "two"), output(2, "two"), tokens(2, 10, 10), output(3, "one")]);
    lines.extend(answer("first answer"));
    lines.push(line(4, "brand_new_type", r#"{"deep":[{"a":{}}]}"#));
    lines.push(r#"{"timestamp":"2026-11-15T10:00:04.000Z","type":"event_msg","payl"#.into());
    lines.push(String::new());
    lines.push("   ".into());
    let [item, event] = prompt("with carriage returns");
    lines.extend([format!("{item}\r"), format!("{event}\r")]);
    lines.push(format!("{}\r", line(5, "another_type", "{}")));
    lines.extend([
        call(6, "three") + &call(6, "four"),
        output(7, "three"),
        output(7, "four"),
        output(7, "nobody"),
    ]);
    lines.push(tokens(8, 25, 15));
    lines.push("not json at all".into());
    lines.extend(answer("second answer"));
    lines.extend(prompt("third prompt"));
    lines.extend(answer("third answer"));
    assert_eq!(lines.len(), 30);
    text_of(&lines)
}
