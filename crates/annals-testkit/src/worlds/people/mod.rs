//! What clients do to a transcript: they resume, fork, spawn, compact, queue, interrupt, and put context beside what a
//! person typed. Every prompt that is added here contains a word that is nowhere else.

use std::path::Path;

mod claude;
mod codex;

/// What happens to the transcripts of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deeds {
    /// Turns are appended to each transcript: context beside the words, queues, interruptions, compactions.
    Typing,
    /// Each transcript is copied into new ones, which continue.
    Copying,
    /// The same as clients of 2025 did it, with new ids for what was copied.
    Rewriting,
}

/// A prompt that was typed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlantedPrompt {
    /// Nowhere else in the home, whatever the client copied.
    pub word: String,
    pub session: String,
    /// What the client did with it.
    pub deed: &'static str,
    /// It went to the assistant.
    pub sent: bool,
}

/// What was added to a home.
#[derive(Debug, Default)]
pub struct Added {
    pub planted: Vec<PlantedPrompt>,
    /// Prompts and answers, however often they were copied.
    pub messages: i64,
    /// Records of the person's side, as clients count them.
    pub user_records: i64,
}

impl Added {
    /// A new word, typed in this session.
    fn word(&mut self, session: &str, deed: &'static str) -> String {
        let word = format!("zorvex{:05}", self.planted.len());
        self.planted.push(PlantedPrompt {
            word: word.clone(),
            session: session.to_owned(),
            deed,
            sent: true,
        });
        word
    }

    /// A sentence with a new word in it.
    fn words(&mut self, session: &str, deed: &'static str) -> String {
        format!("Turn the {} wheel by hand", self.word(session, deed))
    }

    /// The same for words that never went to the assistant.
    fn unsent(&mut self, session: &str, deed: &'static str) -> String {
        let words = self.words(session, deed);
        self.planted.iter_mut().last().unwrap().sent = false;
        words
    }

    fn count(&mut self, messages: i64, user_records: i64) {
        self.messages += messages;
        self.user_records += user_records;
    }
}

/// Does these deeds to every transcript of a home.
pub fn act(source: &str, home: &Path, deeds: Deeds) -> Added {
    let mut added = Added::default();
    match source {
        "claude_code" => claude::act(home, deeds, &mut added),
        "codex_cli" => codex::act(home, deeds, &mut added),
        other => panic!("nothing is known of what {other} does"),
    }
    added
}

/// An id that sorts after those of all clients.
fn late_id(parts: &[&str]) -> String {
    let hash = blake3::hash(parts.join("\n").as_bytes()).to_hex();
    format!("ffff{}-{}-7{}-8{}-{}", &hash[..4], &hash[4..8], &hash[8..11], &hash[11..14], &hash[14..26])
}

/// A name for a copy of this session. Of equal rows with equal times, those in the session that sorts first count.
fn copy_id(session: &str, deed: &str) -> String {
    let mut ids = (0..).map(|number: usize| late_id(&[session, deed, &number.to_string()]));
    ids.find(|id| id.as_str() > session).unwrap()
}

/// The lines of a file that are JSON.
fn read_lines(path: &Path) -> Vec<serde_json::Value> {
    let bytes = std::fs::read(path).unwrap();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The text of a file with lines appended.
fn append_lines(path: &Path, lines: &[serde_json::Value]) {
    let mut bytes = std::fs::read(path).unwrap_or_default();
    if !bytes.is_empty() && bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    for line in lines {
        bytes.extend_from_slice(format!("{line}\n").as_bytes());
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}
