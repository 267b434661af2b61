//! The insights page: each number counts rows, and the list behind it has as many.

use serde_json::{Value, json};

use crate::claude::{FOLDER, ONE, TWO, prompt_row, row, write};
use annals_testkit::Bench;
use annals_testkit::codex::text_of;
use annals_testkit::server::Server;

/// A moment of March, hours and minutes after ten o'clock.
fn at(minutes: u32) -> String {
    format!("2026-03-02T{:02}:{:02}:00.000Z", 10 + minutes / 60, minutes % 60)
}

fn timed(line: &str, minutes: u32) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap();
    line["timestamp"] = at(minutes).into();
    line.to_string()
}

fn asks(session: &str, number: u32, minutes: u32, text: &str) -> String {
    timed(&prompt_row(session, number, text), minutes)
}

/// An answer with this many input tokens: not cached, read from the cache, and written to it.
fn answers(session: &str, number: u32, minutes: u32, [input, read, written]: [u32; 3]) -> String {
    let id = format!("msg_{}_{number}", &session[28..]);
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "So it is."}],
        "usage": {"input_tokens": input, "output_tokens": 5, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written},
    });
    let more = json!({"requestId": format!("req_{id}"), "message": message});
    timed(&row(session, number, "assistant", more), minutes)
}

/// A call that replaces lines of a file from a number on, and its result.
fn edits(session: &str, number: u32, minutes: u32, start: u32, old: &[&str], new: &[&str]) -> Vec<String> {
    let id = format!("toolu_{}_{number}", &session[28..]);
    let path = "/home/ada/engine/gears.py";
    let input = json!({"file_path": path, "old_string": old.join("\n"), "new_string": new.join("\n")});
    let message = json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": id, "name": "Edit", "input": input}],
    });
    let lines: Vec<String> =
        old.iter().map(|line| format!("-{line}")).chain(new.iter().map(|line| format!("+{line}"))).collect();
    let patch = json!([{"oldStart": start, "oldLines": old.len(), "newStart": start, "newLines": new.len(),
        "lines": lines}]);
    let result = json!({
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "done"}]},
        "toolUseResult": {"filePath": path, "oldString": old.join("\n"), "newString": new.join("\n"),
            "originalFile": "", "structuredPatch": patch},
    });
    let call = timed(&row(session, number, "assistant", json!({"message": message})), minutes);
    vec![call, timed(&row(session, number + 1, "user", result), minutes)]
}

fn served() -> (Bench, Server) {
    let bench = Bench::new();
    let mut lines = vec![
        asks(ONE, 1, 0, "Oil the gears, please."),
        answers(ONE, 2, 1, [10, 0, 50_000]),
        // Twenty minutes later the cache has expired.
        asks(ONE, 3, 20, "Now the axle"),
        answers(ONE, 4, 21, [0, 0, 52_000]),
        asks(ONE, 5, 22, "[Request interrupted by user]"),
        asks(ONE, 6, 23, "Now the axle!"),
    ];
    lines.extend(edits(ONE, 10, 30, 4, &[], &["a", "b", "c"]));
    lines.extend(edits(ONE, 12, 40, 5, &["b", "c"], &["d"]));
    lines.extend(edits(ONE, 14, 130, 4, &["a"], &["e"]));
    lines.push(timed(
        &row(ONE, 16, "system", json!({"subtype": "compact_boundary", "content": "Conversation compacted"})),
        140,
    ));
    let summary =
        json!({"isCompactSummary": true, "message": {"role": "user", "content": "Gears were oiled."}});
    lines.push(timed(&row(ONE, 17, "user", summary), 140));
    write(&bench, FOLDER, ONE, &text_of(&lines));
    let elsewhere = asks(TWO, 1, 5, "Oil the gears, please").replace("/home/ada/engine", "/home/ada/mill");
    write(&bench, "-home-ada-mill", TWO, &text_of(&[elsewhere]));
    bench.sync();
    let server = Server::without_refresh(&bench);
    (bench, server)
}

fn page(server: &Server, path: &str) -> String {
    let reply = server.page(path);
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text().to_owned()
}

/// The number at the head of the list of a kind, and how many rows it has.
fn listed(server: &Server, query: &str) -> (String, usize) {
    let page = page(server, &format!("/insights/moments?days=all&{query}"));
    let total = page.split("id=\"total\"><b>").nth(1).and_then(|rest| rest.split('<').next());
    (total.unwrap_or_else(|| panic!("no total: {page}")).to_owned(), page.matches("<tr data-entry>").count())
}

#[test]
fn every_number_is_that_of_the_list_behind_it() {
    let (_bench, server) = served();
    for (what, total, rows) in [
        ("interrupted", "1", 1),
        ("compacted", "1", 1),
        // The same words in another directory are another prompt.
        ("repeated", "2", 2),
        ("context", "52 K", 1),
        // Two lines after ten minutes; the last edit is too late.
        ("rewritten", "2", 1),
        // 50,000 tokens, written for $3.75 instead of read for $0.30 per million.
        ("missed", "$0.17", 1),
        ("failed", "0", 0),
    ] {
        assert_eq!(listed(&server, &format!("what={what}")), (total.to_owned(), rows), "{what}");
        if rows > 0 {
            let all = page(&server, "/insights?days=all");
            let tile = format!("what={what}\"><span class=\"big\">{total}</span>");
            assert!(all.contains(&tile), "no {tile} in {all}");
        }
    }
    let all = page(&server, "/insights?days=all");
    assert!(all.contains("50 K tokens sent again, 20 min after the response before"), "{all}");
    assert!(all.contains("2×") && all.contains("Now the axle"), "{all}");
    assert!(all.contains("/home/ada/engine/gears.py"), "{all}");
    for kind in ["failed", "interrupted", "repeated", "compacted", "rewritten", "missed"] {
        page(&server, &format!("/insights?days=all&chart={kind}&rows=all"));
    }
}

#[test]
fn a_list_is_narrowed_by_directory_words_and_day() {
    let (_bench, server) = served();
    let of = |query: &str| listed(&server, query).1;
    assert_eq!(of("what=repeated&folder=/home/ada/engine"), 2);
    assert_eq!(of("what=repeated&folder=/home/ada/mill"), 0);
    assert_eq!(of("what=repeated&words=0000000000000000"), 0);
    assert_eq!(of("what=rewritten&first=2026-03-02&end=2026-03-03"), 1);
    assert_eq!(of("what=rewritten&first=2026-03-03&end=2026-03-04"), 0);
    assert_eq!(of("what=interrupted&source=codex"), 0);
    let list = page(&server, "/insights/moments?days=all&what=interrupted");
    assert!(list.contains(&format!("/sessions/claude_code/{ONE}?at=")), "{list}");
    for query in ["", "what=moods", "what=failed&words=x", "what=failed&first=someday", "what=failed&sort=x"]
    {
        assert_eq!(server.page(&format!("/insights/moments?{query}")).status, 400, "{query}");
    }
    assert_eq!(server.page("/insights?chart=moods").status, 400);
}
