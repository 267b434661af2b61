//! What tool calls did to files: from patches, records of changes, and commands that only read.

use serde_json::Value;

use super::blocks;
use super::outcome::read_body;
use super::patch::{each_place, find_patches, patch_work, unified_diff_changes};
use super::reads::{read_work, recorded_read};
use super::requests::ToolRequest;
use crate::home::folders::absolute;
use crate::json::{Json, Line, Scan, unescape};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::{Block, CallKind, FileRegion, FileWork, Operation, SessionFacts};

pub struct CodexTape;

const FORM: TapeForm = TapeForm {
    format: "codex-jsonl",
    harness: "codex-cli",
    vendor: "openai",
    flag: "codex",
    lines_reader: "rollout",
    document_reader: Some("rollout_document"),
};

impl Recorder for CodexTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    fn provider<'f>(&self, facts: &'f SessionFacts) -> &'f str {
        facts.native.get("model_provider").and_then(Value::as_str).unwrap_or(FORM.vendor)
    }

    fn name_of(&self, line: &[u8]) -> Option<String> {
        let line = Json::parse(line)?;
        let meta = line.get("payload").or_else(|| line.get("session")).unwrap_or(line);
        let id = meta.get_text("id").filter(|id| !id.is_empty())?;
        Some(format!("rollout-{id}.jsonl"))
    }

    /// The session says it once, and commands for themselves.
    fn folder(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let line = Json::parse(line)?;
        let payload = line.get("payload");
        if payload.is_some() && line.get("timestamp").is_none() {
            return Some("timestamp");
        }
        let body = payload.unwrap_or(line);
        let outer = line.get_text("type").unwrap_or_default();
        if outer == "session_meta" {
            return body.get("id").is_none().then_some("payload.id");
        }
        if payload.is_some() && !matches!(outer.as_ref(), "response_item" | "event_msg") {
            return None;
        }
        let kind = body.get_text("type").unwrap_or_default();
        let needed: &[&'static str] = match kind.as_ref() {
            "function_call" => &["name", "call_id", "arguments"],
            "custom_tool_call" => &["name", "call_id", "input"],
            "function_call_output" | "custom_tool_call_output" => &["call_id", "output"],
            "message" => &["role", "content"],
            "patch_apply_end" => &["call_id", "changes"],
            "item_completed" => &["item"],
            _ => &[],
        };
        // Empty texts are there; only what is absent is missed.
        needed.iter().copied().find(|name| body.get(name).is_none())
    }

    fn arguments(&self, call: &[u8]) -> String {
        let Some(body) = body_of(call) else { return String::new() };
        let own = ["arguments", "input", "action", "command", "changes"];
        let Some(value) = own.iter().find_map(|name| body.get(name)) else { return String::new() };
        value.text().map_or_else(|| own_text(value), |text| text.into_owned())
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        let detail = lines.detail.and_then(body_of);
        let text = |name: &str| detail.and_then(|detail| detail.get_text(name)).unwrap_or_default();
        let output = lines.output.map(output_text);
        match output {
            Some(output) => Printed {
                stdout: read_body(&output).map_or_else(|| output.clone(), |body| body.into_owned()),
                stderr: String::new(),
            },
            None if detail.is_some_and(|detail| detail.get("stdout").is_some()) => {
                Printed { stdout: text("stdout").into_owned(), stderr: text("stderr").into_owned() }
            }
            None => {
                Printed { stdout: lines.detail.map(output_text).unwrap_or_default(), stderr: String::new() }
            }
        }
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        let recorded = [lines.detail, Some(lines.call)].into_iter().flatten().filter_map(body_of);
        for record in recorded {
            if let Some(changes) = record.get("changes") {
                return changes
                    .fields()
                    .flat_map(|(path, change)| change_work(&unescape(path), change))
                    .collect();
            }
        }
        let Some(call) = body_of(lines.call) else { return Vec::new() };
        let kind = call.get_text("type").unwrap_or_default();
        if kind == "CommandExecution" {
            let folder = call.get_text("cwd");
            let folder = folder.as_deref().map(|folder| folder.strip_prefix("file://").unwrap_or(folder));
            return recorded_read(&call.object(), folder).into_iter().collect();
        }
        let request = ToolRequest::read(&kind, &call.object());
        if request.kind == CallKind::Script {
            return Vec::new();
        }
        let folder = request.workdir.as_deref().or(lines.folder);
        let mut work: Vec<FileWork> =
            find_patches(&request.body).iter().flat_map(|body| patch_work(body)).collect();
        for one in &mut work {
            one.path = absolute(&one.path, folder);
            one.moved_from = one.moved_from.as_deref().map(|path| absolute(path, folder));
        }
        if work.is_empty() {
            let output = lines.output.map(output_text).unwrap_or_default();
            work.extend(read_work(&request, &output, folder));
        }
        work
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        let work = self.work(&CallLines { call: call.bytes(), ..CallLines::default() });
        work.into_iter().filter(|work| !work.is_read()).filter_map(|work| work.after.text).collect()
    }

    /// A patch has whole lines: the record of it has no others.
    fn written_besides(&self, _detail: Line<'_>) -> Vec<String> {
        Vec::new()
    }

    /// This client keeps no copies.
    fn snapshot(&self, _path: &str) -> Option<Snapshot> {
        None
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        line
    }
}

/// What a line is about: a bare item, what is wrapped, or the item of an event.
fn body_of(line: &[u8]) -> Option<Json<'_>> {
    let line = Json::parse(line)?;
    let payload = line.get("payload").unwrap_or(line);
    Some(payload.get("item").filter(|item| item.is_object()).unwrap_or(payload))
}

fn own_text(value: Json<'_>) -> String {
    String::from_utf8_lossy(value.bytes()).into_owned()
}

fn output_text(line: &[u8]) -> String {
    let output = blocks::blocks(Scan::new(line).line()).into_iter().find_map(|block| match block {
        Block::ToolResult { output, .. } => Some(output),
        _ => None,
    });
    output.unwrap_or_default()
}

/// One file of a `changes` map.
fn change_work(path: &str, change: Json<'_>) -> Vec<FileWork> {
    let content = || change.get_text("content").unwrap_or_default().into_owned();
    match change.get_text("type").unwrap_or_default().as_ref() {
        "add" => {
            let mut work = FileWork::new(path, Operation::Create);
            work.after = FileRegion::lines(1, content());
            vec![work]
        }
        "delete" => {
            let mut work = FileWork::new(path, Operation::Delete);
            work.before = FileRegion::lines(1, content());
            vec![work]
        }
        _ => {
            let mut work = FileWork::new(path, Operation::Update);
            if let Some(target) = change.get_text("move_path") {
                work = FileWork::new(target, Operation::MoveTo);
                work.moved_from = Some(path.to_owned());
            }
            let diff = change.get_text("unified_diff").unwrap_or_default();
            each_place(&work, unified_diff_changes(&diff))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_core::Range;

    fn patch_call(patch: &str) -> Vec<u8> {
        let line = serde_json::json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload":
            {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c", "input": patch}});
        line.to_string().into_bytes()
    }

    #[test]
    fn a_patch_tells_every_place_of_every_file() {
        let call = patch_call(
            "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** Update File: old.rs\n*** Move to: src/new.rs\n\
             @@ fn a\n same\n-x\n+y\n+z\n@@\n-gone\n*** Delete File: /tmp/bye\n*** End Patch",
        );
        let lines = CallLines { call: &call, folder: Some("/home/ada"), ..CallLines::default() };
        let work = CodexTape.work(&lines);
        let emitted: Vec<_> = work
            .iter()
            .map(|work| {
                (work.path.as_str(), work.operation, work.before.text.as_deref(), work.after.text.as_deref())
            })
            .collect();
        assert_eq!(
            emitted,
            [
                ("/home/ada/new.txt", Operation::Create, None, Some("one\ntwo\n")),
                ("/home/ada/src/new.rs", Operation::MoveTo, Some("x\n"), Some("y\nz\n")),
                ("/home/ada/src/new.rs", Operation::MoveTo, Some("gone\n"), None),
                ("/tmp/bye", Operation::Delete, None, None),
            ]
        );
        assert_eq!(work[0].after.range, Some(Range { start: 1, end: 2 }));
        assert_eq!(work[1].after.range, None);
        assert_eq!(work[1].moved_from.as_deref(), Some("/home/ada/old.rs"));
    }

    #[test]
    fn the_clients_record_has_line_numbers() {
        let detail = br#"{"timestamp":"t","type":"event_msg","payload":{"type":"patch_apply_end","call_id":"c","success":true,
            "changes":{"/w/a.py":{"type":"update","unified_diff":"@@ -3,3 +3,4 @@\n a\n-b\n+B\n+C\n d\n","move_path":null}}}}"#;
        let call = patch_call("*** Begin Patch\n*** Update File: a.py\n@@\n-b\n+B\n+C\n*** End Patch");
        let work = CodexTape.work(&CallLines { call: &call, detail: Some(detail), ..CallLines::default() });
        assert_eq!(work.len(), 1);
        assert_eq!(work[0].before.range, Some(Range { start: 4, end: 4 }));
        assert_eq!(work[0].after.range, Some(Range { start: 4, end: 5 }));
        assert_eq!(work[0].after.text.as_deref(), Some("B\nC\n"));
    }
}
