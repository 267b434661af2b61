//! Inputs and outputs of the tools in a generated Claude Code session, including sub-agents.

use std::fmt::Write as _;
use std::rc::Rc;

use super::{Agent, Call, Session, folder_name};
use crate::corpora::generator::{Random, put, timestamp};

const ROOT: &str = "/home/pat/.claude"; // where the home was, so that its bytes do not depend on where it is
const LONGEST_INLINE: u64 = 30_000;
const PREVIEW: u64 = 2_000;

/// Name of the tool, its input, the content of its result block, and the structured result next to it.
type Work = (&'static str, String, String, String);

/// The lines of a JSON-escaped text.
pub fn lines_of(escaped: &str) -> Vec<&str> {
    let (bytes, mut lines, mut begin, mut at) = (escaped.as_bytes(), Vec::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found + 2;
        if bytes[at - 1] == b'n' {
            lines.push(&escaped[begin..at - 2]);
            begin = at;
        }
    }
    lines.extend(Some(&escaped[begin..]).filter(|rest| !rest.is_empty()));
    lines
}

impl Session {
    /// Writes the row of one call, and returns its result.
    pub fn call(&mut self, index: u64, last: bool) -> Call {
        let (id, project) = (self.random.letters(22), Rc::clone(&self.project));
        let path = format!("{}/{}", project.cwd, project.text(&mut self.random, "src/%w/%n.rs", 1));
        let (name, input, content, structured) = match self.random.below(20) {
            _ if self.agents_to_start > 0 => self.delegate(&id),
            0..=8 => self.command(),
            9..=13 => self.read(&path),
            14..=17 => self.edit(&path),
            _ => {
                let (length, word) = (self.random.sized(100, 6), project.text(&mut self.random, "%n", 1));
                let found = self.print(length.min(self.room() / 4));
                let lines = lines_of(&found).len();
                let mut structured = r#"{"mode":"content","numFiles":0,"filenames":[],"#.to_owned();
                put!(structured, r#""content":"{found}","numLines":{lines}}}"#);
                let input = format!(r#""pattern":"{word}","path":"{}","output_mode":"content""#, project.cwd);
                ("Grep", input, format!("\"{found}\""), structured)
            }
        };
        let block =
            format!(r#"{{"type":"tool_use","id":"toolu_01{id}","name":"{name}","input":{{{input}}}}}"#);
        self.write_block(&block, index, last, r#""tool_use""#);
        let failed = ["", r#","is_error":true"#][usize::from(structured.starts_with('"'))];
        let block =
            format!(r#"{{"tool_use_id":"toolu_01{id}","type":"tool_result","content":{content}{failed}}}"#);
        // Sub-agents keep only the block.
        let structured =
            if self.agent.is_empty() { format!(",\"toolUseResult\":{structured}") } else { String::new() };
        Call { source: self.parent.clone(), block, structured }
    }

    fn command(&mut self) -> Work {
        let command =
            self.project.text(&mut self.random, "cargo test --package %n %w::%n 2>&1 | tail -%d", 1);
        let input = format!(r#""command":"{command}","description":"Run the tests""#);
        let size = match self.random.below(1_000) {
            0..=14 => self.random.sized(35_000, 4),
            15..=79 => self.random.sized(6_000, 2),
            80..=349 => self.random.sized(1_200, 3),
            _ => self.random.sized(60, 5),
        };
        let size = size.min(self.room() / 3 + 60);
        let (preview, failed) = (self.print(size.min(PREVIEW)), self.random.below(10) == 0);
        let mut shown = preview.clone();
        if size > PREVIEW {
            shown += &self.print(size.min(LONGEST_INLINE) - PREVIEW);
        }
        if failed {
            let text = format!("Exit code 1\\n{shown}");
            return ("Bash", input, format!("\"{text}\""), format!("\"Error: {text}\""));
        }
        let (mut content, mut more) = (format!("\"{shown}\""), String::new());
        if size > LONGEST_INLINE && self.form > 0 && self.agent.is_empty() {
            let (rest, name) = (self.print(size - LONGEST_INLINE), self.random.letters(8).to_lowercase());
            let folder = folder_name(&self.project.cwd);
            let path = format!("{ROOT}/projects/{folder}/{}/tool-results/b{name}.txt", self.id);
            let (whole, kilobytes) = (format!("{shown}{rest}"), size / 1_024);
            content = format!(
                "\"<persisted-output>\\nOutput too large ({kilobytes}KB). Full output saved to: {path}\\n\\n\
                Preview (first 2KB):\\n{preview}...\\n</persisted-output>\""
            );
            more = format!(r#","persistedOutputPath":"{path}","persistedOutputSize":{}"#, whole.len());
            self.results.push((format!("b{name}.txt"), whole));
        }
        let structured =
            format!(r#"{{"stdout":"{shown}","stderr":"","interrupted":false,"isImage":false{more}}}"#);
        ("Bash", input, content, structured)
    }

    fn read(&mut self, path: &str) -> Work {
        let length = self.random.sized(500, 5).min(self.room() / 3 + 100);
        let (text, mut numbered) = (self.print(length), String::with_capacity(length as usize * 5 / 4));
        let lines = lines_of(&text);
        for (line, number) in lines.iter().zip(1..) {
            match self.form {
                0 => put!(numbered, "{number:6}→{line}\\n"),
                _ => put!(numbered, "{number}\\t{line}\\n"),
            }
        }
        let lines = lines.len();
        let mut structured = format!(r#"{{"type":"text","file":{{"filePath":"{path}","content":"{text}","#);
        put!(structured, r#""numLines":{lines},"startLine":1,"totalLines":{lines}}}}}"#);
        ("Read", format!(r#""file_path":"{path}""#), format!("\"{numbered}\""), structured)
    }

    fn edit(&mut self, path: &str) -> Work {
        let (length, inserted) = (self.random.sized(400, 5), self.random.sized(60, 4));
        let (original, inserted) = (self.print(length.min(self.room() / 3 + 200)), self.print(inserted));
        let (lines, new) = (lines_of(&original), lines_of(&inserted));
        let at = self.random.below(lines.len() as u64) as usize;
        let old = &lines[at..(at + 1 + self.random.below(6) as usize).min(lines.len())];
        let (begin, end) = (at.saturating_sub(3), (at + old.len() + 3).min(lines.len()));
        let mut patch = String::new();
        let parts =
            [(' ', &lines[begin..at]), ('-', old), ('+', &new[..]), (' ', &lines[at + old.len()..end])];
        for (sign, line) in parts.iter().flat_map(|(sign, lines)| lines.iter().map(move |line| (sign, line)))
        {
            put!(patch, "{}\"{sign}{line}\"", if patch.is_empty() { "" } else { "," });
        }
        let (before, after) = (end - begin, end - begin - old.len() + new.len());
        let strings = [old.join("\\n"), new.join("\\n")];
        let input =
            format!(r#""file_path":"{path}","old_string":"{}","new_string":"{}""#, strings[0], strings[1]);
        let mut structured = format!(r#"{{"filePath":"{path}","oldString":"{}","#, strings[0]);
        put!(structured, r#""newString":"{}","originalFile":"{original}","structuredPatch":["#, strings[1]);
        put!(structured, r#"{{"oldStart":{},"oldLines":{before},"newStart":{},"#, begin + 1, begin + 1);
        put!(
            structured,
            r#""newLines":{after},"lines":[{patch}]}}],"userModified":false,"replaceAll":false}}"#
        );
        if self.tracks && self.copies.len() < 4 {
            let (name, time) = (format!("{:016x}@v1", self.random.next()), timestamp(self.now));
            put!(self.tracked, "{}\"{path}\":", if self.tracked.is_empty() { "" } else { "," });
            put!(self.tracked, r#"{{"backupFileName":"{name}","version":1,"backupTime":"{time}Z"}}"#);
            self.copies.push((name, original));
        }
        ("Edit", input, format!(r#""The file {path} has been updated successfully.""#), structured)
    }

    /// Runs a sub-agent in a separate transcript.
    fn delegate(&mut self, call: &str) -> Work {
        self.agents_to_start -= 1;
        let name = format!("a{:016x}", self.random.next());
        let mut session = Self {
            project: Rc::clone(&self.project),
            instructions: Rc::clone(&self.instructions),
            random: Random(self.random.next()),
            target: self.random.sized(15_000, 4).min(self.room() / 3),
            form: self.form,
            started: self.now,
            now: self.now + 500,
            id: self.id.clone(),
            agent: name[..[8, 17][self.form.min(1)]].to_owned(),
            ..Self::default()
        };
        session.open();
        session.turns();
        let (name, took) = (session.agent.clone(), session.now - self.now);
        self.agents_done = session.now;
        let (title, task, answer) = (self.prose(10, 1), session.first_prompt.clone(), self.prose(200, 3));
        let mut meta = format!(r#"{{"agentType":"general-purpose","description":"{title}","#);
        put!(meta, r#""toolUseId":"toolu_01{call}","spawnDepth":1,"isBuiltIn":true,"finished":true}}"#);
        let text = format!(r#"{{"type":"text","text":"{answer}"}}"#);
        let mut structured = format!(r#"{{"status":"completed","prompt":"{task}","agentId":"{name}","#);
        put!(structured, r#""agentType":"general-purpose","content":[{text}],"totalDurationMs":{took},"#);
        put!(structured, r#""totalTokens":{},"totalToolUseCount":{},"#, session.spent, session.lines / 3);
        put!(structured, r#""usage":{}}}"#, session.usage[1]);
        let input = format!(r#""description":"{title}","subagent_type":"general-purpose","prompt":"{task}""#);
        let content = format!(r#"[{text},{{"type":"text","text":"agentId: {name}"}}]"#);
        self.agents.push(Agent { name, meta, session });
        (["Task", "Agent"][self.form.min(1)], input, content, structured)
    }
}
