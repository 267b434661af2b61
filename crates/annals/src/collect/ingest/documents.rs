//! Documents that are replaced as a whole: each change is a new version, and what is missing in it has ended.

use super::parse::Parse;
use annals_core::{Encoding, Framing, Result};
use annals_sources::{FileContext, Source};
use annals_store::{Batch, CapturedFile, FilePart, Packer, SEGMENT, Store};

pub struct ArchivedDocument {
    pub instance: i64,
    pub source: &'static dyn Source,
    pub path: String,
    /// What such files are, in words of the audit.
    pub store: &'static str,
    pub reader: &'static str,
    /// A row of a client's database, and no file.
    pub of_database: bool,
}

/// Whether the archive has the bytes as the file's newest version.
pub fn is_same(store: &Store, known: &CapturedFile, bytes: &[u8]) -> Result<bool> {
    let hashes = store.segment_hashes(known.id, known.version)?;
    Ok(hashes.len() == bytes.chunks(SEGMENT).count()
        && hashes
            .iter()
            .zip(bytes.chunks(SEGMENT))
            .all(|((_, _, hash), piece)| blake3::hash(piece).as_bytes() == hash))
}

impl ArchivedDocument {
    pub fn batch(self, known: Option<&CapturedFile>, bytes: &[u8]) -> Result<Batch> {
        let segments = Packer::new()?.pack(0, bytes)?;
        let context = FileContext { path: self.path.clone(), modified: None };
        let reader = self.source.reader(self.reader, &context, None);
        let mut parse = Parse::new(self.source, reader, Framing::Whole, 0, false);
        parse.feed(bytes);
        parse.finish();
        let taken = parse.take();
        Ok(Batch {
            instance: self.instance,
            file: known.map(|known| known.id),
            part: FilePart {
                unit: self.path.clone(),
                path: self.path,
                store: self.store,
                reader: self.reader,
                framing: Framing::Whole,
                encoding: Encoding::Plain,
                document: self.of_database,
                mutable: true,
            },
            new_version: true,
            replace_rows: true,
            follows_rows: true,
            supersedes: None,
            twin_of: None,
            segments,
            new_bytes: bytes.len() as u64,
            size: bytes.len() as u64,
            content_size: taken.position,
            parsed: taken.parsed,
            stat: None,
            state: taken.state,
            reader_version: self.source.manifest().reader_version,
            items: taken.items,
            facts: taken.facts.into_iter().map(|facts| (facts.session, facts.rank, facts.facts)).collect(),
            counts: taken.counts,
            problems: taken.problems,
            captures: Vec::new(),
        })
    }
}
