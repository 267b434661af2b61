//! `annals blame`: which session wrote each line of a file, a text, or a whole directory.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::ui::{table, time};
use crate::cli::{Context, Outcome, git};
use crate::view::format::{counted, percent};
use crate::view::{Blame, BlameSums, CodeFile, Origin, Share, View, blame_sums};
use annals_core::{Error, Result, Shown, Time};

#[derive(Args)]
#[command(after_help = "Grades:\n  \
                  exact     the text of the edit is unchanged\n  \
                  moved     the same text, elsewhere or in another file\n  \
                  changed   similar text\n  \
                  read      a session read the line, none wrote it\n  \
                  unknown   no session is known to have written it\n\n\
                  Lines are matched by content, not by commit: renames, rebases and formatters do not matter.")]
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
    /// Print a stable format for programs, like `git blame --porcelain`
    #[arg(long, conflicts_with = "stat")]
    porcelain: bool,
    /// Do not run git to find the repository root and commits
    #[arg(long)]
    no_git: bool,
}

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
    let (file, lines, commits) = match (&options.text, &options.file) {
        (Some(text), _) => {
            let file = CodeFile { path: String::new(), root: None, text: text.clone(), modified: None };
            (file, None, None)
        }
        (None, Some(argument)) => {
            let (path, lines) = split_lines(argument)?;
            let path = path
                .canonicalize()
                .map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))?;
            let top = if options.no_git { None } else { path.parent().and_then(git::top_of) };
            let commits = top.as_ref().and_then(|_| git::commits_of(&path));
            (read(&path, top.as_deref())?, lines, commits)
        }
        (None, None) => return Err(Error::bad_request("no file given")),
    };
    let traced = trace(&view, std::slice::from_ref(&file))?;
    let Some(traced) = traced.into_iter().next() else { return Ok(Outcome::Nothing) };
    let shown = view.shown_lines(&file.text);
    let (from, to) = lines.unwrap_or((1, usize::MAX));
    if from > shown.len() {
        return Err(Error::bad_request(format!(
            "line {from} is out of range: the file has {}",
            counted(shown.len(), "line")
        )));
    }
    let part =
        Part { blame: &traced, lines: &shown, commits: commits.as_deref(), from, to: to.min(shown.len()) };
    if options.porcelain {
        porcelain(context, &part)?;
    } else if context.json {
        context.output.json(&document(&part)?)?;
    } else {
        table(context, &part)?;
    }
    let known =
        traced.spans.iter().any(|span| span.origin.is_some() && span.start <= part.to && span.end >= from);
    Ok(if known { Outcome::Done } else { Outcome::Nothing })
}

/// One read of the archive: its locks are taken once.
fn trace(view: &View<'_>, files: &[CodeFile]) -> Result<Vec<Blame>> {
    view.at_once(|| view.blame(files))
}

/// The requested lines, with all that is known about them.
struct Part<'a> {
    blame: &'a Blame,
    lines: &'a [Shown],
    commits: Option<&'a [Option<String>]>,
    from: usize,
    to: usize,
}

impl Part<'_> {
    /// Number, text, grade, origin, line when written, and commit of each line.
    fn each(&self) -> impl Iterator<Item = (usize, &Shown, &'static str, Option<usize>, Option<u32>)> {
        self.blame.spans.iter().flat_map(move |span| {
            let lines = span.start.max(self.from)..=span.end.min(self.to);
            lines.filter_map(move |number| {
                let step = u32::try_from(number - span.start).ok()?;
                let written = span.written_at_line.and_then(|line| line.checked_add(step));
                Some((number, self.lines.get(number - 1)?, span.grade, span.origin, written))
            })
        })
    }

    fn commit(&self, number: usize) -> Option<&str> {
        self.commits?.get(number - 1)?.as_deref()
    }
}

fn table(context: &mut Context, part: &Part<'_>) -> Result<()> {
    let width = part.to.to_string().len();
    let mut last = None;
    for (number, text, grade, origin, _) in part.each() {
        let call = origin.and_then(|origin| part.blame.origins.get(origin));
        // Printed once per span, so that the start of the next one is easy to find.
        let summary = match call {
            Some(call) if last != Some((origin, grade)) => describe_call(call),
            Some(_) | None => String::new(),
        };
        last = Some((origin, grade));
        let commit = match (part.commits.is_some(), part.commit(number)) {
            (true, Some(commit)) => format!("{} ", &commit[..8]),
            (true, None) => "         ".to_owned(),
            (false, _) => String::new(),
        };
        let grade = if grade == "unknown" { "-" } else { grade };
        let head = context.output.faint(&format!("{commit}{grade:<7} {summary:<54} {number:>width$} │"));
        context.output.line(format!("{head} {text}").trim_end())?;
    }
    if context.quiet {
        return Ok(());
    }
    context.output.flush()?;
    let mut shown = HashSet::new();
    for (_, _, _, origin, _) in part.each() {
        let Some(number) = origin.filter(|origin| shown.insert(*origin)) else { continue };
        let Some(call) = part.blame.origins.get(number) else { continue };
        let prompt = call.prompt.as_ref().map_or("(no prompt)", Shown::as_str);
        let show = format!("annals show {} --at {}", call.session_id, call.message_id);
        context.output.note(format!("{}  {prompt}\n", describe_call(call)).trim_end());
        context.output.note(format!("    {show}"));
    }
    let lines = part.blame.lines;
    context.output.note(format!(
        "{}: {} exact, {} moved, {} changed, {} read, {} unknown",
        counted(lines.total, "line"),
        lines.exact,
        lines.moved,
        lines.changed,
        lines.read,
        lines.unknown
    ));
    Ok(())
}

/// A tool call on one line.
fn describe_call(call: &Origin) -> String {
    let at = time::local_text(call.at.as_ref());
    let id: String = call.session_id.chars().take(13).collect();
    let model = call.model.as_deref().unwrap_or("");
    let words = format!("{at} {id} {model} {}", call.tool);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn document(part: &Part<'_>) -> Result<Value> {
    let mut document = serde_json::to_value(part.blame)?;
    let spans = part.blame.spans.iter().filter(|span| span.start <= part.to && span.end >= part.from);
    document["spans"] = serde_json::to_value(spans.collect::<Vec<_>>())?;
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
    for (number, text, grade, origin, written) in part.each() {
        let call = origin.and_then(|origin| part.blame.origins.get(origin));
        let id = call.map_or("0000000000000000", |call| call.id.as_str());
        context
            .output
            .line(format!("{id} {} {number}", written.map_or_else(|| "0".into(), |line| line.to_string())))?;
        context.output.line(format!("grade {grade}"))?;
        if let Some(commit) = part.commit(number) {
            context.output.line(format!("commit {commit}"))?;
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
    let folder = folder
        .canonicalize()
        .map_err(|error| Error::new(format!("cannot read {}: {error}", folder.display())))?;
    let top = if options.no_git { None } else { git::top_of(&folder) };
    let known = top.as_ref().and_then(|_| git::files_of(&folder));
    let paths = match known {
        Some(paths) => paths,
        None => files_below(&folder)?,
    };
    let root = top.unwrap_or_else(|| folder.clone());
    let (mut files, mut lines, mut traced) = (Vec::new(), 0, Vec::new());
    for path in paths {
        // Skip binary files and files that are gone by now.
        let Ok(file) = read(&path, Some(&root)) else { continue };
        lines += file.text.lines().count();
        files.push(file);
        if lines >= AT_ONCE {
            traced.extend(trace(view, &std::mem::take(&mut files))?);
            lines = 0;
        }
    }
    traced.extend(trace(view, &files)?);
    let sums = blame_sums(&traced);
    if context.json {
        context.output.json(&sums)?;
    } else {
        print_sums(context, &sums)?;
    }
    Ok(if sums.sessions.is_empty() { Outcome::Nothing } else { Outcome::Done })
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
    let head = ["file", "#lines", "#exact", "#moved", "#changed", "#read", "#unknown"];
    for line in table::table(&head, &rows) {
        context.output.line(line)?;
    }
    for (title, shares) in [("session", &sums.sessions), ("source", &sums.sources), ("model", &sums.models)] {
        context.output.line("")?;
        let row = |share: &Share| {
            let title = share.title.as_ref().map_or(String::new(), ToString::to_string);
            vec![share.name.clone(), share.lines.to_string(), percent(share.share), title]
        };
        let rows: Vec<Vec<String>> = shares.iter().map(row).collect();
        for line in table::table(&[title, "#lines", "#share", ""], &rows) {
            context.output.line(line)?;
        }
    }
    let lines = sums.lines;
    context.output.line("")?;
    context.output.line(format!(
        "{} in {}: {} exact, {} moved, {} changed, {} read, {} unknown",
        counted(lines.total, "line"),
        counted(sums.files.len(), "file"),
        lines.exact,
        lines.moved,
        lines.changed,
        lines.read,
        lines.unknown
    ))
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

fn read(path: &Path, root: Option<&Path>) -> Result<CodeFile> {
    let failed = |error: std::io::Error| Error::new(format!("cannot read {}: {error}", path.display()));
    let facts = std::fs::symlink_metadata(path).map_err(failed)?;
    if !facts.is_file() || facts.len() > LARGEST {
        return Err(Error::new(format!("cannot trace {}: not a text file of at most 8 MiB", path.display())));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    if bytes.contains(&0) {
        return Err(Error::new(format!("cannot trace {}: not a text file", path.display())));
    }
    let modified = facts.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let modified = modified.and_then(|since| i64::try_from(since.as_micros()).ok()).map(Time::from_micros);
    let folder = root.or_else(|| path.parent()).map(|root| root.to_string_lossy().into_owned());
    Ok(CodeFile {
        path: path.to_string_lossy().into_owned(),
        root: folder,
        text: String::from_utf8_lossy(&bytes).into_owned(),
        modified,
    })
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
