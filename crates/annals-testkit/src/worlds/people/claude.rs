//! What Claude Code does.

use std::path::{Path, PathBuf};

use annals_core::Time;
use serde_json::{Map, Value, json};

use super::{Added, Deeds, append_lines, copy_id, late_id, read_lines};
use crate::files::files_below;

/// Clients that gave new ids to what they copied.
const OLD: &str = "1.0.44";

/// Context that editors and the client write, as it is found beside a prompt.
const CONTEXTS: [&str; 4] = [
    "<ide_opened_file>The user opened the file /home/ada/engine/src/gears.rs in the IDE. This may or may not be related to \
     the current task.</ide_opened_file>",
    "<ide_selection>The user selected the lines 3 to 4 from /home/ada/engine/src/gears.rs:\nfn turn() {}\n\nThis may or may \
     not be related to the current task.</ide_selection>",
    "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>",
    "<new-diagnostics>The following new diagnostic issues were detected:\n\ngears.rs:\n  unused\n</new-diagnostics>",
];

const INTERRUPTED: &str = "[Request interrupted by user]";

pub fn act(home: &Path, deeds: Deeds, added: &mut Added) {
    let transcripts = files_below(home).into_iter().filter(|path| is_transcript(home, path));
    for path in transcripts {
        let Some(mut transcript) = Transcript::open(&path) else { continue };
        match deeds {
            Deeds::Typing => transcript.type_everything(added),
            Deeds::Copying => transcript.copy_everything(added),
            Deeds::Rewriting => transcript.rewrite_everything(added),
        }
    }
}

/// `projects/<project>/<session>.jsonl`, not a sub-agent's.
fn is_transcript(home: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(home).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    below.starts_with("projects")
        && below.components().count() == 3
        && name.ends_with(".jsonl")
        && !name.starts_with("agent-")
}

struct Transcript {
    path: PathBuf,
    session: String,
    /// What is in the file, and what is to be appended to it.
    rows: Vec<Value>,
    new: Vec<Value>,
    envelope: Map<String, Value>,
    parent: Value,
    millis: i64,
}

impl Transcript {
    /// None without a conversation that could continue.
    fn open(path: &Path) -> Option<Transcript> {
        let session = path.file_stem().unwrap().to_string_lossy().into_owned();
        let rows = read_lines(path);
        let own = |row: &&Value| {
            matches!(row["type"].as_str(), Some("user" | "assistant"))
                && row["isSidechain"] != true
                && row["uuid"].is_string()
        };
        let last = rows.iter().rfind(own)?;
        let mut envelope = Map::new();
        for name in ["cwd", "gitBranch", "version", "userType", "entrypoint"] {
            envelope.extend(last.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        let times = rows.iter().filter_map(|row| Time::parse(row["timestamp"].as_str()?));
        let millis = times.max().map_or(1_772_442_000_000, |time| time.micros() / 1_000) + 60_000;
        let parent = last["uuid"].clone();
        Some(Transcript { path: path.to_owned(), session, rows, new: Vec::new(), envelope, parent, millis })
    }

    /// A transcript with nothing in it yet that continues this one.
    fn continued(&self, deed: &str) -> Transcript {
        let session = copy_id(&self.session, deed);
        Transcript {
            path: self.path.with_file_name(format!("{session}.jsonl")),
            session,
            rows: Vec::new(),
            new: Vec::new(),
            envelope: self.envelope.clone(),
            parent: self.parent.clone(),
            millis: self.millis + 3_600_000,
        }
    }

    fn write(&mut self) {
        append_lines(&self.path, &self.new);
        self.rows.append(&mut self.new);
    }

    fn timestamp(&mut self) -> String {
        self.millis += 1_000;
        Time::from_millis(self.millis).rfc3339()
    }

    /// Appends a row of the chain.
    fn row(&mut self, kind: &str, fields: Value) {
        let timestamp = self.timestamp();
        let uuid = late_id(&[&self.session, "row", &timestamp]);
        let mut row = self.envelope.clone();
        row.extend([
            ("type".to_owned(), json!(kind)),
            ("sessionId".to_owned(), json!(self.session)),
            ("isSidechain".to_owned(), json!(false)),
            ("parentUuid".to_owned(), self.parent.clone()),
            ("uuid".to_owned(), json!(uuid)),
            ("timestamp".to_owned(), json!(timestamp)),
        ]);
        row.extend(fields.as_object().unwrap().clone());
        self.parent = json!(uuid);
        self.new.push(Value::Object(row));
    }

    fn queue(&mut self, operation: &str, fields: Value) {
        let timestamp = self.timestamp();
        let mut row = json!({ "type": "queue-operation", "operation": operation, "timestamp": timestamp,
            "sessionId": self.session });
        row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.new.push(row);
    }

    fn says(&mut self, content: Value) {
        self.row("user", json!({ "message": { "role": "user", "content": content } }));
    }

    /// A row of an answer; rows with one id are one answer.
    fn answers(&mut self, id: &str, block: Value, stop: Value) {
        let id = format!("msg_{}", late_id(&[&self.session, id]));
        let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
        self.row(
            "assistant",
            json!({ "requestId": format!("req_{id}"), "message": { "id": id, "type": "message",
                "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "stop_reason": stop,
                "usage": usage } }),
        );
    }

    fn answer(&mut self) {
        let id = format!("answer {}", self.millis);
        self.answers(&id, text("It is turned."), json!("end_turn"));
    }

    fn call(&mut self) -> Value {
        let id = format!("call {}", self.millis);
        let call = format!("toolu_{}", late_id(&[&self.session, &id]));
        self.answers(
            &id,
            json!({ "type": "tool_use", "id": call, "name": "Bash", "input": { "command": "turn --slowly" } }),
            json!("tool_use"),
        );
        json!({ "type": "tool_result", "tool_use_id": call, "content": "turned", "is_error": false })
    }

    /// A prompt and its answer.
    fn turn(&mut self, content: Value, added: &mut Added) {
        self.says(content);
        self.answer();
        added.count(2, 1);
    }

    fn type_everything(&mut self, added: &mut Added) {
        let words = added.words(&self.session, "plain");
        self.turn(json!(words), added);
        self.type_in_an_editor(added);
        self.interrupt(added);
        self.queue_everything(added);
        self.compact(added);
        self.write();
    }

    /// Context before, after and between the words, as parts and in one text.
    fn type_in_an_editor(&mut self, added: &mut Added) {
        let session = self.session.clone();
        for context in CONTEXTS {
            let mut turn = |deed: &'static str, content: &dyn Fn(String) -> Value, added: &mut Added| {
                let content = content(added.words(&session, deed));
                self.turn(content, added);
            };
            turn("context before", &|words| json!([text(context), text(&words)]), added);
            turn("context after", &|words| json!([text(&words), text(context)]), added);
            turn("context around", &|words| json!([text(context), text(&words), text(context)]), added);
            turn("context before, one text", &|words| json!(format!("{context}\n\n{words}")), added);
            turn("context after, one text", &|words| json!(format!("{words}\n{context}")), added);
            turn("context before, one part", &|words| json!([text(&format!("{context}\n{words}"))]), added);
            turn("context and words as bare texts", &|words| json!([context, words]), added);
            turn("a picture between", &|words| json!([text(context), picture(), text(&words)]), added);
            turn("blank parts", &|words| json!([text(context), text(" \n"), text(&words)]), added);
            for deed in ["between", "between, one text"] {
                let [first, last] = [added.words(&session, deed), added.words(&session, deed)];
                let content = match deed {
                    "between" => json!([text(&first), text(context), text(&last)]),
                    _ => json!(format!("{first}\n{context}\n{last}")),
                };
                self.turn(content, added);
            }
        }
        // Words beside a result have no separate record.
        let result = self.call();
        let words = added.words(&session, "beside a result");
        self.says(json!([result, text(&words)]));
        self.answer();
        added.count(3, 0);
        let result = self.call();
        let words = added.words(&session, "beside a result and context");
        self.says(json!([result, text(CONTEXTS[0]), text(&words)]));
        self.answer();
        added.count(3, 0);
    }

    fn interrupt(&mut self, added: &mut Added) {
        let session = self.session.clone();
        // A partial answer, in rows that grow.
        let words = added.words(&session, "answer interrupted");
        self.says(json!(words));
        let id = format!("partial {}", self.millis);
        for part in ["It", "It is", "It is tur"] {
            self.answers(&id, text(part), Value::Null);
        }
        self.says(json!([text(INTERRUPTED)]));
        let words = added.words(&session, "after an interruption");
        self.turn(json!(words), added);
        added.count(2, 2);
        // No answer at all, and a prompt in the row of the interruption.
        let words = added.words(&session, "never answered");
        self.says(json!([text(&words)]));
        let words = added.words(&session, "beside an interruption");
        self.turn(json!([text(INTERRUPTED), text(&words)]), added);
        added.count(1, 1);
        // During a call.
        let words = added.words(&session, "call interrupted");
        self.says(json!(words));
        let result = self.call();
        self.says(json!([result]));
        self.says(json!([text("[Request interrupted by user for tool use]")]));
        let words = added.words(&session, "after a call was interrupted");
        self.turn(json!(words), added);
        added.count(2, 2);
    }

    fn queue_everything(&mut self, added: &mut Added) {
        let session = self.session.clone();
        let content = |words: &str| json!({ "content": words });
        // Taken when the turn was over: a row repeats the words.
        let words = added.words(&session, "queued, then a row");
        self.queue("enqueue", content(&words));
        self.queue("dequeue", json!({}));
        self.turn(json!(words), added);
        // The row first, the operation after it.
        let words = added.words(&session, "queued, a row before the operation");
        self.queue("enqueue", content(&words));
        self.says(json!([text(&words)]));
        self.queue("dequeue", json!({}));
        self.answer();
        added.count(2, 1);
        // With context around them in the row.
        let words = added.words(&session, "queued, then a row with context");
        self.queue("enqueue", content(&words));
        self.queue("dequeue", json!({}));
        self.turn(json!([text(CONTEXTS[0]), text(&words)]), added);
        // Taken up in the middle of a turn, and in no row.
        for operation in ["remove", "dequeue"] {
            let result = self.call();
            let words = added.words(&session, "queued, in no row");
            self.queue("enqueue", content(&words));
            self.says(json!([result]));
            self.queue(operation, json!({}));
            self.answer();
            added.count(3, 0);
        }
        // The words as parts, with context.
        let result = self.call();
        let words = added.words(&session, "queued as parts, in no row");
        self.queue("enqueue", json!({ "content": [text(CONTEXTS[1]), text(&words)] }));
        self.says(json!([result]));
        self.queue("remove", json!({}));
        self.answer();
        added.count(3, 0);
        // Newer clients repeat them in an attachment.
        let result = self.call();
        let words = added.words(&session, "queued, then an attachment");
        self.queue("enqueue", content(&words));
        self.says(json!([result]));
        self.queue("remove", json!({ "content": words, "reason": "absorbed_mid_turn" }));
        let attachment = json!({ "type": "queued_command", "prompt": words, "commandMode": "prompt" });
        self.row("attachment", json!({ "attachment": attachment }));
        self.answer();
        added.count(3, 0);
        // Two that became one prompt.
        let [first, last] = [(); 2].map(|()| added.words(&session, "queued with another"));
        self.queue("enqueue", content(&first));
        self.queue("enqueue", content(&last));
        self.queue("dequeue", json!({}));
        self.queue("dequeue", json!({}));
        self.turn(json!(format!("{first}\n{last}")), added);
        // Taken back, and sent after all: as they were, and with more words.
        for rest in ["", " and slowly"] {
            let words = added.words(&session, "taken back and sent");
            self.queue("enqueue", content(&words));
            self.queue("popAll", content(&words));
            self.turn(json!(format!("{words}{rest}")), added);
        }
        // Never sent.
        let words = added.unsent(&session, "taken back");
        self.queue("enqueue", content(&words));
        self.queue("popAll", content(&words));
        let words = added.unsent(&session, "dropped");
        self.queue("enqueue", content(&words));
        self.queue("remove", json!({ "content": words, "reason": "cancelled" }));
        let words = added.unsent(&session, "left in the queue");
        self.queue("enqueue", content(&words));
    }

    /// The summary repeats what was typed before, as real ones do.
    fn compact(&mut self, added: &mut Added) {
        let session = self.session.clone();
        let before = added.words(&session, "before a compaction");
        self.turn(json!(before), added);
        let last = std::mem::take(&mut self.parent);
        self.row(
            "system",
            json!({ "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": false,
                "level": "info", "logicalParentUuid": last,
                "compactMetadata": { "trigger": "manual", "preTokens": 1_000 } }),
        );
        let summary = format!(
            "This session is being continued from a previous conversation that ran out of context. The conversation is \
             summarized below:\n6. All user messages:\n   - \"{before}\"\n"
        );
        self.row(
            "user",
            json!({ "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
                "message": { "role": "user", "content": summary } }),
        );
        let words = added.words(&session, "after a compaction");
        self.turn(json!(words), added);
    }

    fn copy_everything(&mut self, added: &mut Added) {
        // Records that old clients wrote again count in every session.
        if self.is_old()
            && self.rows.iter().any(|row| row["type"] == "assistant" && row.get("requestId").is_none())
        {
            return;
        }
        let session = self.session.clone();
        let words = added.words(&session, "copied");
        self.turn(json!(words), added);
        let result = self.call();
        let words = added.words(&session, "queued, copied");
        self.queue("enqueue", json!({ "content": words }));
        self.says(json!([result]));
        self.queue("remove", json!({}));
        self.answer();
        added.count(3, 0);
        self.write();
        let rename = |row: &mut Value, session: &str| {
            if row.get("sessionId").is_some() {
                row["sessionId"] = json!(session);
            }
        };
        let mut resumed = self.copy("resume", self.rows.clone(), added, |row, session| rename(row, session));
        let rows = resumed.rows.clone();
        resumed = resumed.copy("resume", rows, added, |row, session| rename(row, session));
        assert!(!resumed.rows.is_empty());
        // State rows are not copied by forks.
        let chain: Vec<Value> = self.rows.iter().filter(|row| row["uuid"].is_string()).cloned().collect();
        let from = self.session.clone();
        self.copy("fork", chain.clone(), added, |row, session| {
            rename(row, session);
            row["forkedFrom"] = json!({ "sessionId": from, "messageUuid": row["uuid"] });
        });
        self.copy("fork with the parent's name", chain.clone(), added, |_, _| {});
        // Clients before 1.0.100 could not fork.
        if self.is_old() {
            return;
        }
        let moment = Time::from_millis(self.millis + 3_600_000).rfc3339();
        self.copy("fork with its own time", chain, added, |row, session| {
            rename(row, session);
            row["timestamp"] = json!(moment);
            let fields = row.as_object_mut().unwrap();
            fields.remove("requestId");
            fields.remove("toolUseResult");
        });
    }

    fn is_old(&self) -> bool {
        let patch = self
            .envelope
            .get("version")
            .and_then(Value::as_str)
            .and_then(|version| version.strip_prefix("1.0."));
        patch.is_some_and(|patch| patch.len() < 3)
    }

    /// Another transcript: copies of these rows, then a new turn.
    fn copy(
        &self,
        deed: &'static str,
        mut rows: Vec<Value>,
        added: &mut Added,
        change: impl Fn(&mut Value, &str),
    ) -> Transcript {
        let mut copy = self.continued(deed);
        let session = copy.session.clone();
        rows.iter_mut().for_each(|row| change(row, &session));
        copy.new = rows;
        let words = added.words(&session, deed);
        copy.turn(json!(words), added);
        copy.write();
        copy
    }

    /// All rows of the file become those of an old client, which then copies them with new ids.
    fn rewrite_everything(&mut self, added: &mut Added) {
        let [first, last] = [(); 2].map(|()| added.words(&self.session, "copied with new ids"));
        self.turn(json!(first), added);
        self.turn(json!([text(&last)]), added);
        self.rows.append(&mut self.new);
        self.envelope.insert("version".into(), json!(OLD));
        for row in self.rows.iter_mut().filter(|row| row.get("version").is_some()) {
            row["version"] = json!(OLD);
        }
        std::fs::remove_file(&self.path).unwrap();
        self.new = std::mem::take(&mut self.rows);
        self.write();
        let moment = Time::from_millis(self.millis + 3_600_000).rfc3339();
        let chain = |row: &&Value| row["uuid"].is_string() && row["isSidechain"] != true;
        let rows: Vec<Value> = self.rows.iter().filter(chain).cloned().collect();
        self.copy("resume with new ids", rows, added, |row, session| {
            let uuid = |old: &Value| old.as_str().map_or(Value::Null, |old| json!(late_id(&[session, old])));
            (row["uuid"], row["parentUuid"]) = (uuid(&row["uuid"]), uuid(&row["parentUuid"]));
            row["sessionId"] = json!(session);
            row["timestamp"] = json!(moment);
            let fields = row.as_object_mut().unwrap();
            fields.remove("requestId");
            fields.remove("toolUseResult");
            if row["type"] == "user"
                && let Some(words) = row["message"]["content"].as_str()
            {
                row["message"]["content"] = json!([text(words)]);
            }
        });
    }
}

fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

fn picture() -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } })
}
