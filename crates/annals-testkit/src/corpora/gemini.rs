//! Generates homes of Gemini CLI from a seed: chats as documents that were rewritten whole, and as lines, for benches.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::generator::{
    DAY, DAYS, FIRST_DAY, PROJECTS, PROSE, Plan, Project, Random, Written, sizes, timestamp,
};
use super::opencode::plain;

/// Documents of older clients are never longer: they are rewritten at each turn.
const LONGEST_DOCUMENT: u64 = 4 << 20;

/// A chat that is being written.
struct Chat<'a> {
    project: &'a Project,
    random: Random,
    now: u64,
    messages: Vec<String>,
    bytes: u64,
}

/// Writes the chats of a plan below `home`: the first third as documents, the others as lines.
pub fn write_gemini_home(home: &Path, plan: &Plan) -> io::Result<Written> {
    let mut random = Random(plan.seed ^ 0x6e61);
    let projects: Vec<Project> =
        PROJECTS.iter().map(|name| Project::new(random.next(), &format!("/home/pat/code/{name}"))).collect();
    let mut written = Written { files: plan.files, bytes: 0, lines: 0 };
    let names: serde_json::Map<String, Value> =
        PROJECTS.iter().map(|name| (format!("/home/pat/code/{name}"), json!(name))).collect();
    fs::create_dir_all(home.join(".gemini"))?;
    fs::write(home.join(".gemini/projects.json"), json!({ "projects": names }).to_string())?;
    for (index, target) in sizes(plan).into_iter().enumerate() {
        let now = FIRST_DAY + DAYS * DAY * index as u64 / plan.files as u64 + random.below(DAY);
        let place = random.below(projects.len() as u64) as usize;
        let is_document = index * 3 < plan.files;
        let target = if is_document { target.min(LONGEST_DOCUMENT) } else { target };
        let project = &projects[place];
        let mut chat = Chat { project, random: Random(random.next()), now, messages: Vec::new(), bytes: 0 };
        chat.turns(target);
        let session = random.uuid4();
        let header = json!({"sessionId": session, "projectHash": blake3::hash(project.cwd.as_bytes()).to_hex().as_str(),
            "startTime": format!("{}Z", timestamp(now)), "lastUpdated": format!("{}Z", timestamp(chat.now)), "kind": "main"});
        let folder = home.join(".gemini/tmp").join(PROJECTS[place]).join("chats");
        fs::create_dir_all(&folder)?;
        let name = format!("session-{}-{}", &timestamp(now)[..16].replace(':', "-"), &session[..8]);
        let (ending, text) = if is_document {
            let header = header.to_string();
            (
                "json",
                format!("{},\"messages\":[{}]}}", &header[..header.len() - 1], chat.messages.join(",\n")),
            )
        } else {
            ("jsonl", format!("{header}\n{}\n", chat.messages.join("\n")))
        };
        fs::write(folder.join(format!("{name}-{index}.{ending}")), &text)?;
        written.bytes += text.len() as u64;
        written.lines += chat.messages.len() as u64;
    }
    Ok(written)
}

/// Appends about `bytes` of turns to a chat of lines, and returns how many bytes they are.
pub fn append_messages(file: &Path, seed: u64, bytes: u64) -> io::Result<u64> {
    let project = Project::new(seed, "/home/pat/code/orchard");
    let now = FIRST_DAY + (DAYS + 2) * DAY + (seed % 1_000) * 60_000;
    let mut chat = Chat { project: &project, random: Random(seed), now, messages: Vec::new(), bytes: 0 };
    chat.turns(bytes);
    let text = format!("{}\n", chat.messages.join("\n"));
    io::Write::write_all(&mut fs::OpenOptions::new().append(true).open(file)?, text.as_bytes())?;
    Ok(text.len() as u64)
}

impl Chat<'_> {
    fn turns(&mut self, target: u64) {
        while self.bytes < target {
            let text = self.text(200, 3);
            self.add("user", json!({"content": [{"text": text}]}));
            for step in 0..=self.random.below(6) {
                let text = self.text(120, 3);
                let thoughts =
                    json!([{"subject": "Look", "description": self.text(80, 2), "timestamp": self.at()}]);
                let length = self.random.sized(600, 5);
                let output = plain(&self.project.output(&mut self.random, length));
                let id = format!("run_shell_command_{}_{step}", self.now);
                let response = json!({"functionResponse": {"id": id, "name": "run_shell_command", "response": {"output": output}}});
                let call = json!({"id": id, "name": "run_shell_command", "args": {"command": format!("sed -n 1,{length}p src/main.rs")},
                    "result": [response], "status": "success", "timestamp": self.at(), "resultDisplay": output,
                    "displayName": "Shell", "description": "look"});
                let tokens = json!({"input": 2574, "output": 62, "cached": 0, "thoughts": 64, "tool": 0, "total": 2700});
                self.add(
                    "gemini",
                    json!({"content": text, "thoughts": thoughts, "tokens": tokens,
                    "model": "gemini-2.5-pro", "toolCalls": [call]}),
                );
            }
        }
    }

    fn at(&self) -> String {
        format!("{}Z", timestamp(self.now))
    }

    fn add(&mut self, kind: &str, fields: Value) {
        let id = self.random.uuid4();
        let mut message = json!({"id": id, "timestamp": self.at(), "type": kind});
        if let (Value::Object(all), Value::Object(fields)) = (&mut message, fields) {
            all.extend(fields);
        }
        let line = message.to_string();
        self.bytes += line.len() as u64 + 1;
        self.now += 1 + self.random.below(20_000);
        self.messages.push(line);
    }

    fn text(&mut self, low: u64, doublings: u64) -> String {
        let length = self.random.sized(low, doublings);
        plain(&self.project.text(&mut self.random, PROSE, length))
    }
}
