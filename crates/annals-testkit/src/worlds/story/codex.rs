//! Acts of the story as Codex CLI writes them.

use super::{Act, Path, Stage, Value, fs, io, json, lines_of, save, sides, tokens};

const MODELS: [&str; 2] = ["gpt-5.3-codex", "gpt-5.4"];

struct Script<'s> {
    stage: &'s mut Stage,
    lines: Vec<Value>,
    /// Input, from cache, output, reasoning.
    spent: [u64; 4],
    turn: u64,
    model: &'static str,
}

pub fn write(home: &Path, stage: &mut Stage, acts: &[Act]) -> io::Result<()> {
    let model = MODELS[stage.random.below(2) as usize];
    let started = stage.time();
    let mut script = Script { stage, lines: Vec::new(), spent: [0; 4], turn: 0, model };
    script.begin(&started);
    script.play(acts);
    let (lines, stage) = (lines_of(&script.lines), script.stage);
    let day = started[..10].replace('-', "/");
    let name = format!("rollout-{}-{}.jsonl", started[..19].replace(':', "-"), stage.id);
    save(&home.join("sessions").join(day).join(name), &lines, stage.now)?;
    let index = home.join("session_index.jsonl");
    let known = fs::read_to_string(&index).unwrap_or_default();
    let title = json!({ "id": stage.id, "thread_name": stage.title, "updated_at": stage.time() });
    save(&index, &format!("{known}{title}\n"), stage.now)
}

impl Script<'_> {
    fn line(&mut self, kind: &str, payload: &Value) {
        let time = self.stage.time();
        self.lines.push(json!({ "timestamp": time, "type": kind, "payload": payload }));
    }

    fn item(&mut self, payload: &Value) {
        self.line("response_item", payload);
    }

    fn event(&mut self, payload: &Value) {
        self.line("event_msg", payload);
    }

    fn begin(&mut self, started: &str) {
        let stage = &self.stage;
        let meta = json!({ "id": stage.id, "timestamp": started, "cwd": stage.cwd, "originator": "codex_cli_rs",
            "cli_version": "0.135.0", "source": "cli", "model_provider": "openai",
            "git": { "commit_hash": "4f0c2b9a", "branch": stage.branch } });
        self.line("session_meta", &meta);
    }

    fn play(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Prompt(text) => {
                    self.stage.later(240);
                    self.turn += 1;
                    let turn = format!("turn-{}", self.turn);
                    self.event(&json!({ "type": "task_started", "turn_id": turn }));
                    self.line(
                        "turn_context",
                        &json!({ "turn_id": turn, "model": self.model, "effort": "medium", "approval_policy": "on-request",
                            "sandbox_policy": { "type": "workspace-write" } }),
                    );
                    self.item(&json!({ "type": "message", "role": "user",
                        "content": [{ "type": "input_text", "text": text }] }));
                    self.event(&json!({ "type": "user_message", "message": text, "images": [] }));
                }
                Act::Think(text) => {
                    self.stage.later(12);
                    self.event(&json!({ "type": "agent_reasoning", "text": text }));
                    self.item(
                        &json!({ "type": "reasoning", "content": null, "encrypted_content": "b3BhcXVl",
                        "summary": [{ "type": "summary_text", "text": text }] }),
                    );
                }
                Act::Answer(text) => {
                    self.stage.later(14);
                    self.event(&json!({ "type": "agent_message", "message": text, "phase": "final_answer" }));
                    self.item(&json!({ "type": "message", "role": "assistant", "phase": "final_answer",
                        "content": [{ "type": "output_text", "text": text }] }));
                    self.count();
                    let turn = format!("turn-{}", self.turn);
                    self.event(
                        &json!({ "type": "task_complete", "turn_id": turn, "last_agent_message": text }),
                    );
                }
                Act::Run { command, output, exit } => {
                    let input = json!({ "cmd": command, "workdir": self.stage.cwd });
                    let output = format!(
                        "Chunk ID: 1a\nWall time: 0.{} seconds\nProcess exited with code {exit}\nOutput:\n{output}\n",
                        self.stage.random.below(9)
                    );
                    self.call("exec_command", &input, &output);
                }
                // This client reads files with commands.
                Act::Read { file, text } => {
                    let input =
                        json!({ "cmd": format!("sed -n '1,200p' {file}"), "workdir": self.stage.cwd });
                    let output =
                        format!("Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n{text}\n");
                    self.call("exec_command", &input, &output);
                }
                Act::Edit { file, lines } => self.edit(file, lines),
                Act::Plan(tasks) => {
                    let plan: Vec<Value> =
                        tasks.iter().map(|(state, text)| json!({ "step": text, "status": state })).collect();
                    self.call("update_plan", &json!({ "plan": plan }), "Plan updated");
                }
                Act::Agent { acts, .. } => self.play(acts),
            }
        }
    }

    fn call(&mut self, name: &str, input: &Value, output: &str) {
        let id = format!("call_{}", self.stage.random.letters(20));
        self.stage.later(10);
        self.item(
            &json!({ "type": "function_call", "name": name, "arguments": input.to_string(), "call_id": id }),
        );
        self.stage.later(6);
        self.item(&json!({ "type": "function_call_output", "call_id": id, "output": output }));
        self.count();
    }

    fn edit(&mut self, file: &str, lines: &[String]) {
        let id = format!("call_{}", self.stage.random.letters(20));
        let (before, after) = sides(lines);
        let hunk: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (kind, body) = match before.is_empty() {
            true => ("Add", hunk.clone()),
            false => ("Update", format!("@@\n{hunk}")),
        };
        let patch = format!("*** Begin Patch\n*** {kind} File: {file}\n{body}*** End Patch");
        self.stage.later(12);
        self.item(
            &json!({ "type": "custom_tool_call", "status": "completed", "call_id": id, "name": "apply_patch",
            "input": patch }),
        );
        let change = match before.is_empty() {
            true => json!({ "type": "add", "content": after }),
            false => {
                let (old, new) = (before.lines().count(), after.lines().count());
                let diff = format!("@@ -1,{old} +1,{new} @@\n{hunk}");
                json!({ "type": "update", "unified_diff": diff, "move_path": null })
            }
        };
        let mut changes = json!({});
        changes[self.stage.file(file)] = change;
        let letter = if before.is_empty() { "A" } else { "M" };
        self.event(
            &json!({ "type": "patch_apply_end", "call_id": id, "turn_id": format!("turn-{}", self.turn),
            "stdout": "Success.", "stderr": "", "success": true, "changes": changes }),
        );
        let output = format!(
            "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated the following files:\n{letter} {file}\n"
        );
        self.item(&json!({ "type": "custom_tool_call_output", "call_id": id, "output": output }));
        self.count();
    }

    fn count(&mut self) {
        let [fresh, read, _, output] = tokens(self.stage, self.turn + self.lines.len() as u64 / 12);
        let last = [fresh + read, read, output, output / 3];
        self.spent.iter_mut().zip(last).for_each(|(sum, count)| *sum += count);
        let usage = |of: [u64; 4]| {
            json!({ "input_tokens": of[0], "cached_input_tokens": of[1], "output_tokens": of[2],
                "reasoning_output_tokens": of[3], "total_tokens": of[0] + of[2] })
        };
        let info = json!({ "total_token_usage": usage(self.spent), "last_token_usage": usage(last),
            "model_context_window": 272_000 });
        self.event(&json!({ "type": "token_count", "info": info }));
    }
}
