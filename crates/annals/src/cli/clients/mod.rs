//! Changes to clients' own files: only on request, shown first, and undone exactly.

pub mod json;
pub mod toml;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use annals_core::{Error, Result};
use annals_sources::{ServerForm, ServerList};

/// The name under which clients list annals.
pub const NAME: &str = "annals";
/// Larger files are no settings.
const LARGEST: u64 = 64 << 20;

/// What a change needs to know to be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub(in crate::cli) enum Added {
    /// The file did not exist.
    File,
    /// The list of servers did not exist.
    List,
    Entry,
}

/// A change to a client's file that was not made yet.
pub(in crate::cli) struct Change {
    pub file: PathBuf,
    /// None if the file is to be deleted.
    after: Option<String>,
    /// Lines that are removed and added; nothing else of the file is shown.
    pub removed: Vec<String>,
    pub added: Vec<String>,
    pub undo: Added,
}

/// Lists a program in a client's file; none if it is there already.
pub fn install(list: &ServerList, command: &str, arguments: &[String]) -> Result<Option<Change>> {
    let before = read(&list.file)?;
    let text = before.as_deref().unwrap_or_default();
    let edited = match list.form {
        ServerForm::Json { key, entry } => json::set(text, key, NAME, &entry(command, arguments)),
        ServerForm::Toml { key } => toml::set(text, key, NAME, command, arguments),
    };
    let edited = edited.map_err(|why| unreadable(&list.file, &why))?;
    Ok(edited.map(|edited| Change {
        file: list.file.clone(),
        after: Some(edited.text),
        removed: edited.removed,
        added: edited.added,
        undo: match before {
            None => Added::File,
            Some(_) if edited.made_list => Added::List,
            Some(_) => Added::Entry,
        },
    }))
}

/// Removes it again; none if it is not there. `added` is what was added with it.
pub fn remove(list: &ServerList, added: Added) -> Result<Option<Change>> {
    let Some(text) = read(&list.file)? else { return Ok(None) };
    let with_list = added != Added::Entry;
    let edited = match list.form {
        ServerForm::Json { key, .. } => json::remove(&text, key, NAME, with_list),
        ServerForm::Toml { key } => toml::remove(&text, key, NAME),
    };
    let edited = edited.map_err(|why| unreadable(&list.file, &why))?;
    Ok(edited.map(|edited| {
        let is_empty = matches!(edited.text.trim(), "" | "{}");
        Change {
            file: list.file.clone(),
            after: Some(edited.text).filter(|_| added != Added::File || !is_empty),
            removed: edited.removed,
            added: Vec::new(),
            undo: added,
        }
    }))
}

/// The text after an edit, and the lines that differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    pub removed: Vec<String>,
    pub added: Vec<String>,
    pub made_list: bool,
}

impl Change {
    /// Replaces the file at once: whoever reads it sees the old one or the new one.
    pub fn write(&self) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::new(format!("cannot write {}: {error}", self.file.display()));
        // A link to a file elsewhere stays one.
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let Some(after) = &self.after else { return fs::remove_file(&file).map_err(failed) };
        replace(&file, after.as_bytes()).map_err(failed)
    }
}

/// Writes a file with the permissions of the one it replaces; a new one is the owner's alone.
pub fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    if let Ok(before) = fs::metadata(file) {
        written.as_file().set_permissions(before.permissions())?;
    }
    written.write_all(bytes)?;
    written.as_file().sync_all()?;
    written.persist(file).map_err(|error| error.error)?;
    Ok(())
}

fn read(file: &Path) -> Result<Option<String>> {
    let facts = match fs::metadata(file) {
        Ok(facts) => facts,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::new(format!("cannot read {}: {error}", file.display()))),
    };
    if !facts.is_file() || facts.len() > LARGEST {
        return Err(unreadable(file, "it is no settings file"));
    }
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(unreadable(file, &error.to_string())),
    }
}

/// The cause has no content of the file.
fn unreadable(file: &Path, why: &str) -> Error {
    Error::new(format!("cannot change {}: {why}", file.display()))
        .hint("fix the file, or add the server with the client's own command; nothing was changed")
}
