//! Authored files of repositories that sessions ran in: only the declared names, only below the repository.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::walk::{Rules, WalkedFile, stat_of};
use annals_core::Rule;
use annals_sources::REPOSITORIES;

/// A declared folder with more files than this does not contain notes.
const MOST: usize = 5_000;

/// A `.git` file contains one path.
const LONGEST_POINTER: u64 = 4_096;

/// The declared files in one folder of a repository.
#[derive(Default)]
pub struct FolderSurvey {
    pub found: Vec<WalkedFile>,
    /// Links out of the repository: reported, not followed.
    pub outside: Vec<String>,
}

/// A folder whose files apply to a session, and the repository that it is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryFolder {
    pub folder: PathBuf,
    pub root: PathBuf,
}

/// The folder of a session and its parents up to the root of the repository. For a submodule, or a worktree inside its
/// repository, up to the root of the outer repository. Outside of repositories, only the folder itself.
pub fn folders_above(start: &Path) -> Vec<RepositoryFolder> {
    let Ok(start) = start.canonicalize() else { return Vec::new() };
    let mut root = None;
    let mut above = start.ancestors();
    while let Some(folder) = above.by_ref().find(|folder| is_repository(folder)) {
        root = Some(folder);
        let outer =
            git_folder(folder).filter(|git| above.clone().any(|outer| git.starts_with(outer.join(".git"))));
        if outer.is_none() {
            break;
        }
    }
    let root = root.unwrap_or(&start);
    let folders = start.ancestors().take_while(|folder| folder.starts_with(root));
    folders.map(|folder| RepositoryFolder { folder: folder.to_owned(), root: root.to_owned() }).collect()
}

/// Whether a folder is the root of a checkout. Sandboxes of clients leave an empty `.git` in folders that are none.
pub fn is_repository(folder: &Path) -> bool {
    let mark = folder.join(".git");
    match std::fs::symlink_metadata(&mark) {
        Ok(metadata) if metadata.is_dir() => {
            std::fs::read_dir(&mark).is_ok_and(|mut entries| entries.next().is_some())
        }
        found => found.is_ok(),
    }
}

/// The Git directory of a checkout, if `.git` is a file that points to it.
fn git_folder(checkout: &Path) -> Option<PathBuf> {
    let pointer = checkout.join(".git");
    if !std::fs::symlink_metadata(&pointer).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(pointer).ok()?.take(LONGEST_POINTER).read_to_string(&mut text).ok()?;
    checkout.join(text.trim().strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

/// Lists the declared files of one folder. `home` is the client's home, which is never part of a repository; `never`
/// has the rules for files that are never opened.
pub fn survey_folder(
    place: &RepositoryFolder,
    home: &Path,
    rules: &'static [Rule],
    never: &Rules,
) -> FolderSurvey {
    let mut survey = FolderSurvey::default();
    let is_barred = |path: &Path| {
        let inner = path.strip_prefix(&place.root).unwrap_or(path);
        let parts: Vec<_> = inner.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        never.bars(&parts.join("/"))
    };
    for rule in rules {
        let (base, deep) = match rule.pattern.strip_suffix("/**") {
            Some(folder) => (place.folder.join(folder), true),
            None => (place.folder.join(rule.pattern), false),
        };
        let mut left = vec![base];
        let mut seen = 0;
        while let Some(path) = left.pop() {
            seen += 1;
            if seen > MOST {
                break;
            }
            let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
            if is_barred(&path) {
                continue;
            }
            let name = format!("{REPOSITORIES}{}", path.to_string_lossy());
            let target = path.canonicalize().ok().filter(|target| target.starts_with(&place.root));
            let Some(target) = target else {
                survey.outside.push(name);
                continue;
            };
            if target.starts_with(home) || is_barred(&target) {
                continue;
            }
            if metadata.is_dir() && deep {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                left.extend(entries.map(|entry| entry.path()));
            } else if let Some(metadata) = std::fs::metadata(&target).ok().filter(std::fs::Metadata::is_file)
            {
                let (size, stat) = (metadata.len(), stat_of(&metadata));
                survey.found.push(WalkedFile { path: name, disk: target, size, stat, rule, chosen: None });
            }
        }
    }
    survey.found.sort_by(|a, b| a.path.cmp(&b.path));
    survey.found.dedup_by(|a, b| a.path == b.path);
    survey
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::folders_above;

    fn folders(start: &Path, below: &Path) -> Vec<String> {
        let shown = |path: &Path| path.strip_prefix(below).unwrap_or(path).to_string_lossy().into_owned();
        folders_above(start).iter().map(|place| shown(&place.folder)).collect()
    }

    #[test]
    fn folders_end_at_the_root_of_the_repository() {
        let scratch = tempfile::tempdir().expect("a folder");
        let top = scratch.path().canonicalize().expect("a folder");
        let make = |path: &str| std::fs::create_dir_all(top.join(path)).expect("made");
        let point = |path: &str, to: &str| {
            std::fs::write(top.join(path).join(".git"), format!("gitdir: {to}\n")).expect("written");
        };
        make("engine/.git/modules/gears");
        make("engine/.git/worktrees/trees");
        make("engine/.git/worktrees/inner");
        make("engine/crates/dial/src");
        make("engine/gears/teeth");
        make("engine/.own/worktrees/inner");
        make("trees/src");
        make("loose/notes");
        make("loose/.git");
        point("engine/gears", "../.git/modules/gears");
        point(
            "engine/.own/worktrees/inner",
            top.join("engine/.git/worktrees/inner").to_str().expect("UTF-8"),
        );
        point("trees", top.join("engine/.git/worktrees/trees").to_str().expect("UTF-8"));
        for (start, expected) in [
            (
                "engine/crates/dial/src",
                &["engine/crates/dial/src", "engine/crates/dial", "engine/crates", "engine"][..],
            ),
            ("engine", &["engine"]),
            ("engine/gears/teeth", &["engine/gears/teeth", "engine/gears", "engine"]),
            (
                "engine/.own/worktrees/inner",
                &["engine/.own/worktrees/inner", "engine/.own/worktrees", "engine/.own", "engine"],
            ),
            ("trees/src", &["trees/src", "trees"]),
            // An empty `.git` is no repository.
            ("loose/notes", &["loose/notes"]),
        ] {
            assert_eq!(folders(&top.join(start), &top), expected, "{start}");
        }
        std::fs::write(top.join("trees/.git"), [0xff; 10_000]).expect("written");
        assert_eq!(folders(&top.join("trees/src"), &top), ["trees/src", "trees"], "a pointer that is none");
        assert!(folders_above(&top.join("nowhere")).is_empty());
    }
}
