//! Runs `git`, if installed, to find the root, the files and the commits of a repository; read-only.
//!
//! A repository's configuration can name programs: filters, text converters, monitors, hooks, remotes. None of them is
//! started, because only committed content is asked for and each of them is turned off.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use annals_core::Time;

/// How long lines are compared exactly; then larger changes count as one.
const COMPARING: Duration = Duration::from_millis(500);

/// The commit that a line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCommit {
    pub hash: String,
    /// When the line was there at the latest: the later of the author's and the committer's time.
    pub at: Option<Time>,
}

/// The root of the repository that contains a directory.
pub fn top_of(folder: &Path) -> Option<PathBuf> {
    let output = run_git(folder, &["rev-parse", "--show-toplevel"])?;
    let path = String::from_utf8(output).ok()?;
    Some(PathBuf::from(path.trim_end_matches('\n'))).filter(|path| path.is_dir())
}

/// The files of a repository below a directory.
pub fn files_of(folder: &Path) -> Option<Vec<PathBuf>> {
    let output = run_git(folder, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut files: Vec<PathBuf> =
        names.map(|name| folder.join(String::from_utf8_lossy(name).as_ref())).collect();
    files.sort();
    files.dedup();
    Some(files)
}

/// The files of a commit below a directory.
pub fn files_at(folder: &Path, commit: &str) -> Option<Vec<PathBuf>> {
    let output = run_git(folder, &["ls-tree", "-r", "-z", "--name-only", commit])?;
    let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Some(names.map(|name| folder.join(String::from_utf8_lossy(name).as_ref())).collect())
}

/// The full hash of a commit that a person named.
pub fn commit_named(folder: &Path, name: &str) -> Option<String> {
    let commit = format!("{name}^{{commit}}");
    let output = run_git(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?;
    Some(String::from_utf8(output).ok()?.trim().to_owned())
}

/// A file as it was committed, without any conversion.
pub fn committed_text(file: &Path, commit: &str) -> Option<Vec<u8>> {
    let name = file.file_name()?.to_str()?;
    run_git(file.parent()?, &["cat-file", "blob", &format!("{commit}:./{name}")])
}

/// The commit of each line of `text`, which is the file as of this commit or with changes; none for lines that are
/// not committed.
pub fn commits_of(file: &Path, text: &str, commit: &str) -> Option<Vec<Option<LineCommit>>> {
    let name = file.file_name()?.to_str()?;
    let committed = committed_text(file, commit)?;
    let output = run_git(file.parent()?, &["blame", "--porcelain", "--no-textconv", commit, "--", name])?;
    let known = read_porcelain(&String::from_utf8_lossy(&output));
    let committed = String::from_utf8_lossy(&committed);
    // Line ends may have been converted on checkout; `lines` drops them.
    let (before, after): (Vec<&str>, Vec<&str>) = (committed.lines().collect(), text.lines().collect());
    let mut commits = vec![None; after.len()];
    let deadline = Some(Instant::now() + COMPARING);
    for part in capture_diff_slices_deadline(Algorithm::Myers, &before, &after, deadline) {
        if let DiffOp::Equal { old_index, new_index, len } = part {
            for step in 0..len {
                commits[new_index + step] = known.get(old_index + step).cloned();
            }
        }
    }
    Some(commits)
}

/// The commit of each line in the output of `git blame --porcelain`.
fn read_porcelain(output: &str) -> Vec<LineCommit> {
    let mut times: HashMap<&str, Time> = HashMap::new();
    let (mut lines, mut commit) = (Vec::new(), "");
    for line in output.lines() {
        // The content of the line follows a tab.
        if line.starts_with('\t') {
            lines.push(commit);
        } else if let Some((name, value)) = line.split_once(' ') {
            if is_hash(name) {
                commit = name;
            } else if matches!(name, "author-time" | "committer-time")
                && let Some(at) = value.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000))
            {
                let at = Time::from_micros(at);
                times.entry(commit).and_modify(|latest| *latest = at.max(*latest)).or_insert(at);
            }
        }
    }
    lines.into_iter().map(|hash| LineCommit { hash: hash.to_owned(), at: times.get(hash).copied() }).collect()
}

fn is_hash(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What git prints, if it succeeds.
fn run_git(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    command
        .args(["--no-pager", "--no-optional-locks"])
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .arg("-C")
        .arg(folder)
        .args(arguments)
        // Missing objects are not fetched: that would start what a remote names.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    // Set while a hook runs; they would lead to another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"] {
        command.env_remove(name);
    }
    let output = command.output().ok()?;
    output.status.success().then_some(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_later_time_of_their_commit() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let output = format!(
            "{one} 1 1 1\nauthor ada\nauthor-time 100\ncommitter-time 300\nfilename a\n\tfirst\n\
             {two} 2 2 1\nauthor-time 200\ncommitter-time 150\nfilename a\n\tauthor-time 999\n\
             {one} 2 3\n\tthird\n"
        );
        let lines = read_porcelain(&output);
        let found: Vec<(&str, i64)> =
            lines.iter().map(|line| (&line.hash[..1], line.at.unwrap().micros() / 1_000_000)).collect();
        assert_eq!(found, [("1", 300), ("2", 200), ("1", 300)]);
    }
}
