//! The events of a tape and their JSON, with hashes of texts before masking.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::view::door::Door;
use annals_core::{FileRegion, FileWork, Operation, Range, Shown, ShownJson, Time};
use annals_sources::TapeForm;

/// One event. All of its texts have passed the door.
pub struct Event {
    pub at: Option<Time>,
    pub session: String,
    /// Copied from another session.
    pub inherited: bool,
    pub body: EventBody,
}

pub enum EventBody {
    Message { role: &'static str, content: Shown },
    Call { tool: String, call_id: Shown, arguments: Shown },
    Result { tool: String, call_id: Shown, exit: Option<i64>, ok: Option<bool>, stdout: Shown, stderr: Shown },
    Read { call_id: Shown, file: Shown, range: Range, text: Option<Shown>, hash: Option<String> },
    Edit(Box<CodeEdit>),
}

/// One changed region of one file.
pub struct CodeEdit {
    pub call_id: Shown,
    pub model: Option<String>,
    pub file: Shown,
    pub from_file: Option<Shown>,
    pub operation: Operation,
    pub before: EditSide,
    pub after: EditSide,
    /// Inserted lines with the lines around them, if they are known.
    pub around: Option<(EditSide, EditSide)>,
}

pub struct EditSide {
    pub range: Option<Range>,
    pub text: Option<Shown>,
    /// Of the text that the call gave.
    pub hash: Option<String>,
    /// Of the lines, where they are more than that text.
    pub lines_hash: Option<String>,
}

impl CodeEdit {
    pub fn new(door: &Door, call_id: &str, model: Option<String>, work: &FileWork) -> CodeEdit {
        CodeEdit {
            call_id: door.text(call_id),
            model,
            file: door.text(&work.path),
            from_file: work.moved_from.as_deref().map(|path| door.text(path)),
            operation: work.operation,
            before: EditSide::new(door, &work.before),
            after: EditSide::new(door, &work.after),
            around: work
                .around
                .as_ref()
                .map(|around| (EditSide::new(door, &around.before), EditSide::new(door, &around.after))),
        }
    }
}

impl EditSide {
    fn new(door: &Door, piece: &FileRegion) -> EditSide {
        let text = piece.text.as_deref();
        let given = piece.given.as_deref().or(text);
        EditSide {
            range: piece.range,
            text: text.map(|text| door.text(text)),
            hash: given.map(sha256),
            lines_hash: text.filter(|text| given != Some(text)).map(sha256),
        }
    }
}

pub fn sha256(text: &str) -> String {
    annals_core::to_hex(&Sha256::digest(text.as_bytes()))
}

impl Event {
    /// The event as a JSON object, with fields in the order of the schema.
    pub fn line(&self, form: &TapeForm, with_read_text: bool) -> ShownJson {
        let mut line = Map::new();
        line.insert("t".into(), Value::from(moment(self.at)));
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                line.insert(name.into(), value);
            }
        };
        match &self.body {
            EventBody::Message { role, content } => {
                put("k", Value::from(if *role == "assistant" { "msg.out" } else { "msg.in" }));
                put("role", Value::from(*role));
                put("content", json!(content));
            }
            EventBody::Call { tool, call_id, arguments } => {
                put("k", "tool.call".into());
                put("tool", json!(tool));
                put("call_id", json!(call_id));
                put("args", json!(arguments));
            }
            EventBody::Result { tool, call_id, exit, ok, stdout, stderr } => {
                put("k", "tool.result".into());
                put("tool", json!(tool));
                put("call_id", json!(call_id));
                put("exit", json!(exit));
                put("ok", json!(ok));
                put("stdout", json!(stdout));
                put("stderr", json!(stderr));
            }
            EventBody::Read { call_id, file, range, text, hash } => {
                put("k", "code.read".into());
                put("file", json!(file));
                put("range", json!([range.start, range.end]));
                put("range_basis", "line".into());
                put("text", json!(text.as_ref().filter(|_| with_read_text)));
                put("text_hash", json!(hash));
                put("call_id", json!(call_id));
            }
            EventBody::Edit(edit) => {
                put("k", "code.edit".into());
                put("file", json!(edit.file));
                put("operation", Value::from(operation_name(edit.operation)));
                put("from_file", json!(edit.from_file));
                let sides = [("before", &edit.before), ("after", &edit.after)];
                let shown = match &edit.around {
                    Some((before, after)) => [("before", before), ("after", after)],
                    None => sides,
                };
                for (name, side) in shown {
                    put(&format!("{name}_range"), json!(side.range.map(|range| [range.start, range.end])));
                }
                for (name, side) in shown {
                    put(&format!("{name}_text"), json!(side.text));
                }
                for (name, side) in sides {
                    put(&format!("{name}_hash"), json!(side.hash));
                }
                for ((name, side), (_, shown)) in sides.into_iter().zip(shown) {
                    let of_lines = shown.lines_hash.as_ref().or(shown.hash.as_ref());
                    put(
                        &format!("{name}_lines_hash"),
                        json!(of_lines.filter(|hash| side.hash.as_ref() != Some(*hash))),
                    );
                }
                put("call_id", json!(edit.call_id));
            }
        }
        if self.inherited {
            put("inherited", Value::from(true));
        }
        put("source", json!({"harness": form.harness, "session_id": self.session}));
        ShownJson::new(Value::Object(line))
    }
}

pub fn moment(at: Option<Time>) -> String {
    at.map_or_else(|| "1970-01-01T00:00:00.000Z".to_owned(), Time::rfc3339)
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::MoveTo | Operation::MoveFrom => "move",
        Operation::Read | Operation::Create | Operation::Update | Operation::Delete => operation.name(),
    }
}
