//! Rows of a client's databases, captured as one document each with versions.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::walk::FoundFile;
use crate::collect::ingest::documents::{is_same, replace, write_again};
use crate::collect::ingest::target::Target;
use annals_core::{Database, FileId, InstanceId, Result, Time};
use annals_sources::Source;
use annals_store::{
    Batch, CapturedFile, Packer, Store, TABLES, Unreadable, count_tables, estimate_tables, read_schema,
    read_table,
};

/// How often the rows of a database are counted of which none are read: it may be large.
const RECOUNT_INTERVAL: i64 = 24 * 3_600_000_000;

/// The document of a database with its schema, beside those of its rows. No table can have this name.
pub const SCHEMA: &str = "sqlite_schema";

/// The result of reading one declared table.
pub struct TableReport {
    pub pattern: &'static str,
    pub batches: Vec<Batch>,
    /// Its document is the schema of the database, not a row.
    pub is_schema: bool,
    pub unchanged: u64,
    /// Documents whose row was deleted; only after a complete read.
    pub gone: Vec<FileId>,
    /// Stored so that an unchanged database is not opened again.
    pub cursor: (String, String),
    pub error: Option<String>,
}

/// Reads the newest database of the pattern, unless it is unchanged.
pub fn read_database(
    store: &Store,
    (instance, source): (InstanceId, &'static dyn Source),
    declared: &'static Database,
    found: &[FoundFile],
    scratch: &Path,
    verify: bool,
) -> Result<Option<TableReport>> {
    let Some(newest) = newest(declared.pattern, found).filter(|_| declared.is_read()) else {
        return Ok(None);
    };
    let name = format!("{}/{}", declared.pattern, declared.table);
    let fingerprint = fingerprint(newest);
    if !verify && store.cursor(instance, &name)?.as_deref() == Some(fingerprint.as_str()) {
        return Ok(None);
    }
    let mut report = TableReport {
        pattern: declared.pattern,
        batches: Vec::new(),
        is_schema: false,
        unchanged: 0,
        gone: Vec::new(),
        cursor: (name.clone(), fingerprint),
        error: None,
    };
    let rows = match read_table(&newest.disk, declared.table, declared.key_column, scratch) {
        Ok(rows) => rows,
        Err(Unreadable::NoTable) => return Ok(Some(report)),
        Err(Unreadable::Broken(why)) => {
            report.error = Some(format!("{}: {why}", newest.path));
            return Ok(Some(report));
        }
    };
    let captured = store.captured_files(instance)?;
    let prefix = format!("{name}/");
    let mut known: HashMap<&str, &CapturedFile> = captured
        .iter()
        .filter(|file| file.document)
        .filter_map(|file| file.path.strip_prefix(prefix.as_str()).map(|key| (key, file)))
        .collect();
    let mut packer = Packer::new()?;
    for row in &rows {
        let before = known.remove(row.key.as_str());
        let bytes = row.document.as_bytes();
        if let Some(before) = before.filter(|before| !before.gone)
            && is_same(store, before, bytes)?
        {
            if verify && store.first_damage(before.id, before.version, before.size)?.is_some() {
                let path = &before.path;
                let target = Target::archived(instance, source, path, declared.table, declared.reader);
                let target = target.mutable().database_row();
                report.batches.push(write_again(&target, before, bytes, &mut packer)?);
            } else {
                report.unchanged += 1;
            }
            continue;
        }
        let path = format!("{prefix}{}", row.key);
        let target = Target::archived(instance, source, &path, declared.table, declared.reader);
        report.batches.push(replace(&target.mutable().database_row(), before, bytes, &mut packer)?);
    }
    report.gone = known.values().filter(|file| !file.gone).map(|file| file.id).collect();
    Ok(Some(report))
}

/// Reads the schema of the newest database of each pattern, unless it is unchanged.
pub fn read_schemas(
    store: &Store,
    instance: InstanceId,
    source: &'static dyn Source,
    found: &[FoundFile],
    scratch: &Path,
) -> Result<Vec<TableReport>> {
    let databases = source.manifest().databases;
    let patterns: BTreeSet<&'static str> = databases.iter().map(|database| database.pattern).collect();
    let mut reports = Vec::new();
    for pattern in patterns {
        let of_pattern = || databases.iter().filter(|declared| declared.pattern == pattern);
        let captured: Vec<&str> = of_pattern().filter(|one| one.is_read()).map(|one| one.table).collect();
        let state: Vec<&str> = of_pattern().filter(|one| one.is_state).map(|one| one.table).collect();
        let Some(newest) = newest(pattern, found).filter(|_| !captured.is_empty()) else { continue };
        let (name, fingerprint) = (format!("{pattern}/{SCHEMA}"), fingerprint(newest));
        if store.cursor(instance, &name)?.as_deref() == Some(fingerprint.as_str()) {
            continue;
        }
        // What cannot be read is reported with its tables.
        let Ok(schema) = read_schema(&newest.disk, &newest.path, &captured, &state, scratch) else {
            continue;
        };
        let bytes = serde_json::to_vec(&schema)?;
        let known =
            store.captured_files(instance)?.into_iter().find(|file| file.document && file.path == name);
        let is_same = match &known {
            Some(known) => !known.gone && is_same(store, known, &bytes)?,
            None => false,
        };
        let mut batches = Vec::new();
        if !is_same {
            let target =
                Target::archived(instance, source, &name, "schemas", "kept").mutable().database_row();
            batches.push(replace(&target, known.as_ref(), &bytes, &mut Packer::new()?)?);
        }
        reports.push(TableReport {
            pattern,
            batches,
            is_schema: true,
            unchanged: u64::from(is_same),
            gone: Vec::new(),
            cursor: (name, fingerprint),
            error: None,
        });
    }
    Ok(reports)
}

/// Counts the rows of the newest database of each pattern, as cursors. Skips databases that are unchanged, and those
/// that cannot be read, which `read_database` reports.
pub fn count_databases(
    store: &Store,
    instance: InstanceId,
    databases: &'static [Database],
    found: &[FoundFile],
    scratch: &Path,
    now: Time,
) -> Result<Vec<(String, String)>> {
    let patterns: BTreeSet<&str> = databases.iter().map(|database| database.pattern).collect();
    let mut counted = Vec::new();
    for pattern in patterns {
        let Some(newest) = newest(pattern, found) else { continue };
        let (name, fingerprint) = (format!("{TABLES}{pattern}"), fingerprint(newest));
        let before =
            store.cursor(instance, &name)?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let is_read = databases.iter().any(|declared| declared.pattern == pattern && declared.is_read());
        let is_counted = before.is_some_and(|before| {
            let counted_at = before["counted_at"].as_i64().unwrap_or(i64::MIN);
            let is_recent = now.micros().saturating_sub(counted_at) < RECOUNT_INTERVAL;
            before["fingerprint"] == fingerprint || !is_read && is_recent
        });
        if is_counted {
            continue;
        }
        let tables =
            if is_read { count_tables(&newest.disk, scratch) } else { estimate_tables(&newest.disk) };
        let Ok(tables) = tables else { continue };
        let tables: Map<String, Value> = tables.into_iter().map(|(name, rows)| (name, rows.into())).collect();
        let mut value = json!({"database": newest.path, "tables": tables, "fingerprint": fingerprint});
        if !is_read {
            value["counted_at"] = now.micros().into();
        }
        counted.push((name, value.to_string()));
    }
    Ok(counted)
}

/// The highest number in the name wins: `state_5` before `state_4` before `state`.
fn newest<'f>(pattern: &str, found: &'f [FoundFile]) -> Option<&'f FoundFile> {
    let candidates = found.iter().filter(|found| found.rule.pattern == pattern);
    candidates.max_by_key(|found| {
        let digits: String = found.path.chars().filter(char::is_ascii_digit).collect();
        (digits.parse::<u64>().unwrap_or(0), found.stat.modified)
    })
}

/// Size and times of the database and its log, to detect a change of either.
fn fingerprint(database: &FoundFile) -> String {
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
