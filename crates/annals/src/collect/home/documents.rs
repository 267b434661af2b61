//! What a home has besides files: rows of databases, and conversations of many files. Documents of many rows are written
//! while they are read; the rest at the end of the run.

use std::collections::BTreeSet;
use std::path::Path;

use super::databases::{DatabaseHome, TableReport};
use super::file_groups::read_groups;
use super::pending::PendingDocuments;
use super::row_documents::read_documents;
use super::walk::WalkedFile;
use crate::collect::options::Totals;
use annals_core::{FailureKind, FileId, GapStream, InstanceId, Result, Time};
use annals_sources::Source;
use annals_store::{Batch, Store, Writer};

/// A home whose files are captured.
#[derive(Clone, Copy)]
pub struct CapturedHome<'a> {
    pub instance: InstanceId,
    pub source: &'static dyn Source,
    pub databases: &'a [WalkedFile],
    /// Files that this run marks as gone.
    pub ending: &'a [FileId],
    pub scratch: &'a Path,
    pub verify: bool,
}

impl CapturedHome<'_> {
    pub fn has_documents(&self) -> bool {
        !self.databases.is_empty() || self.source.grouping().is_some()
    }
}

/// Documents that were read, and what is still to be written about them.
#[derive(Default)]
pub struct HomeDocuments {
    tables: Vec<TableReport>,
    /// Documents that are written already.
    new: u64,
    unchanged: u64,
    gone: Vec<FileId>,
    cursors: Vec<(String, String)>,
    /// Databases that were read.
    read: BTreeSet<String>,
    /// Databases that could not be read, and why.
    errors: Vec<(String, String)>,
}

impl HomeDocuments {
    /// `archived` reads from the archive that `store` writes to.
    pub fn read(
        store: &mut Store,
        archived: &Store,
        home: CapturedHome<'_>,
        now: Time,
        count: &mut dyn FnMut(&Batch),
    ) -> Result<HomeDocuments> {
        let CapturedHome { instance, source, verify, scratch, .. } = home;
        let mut found = HomeDocuments::default();
        let forgotten = &archived.forgotten()?;
        let home_of = DatabaseHome { instance, source, found: home.databases, scratch, forgotten, verify };
        let mut pending = PendingDocuments::new(store, instance, now, count);
        for database in home_of.databases() {
            let read = database.declared().filter(|declared| declared.is_read());
            let (documents, rows): (Vec<_>, Vec<_>) = read.partition(|declared| !declared.lines.is_empty());
            for declared in documents {
                let report = read_documents(archived, &database, declared, &mut pending)?;
                found.new += report.new;
                found.unchanged += report.unchanged;
                found.gone.extend(report.gone);
                found.errors.extend(report.error.map(|error| (database.name.clone(), error)));
                if report.cursor.is_some() {
                    found.read.insert(database.name.clone());
                }
                found.cursors.extend(report.cursor);
            }
            for declared in rows {
                found.tables.extend(database.read_table(archived, declared)?);
            }
            found.tables.extend(database.read_schema(archived)?);
            found.cursors.extend(database.count(archived, now)?);
        }
        let groups = read_groups(archived, (instance, source), home.ending, forgotten, &mut pending)?;
        pending.write()?;
        found.new += groups.new;
        found.gone.extend(groups.gone);
        found.cursors.extend(groups.cursor);
        for table in &mut found.tables {
            match table.error.take() {
                Some(error) => found.errors.push((table.database.clone(), error)),
                None => {
                    found.read.insert(table.database.clone());
                }
            }
        }
        Ok(found)
    }

    /// Whether there is nothing to write.
    pub fn is_idle(&self) -> bool {
        let has_rows = |table: &TableReport| !table.batches.is_empty() || !table.gone.is_empty();
        self.new == 0
            && self.gone.is_empty()
            && self.cursors.is_empty()
            && self.errors.is_empty()
            && !self.tables.iter().any(has_rows)
    }

    /// Returns the documents that are gone.
    pub fn write(
        self,
        writer: &mut Writer<'_>,
        instance: InstanceId,
        now: Time,
        (totals, warnings): (&mut Totals, &mut Vec<String>),
        count: &mut dyn FnMut(&mut Totals, &Batch),
    ) -> Result<Vec<FileId>> {
        let mut gone = self.gone;
        totals.documents += self.new + self.unchanged;
        totals.new_documents += self.new;
        let failed: BTreeSet<&str> = self.errors.iter().map(|(database, _)| database.as_str()).collect();
        for table in self.tables {
            if !table.is_schema {
                totals.documents += table.unchanged + table.batches.len() as u64;
                totals.new_documents += table.batches.len() as u64;
            }
            for batch in table.batches {
                count(totals, &batch);
                writer.apply(batch)?;
            }
            // What could not be read is read again by the next run.
            if !failed.contains(table.database.as_str()) {
                gone.extend(table.gone);
                writer.set_cursor(instance, &table.cursor.0, &table.cursor.1)?;
            }
        }
        writer.mark_gone(&gone, now)?;
        for (name, value) in &self.cursors {
            writer.set_cursor(instance, name, value)?;
        }
        for database in self.read.iter().filter(|name| !failed.contains(name.as_str())) {
            writer.close_gap(instance, GapStream::Databases, database, now)?;
        }
        for (database, error) in &self.errors {
            totals.unreadable += 1;
            // Several tables may be in one database: report it once.
            if !warnings.contains(error) {
                let seen = (FailureKind::Unreadable, error.as_str());
                writer.open_gap(instance, GapStream::Databases, database, seen, now)?;
                warnings.push(error.clone());
            }
        }
        Ok(gone)
    }
}
