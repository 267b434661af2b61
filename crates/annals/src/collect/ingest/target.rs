//! A file of the archive that a run writes to: how it is read, and what its batches have in common.

use super::parse::Parse;
use annals_core::{Encoding, FileId, Framing, InstanceId, Time};
use annals_sources::{FileContext, Source};
use annals_store::{Batch, FilePart, ReadRows};

#[derive(Clone)]
pub struct Target {
    pub instance: InstanceId,
    pub source: &'static dyn Source,
    pub part: FilePart,
}

impl Target {
    /// A file that exists only in the archive. `store` describes such files in the audit.
    pub fn archived(
        instance: InstanceId,
        source: &'static dyn Source,
        path: &str,
        store: &'static str,
        reader: &'static str,
    ) -> Target {
        let part = FilePart {
            path: path.to_owned(),
            logical_path: path.to_owned(),
            store,
            reader,
            framing: Framing::Whole,
            encoding: Encoding::Plain,
            document: false,
            mutable: false,
        };
        Target { instance, source, part }
    }

    pub fn framed(mut self, framing: Framing) -> Target {
        self.part.framing = framing;
        self
    }

    /// Marks it as replaced as a whole: records missing from a new version have ended.
    pub fn mutable(mut self) -> Target {
        self.part.mutable = true;
        self
    }

    /// Marks it as a row of a client's database.
    pub fn database_row(mut self) -> Target {
        self.part.document = true;
        self
    }

    /// Parses the file from its start.
    pub fn parse(&self, modified: Option<Time>) -> Parse {
        self.parse_from(modified, None, 0, false)
    }

    /// Continues at `parsed` with the state of the reader. `inside_line`: a line was read there without its newline.
    pub fn parse_from(
        &self,
        modified: Option<Time>,
        saved: Option<&str>,
        parsed: u64,
        inside_line: bool,
    ) -> Parse {
        let context = FileContext { path: self.part.path.clone(), modified };
        let reader = self.source.reader(self.part.reader, &context, saved);
        Parse::new(self.source, reader, self.part.framing, parsed, inside_line)
    }

    pub fn batch(&self, known: Option<FileId>, rows: Option<ReadRows>) -> Batch {
        let reader_version = self.source.manifest().reader_version;
        let described_by = self.source.described_by(&self.part.path);
        Batch { rows, reader_version, described_by, ..Batch::new(self.instance, known, self.part.clone()) }
    }
}
