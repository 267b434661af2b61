//! Acts of the story as Claude Code writes them.

use super::{Act, Path, Stage, Value, io, json, lines_of, save, sides, tokens};

const MODELS: [&str; 3] = ["claude-opus-4-8", "claude-sonnet-4-6", "claude-opus-4-8"];

/// A transcript, and those of its sub-agents.
struct Script<'s> {
    stage: &'s mut Stage,
    agent: Option<String>,
    model: &'static str,
    lines: Vec<Value>,
    parent: Value,
    turn: u64,
    /// File names and texts of its sidecar files.
    sidecars: Vec<(String, String)>,
}

pub fn write(home: &Path, stage: &mut Stage, acts: &[Act]) -> io::Result<()> {
    let model = MODELS[stage.random.below(3) as usize];
    let mut script = Script {
        stage,
        agent: None,
        model,
        lines: Vec::new(),
        parent: Value::Null,
        turn: 0,
        sidecars: Vec::new(),
    };
    script.play(acts);
    let (title, id) = (script.stage.title.clone(), script.stage.id.clone());
    script.lines.push(json!({ "type": "ai-title", "aiTitle": title, "sessionId": id }));
    let folder = home.join("projects").join(script.stage.cwd.replace('/', "-"));
    save(&folder.join(format!("{id}.jsonl")), &lines_of(&script.lines), script.stage.now)?;
    for (name, text) in &script.sidecars {
        save(&folder.join(&id).join(name), text, script.stage.now)?;
    }
    Ok(())
}

impl Script<'_> {
    fn play(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Prompt(text) => {
                    self.stage.later(240);
                    let more = json!({ "message": { "role": "user", "content": text }, "promptSource": "typed",
                        "origin": { "kind": "human" } });
                    self.line("user", &more);
                }
                Act::Think(text) => {
                    self.answer(
                        &json!({ "type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl" }),
                        false,
                    );
                }
                Act::Answer(text) => self.answer(&json!({ "type": "text", "text": text }), true),
                Act::Run { command, output, exit } => self.run(command, output, *exit),
                Act::Read { file, text } => {
                    let (path, count) = (self.stage.file(file), text.lines().count());
                    let numbered: String =
                        text.lines().zip(1..).map(|(line, number)| format!("{number:6}→{line}\n")).collect();
                    let result = json!({ "type": "text", "file": { "filePath": path, "content": text,
                        "numLines": count, "startLine": 1, "totalLines": count } });
                    self.call("Read", &json!({ "file_path": path }), &json!(numbered), &result, false);
                }
                Act::Edit { file, lines } => self.edit(file, lines),
                Act::Plan(tasks) => {
                    let task = |(state, text): &(String, String)| json!({ "content": text, "status": state, "activeForm": text });
                    let todos: Vec<Value> = tasks.iter().map(task).collect();
                    let input = json!({ "todos": todos });
                    let result = json!({ "oldTodos": [], "newTodos": todos });
                    self.call(
                        "TodoWrite",
                        &input,
                        &json!("Todos have been modified successfully."),
                        &result,
                        false,
                    );
                }
                Act::Agent { title, task, acts, answer } => self.delegate(title, task, acts, answer),
            }
        }
    }

    fn line(&mut self, kind: &str, more: &Value) {
        let uuid = self.stage.random.uuid4();
        let stage = &self.stage;
        let mut line = json!({ "parentUuid": self.parent, "isSidechain": self.agent.is_some(), "userType": "external",
            "cwd": stage.cwd, "sessionId": stage.id, "version": "2.1.197", "gitBranch": stage.branch, "entrypoint": "cli",
            "type": kind, "uuid": uuid, "timestamp": stage.time() });
        if let Some(agent) = &self.agent {
            line["agentId"] = json!(agent);
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        self.parent = json!(uuid);
        self.lines.push(line);
    }

    fn answer(&mut self, block: &Value, last: bool) {
        self.stage.later(14);
        self.turn += 1;
        let [fresh, read, written, output] = tokens(self.stage, self.turn);
        let (message, request) = (self.stage.random.letters(22), self.stage.random.letters(22));
        let usage = json!({ "input_tokens": fresh / 40, "cache_creation_input_tokens": written, "cache_read_input_tokens": read,
            "output_tokens": output, "service_tier": "standard",
            "cache_creation": { "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0 } });
        let stop = if last { "end_turn" } else { "tool_use" };
        let message = json!({ "id": format!("msg_{message}"), "type": "message", "role": "assistant", "model": self.model,
            "content": [block], "stop_reason": stop, "stop_sequence": null, "usage": usage });
        self.line("assistant", &json!({ "message": message, "requestId": format!("req_{request}") }));
    }

    /// A call and its result.
    fn call(&mut self, name: &str, input: &Value, content: &Value, result: &Value, failed: bool) -> String {
        let id = format!("toolu_{}", self.stage.random.letters(20));
        self.answer(&json!({ "type": "tool_use", "id": id, "name": name, "input": input }), false);
        self.stage.later(9);
        let mut block = json!({ "tool_use_id": id, "type": "tool_result", "content": content });
        if failed {
            block["is_error"] = json!(true);
        }
        let more = json!({ "message": { "role": "user", "content": [block] }, "toolUseResult": result });
        self.line("user", &more);
        id
    }

    fn run(&mut self, command: &str, output: &str, exit: i64) {
        let input = json!({ "command": command, "description": "Run it" });
        if exit == 0 {
            let result = json!({ "stdout": output, "stderr": "", "interrupted": false, "isImage": false });
            self.call("Bash", &input, &json!(output), &result, false);
        } else {
            let text = format!("Exit code {exit}\n{output}");
            self.call("Bash", &input, &json!(text), &json!(format!("Error: {text}")), true);
        }
    }

    fn edit(&mut self, file: &str, lines: &[String]) {
        let path = self.stage.file(file);
        let (before, after) = sides(lines);
        if before.is_empty() {
            let result =
                json!({ "type": "create", "filePath": path, "content": after, "structuredPatch": [] });
            let content = format!("File created successfully at: {path}");
            self.call(
                "Write",
                &json!({ "file_path": path, "content": after }),
                &json!(content),
                &result,
                false,
            );
            return;
        }
        for (place, lines) in lines.split(|line| line.starts_with("@@")).enumerate() {
            let (before, after) = sides(lines);
            let first = 1 + 8 * place;
            let patch = json!([{ "oldStart": first, "oldLines": before.lines().count(), "newStart": first,
                "newLines": after.lines().count(), "lines": lines }]);
            let result = json!({ "filePath": path, "oldString": before, "newString": after, "originalFile": before,
                "structuredPatch": patch, "userModified": false, "replaceAll": false });
            let input =
                json!({ "file_path": path, "old_string": before, "new_string": after, "replace_all": false });
            self.call("Edit", &input, &json!(format!("The file {path} has been updated.")), &result, false);
        }
    }

    /// A sub-agent has a separate transcript, in a directory of the session.
    fn delegate(&mut self, title: &str, task: &str, acts: &[Act], answer: &str) {
        let agent = format!("a{:016x}", self.stage.random.next());
        let mut inner = Script {
            stage: &mut *self.stage,
            agent: Some(agent.clone()),
            model: "claude-haiku-4-5",
            lines: Vec::new(),
            parent: Value::Null,
            turn: 0,
            sidecars: Vec::new(),
        };
        inner.line("user", &json!({ "message": { "role": "user", "content": task } }));
        inner.play(acts);
        inner.play(&[Act::Answer(answer.to_owned())]);
        let lines = lines_of(&inner.lines);
        let input = json!({ "description": title, "prompt": task, "subagent_type": "finder" });
        let content = json!([{ "type": "text", "text": answer }]);
        let result = json!({ "status": "completed", "prompt": task, "agentId": agent, "agentType": "finder",
            "content": content, "totalDurationMs": 41_000, "totalTokens": 18_204, "totalToolUseCount": acts.len() });
        let call = self.call("Agent", &input, &content, &result, false);
        let meta = json!({ "agentType": "finder", "description": title, "toolUseId": call, "spawnDepth": 1 });
        self.sidecars.push((format!("subagents/agent-{agent}.jsonl"), lines));
        self.sidecars.push((format!("subagents/agent-{agent}.meta.json"), meta.to_string()));
    }
}
