//! Generates Codex CLI homes from a seed, with the shapes, sizes and texture of real ones, for benches and tests.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, path::Path, rc::Rc};

use super::generator::{DAY, DAYS, FIRST_DAY, PROJECTS, PROSE, Project, Random, play, put, sizes, timestamp};
pub use super::generator::{Plan, Written};

const LOCAL_TIME_AHEAD: u64 = 9 * 3_600_000; // Asia/Tokyo, a zone without summer time
const KEPT_END: u64 = 32 << 10; // the client keeps this much of both ends of a long output in its item

// Scripts of lines. Each starts with its kind: `M` as is, `P` the same in paginated files only, `E` event, `L` event
// in legacy files only, `I` completed item in paginated files only, `R` response item with metadata after `^`.
// Indented lines continue it, `$name` is a value, and `~` encloses what legacy files lack.
const META: &str = r#"
M "session_meta","payload":{~"session_id":"$thread",~"id":"$thread","timestamp":"$startedZ","cwd":"$cwd",
    "originator":"codex-tui","cli_version":"$version","source":"cli",~"thread_source":"user",~
    "model_provider":"openai","base_instructions":{"text":"$text"},~"history_mode":"paginated",
    "context_window":{"window_id":"$thread"},~"git":{"commit_hash":"$fresh","branch":"main"}"#;
const PROMPT: &str = r#"
E "type":"task_started","turn_id":"$turn",~"root_turn_id":"$turn",~"started_at":$seconds
M "turn_context","payload":{"turn_id":"$turn","cwd":"$cwd","current_date":"$today","timezone":"Asia/Tokyo",
    "approval_policy":"never","sandbox_policy":{"type":"workspace-write"},"effort":"medium",
    "model":"$model","collaboration_mode":{"mode":"default","settings":{"model":"$model"}},"summary":"auto"
R "type":"message",~"id":"msg_$fresh",~"role":"user","content":[$image{"type":"input_text","text":"$text"}]
    ^~,"create_time":$seconds.25,"content_item_kinds":[$kind"user.text"]~
I "type":"UserMessage","id":"$own","content":[$local{"type":"text","text":"$text","text_elements":[]}]
L "type":"user_message","message":"$text","images":[$pasted],"local_images":[],"text_elements":[]"#;
const REASONING: &str = r#"
I "type":"Reasoning","id":"rs_$id","summary_text":["$text"],"raw_content":[]
L "type":"agent_reasoning","text":"$text"
R "type":"reasoning",~"id":"rs_$id",~"summary":[{"type":"summary_text","text":"$text"}],"content":null,
    "encrypted_content":"gAAAAAB$secret""#;
const ANSWER: &str = r#"
I "type":"AgentMessage","id":"msg_$id","content":[{"type":"Text","text":"$text"}],"phase":"$phase"
L "type":"agent_message","message":"$text","phase":"$phase","memory_citation":null
R "type":"message",~"status":"completed","id":"msg_$id",~"role":"assistant","content":[
    {"type":"output_text","text":"$text"}],"phase":"$phase"^~,"content_item_kinds":["unknown"]~"#;
const COMMAND: &str = r#"
R "type":"function_call",~"status":"completed","id":"fc_$fresh",~"name":"exec_command",
    "arguments":"{\"cmd\":\"sed -n \\\"1,240p\\\" $path\",\"workdir\":\"$cwd\"}","call_id":"call_$call""#;
const RESULT: &str = r#"
I "type":"CommandExecution","id":"call_$call","process_id":"$ordinal",
    "command":["/bin/bash","-lc","sed -n \"1,240p\" $path"],"cwd":"file://$cwd",
    "parsed_cmd":[{"type":"read","cmd":"sed -n \"1,240p\" $path","name":"$path","path":"$path"}],
    "source":"unified_exec_startup","status":"$status","aggregated_output":"$front$back","exit_code":$code,
    "duration":{"secs":0,"nanos":$ordinal}
R "type":"function_call_output",~"id":"fco_$fresh",~"call_id":"call_$call",
    "output":"Wall time: 0.4 seconds\nProcess exited with code $code\nOutput:\n$front$middle$back""#;
const RUN: &str = r#"
R "type":"function_call",~"status":"completed","id":"fc_$fresh",~"name":"exec_command",
    "arguments":"$arguments","call_id":"call_$call""#;
const RAN: &str = r#"
R "type":"function_call_output",~"id":"fco_$fresh",~"call_id":"call_$call",
    "output":"Wall time: 0.4 seconds\nProcess exited with code 0\nOutput:\n$printed""#;
const PATCH: &str = r#"
R "type":"custom_tool_call",~"id":"ctc_$fresh",~"status":"completed","call_id":"call_$call",
    "name":"apply_patch","input":"*** Begin Patch\n*** Update File: $path\n@@\n$hunk*** End Patch""#;
const PATCHED: &str = r#"
I "type":"FileChange","id":"call_$call","changes":{"$cwd/$path":{"type":"update","unified_diff":
    "@@ -1,2 +1,9 @@\n$hunk","move_path":null}},"status":"completed","stdout":"M $path\n","stderr":""
L "type":"patch_apply_end","call_id":"call_$call","turn_id":"$turn","stdout":"M $path\n","stderr":"",
    "success":true,"changes":{"$cwd/$path":{"type":"update","unified_diff":"@@ -1,2 +1,9 @@\n$hunk"}}
R "type":"custom_tool_call_output",~"id":"ctco_$fresh",~"call_id":"call_$call",
    "output":"Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM $path\n""#;
const RECORD: &str = r#"
P "token_usage_record","payload":{"thread_id":"$thread","turn_id":"$turn","session_id":"$thread",
    "root_turn_id":"$turn","response_id":"resp_$fresh","usage":$last,"turn_token_usage":$spent,
    "thread_token_usage":$total"#;
const COUNT: &str = r#"
E "type":"token_count","info":{"total_token_usage":$total,"last_token_usage":$last,
    "model_context_window":258400},"rate_limits":{"limit_id":"codex","primary":{"used_percent":12.5,
    "window_minutes":300,"resets_at":$seconds},"secondary":null,"credits":null,"plan_type":"plus"}"#;
const COMPLETE: &str = r#"
E "type":"task_complete","turn_id":"$turn","last_agent_message":"$text","started_at":$started,
    "completed_at":$seconds"#;

const ITEM: [&str; 2] = [
    r#""event_msg","payload":{"type":"item_completed","thread_id":"$thread","turn_id":"$turn","item":{"#,
    r#"},"started_at_ms":$now,"completed_at_ms":$now}"#,
];
const RESPONSE: [&str; 2] =
    [r#""response_item","payload":{"#, r#"~}~}~,"metadata":{"client_authored":false}~"#];
const METADATA: &str = r#"~,"internal_chat_message_metadata_passthrough":{"turn_id":"$turn"~"#;

/// A session being written: its lines so far, its clock, and the counters that its lines repeat.
#[derive(Default)]
struct Session {
    project: Rc<Project>,
    random: Random,
    out: String,
    target: u64,
    paginated: bool,
    images: bool,
    ordinal: u64,
    now: u64,
    thread: String,
    turn: String,
    prompt: String,
    prompt_at: u64,
    usage: [[u64; 3]; 3], // tokens in, out and for reasoning: of the last response, the turn, the thread
}

impl Session {
    fn play(&mut self, scripts: &str, values: &[(&str, &dyn Display)]) {
        for line in scripts.replace("\n    ", "").lines().skip(1) {
            let ([head, tail], metadata) = match (&line[..1], self.paginated) {
                ("L", true) | ("P" | "I", false) => continue,
                ("M" | "P", _) => (["", "}"], ""),
                ("R", _) => (RESPONSE, METADATA),
                ("I", _) => (ITEM, ""),
                _ => ([r#""event_msg","payload":{"#, "}"], ""),
            };
            let (body, more) = line[2..].split_once('^').unwrap_or((&line[2..], ""));
            put!(self.out, r#"{{"timestamp":"{}Z","#, timestamp(self.now));
            for part in [r#"~"ordinal":$ordinal,~"type":"#, head, body, metadata, more, tail, "}\n"] {
                self.expand(part, values);
            }
            self.ordinal += 1;
            self.now += 1 + self.random.below(300);
        }
    }

    fn expand(&mut self, template: &str, values: &[(&str, &dyn Display)]) {
        let paginated = self.paginated;
        let segments = template.split('~').enumerate().filter(|(place, _)| place % 2 == 0 || paginated);
        for (place, segment_part) in segments.flat_map(|(_, segment)| segment.split('$').enumerate()) {
            let letters =
                segment_part.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(segment_part.len());
            let (name, rest) = segment_part.split_at(if place == 0 { 0 } else { letters });
            match name {
                "turn" => self.out += &self.turn,
                "thread" => self.out += &self.thread,
                "cwd" => self.out += &self.project.cwd,
                "fresh" => self.out += &self.random.id(),
                "ordinal" => put!(self.out, "{}", self.ordinal),
                "now" => put!(self.out, "{}", self.now),
                "seconds" => put!(self.out, "{}", self.now / 1_000),
                "last" => self.put_usage(0),
                "spent" => self.put_usage(1),
                "total" => self.put_usage(2),
                _ => values.iter().filter(|one| one.0 == name).for_each(|one| put!(self.out, "{}", one.1)),
            }
            self.out += rest;
        }
    }

    fn put_usage(&mut self, of: usize) {
        let ([input, output, thought], out) = (self.usage[of], &mut self.out);
        put!(out, r#"{{"input_tokens":{input},"cached_input_tokens":{},"#, input / 10 * 9);
        *out += if self.paginated { r#""cache_write_input_tokens":0,"# } else { "" };
        put!(out, r#""output_tokens":{output},"reasoning_output_tokens":{thought},"#);
        put!(out, r#""total_tokens":{}}}"#, input + output);
    }

    fn count_response(&mut self) {
        let (thought, answered) = (self.random.below(400), self.random.below(600));
        let counts = [12_000 + (self.out.len() as u64 / 4) % 200_000, thought + answered, thought];
        self.usage[0] = [0; 3];
        for sums in &mut self.usage {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }

    fn room(&self) -> u64 {
        self.target.saturating_sub(self.out.len() as u64)
    }

    fn prose(&mut self, low: u64, doublings: u64) -> String {
        let length = self.random.sized(low, doublings);
        self.project.text(&mut self.random, PROSE, length)
    }

    fn write_prompt(&mut self) {
        let (mut image, mut pasted, mut local, mut kind) = (String::new(), String::new(), "", "");
        if self.images && self.random.below(3) > 0 {
            let length = self.random.sized(40_000, 4).min(self.room() / 3) / 4 * 4;
            let data = self.random.base64(length);
            pasted = format!(r#""data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{data}""#);
            image = format!(r#"{{"type":"input_image","image_url":{pasted}}},"#);
            (local, kind) = (r#"{"type":"local_image","path":"/tmp/screen.png"},"#, r#""user.image","#);
        }
        let (own, local_time) = (self.random.uuid(self.now), timestamp(self.now + LOCAL_TIME_AHEAD));
        let model = if self.paginated { "gpt-5.5" } else { "gpt-5.1-codex" };
        self.prompt = self.prose(30, 6);
        self.prompt_at = self.now;
        play!(self, [PROMPT], own: own, today: &local_time[..10], model: model, text: self.prompt.clone(),
            image: image, pasted: pasted, local: local, kind: kind);
    }

    fn work(&mut self) {
        let (call, project) = (self.random.id(), Rc::clone(&self.project));
        let path = project.text(&mut self.random, "src/%w/%n.rs", 1);
        if self.random.below(6) == 0 {
            let length = self.random.sized(80, 5);
            let lines = project.output(&mut self.random, length).replace("\\n", "\\n+");
            let hunk = format!(" {}", lines.trim_end_matches('+'));
            play!(self, [PATCH, RECORD, PATCHED, COUNT], call: call, path: path, hunk: hunk);
            return;
        }
        let size = match self.random.below(1_500) {
            0 => self.random.sized(1_500_000, 1),
            1..=200 => self.random.sized(20_000, 3),
            201..=600 => self.random.sized(4_000, 3),
            _ => self.random.sized(200, 4),
        };
        let size = size.min(self.room() / 2 + 200);
        let mut print = |length: u64| project.output(&mut self.random, length);
        let (front, back) = (print(size.min(KEPT_END)), print(size.saturating_sub(KEPT_END).min(KEPT_END)));
        let middle = print(size.saturating_sub(2 * KEPT_END));
        let (code, status) = *self.random.pick(&[(0, "completed"), (0, "completed"), (1, "failed")]);
        play!(self, [COMMAND, RECORD, RESULT, COUNT], call: call, path: path, front: front, middle: middle,
            back: back, code: code, status: status);
    }

    fn step(&mut self, step: &Step<'_>) {
        self.now += self.random.sized(2_000, 6);
        match step {
            Step::User(text) => {
                self.turn = self.random.uuid(self.now);
                self.usage[1] = [0; 3];
                let (own, today) = (self.random.uuid(self.now), timestamp(self.now + LOCAL_TIME_AHEAD));
                play!(self, [PROMPT], own: own, today: &today[..10], model: "gpt-5.5", text: escaped(text),
                    image: "", pasted: "", local: "", kind: "");
            }
            Step::Assistant(text) => {
                self.count_response();
                let (id, text, started) = (self.random.id(), escaped(text), self.now / 1_000);
                play!(self, [ANSWER, RECORD, COUNT, COMPLETE], id: id, text: text, phase: "final_answer",
                    started: started);
            }
            Step::Ran(command, printed) => {
                let call = self.random.id();
                let command = escaped(command);
                let arguments = format!(r#"{{"cmd":"{command}","workdir":"{}"}}"#, self.project.cwd);
                play!(self, [RUN, RAN], call: call, arguments: escaped(&arguments), printed: escaped(printed));
            }
        }
    }

    /// At least one turn, and as many as the size requires.
    fn turns(&mut self) {
        let mut more = true;
        while more {
            let (started, mut steps) = (self.now / 1_000, self.random.sized(1, 5));
            self.turn = self.random.uuid(self.now);
            self.usage[1] = [0; 3];
            self.write_prompt();
            while steps > 0 {
                self.now += self.random.sized(200, 6);
                let (id, length) = (self.random.id(), self.random.sized(1_000, 2));
                if self.random.below(2) == 0 {
                    let secret = self.random.base64(length);
                    play!(self, [REASONING], id: id, text: self.prose(60, 3), secret: secret);
                } else if self.random.below(3) == 0 {
                    play!(self, [ANSWER], id: id, text: self.prose(60, 4), phase: "commentary");
                }
                self.count_response();
                self.work();
                steps = if self.room() < 4_000 { 0 } else { steps - 1 };
            }
            self.count_response();
            let (id, text, last) = (self.random.id(), self.prose(150, 4), [ANSWER, RECORD, COUNT, COMPLETE]);
            play!(self, last, id: id, text: text, phase: "final_answer", started: started);
            self.now += self.random.sized(4_000, 8);
            more = self.room() > 8_000;
        }
    }
}

fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

impl Session {
    fn save(&self, home: &Path, started: u64) -> io::Result<()> {
        let local = timestamp(started + LOCAL_TIME_AHEAD);
        let folder = home.join("sessions").join(local[..10].replace('-', "/"));
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("rollout-{}-{}.jsonl", local[..19].replace(':', "-"), self.thread));
        fs::write(&path, &self.out)?;
        let ended = UNIX_EPOCH + Duration::from_millis(self.now);
        fs::File::options().append(true).open(&path)?.set_modified(ended)
    }
}

/// Writes a home with its transcripts, settings, thread names and prompt history.
pub fn write_codex_home(home: &Path, plan: &Plan) -> io::Result<Written> {
    let mut random = Random(plan.seed ^ 0x5eed);
    let project = |name: &&str| Rc::new(Project::new(random.next(), &format!("/home/pat/code/{name}")));
    let projects: Vec<Rc<Project>> = PROJECTS.iter().map(project).collect();
    let mut written = Written { files: plan.files, bytes: 0, lines: 0 };
    let (mut names, mut history, mut out) = (String::new(), String::new(), String::new());
    fs::create_dir_all(home.join("sessions"))?;
    for (index, target) in sizes(plan).into_iter().enumerate() {
        let now = FIRST_DAY + DAYS * DAY * index as u64 / plan.files as u64 + random.below(DAY);
        out.clear();
        let mut session = Session {
            project: Rc::clone(random.pick(&projects)),
            random: Random(random.next()),
            thread: random.uuid(now),
            paginated: index * 3 + 3 > plan.files,
            images: index % 64 == 7,
            now,
            out,
            target,
            ..Session::default()
        };
        // The client ships its instructions, so all sessions start with the same ones.
        let text = projects[0].text(&mut Random(plan.seed), PROSE, (target / 4).min(15_000));
        let version = if session.paginated { "0.166.0" } else { "0.135.0" };
        play!(session, [META], started: timestamp(now), version: version, text: text);
        session.turns();
        session.save(home, now)?;
        let (thread, prompt) = (&session.thread, &session.prompt);
        let (seconds, end) = (session.prompt_at / 1_000, timestamp(session.now));
        history += &format!("{{\"session_id\":\"{thread}\",\"ts\":{seconds},\"text\":\"{prompt}\"}}\n");
        names +=
            &format!("{{\"id\":\"{thread}\",\"thread_name\":\"Job {index}\",\"updated_at\":\"{end}Z\"}}\n");
        written.bytes += session.out.len() as u64;
        written.lines += session.ordinal;
        out = session.out;
    }
    fs::write(home.join("session_index.jsonl"), names)?;
    fs::write(home.join("history.jsonl"), history)?;
    fs::write(home.join("config.toml"), "model = \"gpt-5.5\"\napproval_policy = \"never\"\n")?;
    Ok(written)
}

/// Writes one more transcript, the last one of its home, with many short turns of two or three messages each. Returns
/// its id.
pub fn write_long_session(home: &Path, seed: u64, messages: usize) -> io::Result<String> {
    let mut random = Random(seed);
    let now = FIRST_DAY + (DAYS + 2) * DAY;
    let mut session = Session {
        project: Rc::new(Project::new(random.next(), "/home/pat/code/orchard")),
        thread: random.uuid(now),
        random,
        paginated: true,
        now,
        ..Session::default()
    };
    let text = session.prose(1_000, 3);
    play!(session, [META], started: timestamp(now), version: "0.166.0", text: text);
    for _ in 0..messages.div_ceil(2) {
        session.turns();
    }
    session.save(home, now)?;
    Ok(session.thread)
}

/// A step of a session with given content.
pub enum Step<'a> {
    User(&'a str),
    Assistant(&'a str),
    /// A command and its output.
    Ran(&'a str, &'a str),
}

/// Writes one more transcript with these steps, and about `around` bytes of other turns before and after them.
/// Returns its id.
pub fn write_session_of(home: &Path, seed: u64, steps: &[Step<'_>], around: u64) -> io::Result<String> {
    let mut random = Random(seed);
    let now = FIRST_DAY + random.below(DAYS) * DAY + random.below(DAY);
    let mut session = Session {
        project: Rc::new(Project::new(random.next(), &format!("/home/pat/code/{}", random.pick(&PROJECTS)))),
        thread: random.uuid(now),
        random,
        paginated: true,
        now,
        ..Session::default()
    };
    let text = session.prose(100, 3);
    play!(session, [META], started: timestamp(now), version: "0.166.0", text: text);
    for part in 0..2 {
        if around > 0 {
            session.target = session.out.len() as u64 + around;
            session.turns();
        }
        for step in steps.iter().filter(|_| part == 0) {
            session.step(step);
        }
    }
    session.save(home, now)?;
    Ok(session.thread)
}

/// Appends about `bytes` of complete turns in the format of the transcript, and returns the number of bytes. A torn
/// last line is ended first, as the client does when it resumes.
pub fn append_turns(file: &Path, seed: u64, bytes: u64) -> io::Result<u64> {
    let data = fs::read(file)?;
    let whole = data.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&data[..whole]);
    let first = text.lines().next().unwrap_or_default();
    let last = |text: &str, key: &str| {
        let found = text.rfind(key).and_then(|at| text[at + key.len()..].split(['"', ',']).next());
        found.map(str::to_owned).ok_or_else(|| io::Error::other("not a generated transcript"))
    };
    let (thread, cwd) = (last(first, r#""id":""#)?, last(first, r#""cwd":""#)?);
    // Timestamps sort chronologically, so the last time is found by bisection.
    let (latest, mut now, mut later) = (last(&text, r#"{"timestamp":""#)?, FIRST_DAY, FIRST_DAY + 700 * DAY);
    while now < later {
        let middle = now.midpoint(later);
        if timestamp(middle) < latest { now = middle + 1 } else { later = middle }
    }
    let ordinal = last(&text, r#"Z","ordinal":"#).ok().and_then(|number| number.parse::<u64>().ok());
    let unique = thread.bytes().fold(data.len() as u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut random = Random(seed ^ unique.rotate_left(32));
    let mut session = Session {
        project: Rc::new(Project::new(random.next(), &cwd)),
        random,
        thread,
        paginated: first.contains(r#""history_mode":"paginated""#),
        now: now + 3_600_000,
        target: bytes,
        ordinal: ordinal.map_or(0, |ordinal| ordinal + 1),
        out: String::from(if whole == data.len() { "" } else { "\n" }),
        ..Session::default()
    };
    session.turns();
    fs::File::options().append(true).open(file)?.write_all(session.out.as_bytes())?;
    Ok(session.out.len() as u64)
}
