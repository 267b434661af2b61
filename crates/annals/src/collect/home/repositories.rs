//! Authored files of repositories that sessions ran in: only the declared names, only below the repository.

use std::path::Path;

use super::walk::{FoundFile, stat_of};
use annals_core::Rule;
use annals_sources::REPOSITORIES;

/// More files than this below one declared folder are not somebody's notes.
const MOST: usize = 5_000;

/// What a look at one repository found.
#[derive(Default)]
pub struct Looked {
    pub found: Vec<FoundFile>,
    /// Links that lead out of the repository: recorded, not followed.
    pub outside: Vec<String>,
}

/// The declared files of a repository. `home` is the client's own folder, which is never a repository's.
pub fn look(repository: &Path, home: &Path, rules: &'static [Rule]) -> Looked {
    let mut looked = Looked::default();
    let Ok(root) = repository.canonicalize() else { return looked };
    for rule in rules {
        let (base, deep) = match rule.pattern.strip_suffix("/**") {
            Some(folder) => (root.join(folder), true),
            None => (root.join(rule.pattern), false),
        };
        let mut left = vec![base];
        let mut seen = 0;
        while let Some(path) = left.pop() {
            seen += 1;
            if seen > MOST {
                break;
            }
            let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
            let name = format!("{REPOSITORIES}{}", path.to_string_lossy());
            let target = path.canonicalize().ok().filter(|target| target.starts_with(&root));
            let Some(target) = target else {
                looked.outside.push(name);
                continue;
            };
            if target.starts_with(home) {
                continue;
            }
            if metadata.is_dir() && deep {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                left.extend(entries.map(|entry| entry.path()));
            } else if let Some(metadata) = std::fs::metadata(&target).ok().filter(std::fs::Metadata::is_file)
            {
                let (size, stat) = (metadata.len(), stat_of(&metadata));
                looked.found.push(FoundFile { path: name, disk: target, size, stat, rule });
            }
        }
    }
    looked.found.sort_by(|a, b| a.path.cmp(&b.path));
    looked.found.dedup_by(|a, b| a.path == b.path);
    looked
}
