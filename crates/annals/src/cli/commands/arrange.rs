//! `annals star`, `tag`, `name`, `note` and `hide`: arrange sessions, messages and projects in the archive.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::sessions::absolute;
use crate::cli::{Context, Outcome};
use crate::view::{ArrangementPatch, ArrangementView, View};
use annals_core::{Arranged, Error, Result, arrangement};

#[derive(Args)]
pub struct Subject {
    /// Apply to this message of the session, by its id
    #[arg(long, value_name = "ID", conflicts_with = "project")]
    message: Option<String>,
    /// Apply to this project instead of a session, by its directory or name
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

#[derive(Args)]
#[command(after_help = "`annals sessions --starred` and `annals search is:starred` find what is starred.")]
pub struct StarArguments {
    /// Session to star: its id, or the beginning of it
    #[arg(value_name = "SESSION", required_unless_present = "project", conflicts_with = "project")]
    session: Option<String>,
    #[command(flatten)]
    of: Subject,
    /// Remove the star
    #[arg(long)]
    remove: bool,
}

#[derive(Args)]
#[command(
    after_help = "Without tags, prints the current ones. A project's tags apply to all of its sessions. \
                  `annals sessions --tag TAG` and `annals search tag:TAG` find what is tagged."
)]
pub struct TagArguments {
    /// Session to tag, unless --project names a project
    #[arg(value_name = "SESSION", required_unless_present = "project")]
    session: Option<String>,
    /// Tags: one word each
    #[arg(value_name = "TAG")]
    tags: Vec<String>,
    #[command(flatten)]
    of: Subject,
    /// Remove these tags, or all of them if none are given
    #[arg(long)]
    remove: bool,
}

#[derive(Args)]
#[command(
    after_help = "The name is shown instead of the client's title, which stays in the details. Without a name, prints the \
                  current one."
)]
pub struct NameArguments {
    /// Session to name, unless --project names a project
    #[arg(value_name = "SESSION", required_unless_present = "project")]
    session: Option<String>,
    /// The name
    #[arg(value_name = "NAME")]
    words: Vec<String>,
    #[command(flatten)]
    of: Subject,
    /// Remove the name
    #[arg(long)]
    remove: bool,
}

#[derive(Args)]
#[command(
    after_help = "The text is Markdown and replaces the previous note. Without a text, prints the current one. \
                  `annals search has:note` finds what has a note."
)]
pub struct NoteArguments {
    /// Session to annotate, unless --project names a project
    #[arg(value_name = "SESSION", required_unless_present = "project")]
    session: Option<String>,
    /// The note
    #[arg(value_name = "TEXT", conflicts_with = "file")]
    words: Vec<String>,
    #[command(flatten)]
    of: Subject,
    /// Read the note from this file, or from standard input (`-`)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Remove the note
    #[arg(long, conflicts_with = "file")]
    remove: bool,
}

#[derive(Args)]
#[command(
    after_help = "Hidden sessions, and their sub-agents, are left out of lists, searches, pages and exports of all sessions; \
                  sums still count them. Nothing is deleted: `annals sessions --hidden` lists them, an id still opens \
                  them, and --remove shows them again."
)]
pub struct HideArguments {
    /// Session to hide: its id, or the beginning of it
    #[arg(value_name = "SESSION", required_unless_present = "project", conflicts_with = "project")]
    session: Option<String>,
    /// Hide all sessions of this project: its directory or name
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Show it again
    #[arg(long)]
    remove: bool,
}

pub fn star(context: &mut Context, options: &StarArguments) -> Result<Outcome> {
    let patch = ArrangementPatch { starred: Some(!options.remove), ..ArrangementPatch::default() };
    let done = if options.remove { "no longer starred" } else { "starred" };
    arrange(context, options.session.as_deref(), &options.of, &patch, done)
}

pub fn hide(context: &mut Context, options: &HideArguments) -> Result<Outcome> {
    let patch = ArrangementPatch { hidden: Some(!options.remove), ..ArrangementPatch::default() };
    let done = if options.remove { "shown again" } else { "hidden; --remove shows it again" };
    let of = Subject { message: None, project: options.project.clone() };
    arrange(context, options.session.as_deref(), &of, &patch, done)
}

pub fn tag(context: &mut Context, options: &TagArguments) -> Result<Outcome> {
    let (session, tags) = options.of.split(options.session.as_deref(), &options.tags);
    if tags.is_empty() && !options.remove {
        return print(context, session, &options.of, |view| {
            view.tags.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        });
    }
    let (patch, done) = match (options.remove, tags.is_empty()) {
        (false, _) => {
            (ArrangementPatch { add_tags: Some(tags), ..ArrangementPatch::default() }, "tagged".to_owned())
        }
        (true, false) => {
            let done = format!("without {}", tags.join(", "));
            (ArrangementPatch { remove_tags: Some(tags), ..ArrangementPatch::default() }, done)
        }
        (true, true) => {
            let patch = ArrangementPatch { tags: Some(Vec::new()), ..ArrangementPatch::default() };
            (patch, "without tags".to_owned())
        }
    };
    arrange(context, session, &options.of, &patch, &done)
}

pub fn name(context: &mut Context, options: &NameArguments) -> Result<Outcome> {
    let (session, words) = options.of.split(options.session.as_deref(), &options.words);
    if words.is_empty() && !options.remove {
        return print(context, session, &options.of, |view| shown(&view.name));
    }
    if options.remove && !words.is_empty() {
        return Err(Error::new("--remove takes no name"));
    }
    let name = Some(words.join(" ")).filter(|_| !options.remove);
    let patch = ArrangementPatch { name: Some(name), ..ArrangementPatch::default() };
    let done = if options.remove { "has its title again" } else { "named" };
    arrange(context, session, &options.of, &patch, done)
}

pub fn note(context: &mut Context, options: &NoteArguments) -> Result<Outcome> {
    let (session, words) = options.of.split(options.session.as_deref(), &options.words);
    let text = match &options.file {
        Some(_) if !words.is_empty() => {
            return Err(Error::new("the note is in a file, and on the command line too"));
        }
        Some(path) => Some(read_note(path)?),
        None if words.is_empty() && !options.remove => {
            return print(context, session, &options.of, |view| shown(&view.note));
        }
        None if options.remove && !words.is_empty() => return Err(Error::new("--remove takes no text")),
        None => Some(words.join(" ")).filter(|_| !options.remove),
    };
    let patch = ArrangementPatch { note: Some(text), ..ArrangementPatch::default() };
    let done = if options.remove { "without a note" } else { "annotated" };
    arrange(context, session, &options.of, &patch, done)
}

fn shown(text: &Option<annals_core::Shown>) -> String {
    text.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// One byte more than a note may have is enough to refuse it.
fn read_note(path: &Path) -> Result<String> {
    let mut text = Vec::new();
    let most = arrangement::LONGEST_NOTE as u64 + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut text))
    };
    read.map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

impl Subject {
    /// With a project, the first word is not a session.
    fn split<'o>(&self, session: Option<&'o str>, words: &[String]) -> (Option<&'o str>, Vec<String>) {
        match self.project {
            Some(_) => (None, session.map(str::to_owned).into_iter().chain(words.iter().cloned()).collect()),
            None => (session, words.to_vec()),
        }
    }

    /// What is arranged, and how it is called.
    fn find(&self, view: &View<'_>, session: Option<&str>) -> Result<(Arranged, String)> {
        if let Some(project) = &self.project {
            let of = view.arranged_project(&absolute(project))?.ok_or_else(|| {
                Error::new(format!("no session ran in {project:?}"))
                    .hint("`annals usage --days all --by project` lists all projects")
            })?;
            let label = view.show(&of.target).to_string();
            return Ok((of, label));
        }
        let id = session.unwrap_or_default();
        let session = view.find_session(id)?.ok_or_else(|| {
            Error::new(format!("no session found with id {id:?}"))
                .hint("`annals sessions --all` lists all sessions; `annals sync` captures new ones")
        })?;
        let of = view.arranged_part(&session, self.message.as_deref())?.ok_or_else(|| {
            Error::new(format!(
                "the session has no message {:?}",
                self.message.as_deref().unwrap_or_default()
            ))
            .hint(format!("`annals show {id} --json` has the ids of its messages"))
        })?;
        let label = session.heading().map_or(session.session_id.clone(), |heading| {
            let line = heading.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{} ({line})", session.session_id)
        });
        Ok((of, label))
    }
}

fn arrange(
    context: &mut Context,
    session: Option<&str>,
    of: &Subject,
    patch: &ArrangementPatch,
    done: &str,
) -> Result<Outcome> {
    let none = || Error::new("no archive yet").hint("annals sync");
    drop(context.archive()?.ok_or_else(none)?);
    let mut store = context.archive_or_new()?;
    let door = context.door(&store)?;
    let (of, versions) = {
        let view = context.view(&store, &door);
        let (of, _) = of.find(&view, session)?;
        let versions = view.arranging(&of, patch)?;
        (of, versions)
    };
    store.arrange(annals_core::Scope::Owner, &versions)?;
    let view = context.view(&store, &door);
    let arranged = view.arrangement(&of)?;
    if context.json {
        context.output.json(&document(&view, &of, &arranged))?;
    } else if !context.quiet {
        let label = match of.kind {
            annals_core::ArrangedKind::Project => view.show(&of.target).to_string(),
            _ => {
                Subject { message: None, project: None }
                    .find(&view, Some(&format!("{}:{}", of.source, of.target)))?
                    .1
            }
        };
        context.output.line(format!("{label}: {done}"))?;
    }
    Ok(Outcome::Done)
}

/// Prints one value of an arrangement; nothing if it is not there.
fn print(
    context: &mut Context,
    session: Option<&str>,
    of: &Subject,
    value: impl FnOnce(&ArrangementView) -> String,
) -> Result<Outcome> {
    let none = || Error::new("no archive yet").hint("annals sync");
    let store = context.archive()?.ok_or_else(none)?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let (of, _) = of.find(&view, session)?;
    let arranged = view.arrangement(&of)?;
    let value = value(&arranged);
    if context.json {
        context.output.json(&document(&view, &of, &arranged))?;
    } else if !value.is_empty() {
        context.output.line(&value)?;
    }
    Ok(if value.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn document(view: &View<'_>, of: &Arranged, arranged: &ArrangementView) -> Value {
    let optional = |text: &str| Some(text).filter(|text| !text.is_empty()).map(|text| view.show(text));
    let (session, project) = match of.kind {
        annals_core::ArrangedKind::Project => (None, Some(view.show(&of.target))),
        annals_core::ArrangedKind::Session
        | annals_core::ArrangedKind::Message
        | annals_core::ArrangedKind::Search => (optional(&of.target), None),
    };
    json!({
        "source": optional(&of.source),
        "session_id": session,
        "message_id": optional(&of.message),
        "project": project,
        "arrangement": arranged,
    })
}
