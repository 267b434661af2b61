//! What clients write for a session that works on a made-up repository, in every format of edits.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Value, json};

use super::Random;

/// One replaced block of a file.
pub(super) struct Change<'c> {
    pub start: usize,
    pub removed: usize,
    pub added: &'c [String],
    pub before: &'c [String],
}

impl Change<'_> {
    fn removed(&self) -> &[String] {
        &self.before[self.start..self.start + self.removed]
    }

    fn context(&self) -> (&[String], &[String]) {
        let end = self.start + self.removed;
        (
            &self.before[self.start.saturating_sub(3)..self.start],
            &self.before[end..(end + 3).min(self.before.len())],
        )
    }

    /// Lines of a hunk, with their markers.
    fn hunk(&self) -> Vec<String> {
        let (above, below) = self.context();
        let signed = |sign: char, lines: &[String]| -> Vec<String> {
            lines.iter().map(|line| format!("{sign}{line}")).collect()
        };
        [signed(' ', above), signed('-', self.removed()), signed('+', self.added), signed(' ', below)]
            .concat()
    }

    /// First line and count, before and after.
    fn numbers(&self) -> [usize; 4] {
        let (above, below) = self.context();
        let around = above.len() + below.len();
        let first = self.start - above.len() + 1;
        [first, around + self.removed, first, around + self.added.len()]
    }
}

/// The client format of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    CodexPlain,
    CodexRecords,
    CodexScripts,
    Claude,
    ClaudeAgent,
}

pub struct Transcript {
    form: Form,
    pub session: String,
    folder: PathBuf,
    lines: Vec<Value>,
    number: usize,
}

impl Transcript {
    pub fn new(number: usize, folder: &Path) -> Transcript {
        let form =
            [Form::CodexPlain, Form::Claude, Form::CodexRecords, Form::ClaudeAgent, Form::CodexScripts]
                [number % 5];
        let session = match form {
            Form::ClaudeAgent => format!("agent-a{number:06}"),
            _ => format!("0199f000-0000-7000-8000-{number:012}"),
        };
        let mut transcript =
            Transcript { form, session, folder: folder.to_owned(), lines: Vec::new(), number };
        let cwd = folder.to_str().unwrap_or_default().to_owned();
        if !transcript.is_claude() {
            let meta = json!({"id": transcript.session, "timestamp": moment(0), "cwd": cwd, "originator": "codex_exec",
                "cli_version": "0.150.0", "source": "exec"});
            transcript.codex("session_meta", meta, 0);
            transcript.codex("turn_context", json!({"turn_id": "t", "cwd": cwd, "model": "gpt-made-up"}), 0);
            let text = format!("Do step {number}.");
            let content = json!([{"type": "input_text", "text": text}]);
            transcript.codex(
                "response_item",
                json!({"type": "message", "role": "user", "content": content}),
                0,
            );
            transcript.codex("event_msg", json!({"type": "user_message", "message": text}), 0);
        } else {
            transcript.claude(
                "user",
                json!({"role": "user", "content": format!("Do step {number}.")}),
                None,
                0,
            );
        }
        transcript
    }

    fn is_claude(&self) -> bool {
        matches!(self.form, Form::Claude | Form::ClaudeAgent)
    }

    fn codex(&mut self, kind: &str, payload: Value, minute: i64) {
        self.lines.push(json!({"timestamp": moment(minute), "type": kind, "payload": payload}));
    }

    fn claude(&mut self, kind: &str, message: Value, result: Option<Value>, minute: i64) {
        let agent = self.form == Form::ClaudeAgent;
        let session = if agent { self.parent() } else { self.session.clone() };
        let uuid = format!("{:08}-{:04}-4000-8000-000000000000", self.number, self.lines.len());
        let mut row = json!({"parentUuid": null, "isSidechain": agent, "userType": "external",
            "cwd": self.folder.to_str(), "sessionId": session, "version": "2.1.112", "type": kind,
            "message": message, "uuid": uuid, "timestamp": moment(minute)});
        if agent {
            row["agentId"] = json!(self.session.trim_start_matches("agent-"));
        } else if let Some(result) = result {
            row["toolUseResult"] = result;
        }
        self.lines.push(row);
    }

    fn parent(&self) -> String {
        format!("5e550000-0000-4000-8000-{:012}", self.number)
    }

    pub fn create(&mut self, path: &Path, lines: &[String], call: &str, minute: i64) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let path_text = path.to_str().unwrap_or_default().to_owned();
        if self.is_claude() {
            let detail =
                json!({"type": "create", "filePath": path_text, "content": text, "structuredPatch": []});
            let input = json!({"file_path": path_text, "content": text});
            self.tool(call, "Write", input, Ok(detail), minute);
            return;
        }
        let added: String = lines.iter().map(|line| format!("+{line}\n")).collect();
        let short = path.strip_prefix(&self.folder).unwrap_or(path);
        let patch = format!("*** Begin Patch\n*** Add File: {}\n{added}*** End Patch", short.display());
        let changes = json!({path_text: {"type": "add", "content": text}});
        self.patch(call, &patch, changes, minute, false);
    }

    pub fn change(
        &mut self,
        path: &Path,
        change: &Change<'_>,
        call: &str,
        minute: i64,
        fails: bool,
        random: &mut Random,
    ) {
        let path_text = path.to_str().unwrap_or_default().to_owned();
        let hunk = change.hunk();
        let [old, old_count, new, new_count] = change.numbers();
        if !self.is_claude() {
            let short = path.strip_prefix(&self.folder).unwrap_or(path);
            let body = hunk.join("\n");
            let patch =
                format!("*** Begin Patch\n*** Update File: {}\n@@\n{body}\n*** End Patch", short.display());
            let diff = format!("@@ -{old},{old_count} +{new},{new_count} @@\n{body}\n");
            let changes = json!({path_text: {"type": "update", "unified_diff": diff, "move_path": null}});
            self.patch(call, &patch, changes, minute, fails);
            return;
        }
        let structured = json!([{"oldStart": old, "oldLines": old_count, "newStart": new, "newLines": new_count,
            "lines": hunk}]);
        let failed =
            || Err("<tool_use_error>String to replace not found in file.</tool_use_error>".to_owned());
        let (above, below) = change.context();
        let complete =
            [&change.before[..change.start], change.added, &change.before[change.start + change.removed..]];
        // Results of a sub-agent do not report what changed: only edits with their context can be traced.
        if self.form == Form::Claude && random.chance(15) {
            let text: String = complete.concat().iter().map(|line| format!("{line}\n")).collect();
            let detail = json!({"type": "update", "filePath": path_text, "content": text, "structuredPatch": structured});
            let input = json!({"file_path": path_text, "content": text});
            self.tool(call, "Write", input, if fails { failed() } else { Ok(detail) }, minute);
            return;
        }
        let old_text = [above, change.removed(), below].concat().join("\n");
        let new_text = [above, change.added, below].concat().join("\n");
        let detail = json!({"filePath": path_text, "oldString": old_text, "newString": new_text,
            "structuredPatch": structured, "replaceAll": false});
        let input = json!({"file_path": path_text, "old_string": old_text, "new_string": new_text});
        self.tool(call, "Edit", input, if fails { failed() } else { Ok(detail) }, minute);
    }

    fn tool(&mut self, call: &str, tool: &str, input: Value, result: Result<Value, String>, minute: i64) {
        let block = json!({"type": "tool_use", "id": call, "name": tool, "input": input});
        let message = json!({"id": format!("msg_{call}"), "type": "message", "role": "assistant",
            "model": "claude-made-up", "content": [block], "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1}});
        self.claude("assistant", message, None, minute);
        let (text, detail) = match result {
            Ok(detail) => ("The file has been updated.".to_owned(), Some(detail)),
            Err(text) => (text, None),
        };
        let mut block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
        if detail.is_none() {
            block["is_error"] = json!(true);
        }
        self.claude("user", json!({"role": "user", "content": [block]}), detail, minute);
    }

    fn patch(&mut self, call: &str, patch: &str, changes: Value, minute: i64, fails: bool) {
        let ok = "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated the following files:\n";
        let failed = "apply_patch verification failed: Failed to find expected lines";
        let output = if fails { failed } else { ok };
        if self.form == Form::CodexScripts {
            let script = format!("const r = await tools.apply_patch({});\ntext(r.output);\n", json!(patch));
            let outer = format!("script_{call}");
            let item = json!({"type": "custom_tool_call", "name": "exec", "call_id": outer, "input": script});
            self.codex("response_item", item, minute);
            if !fails {
                let item = json!({"type": "FileChange", "id": call, "changes": changes, "status": "completed",
                    "stdout": "Success.", "stderr": ""});
                let event = json!({"type": "item_completed", "thread_id": self.session, "turn_id": "t", "item": item});
                self.codex("event_msg", event, minute);
            }
            let parts = json!([{"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"},
                {"type": "input_text", "text": output}]);
            let answer = json!({"type": "custom_tool_call_output", "call_id": outer, "output": parts});
            self.codex("response_item", answer, minute);
            return;
        }
        let item =
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": call, "input": patch});
        self.codex("response_item", item, minute);
        if self.form == Form::CodexRecords && !fails {
            let event = json!({"type": "patch_apply_end", "call_id": call, "success": true, "stdout": "Success.",
                "stderr": "", "changes": changes});
            self.codex("event_msg", event, minute);
        }
        let answer = json!({"type": "custom_tool_call_output", "call_id": call, "output": output});
        self.codex("response_item", answer, minute);
    }

    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let path = match self.form {
            Form::Claude => folder.join(format!("claude/projects/-repo/{}.jsonl", self.session)),
            Form::ClaudeAgent => folder.join(format!(
                "claude/projects/-repo/{}/subagents/{}.jsonl",
                self.parent(),
                self.session
            )),
            _ => folder.join(format!(
                "codex/sessions/2024/02/01/rollout-2024-02-01T00-00-00-{}.jsonl",
                self.session
            )),
        };
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, self.lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    }
}

pub fn moment(minute: i64) -> String {
    let (day, hour) = (1 + minute / 1440 % 28, minute / 60 % 24);
    let month = 2 + minute / 1440 / 28;
    format!("2024-{month:02}-{day:02}T{hour:02}:{:02}:00.000Z", minute % 60)
}
