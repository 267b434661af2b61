//! Appends captures of imports to the archive's own files: header, text, and rows of what is new.

use std::io::{self, Read};

use serde_json::{Map, Value};

use super::capture::CHUNK;
use super::parse::{Parse, SEQUENCE_END};
use annals_core::{Encoding, Framing, Result};
use annals_sources::{FileContext, Source};
use annals_store::{Batch, CapturedFile, FilePart, Packer, SEGMENT, Store};

/// A file of the archive that imports add to.
pub struct Target<'t> {
    pub instance: i64,
    pub source: &'static dyn Source,
    pub path: &'t str,
    pub store: &'static str,
    pub reader: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    New,
    Changed,
}

/// Makes batches; sees what is committed.
pub struct Appender {
    store: Store,
    packer: Packer,
}

impl Appender {
    pub fn new(store: Store) -> Result<Appender> {
        Ok(Appender { store, packer: Packer::new()? })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Adds the texts that the file does not have yet, in one batch; tells of each whether it was new.
    pub fn texts(
        &mut self,
        target: &Target<'_>,
        texts: &[(Map<String, Value>, &[u8])],
    ) -> Result<(Vec<Option<Added>>, Option<Batch>)> {
        let known = self.store.captured_file(target.instance, target.path)?;
        let (mut pieces, mut hashes, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for (header, body) in texts {
            let hash = short(&blake3::hash(body));
            let captured = match &known {
                Some(file) => self.store.has_capture(file.id, &hash)?,
                None => false,
            };
            if captured || hashes.contains(&hash) {
                told.push(None);
                continue;
            }
            told.push(Some(if known.is_none() && hashes.is_empty() { Added::New } else { Added::Changed }));
            pieces.extend(serde_json::to_vec(header)?);
            pieces.push(SEQUENCE_END);
            pieces.extend_from_slice(body);
            pieces.push(SEQUENCE_END);
            hashes.push(hash);
        }
        if hashes.is_empty() {
            return Ok((told, None));
        }
        let mut batch = self.append(target, known.as_ref(), Framing::Sequence, pieces)?;
        batch.captures = hashes;
        Ok((told, Some(batch)))
    }

    /// Adds whole lines as they are.
    pub fn lines(&mut self, target: &Target<'_>, lines: &[u8]) -> Result<Batch> {
        let known = self.store.captured_file(target.instance, target.path)?;
        self.append(target, known.as_ref(), Framing::Lines, lines.to_vec())
    }

    fn append(
        &mut self,
        target: &Target<'_>,
        known: Option<&CapturedFile>,
        framing: Framing,
        mut pieces: Vec<u8>,
    ) -> Result<Batch> {
        let mut parse = self.parse(target, framing);
        let mut bytes = match known {
            Some(known) => self.replay(known, &mut parse)?,
            None => Vec::new(),
        };
        parse.feed(&pieces);
        parse.finish();
        let before = known.map_or(0, |known| known.size);
        let start = before - before % SEGMENT as u64;
        // Most files begin here: nothing has to be copied.
        if bytes.is_empty() {
            bytes = pieces;
        } else {
            bytes.append(&mut pieces);
        }
        let mut batch = self.batch(target, known, framing, &mut parse);
        batch.segments = self.packer.pack(start, &bytes)?;
        batch.size = start + bytes.len() as u64;
        batch.new_bytes = batch.size - before;
        Ok(batch)
    }

    /// A file of its own: nothing when it is there as it is.
    pub fn whole(&mut self, target: &Target<'_>, body: &[u8]) -> Result<Option<(Added, Batch)>> {
        let hash = short(&blake3::hash(body));
        let mut batches = Vec::new();
        let added = self.stream(target, &hash, &mut &*body, &mut |batch| {
            batches.push(batch);
            Ok(())
        })?;
        let Some(added) = added else { return Ok(None) };
        let mut batches = batches.into_iter();
        let Some(mut first) = batches.next() else { return Ok(None) };
        for more in batches {
            first.segments.extend(more.segments);
            first.items.extend(more.items);
            first.counts.extend(more.counts);
            first.problems.extend(more.problems);
            first.facts = more.facts;
            first.new_bytes += more.new_bytes;
            first.captures = more.captures;
            (first.size, first.content_size, first.parsed) = (more.size, more.content_size, more.parsed);
        }
        Ok(Some((added, first)))
    }

    /// Hash of all bytes of a stream.
    pub fn hash(input: &mut dyn Read) -> io::Result<[u8; 16]> {
        let mut hasher = blake3::Hasher::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            match input.read(&mut chunk)? {
                0 => return Ok(short(&hasher.finalize())),
                read => hasher.update(&chunk[..read]),
            };
        }
    }

    /// The same in pieces, for a file of any size. All of them belong into one transaction.
    pub fn stream(
        &mut self,
        target: &Target<'_>,
        hash: &[u8; 16],
        input: &mut dyn Read,
        see: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<Option<Added>> {
        let Some(known) = self.unless_captured(target, hash)? else { return Ok(None) };
        let added = if known.is_some() { Added::Changed } else { Added::New };
        let mut parse = self.parse(target, Framing::Whole);
        let (mut place, mut first) = (0, true);
        loop {
            let mut chunk = Vec::new();
            input.take(CHUNK as u64).read_to_end(&mut chunk)?;
            let last = chunk.len() < CHUNK;
            parse.feed(&chunk);
            if last {
                parse.finish();
            }
            let mut batch = self.batch(target, known.as_ref(), Framing::Whole, &mut parse);
            batch.new_version = std::mem::replace(&mut first, false);
            batch.replace_rows = batch.new_version && known.is_some();
            batch.segments = self.packer.pack(place, &chunk)?;
            place += chunk.len() as u64;
            batch.size = place;
            batch.new_bytes = chunk.len() as u64;
            if last {
                batch.captures = vec![*hash];
            }
            see(batch)?;
            if last {
                return Ok(Some(added));
            }
        }
    }

    /// The file, if there is one; nothing when it has the text.
    fn unless_captured(&self, target: &Target<'_>, hash: &[u8; 16]) -> Result<Option<Option<CapturedFile>>> {
        let known = self.store.captured_file(target.instance, target.path)?;
        match &known {
            Some(file) if self.store.has_capture(file.id, hash)? => Ok(None),
            _ => Ok(Some(known)),
        }
    }

    fn parse(&self, target: &Target<'_>, framing: Framing) -> Parse {
        let context = FileContext { path: target.path.to_owned(), modified: None };
        let reader = target.source.reader(target.reader, &context, None);
        Parse::new(target.source, reader, framing, 0, false)
    }

    /// The reader sees all earlier captures again: they are what it knows, and few files have many. Answers the bytes of
    /// the last segment, unless it is full.
    fn replay(&self, known: &CapturedFile, parse: &mut Parse) -> Result<Vec<u8>> {
        let mut stored = self.store.bytes(known.id, known.version);
        let mut chunk = Vec::new();
        loop {
            chunk.clear();
            let read = stored.by_ref().take(CHUNK as u64).read_to_end(&mut chunk)?;
            parse.replay(&chunk);
            if read < CHUNK {
                return Ok(chunk.split_off(read - read % SEGMENT));
            }
        }
    }

    fn batch(
        &self,
        target: &Target<'_>,
        known: Option<&CapturedFile>,
        framing: Framing,
        parse: &mut Parse,
    ) -> Batch {
        let taken = parse.take();
        Batch {
            instance: target.instance,
            file: known.map(|known| known.id),
            part: FilePart {
                path: target.path.to_owned(),
                unit: target.path.to_owned(),
                store: target.store,
                reader: target.reader,
                framing,
                encoding: Encoding::Plain,
                document: false,
                mutable: false,
            },
            new_version: known.is_none(),
            replace_rows: false,
            follows_rows: true,
            supersedes: None,
            twin_of: None,
            segments: Vec::new(),
            new_bytes: 0,
            size: 0,
            content_size: taken.position,
            parsed: taken.parsed,
            stat: None,
            state: taken.state,
            reader_version: target.source.manifest().reader_version,
            items: taken.items,
            facts: taken.facts.into_iter().map(|facts| (facts.session, facts.rank, facts.facts)).collect(),
            counts: taken.counts,
            problems: taken.problems,
            captures: Vec::new(),
        }
    }
}

fn short(hash: &blake3::Hash) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&hash.as_bytes()[..16]);
    first
}
