//! Appends captures of imports to files of the archive: header, text, and rows of what is new.

use std::io::{self, Read};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::content::CHUNK;
use super::forgotten::blank;
use super::parse::{Parse, SEQUENCE_END};
use super::target::Target;
use annals_core::{Forgotten, Framing, Result, to_hex};
use annals_store::{Batch, CapturedFile, Packer, SEGMENT, Store};

/// The field of a header with the SHA-256 of the bytes that came with a note.
pub const CONTENT_HASH: &str = "content_sha256";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendKind {
    New,
    Changed,
}

/// Builds batches on top of what is committed.
pub struct Appender {
    store: Store,
    packer: Packer,
    forgotten: Forgotten,
}

impl Appender {
    pub fn new(store: Store) -> Result<Appender> {
        let forgotten = store.forgotten()?;
        Ok(Appender { store, packer: Packer::new()?, forgotten })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Adds the texts that the file does not have yet, in one batch. Returns for each text whether it was added.
    pub fn append_texts(
        &mut self,
        target: &Target,
        texts: &[(Map<String, Value>, &[u8])],
    ) -> Result<(Vec<Option<AppendKind>>, Option<Batch>)> {
        if self.is_forgotten(target)? {
            return Ok((texts.iter().map(|_| None).collect(), None));
        }
        let known = self.store.captured_file(target.instance, &target.part.path)?;
        let (mut pieces, mut hashes, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for (header, body) in texts {
            let hash = short(&blake3::hash(body));
            let captured = match &known {
                Some(file) => self.store.has_capture(file.id, &hash)?,
                None => false,
            };
            if captured || hashes.contains(&hash) {
                added.push(None);
                continue;
            }
            added.push(Some(if known.is_none() && hashes.is_empty() {
                AppendKind::New
            } else {
                AppendKind::Changed
            }));
            pieces.extend(serde_json::to_vec(header)?);
            pieces.push(SEQUENCE_END);
            let start = pieces.len();
            pieces.extend_from_slice(body);
            blank(&mut pieces[start..], &self.forgotten, &target.part.path, Framing::Whole)?;
            pieces.push(SEQUENCE_END);
            hashes.push(hash);
        }
        if hashes.is_empty() {
            return Ok((added, None));
        }
        let mut batch = self.append(target.clone().framed(Framing::Sequence), known.as_ref(), pieces)?;
        batch.captures = hashes;
        Ok((added, Some(batch)))
    }

    /// Appends complete lines unchanged.
    pub fn append_lines(&mut self, target: &Target, lines: &[u8]) -> Result<Batch> {
        let known = self.store.captured_file(target.instance, &target.part.path)?;
        let mut lines = lines.to_vec();
        blank(&mut lines, &self.forgotten, &target.part.path, Framing::Lines)?;
        self.append(target.clone().framed(Framing::Lines), known.as_ref(), lines)
    }

    fn append(&mut self, target: Target, known: Option<&CapturedFile>, mut pieces: Vec<u8>) -> Result<Batch> {
        let mut parse = target.parse(None);
        let mut bytes = match known {
            Some(known) => self.replay(known, &mut parse)?,
            None => Vec::new(),
        };
        parse.feed(&pieces);
        parse.finish();
        let before = known.map_or(0, |known| known.size);
        let start = before - before % SEGMENT as u64;
        // The usual case of a new file: nothing has to be copied.
        if bytes.is_empty() {
            bytes = pieces;
        } else {
            bytes.append(&mut pieces);
        }
        let batch = target.batch(known.map(|known| known.id), Some(parse.take()));
        let (segments, size) = (self.packer.pack(start, &bytes)?, start + bytes.len() as u64);
        Ok(Batch { new_version: known.is_none(), segments, size, new_bytes: size - before, ..batch })
    }

    /// Writes a separate file; `None` if the archive has it unchanged.
    pub fn write_whole(&mut self, target: &Target, body: &[u8]) -> Result<Option<(AppendKind, Batch)>> {
        let hash = short(&blake3::hash(body));
        let mut batches = Vec::new();
        let added = self.write_stream(target, &hash, &mut &*body, &mut |batch| {
            batches.push(batch);
            Ok(())
        })?;
        let Some(added) = added else { return Ok(None) };
        let mut batches = batches.into_iter();
        let Some(mut first) = batches.next() else { return Ok(None) };
        for more in batches {
            first.segments.extend(more.segments);
            first.new_bytes += more.new_bytes;
            first.size = more.size;
            first.captures = more.captures;
            // A whole document is parsed once it is complete.
            first.rows = more.rows;
        }
        Ok(Some((added, first)))
    }

    /// Hashes all bytes of a stream; also returns their SHA-256.
    pub fn hash(input: &mut dyn Read) -> io::Result<([u8; 16], String)> {
        let (mut hasher, mut sha256) = (blake3::Hasher::new(), Sha256::new());
        let mut chunk = vec![0; CHUNK];
        loop {
            match input.read(&mut chunk)? {
                0 => return Ok((short(&hasher.finalize()), to_hex(&sha256.finalize()))),
                read => {
                    hasher.update(&chunk[..read]);
                    sha256.update(&chunk[..read]);
                }
            }
        }
    }

    /// Like `write_whole`, in chunks, for a file of any size. All batches must be in one transaction.
    pub fn write_stream(
        &mut self,
        target: &Target,
        hash: &[u8; 16],
        input: &mut dyn Read,
        emit: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<Option<AppendKind>> {
        self.write_framed(target.clone().framed(Framing::Whole), hash, input, emit)
    }

    /// The same, for a file of lines.
    pub fn write_lines(
        &mut self,
        target: &Target,
        hash: &[u8; 16],
        input: &mut dyn Read,
        emit: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<Option<AppendKind>> {
        self.write_framed(target.clone().framed(Framing::Lines), hash, input, emit)
    }

    fn write_framed(
        &mut self,
        target: Target,
        hash: &[u8; 16],
        input: &mut dyn Read,
        emit: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<Option<AppendKind>> {
        let Some(known) = self.unless_captured(&target, hash)? else { return Ok(None) };
        // What was forgotten is looked for only where something was.
        let mut whole = Vec::new();
        let mut filtered: Box<dyn Read + '_> = if self.forgotten.is_empty() {
            Box::new(input)
        } else {
            input.read_to_end(&mut whole)?;
            let (path, framing) = (target.part.path.as_str(), target.part.framing);
            blank(&mut whole, &self.forgotten, path, framing)?;
            Box::new(whole.as_slice())
        };
        let input = &mut *filtered;
        let added = if known.is_some() { AppendKind::Changed } else { AppendKind::New };
        let mut parse = target.parse(None);
        let (mut size, mut first) = (0, true);
        loop {
            let mut chunk = Vec::new();
            input.take(CHUNK as u64).read_to_end(&mut chunk)?;
            let last = chunk.len() < CHUNK;
            parse.feed(&chunk);
            if last {
                parse.finish();
            }
            let new_version = std::mem::replace(&mut first, false);
            let segments = self.packer.pack(size, &chunk)?;
            size += chunk.len() as u64;
            let batch = Batch {
                new_version,
                drops_rows: new_version && known.is_some(),
                segments,
                size,
                new_bytes: chunk.len() as u64,
                captures: if last { vec![*hash] } else { Vec::new() },
                ..target.batch(known.as_ref().map(|known| known.id), Some(parse.take()))
            };
            emit(batch)?;
            if last {
                return Ok(Some(added));
            }
        }
    }

    /// Whether the file was forgotten as a whole: a newer state of it has the same content.
    fn is_forgotten(&self, target: &Target) -> Result<bool> {
        let name = self.forgotten.file_name(&target.part.path);
        Ok(self.store.captured_file(target.instance, &name)?.is_some())
    }

    /// The file, if there is one; the outer `None` if it already has the text.
    fn unless_captured(&self, target: &Target, hash: &[u8; 16]) -> Result<Option<Option<CapturedFile>>> {
        if self.is_forgotten(target)? {
            return Ok(None);
        }
        let known = self.store.captured_file(target.instance, &target.part.path)?;
        match &known {
            Some(file) if self.store.has_capture(file.id, hash)? => Ok(None),
            _ => Ok(Some(known)),
        }
    }

    /// Feeds all earlier captures to the reader to restore its state; few files have many. Returns the bytes of the
    /// last segment, unless it is full.
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
}

fn short(hash: &blake3::Hash) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&hash.as_bytes()[..16]);
    first
}
