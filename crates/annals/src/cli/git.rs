//! Runs `git`, if installed, to find the root, the files and the commits of a repository; read-only.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// The commit of each line of a file as it is on disk; none for lines that are not committed.
pub fn commits_of(file: &Path) -> Option<Vec<Option<String>>> {
    let folder = file.parent()?;
    let name = file.file_name()?.to_str()?;
    let output = run_git(folder, &["blame", "--porcelain", "--no-textconv", "--", name])?;
    let output = String::from_utf8_lossy(&output);
    let mut commits: Vec<Option<String>> = Vec::new();
    let mut commit = None;
    for line in output.lines() {
        // The content of the line follows a tab.
        if line.starts_with('\t') {
            commits.push(commit.take());
        } else if let Some((hash, rest)) = line.split_once(' ')
            && matches!(hash.len(), 40 | 64)
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            && rest.starts_with(|letter: char| letter.is_ascii_digit())
        {
            commit = Some(hash.to_owned()).filter(|hash| hash.bytes().any(|byte| byte != b'0'));
        }
    }
    Some(commits)
}

/// What git prints, if it succeeds. Settings of the repository cannot start other programs.
fn run_git(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks"])
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}
