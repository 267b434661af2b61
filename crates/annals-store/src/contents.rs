//! Reads the bytes that rows point into: the last segments are cached, those of a page are loaded together.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{self, Read};

use rusqlite::params;

use crate::blobs::{SEGMENT, Unpacker, packed_row};
use crate::damage::damage_at;
use crate::error::{Result, StoreError};
use crate::files::{encoding, segment_at};
use crate::{Archive, sql};
use annals_core::{Encoding, FileId, Raw, Span};
/// Segments that are cached unpacked, and segments that are loaded ahead.
const SEGMENTS: usize = 4;
const LOADED: usize = 32;
/// Ranges closer than this most likely share a segment.
const NEAR: u64 = 64 << 10;

/// A span to load ahead: of a row, or of the version of a file that a record points into.
#[derive(Debug, Clone, Copy)]
pub struct SpanRequest {
    pub file: FileId,
    pub version: Option<(i64, Encoding)>,
    pub span: Span,
}

/// Reads bytes of rows. Caches the last few segments, or the running decoder of a compressed transcript.
pub struct Contents<'s> {
    archive: Archive<'s>,
    unpacker: Unpacker,
    /// Visible files, in the version that rows point into.
    files: HashMap<FileId, RowsVersion>,
    /// Most recently used first.
    segments: VecDeque<CachedSegment>,
    /// The number of segments to cache.
    room: usize,
    stream: Option<DecodedStream<'s>>,
}

/// The version that rows point into.
#[derive(Clone, Copy)]
struct RowsVersion {
    version: i64,
    encoding: Encoding,
    /// As stored.
    size: u64,
}

struct CachedSegment {
    file: FileId,
    version: i64,
    start: u64,
    bytes: Vec<u8>,
}

struct DecodedStream<'s> {
    file: FileId,
    version: i64,
    decoder: Box<dyn Read + 's>,
    position: u64,
}

impl<'s> Archive<'s> {
    /// Reads the bytes of rows; fastest in the order of their offsets.
    pub fn contents(&self) -> Contents<'s> {
        Contents {
            archive: *self,
            unpacker: Unpacker::default(),
            files: HashMap::new(),
            segments: VecDeque::new(),
            room: SEGMENTS,
            stream: None,
        }
    }
}

impl<'s> Contents<'s> {
    /// The bytes of `span` in the version that rows of `file` point into.
    pub fn span(&mut self, file: FileId, span: Span) -> Result<Raw> {
        let RowsVersion { version, encoding, .. } = self.visible_file(file)?;
        self.read(file, version, encoding, span)
    }

    /// Like `span`, but fewer bytes where the file ends.
    pub fn span_until_end(&mut self, file: FileId, span: Span) -> Result<Raw> {
        let RowsVersion { version, encoding, size } = self.visible_file(file)?;
        match encoding {
            Encoding::Plain => {
                let length = span.length.min(size.saturating_sub(span.offset));
                self.plain(file, version, Span { length, ..span })
            }
            Encoding::Zstd => self.decoded(file, version, span).map(|(bytes, _)| bytes),
        }
    }

    pub fn span_of_version(
        &mut self,
        file: FileId,
        version: i64,
        encoding: Encoding,
        span: Span,
    ) -> Result<Raw> {
        self.visible_file(file)?;
        self.read(file, version, encoding, span)
    }

    /// Loads the segments of these spans, each once, with two statements. What does not fit is read on demand.
    pub fn load(&mut self, requests: &[SpanRequest]) -> Result<()> {
        self.load_files(requests)?;
        let mut ranges: BTreeMap<(FileId, i64), Vec<(u64, u64)>> = BTreeMap::new();
        for request in requests {
            let Some(rows) = self.files.get(&request.file) else { continue };
            let (version, encoding) = request.version.unwrap_or((rows.version, rows.encoding));
            // A compressed transcript is one stream, and a long line would push out all others.
            if encoding == Encoding::Plain && request.span.length <= (LOADED * SEGMENT / 2) as u64 {
                let range = (request.span.offset, request.span.offset + request.span.length);
                ranges.entry((request.file, version)).or_default().push(range);
            }
        }
        let ranges: Vec<(FileId, i64, u64, u64)> = ranges
            .into_iter()
            .flat_map(|((file, version), ranges)| {
                join_ranges(ranges).into_iter().map(move |(start, end)| (file, version, start, end))
            })
            .collect();
        let is_requested = |kept: &CachedSegment| {
            ranges.iter().any(|(file, version, start, end)| {
                (kept.file, kept.version) == (*file, *version)
                    && kept.start < *end
                    && *start < kept.start + kept.bytes.len() as u64
            })
        };
        self.segments.retain(is_requested);
        if !ranges.is_empty() {
            self.load_segments(&serde_json::to_string(&ranges)?)?;
        }
        self.room = self.segments.len().max(SEGMENTS);
        Ok(())
    }

    fn load_segments(&mut self, ranges: &str) -> Result<()> {
        let connection = &self.archive.store().connection;
        let mut statement = connection.prepare_cached(sql!(
            "select segment.file, segment.version, segment.byte_offset, segment.length, blob.packing, blob.base, blob.data,
                    blob.hash
             from json_each($1) wanted cross join segment join blob on blob.id = segment.blob
             where segment.file = json_extract(wanted.value, '$[0]')
             and segment.version = json_extract(wanted.value, '$[1]')
             and segment.byte_offset < json_extract(wanted.value, '$[3]')
             and segment.byte_offset >= coalesce((select max(before.byte_offset) from segment before
                 where before.file = json_extract(wanted.value, '$[0]')
                 and before.version = json_extract(wanted.value, '$[1]')
                 and before.byte_offset <= json_extract(wanted.value, '$[2]')), 0)"
        ))?;
        let mut rows = statement.query(params![ranges])?;
        while let Some(row) = rows.next()? {
            if self.segments.len() >= LOADED {
                break;
            }
            let (file, version) = (row.get(0)?, row.get(1)?);
            let (start, length) = (row.get::<_, i64>(2)? as u64, row.get::<_, i64>(3)? as usize);
            let is_kept = |kept: &CachedSegment| {
                (kept.file, kept.version, kept.start) == (file, version, start) && kept.bytes.len() >= length
            };
            if self.segments.iter().any(is_kept) {
                continue;
            }
            let hash = row.get_ref(7)?.as_blob().unwrap_or_default();
            let mut bytes = Vec::new();
            // What is damaged fails when it is read.
            if self.unpacker.verify(connection, &packed_row(row, 3)?, hash, &mut bytes).is_err() {
                continue;
            }
            self.segments.push_front(CachedSegment { file, version, start, bytes });
        }
        Ok(())
    }

    fn load_files(&mut self, requests: &[SpanRequest]) -> Result<()> {
        let unknown =
            requests.iter().map(|request| request.file).filter(|file| !self.files.contains_key(file));
        let unknown: BTreeSet<FileId> = unknown.collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mut statement = self.archive.prepare(sql!(
            "select file.id, rows_version, encoding, version.size
             from file join instance on instance.id = file.instance
             left join version on version.file = file.id and version.version = file.rows_version
             where file.id in (select value from json_each($1)) and {visible}"
        ))?;
        let rows = statement.query_map(params![serde_json::to_string(&unknown)?], |row| {
            Ok((row.get(0)?, rows_version(row, 1)?))
        })?;
        for row in rows {
            let (file, known) = row?;
            self.files.insert(file, known);
        }
        Ok(())
    }

    /// Fails as if the file did not exist when it is not visible.
    fn visible_file(&mut self, file: FileId) -> Result<RowsVersion> {
        if let Some(known) = self.files.get(&file) {
            return Ok(*known);
        }
        let mut statement = self.archive.prepare(sql!(
            "select rows_version, encoding, version.size from file
                 left join version on version.file = file.id and version.version = file.rows_version
                 where file.id = $1 and {visible_file}"
        ))?;
        let found = statement.query_row(params![file], |row| rows_version(row, 0))?;
        self.files.insert(file, found);
        Ok(found)
    }

    fn read(&mut self, file: FileId, version: i64, encoding: Encoding, span: Span) -> Result<Raw> {
        match encoding {
            Encoding::Plain => self.plain(file, version, span),
            Encoding::Zstd => {
                let (bytes, is_whole) = self.decoded(file, version, span)?;
                if is_whole { Ok(bytes) } else { Err(self.missing(file, version, span.offset)) }
            }
        }
    }

    fn plain(&mut self, file: FileId, version: i64, span: Span) -> Result<Raw> {
        let mut bytes = Vec::with_capacity(span.length.min(1 << 20) as usize);
        let end = span.offset + span.length;
        let mut at = span.offset;
        while at < end {
            let covers = |kept: &CachedSegment| {
                (kept.file, kept.version) == (file, version)
                    && (kept.start..kept.start + kept.bytes.len() as u64).contains(&at)
            };
            let Some(kept) = self.segments.iter().position(covers) else {
                // Evict the least recently used segment and reuse its buffer.
                let full = self.segments.len() >= self.room;
                let oldest = if full { self.segments.pop_back() } else { None };
                let mut data = oldest.map(|oldest| oldest.bytes).unwrap_or_default();
                let connection = &self.archive.store().connection;
                match segment_at(connection, &mut self.unpacker, file, version, at, &mut data)? {
                    Some(start) => {
                        self.segments.push_front(CachedSegment { file, version, start, bytes: data });
                    }
                    None => return Err(self.missing(file, version, at)),
                }
                continue;
            };
            let CachedSegment { start, bytes: data, .. } = &self.segments[kept];
            let from = (at - start) as usize;
            let to = ((end - start) as usize).min(data.len());
            bytes.extend_from_slice(&data[from..to]);
            at = start + to as u64;
        }
        Ok(Raw::new(bytes))
    }

    /// The bytes of a span, and whether they are all: there are fewer where the content ends.
    fn decoded(&mut self, file: FileId, version: i64, span: Span) -> Result<(Raw, bool)> {
        let mut stream = match self.stream.take() {
            Some(stream)
                if (stream.file, stream.version) == (file, version) && stream.position <= span.offset =>
            {
                stream
            }
            _ => {
                let stored = self.archive.store().bytes(file, version);
                let decoder = Box::new(zstd::stream::read::Decoder::new(stored)?);
                DecodedStream { file, version, decoder, position: 0 }
            }
        };
        let ahead = span.offset - stream.position;
        let skipped = io::copy(&mut stream.decoder.by_ref().take(ahead), &mut io::sink())?;
        let mut bytes = Vec::new();
        let read = stream.decoder.by_ref().take(span.length).read_to_end(&mut bytes)?;
        stream.position += skipped + read as u64;
        self.stream = Some(stream);
        Ok((Raw::new(bytes), read as u64 == span.length))
    }

    fn missing(&self, file: FileId, version: i64, offset: u64) -> StoreError {
        let connection = &self.archive.store().connection;
        StoreError::Damaged(damage_at(connection, file, version, offset, "content is missing"))
    }
}

/// The columns `rows_version, encoding, size`, the first at `at`.
fn rows_version(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<RowsVersion> {
    Ok(RowsVersion {
        version: row.get(at)?,
        encoding: encoding(row.get_ref(at + 1)?.as_str().unwrap_or_default()),
        size: row.get::<_, Option<i64>>(at + 2)?.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
    })
}

/// Sorts ranges and joins those that touch or nearly touch.
fn join_ranges(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut join_ranges: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match join_ranges.last_mut() {
            Some(last) if start < last.1 + NEAR => last.1 = last.1.max(end),
            _ => join_ranges.push((start, end)),
        }
    }
    join_ranges
}
