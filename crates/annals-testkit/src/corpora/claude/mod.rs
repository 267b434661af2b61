//! Generates Claude Code homes from a seed, with the shapes, sizes and texture of real ones, for benches and tests.

use std::fmt::{Display, Write as _};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, rc::Rc};

mod scripts;
mod tools;

use super::generator::{
    DAY, DAYS, FIRST_DAY, PROJECTS, PROSE, Plan, Project, Random, Written, play, put, sizes, timestamp,
};
use scripts::{
    ANSWER, ATTACHED, BLOB, BOUNDARY, CLOSING, HEAD, IDENTITY, OPENING, PLACE, PROMPT, QUEUED, REMINDER,
    REQUEST, RESULT, SNAPSHOT, SUMMARY,
};
use tools::lines_of;

const VERSIONS: [&str; 3] = ["2.0.76", "2.1.197", "2.1.325"];
const MODELS: [&str; 3] = ["claude-sonnet-4-5-20250929", "claude-opus-4-8", "claude-opus-5-5"];
const AGENT_MODEL: &str = "claude-haiku-4-5-20251001";
const LONGEST_ROW: u64 = 8 << 20;

/// A tool call: its row, and the content of its result row.
struct Call {
    source: String,
    block: String,
    structured: String,
}

/// A finished sub-agent: its name, the client's metadata about it, and its transcript.
struct Agent {
    name: String,
    meta: String,
    session: Session,
}

/// A transcript being written: its rows so far, its clock, and what its rows repeat.
#[derive(Default)]
struct Session {
    project: Rc<Project>,
    instructions: Rc<[String; 2]>, // the client ships them, so all sessions begin with the same ones
    random: Random,
    out: String,
    lines: u64,
    target: u64,
    form: usize,
    images: bool,
    tracks: bool,
    started: u64,
    now: u64,
    agents_done: u64,
    id: String,
    agent: String,
    parent: String,
    uuid: String,
    prompt: String,
    first_prompt: String,
    message: String,
    request: String,
    reference: String,
    turn: u64,
    spent: u64,
    usage: [String; 2], // of the answer that has started, and of the finished one
    unsent: Vec<(&'static str, String)>, // who says what in the messages that the next request adds
    agents_to_start: u64,
    agents: Vec<Agent>,
    history: String,
    tracked: String,
    results: Vec<(String, String)>,
    copies: Vec<(String, String)>,
}

fn plain(escaped: &str) -> io::Result<String> {
    serde_json::from_str(&format!("\"{escaped}\"")).map_err(io::Error::other)
}

fn folder_name(cwd: &str) -> String {
    cwd.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

impl Session {
    fn play(&mut self, scripts: &str, values: &[(&str, &dyn Display)]) {
        for line in scripts.replace("\n    ", "").lines().skip(1) {
            let (kind, first) = (line.as_bytes()[0], usize::from(line.as_bytes()[1] - b'0'));
            if self.form < first || (kind == b'm' && !self.agent.is_empty()) {
                continue;
            }
            let (body, more) = line[3..].split_once('^').unwrap_or((&line[3..], ""));
            self.uuid = self.random.uuid4();
            let parts = match (kind, self.form) {
                (b'c', 0) => [HEAD, PLACE, ",", body, IDENTITY, more, "}\n"],
                (b'c', _) => [HEAD, body, IDENTITY, more, ",", PLACE, "}\n"],
                _ => ["{", body, more, "}\n", "", "", ""],
            };
            parts.iter().for_each(|part| self.expand(part, values));
            if kind == b'c' {
                self.parent.clone_from(&self.uuid);
            }
            self.lines += 1;
            self.now += 1 + self.random.below(300);
        }
    }

    fn expand(&mut self, template: &str, values: &[(&str, &dyn Display)]) {
        let (mut shown, mut rest) = (true, template);
        while let Some(at) = rest.find(['~', '!', '$']) {
            if shown {
                self.out += &rest[..at];
            }
            let (mark, after) = (rest.as_bytes()[at], &rest[at + 1..]);
            let letters = after.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(after.len());
            rest = after;
            match mark {
                b'~' => shown = !shown || self.form > 0,
                b'!' => shown = !shown || self.form > 1,
                _ => {
                    rest = &after[letters..];
                    if shown {
                        self.put_value(&after[..letters], values);
                    }
                }
            }
        }
        if shown {
            self.out += rest;
        }
    }

    fn put_value(&mut self, name: &str, values: &[(&str, &dyn Display)]) {
        let out = &mut self.out;
        match name {
            "parent" if self.parent.is_empty() => *out += "null",
            "parent" => put!(out, "\"{}\"", self.parent),
            "leaf" => *out += &self.parent,
            "uuid" => *out += &self.uuid,
            "side" => put!(out, "{}", !self.agent.is_empty()),
            "agent" if self.agent.is_empty() => {}
            "agent" => put!(out, "\"agentId\":\"{}\",", self.agent),
            "session" => *out += &self.id,
            "cwd" => *out += &self.project.cwd,
            "version" => *out += VERSIONS[self.form],
            "model" => *out += if self.agent.is_empty() { MODELS[self.form] } else { AGENT_MODEL },
            "time" => *out += &timestamp(self.now),
            "prompt" => *out += &self.prompt,
            "asked" => *out += &self.first_prompt,
            "message" => *out += &self.message,
            "request" => *out += &self.request,
            "reference" => *out += &self.reference,
            "tracked" => *out += &self.tracked,
            "turn" => put!(out, "{}", self.turn),
            "started" => put!(out, "{}", self.started),
            "spent" => put!(out, "{}", self.spent),
            "took" => put!(out, "{}", self.now - self.started),
            "number" => put!(out, "{}", self.random.below(2_000)),
            "fresh" => *out += &self.random.uuid4(),
            "hash" => *out += &self.random.hash(),
            "shape" => *out += &self.id.replace('-', "").repeat(2),
            _ => values.iter().filter(|one| one.0 == name).for_each(|one| put!(out, "{}", one.1)),
        }
    }

    fn room(&self) -> u64 {
        let beside: usize = self.agents.iter().map(|agent| agent.session.out.len()).sum();
        self.target.saturating_sub((self.out.len() + beside) as u64)
    }

    fn prose(&mut self, low: u64, doublings: u64) -> String {
        let length = self.random.sized(low, doublings);
        self.project.text(&mut self.random, PROSE, length)
    }

    fn print(&mut self, length: u64) -> String {
        let project = Rc::clone(&self.project);
        project.output(&mut self.random, length)
    }

    fn write_prompt(&mut self) {
        let (text, project) = (self.prose(30, 6), Rc::clone(&self.project));
        (self.prompt, self.turn) = (self.random.uuid4(), self.turn + 1);
        if self.random.below(6) == 0 {
            play!(self, [QUEUED], text: text);
        }
        if self.agent.is_empty() || self.first_prompt.is_empty() {
            self.first_prompt.clone_from(&text);
        }
        let mut content = format!("\"{text}\"");
        if self.images && self.random.below(3) > 0 {
            let length = self.random.sized(40_000, 4).min(self.room() / 4) / 4 * 4;
            let data = self.random.base64(length);
            let source =
                format!(r#"{{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo{data}"}}"#);
            let image = format!(r#"{{"type":"image","source":{source}}}"#);
            content = format!(r#"[{{"type":"text","text":"{text}"}},{image}]"#);
        }
        play!(self, [PROMPT], content: content);
        self.send("user", &format!(r#"{{"type":"text","text":"{text}"}}"#));
        if self.agent.is_empty() {
            let (now, cwd, id) = (self.now, &project.cwd, &self.id);
            put!(self.history, r#"{{"display":"{text}","pastedContents":{{}},"timestamp":{now},"#);
            put!(self.history, "\"project\":\"{cwd}\",\"sessionId\":\"{id}\"}}\n");
        }
        if self.random.below(6) == 0 {
            let length = self.random.sized(500, 5).min(self.room() / 4);
            let (path, text) = (project.text(&mut self.random, "src/%w/%n.rs", 1), self.print(length));
            play!(self, [ATTACHED], path: path, lines: lines_of(&text).len(), text: text);
        }
        if self.random.below(4) == 0 {
            play!(self, [SNAPSHOT], text: self.instructions[0].clone());
        }
    }

    /// The latest version keeps a second copy of every message, written with the first request that contains it.
    fn send(&mut self, role: &'static str, block: &str) {
        match self.unsent.last_mut().filter(|message| message.0 == role) {
            _ if self.form < 2 => {}
            Some((_, blocks)) => put!(blocks, ",{block}"),
            None => self.unsent.push((role, block.to_owned())),
        }
    }

    /// Starts an answer of the model: its ids and its usage.
    fn begin_answer(&mut self) {
        let mut tail = String::new();
        for (role, blocks) in std::mem::take(&mut self.unsent) {
            let sent = self.random.hash();
            put!(tail, "{}\"{sent}\"", if tail.is_empty() { "" } else { "," });
            play!(self, [BLOB], sent: sent, role: role, blocks: blocks);
        }
        (self.message, self.request) = (self.random.letters(22), self.random.letters(22));
        self.reference = self.random.uuid4();
        play!(self, [REQUEST], tail: tail);
        self.now += self.random.sized(200, 6);
        let (input, fresh, hour) =
            (self.random.below(12), self.random.sized(50, 6), self.random.below(2) * 900);
        let (read, output) = (12_000 + self.spent % 150_000, 40 + self.random.below(900));
        self.spent += fresh + hour + output;
        let (form, created) = (self.form, fresh + hour);
        self.usage = [1 + self.random.below(8), output].map(|output| {
            let mut usage = format!(r#"{{"input_tokens":{input},"cache_creation_input_tokens":{created},"#);
            put!(
                usage,
                r#""cache_read_input_tokens":{read},"cache_creation":{{"ephemeral_5m_input_tokens":{fresh},"#
            );
            put!(usage, r#""ephemeral_1h_input_tokens":{hour}}},"output_tokens":{output},"#);
            if form > 0 {
                usage += r#""server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"#;
            }
            usage += r#""service_tier":"standard","inference_geo":"not_available""#;
            usage += ["", r#","iterations":[],"speed":"standard""#][form.min(1)];
            usage + "}"
        });
    }

    /// One block of the answer: old versions report usage and stop reason only with the last one.
    fn write_block(&mut self, block: &str, index: u64, last: bool, stop: &str) {
        let has_usage = last || self.form > 0;
        let (usage, stop) =
            (self.usage[usize::from(has_usage)].clone(), if has_usage { stop } else { "null" });
        play!(self, [ANSWER], block: block, index: index, usage: usage, stop: stop);
        self.send("assistant", block);
    }

    fn step(&mut self) {
        self.begin_answer();
        let mut index = 0;
        if self.random.below(2) == 0 {
            let (length, hidden) = (self.random.sized(400, 3) / 4 * 4, self.form > 1);
            let thought = if hidden && self.random.below(2) == 0 { String::new() } else { self.prose(80, 4) };
            let secret = self.random.base64(length);
            let block = format!(r#"{{"type":"thinking","thinking":"{thought}","signature":"{secret}"}}"#);
            self.write_block(&block, index, false, r#""tool_use""#);
            index += 1;
        }
        if self.random.below(3) == 0 {
            let block = format!(r#"{{"type":"text","text":"{}"}}"#, self.prose(60, 4));
            self.write_block(&block, index, false, r#""tool_use""#);
            index += 1;
        }
        let count =
            if self.agents_to_start > 0 { 1 } else { [1, 1, 1, 1, 2, 3][self.random.below(6) as usize] };
        let calls: Vec<Call> = (1..=count).map(|number| self.call(index + number, number == count)).collect();
        for call in calls {
            if self.form > 0 {
                self.parent.clone_from(&call.source);
            }
            self.now = self.now.max(self.agents_done) + self.random.sized(20, 8);
            play!(self, [RESULT], block: call.block, structured: call.structured, source: call.source);
            self.send("user", &call.block);
        }
        if self.random.below(40) == 0 {
            play!(self, [REMINDER]);
        }
    }

    fn open(&mut self) {
        let instructions = Rc::clone(&self.instructions);
        let text = &instructions[usize::from(self.target < 300_000)];
        play!(self, [OPENING, SNAPSHOT], text: text, listing: instructions[1]);
    }

    /// At least one turn, and as many as the size requires.
    fn turns(&mut self) {
        let mut more = true;
        while more {
            let mut steps = self.random.sized(1, 5);
            self.write_prompt();
            while steps > 0 {
                self.step();
                steps = if self.room() < 4_000 { 0 } else { steps - 1 };
            }
            self.begin_answer();
            let (text, title) = (self.prose(150, 4), self.prose(10, 1));
            let block = format!(r#"{{"type":"text","text":"{text}"}}"#);
            self.write_block(&block, 0, true, r#""end_turn""#);
            if self.agent.is_empty() {
                let index = self.lines;
                play!(self, [CLOSING], title: title, index: index);
            }
            self.now += self.random.sized(4_000, 8);
            more = self.room() > 8_000;
            if more && self.random.below(25) == 0 {
                let before = std::mem::take(&mut self.parent);
                play!(self, [BOUNDARY], before: before, text: self.prose(2_000, 2));
            }
        }
    }

    /// Writes the transcript and the files it refers to.
    fn save(&self, path: &Path, written: &mut Written) -> io::Result<()> {
        let results = path.with_extension("").join("tool-results");
        fs::File::options().create(true).append(true).open(path)?.write_all(self.out.as_bytes())?;
        let ended = UNIX_EPOCH + Duration::from_millis(self.now);
        fs::File::options().append(true).open(path)?.set_modified(ended)?;
        for (index, (name, text)) in self.results.iter().enumerate() {
            if index == 0 {
                fs::create_dir_all(&results)?;
            }
            fs::write(results.join(name), plain(text)?)?;
        }
        written.files += 1;
        written.bytes += self.out.len() as u64;
        written.lines += self.lines;
        Ok(())
    }

    /// Old versions store sub-agents next to their session, newer ones in a directory of it.
    fn save_agents(&self, path: &Path, written: &mut Written) -> io::Result<()> {
        let inside = path.with_extension("").join("subagents");
        let folder: PathBuf = if self.form > 0 { inside } else { path.with_file_name("") };
        for agent in &self.agents {
            fs::create_dir_all(&folder)?;
            agent.session.save(&folder.join(format!("agent-{}.jsonl", agent.name)), written)?;
            if self.form > 0 {
                fs::write(folder.join(format!("agent-{}.meta.json", agent.name)), &agent.meta)?;
            }
        }
        Ok(())
    }
}

/// Writes a home, the directory called `.claude`, with its transcripts and all that belongs to them.
pub fn write_claude_home(home: &Path, plan: &Plan) -> io::Result<Written> {
    let mut random = Random(plan.seed ^ 0xc1a0de);
    let project = |name: &&str| Rc::new(Project::new(random.next(), &format!("/home/pat/code/{name}")));
    let projects: Vec<Rc<Project>> = PROJECTS.iter().map(project).collect();
    let shipped = [24_000, 5_000].map(|length| projects[0].text(&mut Random(plan.seed), PROSE, length));
    let (instructions, mut written) = (Rc::new(shipped), Written { files: 0, bytes: 0, lines: 0 });
    // One session in ten has two sub-agents, which are transcripts too.
    let sessions = (plan.files * 5 / 6).max(1);
    let (mut history, mut other) = (String::new(), random.uuid4());
    fs::create_dir_all(home.join("todos"))?;
    for (index, target) in sizes(&Plan { files: sessions, ..*plan }).into_iter().enumerate() {
        let now = FIRST_DAY + DAYS * DAY * index as u64 / sessions as u64 + random.below(DAY);
        let mut session = Session {
            project: Rc::clone(random.pick(&projects)),
            instructions: Rc::clone(&instructions),
            random: Random(random.next()),
            id: random.uuid4(),
            target,
            form: index * 3 / sessions,
            images: index % 28 == 7,
            tracks: index % 7 == 2,
            agents_to_start: if index % 10 == 3 { 2 } else { 0 },
            started: now,
            now,
            ..Session::default()
        };
        if session.form == 0 && index % 4 == 1 {
            play!(session, [SUMMARY], title: session.prose(20, 1), other: other);
        }
        session.open();
        session.turns();
        let folder = home.join("projects").join(folder_name(&session.project.cwd));
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.jsonl", session.id));
        session.save(&path, &mut written)?;
        session.save_agents(&path, &mut written)?;
        let copies = home.join("file-history").join(&session.id);
        for (name, text) in &session.copies {
            fs::create_dir_all(&copies)?;
            fs::write(copies.join(name), plain(text)?)?;
        }
        if session.form == 0 {
            let item = r#"[{"content":"Fix it","status":"pending","activeForm":"Fixing it"}]"#;
            let name = format!("{0}-agent-{0}.json", session.id);
            fs::write(home.join("todos").join(name), if index % 3 == 0 { item } else { "[]" })?;
        }
        history += &session.history;
        other = session.parent;
    }
    fs::write(home.join("history.jsonl"), history)?;
    fs::write(home.join("settings.json"), "{\"model\":\"opus\",\"cleanupPeriodDays\":3650}\n")?;
    Ok(written)
}

/// Appends about `bytes` of complete turns that continue the chain, and returns the number of bytes. A torn last line
/// is ended first, as the client does when it resumes.
pub fn append_rows(file: &Path, seed: u64, bytes: u64) -> io::Result<u64> {
    let (mut source, mut data) = (fs::File::open(file)?, Vec::new());
    let length = source.metadata()?.len();
    source.seek(io::SeekFrom::Start(length.saturating_sub(LONGEST_ROW)))?;
    source.read_to_end(&mut data)?;
    let whole = memchr::memrchr(b'\n', &data).map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&data[..whole]);
    let last = |key: &str| {
        let found = text.rfind(key).and_then(|at| text[at + key.len()..].split('"').next());
        found.map(str::to_owned).ok_or_else(|| io::Error::other("not a generated transcript"))
    };
    let (id, cwd, version) = (last(r#""sessionId":""#)?, last(r#""cwd":""#)?, last(r#""version":""#)?);
    let is_agent = text.contains(r#""isSidechain":true,"#);
    // Timestamps sort chronologically, so the last time is found by bisection.
    let (latest, mut now, mut later) = (last(r#""timestamp":""#)?, FIRST_DAY, FIRST_DAY + 700 * DAY);
    while now < later {
        let middle = now.midpoint(later);
        if timestamp(middle) < latest { now = middle + 1 } else { later = middle }
    }
    let unique = id.bytes().fold(length, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut random = Random(seed ^ unique.rotate_left(32));
    let project = Rc::new(Project::new(random.next(), &cwd));
    let shipped = [24_000, 5_000].map(|length| project.text(&mut random, PROSE, length));
    let mut session = Session {
        project,
        instructions: Rc::new(shipped),
        random,
        id,
        agent: if is_agent { last(r#""agentId":""#)? } else { String::new() },
        form: VERSIONS.iter().position(|one| *one == version).unwrap_or_default(),
        parent: last(r#","uuid":""#)?,
        started: now,
        now: now + 3_600_000,
        target: bytes,
        out: String::from(if whole == data.len() { "" } else { "\n" }),
        ..Session::default()
    };
    session.turns();
    session.save(file, &mut Written { files: 0, bytes: 0, lines: 0 })?;
    Ok(session.out.len() as u64)
}
