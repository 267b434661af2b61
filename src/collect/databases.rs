//! Rows of a client's databases, captured as one document each with versions.

use std::collections::HashMap;
use std::path::Path;

use super::capture::SEGMENT;
use super::parse::Parse;
use super::walk::Found;
use crate::model::{Database, Encoding, Framing, Result, Scope};
use crate::sources::{FileContext, Source};
use crate::store::{Batch, CapturedFile, Part, Segment, Store, Unreadable, read_table};

/// What one declared table gave.
pub struct TableReport {
    pub pattern: &'static str,
    pub batches: Vec<Batch>,
    pub unchanged: u64,
    /// Documents whose row is no longer there; only after a complete reading.
    pub gone: Vec<i64>,
    /// Remembered so that an unchanged database is not opened again.
    pub cursor: (String, String),
    pub problem: Option<String>,
}

/// The newest database of the pattern, unless nothing about it changed.
pub fn read_database(
    store: &Store,
    scope: &Scope,
    instance: i64,
    source: &'static dyn Source,
    declared: &'static Database,
    found: &[Found],
    scratch: &Path,
) -> Result<Option<TableReport>> {
    let Some(newest) = newest(declared, found) else { return Ok(None) };
    let name = format!("{}/{}", declared.pattern, declared.table);
    let fingerprint = fingerprint(newest);
    if store.cursor(scope, instance, &name)?.as_deref() == Some(fingerprint.as_str()) {
        return Ok(None);
    }
    let mut report = TableReport {
        pattern: declared.pattern,
        batches: Vec::new(),
        unchanged: 0,
        gone: Vec::new(),
        cursor: (name.clone(), fingerprint),
        problem: None,
    };
    let rows = match read_table(&newest.disk, declared.table, declared.key_column, scratch) {
        Ok(rows) => rows,
        Err(Unreadable::NoTable) => return Ok(Some(report)),
        Err(Unreadable::Broken(why)) => {
            report.problem = Some(format!("{}: {why}", newest.path));
            return Ok(Some(report));
        }
    };
    let captured = store.captured_files(scope, instance)?;
    let prefix = format!("{name}/");
    let mut known: HashMap<&str, &CapturedFile> = captured
        .iter()
        .filter(|file| file.document)
        .filter_map(|file| file.path.strip_prefix(prefix.as_str()).map(|key| (key, file)))
        .collect();
    for row in &rows {
        let before = known.remove(row.key.as_str());
        let bytes = row.document.as_bytes();
        if let Some(before) = before.filter(|before| !before.gone) {
            let hashes = store.segment_hashes(scope, before.id, before.version)?;
            let same = hashes.len() == bytes.chunks(SEGMENT).count()
                && hashes
                    .iter()
                    .zip(bytes.chunks(SEGMENT))
                    .all(|((_, _, hash), piece)| blake3::hash(piece).as_bytes() == hash);
            if same {
                report.unchanged += 1;
                continue;
            }
        }
        let path = format!("{prefix}{}", row.key);
        report.batches.push(document(instance, source, declared, before, path, bytes)?);
    }
    report.gone = known.values().filter(|file| !file.gone).map(|file| file.id).collect();
    Ok(Some(report))
}

fn document(
    instance: i64,
    source: &'static dyn Source,
    declared: &'static Database,
    known: Option<&CapturedFile>,
    path: String,
    bytes: &[u8],
) -> Result<Batch> {
    let mut segments = Vec::new();
    for (number, piece) in bytes.chunks(SEGMENT).enumerate() {
        segments.push(Segment {
            place: (number * SEGMENT) as u64,
            length: piece.len() as u64,
            hash: *blake3::hash(piece).as_bytes(),
            packed: true,
            data: zstd::bulk::compress(piece, 1)?,
        });
    }
    let context = FileContext { path: path.clone(), modified: None };
    let mut parse =
        Parse::new(source, source.reader(declared.reader, &context, None), Framing::Whole, 0, false);
    parse.feed(bytes);
    parse.finish();
    let taken = parse.take();
    Ok(Batch {
        instance,
        file: known.map(|known| known.id),
        part: Part {
            unit: path.clone(),
            path,
            store: declared.table,
            reader: declared.reader,
            framing: Framing::Whole,
            encoding: Encoding::Plain,
            document: true,
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
        reader_version: source.manifest().reader_version,
        items: taken.items,
        facts: taken.facts.into_iter().map(|facts| (facts.session, facts.rank, facts.facts)).collect(),
        counts: taken.counts,
        problems: taken.problems,
        captures: Vec::new(),
    })
}

/// The highest number in the name wins: `state_5` before `state_4` before `state`.
fn newest<'f>(declared: &Database, found: &'f [Found]) -> Option<&'f Found> {
    let candidates = found.iter().filter(|found| found.rule.pattern == declared.pattern);
    candidates.max_by_key(|found| {
        let digits: String = found.path.chars().filter(char::is_ascii_digit).collect();
        (digits.parse::<u64>().unwrap_or(0), found.stat.modified)
    })
}

/// Size and times of the database and its log: a change of either is a change.
fn fingerprint(database: &Found) -> String {
    let mut wal = database.disk.as_os_str().to_owned();
    wal.push("-wal");
    let log = std::fs::metadata(&wal).map(|metadata| {
        let stat = super::walk::stat_of(&metadata);
        format!("{}:{}:{}", metadata.len(), stat.modified.micros(), stat.inode)
    });
    format!(
        "{} {}:{}:{} {}",
        database.path,
        database.size,
        database.stat.modified.micros(),
        database.stat.inode,
        log.unwrap_or_default()
    )
}
