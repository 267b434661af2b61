//! What a source must provide so that its sessions can be exported as tapes and lines traced to its calls.

pub(crate) mod diff;
pub(crate) mod shell_read;

use crate::json::Line;
use annals_core::FileWork;

/// How one provider's lines are told as a tape. Pure: the same bytes give the same answers.
pub trait Recorder: Sync {
    fn form(&self) -> &'static TapeForm;

    /// A name for lines that come without a file: what the client would have called it.
    fn name_of(&self, line: &[u8]) -> Option<String>;

    /// The folder that this line says it was written in.
    fn folder(&self, line: &[u8]) -> Option<String>;

    /// What a line of a known type has to have and lacks.
    fn missing(&self, line: &[u8]) -> Option<&'static str>;

    /// The arguments of a call in the client's own words.
    fn arguments(&self, call: &[u8]) -> String;

    fn printed(&self, lines: &CallLines<'_>) -> Printed;

    /// What a call that succeeded did to files or saw of them; nothing where that cannot be proven.
    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork>;

    /// Texts that a call puts into files, as far as the call itself tells.
    fn written(&self, call: Line<'_>) -> Vec<String>;

    /// Lines that were put into files and that only the client's record of the call tells.
    fn written_besides(&self, detail: Line<'_>) -> Vec<String>;

    /// The session that a kept copy of a file belongs to, and the record that says which file it was.
    fn snapshot(&self, path: &str) -> Option<Snapshot>;

    /// A line of an output as it is in the file that was read.
    fn unnumbered<'l>(&self, line: &'l str) -> &'l str;
}

/// Whose copy of a file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub session: String,
    pub stream: &'static str,
    pub key: String,
}

/// What a provider's tapes are called.
#[derive(Debug)]
pub struct TapeForm {
    /// Name of the native lines, as `annals record --format` takes it.
    pub format: &'static str,
    pub harness: &'static str,
    /// Who makes the models, where a format wants models named with their makers.
    pub vendor: &'static str,
    /// Stands before the words that say what could not be known.
    pub flag: &'static str,
    /// The reader of such lines, and of a file that is one document.
    pub lines_reader: &'static str,
    pub document_reader: Option<&'static str>,
}

/// The bytes that tell of one call, as far as they are there.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallLines<'a> {
    pub call: &'a [u8],
    pub output: Option<&'a [u8]>,
    /// The client's own record of it.
    pub detail: Option<&'a [u8]>,
    /// Where relative paths start.
    pub folder: Option<&'a str>,
}

/// What a call printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    pub stdout: String,
    pub stderr: String,
}
