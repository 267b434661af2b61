//! What a source must provide so that its sessions can be exported as tapes and lines traced to its calls.

pub(crate) mod diff;
pub(crate) mod numbered;
pub(crate) mod shell_read;
pub(crate) mod unified;

use crate::json::{Line, Scan};
use crate::{FileContext, Source, registry};
use annals_core::{FileWork, SessionFacts, Verdict};

/// Converts one provider's lines to a tape. Pure: the same bytes give the same results.
pub trait Recorder: Sync {
    fn form(&self) -> &'static TapeForm;

    /// Who serves the models of a session, for a tape whose lines name no model.
    fn provider<'f>(&self, _facts: &'f SessionFacts) -> &'f str {
        self.form().vendor
    }

    /// A file name for lines without a file, as the client would have named it.
    fn name_of(&self, line: &[u8]) -> Option<String>;

    /// The working directory on this line.
    fn folder(&self, line: &[u8]) -> Option<String>;

    /// A required field that a line of a known type lacks.
    fn missing(&self, line: &[u8]) -> Option<&'static str>;

    /// The arguments of a call, as the client wrote them.
    fn arguments(&self, call: &[u8]) -> String;

    fn printed(&self, lines: &CallLines<'_>) -> Printed;

    /// What a successful call did to files or read from them; empty if that cannot be proven.
    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork>;

    /// Texts that a call writes to files, as far as the call itself contains them.
    fn written(&self, call: Line<'_>) -> Vec<String>;

    /// Lines written to files that only the client's record of the call contains.
    fn written_besides(&self, detail: Line<'_>) -> Vec<String>;

    /// The session of a copy of a file that the client kept, and the record that names the file.
    fn snapshot(&self, path: &str) -> Option<Snapshot>;

    /// A line of an output without the line number that the client added.
    fn unnumbered<'l>(&self, line: &'l str) -> &'l str;
}

/// A transcript whose client is known.
pub struct RecognisedTranscript {
    pub source: &'static dyn Source,
    pub reader: &'static str,
    /// The file as the client would have named it.
    pub name: String,
}

/// Lines that are looked at to find out whose a transcript is.
const SNIFFED_LINES: usize = 200;

/// Finds the client that wrote a transcript, from its first lines.
pub fn recognise_transcript(start: &[u8]) -> Option<RecognisedTranscript> {
    let lines = || start.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(SNIFFED_LINES);
    let found = registry().iter().copied().filter_map(|source| {
        let recorder = source.recorder()?;
        let reader = recorder.form().lines_reader;
        let name = lines().find_map(|line| recorder.name_of(line))?;
        let file = FileContext { path: name.clone(), modified: None };
        let mut reading = source.reader(reader, &file, None);
        let verdicts = lines().map(|line| reading.read(0, Scan::new(line).line(), &mut Vec::new()));
        let known = verdicts.filter(|verdict| matches!(verdict, Verdict::Kept(_))).count();
        (known > 0).then_some((known, RecognisedTranscript { source, reader, name }))
    });
    found.max_by_key(|(known, _)| *known).map(|(_, found)| found)
}

/// The origin of a copy of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub session: String,
    pub stream: &'static str,
    pub key: String,
}

/// Names in a provider's tapes.
#[derive(Debug)]
pub struct TapeForm {
    /// The name of the native format, for `annals record --format`.
    pub format: &'static str,
    pub harness: &'static str,
    /// The vendor of the models, for formats that name models with their vendor.
    pub vendor: &'static str,
    /// Prefix of explanations of what could not be determined.
    pub flag: &'static str,
    /// The reader of such lines, and of a file that is one document.
    pub lines_reader: &'static str,
    pub document_reader: Option<&'static str>,
}

/// The lines of one call, as far as they are available.
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
