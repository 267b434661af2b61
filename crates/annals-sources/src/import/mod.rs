//! What a source imports: exports, traces, drop directories.
//!
//! A container (file, folder, zip) has members, a member has elements. For each import a source makes an `Intake`, which
//! says of each member what it is, and of each element where it goes: to a file of the archive, which grows with every
//! capture. What was captured before, byte for byte, is not captured again.

pub(crate) mod captures;

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::Settings;
use crate::json::Json;
use annals_core::{Result, Time};

pub trait Import: Sync {
    /// One for each container, or for the whole import when it looks first; it may remember what it saw.
    fn intake(&self, wish: IntakeOptions, settings: &dyn Settings) -> Box<dyn Intake>;

    /// Folders that `sync` looks into for new files.
    fn drop_folders(&self, settings: &dyn Settings) -> Vec<PathBuf>;
}

/// What the person asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IntakeOptions {
    /// Also images, audio and other files, which are large.
    pub with_files: bool,
}

pub trait Intake {
    /// The names of all members, before the first is judged; those of zips within come later.
    fn names(&mut self, _names: &[&str]) {}

    /// Why a member is not even opened, by its name alone.
    fn leaves_closed(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// What a member is, by its name and its first bytes. Every source is asked, in the order of the registry, until
    /// one knows it.
    fn judge(&mut self, member: &Member<'_>) -> Judgement;

    /// What headers say of the container whose members come now.
    fn begin(&mut self, _container: &Map<String, Value>) {}

    /// Whether `look` wants to see all elements, of all containers of an import, before the first is taken; `finish` is
    /// then asked at the end of the import, and its captures carry the header of their container.
    fn looks_first(&self) -> bool {
        false
    }

    /// An element before any is taken: what elements have to know of each other.
    fn look(&mut self, _member: &Member<'_>, _element: &[u8]) {}

    /// What becomes of an element. Nothing that is not in a capture is kept. An element that is not what its member
    /// was taken for gives `None`, and is kept aside as it is, unless its member has secrets.
    fn take<'e>(
        &mut self,
        member: &Member<'_>,
        element: &'e [u8],
        archive: &dyn KnownRecords,
    ) -> Result<Option<Vec<Capture<'e>>>>;

    /// What is known only when all was seen.
    fn finish(&mut self, _archive: &dyn KnownRecords) -> Result<Vec<Capture<'static>>> {
        Ok(Vec::new())
    }

    /// What to tell the person besides, since the last time it was asked.
    fn problems(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Members that the container itself says it has, and that are not there.
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Records that are archived already.
pub trait KnownRecords {
    /// The session of a record of this source, if there is such a record.
    fn session_of(&self, stream: &str, key: &str) -> Result<Option<String>>;
}

/// A file in a container, before it is read.
#[derive(Debug, Clone, Copy)]
pub struct Member<'m> {
    /// Its path in the container, with `/`. Containers in it have their own names before it.
    pub name: &'m str,
    pub size: u64,
    pub modified: Option<Time>,
    /// Its first bytes when it is judged, 64 KiB at most.
    pub head: &'m [u8],
}

impl<'m> Member<'m> {
    pub fn base_name(&self) -> &'m str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }

    /// Names and values of the first object in the head: the document, the first of its elements, or the first line. The
    /// last value is missing where the head ends within it.
    pub fn first_fields(&self) -> Vec<(&'m [u8], Option<Json<'m>>)> {
        let text = self.head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(self.head);
        let open = text.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b'['));
        Json::fields_of_start(open.map_or(&[], |open| &text[open..]))
    }
}

/// What a member is to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Somebody else may know it.
    Unknown,
    Take(Taking),
    /// Known, and not kept, with the reason.
    LeaveOut(&'static str),
    /// A zip to look into.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// What it is, in a word for people: `conversations`.
    pub what: &'static str,
    pub shape: Shape,
    /// Members are read in the order of this, then of their names, numbers in them as numbers.
    pub order: u8,
    /// It holds secrets that `take` removes: what is not taken is not kept at all.
    pub has_secrets: bool,
}

/// How a member comes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The elements of an array, or values one after another: one object, lines.
    Elements,
    /// The elements of an array that is behind these names.
    Within(&'static [&'static str]),
    /// One document, up to 256 MiB.
    Whole,
    /// Bytes of any length. `take` sees the first of them, and answers with a capture of `ElementBody::Member`.
    Bytes,
}

/// Something to keep.
#[derive(Debug)]
pub struct Capture<'e> {
    /// The file of the archive that it goes to.
    pub path: String,
    /// What such files are, in words of the audit.
    pub store: &'static str,
    /// The source's reader for it.
    pub reader: &'static str,
    /// Told in the header of the capture, beside where it came from.
    pub header: Map<String, Value>,
    pub body: ElementBody<'e>,
    /// Whether people count it: a conversation, and not a note about a file in it.
    pub counts: bool,
}

#[derive(Debug)]
pub enum ElementBody<'e> {
    /// Added to the file, behind its header and those before it.
    Text(Cow<'e, [u8]>),
    /// The whole member is the file.
    Member,
}

/// A name that is a single part of a path on every system; other names are replaced by a hash of themselves.
pub fn path_part(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let safe = !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(plain);
    if safe { name.to_owned() } else { format!("x-{}", &blake3::hash(name.as_bytes()).to_hex()[..32]) }
}
