//! Copies of files without their secrets, for hubs with the policy `masked`: what is sent never has them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};

use super::environments::without_environments;
use crate::collect::ingest::content::decoder;
use annals_core::{Arrangement, Encoding, Result};
use annals_redact::{Redactor, SecretMatch};
use annals_sources::by_name;
use annals_sources::json::Scan;
use annals_store::{
    ContentHash, ExchangeFile, ExchangeVersion, HomeName, OwnerName, PackedBlob, Packer, SEGMENT, Store,
};

/// A document or a line that is longer cannot be checked as a whole: its file is left out.
const LONGEST: usize = 64 << 20;
/// Lines that are no JSON are masked together, up to this: a key may have several.
const LONGEST_TEXT: usize = 1 << 20;
/// Ends an element of a file that imports made.
const SEQUENCE_END: u8 = 0x1E;

/// Masks with the key of this archive, so that a secret always has the same mask.
pub struct Masker {
    redactor: Redactor,
}

/// The masked bytes of some files, on the disk of this machine until they are sent.
#[derive(Default)]
pub struct MaskedBytes {
    file: Option<File>,
    end: u64,
    /// Where each segment is, and how long.
    segments: HashMap<ContentHash, (u64, usize)>,
}

impl Masker {
    pub fn new(key: &[u8]) -> Masker {
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(key) {
            *to = *from;
        }
        Masker { redactor: Redactor::new(bytes) }
    }

    pub fn text(&self, text: &str) -> String {
        self.redactor.replace_in_document(text, &SecretMatch::to_string).into_owned()
    }

    pub fn home(&self, name: &HomeName) -> HomeName {
        let (machine, root) = (self.text(&name.machine), self.text(&name.root));
        HomeName { source: name.source.clone(), machine, root }
    }

    pub fn arrangement(&self, version: &Arrangement) -> Arrangement {
        let mut masked = version.clone();
        masked.of.target = self.text(&version.of.target);
        masked.item = self.text(&version.item);
        masked.value = version.value.as_deref().map(|value| self.text(value));
        masked
    }

    /// The file as the hub may have it; `None` if it is no text, or too long to be checked.
    pub fn file(
        &self,
        store: &Store,
        source: &str,
        file: &ExchangeFile,
        bytes: &mut MaskedBytes,
    ) -> Result<Option<ExchangeFile>> {
        let path = self.text(&file.path);
        let logical_path = match by_name(source).filter(|_| file.logical_path != file.path) {
            Some(source) => source.logical_path(&path),
            None => path.clone(),
        };
        let mut masked = ExchangeFile {
            path,
            logical_path,
            owner: match &file.owner {
                OwnerName::Other(path) => OwnerName::Other(self.text(path)),
                owner => owner.clone(),
            },
            captures: Vec::new(),
            versions: Vec::new(),
            ..file.clone()
        };
        let encoding = if file.encoding == "zstd" { Encoding::Zstd } else { Encoding::Plain };
        for version in &file.versions {
            let mut segments = Segments { into: bytes, part: Vec::new(), hashes: Vec::new(), size: 0 };
            let bytes = VersionBytes::of(store, version);
            let is_text = match encoding {
                Encoding::Plain => self.content(bytes, file, &mut segments)?,
                // What cannot be decompressed to its end, because it is still being written, cannot be checked.
                Encoding::Zstd => self.compressed(bytes, file, &mut segments).unwrap_or(false),
            };
            segments.finish()?;
            let (segments, size) = (std::mem::take(&mut segments.hashes), segments.size);
            if !is_text {
                return Ok(None);
            }
            masked.versions.push(ExchangeVersion { size, segments, ..version.clone() });
        }
        Ok(Some(masked))
    }

    fn compressed(&self, bytes: impl Read, file: &ExchangeFile, out: &mut dyn Write) -> io::Result<bool> {
        let mut encoder = zstd::stream::write::Encoder::new(out, 3)?;
        let is_text = self.content(decoder(bytes, Encoding::Zstd)?, file, &mut encoder)?;
        encoder.finish()?;
        Ok(is_text)
    }

    /// Whether all of it is text.
    fn content(&self, content: impl Read, file: &ExchangeFile, out: &mut dyn Write) -> io::Result<bool> {
        match file.framing.as_str() {
            "lines" => self.lines(content, out),
            "sequence" => self.elements(content, out),
            _ => {
                let mut document = Vec::new();
                content.take(LONGEST as u64 + 1).read_to_end(&mut document)?;
                let Ok(text) = std::str::from_utf8(&document) else { return Ok(false) };
                if text.len() > LONGEST {
                    return Ok(false);
                }
                let Some(text) = without_environments(&file.logical_path, text) else { return Ok(false) };
                out.write_all(self.text(&text).as_bytes())?;
                Ok(true)
            }
        }
    }

    fn elements(&self, content: impl Read, out: &mut dyn Write) -> io::Result<bool> {
        let mut reader = BufReader::with_capacity(1 << 20, content);
        while let Some(unit) = read_unit(&mut reader, SEQUENCE_END)? {
            let Unit { bytes, is_ended } = unit;
            if bytes.len() > LONGEST {
                return Ok(false);
            }
            if is_ended {
                out.write_all(self.text(&String::from_utf8_lossy(&bytes)).as_bytes())?;
                out.write_all(&[SEQUENCE_END])?;
            }
        }
        Ok(true)
    }

    /// Lines of JSON each, other lines together. The same start always gives the same start: a last line that is not complete
    /// yet is not sent yet.
    fn lines(&self, content: impl Read, out: &mut dyn Write) -> io::Result<bool> {
        let mut reader = BufReader::with_capacity(1 << 20, content);
        let mut text = Vec::new();
        while let Some(unit) = read_unit(&mut reader, b'\n')? {
            let Unit { bytes, is_ended } = unit;
            if bytes.len() > LONGEST {
                return Ok(false);
            }
            let is_document = Scan::new(&bytes).line().is_complete();
            if !is_document && !is_ended && bytes.starts_with(b"{") {
                break;
            }
            if is_document || text.len() + bytes.len() > LONGEST_TEXT {
                self.flush(&mut text, out)?;
            }
            if is_document {
                out.write_all(self.text(&String::from_utf8_lossy(&bytes)).as_bytes())?;
                out.write_all(if is_ended { b"\n" } else { b"" })?;
            } else {
                text.extend_from_slice(&bytes);
                text.extend_from_slice(if is_ended { b"\n" } else { b"" });
            }
        }
        self.flush(&mut text, out)?;
        Ok(true)
    }

    fn flush(&self, text: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.text(&String::from_utf8_lossy(text)).as_bytes())?;
        text.clear();
        Ok(())
    }
}

impl MaskedBytes {
    /// A segment as it is sent.
    pub fn packed(&mut self, hash: &ContentHash) -> Result<Option<PackedBlob>> {
        let (Some((offset, length)), Some(file)) = (self.segments.get(hash), &mut self.file) else {
            return Ok(None);
        };
        let mut bytes = vec![0; *length];
        file.seek(SeekFrom::Start(*offset))?;
        file.read_exact(&mut bytes)?;
        Ok(Some(PackedBlob::of(&Packer::new()?.pack_one(0, &bytes, None)?)))
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<ContentHash> {
        let hash = ContentHash::of(bytes);
        if !self.segments.contains_key(&hash) {
            let mut file = match self.file.take() {
                Some(file) => file,
                // It has no name, and its content is masked.
                None => tempfile::tempfile()?,
            };
            file.seek(SeekFrom::Start(self.end))?;
            file.write_all(bytes)?;
            self.segments.insert(hash, (self.end, bytes.len()));
            self.end += bytes.len() as u64;
            self.file = Some(file);
        }
        Ok(hash)
    }
}

/// Splits what is written into segments.
struct Segments<'b> {
    into: &'b mut MaskedBytes,
    part: Vec<u8>,
    hashes: Vec<ContentHash>,
    size: u64,
}

impl Segments<'_> {
    fn finish(&mut self) -> io::Result<()> {
        if !self.part.is_empty() {
            self.hashes.push(self.into.add(&self.part)?);
            self.part.clear();
        }
        Ok(())
    }
}

impl Write for Segments<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(SEGMENT - self.part.len());
        self.part.extend_from_slice(&bytes[..taken]);
        self.size += taken as u64;
        if self.part.len() == SEGMENT {
            self.finish()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a version, segment by segment.
struct VersionBytes<'s> {
    store: &'s Store,
    rest: &'s [ContentHash],
    part: io::Cursor<Vec<u8>>,
}

impl<'s> VersionBytes<'s> {
    fn of(store: &'s Store, version: &'s ExchangeVersion) -> VersionBytes<'s> {
        VersionBytes { store, rest: &version.segments, part: io::Cursor::default() }
    }
}

impl Read for VersionBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some((hash, rest)) = self.rest.split_first() else { return Ok(0) };
            self.part = io::Cursor::new(self.store.blob_bytes(hash).map_err(io::Error::other)?);
            self.rest = rest;
        }
    }
}

/// Bytes up to a delimiter, without it.
struct Unit {
    bytes: Vec<u8>,
    is_ended: bool,
}

/// The next unit, of which no more than the longest is read; none at the end.
fn read_unit(reader: &mut impl BufRead, delimiter: u8) -> io::Result<Option<Unit>> {
    let mut bytes = Vec::new();
    reader.take(LONGEST as u64 + 2).read_until(delimiter, &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let is_ended = bytes.last() == Some(&delimiter);
    if is_ended {
        bytes.pop();
    }
    Ok(Some(Unit { bytes, is_ended }))
}

#[cfg(test)]
mod tests {
    use super::Masker;

    fn masked(text: &str) -> String {
        let mut out = Vec::new();
        assert!(Masker::new(&[7]).lines(text.as_bytes(), &mut out).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_was_masked_before_stays_as_it_is_when_lines_are_added() {
        let secret = format!("ghp_{}", "aB3dE6gH9".repeat(4));
        let lines = [
            format!("{{\"text\": \"the key {secret}\",  \"n\": 1.50}}\n"),
            "no json\n".to_owned(),
            "{\"password\":\"sunflower-9\"}\n".to_owned(),
            "{\"half\":".to_owned(),
        ];
        let mut before = String::new();
        for count in 1..=lines.len() {
            let after = masked(&lines[..count].concat());
            assert!(
                after.starts_with(&before) && !after.contains("aB3dE6") && !after.contains("sunflower"),
                "{after}"
            );
            before = after;
        }
        assert!(before.contains(",  \"n\": 1.50}\nno json\n{\"password\":\"[secret:"), "{before}");
        assert!(!before.contains("half"), "an unfinished line waits");
    }
}
