//! Runs `git`, if installed, to find the root, the files and the commits of a repository; read-only.
//!
//! A repository's configuration can name programs: filters, text converters, monitors, hooks, remotes. None of them is
//! started, because only committed content is asked for and each of them is turned off.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::collect::{GitBlobs, is_repository};
use annals_core::Time;
use annals_sources::git::{CHECKPOINT_BRANCH, CHECKPOINT_REFS, TreeEntry};

/// Larger notes and metadata are not read.
const LARGEST_NOTE: u64 = 8 << 20;
/// How long lines are compared exactly; then larger changes count as one.
const COMPARING: Duration = Duration::from_millis(500);

/// The commit that a line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCommit {
    pub hash: String,
    /// When the line was there at the latest: the later of the author's and the committer's time.
    pub at: Option<Time>,
    /// The file and the number of the line in this commit; the path starts at the root of the repository.
    pub file: String,
    pub line: u32,
    pub author: String,
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
    let mut files: HashMap<&str, &str> = HashMap::new();
    let mut authors: HashMap<&str, &str> = HashMap::new();
    let (mut lines, mut commit, mut number) = (Vec::new(), "", 0);
    for line in output.lines() {
        // The content of the line follows a tab.
        if line.starts_with('\t') {
            lines.push((commit, number, files.get(commit).copied().unwrap_or_default()));
        } else if let Some((name, value)) = line.split_once(' ') {
            if is_hash(name) {
                commit = name;
                number = value.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            } else if name == "filename" {
                files.insert(commit, value);
            } else if name == "author" {
                authors.insert(commit, value);
            } else if matches!(name, "author-time" | "committer-time")
                && let Some(at) = value.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000))
            {
                let at = Time::from_micros(at);
                times.entry(commit).and_modify(|latest| *latest = at.max(*latest)).or_insert(at);
            }
        }
    }
    let known = |(hash, line, file): (&str, u32, &str)| LineCommit {
        hash: hash.to_owned(),
        at: times.get(hash).copied(),
        file: file.to_owned(),
        line,
        author: authors.get(hash).copied().unwrap_or_default().to_owned(),
    };
    lines.into_iter().map(known).collect()
}

/// The last commits of a file up to a commit, in order of time, with the times at which they were made.
pub fn history_of(file: &Path, commit: &str, most: usize) -> Vec<(String, Time)> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let most = format!("--max-count={most}");
    let output =
        run_git(folder, &["rev-list", "--format=%ct", &most, commit, "--", name]).unwrap_or_default();
    let output = String::from_utf8_lossy(&output);
    let mut history = Vec::new();
    let mut lines = output.lines();
    while let (Some(commit), Some(seconds)) = (lines.next(), lines.next()) {
        let at = seconds.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000));
        if let (Some(hash), Some(at)) = (commit.strip_prefix("commit "), at) {
            history.push((hash.to_owned(), Time::from_micros(at)));
        }
    }
    history.reverse();
    history.sort_by_key(|(_, at)| *at);
    history
}

/// The commits on local branches from one moment to before another, by whom git is configured for, in order of time:
/// hash, time and subject. Merges are left out.
pub fn commits_between(folder: &Path, from: Time, to: Time) -> Vec<(String, Time, String)> {
    let seconds = |time: Time| time.micros().div_euclid(1_000_000);
    let (since, until) =
        (format!("--max-age={}", seconds(from)), format!("--min-age={}", seconds(to).saturating_sub(1)));
    let email = run_git(folder, &["config", "--get", "user.email"]).unwrap_or_default();
    let email = String::from_utf8_lossy(&email).trim().to_owned();
    let author = format!("--author=<{email}>");
    let mut arguments = vec!["rev-list", "--branches", "--no-merges", "--fixed-strings", &since, &until];
    if !email.is_empty() {
        arguments.push(&author);
    }
    arguments.extend(["--format=%H%x00%ct%x00%s", "--"]);
    let output = run_git(folder, &arguments).unwrap_or_default();
    let mut commits = Vec::new();
    for line in String::from_utf8_lossy(&output).lines() {
        let mut parts = line.splitn(3, '\0');
        if let (Some(hash), Some(at), Some(subject)) = (parts.next(), parts.next(), parts.next())
            && let Ok(at) = at.parse()
        {
            commits.push((hash.to_owned(), Time::from_seconds(at), subject.to_owned()));
        }
    }
    commits.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    commits
}

/// Notes by the commit that they are about.
pub fn notes_of(folder: &Path, reference: &str) -> HashMap<String, String> {
    let entries = run_git(folder, &["ls-tree", "-r", "-z", "--full-tree", reference]).unwrap_or_default();
    let entries = entries.split(|byte| *byte == 0).filter_map(|entry| {
        let (facts, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
        // Large trees have directories named by the first letters.
        Some((path.replace('/', ""), facts.split(' ').nth(2)?.to_owned()))
    });
    entries.filter(|(commit, _)| is_hash(commit)).collect()
}

/// The refs that have checkpoints.
pub fn checkpoint_refs(folder: &Path) -> Vec<String> {
    let (own, remote) =
        (format!("refs/heads/{CHECKPOINT_BRANCH}"), format!("refs/remotes/*/{CHECKPOINT_BRANCH}"));
    let output = run_git(folder, &["for-each-ref", "--format=%(refname)", &own, &remote, CHECKPOINT_REFS])
        .unwrap_or_default();
    String::from_utf8_lossy(&output).lines().map(str::to_owned).collect()
}

/// The root of the repository that contains a directory, and what its checkpoint branches point to; only a few files
/// are read, and git does not run. `None` if there are no checkpoints.
pub fn checkpoint_state(folder: &Path) -> Option<(PathBuf, String)> {
    let top = folder.ancestors().find(|folder| is_repository(folder))?;
    let mut store = top.join(".git");
    if store.is_file() {
        // A worktree: its directory names the one that all worktrees share.
        let own = read_small(&store)?;
        let own = top.join(own.strip_prefix("gitdir:")?.trim());
        store = own.join(read_small(&own.join("commondir"))?.trim());
    }
    let mut tips: Vec<String> = Vec::new();
    let packed = read_small(&store.join("packed-refs")).unwrap_or_default();
    let is_checkpoint = |name: &str| {
        name.starts_with("refs/") && name.ends_with(CHECKPOINT_BRANCH) || name.starts_with(CHECKPOINT_REFS)
    };
    tips.extend(
        packed.lines().filter(|line| line.split(' ').nth(1).is_some_and(is_checkpoint)).map(str::to_owned),
    );
    let remotes = std::fs::read_dir(store.join("refs/remotes")).into_iter().flatten().flatten();
    let branches = remotes.map(|remote| remote.path()).chain([store.join("refs/heads")]);
    tips.extend(branches.filter_map(|branches| read_small(&branches.join(CHECKPOINT_BRANCH))));
    let own = std::fs::read_dir(store.join(CHECKPOINT_REFS)).into_iter().flatten().flatten();
    tips.extend(own.map(|shard| shard.file_name().to_string_lossy().into_owned()));
    tips.sort_unstable();
    let state = blake3::hash(tips.concat().as_bytes()).to_hex()[..32].to_owned();
    (!tips.is_empty()).then(|| (top.to_owned(), state))
}

/// A file of git, unless it is unusually large.
fn read_small(path: &Path) -> Option<String> {
    let facts = std::fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > LARGEST_NOTE {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// The files of a ref's tree.
pub fn tree_of(folder: &Path, reference: &str) -> Vec<TreeEntry> {
    let entries =
        run_git(folder, &["ls-tree", "-r", "-z", "--long", "--full-tree", reference]).unwrap_or_default();
    let entries = entries.split(|byte| *byte == 0).filter_map(|entry| {
        let (facts, path) = std::str::from_utf8(entry).ok()?.split_once('\t')?;
        let mut facts = facts.split_whitespace().skip(1).filter(|fact| *fact != "blob");
        let (blob, size) = (facts.next()?, facts.next()?.parse().ok()?);
        is_hash(blob).then(|| TreeEntry { blob: blob.to_owned(), size, path: path.to_owned() })
    });
    entries.collect()
}

/// The text of a blob, by its id or by `ref:path`.
pub fn blob_text(folder: &Path, name: &str) -> Option<String> {
    let size = String::from_utf8(run_git(folder, &["cat-file", "-s", name])?).ok()?;
    if size.trim().parse::<u64>().ok()? > LARGEST_NOTE {
        return None;
    }
    let bytes = run_git(folder, &["cat-file", "blob", name])?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The messages of commits, given by their full hashes.
pub fn messages_of(folder: &Path, commits: &[&str]) -> Vec<(String, String)> {
    let mut messages = Vec::new();
    for some in commits.chunks(100) {
        let fixed = ["rev-list", "--no-walk=unsorted", "--format=%x00%H%x00%B%x00"];
        let arguments = [&fixed[..], some, &["--"]].concat();
        let output = run_git(folder, &arguments).unwrap_or_default();
        let text = String::from_utf8_lossy(&output);
        // Before each hash is a line that names the commit. No message contains the separator.
        let mut parts = text.split('\0').skip(1);
        while let (Some(hash), Some(message)) = (parts.next(), parts.next()) {
            messages.push((hash.to_owned(), message.to_owned()));
            parts.next();
        }
    }
    messages
}

/// How many commits have trailers that name an assistant or a checkpoint.
pub fn commits_with_trailers(folder: &Path) -> usize {
    let patterns = ["--grep=^co-authored-by:", "--grep=^entire-checkpoint:"];
    let arguments = [&["rev-list", "--count", "--regexp-ignore-case"], &patterns[..], &["--branches", "--"]];
    let output = run_git(folder, &arguments.concat()).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().parse().unwrap_or(0)
}

/// Reads blobs of a repository as streams.
pub struct Blobs<'r> {
    pub folder: &'r Path,
}

impl GitBlobs for Blobs<'_> {
    fn open(&self, blob: &str) -> io::Result<Box<dyn Read>> {
        let mut child = command(self.folder, &["cat-file", "blob", blob]).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("git has no output"))?;
        Ok(Box::new(BlobReader { child, output }))
    }
}

/// The output of git; an error if git fails.
struct BlobReader {
    child: Child,
    output: ChildStdout,
}

impl Read for BlobReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.output.read(into)?;
        if read == 0 && !into.is_empty() && !self.child.wait()?.success() {
            return Err(io::Error::other("git cannot read the object"));
        }
        Ok(read)
    }
}

impl Drop for BlobReader {
    fn drop(&mut self) {
        // Nobody wants the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_hash(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What git prints, if it succeeds.
fn run_git(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = command(folder, arguments).output().ok()?;
    output.status.success().then_some(output.stdout)
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(["--no-pager", "--no-optional-locks"])
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"])
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
    command
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
        let places: Vec<(&str, u32)> = lines.iter().map(|line| (line.file.as_str(), line.line)).collect();
        assert_eq!(places, [("a", 1), ("a", 2), ("a", 2)]);
    }
}
