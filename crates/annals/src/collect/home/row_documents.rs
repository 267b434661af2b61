//! Documents of many rows: only those with changed rows are read, each in a moment, and written before the next ones.

use std::collections::HashMap;

use super::databases::ClientDatabase;
use super::pending::PendingDocuments;
use crate::collect::ingest::target::Target;
use annals_core::{Database, FileId, Framing, Result};
use annals_store::{Packer, Store};

/// The result of reading the documents of one declaration.
#[derive(Default)]
pub struct DocumentsReport {
    pub new: u64,
    pub unchanged: u64,
    pub gone: Vec<FileId>,
    pub error: Option<String>,
    /// Stored so that an unchanged database is not opened again.
    pub cursor: Option<(String, String)>,
}

/// Reads the documents whose rows changed since the last run.
pub fn read_documents(
    store: &Store,
    database: &ClientDatabase<'_>,
    declared: &'static Database,
    pending: &mut PendingDocuments<'_>,
) -> Result<DocumentsReport> {
    let home = database.home();
    let name = format!("{}/{}", database.name, declared.table);
    let mut report = DocumentsReport::default();
    let is_known = store.cursor(home.instance, &name)?.as_deref() == Some(database.fingerprint.as_str());
    if is_known && !home.verify {
        return Ok(report);
    }
    let stamps = database.open().and_then(|opened| opened.document_stamps(declared.lines));
    let stamps = match stamps {
        Ok(stamps) => stamps,
        Err(unreadable) => {
            report.error = database.explain(unreadable);
            return Ok(report);
        }
    };
    let prefix = format!("stamp {name}/");
    let before: HashMap<String, String> = store.cursors(home.instance, &prefix)?.into_iter().collect();
    let mut known = database.known(store, &name)?;
    let mut packer = Packer::new()?;
    for (key, stamp) in stamps {
        let captured = known.remove(&key);
        let is_same = before.get(&key) == Some(&stamp) && captured.as_ref().is_some_and(|file| !file.gone);
        if is_same && !home.verify {
            report.unchanged += 1;
            continue;
        }
        let bytes = match database.open().and_then(|opened| opened.document(declared.lines, &key)) {
            Ok(bytes) => bytes,
            Err(unreadable) => {
                // The others can still be read.
                report.error = report.error.or(database.explain(unreadable));
                continue;
            }
        };
        let path = format!("{name}/{key}");
        let target = Target::archived(home.instance, home.source, &path, declared.table, declared.reader);
        let target = target.framed(Framing::Lines).mutable().database_row();
        let batch = database.document(store, &target, captured.as_ref(), bytes, &mut packer)?;
        match &batch {
            Some(_) => report.new += 1,
            None => report.unchanged += 1,
        }
        pending.add(batch, Some((format!("{prefix}{key}"), stamp)))?;
    }
    report.gone = known.values().filter(|file| !file.gone).map(|file| file.id).collect();
    report.cursor = Some((name, database.fingerprint.clone())).filter(|_| report.error.is_none());
    Ok(report)
}
