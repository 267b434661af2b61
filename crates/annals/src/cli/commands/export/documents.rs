//! Sessions as documents: to stdout, to one file, or one file for each session in a directory.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::folder::{About, Draft, Fate, Folder};
use super::report::Report;
use super::{ExportFormat, Job};
use crate::cli::ui::progress::StepBar;
use crate::cli::ui::resume::resume_line;
use crate::cli::{Context, Outcome};
use crate::serve::{IndexLine, SessionDocument, write_index, write_session};
use crate::view::{
    ExportedSession, JsonSessions, KeepPicture, Links, Picture, SessionView, write_json_lines, write_markdown,
};
use annals_core::{Error, Result, in_address, to_base64};

/// Larger images are left out of web pages.
const MOST_INLINE: usize = 4 << 20;

/// Where an export goes.
pub enum Destination {
    Stdout,
    File(PathBuf),
    Folder(PathBuf),
}

pub fn to_stdout(context: &mut Context, job: &Job<'_>) -> Result<Outcome> {
    if job.dry_run {
        return listed(context, job, "stdout");
    }
    write_all(job, &mut context.output)?;
    context.output.flush()?;
    Ok(Outcome::Done)
}

/// A file appears whole or not at all, and replaces only what an export wrote.
pub fn to_file(context: &mut Context, job: &Job<'_>, path: &Path) -> Result<Outcome> {
    if fs::symlink_metadata(path).is_ok() && !is_export(path) {
        return Err(Error::new(format!("{} exists and was not written by an export", path.display()))
            .hint("move it away, or choose another name"));
    }
    if job.dry_run {
        return listed(context, job, &path.display().to_string());
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let draft = path.with_file_name(format!(".{name}.annals-{}.tmp", std::process::id()));
    let mut draft = Draft::new(draft)?;
    write_all(job, &mut draft)?;
    let (draft, _, _) = draft.finish()?;
    fs::rename(&draft, path)
        .map_err(|error| Error::new(format!("cannot write {}: {error}", path.display())))?;
    let to = path.display().to_string();
    let report = Report {
        format: job.format.name(),
        written: vec![to.clone()],
        to,
        sessions: job.sessions.len(),
        ..Report::default()
    };
    report.print(context, &|text| job.view.show(text))
}

fn listed(context: &mut Context, job: &Job<'_>, to: &str) -> Result<Outcome> {
    let report = Report {
        format: job.format.name(),
        to: to.to_owned(),
        dry_run: true,
        sessions: job.sessions.len(),
        written: vec![to.to_owned()],
        ..Report::default()
    };
    report.print(context, &|text| job.view.show(text))
}

/// Whether a file begins as exports do.
fn is_export(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(1024).read_to_end(&mut start));
    let start = String::from_utf8_lossy(&start);
    let marks = [
        "{\"exporter\":\"annals\"",
        "---\nexporter: annals\n",
        "<meta name=\"generator\" content=\"annals\">",
    ];
    read.is_ok() && marks.iter().any(|mark| start.contains(mark))
}

/// One document: a session with its sub-agents, or several as JSON.
fn write_all(job: &Job<'_>, out: &mut dyn Write) -> Result<()> {
    let sections: HashSet<&str> =
        job.sessions.iter().map(|exported| exported.session.session_id.as_str()).collect();
    match job.format {
        ExportFormat::Json => {
            let mut document = JsonSessions::start(out, job.sessions.len() > 1)?;
            for exported in &job.sessions {
                document.session(job.view, &job.view.whole_of(exported)?, &job.export)?;
            }
            document.finish()
        }
        ExportFormat::Jsonl => {
            for exported in &job.sessions {
                write_json_lines(job.view, &job.view.whole_of(exported)?, &job.export, out)?;
            }
            Ok(())
        }
        ExportFormat::Md | ExportFormat::Html | ExportFormat::Records | ExportFormat::Parquet => {
            let Some(main) = main_session(&job.sessions) else { return Ok(()) };
            let session = job.view.whole_of(main)?;
            let mut agents = Vec::new();
            for exported in job.sessions.iter().filter(|exported| exported.session.row != main.session.row) {
                agents.push(job.view.whole_of(exported)?);
            }
            let mut links = Links {
                resume,
                session: &|id| match sections.contains(id) {
                    true if id == main.session.session_id => Some("#conversation".to_owned()),
                    true => Some(format!("#session-{}", in_address(id))),
                    false => None,
                },
                picture: &mut |_, _, picture| Ok(inlined(&picture)),
            };
            if job.format == ExportFormat::Md {
                return write_markdown(job.view, &session, &agents, &job.export, &mut links, out);
            }
            let children = children_of(job, main);
            let document = SessionDocument {
                session: &session,
                agents: &agents,
                children: &children,
                index: None,
                options: &job.export,
            };
            write_session(job.view, &document, &mut links, out)
        }
    }
}

/// Where there is a command, with the directory that it needs.
fn resume(session: &SessionView) -> String {
    if session.resume_command.is_empty() { String::new() } else { resume_line(session) }
}

/// The one that no other one started.
fn main_session(sessions: &[ExportedSession]) -> Option<&ExportedSession> {
    let started: HashSet<usize> =
        sessions.iter().flat_map(|exported| exported.agents.iter().copied()).collect();
    let mut own = sessions.iter().enumerate().filter(|(at, _)| !started.contains(at));
    own.next().map(|(_, exported)| exported).or(sessions.first())
}

fn children_of(job: &Job<'_>, exported: &ExportedSession) -> Vec<(String, String)> {
    let children = exported.agents.iter().filter_map(|at| job.sessions.get(*at));
    children
        .map(|child| {
            let line = IndexLine::of(&child.session, String::new());
            (line.title, child.session.session_id.clone())
        })
        .collect()
}

fn inlined(picture: &Picture) -> Option<String> {
    (picture.bytes.len() <= MOST_INLINE)
        .then(|| format!("data:{};base64,{}", picture.media_type, to_base64(&picture.bytes)))
}

pub fn to_folder(context: &mut Context, job: &Job<'_>, root: &Path) -> Result<Outcome> {
    let paths = paths(&job.sessions, job.format);
    let mut report = Report {
        format: job.format.name(),
        to: root.display().to_string(),
        dry_run: job.dry_run,
        sessions: job.sessions.len(),
        ..Report::default()
    };
    let mut folder = if job.dry_run { Folder::read(root)? } else { Folder::open(root)? };
    let by_id: HashMap<(&str, &str), &str> = job
        .sessions
        .iter()
        .zip(&paths)
        .map(|(exported, path)| {
            let session = &exported.session;
            ((session.source.as_str(), session.session_id.as_str()), path.as_str())
        })
        .collect();
    let mut bar = StepBar::new(context.quiet || job.dry_run, "Exporting sessions");
    for (done, (exported, path)) in job.sessions.iter().zip(&paths).enumerate() {
        bar.set(done as u64, job.sessions.len() as u64);
        let around = around(job, exported, &by_id);
        let around: Vec<&str> = around.iter().map(String::as_str).collect();
        let stamp = job.view.export_stamp(exported, &job.export, &around)?;
        let files = files_folder(path);
        let is_current = folder.is_current(path, &stamp)
            && images_of(job, path, &folder).iter().all(|file| folder.is_whole(file));
        if is_current {
            report.add(path, Fate::Unchanged);
            continue;
        }
        if job.dry_run {
            report.add(path, folder.fate_of(path)?);
            continue;
        }
        let mut draft = folder.draft()?;
        let mut pictures = HashSet::new();
        let source = exported.session.source.as_str();
        // Documents of one source are side by side.
        let link_to = |id: &str| by_id.get(&(source, id)).map(|path| file_name(path).to_owned());
        let mut beside = |step: &str, number: usize, picture: Picture| {
            let name = format!("{step}-{number}.{}", extension(picture.media_type));
            let file = format!("{files}/{name}");
            let mut draft = folder.draft()?;
            draft.write_all(&picture.bytes)?;
            let fate = folder.keep(draft, &file, "", About::default())?;
            pictures.insert(file.clone());
            report.add(&file, fate);
            Ok((fate != Fate::LeftAlone).then(|| format!("{}/{name}", file_name(&files))))
        };
        write_one(job, exported, &link_to, &mut beside, &mut draft)?;
        let line = (job.format == ExportFormat::Html).then(|| IndexLine::of(&exported.session, path.clone()));
        let session = Some(session_name(&exported.session));
        let fate = folder.keep(draft, path, &stamp, About { session, line })?;
        report.add(path, fate);
        for stale in images_of(job, path, &folder).into_iter().filter(|file| !pictures.contains(file)) {
            if folder.remove(&stale)? {
                report.removed.push(stale);
            }
        }
    }
    remove_moved(job, &paths, &mut folder, &mut report)?;
    if job.format == ExportFormat::Html && !job.dry_run {
        let lines: Vec<IndexLine> = folder.files().filter_map(|file| file.line.clone()).collect();
        let mut draft = folder.draft()?;
        write_index(&lines, &mut draft)?;
        let fate = folder.keep(draft, "index.html", "", About::default())?;
        report.add("index.html", fate);
    }
    if !job.dry_run {
        folder.finish()?;
    }
    report.print(context, &|text| job.view.show(text))
}

/// What a document shows of other sessions: where they are, and the titles of sub-agents.
fn around(job: &Job<'_>, exported: &ExportedSession, by_id: &HashMap<(&str, &str), &str>) -> Vec<String> {
    let session = &exported.session;
    let path = |id: &str| by_id.get(&(session.source.as_str(), id)).map(ToString::to_string);
    let mut around = vec![job.format.name().to_owned()];
    for id in [&session.parent_session_id, &session.copied_from].into_iter().flatten() {
        around.push(path(id).unwrap_or_default());
    }
    for (title, id) in children_of(job, exported) {
        around.extend([path(&id).unwrap_or_default(), title]);
    }
    around
}

/// Documents of these sessions under former names: the date of a session changes when its start is found.
fn remove_moved(job: &Job<'_>, paths: &[String], folder: &mut Folder, report: &mut Report) -> Result<()> {
    let names: HashSet<String> =
        job.sessions.iter().map(|exported| session_name(&exported.session)).collect();
    let paths: HashSet<&String> = paths.iter().collect();
    let end = format!(".{}", job.format.name());
    let moved = folder.files().filter(|file| {
        let is_exported = file.session.as_ref().is_some_and(|session| names.contains(session));
        is_exported && file.path.ends_with(&end) && !paths.contains(&file.path)
    });
    let moved: Vec<String> = moved.map(|file| file.path.clone()).collect();
    for path in moved {
        for file in images_of(job, &path, folder).into_iter().chain([path]) {
            if job.dry_run || folder.remove(&file)? {
                report.removed.push(file);
            }
        }
    }
    Ok(())
}

fn session_name(session: &SessionView) -> String {
    format!("{}:{}", session.source, session.session_id)
}

fn write_one(
    job: &Job<'_>,
    exported: &ExportedSession,
    link_to: &dyn Fn(&str) -> Option<String>,
    beside: &mut KeepPicture<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let session = job.view.whole_of(exported)?;
    match job.format {
        ExportFormat::Json => {
            let mut document = JsonSessions::start(out, false)?;
            document.session(job.view, &session, &job.export)?;
            document.finish()
        }
        ExportFormat::Jsonl => write_json_lines(job.view, &session, &job.export, out),
        ExportFormat::Html => {
            let children = children_of(job, exported);
            let document = SessionDocument {
                session: &session,
                agents: &[],
                children: &children,
                index: Some("../index.html".to_owned()),
                options: &job.export,
            };
            let mut inline = |_: &str, _: usize, picture: Picture| Ok(inlined(&picture));
            let mut links = Links { resume, session: link_to, picture: &mut inline };
            write_session(job.view, &document, &mut links, out)
        }
        ExportFormat::Md | ExportFormat::Records | ExportFormat::Parquet => {
            let mut links = Links { resume, session: link_to, picture: beside };
            write_markdown(job.view, &session, &[], &job.export, &mut links, out)
        }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The images beside a document; those beside Markdown are not of other formats.
fn images_of(job: &Job<'_>, path: &str, folder: &Folder) -> Vec<String> {
    match job.format {
        ExportFormat::Md => folder.below(&format!("{}/", files_folder(path))),
        _ => Vec::new(),
    }
}

/// Where the images of a document are.
fn files_folder(path: &str) -> String {
    format!("{}.files", path.rsplit_once('.').map_or(path, |(start, _)| start))
}

fn extension(media_type: &str) -> &str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "bin",
    }
}

/// `SOURCE/DATE-ID.EXTENSION` for each session. Two sessions with one id are told apart by a number.
fn paths(sessions: &[ExportedSession], format: ExportFormat) -> Vec<String> {
    let mut taken = HashSet::new();
    let path = |exported: &ExportedSession| {
        let session = &exported.session;
        let date = session.first_message_at.as_deref().and_then(|at| at.get(..10)).unwrap_or("undated");
        let start = format!("{}/{date}-{}", session.source, plain_name(&session.session_id));
        let mut path = format!("{start}.{}", format.name());
        let mut number = 2;
        while !taken.insert(path.to_lowercase()) {
            path = format!("{start}-{number}.{}", format.name());
            number += 1;
        }
        path
    };
    sessions.iter().map(path).collect()
}

/// An id as part of a file name: transcripts may contain any.
fn plain_name(id: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let name: String = id.chars().map(|letter| if plain(letter) { letter } else { '_' }).take(80).collect();
    match name == id && !id.is_empty() {
        true => name,
        false => format!("{name}-{}", &blake3::hash(id.as_bytes()).to_hex()[..8]),
    }
}

#[cfg(test)]
mod tests {
    use super::plain_name;

    #[test]
    fn names_lead_nowhere_else() {
        assert_eq!(plain_name("0199c2f4-1a2b"), "0199c2f4-1a2b");
        for id in ["../../etc/passwd", "a/b", "", ".", "nul\0", &"x".repeat(300), "ü"] {
            let name = plain_name(id);
            assert!(
                name.len() < 100 && !name.contains(['/', '.', '\0']) && !name.is_empty(),
                "{id:?}: {name:?}"
            );
        }
        assert_ne!(plain_name("a/b"), plain_name("a_b"));
    }
}
