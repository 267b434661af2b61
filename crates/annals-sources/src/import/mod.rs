//! What a source imports: exports, traces, drop directories.
//!
//! A container (file, folder, zip) has members, a member has elements. For each import a source makes an `Intake`,
//! which identifies each member and assigns each element to a file of the archive. That file grows with every capture;
//! equal bytes are captured once.

pub(crate) mod captures;
pub(crate) mod sidecar;

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::Settings;
use crate::json::Json;
use annals_core::{Result, Time};

pub trait Import: Sync {
    /// Creates an intake for one container, or for the whole import if it surveys elements first. It may have state.
    fn intake(&self, options: IntakeOptions, settings: &dyn Settings) -> Box<dyn Intake>;

    /// Folders that `sync` checks for new files.
    fn drop_folders(&self, settings: &dyn Settings) -> Vec<PathBuf>;
}

/// Options of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IntakeOptions {
    /// Also take images, audio and other files, which are large.
    pub with_files: bool,
}

pub trait Intake {
    /// Receives the names of all members before the first is judged; those of nested zips come later.
    fn names(&mut self, _names: &[&str]) {}

    /// Why a member must not be opened, decided by its name.
    fn leaves_closed(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// Identifies a member by its name and first bytes. Sources are tried in the order of the registry until one
    /// recognises it.
    fn judge(&mut self, member: &Member<'_>) -> Judgement;

    /// Receives the header fields of the container whose members follow.
    fn begin(&mut self, _container: &Map<String, Value>) {}

    /// Whether `survey` gets all elements of all containers before the first is taken. `finish` is then called at the
    /// end of the import, and its captures have the header of their container.
    fn surveys_first(&self) -> bool {
        false
    }

    /// Receives an element before any is taken, for an intake whose elements depend on each other.
    fn survey(&mut self, _member: &Member<'_>, _element: &[u8]) {}

    /// Turns an element into captures; nothing else of it is kept. Returns `None` for an element that is not what its
    /// member was taken for. It is then kept aside unchanged, unless its member has secrets.
    fn take<'e>(
        &mut self,
        member: &Member<'_>,
        element: &'e [u8],
        archive: &dyn KnownRecords,
    ) -> Result<Option<Vec<Capture<'e>>>>;

    /// Returns captures that need all elements.
    fn finish(&mut self, _archive: &dyn KnownRecords) -> Result<Vec<Capture<'static>>> {
        Ok(Vec::new())
    }

    /// Takes the warnings for the user since the last call.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Members that the container lists but does not contain.
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Records that are already archived.
pub trait KnownRecords {
    /// The session of a record of this source, if the record exists.
    fn session_of(&self, stream: &str, key: &str) -> Result<Option<String>>;
}

/// A file in a container, before it is read.
#[derive(Debug, Clone, Copy)]
pub struct Member<'m> {
    /// Its path in the container, with `/`. Nested containers prepend their names.
    pub name: &'m str,
    pub size: u64,
    pub modified: Option<Time>,
    /// Its first bytes while it is judged, at most 64 KiB.
    pub head: &'m [u8],
}

impl<'m> Member<'m> {
    pub fn base_name(&self) -> &'m str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }

    /// Names and values of the first object in the head: the document, its first element, or the first line. A value
    /// that the head cuts off is missing.
    pub fn first_fields(&self) -> Vec<(&'m [u8], Option<Json<'m>>)> {
        let text = self.head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(self.head);
        let open = text.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b'['));
        Json::fields_of_start(open.map_or(&[], |open| &text[open..]))
    }
}

/// How a source judges a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Another source may recognise it.
    Unknown,
    Take(Taking),
    /// Recognised but not kept, with the reason.
    LeaveOut(&'static str),
    /// A nested zip to open.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// A user-facing word for its content, such as `conversations`.
    pub what: &'static str,
    pub shape: Shape,
    /// Members are read in this order, then by name with numbers compared as numbers.
    pub order: u8,
    /// It contains secrets that `take` removes: what is not taken is not kept at all.
    pub has_secrets: bool,
}

/// How a member is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The elements of an array, or a sequence of values: one object, or lines.
    Elements,
    /// The elements of the array at this path of names.
    Within(&'static [&'static str]),
    /// One document, up to 256 MiB.
    Whole,
    /// Bytes of any length. `take` gets the first of them, and returns a capture with `ElementBody::Member`.
    Bytes,
}

/// Something to archive.
#[derive(Debug)]
pub struct Capture<'e> {
    /// The file of the archive that it goes to.
    pub path: String,
    /// A description of such files in the audit.
    pub store: &'static str,
    /// The source's reader for it.
    pub reader: &'static str,
    /// Further fields for the header of the capture.
    pub header: Map<String, Value>,
    pub body: ElementBody<'e>,
    /// Whether it is counted for the user: a conversation is, a note about a file in it is not.
    pub counts: bool,
}

#[derive(Debug)]
pub enum ElementBody<'e> {
    /// Appended to the file after its header.
    Text(Cow<'e, [u8]>),
    /// The whole member is the file.
    Member,
}

/// A name that is a single path component on every system. Other names are replaced by their hash.
pub fn path_part(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let safe = !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(plain);
    if safe { name.to_owned() } else { format!("x-{}", &blake3::hash(name.as_bytes()).to_hex()[..32]) }
}
