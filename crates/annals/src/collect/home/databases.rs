//! Databases of clients: which are read, and the rows of their tables, each captured as a document with versions.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::walk::WalkedFile;
use crate::collect::ingest::documents::{is_same, replace, without_forgotten, write_again};
use crate::collect::ingest::target::Target;
use annals_core::{Database, DatabaseFiles, FileId, Forgotten, InstanceId, Result, Time};
use annals_sources::Source;
use annals_store::{
    Batch, CapturedFile, ForeignDatabase, Packer, Store, TABLES, Unreadable, estimate_tables,
};

/// How often the rows of a database are counted of which none are read: it may be large.
const RECOUNT_INTERVAL: i64 = 24 * 3_600_000_000;

/// The document of a database with its schema, beside those of its rows. No table can have this name.
pub const SCHEMA: &str = "sqlite_schema";

/// A home whose databases are read.
#[derive(Clone, Copy)]
pub struct DatabaseHome<'a> {
    pub instance: InstanceId,
    pub source: &'static dyn Source,
    pub found: &'a [WalkedFile],
    /// For copies of databases that cannot be read in place.
    pub scratch: &'a Path,
    /// What must not come back.
    pub forgotten: &'a Forgotten,
    /// Reads everything again, and heals what is damaged.
    pub verify: bool,
}

/// The result of reading one declared table, or the schema.
pub struct TableReport {
    /// The database in the archive: its pattern, or its path.
    pub database: String,
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

/// One database of a home, opened when something of it is needed.
pub struct ClientDatabase<'a> {
    home: DatabaseHome<'a>,
    pub name: String,
    pattern: &'static str,
    file: &'a WalkedFile,
    /// Size and times of the database and its log.
    pub fingerprint: String,
    opened: OnceCell<std::result::Result<ForeignDatabase, Unreadable>>,
}

impl<'a> DatabaseHome<'a> {
    /// The databases whose tables are declared.
    pub fn databases(self) -> Vec<ClientDatabase<'a>> {
        let mut databases: Vec<ClientDatabase<'a>> = Vec::new();
        for declared in self.source.manifest().databases {
            let matching = self.found.iter().filter(|found| found.rule.pattern == declared.pattern);
            let files: Vec<(String, &WalkedFile)> = match declared.files {
                DatabaseFiles::Newest => {
                    newest(matching).map(|file| (declared.pattern.to_owned(), file)).into_iter().collect()
                }
                DatabaseFiles::Every => matching.map(|file| (file.path.clone(), file)).collect(),
            };
            for (name, file) in files {
                if databases.iter().any(|known| known.name == name) {
                    continue;
                }
                databases.push(ClientDatabase {
                    home: self,
                    name,
                    pattern: declared.pattern,
                    file,
                    fingerprint: fingerprint(file),
                    opened: OnceCell::new(),
                });
            }
        }
        databases
    }
}

impl ClientDatabase<'_> {
    /// What is declared of its tables.
    pub fn declared(&self) -> impl Iterator<Item = &'static Database> {
        let pattern = self.pattern;
        self.home.source.manifest().databases.iter().filter(move |declared| declared.pattern == pattern)
    }

    pub fn open(&self) -> std::result::Result<&ForeignDatabase, Unreadable> {
        let opened = self.opened.get_or_init(|| ForeignDatabase::open(&self.file.disk, self.home.scratch));
        opened.as_ref().map_err(Clone::clone)
    }

    /// Why it cannot be read, for the user; `None` if there is just nothing to read.
    pub fn explain(&self, unreadable: Unreadable) -> Option<String> {
        match unreadable {
            Unreadable::NoTable => None,
            Unreadable::Broken(why) => Some(format!("{}: {why}", self.file.path)),
        }
    }

    /// The archived documents whose path starts with `prefix`, by the rest of it.
    pub fn known(&self, store: &Store, prefix: &str) -> Result<HashMap<String, CapturedFile>> {
        let captured = store.captured_files_below(self.home.instance, prefix)?.into_iter();
        let documents = captured.filter(|file| file.document);
        Ok(documents
            .filter_map(|file| Some((file.path.strip_prefix(prefix)?.strip_prefix('/')?.to_owned(), file)))
            .collect())
    }

    /// A new version of a document, or its damaged bytes once more; `None` if the archive has it, or had to forget it.
    pub fn document(
        &self,
        store: &Store,
        target: &Target,
        before: Option<&CapturedFile>,
        bytes: Vec<u8>,
        packer: &mut Packer,
    ) -> Result<Option<Batch>> {
        let Some(bytes) = without_forgotten(store, target, before, self.home.forgotten, bytes)? else {
            return Ok(None);
        };
        let bytes = bytes.as_slice();
        if let Some(before) = before.filter(|before| !before.gone)
            && is_same(store, before, bytes)?
        {
            let is_damaged =
                self.home.verify && store.first_damage(before.id, before.version, before.size)?.is_some();
            return is_damaged.then(|| write_again(target, before, bytes, packer)).transpose();
        }
        replace(target, before, bytes, packer).map(Some)
    }

    /// Reads the rows of a table, unless the database is unchanged.
    pub fn read_table(&self, store: &Store, declared: &'static Database) -> Result<Option<TableReport>> {
        let DatabaseHome { instance, source, verify, .. } = self.home;
        let name = format!("{}/{}", self.name, declared.table);
        if !verify && store.cursor(instance, &name)?.as_deref() == Some(self.fingerprint.as_str()) {
            return Ok(None);
        }
        let mut report = self.report(name.clone());
        let rows = self.open().and_then(|database| database.rows(declared.table, declared.key_column));
        let rows = match rows {
            Ok(rows) => rows,
            Err(unreadable) => {
                report.error = self.explain(unreadable);
                return Ok(Some(report));
            }
        };
        let mut known = self.known(store, &name)?;
        let mut packer = Packer::new()?;
        for row in &rows {
            let before = known.remove(row.key.as_str());
            let path = format!("{name}/{}", row.key);
            let target = Target::archived(instance, source, &path, declared.table, declared.reader);
            let target = target.mutable().database_row();
            let bytes = row.document.as_bytes().to_vec();
            match self.document(store, &target, before.as_ref(), bytes, &mut packer)? {
                Some(batch) => report.batches.push(batch),
                None => report.unchanged += 1,
            }
        }
        report.gone = known.values().filter(|file| !file.gone).map(|file| file.id).collect();
        Ok(Some(report))
    }

    /// Reads the schema, unless the database is unchanged.
    pub fn read_schema(&self, store: &Store) -> Result<Option<TableReport>> {
        let DatabaseHome { instance, source, .. } = self.home;
        let of_rows = |declared: &&Database| declared.is_read() && declared.lines.is_empty();
        let captured: Vec<&str> = self.declared().filter(of_rows).map(|one| one.table).collect();
        let state: Vec<&str> = self.declared().filter(|one| one.is_state).map(|one| one.table).collect();
        let name = format!("{}/{SCHEMA}", self.name);
        let is_unchanged = store.cursor(instance, &name)?.as_deref() == Some(self.fingerprint.as_str());
        if is_unchanged || !self.declared().any(Database::is_read) {
            return Ok(None);
        }
        // What cannot be read is reported with its tables.
        let schema = self.open().and_then(|database| database.schema(&self.file.path, &captured, &state));
        let Ok(mut schema) = schema else { return Ok(None) };
        let of_lines = self.declared().filter(|declared| !declared.lines.is_empty());
        schema.documents = of_lines.map(|declared| declared.table.to_owned()).collect();
        let bytes = serde_json::to_vec(&schema)?;
        let known = store.captured_file(instance, &name)?.filter(|file| file.document);
        let target = Target::archived(instance, source, &name, "schemas", "kept").mutable().database_row();
        let batch = self.document(store, &target, known.as_ref(), bytes, &mut Packer::new()?)?;
        let mut report = self.report(name);
        report.is_schema = true;
        report.unchanged = u64::from(batch.is_none());
        report.batches.extend(batch);
        Ok(Some(report))
    }

    /// Counts the rows of its tables, as a cursor, unless it is unchanged. Skips one that cannot be read, which
    /// `read_table` reports.
    pub fn count(&self, store: &Store, now: Time) -> Result<Option<(String, String)>> {
        let name = format!("{TABLES}{}", self.name);
        let before = store.cursor(self.home.instance, &name)?;
        let before = before.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let is_read = self.declared().any(Database::is_read);
        let is_counted = before.is_some_and(|before| {
            let counted_at = before["counted_at"].as_i64().unwrap_or(i64::MIN);
            let is_recent = now.micros().saturating_sub(counted_at) < RECOUNT_INTERVAL;
            before["fingerprint"] == self.fingerprint || !is_read && is_recent
        });
        if is_counted {
            return Ok(None);
        }
        let tables = match is_read {
            true => self.open().and_then(ForeignDatabase::count),
            false => estimate_tables(&self.file.disk),
        };
        let Ok(tables) = tables else { return Ok(None) };
        let tables: Map<String, Value> = tables.into_iter().map(|(name, rows)| (name, rows.into())).collect();
        let mut value = json!({
            "database": self.file.path,
            "pattern": self.pattern,
            "tables": tables,
            "fingerprint": self.fingerprint,
        });
        if !is_read {
            value["counted_at"] = now.micros().into();
        }
        Ok(Some((name, value.to_string())))
    }

    fn report(&self, cursor: String) -> TableReport {
        TableReport {
            database: self.name.clone(),
            batches: Vec::new(),
            is_schema: false,
            unchanged: 0,
            gone: Vec::new(),
            cursor: (cursor, self.fingerprint.clone()),
            error: None,
        }
    }

    pub fn home(&self) -> DatabaseHome<'_> {
        self.home
    }
}

/// The highest number in the name wins: `state_5` before `state_4` before `state`.
fn newest<'f>(candidates: impl Iterator<Item = &'f WalkedFile>) -> Option<&'f WalkedFile> {
    candidates.max_by_key(|found| {
        let digits: String = found.path.chars().filter(char::is_ascii_digit).collect();
        (digits.parse::<u64>().unwrap_or(0), found.stat.modified)
    })
}

/// Size and times of the database and its log, to detect a change of either.
fn fingerprint(database: &WalkedFile) -> String {
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
