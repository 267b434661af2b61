//! Captures one file: detects appends and rewrites, packs bytes into segments, reads new lines.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::blank::Allowed;
use super::content::{CHUNK, cannot_decode, decoder, read_content, same_bytes};
use super::forgotten::Shape;
use super::parse::Parse;
use super::target::Target;
use crate::collect::home::plan::{Job, RowsPlan};
use crate::collect::home::walk::stat_of;
use annals_core::{
    Encoding, FORGOTTEN_FILES, FailureKind, FileId, Forgotten, Framing, GapStream, InstanceId,
};
use annals_store::{
    Batch, CapturedFile, FilePart, Packer, ReadRows, RowsOwner, SEGMENT, Segment, Stat, Store,
};

/// What a worker reports to the writer.
pub enum CaptureReport {
    Batch(Box<Batch>),
    /// Only the file's metadata changed.
    Restat {
        file: FileId,
        path: String,
        stat: Stat,
    },
    Gap {
        instance: InstanceId,
        stream: GapStream<'static>,
        path: String,
        why: FailureKind,
        reason: String,
    },
    /// The file is finished; `bytes` of progress were not reported by batches.
    Done {
        instance: InstanceId,
        path: String,
        bytes: u64,
        outcome: CaptureOutcome,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureOutcome {
    New,
    Changed,
    Unchanged,
    /// The archive's copy was damaged and has its bytes again.
    Healed,
    Failed,
}

/// Captures files. One per thread, reused for many files.
pub struct Capturer {
    store: Store,
    packer: Packer,
    buffer: Vec<u8>,
    /// Compares all bytes, those of the archive too.
    verifies: bool,
    forgotten: Arc<Forgotten>,
}

impl Capturer {
    pub fn new(store: Store, verifies: bool, forgotten: Arc<Forgotten>) -> io::Result<Capturer> {
        Ok(Capturer { store, packer: Packer::new()?, buffer: Vec::new(), verifies, forgotten })
    }

    /// Sends everything that is new in the file, as batches in order.
    pub fn capture(&mut self, job: &Job, send: &mut dyn FnMut(CaptureReport)) {
        let (instance, path) = (job.instance, job.found.path.clone());
        match self.try_capture(job, send) {
            Ok((outcome, bytes)) => send(CaptureReport::Done { instance, path, bytes, outcome }),
            Err(error) => {
                send(job.gap(GapStream::Files, FailureKind::Unreadable, error.to_string()));
                send(CaptureReport::Done {
                    instance,
                    path,
                    bytes: job.found.size,
                    outcome: CaptureOutcome::Failed,
                });
            }
        }
    }

    fn try_capture(
        &mut self,
        job: &Job,
        send: &mut dyn FnMut(CaptureReport),
    ) -> io::Result<(CaptureOutcome, u64)> {
        let rule = &job.found.rule;
        let shape = Shape { path: &job.logical_path, framing: rule.framing, encoding: rule.encoding };
        let chosen = job.found.chosen.as_deref();
        let mut file = Allowed::new(open(&job.found.disk)?, chosen, &self.forgotten, shape)?;
        let metadata = file.metadata();
        let disk = Disk { size: file.size(metadata.len()), stat: stat_of(metadata) };
        let Some(known) = &job.known else {
            let work = Work { change: Change::New, rows: RowsWork::Replace };
            self.perform(job, &mut file, disk, work, send)?;
            return Ok((CaptureOutcome::New, 0));
        };
        let work = self.compare(job, known, &mut file, disk)?;
        if work.change == Change::Same && work.rows == RowsWork::Keep {
            // What was forgotten as a whole has no name.
            let is_forgotten = known.path.starts_with(FORGOTTEN_FILES);
            let path = if is_forgotten { known.path.clone() } else { job.found.path.clone() };
            send(CaptureReport::Restat { file: known.id, path, stat: disk.stat });
            return Ok((CaptureOutcome::Unchanged, disk.size));
        }
        self.perform(job, &mut file, disk, work, send)?;
        let healed = work.change == Change::Damaged;
        Ok((if healed { CaptureOutcome::Healed } else { CaptureOutcome::Changed }, work.change.from()))
    }

    /// Decides how a known file changed, and what that means for its rows.
    fn compare(
        &mut self,
        job: &Job,
        known: &CapturedFile,
        file: &mut Allowed,
        disk: Disk,
    ) -> io::Result<Work> {
        let is_plain = job.found.rule.encoding == Encoding::Plain;
        let abandoned = match known.owner {
            RowsOwner::This => false,
            RowsOwner::Other(_) => job.sibling.is_none(),
            RowsOwner::Nobody => true,
        };
        let unread = job.rows == RowsPlan::Own && (abandoned || job.sibling_stays);
        let damage = self.first_damage(known)?;
        let is_same =
            disk.size == known.size && self.matches_segments(file, known.id, known.version, Reach::All)?;
        // A file that was not touched since has the bytes that were captured, whatever the archive says.
        let is_untouched = self.verifies && known.stat == Some(disk.stat) && !unread;
        if is_same && damage.is_some() || is_untouched && !is_same {
            return Ok(Work { change: Change::Damaged, rows: RowsWork::Keep });
        }
        if is_same {
            // All bytes are stored; incomplete rows are rebuilt.
            let read = !unread && (known.stat.is_some() || is_plain);
            let rows = if read { RowsWork::Keep } else { RowsWork::Replace };
            return Ok(Work { change: Change::Same, rows });
        }
        let in_lines = job.found.rule.framing == Framing::Lines && is_plain;
        let rows_go_on = in_lines && known.rows_version == known.version && !unread;
        // A client appends in place. A different file with the old name is compared in full.
        let in_place = known.stat.is_some_and(|stat| stat.inode == disk.stat.inode);
        let reach = if in_place && !self.verifies { Reach::Sample } else { Reach::All };
        // An interrupted capture continues its version: half a file is not a version.
        let grown = disk.size > known.size && known.size > 0 && (rows_go_on || known.stat.is_none());
        if grown && self.matches_segments(file, known.id, known.version, reach)? {
            let rows =
                if rows_go_on { RowsWork::Continue { parsed: known.parsed } } else { RowsWork::Replace };
            let from = damage.map_or(known.size, |damage| damage.min(known.size));
            return Ok(Work { change: Change::Append { from }, rows });
        }
        let less_than_rows = disk.size < known.size || known.rows_version != known.version;
        if in_lines
            && less_than_rows
            && known.owner == RowsOwner::This
            && damage.is_none()
            && self.is_prefix(file, disk.size, known.id, known.rows_version)?
        {
            return Ok(Work { change: Change::Truncated, rows: RowsWork::Keep });
        }
        Ok(Work { change: Change::Rewritten, rows: RowsWork::Replace })
    }

    /// Where the newest version is damaged, if the run compares all bytes.
    fn first_damage(&self, known: &CapturedFile) -> io::Result<Option<u64>> {
        if !self.verifies {
            return Ok(None);
        }
        self.store.first_damage(known.id, known.version, known.size).map_err(io::Error::other)
    }

    /// Whether the file on disk still has the bytes of these segments.
    fn matches_segments(
        &mut self,
        file: &mut Allowed,
        known: FileId,
        version: i64,
        reach: Reach,
    ) -> io::Result<bool> {
        let hashes = match reach {
            Reach::All => self.store.segment_hashes(known, version),
            Reach::Sample => self.store.sampled_hashes(known, version),
        };
        for (offset, length, hash) in hashes.map_err(io::Error::other)? {
            self.buffer.clear();
            file.seek(SeekFrom::Start(offset))?;
            file.by_ref().take(length).read_to_end(&mut self.buffer)?;
            if self.buffer.len() as u64 != length || *blake3::hash(&self.buffer).as_bytes() != hash {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the file was only truncated: it is a prefix of what the archive has.
    fn is_prefix(&mut self, file: &mut Allowed, size: u64, known: FileId, version: i64) -> io::Result<bool> {
        file.seek(SeekFrom::Start(0))?;
        let stored = self.store.bytes(known, version).take(size);
        same_bytes(file.by_ref().take(size), stored)
    }

    fn perform(
        &mut self,
        job: &Job,
        file: &mut Allowed,
        disk: Disk,
        work: Work,
        send: &mut dyn FnMut(CaptureReport),
    ) -> io::Result<()> {
        let owner = match job.rows {
            RowsPlan::Own => self.owner(job, send)?,
            RowsPlan::Bytes => RowsOwner::Nobody,
        };
        let reads = owner == RowsOwner::This && work.rows != RowsWork::Keep;
        let target = job.target();
        let mut parse = reads.then(|| self.parse(job, &target, file, disk, work)).transpose()?;
        let size = disk.size;
        let mut run = CaptureRun {
            job,
            target,
            disk,
            work,
            owner,
            is_first: true,
            captured: size,
            had: size,
            least: 0,
        };
        let decodes = job.found.rule.encoding == Encoding::Zstd;
        let stores = work.change != Change::Same;
        if stores {
            let from = work.change.from();
            run.captured = from - from % SEGMENT as u64;
            run.had = from;
            if let Some(known) =
                job.known.as_ref().filter(|known| !work.change.is_new_version() && from < known.size)
            {
                // What follows damaged bytes stays while they are written again.
                run.least = known.size.min(disk.size);
            }
            let rows = parse.as_mut().filter(|_| !decodes);
            self.store_bytes(&mut run, file, rows, !decodes || !reads, send)?;
        }
        if run.captured < disk.size {
            let reason = "changed while being read".to_owned();
            send(job.gap(GapStream::Files, FailureKind::Changing, reason));
        }
        match parse {
            Some(parse) if decodes || !stores => self.read_stored(parse, &mut run, file, send)?,
            // The owner of the rows is recorded even if nothing else changed.
            None if !stores => send(run.batch(Vec::new(), None, true)),
            _ => {}
        }
        Ok(())
    }

    /// Stores the file's bytes from the current segment to the end, and reads the rows of plain lines.
    fn store_bytes(
        &mut self,
        run: &mut CaptureRun<'_>,
        file: &mut Allowed,
        mut parse: Option<&mut Parse>,
        completes: bool,
        send: &mut dyn FnMut(CaptureReport),
    ) -> io::Result<()> {
        file.seek(SeekFrom::Start(run.captured))?;
        loop {
            let chunk_start = run.captured;
            let room = (run.disk.size - chunk_start).min(CHUNK as u64);
            self.buffer.clear();
            file.by_ref().take(room).read_to_end(&mut self.buffer)?;
            let chunk = std::mem::take(&mut self.buffer);
            run.captured += chunk.len() as u64;
            let last = chunk.len() < CHUNK || run.captured >= run.disk.size;
            if let Some(parse) = &mut parse {
                let seen = run.work.rows.parsed().max(chunk_start).saturating_sub(chunk_start) as usize;
                parse.feed(chunk.get(seen..).unwrap_or_default());
                if last {
                    parse.finish();
                }
            }
            let segments = self.pack(run, chunk_start, &chunk);
            self.buffer = chunk;
            let segments = segments?;
            send(run.batch(segments, parse.as_deref_mut().map(Parse::take), last && completes));
            if last {
                return Ok(());
            }
        }
    }

    /// Reads rows of content that has to be decoded, or whose bytes are already stored.
    fn read_stored(
        &mut self,
        parse: Parse,
        run: &mut CaptureRun<'_>,
        file: &mut Allowed,
        send: &mut dyn FnMut(CaptureReport),
    ) -> io::Result<()> {
        file.seek(SeekFrom::Start(0))?;
        let (size, encoding) = (run.disk.size, run.target.part.encoding);
        let read = read_content(parse, file.take(size), encoding, size, &mut self.buffer, &mut |chunk| {
            if let Some(reason) = chunk.broken {
                send(run.job.gap(GapStream::Content, FailureKind::Unreadable, reason));
            }
            send(run.batch(Vec::new(), Some(chunk.rows), chunk.is_last));
            Ok(())
        });
        read.map_err(io::Error::other)
    }

    fn parse(
        &mut self,
        job: &Job,
        target: &Target,
        file: &mut Allowed,
        disk: Disk,
        work: Work,
    ) -> io::Result<Parse> {
        let parsed = work.rows.parsed();
        let saved = match &job.known {
            Some(known) if parsed > 0 => self.store.reader_state(known.id).map_err(io::Error::other)?,
            _ => String::new(),
        };
        let saved = Some(saved.as_str()).filter(|saved| !saved.is_empty());
        let mut before = [b'\n'];
        file.seek(SeekFrom::Start(parsed.saturating_sub(1)))?;
        if parsed > 0 {
            file.read_exact(&mut before)?;
        }
        let modified = Some(disk.stat.modified);
        let mut parse = target.parse_from(modified, saved, parsed, before != [b'\n']);
        if target.part.encoding == Encoding::Zstd {
            // Its content is read once all bytes are stored.
            return Ok(parse);
        }
        // An unfinished line may start before the next segment to write.
        let from = work.change.from();
        let mut left = (from - from % SEGMENT as u64).saturating_sub(parsed);
        while left > 0 {
            self.buffer.clear();
            file.by_ref().take(left.min(CHUNK as u64)).read_to_end(&mut self.buffer)?;
            if self.buffer.is_empty() {
                break;
            }
            left -= self.buffer.len() as u64;
            parse.feed(&self.buffer);
        }
        Ok(parse)
    }

    /// Packs a chunk. A new version mostly equals the one before, so it is stored as deltas.
    fn pack(&mut self, run: &CaptureRun<'_>, start: u64, chunk: &[u8]) -> io::Result<Vec<Segment>> {
        let Some(known) = run.job.known.as_ref().filter(|_| run.work.change.is_new_version()) else {
            return self.packer.pack(start, chunk);
        };
        let mut segments = Vec::new();
        for (number, raw) in chunk.chunks(SEGMENT).enumerate() {
            let offset = start + (number * SEGMENT) as u64;
            let base = self.store.base_blob(known.id, known.version, offset);
            segments.push(self.packer.pack_one(offset, raw, base.map_err(io::Error::other)?.as_ref())?);
        }
        Ok(segments)
    }

    /// Decides who owns the rows: another file with this logical path keeps them if its content is the same.
    fn owner(&mut self, job: &Job, send: &mut dyn FnMut(CaptureReport)) -> io::Result<RowsOwner> {
        let Some(sibling) = job.sibling.as_ref().filter(|_| !job.sibling_stays) else {
            return Ok(RowsOwner::This);
        };
        let stored = self.store.bytes(sibling.id, sibling.rows_version);
        let theirs = decoder(stored, sibling.encoding)?;
        let same = same_bytes(decoder(open(&job.found.disk)?, job.found.rule.encoding)?, theirs);
        let broken = if same.is_err() { decoding_error(job)? } else { None };
        if let Some(error) = broken {
            // A partial file has less content than the other form, which keeps the rows.
            send(job.gap(GapStream::Content, FailureKind::Unreadable, cannot_decode(&error)));
            return Ok(RowsOwner::Other(sibling.id));
        }
        // Content that cannot be decoded is not the same.
        Ok(if same.unwrap_or(false) { RowsOwner::Other(sibling.id) } else { RowsOwner::This })
    }
}

impl Job {
    fn target(&self) -> Target {
        let rule = &self.found.rule;
        let part = FilePart {
            path: self.found.path.clone(),
            logical_path: self.logical_path.clone(),
            store: rule.store,
            reader: rule.reader.unwrap_or("kept"),
            framing: rule.framing,
            encoding: rule.encoding,
            document: false,
            mutable: rule.mutable,
        };
        Target { instance: self.instance, source: self.source, part }
    }

    fn gap(&self, stream: GapStream<'static>, why: FailureKind, reason: String) -> CaptureReport {
        CaptureReport::Gap { instance: self.instance, stream, path: self.found.path.clone(), why, reason }
    }
}

#[derive(Clone, Copy)]
struct Disk {
    size: u64,
    stat: Stat,
}

/// What happened to a file's bytes since they were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Same,
    /// The archive has what is before `from`.
    Append {
        from: u64,
    },
    Rewritten,
    /// Truncated, otherwise unchanged.
    Truncated,
    /// Unchanged, but the archive's copy is damaged and is written again.
    Damaged,
}

impl Change {
    fn from(self) -> u64 {
        match self {
            Change::Append { from } => from,
            Change::New | Change::Same | Change::Rewritten | Change::Truncated | Change::Damaged => 0,
        }
    }

    fn is_new_version(self) -> bool {
        matches!(self, Change::New | Change::Rewritten | Change::Truncated)
    }
}

/// What to do with a file's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowsWork {
    Keep,
    /// The reader continues at this offset.
    Continue {
        parsed: u64,
    },
    Replace,
}

impl RowsWork {
    fn parsed(self) -> u64 {
        match self {
            RowsWork::Continue { parsed } => parsed,
            RowsWork::Keep | RowsWork::Replace => 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Work {
    change: Change,
    rows: RowsWork,
}

enum Reach {
    All,
    Sample,
}

struct CaptureRun<'j> {
    job: &'j Job,
    target: Target,
    disk: Disk,
    work: Work,
    owner: RowsOwner,
    is_first: bool,
    captured: u64,
    /// Bytes of this version in the archive.
    had: u64,
    /// The version stays at least this long.
    least: u64,
}

impl CaptureRun<'_> {
    fn batch(&mut self, segments: Vec<Segment>, rows: Option<ReadRows>, is_complete: bool) -> CaptureReport {
        let job = self.job;
        let is_first = std::mem::replace(&mut self.is_first, false);
        let owns_rows = self.owner == RowsOwner::This;
        let new_bytes = self.captured.saturating_sub(std::mem::replace(&mut self.had, self.captured));
        CaptureReport::Batch(Box::new(Batch {
            new_version: is_first && self.work.change.is_new_version(),
            segments,
            new_bytes,
            size: self.captured.max(self.least),
            // A file that shrank while it was read is compared again by the next run.
            stat: Some(self.disk.stat).filter(|_| is_complete && self.captured == self.disk.size),
            owner: self.owner,
            drops_rows: is_first && self.work.rows == RowsWork::Replace,
            supersedes: job.sibling.as_ref().filter(|_| is_first && owns_rows).map(|sibling| sibling.id),
            ..self.target.batch(job.known.as_ref().map(|known| known.id), rows)
        }))
    }
}

/// Opens a file of the survey without following a link that replaced it since, and without blocking on a pipe.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("no longer a file")) }
}

/// Why a compressed file cannot be decoded to its end.
fn decoding_error(job: &Job) -> io::Result<Option<io::Error>> {
    if job.found.rule.encoding == Encoding::Plain {
        return Ok(None);
    }
    let mut content = zstd::stream::read::Decoder::new(open(&job.found.disk)?)?;
    Ok(io::copy(&mut content, &mut io::sink()).err())
}
