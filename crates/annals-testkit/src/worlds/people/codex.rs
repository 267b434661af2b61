//! What Codex does.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use annals_core::Time;
use serde_json::{Value, json};

use super::{Added, Deeds, append_lines, copy_id, late_id, read_lines};
use crate::files::files_below;

/// What a copy of a thread may leave out, besides `collab_…` events.
const LEFT_OUT: [&str; 5] =
    ["exec_command_end", "patch_apply_end", "mcp_tool_call_end", "web_search_end", "token_count"];

const ENVIRONMENT: &str = "<environment_context>\n  <cwd>/home/ada/engine</cwd>\n</environment_context>";

const PICTURE: &str = "data:image/png;base64,iVBORw0KGgo=";

/// How a file records what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Items without an envelope, and no events.
    Bare,
    /// An item and an event for each message.
    Events,
    /// An item and a completed item for each message.
    Items,
}

pub fn act(home: &Path, deeds: Deeds, added: &mut Added) {
    let mut transcripts: Vec<Transcript> =
        files_below(home).iter().filter_map(|path| Transcript::open(path)).collect();
    // Of a thread with two files, one replaces the other.
    let mut files: HashMap<String, usize> = HashMap::new();
    transcripts.iter().for_each(|transcript| *files.entry(transcript.id.clone()).or_default() += 1);
    transcripts.retain(|transcript| files[&transcript.id] == 1);
    for transcript in &mut transcripts {
        match deeds {
            Deeds::Typing => transcript.type_everything(added),
            Deeds::Copying if transcript.form == Form::Events => transcript.copy_everything(added),
            // Files without events were never copied, nor are those with completed items.
            Deeds::Copying | Deeds::Rewriting => {}
        }
    }
}

struct Transcript {
    path: PathBuf,
    id: String,
    form: Form,
    /// Turns have ids that are the same in copies.
    turns: bool,
    turn: String,
    lines: Vec<Value>,
    new: Vec<Value>,
    ordinal: Option<u64>,
    millis: i64,
}

impl Transcript {
    /// None if this is no transcript that could continue.
    fn open(path: &Path) -> Option<Transcript> {
        let name = path.file_name().unwrap().to_string_lossy();
        if !name.starts_with("rollout-") || !name.ends_with(".jsonl") || name.contains('_') {
            return None;
        }
        let lines = read_lines(path);
        let head = lines.first().filter(|head| head.is_object())?;
        let meta = if head["type"] == "session_meta" { &head["payload"] } else { head };
        let id = meta["id"].as_str().filter(|id| name.contains(id))?.to_owned();
        let inner = |kind: &str| lines.iter().any(|line| line["payload"]["type"] == kind);
        let form = match head["type"] == "session_meta" {
            false => Form::Bare,
            true if inner("item_completed") => Form::Items,
            true => Form::Events,
        };
        let turns = lines.iter().any(|line| {
            let named = line["payload"]["turn_id"].as_str().is_some_and(|turn| turn.len() >= 32);
            line["payload"]["type"] == "task_started" && named
        });
        let times = lines.iter().filter_map(|line| Time::parse(line["timestamp"].as_str()?));
        let millis = times.max().map_or(1_772_442_000_000, |time| time.micros() / 1_000) + 60_000;
        let ordinal = lines.iter().filter_map(|line| line["ordinal"].as_u64()).max();
        let (path, new, turn) = (path.to_owned(), Vec::new(), String::new());
        Some(Transcript { path, id, form, turns, turn, lines, new, ordinal, millis })
    }

    fn write(&mut self) {
        append_lines(&self.path, &self.new);
        self.lines.append(&mut self.new);
    }

    fn line(&mut self, kind: &str, payload: Value) {
        if self.form == Form::Bare {
            self.new.extend((kind == "response_item").then_some(payload));
            return;
        }
        self.millis += 1_000;
        let timestamp = Time::from_millis(self.millis).rfc3339();
        let mut line = json!({ "timestamp": timestamp, "type": kind, "payload": payload });
        if let Some(ordinal) = &mut self.ordinal {
            *ordinal += 1;
            line["ordinal"] = json!(*ordinal);
        }
        self.new.push(line);
    }

    fn begin(&mut self) {
        self.turn = late_id(&[&self.id, "turn", &self.millis.to_string(), &self.new.len().to_string()]);
        if self.turns || self.form == Form::Items {
            self.line("event_msg", json!({ "type": "task_started", "turn_id": self.turn }));
        }
    }

    fn complete(&mut self, kind: &str, text_kind: &str, words: &str) {
        let item = json!({ "type": kind, "id": late_id(&[&self.turn, kind, words]),
            "content": [{ "type": text_kind, "text": words }] });
        self.line(
            "event_msg",
            json!({ "type": "item_completed", "thread_id": self.id, "turn_id": self.turn, "item": item }),
        );
    }

    /// A prompt with these parts, whose words are known to the client.
    fn says(&mut self, parts: &[&str], words: &str) {
        let part = |part: &&str| match *part {
            PICTURE => json!({ "type": "input_image", "image_url": PICTURE }),
            text => json!({ "type": "input_text", "text": text }),
        };
        let content: Vec<Value> = parts.iter().map(part).collect();
        let mut item = json!({ "type": "message", "role": "user", "content": content });
        if self.form == Form::Items {
            let kind = |part: &&str| if part.starts_with(ENVIRONMENT) { "environment" } else { "user.text" };
            let kinds: Vec<&str> = parts.iter().map(kind).collect();
            item["internal_chat_message_metadata_passthrough"] =
                json!({ "turn_id": self.turn, "content_item_kinds": kinds });
        }
        self.line("response_item", item);
        match self.form {
            Form::Bare => {}
            Form::Events => {
                self.line("event_msg", json!({ "type": "user_message", "message": words, "images": [] }));
            }
            Form::Items => self.complete("UserMessage", "text", words),
        }
    }

    fn answers(&mut self, words: &str) {
        match self.form {
            Form::Bare => {}
            Form::Events => self.line("event_msg", json!({ "type": "agent_message", "message": words })),
            Form::Items => self.complete("AgentMessage", "Text", words),
        }
        let content = json!([{ "type": "output_text", "text": words }]);
        self.line("response_item", json!({ "type": "message", "role": "assistant", "content": content }));
    }

    fn call(&mut self) -> Value {
        let id =
            format!("call_{}", late_id(&[&self.id, &self.millis.to_string(), &self.new.len().to_string()]));
        let arguments = json!({ "command": ["turn", "--slowly"] }).to_string();
        self.line(
            "response_item",
            json!({ "type": "function_call", "name": "shell", "arguments": arguments, "call_id": id }),
        );
        json!({ "type": "function_call_output", "call_id": id, "output": "turned" })
    }

    fn ended(&mut self, call: &Value) {
        if self.form == Form::Events {
            let id = &call["call_id"];
            self.line(
                "event_msg",
                json!({ "type": "exec_command_end", "call_id": id, "turn_id": self.turn, "stdout": "turned",
                    "aggregated_output": "turned", "exit_code": 0 }),
            );
        }
    }

    fn count_tokens(&mut self) {
        self.line("event_msg", json!({ "type": "token_count", "info": null, "rate_limits": null }));
    }

    fn turn(&mut self, parts: &[&str], words: &str, added: &mut Added) {
        self.begin();
        self.says(parts, words);
        let answer = format!("It is turned, turn {}.", self.new.len());
        self.answers(&answer);
        added.count(2, 1);
    }

    fn type_everything(&mut self, added: &mut Added) {
        let id = self.id.clone();
        let words = added.words(&id, "plain");
        self.turn(&[&words], &words, added);
        let words = added.words(&id, "below an editor's context");
        let text = format!(
            "# Context from my IDE setup:\n\n## Active file: src/gears.rs\n\n## Open tabs:\n- gears.rs: src/gears.rs\n\n\
             ## My request for Codex:\n{words}\n"
        );
        self.turn(&[&text], &text, added);
        let words = added.words(&id, "context before");
        self.turn(&[ENVIRONMENT, &words], &words, added);
        let words = added.words(&id, "context after");
        self.turn(&[&words, ENVIRONMENT], &words, added);
        let words = added.words(&id, "context around");
        self.turn(&[ENVIRONMENT, &words, ENVIRONMENT], &words, added);
        let [first, last] = [(); 2].map(|()| added.words(&id, "between"));
        self.turn(&[&first, ENVIRONMENT, &last], &format!("{first}{last}"), added);
        let words = added.words(&id, "a picture before");
        self.turn(&["<image name=[Image #1]>", PICTURE, "</image>", &words], &words, added);
        let words = added.words(&id, "a picture after");
        self.turn(&[&words, PICTURE], &words, added);
        if self.form != Form::Bare {
            let words = added.words(&id, "context before, one text");
            self.turn(&[&format!("{ENVIRONMENT}\n{words}")], &words, added);
        }
        self.type_while_busy(added);
        self.interrupt(added);
        self.compact(added);
        self.write();
    }

    /// What is typed during a turn is taken up in the middle of it.
    fn type_while_busy(&mut self, added: &mut Added) {
        let id = self.id.clone();
        let words = added.words(&id, "before what was typed while busy");
        self.begin();
        self.says(&[&words], &words);
        let output = self.call();
        let words = added.words(&id, "typed while busy");
        self.says(&[&words], &words);
        self.line("response_item", output);
        self.answers("Turned while you typed.");
        added.count(3, 2);
    }

    fn interrupt(&mut self, added: &mut Added) {
        let id = self.id.clone();
        let words = added.words(&id, "answer interrupted");
        self.begin();
        self.says(&[&words], &words);
        self.answers("It is tur");
        let aborted = "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>";
        let content = json!([{ "type": "input_text", "text": aborted }]);
        self.line("response_item", json!({ "type": "message", "role": "user", "content": content }));
        self.line(
            "event_msg",
            json!({ "type": "turn_aborted", "turn_id": self.turn, "reason": "interrupted" }),
        );
        added.count(2, 1);
        let words = added.words(&id, "never answered");
        self.begin();
        self.says(&[&words], &words);
        self.line(
            "event_msg",
            json!({ "type": "turn_aborted", "turn_id": self.turn, "reason": "interrupted" }),
        );
        added.count(1, 1);
        let words = added.words(&id, "after an interruption");
        self.turn(&[&words], &words, added);
    }

    /// What replaces the history repeats the prompts.
    fn compact(&mut self, added: &mut Added) {
        let id = self.id.clone();
        let words = added.words(&id, "before a compaction");
        self.turn(&[&words], &words, added);
        if self.form != Form::Bare {
            let content = json!([{ "type": "input_text", "text": words }]);
            let history = json!([{ "type": "message", "role": "user", "content": content }]);
            let payload =
                json!({ "message": format!("They asked: {words}"), "replacement_history": history });
            self.line("compacted", payload);
            self.line("event_msg", json!({ "type": "context_compacted" }));
        }
        let words = added.words(&id, "after a compaction");
        self.turn(&[&words], &words, added);
    }

    fn copy_everything(&mut self, added: &mut Added) {
        let id = self.id.clone();
        let words = added.words(&id, "copied");
        self.begin();
        self.says(&[&words], &words);
        let output = self.call();
        self.ended(&output.clone());
        self.line("response_item", output);
        self.count_tokens();
        self.answers("It is turned and copied.");
        added.count(2, 1);
        let words = added.words(&id, "copied, after a call");
        self.turn(&[&words], &words, added);
        self.count_tokens();
        self.write();
        let spawned =
            |id: &str| json!({ "subagent": { "thread_spawn": { "parent_thread_id": id, "depth": 1 } } });
        let fork = self.copy("fork", json!("cli"), |_| true, added);
        let again = fork.copy("fork of a fork", json!("cli"), |_| true, added);
        assert!(again.lines.len() > self.lines.len());
        let whole = |line: &Value| {
            let kind = line["payload"]["type"].as_str().unwrap_or_default();
            line["type"] != "event_msg" || !(LEFT_OUT.contains(&kind) || kind.starts_with("collab_"))
        };
        let child = self.copy("spawn", spawned(&id), whole, added);
        child.copy("spawn of a spawn", spawned(&child.id), whole, added);
    }

    /// Another thread: rewritten copies of this one's lines, then a new turn.
    fn copy(
        &self,
        deed: &'static str,
        source: Value,
        kept: impl Fn(&Value) -> bool,
        added: &mut Added,
    ) -> Transcript {
        let id = copy_id(&self.id, deed);
        let name = format!("rollout-2026-11-16T10-00-00-{id}.jsonl");
        let mut copy = Transcript {
            path: self.path.with_file_name(name),
            id: id.clone(),
            form: self.form,
            turns: self.turns,
            turn: String::new(),
            lines: Vec::new(),
            new: Vec::new(),
            ordinal: None,
            millis: self.millis + 3_600_000,
        };
        let timestamp = Time::from_millis(copy.millis).rfc3339();
        let version = self.lines[0]["payload"]["cli_version"].clone();
        copy.line(
            "session_meta",
            json!({ "id": id, "forked_from_id": self.id, "timestamp": timestamp, "cwd": "/home/ada/engine",
                "originator": "codex_cli_rs", "cli_version": version, "source": source }),
        );
        let timestamp = copy.new[0]["timestamp"].clone();
        for line in self.lines.iter().filter(|line| kept(line)) {
            let mut line = line.clone();
            line["timestamp"] = timestamp.clone();
            copy.new.push(line);
        }
        // Copying takes a moment; what follows is later.
        copy.millis += 60_000;
        let words = added.words(&id, deed);
        copy.turn(&[&words], &words, added);
        copy.write();
        copy
    }
}
