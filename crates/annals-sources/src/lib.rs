//! The providers: what a source is, and the registry of all sources.
//!
//! A reader turns the lines of a file into items that point back into its bytes; the source turns those bytes into blocks to
//! show. Nothing here opens a file. To read every message of a Codex rollout:
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

mod home;
mod import;
pub mod json;
mod live;
mod tape;

mod chatgpt;
mod claude_code;
mod codex_cli;
mod openai_api;
mod outside_connectors;

use std::path::PathBuf;
use std::sync::Arc;

use annals_core::{Block, Item, Manifest, SessionFacts, Time, Verdict};
use json::{Line, Scan};

pub use home::authored::REPOSITORIES;
pub use import::{
    Capture, ElementBody, Import, Intake, IntakeOptions, Judgement, KnownRecords, Member, Shape, Taking,
    path_part,
};
pub use live::{Assembled, Judged, ListPage, Listed, Listing, Live, LiveAnswer, LiveRequest, Way};
pub use outside_connectors::content_key;
pub use tape::{CallLines, Printed, Recorder, Snapshot, TapeForm};

/// All sources. Adding one is a folder, its `mod` line above and its line here.
pub fn registry() -> &'static [&'static dyn Source] {
    &[
        &codex_cli::CodexCli,
        &claude_code::ClaudeCode,
        &chatgpt::ChatGpt,
        &openai_api::OpenAiApi,
        &outside_connectors::OutsideConnectors,
    ]
}

pub fn by_name(name: &str) -> Option<&'static dyn Source> {
    registry().iter().copied().find(|source| source.manifest().source == name)
}

/// The source that programs outside of annals hand their records to.
pub fn of_programs() -> &'static dyn Source {
    &outside_connectors::OutsideConnectors
}

/// The source whose native lines go by this name.
pub fn by_format(format: &str) -> Option<&'static dyn Source> {
    registry()
        .iter()
        .copied()
        .find(|source| source.recorder().is_some_and(|recorder| recorder.form().format == format))
}

/// One provider: where its files are, how its lines read, what it declares.
pub trait Source: Sync {
    fn manifest(&self) -> &'static Manifest;

    /// Folders that may hold this source's files, whether they exist or not; none when it reads no home.
    fn homes(&self, _settings: &dyn Settings) -> Vec<Home> {
        Vec::new()
    }

    /// The same for two paths that hold the same thing: moved, or in another encoding.
    fn logical_path(&self, path: &str) -> String {
        path.to_owned()
    }

    /// A reader that goes on from what `saved` remembers, or starts at the beginning.
    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader>;

    /// The lines of a message, call or output, as blocks to show.
    fn blocks(&self, lines: &[&[u8]]) -> Vec<Block> {
        let scans: Vec<Scan<'_>> = lines.iter().map(|line| Scan::new(line)).collect();
        self.line_blocks(&scans.iter().map(Scan::line).collect::<Vec<_>>())
    }

    /// The same of lines that may be scanned already.
    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block>;

    /// A record's data where it is more than its bytes; `None` when the bytes are the record.
    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<serde_json::Value>;

    /// The working directory that a record belongs to, of those that sessions of its home ran in.
    fn project_of(&self, _stream: &str, _key: &str, _folders: &[String]) -> Option<String> {
        None
    }

    /// The file of the home that has the content which a record describes.
    fn content_of(&self, _stream: &str, _key: &str) -> Option<String> {
        None
    }

    /// The provider's own id of the response whose usage is on this line.
    fn response_id(&self, line: &[u8]) -> Option<String>;

    /// The id of a line and the one it names as its parent, if the client's lines have ids.
    fn line_ids(&self, _line: &[u8]) -> Option<LineIds> {
        None
    }

    /// What the bytes of a row say under the client's own names.
    fn native(&self, bytes: &[u8]) -> serde_json::Map<String, serde_json::Value>;

    /// Declared fields of a message beyond those that every source has.
    fn message_fields(&self, _session: &str, _bytes: &[u8]) -> serde_json::Map<String, serde_json::Value> {
        serde_json::Map::new()
    }

    /// How its sessions are told as a tape, where its calls work on files.
    fn recorder(&self) -> Option<&'static dyn Recorder> {
        None
    }

    /// How it reads files that the owner has, when it does.
    fn import(&self) -> Option<&'static dyn Import> {
        None
    }

    /// How it asks its provider through the owner's browser, when it does.
    fn live(&self) -> Option<&'static dyn Live> {
        None
    }
}

/// How a client's line is referred to.
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

/// How a source asks for its settings: by the names its manifest declares.
pub trait Settings {
    /// The value of a variable that is text; nothing when it is not set.
    fn get(&self, variable: &str) -> Option<String>;
    /// The value of a variable that is a list; empty when it is not set.
    fn list(&self, variable: &str) -> Vec<String>;
    /// The value of a variable that is on or off.
    fn flag(&self, variable: &str) -> bool;
    fn user_home(&self) -> Option<PathBuf>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Home {
    pub root: PathBuf,
    /// Where `root` stands within a whole home: empty, or `sessions` when only that folder was named.
    pub prefix: &'static str,
    pub choice: Option<Choice>,
    /// The person said that files which links lead out to are theirs as well.
    pub follows_links: bool,
    /// Folders directly below the root that the settings leave out.
    pub without: &'static [&'static str],
}

/// Which folders directly below one folder of the home are wanted, by patterns on their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub below: &'static str,
    /// All, when empty.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
}

/// What a reader may know of its file besides the bytes.
#[derive(Debug, Clone)]
pub struct FileContext {
    pub path: String,
    pub modified: Option<Time>,
}

/// Turns a file's pieces (lines, or the whole of it) into items. Pure: the same bytes give the same items, whether
/// they come in one run or in many.
pub trait Reader: Send {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict;

    /// What the next run needs to go on here.
    fn save(&self) -> String;

    /// What this file says about sessions so far.
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
    /// Higher wins.
    pub rank: u8,
    pub facts: SessionFacts,
}
