//! `annals blame`: which session wrote each line of a file, a text, or a whole directory.

mod over_time;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::evidence;
use crate::cli::git::{self, LineCommit};
use crate::cli::ui::table::{Column, fit};
use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::view::format::{counted, percent};
use crate::view::{
    Blame, BlameSpan, BlameSums, CodeFile, Evidence, LineGrades, Origin, Share, ShortIds, View, blame_sums,
};
use annals_core::{Error, Result, Shown, Time};

#[derive(Args)]
#[command(after_help = "Grades:\n  \
                  exact     the text of the edit is unchanged\n  \
                  moved     the same text, elsewhere or in another file\n  \
                  changed   similar text\n  \
                  read      a session read the line, none wrote it\n  \
                  noted     a note of git-ai on the commit names who wrote it\n  \
                  trailer   a trailer of the commit names an assistant\n  \
                  unknown   no session is known to have written it\n\n\
                  Lines are matched by content, not by commit: renames, rebases and formatters do not matter.\n\
                  No edit is credited with a line that was committed, or saved, before it.\n\
                  Notes and trailers are read from the repository; they never outweigh the text of an edit, and are\n\
                  shown as disagreeing if they name a session that never touched the file.")]
pub struct BlameArguments {
    /// File, or lines of a file: FILE:12, FILE:12-40
    #[arg(value_name = "FILE[:A[-B]]", required_unless_present_any = ["text", "stat"])]
    file: Option<String>,
    /// Trace this text instead of a file
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["file", "stat"])]
    text: Option<String>,
    /// Summarize a directory: share of lines by session, source and model
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    stat: Option<PathBuf>,
    /// With --stat: shares by month, and how many lines of sessions survive 1, 7, 30 and 90 days
    #[arg(long, requires = "stat", conflicts_with_all = ["no_git", "at"])]
    over_time: bool,
    /// Trace the file or directory as it was at this commit
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["text", "no_git"])]
    at: Option<String>,
    /// Print a stable format for programs, like `git blame --porcelain`
    #[arg(long, conflicts_with = "stat")]
    porcelain: bool,
    /// Do not run git to find the repository root and commits
    #[arg(long)]
    no_git: bool,
}

/// Columns of the terminal for what is known about a line.
const SUMMARY: usize = 54;
/// Larger files are treated as data.
const LARGEST: u64 = 8 << 20;
/// Lines of files that are traced at once.
const AT_ONCE: usize = 200_000;

pub fn run(context: &mut Context, options: &BlameArguments) -> Result<Outcome> {
    let store = context.archive()?.ok_or_else(|| Error::new("no archive yet").hint("annals sync"))?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    if let Some(folder) = &options.stat {
        return summarize(context, &view, folder, options);
    }
    let (file, lines, commits, place) = match (&options.text, &options.file) {
        (Some(text), _) => {
            let (path, text) = (String::new(), text.clone());
            (CodeFile { path, root: None, text, deadlines: Vec::new() }, None, None, None)
        }
        (None, Some(argument)) => {
            let (path, lines) = split_lines(argument)?;
            let place = Place::of(&path, options)?;
            let mut file = place.read(&place.path)?;
            let commits = place.date(&mut file);
            (file, lines, commits, Some(place))
        }
        (None, None) => return Err(Error::bad_request("no file given")),
    };
    let traced = trace(&view, std::slice::from_ref(&file))?;
    let Some(mut traced) = traced.into_iter().next() else { return Ok(Outcome::Nothing) };
    if let (Some(commits), Some(top)) = (&commits, place.as_ref().and_then(|place| place.top.as_ref())) {
        let (statements, of_lines) = evidence::statements(top, commits);
        if !statements.is_empty() {
            let path = Path::new(&file.path).strip_prefix(top).unwrap_or(Path::new(&file.path));
            view.add_evidence(&mut traced, &path.to_string_lossy(), &statements, &of_lines)?;
        }
    }
    let shown = view.shown_lines(&file.text);
    let (from, to) = lines.unwrap_or((1, usize::MAX));
    if from > shown.len() {
        return Err(Error::bad_request(format!(
            "line {from} is out of range: the file has {}",
            counted(shown.len(), "line")
        )));
    }
    let to = to.min(shown.len());
    let part = Part { blame: &traced.part(from, to), lines: &shown, commits: commits.as_deref(), from, to };
    if options.porcelain {
        porcelain(context, &part)?;
    } else if context.json {
        context.output.json(&document(&part)?)?;
    } else {
        let ids = context.short_ids(&view)?;
        table(context, &part, &ids)?;
    }
    let is_known = !part.blame.origins.is_empty() || !part.blame.evidence.is_empty();
    Ok(if is_known { Outcome::Done } else { Outcome::Nothing })
}

/// One read of the archive: its locks are taken once.
fn trace(view: &View<'_>, files: &[CodeFile]) -> Result<Vec<Blame>> {
    view.at_once(|| view.blame(files))
}

/// The requested lines, with all that is known about them.
struct Part<'a> {
    blame: &'a Blame,
    lines: &'a [Shown],
    commits: Option<&'a [Option<LineCommit>]>,
    from: usize,
    to: usize,
}

impl Part<'_> {
    /// Number, text, span and line when written of each line.
    fn each(&self) -> impl Iterator<Item = (usize, &Shown, &BlameSpan, Option<u32>)> {
        self.blame.spans.iter().flat_map(move |span| {
            (span.start..=span.end).filter_map(move |number| {
                let step = u32::try_from(number - span.start).ok()?;
                let written = span.written_at_line.and_then(|line| line.checked_add(step));
                Some((number, self.lines.get(number - 1)?, span, written))
            })
        })
    }

    fn commit(&self, number: usize) -> Option<&str> {
        self.commits?.get(number - 1)?.as_ref().map(|commit| commit.hash.as_str())
    }
}

fn table(context: &mut Context, part: &Part<'_>, ids: &ShortIds) -> Result<()> {
    let width = part.to.to_string().len();
    // Half of the terminal is for the text.
    let room = context.output.width();
    let least = if part.commits.is_some() { 21 } else { 12 };
    let wide = room.map_or(SUMMARY, |room| (room / 2).saturating_sub(least + width).clamp(10, SUMMARY));
    let mut last = None;
    for (number, text, span, _) in part.each() {
        let BlameSpan { grade, origin, evidence, .. } = *span;
        let call = origin.and_then(|origin| part.blame.origins.get(origin));
        let statement = evidence.and_then(|evidence| part.blame.evidence.get(evidence));
        // Printed once per span, so that the start of the next one is easy to find.
        let summary = match (call, statement) {
            _ if last == Some((origin, evidence, grade)) => String::new(),
            (_, Some(statement)) if statement.kind == grade => describe_evidence(statement),
            (Some(call), _) => describe_call(call, ids),
            (None, _) => String::new(),
        };
        let summary = fit(&summary, wide);
        last = Some((origin, evidence, grade));
        let commit = match (part.commits.is_some(), part.commit(number)) {
            (true, Some(commit)) => format!("{} ", &commit[..8]),
            (true, None) => "         ".to_owned(),
            (false, _) => String::new(),
        };
        let grade = if grade == "unknown" { "-" } else { grade };
        let head = context.output.faint(&format!("{commit}{grade:<7} {summary:<wide$} {number:>width$} │"));
        let left = room.map(|room| room.saturating_sub(wide + width + least));
        let text = left.map_or(text.to_string(), |left| fit(&text.as_str().replace('\t', "    "), left));
        context.output.line(format!("{head} {text}").trim_end())?;
    }
    if context.quiet {
        return Ok(());
    }
    context.output.flush()?;
    let mut shown = HashSet::new();
    for (_, _, span, _) in part.each() {
        let Some(number) = span.origin.filter(|origin| shown.insert(*origin)) else { continue };
        let Some(call) = part.blame.origins.get(number) else { continue };
        let prompt = call.prompt.as_ref().map_or("(no prompt)", Shown::as_str);
        let show = format!("annals show {} --at {}", ids.of(&call.session_id), call.message_id);
        context.output.note(format!("{}  {prompt}\n", describe_call(call, ids)).trim_end());
        context.output.note(format!("    {show}"));
    }
    for statement in &part.blame.evidence {
        context.output.note(explain_evidence(statement));
    }
    context.output.note(format!(
        "{}: {}",
        counted(part.blame.lines.total, "line"),
        grades(&part.blame.lines)
    ));
    Ok(())
}

/// Numbers of lines by grade; those of notes and trailers only if there are any.
fn grades(lines: &LineGrades) -> String {
    let all = [
        (lines.exact, "exact", true),
        (lines.moved, "moved", true),
        (lines.changed, "changed", true),
        (lines.read, "read", true),
        (lines.noted, "noted", false),
        (lines.trailer, "trailer", false),
        (lines.unknown, "unknown", true),
    ];
    let shown = all.iter().filter(|(count, _, always)| *always || *count > 0);
    shown.map(|(count, name, _)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Whom a note or a trailer names.
fn describe_evidence(statement: &Evidence) -> String {
    let parts = [&statement.tool, &statement.session_id, &statement.model, &statement.person];
    let parts: Vec<&str> = parts.into_iter().flatten().map(Shown::as_str).collect();
    parts.join(" ").chars().take(54).collect()
}

fn explain_evidence(statement: &Evidence) -> String {
    let what = if statement.kind == "noted" { "note" } else { "trailer" };
    let names = describe_evidence(statement);
    let end = match (statement.status, statement.contradicted) {
        ("disagrees", _) => ", which never touched this file: disagrees".to_owned(),
        (_, 0) => String::new(),
        (_, lines) => format!(": disagrees with the edits that wrote {}", counted(lines, "line")),
    };
    format!("{what} of commit {} names {names}{end}", &statement.commit[..8.min(statement.commit.len())])
}

/// A tool call on one line.
fn describe_call(call: &Origin, ids: &ShortIds) -> String {
    let at = time::local_text(call.at.as_ref());
    let id: String = ids.of(&call.session_id).chars().take(13).collect();
    let model = call.model.as_deref().unwrap_or("");
    let words = format!("{at} {id} {model} {}", call.tool);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn document(part: &Part<'_>) -> Result<Value> {
    let mut document = serde_json::to_value(part.blame)?;
    if part.commits.is_some() {
        let commits = (part.from..=part.to).map(|number| json!(part.commit(number)));
        document["commits"] = Value::Array(commits.collect());
        document["commits_from"] = Value::from(part.from);
    }
    Ok(document)
}

/// Like `git blame --porcelain`: a header for each line, with the details of a call where it first appears.
fn porcelain(context: &mut Context, part: &Part<'_>) -> Result<()> {
    let mut described = HashSet::new();
    for (number, text, span, written) in part.each() {
        let BlameSpan { grade, origin, evidence, .. } = *span;
        let call = origin.and_then(|origin| part.blame.origins.get(origin));
        let id = call.map_or("0000000000000000", |call| call.id.as_str());
        context
            .output
            .line(format!("{id} {} {number}", written.map_or_else(|| "0".into(), |line| line.to_string())))?;
        context.output.line(format!("grade {grade}"))?;
        if let Some(commit) = part.commit(number) {
            context.output.line(format!("commit {commit}"))?;
        }
        if let Some(statement) = evidence.and_then(|evidence| part.blame.evidence.get(evidence)) {
            let names = describe_evidence(statement);
            context.output.line(format!("evidence {} {} {names}", statement.kind, statement.status))?;
        }
        if let (Some(call), Some(origin)) = (call, origin)
            && described.insert(origin)
        {
            let at = call.at.as_deref().and_then(Time::parse).map_or(0, |at| at.micros() / 1_000_000);
            let prompt = call.prompt.as_ref().map_or("", Shown::as_str);
            for (name, value) in [
                ("source", call.source.as_str()),
                ("session", &call.session_id),
                ("call", call.call_id.as_str()),
                ("tool", &call.tool),
                ("model", call.model.as_deref().unwrap_or_default()),
                ("time", &at.to_string()),
                ("summary", prompt),
                ("filename", call.file.as_str()),
            ] {
                context.output.line(format!("{name} {value}").trim_end())?;
            }
        }
        context.output.line(format!("\t{text}"))?;
    }
    Ok(())
}

fn summarize(
    context: &mut Context,
    view: &View<'_>,
    folder: &Path,
    options: &BlameArguments,
) -> Result<Outcome> {
    let place = Place::of(folder, options)?;
    if options.over_time {
        return over_time::run(context, view, &place);
    }
    let (mut files, mut lines, mut traced) = (Vec::new(), 0, Vec::new());
    for path in place.files()? {
        // Skip binary files and files that are gone by now.
        let Ok(file) = place.read(&path) else { continue };
        lines += file.text.lines().count();
        files.push(file);
        if lines >= AT_ONCE {
            traced.extend(trace_dated(view, &place, std::mem::take(&mut files))?);
            lines = 0;
        }
    }
    traced.extend(trace_dated(view, &place, files)?);
    for blame in &mut traced {
        blame.make_relative(&place.path.to_string_lossy());
    }
    let sums = blame_sums(&traced);
    if context.json {
        context.output.json(&sums)?;
    } else {
        print_sums(context, &sums)?;
    }
    Ok(if sums.sessions.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

/// Traces files by their text, then those that sessions seem to have written once more, with the times of their
/// commits: git takes far longer than the archive.
fn trace_dated(view: &View<'_>, place: &Place, mut files: Vec<CodeFile>) -> Result<Vec<Blame>> {
    let mut traced = trace(view, &files)?;
    let is_written =
        |blame: &Blame| blame.spans.iter().any(|span| span.origin.is_some() && span.grade != "read");
    let written: Vec<usize> =
        (0..traced.len()).filter(|at| place.commit.is_some() && is_written(&traced[*at])).collect();
    let mut dated: Vec<CodeFile> = written.iter().map(|at| std::mem::take(&mut files[*at])).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = dated.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for files in dated.chunks_mut(share) {
            scope.spawn(move || {
                for file in files {
                    place.date(file);
                }
            });
        }
    });
    for (at, blame) in written.into_iter().zip(trace(view, &dated)?) {
        traced[at] = blame;
    }
    Ok(traced)
}

fn print_sums(context: &mut Context, sums: &BlameSums) -> Result<()> {
    let rows: Vec<Vec<String>> = sums
        .files
        .iter()
        .map(|file| {
            let lines = file.lines;
            let counts = [lines.total, lines.exact, lines.moved, lines.changed, lines.read, lines.unknown];
            [&[file.file.to_string()], &counts.map(|count| count.to_string())[..]].concat()
        })
        .collect();
    let columns = [
        Column::text("file").cut_front(20),
        Column::number("lines"),
        Column::number("exact"),
        Column::number("moved").leave_out(2),
        Column::number("changed").leave_out(3),
        Column::number("read").leave_out(1),
        Column::number("unknown"),
    ];
    context.output.table("", &columns, &rows)?;
    for (title, shares) in [("session", &sums.sessions), ("source", &sums.sources), ("model", &sums.models)] {
        context.output.line("")?;
        let row = |share: &Share| {
            let title = share.title.as_ref().map_or(String::new(), ToString::to_string);
            vec![share.name.clone(), share.lines.to_string(), percent(share.share), title]
        };
        let rows: Vec<Vec<String>> = shares.iter().map(row).collect();
        let columns = [
            Column::text(title).cut_end(8),
            Column::number("lines"),
            Column::number("share"),
            Column::text("").cut_end(16),
        ];
        context.output.table("", &columns, &rows)?;
    }
    let lines = sums.lines;
    context.output.line("")?;
    let files = counted(sums.files.len(), "file");
    context.output.line(format!("{} in {files}: {}", counted(lines.total, "line"), grades(&lines)))
}

/// `FILE:12` and `FILE:12-40`, unless a file has that name.
fn split_lines(argument: &str) -> Result<(PathBuf, Option<(usize, usize)>)> {
    let whole = PathBuf::from(argument);
    let Some((path, lines)) = argument.rsplit_once(':').filter(|_| !whole.exists()) else {
        return Ok((whole, None));
    };
    let (from, to) = lines.split_once('-').unwrap_or((lines, lines));
    match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(from), Ok(to)) if from >= 1 && to >= from => Ok((PathBuf::from(path), Some((from, to)))),
        (Ok(_), Ok(_)) => Err(Error::bad_request(format!("not a range of lines: {lines}"))
            .hint(format!("annals blame {path}:12-40"))),
        _ => Ok((whole, None)),
    }
}

/// What is traced, and the repository and commit to ask about it.
struct Place {
    /// The file or directory, complete and without links.
    path: PathBuf,
    top: Option<PathBuf>,
    /// Where lines were committed: the commit asked for, or the newest one.
    commit: Option<String>,
    is_past: bool,
}

impl Place {
    fn of(path: &Path, options: &BlameArguments) -> Result<Place> {
        let complete = match (path.canonicalize(), &options.at) {
            (Ok(path), _) => path,
            // It may have existed then.
            (Err(_), Some(_)) => std::path::absolute(path)?,
            (Err(error), None) => {
                return Err(Error::new(format!("cannot read {}: {error}", path.display()))
                    .hint("`annals blame --at COMMIT FILE` traces a file that is gone"));
            }
        };
        let folder = if complete.is_dir() { Some(complete.as_path()) } else { complete.parent() };
        let top = folder.filter(|_| !options.no_git).and_then(git::top_of);
        let commit = match (folder.filter(|_| top.is_some()), &options.at) {
            (Some(folder), Some(name)) => Some(git::commit_named(folder, name).ok_or_else(|| {
                Error::bad_request(format!("no such commit: {name}")).hint("git log --oneline")
            })?),
            (Some(folder), None) => git::commit_named(folder, "HEAD"),
            (None, Some(_)) => {
                let error = Error::bad_request(format!("not in a git repository: {}", path.display()));
                return Err(error.hint("--at needs git and a repository"));
            }
            (None, None) => None,
        };
        Ok(Place { path: complete, top, commit, is_past: options.at.is_some() })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let known = match (&self.top, &self.commit) {
            (Some(_), Some(commit)) if self.is_past => git::files_at(&self.path, commit),
            (Some(_), _) => git::files_of(&self.path),
            (None, _) => None,
        };
        known.map_or_else(|| files_below(&self.path), Ok)
    }

    fn read(&self, path: &Path) -> Result<CodeFile> {
        let (bytes, modified) = match &self.commit {
            Some(commit) if self.is_past => {
                let text = git::committed_text(path, commit);
                let missing = || Error::new(format!("{} was not there at {commit}", path.display()));
                (text.ok_or_else(missing)?, None)
            }
            _ => read_file(path)?,
        };
        if bytes.len() as u64 > LARGEST || bytes.contains(&0) {
            return Err(no_text(path));
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let parent = || if self.path.is_dir() { Some(self.path.as_path()) } else { path.parent() };
        let root = self.top.as_deref().or_else(parent).map(|root| root.to_string_lossy().into_owned());
        let deadlines = vec![modified; text.lines().count()];
        Ok(CodeFile { path: path.to_string_lossy().into_owned(), root, text, deadlines })
    }

    /// Finds the commits of a file's lines; none of them was written after its commit.
    fn date(&self, file: &mut CodeFile) -> Option<Vec<Option<LineCommit>>> {
        let commits = git::commits_of(Path::new(&file.path), &file.text, self.commit.as_deref()?)?;
        for (deadline, commit) in file.deadlines.iter_mut().zip(&commits) {
            *deadline = commit.as_ref().map_or(*deadline, |commit| commit.at);
        }
        Some(commits)
    }
}

/// The content of a file, and when it was last saved.
fn read_file(path: &Path) -> Result<(Vec<u8>, Option<Time>)> {
    let failed = |error: std::io::Error| Error::new(format!("cannot read {}: {error}", path.display()));
    let facts = std::fs::symlink_metadata(path).map_err(failed)?;
    if !facts.is_file() || facts.len() > LARGEST {
        return Err(no_text(path));
    }
    let modified = facts.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = modified.and_then(|since| i64::try_from(since.as_micros()).ok()).map(Time::from_micros);
    Ok((std::fs::read(path).map_err(failed)?, modified))
}

fn no_text(path: &Path) -> Error {
    Error::new(format!("cannot trace {}: not a text file of at most 8 MiB", path.display()))
}

/// Without git: everything but hidden files, and no link is followed.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}
