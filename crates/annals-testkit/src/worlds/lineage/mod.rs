//! A made-up repository whose every line has a known author: written through both clients' formats, then shuffled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

pub mod dated;
mod transcripts;

use transcripts::{Change, Transcript};

/// How large a world is.
#[derive(Debug, Clone, Copy)]
pub struct LineagePlan {
    pub seed: u64,
    pub sessions: usize,
    /// Edits per session.
    pub edits: usize,
}

/// Who wrote a line, and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Session and call; none if a person wrote it.
    pub call: Option<(String, String)>,
    /// A person changed what the call wrote.
    pub tweaked: bool,
    /// It was wrapped over several lines.
    pub broken: bool,
}

#[derive(Debug, Clone)]
struct Line {
    text: String,
    author: Author,
}

/// The final repository, and the author of each line.
pub struct World {
    pub folder: PathBuf,
    pub files: BTreeMap<String, Vec<Author>>,
}

/// Traced lines compared with the truth.
#[derive(Debug, Default, Clone, Copy)]
pub struct Score {
    pub graded: [Count; 3],
    /// Lines of sessions that nobody changed.
    pub unmodified: Count,
    /// Lines that people wrote; correct if no session is named.
    pub human: Count,
    /// Lines that people changed a little.
    pub tweaked: Count,
    /// Lines that were credited to an edit after the state that has them.
    pub late: usize,
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
    /// Adds one file: `blame` is the output of `annals blame --json`.
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
                    // Wrapped lines no longer match the edit: finding them is welcome, but not counted.
                    Some(_) if author.broken => {}
                    Some(_) => self.unmodified.add(right && whole),
                }
            }
        }
    }
}

/// Writes the clients' homes (`codex`, `claude`) and the repository (`repo`) into a directory.
pub fn write_world(folder: &Path, plan: &LineagePlan) -> io::Result<World> {
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
    world.write_files()?;
    Ok(World { folder: repository, files: world.authors() })
}

pub(super) struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
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
/// Lines that occur in every program.
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
    fn write_files(&self) -> io::Result<()> {
        for (path, lines) in &self.files {
            let target = self.repository.join(path);
            fs::create_dir_all(target.parent().unwrap_or(&self.repository))?;
            let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
            fs::write(&target, text)?;
        }
        Ok(())
    }

    fn authors(&self) -> BTreeMap<String, Vec<Author>> {
        let authors = |lines: &Vec<Line>| lines.iter().map(|line| line.author.clone()).collect();
        self.files.iter().map(|(path, lines)| (path.clone(), authors(lines))).collect()
    }

    /// One to forty lines of code: mostly unique, some generic.
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

    /// What people do to code without changing it: rename, move, format. A squash or rebase changes no line.
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
        // Moves a block from one file to another.
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

    /// Different indentation everywhere, and some long calls wrapped.
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
