//! The providers: what a source is, and the registry of all sources.
//!
//! A reader turns the lines of a file into items that point back into its bytes; the source turns those bytes into
//! blocks to show. Nothing here opens a file. To read every message of a Codex rollout:
//!
//! ```
//! use annals_core::{Block, Item};
//! use annals_sources::json::Scan;
//! use annals_sources::{FileContext, by_name};
//!
//! let rollout = r#"{"timestamp":"2026-03-02T09:00:00.000Z","type":"session_meta","payload":{"id":"0199cc00-0000-7000-8000-000000000007","cwd":"/home/ada/gauge","cli_version":"0.80.0"}}
//! {"timestamp":"2026-03-02T09:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"Paint the needle red"}}
//! {"timestamp":"2026-03-02T09:00:05.000Z","type":"event_msg","payload":{"type":"agent_message","message":"The needle is red."}}
//! "#;
//! let source = by_name("codex_cli").expect("a registered source");
//! let path = "sessions/2026/03/02/rollout-2026-03-02T09-00-00-0199cc00-0000-7000-8000-000000000007.jsonl";
//! let mut reader = source.reader("rollout", &FileContext { path: path.into(), modified: None }, None);
//! let (mut offset, mut items) = (0, Vec::new());
//! for line in rollout.lines() {
//!     reader.read(offset, Scan::new(line.as_bytes()).line(), &mut items);
//!     offset += line.len() as u64 + 1;
//! }
//!
//! let mut texts = Vec::new();
//! for item in &items {
//!     let Item::Message(message) = item else { continue };
//!     let (start, length) = (message.span.offset as usize, message.span.length as usize);
//!     for block in source.blocks(&[&rollout.as_bytes()[start..start + length]]) {
//!         if let Block::Text(text) = block {
//!             texts.push(text);
//!         }
//!     }
//! }
//! assert_eq!(texts, ["Paint the needle red", "The needle is red."]);
//! ```

mod agents;
mod annals;
mod gemini_family;
pub mod git;
mod home;
mod import;
pub mod json;
mod live;
mod tape;

mod chatgpt;
mod claude_ai;
mod claude_code;
mod cline;
mod codex_cli;
mod copilot_cli;
mod gemini_cli;
mod kimi_code;
mod openai_api;
mod opencode;
mod outside_connectors;
mod pi;
mod qwen_code;

use std::path::PathBuf;
use std::sync::Arc;

use annals_core::{Block, Item, Manifest, SessionFacts, Time, Verdict};
use json::{Line, Scan};

pub use agents::{AgentClient, ServerForm, ServerList};
pub use home::authored::REPOSITORIES;
pub use import::{
    Capture, ElementBody, Import, Intake, IntakeOptions, Judgement, KnownRecords, Member, Shape, Taking,
    path_part,
};
pub use live::{
    Assembled, Judged, ListPage, Listed, ListedItem, Listing, Live, LiveAnswer, LiveRequest, NextPage,
    PageRequest, Way,
};
pub use outside_connectors::content_key;
pub use tape::{
    CallLines, Printed, RecognisedTranscript, Recorder, Snapshot, TapeForm, recognise_transcript,
};

/// All sources. To add one, add its folder, a `mod` line above and a line here.
pub fn registry() -> &'static [&'static dyn Source] {
    &[
        &codex_cli::CodexCli,
        &claude_code::ClaudeCode,
        &gemini_cli::GeminiCli,
        &opencode::OpenCode,
        &copilot_cli::CopilotCli,
        &qwen_code::QwenCode,
        &kimi_code::KimiCode,
        &cline::Cline,
        &pi::Pi,
        &chatgpt::ChatGpt,
        &claude_ai::ClaudeAi,
        &openai_api::OpenAiApi,
        &outside_connectors::OutsideConnectors,
    ]
}

pub fn by_name(name: &str) -> Option<&'static dyn Source> {
    registry().iter().copied().find(|source| source.manifest().source == name)
}

/// Finds a source by a name that people use: `claude`, `gemini`, `codex`, `Claude Code`.
pub fn by_common_name(name: &str) -> Option<&'static dyn Source> {
    let folded = |name: &str| name.trim().to_lowercase().replace([' ', '-'], "_");
    let name = folded(name);
    let first_word = |source: &str| source.split('_').next() == Some(name.as_str());
    by_name(&name)
        .or_else(|| registry().iter().copied().find(|source| folded(source.manifest().route) == name))
        .or_else(|| registry().iter().copied().find(|source| folded(source.manifest().label) == name))
        .or_else(|| {
            // Of a vendor's sources the first is meant: its client comes before its exports.
            registry().iter().copied().find(|source| first_word(source.manifest().source))
        })
        .or_else(|| {
            // Part of one name only, long enough to be meant.
            let has_part = |source: &&dyn Source| folded(source.manifest().label).contains(&name);
            let mut named = registry().iter().copied().filter(has_part);
            named.next().filter(|_| name.len() >= 3 && named.next().is_none())
        })
}

/// The source for records of connectors, which are programs outside of annals.
pub fn of_programs() -> &'static dyn Source {
    &outside_connectors::OutsideConnectors
}

/// The source for records of the archive itself. It is not in the registry: nothing is captured from it.
pub fn of_archive() -> &'static dyn Source {
    &annals::Annals
}

/// Finds the source with this format of native lines.
pub fn by_format(format: &str) -> Option<&'static dyn Source> {
    registry()
        .iter()
        .copied()
        .find(|source| source.recorder().is_some_and(|recorder| recorder.form().format == format))
}

/// One provider: where its files are, how its lines are read, what it declares.
pub trait Source: Sync {
    fn manifest(&self) -> &'static Manifest;

    /// Folders that may contain this source's files, whether they exist or not; empty if it reads no home.
    fn homes(&self, _settings: &dyn Settings) -> Vec<Home> {
        Vec::new()
    }

    /// Equal for two paths of the same file: moved, or in another encoding.
    fn logical_path(&self, path: &str) -> String {
        path.to_owned()
    }

    /// A reader that continues from a saved state, or starts at the beginning.
    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader>;

    /// Turns the lines of a message, call or output into blocks to show.
    fn blocks(&self, lines: &[&[u8]]) -> Vec<Block> {
        let scans: Vec<Scan<'_>> = lines.iter().map(|line| Scan::new(line)).collect();
        self.line_blocks(&scans.iter().map(Scan::line).collect::<Vec<_>>())
    }

    /// Like `blocks`, for lines that may already be scanned.
    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block>;

    /// The data of a record; `None` if its bytes are the data.
    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<serde_json::Value>;

    /// The working directory that a record belongs to, out of those of the sessions in its home.
    fn project_of(&self, _stream: &str, _key: &str, _folders: &[String]) -> Option<String> {
        None
    }

    /// Whether an authored item or memory is in effect in a session, given the native fields of the session.
    fn applies(&self, _stream: &str, _key: &str, _session: &serde_json::Value) -> bool {
        true
    }

    /// The file in the home with the content that a record describes.
    fn content_of(&self, _stream: &str, _key: &str) -> Option<String> {
        None
    }

    /// The record that describes the content of a file in the home, by stream and key: the reverse of `content_of`.
    fn described_by(&self, _path: &str) -> Option<(&'static str, String)> {
        None
    }

    /// The provider's id of the response whose usage is on this line.
    fn response_id(&self, line: &[u8]) -> Option<String>;

    /// Whether the client's lines have ids.
    fn names_lines(&self) -> bool {
        false
    }

    /// The id of a line and of its parent, if the client's lines have ids.
    fn line_ids(&self, _line: &[u8]) -> Option<LineIds> {
        None
    }

    /// Fields of a row under the client's own names.
    fn native(&self, bytes: &[u8]) -> serde_json::Map<String, serde_json::Value>;

    /// Declared fields of a message beyond those that every source has.
    fn message_fields(&self, _session: &str, _bytes: &[u8]) -> serde_json::Map<String, serde_json::Value> {
        serde_json::Map::new()
    }

    /// How files become conversations, if the client keeps each in many files.
    fn grouping(&self) -> Option<&'static dyn Grouping> {
        None
    }

    /// Exports its sessions as tapes, if its calls work on files.
    fn recorder(&self) -> Option<&'static dyn Recorder> {
        None
    }

    /// Whether a co-author that a commit names is this assistant. The address is in lower case.
    fn is_co_author(&self, _name: &str, _address: &str) -> bool {
        false
    }

    /// Imports the user's files, if supported.
    fn import(&self) -> Option<&'static dyn Import> {
        None
    }

    /// Where its agents find servers and skills, if the client has agents that use them.
    fn agent_client(&self, _settings: &dyn Settings) -> Option<AgentClient> {
        None
    }

    /// Requests data from the provider through the user's browser, if supported.
    fn live(&self) -> Option<&'static dyn Live> {
        None
    }
}

/// Makes one document of the files of a conversation. Pure: the same files give the same document.
pub trait Grouping: Sync {
    /// The conversations of a home, given the paths of all its files.
    fn groups(&self, paths: &[&str]) -> Vec<FileGroup>;

    /// The document of a conversation, in lines. Files that cannot be read are missing.
    fn document(&self, files: &[(&str, Vec<u8>)]) -> Vec<u8>;

    /// The reader of such documents.
    fn reader(&self) -> &'static str;
}

/// The files of one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGroup {
    /// The path of its document, below the folder of all of them.
    pub name: String,
    pub files: Vec<String>,
}

/// The ids of a client's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIds {
    pub id: String,
    pub parent: Option<String>,
}

impl std::fmt::Debug for dyn Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.manifest().source)
    }
}

/// Settings of a source, by the names that its manifest declares.
pub trait Settings {
    /// The value of a text variable; `None` if it is not set.
    fn get(&self, variable: &str) -> Option<String>;
    /// The value of a list variable; empty if it is not set.
    fn list(&self, variable: &str) -> Vec<String>;
    /// The value of a boolean variable.
    fn flag(&self, variable: &str) -> bool;
    fn user_home(&self) -> Option<PathBuf>;
}

#[derive(Debug, Clone, Default)]
pub struct Home {
    pub root: PathBuf,
    /// The path of `root` within a complete home: empty, or `sessions` if only that folder is configured.
    pub prefix: &'static str,
    pub choice: Option<Choice>,
    /// Follows links to files outside of the home, if enabled in the settings.
    pub follows_links: bool,
    /// Folders directly below the root that are excluded in the settings.
    pub without: &'static [&'static str],
    /// Part of a home elsewhere: nothing is said about it while it does not exist.
    pub is_addition: bool,
}

/// Selects folders directly below one folder of the home, by patterns on their names.
#[derive(Debug, Clone)]
pub struct Choice {
    pub below: &'static str,
    /// All if empty.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Turns a pattern of the settings into one for folder names.
    pub folder_pattern: fn(&str) -> String,
    /// The session that a file of the home belongs to, by its path.
    pub session_of: fn(&str) -> Option<&str>,
    pub shared: SharedFile,
    pub named: NamedFiles,
}

/// Files of the home that belong to the session whose transcript has their name.
#[derive(Debug, Clone, Copy)]
pub struct NamedFiles {
    /// The name in a path, if it is such a file.
    pub in_path: fn(&str) -> Option<&str>,
    /// The name in a line of a transcript.
    pub in_line: fn(&[u8]) -> Option<String>,
}

/// A file of the home with lines of every project.
#[derive(Debug, Clone, Copy)]
pub struct SharedFile {
    pub path: &'static str,
    /// The folder with files that only its lines refer to.
    pub content: &'static str,
    /// The entries of a line; empty if they cannot be read.
    pub entries: fn(&[u8]) -> Vec<SharedEntry>,
}

/// Whose an entry of a shared file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedEntry {
    /// The name of its project's folder.
    pub folder: String,
    pub session: Option<String>,
    /// Paths in the home of what it refers to.
    pub content: Vec<String>,
}

/// What a reader knows about its file besides the bytes.
#[derive(Debug, Clone)]
pub struct FileContext {
    pub path: String,
    pub modified: Option<Time>,
}

/// Turns the pieces of a file (lines, or the whole file) into items. Pure: the same bytes give the same items, whether
/// they arrive in one run or in many.
pub trait Reader: Send {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict;

    /// The state that the next run needs to continue.
    fn save(&self) -> String;

    /// Facts about sessions from this file so far.
    fn facts(&self) -> Vec<Facts>;
}

/// Reads every object of a line; the line's verdict is the worst of theirs.
pub fn each_object(line: Line<'_>, mut read: impl FnMut(u64, json::Object<'_>) -> Verdict) -> Verdict {
    let badness = |verdict: &Verdict| match verdict {
        Verdict::Skipped(_) => 0,
        Verdict::Kept(_) => 1,
        Verdict::Unknown(_) => 2,
        Verdict::Malformed(_) | Verdict::Parts(_) => 3,
    };
    let mut worst = Verdict::Skipped("blank line".into());
    for object in line.objects() {
        let verdict = match object {
            Ok((at, object)) => read(at as u64, object),
            Err(_) => Verdict::Malformed("not JSON".into()),
        };
        if badness(&verdict) > badness(&worst) {
            worst = verdict;
        }
    }
    worst
}

#[derive(Debug, Clone)]
pub struct Facts {
    pub session: Arc<str>,
    /// The highest rank wins.
    pub rank: u8,
    pub facts: SessionFacts,
}

#[cfg(test)]
mod tests {
    use super::{by_common_name, registry};

    #[test]
    fn sources_have_the_names_that_people_use() {
        let found = |name: &str| by_common_name(name).map(|source| source.manifest().source);
        assert_eq!(found("claude"), Some("claude_code"));
        assert_eq!(found("Claude Code"), Some("claude_code"));
        assert_eq!(found("codex"), Some("codex_cli"));
        assert_eq!(found("gemini"), Some("gemini_cli"));
        assert_eq!(found("qwen"), Some("qwen_code"));
        assert_eq!(found("kimi"), Some("kimi_code"));
        assert_eq!(found("Cline"), Some("cline"));
        assert_eq!(found("claude.ai"), Some("claude_ai"));
        assert_eq!(found("claude-ai"), Some("claude_ai"));
        assert_eq!(found("chatgpt"), Some("chatgpt"));
        assert_eq!(found("gpt"), Some("chatgpt"));
        assert_eq!(found("code"), None, "part of two names");
        for name in ["nobody", "", "c", "cli"] {
            assert_eq!(found(name), None, "{name}");
        }
        for source in registry() {
            assert_eq!(found(source.manifest().source), Some(source.manifest().source));
        }
    }
}
