//! Captures one file: detects appends and rewrites, packs bytes into segments, reads new lines.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::parse::Parse;
use crate::collect::home::plan::{Job, RowsPlan};
use crate::collect::home::walk::stat_of;
use annals_core::{Encoding, FailureKind, Framing};
use annals_sources::FileContext;
use annals_store::{Batch, FilePart, Packer, SEGMENT, Segment, Stat, Store};

/// Raw bytes of a batch: whole segments, so that rows never point at bytes that are not stored yet.
pub const CHUNK: usize = 4 * SEGMENT;
/// A transcript that unpacks to more than this is a bomb.
const LARGEST_CONTENT: u64 = 8 << 30;
/// So is one beyond this that unpacks to more than `LARGEST_RATIO` times its size.
const USUAL_CONTENT: u64 = 128 << 20;
const LARGEST_RATIO: u64 = 1_000;

/// Marks a file whose rows are another file's of the same unit, whichever that is.
const NO_ROWS: i64 = 0;

/// What a worker tells the writer.
pub enum Report {
    Batch(Box<Batch>),
    /// Nothing but the disk's data about the file changed.
    Restat {
        file: i64,
        path: String,
        stat: Stat,
    },
    Gap {
        instance: i64,
        stream: &'static str,
        path: String,
        why: FailureKind,
        reason: String,
    },
    /// The file is dealt with; `bytes` of progress were not reported by batches.
    Done {
        instance: i64,
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
    Failed,
}

/// A thread's tools, kept over many files.
pub struct Capturer {
    store: Store,
    packer: Packer,
    buffer: Vec<u8>,
}

impl Capturer {
    pub fn new(store: Store) -> io::Result<Capturer> {
        Ok(Capturer { store, packer: Packer::new()?, buffer: Vec::new() })
    }

    /// Everything that is new in the file, as batches in order.
    pub fn capture(&mut self, job: &Job, send: &mut dyn FnMut(Report)) {
        let (instance, path) = (job.instance, job.found.path.clone());
        match self.try_capture(job, send) {
            Ok((outcome, bytes)) => send(Report::Done { instance, path, bytes, outcome }),
            Err(error) => {
                send(Report::Gap {
                    instance,
                    stream: "files",
                    path: path.clone(),
                    why: FailureKind::Unreadable,
                    reason: error.to_string(),
                });
                send(Report::Done { instance, path, bytes: job.found.size, outcome: CaptureOutcome::Failed });
            }
        }
    }

    fn try_capture(&mut self, job: &Job, send: &mut dyn FnMut(Report)) -> io::Result<(CaptureOutcome, u64)> {
        let mut file = open(&job.found.disk)?;
        let metadata = file.metadata()?;
        let disk = Disk { size: metadata.len(), stat: stat_of(&metadata) };
        let Some(known) = &job.known else {
            self.read_from(job, &mut file, disk, Start::fresh(), send)?;
            return Ok((CaptureOutcome::New, 0));
        };
        let orphaned = known.twin_of.is_some() && job.rival.is_none() || known.twin_of == Some(NO_ROWS);
        let unread = job.rows == RowsPlan::Own && (orphaned || job.rival_stays);
        let restat = || Report::Restat { file: known.id, path: job.found.path.clone(), stat: disk.stat };
        if disk.size == known.size && self.holds(&mut file, known.id, known.version, Reach::All)? {
            let finished = known.stat.is_some() || job.found.rule.encoding == Encoding::Plain;
            if finished && !unread {
                send(restat());
                return Ok((CaptureOutcome::Unchanged, disk.size));
            }
            // The bytes are safe, the rows are not complete: read them again.
            let start = Start { new_version: false, replace_rows: true, ..Start::fresh() };
            self.read_from(job, &mut file, disk, start, send)?;
            return Ok((CaptureOutcome::Changed, 0));
        }
        let in_lines = job.found.rule.framing == Framing::Lines && job.found.rule.encoding == Encoding::Plain;
        let current = known.rows_version == known.version && !unread;
        let appends = in_lines && current;
        // A client appends in place. Another file under the old name is compared as a whole.
        let in_place = known.stat.is_some_and(|stat| stat.inode == disk.stat.inode);
        let reach = if in_place { Reach::Edges } else { Reach::All };
        // A capture that was cut off goes on with its version: its half of the file is no version of its own.
        let grown = disk.size > known.size && known.size > 0 && (appends || known.stat.is_none());
        let goes_on = grown && self.holds(&mut file, known.id, known.version, reach)?;
        if goes_on && appends {
            let (from, parsed) = (known.size, known.parsed);
            let start = Start { from, parsed, new_version: false, replace_rows: false, reads: true };
            self.read_from(job, &mut file, disk, start, send)?;
            return Ok((CaptureOutcome::Changed, known.size));
        }
        let less_than_rows = disk.size < known.size || known.rows_version != known.version;
        let cut_short = in_lines && less_than_rows && known.twin_of.is_none();
        let keeps_rows = cut_short && self.is_prefix(&mut file, disk.size, known.id, known.rows_version)?;
        let from = if goes_on { known.size } else { 0 };
        let reads = !keeps_rows;
        let start = Start { from, parsed: 0, new_version: !goes_on, replace_rows: reads, reads };
        self.read_from(job, &mut file, disk, start, send)?;
        Ok((CaptureOutcome::Changed, from))
    }

    /// True when the disk still has the bytes of these segments at their places.
    fn holds(&mut self, file: &mut File, known: i64, version: i64, reach: Reach) -> io::Result<bool> {
        let hashes = match reach {
            Reach::All => self.store.segment_hashes(known, version),
            Reach::Edges => self.store.edge_hashes(known, version),
        };
        for (place, length, hash) in hashes.map_err(io::Error::other)? {
            self.buffer.clear();
            file.seek(SeekFrom::Start(place))?;
            file.by_ref().take(length).read_to_end(&mut self.buffer)?;
            if self.buffer.len() as u64 != length || *blake3::hash(&self.buffer).as_bytes() != hash {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True when the file is an earlier state of what the archive has: cut short, nothing else.
    fn is_prefix(&mut self, file: &mut File, size: u64, known: i64, version: i64) -> io::Result<bool> {
        file.seek(SeekFrom::Start(0))?;
        let stored = self.store.bytes(known, version).take(size);
        same_bytes(file.by_ref().take(size), stored)
    }

    fn read_from(
        &mut self,
        job: &Job,
        file: &mut File,
        disk: Disk,
        start: Start,
        send: &mut dyn FnMut(Report),
    ) -> io::Result<()> {
        let twin_of = match job.rows {
            RowsPlan::Own => self.same_as_rival(job, send)?,
            RowsPlan::Bytes => Some(NO_ROWS),
        };
        let reads = twin_of.is_none() && start.reads;
        let mut run =
            CaptureRun { job, disk, start, twin_of, first: true, captured: disk.size, had: disk.size };
        let mut parse = reads.then(|| self.parse(job, file, disk, start)).transpose()?;
        let decodes = job.found.rule.encoding == Encoding::Zstd;
        let stores = start.new_version || start.from > 0;
        if stores {
            run.captured = start.from - start.from % SEGMENT as u64;
            run.had = start.from;
            let rows = parse.as_mut().filter(|_| !decodes);
            self.store_bytes(&mut run, file, rows, !decodes || !reads, send)?;
        }
        if run.captured < disk.size {
            let (instance, path, reason) =
                (job.instance, job.found.path.clone(), "changed while being read".to_owned());
            send(Report::Gap { instance, stream: "files", path, why: FailureKind::Changing, reason });
        }
        match parse {
            Some(parse) if decodes || !stores => self.read_content(parse, &mut run, file, send)?,
            // Whose twin it is has to be told even when nothing else is.
            None if !stores => send(run.batch(Vec::new(), None, true)),
            _ => {}
        }
        Ok(())
    }

    /// The file's bytes from the segment at hand to its end, with the rows of plain lines on the way.
    fn store_bytes(
        &mut self,
        run: &mut CaptureRun<'_>,
        file: &mut File,
        mut parse: Option<&mut Parse>,
        completes: bool,
        send: &mut dyn FnMut(Report),
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
                let seen = run.start.parsed.max(chunk_start).saturating_sub(chunk_start) as usize;
                parse.feed(chunk.get(seen..).unwrap_or_default());
                if last {
                    parse.finish();
                }
            }
            let segments = self.pack(run, chunk_start, &chunk);
            self.buffer = chunk;
            let segments = segments?;
            send(run.batch(segments, parse.as_deref_mut(), last && completes));
            if last {
                return Ok(());
            }
        }
    }

    /// Rows of content that has to be decoded, or whose bytes are stored already.
    fn read_content(
        &mut self,
        mut parse: Parse,
        run: &mut CaptureRun<'_>,
        file: &mut File,
        send: &mut dyn FnMut(Report),
    ) -> io::Result<()> {
        file.seek(SeekFrom::Start(0))?;
        let mut content: Box<dyn Read> = match run.job.found.rule.encoding {
            Encoding::Plain => Box::new(file.by_ref().take(run.disk.size)),
            Encoding::Zstd => Box::new(zstd::stream::read::Decoder::new(file.by_ref().take(run.disk.size))?),
        };
        let mut decoded = 0u64;
        loop {
            self.buffer.clear();
            let read = content.by_ref().take(CHUNK as u64).read_to_end(&mut self.buffer);
            decoded += self.buffer.len() as u64;
            parse.feed(&self.buffer);
            let broken = match read {
                Ok(_) if run.job.found.rule.encoding == Encoding::Zstd => bomb(run.disk.size, decoded),
                Ok(_) => None,
                Err(error) => Some(format!("cannot be decompressed further: {error}")),
            };
            if let Some(reason) = &broken {
                let (instance, path) = (run.job.instance, run.job.found.path.clone());
                let (why, told) = (FailureKind::Unreadable, reason.clone());
                send(Report::Gap { instance, stream: "content", path, why, reason: told });
                parse.broken(reason);
            }
            let last = broken.is_some() || self.buffer.len() < CHUNK;
            if last {
                parse.finish();
            }
            send(run.batch(Vec::new(), Some(&mut parse), last));
            if last {
                return Ok(());
            }
        }
    }

    fn parse(&mut self, job: &Job, file: &mut File, disk: Disk, start: Start) -> io::Result<Parse> {
        let goes_on = start.parsed > 0;
        let saved = match (&job.known, goes_on) {
            (Some(known), true) => self.store.reader_state(known.id).map_err(io::Error::other)?,
            _ => String::new(),
        };
        let context = FileContext { path: job.found.path.clone(), modified: Some(disk.stat.modified) };
        let saved = Some(saved.as_str()).filter(|saved| !saved.is_empty());
        let reader = job.source.reader(job.reader(), &context, saved);
        let mut before = [b'\n'];
        file.seek(SeekFrom::Start(start.parsed.saturating_sub(1)))?;
        if start.parsed > 0 {
            file.read_exact(&mut before)?;
        }
        let mut parse =
            Parse::new(job.source, reader, job.found.rule.framing, start.parsed, before != [b'\n']);
        if job.found.rule.encoding == Encoding::Zstd {
            // Its content is read once all bytes are stored.
            return Ok(parse);
        }
        // What is kept of an unfinished line may begin before the segment that is written next.
        let segment_start = start.from - start.from % SEGMENT as u64;
        let mut left = segment_start.saturating_sub(start.parsed);
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

    /// A version that replaces another is mostly the same: what differs is stored as a difference.
    fn pack(&mut self, run: &CaptureRun<'_>, start: u64, chunk: &[u8]) -> io::Result<Vec<Segment>> {
        let Some(known) = run.job.known.as_ref().filter(|_| run.start.new_version) else {
            return self.packer.pack(start, chunk);
        };
        let mut segments = Vec::new();
        for (number, raw) in chunk.chunks(SEGMENT).enumerate() {
            let place = start + (number * SEGMENT) as u64;
            let base = self.store.base_blob(known.id, known.version, place);
            segments.push(self.packer.pack_one(place, raw, base.map_err(io::Error::other)?.as_ref())?);
        }
        Ok(segments)
    }

    /// The other file of this unit, if it holds the same content and has the rows already.
    fn same_as_rival(&mut self, job: &Job, send: &mut dyn FnMut(Report)) -> io::Result<Option<i64>> {
        let Some(rival) = job.rival.as_ref().filter(|_| !job.rival_stays) else { return Ok(None) };
        let stored = self.store.bytes(rival.id, rival.rows_version);
        let theirs: Box<dyn Read + '_> = match rival.encoding {
            Encoding::Plain => Box::new(stored),
            Encoding::Zstd => Box::new(zstd::stream::read::Decoder::new(stored)?),
        };
        let file = open(&job.found.disk)?;
        let same = match job.found.rule.encoding {
            Encoding::Plain => same_bytes(file, theirs),
            Encoding::Zstd => same_bytes(zstd::stream::read::Decoder::new(file)?, theirs),
        };
        let broken = if same.is_err() { unpacking_error(job)? } else { None };
        if let Some(error) = broken {
            // Half a file has less to say than the form before it, which keeps the rows.
            let (instance, path) = (job.instance, job.found.path.clone());
            let reason = format!("cannot be decompressed further: {error}");
            send(Report::Gap { instance, stream: "content", path, why: FailureKind::Unreadable, reason });
            return Ok(Some(rival.id));
        }
        // What cannot be unpacked is not the same.
        Ok(same.unwrap_or(false).then_some(rival.id))
    }
}

#[derive(Clone, Copy)]
struct Disk {
    size: u64,
    stat: Stat,
}

/// Where reading begins and what it means for what is there.
#[derive(Clone, Copy)]
struct Start {
    from: u64,
    parsed: u64,
    new_version: bool,
    replace_rows: bool,
    /// False where the rows of an earlier version stay.
    reads: bool,
}

impl Start {
    fn fresh() -> Start {
        Start { from: 0, parsed: 0, new_version: true, replace_rows: true, reads: true }
    }
}

enum Reach {
    All,
    Edges,
}

struct CaptureRun<'j> {
    job: &'j Job,
    disk: Disk,
    start: Start,
    twin_of: Option<i64>,
    first: bool,
    captured: u64,
    /// Bytes that the archive has of this version.
    had: u64,
}

impl CaptureRun<'_> {
    fn batch(&mut self, segments: Vec<Segment>, parse: Option<&mut Parse>, complete: bool) -> Report {
        let job = self.job;
        let first = std::mem::replace(&mut self.first, false);
        let taken = parse.map(Parse::take);
        let rows = taken.is_some();
        let (parsed, content_size) = taken.as_ref().map_or((0, 0), |taken| (taken.parsed, taken.position));
        let mut batch = Batch {
            instance: job.instance,
            file: job.known.as_ref().map(|known| known.id),
            part: FilePart {
                path: job.found.path.clone(),
                unit: job.unit.clone(),
                store: job.found.rule.store,
                reader: job.reader(),
                framing: job.found.rule.framing,
                encoding: job.found.rule.encoding,
                document: false,
                mutable: job.found.rule.mutable,
            },
            new_version: first && self.start.new_version,
            replace_rows: first && self.start.replace_rows,
            follows_rows: rows,
            supersedes: job.rival.as_ref().filter(|_| first && self.twin_of.is_none()).map(|rival| rival.id),
            twin_of: self.twin_of,
            segments,
            new_bytes: self.captured - self.had,
            size: self.captured,
            content_size,
            parsed,
            // A file that shrank while it was read is looked at again.
            stat: Some(self.disk.stat).filter(|_| complete && self.captured == self.disk.size),
            state: String::new(),
            reader_version: job.source.manifest().reader_version,
            items: Vec::new(),
            facts: Vec::new(),
            counts: Vec::new(),
            problems: Vec::new(),
            captures: Vec::new(),
        };
        self.had = self.captured;
        if let Some(taken) = taken {
            batch.state = taken.state;
            batch.items = taken.items;
            batch.counts = taken.counts;
            batch.problems = taken.problems;
            batch.facts =
                taken.facts.into_iter().map(|facts| (facts.session, facts.rank, facts.facts)).collect();
        }
        Report::Batch(Box::new(batch))
    }
}

/// Why a transcript that gave this much so far is unpacked no further.
pub fn bomb(packed: u64, unpacked: u64) -> Option<String> {
    if unpacked > LARGEST_CONTENT {
        return Some("decompresses to more than 8 GiB".to_owned());
    }
    let swollen = unpacked > USUAL_CONTENT && unpacked / LARGEST_RATIO > packed;
    swollen.then(|| format!("decompresses to more than {LARGEST_RATIO} times its size"))
}

fn same_bytes(mut ours: impl Read, mut theirs: impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let read = fill(&mut ours, &mut left)?;
        let other = fill(&mut theirs, &mut right)?;
        if left[..read] != right[..other] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Opens what the survey saw: not a link that took its place since, and without waiting at a pipe.
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

/// Why a compressed file cannot be unpacked to its end.
fn unpacking_error(job: &Job) -> io::Result<Option<io::Error>> {
    if job.found.rule.encoding == Encoding::Plain {
        return Ok(None);
    }
    let mut content = zstd::stream::read::Decoder::new(open(&job.found.disk)?)?;
    Ok(io::copy(&mut content, &mut io::sink()).err())
}
