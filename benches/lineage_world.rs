//! A made-up repository whose every line has a known author: written through both clients' formats, then shuffled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Value, json};

/// How large a world is.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    pub sessions: usize,
    /// Edits of each session.
    pub edits: usize,
}

/// Who wrote a line, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Session and call; nobody's when a person wrote it.
    pub call: Option<(String, String)>,
    /// A person changed what the call had written.
    pub tweaked: bool,
    /// It was broken over several lines.
    pub broken: bool,
}

#[derive(Debug, Clone)]
struct Line {
    text: String,
    author: Author,
}

/// The repository at the end, and whose each line is.
pub struct World {
    pub folder: PathBuf,
    pub files: BTreeMap<String, Vec<Author>>,
}

/// Lines that were traced, against what is true.
#[derive(Debug, Default, Clone, Copy)]
pub struct Score {
    pub graded: [Count; 3],
    /// Lines of sessions that nobody changed.
    pub unmodified: Count,
    /// Lines that people wrote; right are those that no session was given.
    pub human: Count,
    /// Lines that people changed a little.
    pub tweaked: Count,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Count {
    pub right: usize,
    pub all: usize,
}

impl Count {
    fn add(&mut self, right: bool) {
        self.all += 1;
        self.right += usize::from(right);
    }

    pub fn share(self) -> f64 {
        if self.all == 0 { 1.0 } else { self.right as f64 / self.all as f64 }
    }
}

pub const GRADES: [&str; 3] = ["exact", "moved", "changed"];

impl Score {
    /// Adds one file: `blame` is the answer of `annals blame --json`.
    pub fn add(&mut self, truth: &[Author], blame: &Value) {
        for span in blame["spans"].as_array().into_iter().flatten() {
            let origin = span["origin"].as_u64().map(|origin| &blame["origins"][origin as usize]);
            let grade = span["grade"].as_str().unwrap_or_default();
            let given = origin.filter(|_| grade != "read").map(|origin| {
                let text = |name: &str| origin[name].as_str().unwrap_or_default().to_owned();
                (text("session_id"), text("call_id"))
            });
            let (start, end) = (span["start"].as_u64().unwrap_or(1), span["end"].as_u64().unwrap_or(0));
            for line in start..=end {
                let Some(author) = truth.get(line as usize - 1) else { continue };
                let right = given.is_some() && author.call == given;
                if let Some(at) = GRADES.iter().position(|known| *known == grade) {
                    self.graded[at].add(right);
                }
                let whole = grade == "exact" || grade == "moved";
                match &author.call {
                    None => self.human.add(given.is_none()),
                    Some(_) if author.tweaked => self.tweaked.add(right),
                    // Broken lines are no longer the edit's: finding them is welcome, and not counted.
                    Some(_) if author.broken => {}
                    Some(_) => self.unmodified.add(right && whole),
                }
            }
        }
    }
}

/// Writes the clients' homes (`codex`, `claude`) and the repository (`repo`) into a folder.
pub fn write_world(folder: &Path, plan: &Plan) -> io::Result<World> {
    let repository = folder.join("repo");
    fs::create_dir_all(&repository)?;
    let repository = repository.canonicalize()?;
    let mut world = Making {
        random: Random(plan.seed | 1),
        repository: repository.clone(),
        files: BTreeMap::new(),
        minute: 0,
        number: 0,
    };
    for session in 0..plan.sessions {
        let mut transcript = Transcript::new(session, &repository);
        for _ in 0..plan.edits {
            world.agent_edit(&mut transcript);
        }
        transcript.write(folder)?;
        for _ in 0..plan.edits / 2 {
            world.human_edit();
        }
    }
    world.shuffle();
    let mut files = BTreeMap::new();
    for (path, lines) in &world.files {
        let target = repository.join(path);
        fs::create_dir_all(target.parent().unwrap_or(&repository))?;
        let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
        fs::write(&target, text)?;
        files.insert(path.clone(), lines.iter().map(|line| line.author.clone()).collect());
    }
    Ok(World { folder: repository, files })
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }
}

const NOUNS: &[&str] = &[
    "gear", "wheel", "engine", "valve", "boiler", "lever", "spring", "piston", "gauge", "dial", "chain",
    "drum", "ratchet", "pulley", "shaft", "bearing", "governor", "crank", "flywheel", "cylinder",
];
const VERBS: &[&str] = &[
    "turn", "count", "wind", "measure", "open", "close", "lift", "drop", "couple", "release", "balance",
    "align", "load", "store", "reset", "check",
];
/// Lines that stand in every program, whoever writes it.
const COMMON: &[&str] = &[
    "}",
    "",
    "{",
    "    }",
    "    else {",
    "    return None;",
    "    return true;",
    "use std::fmt;",
    "});",
    "    Ok(())",
    "#[test]",
    "    let mut total = 0;",
    "    break;",
    "import os",
    "        continue;",
];

struct Making {
    random: Random,
    repository: PathBuf,
    files: BTreeMap<String, Vec<Line>>,
    minute: i64,
    number: usize,
}

impl Making {
    /// One to forty lines as programs have them: mostly of their own, some that are everywhere.
    fn code(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::with_capacity(count);
        for at in 0..count {
            if self.random.chance(22) && at > 0 {
                lines.push(self.random.pick(COMMON).to_owned());
                continue;
            }
            let (noun, other) = (self.random.pick(NOUNS), self.random.pick(NOUNS));
            let (verb, number) = (self.random.pick(VERBS), self.random.below(900));
            let third = self.random.pick(NOUNS);
            let line = match self.random.below(9) {
                0 => format!("fn {verb}_{noun}_{other}({third}: u32) -> u32 {{"),
                1 => format!("    let {noun}_{other} = {verb}({third}, {number});"),
                2 => format!("    if {noun}.{verb}() > {number} && {other}.is_{third}() {{"),
                3 => {
                    format!("    // The {noun} has to {verb} before the {other} does, or the {third} breaks.")
                }
                4 => format!("    self.{noun}.{verb}_{other}({number});"),
                5 => format!("    {verb}_{noun}({other}, {third}, {number}, self.{noun}_{third});"),
                6 => format!("    assert_eq!({noun}_{verb}({number}), {other}::{third});"),
                7 => format!("    for {noun} in {other}.{verb}s() {{"),
                _ => format!("    {noun}.insert(\"{other}_{third}\", {number});"),
            };
            lines.push(line);
        }
        lines
    }

    fn agent_edit(&mut self, transcript: &mut Transcript) {
        self.minute += 1;
        self.number += 1;
        let call = format!("call_{:05}", self.number);
        let author =
            Author { call: Some((transcript.session.clone(), call.clone())), tweaked: false, broken: false };
        let new = |lines: &[String]| -> Vec<Line> {
            lines.iter().map(|text| Line { text: text.clone(), author: author.clone() }).collect()
        };
        if self.files.len() < 3 || self.random.chance(12) {
            let folder = self.random.pick(&["src", "src/parts", "tests", "tools"]);
            let (noun, verb) = (self.random.pick(NOUNS), self.random.pick(VERBS));
            let path = format!("{folder}/{noun}_{verb}_{}.rs", self.number);
            let count = 15 + self.random.below(70);
            let lines = self.code(count);
            transcript.create(&self.repository.join(&path), &lines, &call, self.minute);
            self.files.insert(path, new(&lines));
            return;
        }
        let at = self.random.below(self.files.len());
        let Some(path) = self.files.keys().nth(at).cloned() else { return };
        let length = self.files[&path].len();
        let start = self.random.below(length);
        let removed = self.random.below(6).min(length - start);
        let count = 1 + self.random.below(12);
        let added = self.code(count);
        let before: Vec<String> = self.files[&path].iter().map(|line| line.text.clone()).collect();
        if before[start..start + removed] == added[..] {
            return;
        }
        let change = Change { start, removed, added: &added, before: &before };
        let fails = self.random.chance(8);
        transcript.change(&self.repository.join(&path), &change, &call, self.minute, fails, &mut self.random);
        if fails {
            return;
        }
        if let Some(lines) = self.files.get_mut(&path) {
            lines.splice(start..start + removed, new(&added));
        }
    }

    fn some_file(&mut self) -> Option<String> {
        let at = self.random.below(self.files.len());
        self.files.keys().nth(at).cloned()
    }

    /// A person writes, deletes, or changes a word.
    fn human_edit(&mut self) {
        self.minute += 1;
        let Some(path) = self.some_file() else { return };
        let count = 1 + self.random.below(7);
        let written = self.code(count);
        let what = self.random.below(10);
        let length = self.files[&path].len();
        let start = self.random.below(length);
        let (noun, step) = (self.random.pick(NOUNS), 1 + self.random.below(3));
        let Some(lines) = self.files.get_mut(&path) else { return };
        match what {
            0..=5 => {
                let human = Author { call: None, tweaked: false, broken: false };
                let written = written.into_iter().map(|text| Line { text, author: human.clone() });
                lines.splice(start..start, written);
            }
            6 => {
                let end = (start + step).min(lines.len());
                lines.drain(start..end);
                if lines.is_empty() {
                    self.files.remove(&path);
                }
            }
            _ => {
                let line = &mut lines[start];
                if line.text.len() > 30 && line.author.call.is_some() {
                    let cut = line.text.rfind(|letter: char| letter.is_ascii_digit() || letter == '_');
                    if let Some(cut) = cut.filter(|cut| *cut > 12) {
                        line.text.insert_str(cut, &format!("_{noun}"));
                        line.author.tweaked = true;
                    }
                }
            }
        }
    }

    /// What people do to code that stays the same: rename, move, format; a squash or rebase changes no line.
    fn shuffle(&mut self) {
        let paths: Vec<String> = self.files.keys().cloned().collect();
        for path in &paths {
            let Some(mut lines) = self.files.remove(path) else { continue };
            let mut target = path.clone();
            if self.random.chance(20) {
                target = format!("moved/{}", path.replace('/', "_"));
            }
            if self.random.chance(30) && lines.len() > 30 {
                let count = 8 + self.random.below(10);
                let start = self.random.below(lines.len() - count);
                let block: Vec<Line> = lines.drain(start..start + count).collect();
                let place = self.random.below(lines.len());
                lines.splice(place..place, block);
            }
            if self.random.chance(40) {
                lines = self.formatted(lines);
            }
            self.files.insert(target, lines);
        }
        // A block of one file goes into another.
        for _ in 0..paths.len() / 4 {
            let (Some(from), Some(to)) = (self.some_file(), self.some_file()) else { return };
            if from == to || self.files[&from].len() < 25 {
                continue;
            }
            let start = self.random.below(self.files[&from].len() - 12);
            let Some(lines) = self.files.get_mut(&from) else { return };
            let block: Vec<Line> = lines.drain(start..start + 12).collect();
            let place = self.random.below(self.files[&to].len());
            if let Some(lines) = self.files.get_mut(&to) {
                lines.splice(place..place, block);
            }
        }
    }

    /// Other indentation everywhere, and some long calls over several lines.
    fn formatted(&mut self, lines: Vec<Line>) -> Vec<Line> {
        let mut out = Vec::new();
        for line in lines {
            let depth = line.text.len() - line.text.trim_start().len();
            let inner = line.text.trim_start();
            let space = "\t".repeat(depth / 4);
            let call = inner.strip_suffix(");").and_then(|inner| inner.split_once('('));
            match call.filter(|(_, inside)| inside.matches(", ").count() >= 2 && !inside.contains(['(', '"']))
            {
                Some((name, inside)) if self.random.chance(60) => {
                    let author = Author { broken: true, ..line.author };
                    let mut push = |text: String| out.push(Line { text, author: author.clone() });
                    push(format!("{space}{name}("));
                    inside.split(", ").for_each(|part| push(format!("{space}\t{part},")));
                    push(format!("{space});"));
                }
                _ => out.push(Line { text: format!("{space}{inner}"), author: line.author }),
            }
        }
        out
    }
}

/// One replaced block of a file.
struct Change<'c> {
    start: usize,
    removed: usize,
    added: &'c [String],
    before: &'c [String],
}

impl Change<'_> {
    fn taken(&self) -> &[String] {
        &self.before[self.start..self.start + self.removed]
    }

    fn context(&self) -> (&[String], &[String]) {
        let end = self.start + self.removed;
        (
            &self.before[self.start.saturating_sub(3)..self.start],
            &self.before[end..(end + 3).min(self.before.len())],
        )
    }

    /// Lines of a hunk, with their signs.
    fn hunk(&self) -> Vec<String> {
        let (above, below) = self.context();
        let signed = |sign: char, lines: &[String]| -> Vec<String> {
            lines.iter().map(|line| format!("{sign}{line}")).collect()
        };
        [signed(' ', above), signed('-', self.taken()), signed('+', self.added), signed(' ', below)].concat()
    }

    /// First line and count, before and after.
    fn numbers(&self) -> [usize; 4] {
        let (above, below) = self.context();
        let around = above.len() + below.len();
        let first = self.start - above.len() + 1;
        [first, around + self.removed, first, around + self.added.len()]
    }
}

/// How a session's client writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    CodexPlain,
    CodexRecords,
    CodexScripts,
    Claude,
    ClaudeAgent,
}

struct Transcript {
    form: Form,
    session: String,
    folder: PathBuf,
    lines: Vec<Value>,
    number: usize,
}

impl Transcript {
    fn new(number: usize, folder: &Path) -> Transcript {
        let form =
            [Form::CodexPlain, Form::Claude, Form::CodexRecords, Form::ClaudeAgent, Form::CodexScripts]
                [number % 5];
        let session = match form {
            Form::ClaudeAgent => format!("agent-a{number:06}"),
            _ => format!("0199f000-0000-7000-8000-{number:012}"),
        };
        let mut made = Transcript { form, session, folder: folder.to_owned(), lines: Vec::new(), number };
        let cwd = folder.to_str().unwrap_or_default().to_owned();
        if !made.is_claude() {
            let meta = json!({"id": made.session, "timestamp": moment(0), "cwd": cwd, "originator": "codex_exec",
                "cli_version": "0.150.0", "source": "exec"});
            made.codex("session_meta", meta, 0);
            made.codex("turn_context", json!({"turn_id": "t", "cwd": cwd, "model": "gpt-made-up"}), 0);
            let text = format!("Do step {number}.");
            let content = json!([{"type": "input_text", "text": text}]);
            made.codex("response_item", json!({"type": "message", "role": "user", "content": content}), 0);
            made.codex("event_msg", json!({"type": "user_message", "message": text}), 0);
        } else {
            made.claude("user", json!({"role": "user", "content": format!("Do step {number}.")}), None, 0);
        }
        made
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

    fn create(&mut self, path: &Path, lines: &[String], call: &str, minute: i64) {
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

    fn change(
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
        let whole =
            [&change.before[..change.start], change.added, &change.before[change.start + change.removed..]];
        // A sub-agent's results do not say what changed: only edits with their context can be told from it.
        if self.form == Form::Claude && random.chance(15) {
            let text: String = whole.concat().iter().map(|line| format!("{line}\n")).collect();
            let detail = json!({"type": "update", "filePath": path_text, "content": text, "structuredPatch": structured});
            let input = json!({"file_path": path_text, "content": text});
            self.tool(call, "Write", input, if fails { failed() } else { Ok(detail) }, minute);
            return;
        }
        let old_text = [above, change.taken(), below].concat().join("\n");
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
            let asked =
                json!({"type": "custom_tool_call", "name": "exec", "call_id": outer, "input": script});
            self.codex("response_item", asked, minute);
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
        let asked =
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": call, "input": patch});
        self.codex("response_item", asked, minute);
        if self.form == Form::CodexRecords && !fails {
            let event = json!({"type": "patch_apply_end", "call_id": call, "success": true, "stdout": "Success.",
                "stderr": "", "changes": changes});
            self.codex("event_msg", event, minute);
        }
        let answer = json!({"type": "custom_tool_call_output", "call_id": call, "output": output});
        self.codex("response_item", answer, minute);
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        let path = match self.form {
            Form::Claude => folder.join(format!("claude/projects/-repo/{}.jsonl", self.session)),
            Form::ClaudeAgent => folder.join(format!(
                "claude/projects/-repo/{}/subagents/{}.jsonl",
                self.parent(),
                self.session
            )),
            _ => folder.join(format!(
                "codex/sessions/2026/02/01/rollout-2026-02-01T00-00-00-{}.jsonl",
                self.session
            )),
        };
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, self.lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    }
}

fn moment(minute: i64) -> String {
    let (day, hour) = (1 + minute / 1440 % 28, minute / 60 % 24);
    let month = 2 + minute / 1440 / 28;
    format!("2026-{month:02}-{day:02}T{hour:02}:{:02}:00.000Z", minute % 60)
}
