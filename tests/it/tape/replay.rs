//! The edits of a tape, applied to the file before, give the file after: every letter, tab and line end of it.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use annals_testkit::Bench;
use annals_testkit::corpora::generator::Random;
use annals_testkit::files::files_below;
use annals_testkit::homes::{ClientHome, of};

annals_testkit::over_homes! { edits_of_real_clients_replay_exactly }

const SOURCE: &str = "claude_code";

fn edits_of_real_clients_replay_exactly(homes: &[ClientHome]) {
    let mut replayed = 0;
    for home in of(homes, SOURCE) {
        for file in
            files_below(&home).iter().filter(|file| file.extension().is_some_and(|end| end == "jsonl"))
        {
            replayed += replay(&Bench::new(), file);
        }
    }
    println!("{replayed} edits replayed");
    assert!(replayed > 0);
}

/// The file before and after each call that reports both.
fn known_changes(transcript: &str) -> HashMap<String, (String, String)> {
    let mut known = HashMap::new();
    for row in transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let detail = &row["toolUseResult"];
        let text = |name: &str| detail[name].as_str();
        let (Some(before), Some(call)) =
            (text("originalFile"), row["message"]["content"][0]["tool_use_id"].as_str())
        else {
            continue;
        };
        let after = match (text("oldString"), text("newString"), text("content")) {
            (Some(old), Some(new), _) if !old.is_empty() && before.contains(old) => {
                if detail["replaceAll"] == true {
                    before.replace(old, new)
                } else {
                    before.replacen(old, new, 1)
                }
            }
            (None, None, Some(content)) => content.to_owned(),
            _ => continue,
        };
        known.insert(call.to_owned(), (before.to_owned(), after));
    }
    known
}

/// Replays all edits of a transcript whose outcome is known; returns how many.
fn replay(bench: &Bench, transcript: &Path) -> usize {
    let known = known_changes(&String::from_utf8_lossy(&std::fs::read(transcript).unwrap()));
    if known.is_empty() {
        return 0;
    }
    let ran = bench.run(&["record", transcript.to_str().unwrap(), "--format", "claude-jsonl", "--reveal"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut edits: HashMap<String, Vec<Value>> = HashMap::new();
    for event in ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if event["k"] == "code.edit" {
            edits.entry(event["call_id"].as_str().unwrap().to_owned()).or_default().push(event);
        }
    }
    let mut replayed = 0;
    for (call, (before, after)) in &known {
        // Copied rows of a resume have a call without an outcome.
        let Some(edits) = edits.get(call) else { continue };
        if before != after {
            assert_eq!(&applied(before, edits), after, "{call} in {}", transcript.display());
            replayed += 1;
        }
    }
    replayed
}

/// Applies the edits of one call, and checks that each finds the text it replaces.
fn applied(before: &str, edits: &[Value]) -> String {
    let mut lines: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
    let mut shift = 0_i64;
    for edit in edits {
        let range = |name: &str| {
            let range = &edit[name];
            range[0].as_i64().zip(range[1].as_i64()).map(|(first, last)| (first - 1, last - first + 1))
        };
        let text = |name: &str| edit[name].as_str().unwrap_or_default();
        let (removed, added) = (range("before_range"), range("after_range"));
        let start = added.map_or_else(|| removed.unwrap().0 + shift, |(first, _)| first) as usize;
        let end = start + removed.map_or(0, |(_, count)| count) as usize;
        assert_eq!(lines[start..end].concat(), text("before_text"), "{edit}");
        let new: Vec<String> = text("after_text").split_inclusive('\n').map(str::to_owned).collect();
        shift += new.len() as i64 - (end - start) as i64;
        lines.splice(start..end, new);
    }
    lines.concat()
}

/// A patch as the client writes it: three lines of context, leading tabs as spaces, no line ends.
fn structured_patch(before: &str, after: &str, width: usize) -> Value {
    let diff = TextDiff::from_lines(before, after);
    let shown = |line: &str| {
        let line = line.trim_end_matches(['\n', '\r']);
        let tabs = line.len() - line.trim_start_matches('\t').len();
        format!("{}{}", " ".repeat(width * tabs), &line[tabs..])
    };
    let hunks = diff.grouped_ops(3).into_iter().map(|group| {
        let mut lines = Vec::new();
        for change in group.iter().flat_map(|part| diff.iter_changes(part)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!("{sign}{}", shown(change.value())));
            if change.missing_newline() {
                lines.push("\\ No newline at end of file".into());
            }
        }
        let (first, last) = (group.first().unwrap(), group.last().unwrap());
        let (old, new) = (first.old_range().start, first.new_range().start);
        json!({"oldStart": old + 1, "oldLines": last.old_range().end - old, "newStart": new + 1,
            "newLines": last.new_range().end - new, "lines": lines})
    });
    Value::Array(hunks.collect())
}

/// A file of 12 to 40 lines, indented by tabs or spaces.
fn some_file(random: &mut Random, end: &str) -> Vec<String> {
    let count = 12 + random.below(28);
    (0..count)
        .map(|line| {
            let indentation = ["", "\t", "\t\t", "  ", "    ", "\t  "][random.below(6) as usize];
            let text = if random.below(6) == 0 {
                String::new()
            } else {
                format!("step_{line}({});", random.below(5))
            };
            format!("{indentation}{text}{end}")
        })
        .collect()
}

/// Tabs, both kinds of line ends, a byte order mark and files without a last newline: in edits and in written files.
#[test]
fn made_up_edits_replay_exactly() {
    let mut random = Random(11);
    let bench = Bench::new();
    let mut rows = Vec::new();
    for number in 0..300 {
        let end = if random.below(4) == 0 { "\r\n" } else { "\n" };
        let mut lines = some_file(&mut random, end);
        if random.below(4) == 0 {
            lines[0].insert(0, '\u{feff}');
        }
        if random.below(3) == 0 {
            let last = lines.last_mut().unwrap();
            *last = format!("{}x", last.trim_end());
        }
        let before = lines.concat();
        let first = random.below(lines.len() as u64 - 4) as usize;
        let last = first + 1 + random.below(3) as usize;
        let (old, kept) = (lines[first..last].concat(), random.below(3));
        let added = some_file(&mut random, end)[..1 + random.below(4) as usize].concat();
        let new = match kept {
            0 => added,
            1 => format!("{old}{added}"),
            _ => format!("{added}{old}"),
        };
        let after = before.replacen(&old, &new, 1);
        let width = [2, 4, 8][random.below(3) as usize];
        let patch = structured_patch(&before, &after, width);
        let path = format!("/w/file_{number}");
        let (name, input, detail) = if number % 3 == 0 {
            (
                "Write",
                json!({"file_path": path, "content": after}),
                json!({"type": "update", "filePath": path,
                "content": after, "structuredPatch": patch, "originalFile": before}),
            )
        } else {
            let input = json!({"file_path": path, "old_string": old, "new_string": new});
            (
                "Edit",
                input,
                json!({"filePath": path, "oldString": old, "newString": new, "originalFile": before,
                "structuredPatch": patch, "replaceAll": false, "userModified": false}),
            )
        };
        let call = format!("toolu_{number}");
        let row = |kind: &str, step: usize, message: Value, detail: Value| {
            let mut row = json!({"type": kind, "uuid": format!("{number}-{step}"), "sessionId": "s", "cwd": "/w",
                "version": "2.1.112", "timestamp": "2026-03-02T09:00:00.000Z", "message": message});
            if !detail.is_null() {
                row["toolUseResult"] = detail;
            }
            row
        };
        let message = json!({"id": format!("msg_{number}"), "role": "assistant", "model": "made-up-1", "content": [
            {"type": "tool_use", "id": call, "name": name, "input": input}]});
        rows.push(row("assistant", 1, message, Value::Null));
        let message = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "content": "done"}]});
        rows.push(row("user", 2, message, detail));
    }
    let path = bench.folder.path().join("s.jsonl");
    std::fs::write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    assert!(replay(&bench, &path) > 290);
}
