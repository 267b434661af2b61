//! Names of projects: clients file sessions under a hash of the working directory, later under a short name.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::home::authored::WholeFileReader;
use crate::json::Line;
use crate::{Facts, FileContext, Reader};
use annals_core::{Item, ProjectPath, Verdict};

/// The SHA-256 of a directory's path in hex, as clients name its folder.
pub fn hash_of(path: &str) -> String {
    Sha256::digest(path.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folder below `tmp/` that a file belongs to.
pub fn name_in(path: &str) -> Option<&str> {
    path.strip_prefix("tmp/")?.split('/').next()
}

/// The directory among a path and its parents whose hash is the project's.
pub fn directory_with_hash(path: &str, hash: &str) -> Option<String> {
    let mut at = Some(path.trim_end_matches(['/', '\\'])).filter(|path| path.len() < 4_096);
    while let Some(folder) = at.filter(|folder| !folder.is_empty()) {
        if hash_of(folder) == hash {
            return Some(folder.to_owned());
        }
        at = folder.rfind(['/', '\\']).map(|end| &folder[..end]);
    }
    None
}

/// A directory under its hash, and under a short name if it has one.
fn named(path: &str, name: Option<&str>, out: &mut Vec<Item>) {
    let mut add = |name: String| out.push(Item::Project(ProjectPath { name, path: path.to_owned() }));
    add(hash_of(path));
    if let Some(name) = name {
        add(name.to_owned());
    }
}

/// `projects.json`: paths and their short names. `trustedFolders.json` and `.project_root` have paths as well.
pub struct ProjectsReader {
    record: WholeFileReader,
    /// The project whose folder the file is in.
    name: Option<String>,
}

impl ProjectsReader {
    pub fn new(file: &FileContext) -> ProjectsReader {
        let key = file.path.clone();
        let name = name_in(&file.path).map(str::to_owned);
        ProjectsReader { record: WholeFileReader::new("projects", key, file), name }
    }
}

impl Reader for ProjectsReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let verdict = self.record.read(offset, line, out);
        if let Some(name) = &self.name {
            let path = String::from_utf8_lossy(line.bytes());
            named(path.trim(), Some(name), out);
            return verdict;
        }
        let Some(document) = line.json().filter(|document| document.is_object()) else {
            return Verdict::Malformed("not JSON".into());
        };
        match document.get("projects") {
            Some(projects) => {
                for (path, name) in projects.fields() {
                    named(&crate::json::unescape(path), name.text().as_deref(), out);
                }
            }
            None => {
                for (path, _) in document.fields() {
                    named(&crate::json::unescape(path), None, out);
                }
            }
        }
        verdict
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// What a record of projects says.
pub fn record(key: &str, bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    match serde_json::from_slice::<Value>(bytes) {
        Ok(document) => json!({"id": key, "projects": document.get("projects").unwrap_or(&document)}),
        Err(_) => {
            let name = name_in(key).unwrap_or(key);
            json!({"id": key, "projects": {text.trim(): name}})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{directory_with_hash, hash_of};

    #[test]
    fn a_directory_is_recognised_by_its_hash() {
        let hash = hash_of("/home/ada/gauge");
        assert_eq!(hash, "d9012ab4500316c063ff8eaaf692eff4c4dab89440e71e85d2e8bbb3fef81605");
        let found = directory_with_hash("/home/ada/gauge/src/dial.rs", &hash);
        assert_eq!(found.as_deref(), Some("/home/ada/gauge"));
        assert_eq!(directory_with_hash("/home/ada/other/dial.rs", &hash), None);
        assert_eq!(directory_with_hash("", &hash), None);
    }
}
