//! Sessions as files that need nothing else: styles and images inside, no script, links to every step; and their index.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use askama::Template;
use serde::{Deserialize, Serialize};

use super::assets::STYLES;
use super::entries::{Addresses, entry_alone};
use super::html::{Html, in_address, text, visible};
use super::markdown::markdown;
use super::rows::{SessionLine, title};
use super::session::{dated_numbers, facts};
use crate::view::format;
use crate::view::{Branch, Entry, ExportOptions, Links, SessionView, View};
use annals_core::{Error, Result};

const EXPORT_STYLES: &str = include_str!("export.css");

#[derive(Template)]
#[template(path = "export.html")]
struct ExportHead {
    title: String,
    styles: Html,
    /// The address of the index, if there is one.
    index: Option<String>,
    label: &'static str,
    project: Option<(String, String)>,
    branch: Option<String>,
    numbers: Vec<String>,
    marks: Vec<&'static str>,
    /// Relation to this session, address if it is exported, title.
    ties: Vec<(&'static str, Option<String>, String)>,
    facts: Vec<(&'static str, String)>,
    tags: Vec<String>,
    note: Option<Html>,
    prompts: Vec<ListedPrompt>,
    complete: bool,
}

struct ListedPrompt {
    id: String,
    /// RFC 3339, and as people read it.
    at: Option<(String, String)>,
    text: Html,
}

/// The document of a session.
pub struct SessionDocument<'d> {
    pub session: &'d SessionView,
    /// Sub-agents that are part of this document, in sections after the conversation.
    pub agents: &'d [SessionView],
    /// Sub-agents, by their titles and ids.
    pub children: &'d [(String, String)],
    /// The address of the index, if there is one.
    pub index: Option<String>,
    pub options: &'d ExportOptions,
}

/// Writes a document step by step: a long session is never in memory in full.
pub fn write_session(
    view: &View<'_>,
    document: &SessionDocument<'_>,
    links: &mut Links<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let session = document.session;
    let line = SessionLine::of(session);
    let outline = view.outline(session, &Branch::default())?;
    let head = ExportHead {
        title: title(session),
        styles: styles(),
        index: document.index.clone(),
        label: session.provider_label,
        project: line.project,
        branch: line.branch,
        numbers: dated_numbers(session),
        marks: line.marks,
        ties: ties(document, links),
        tags: line.tags,
        note: session.note.as_ref().map(|note| markdown(note.as_str())),
        facts: document_facts(document, (links.resume)(session)),
        prompts: outline
            .prompts
            .into_iter()
            .map(|prompt| {
                let at = prompt.at.map(|at| {
                    let shown = format::minute(&at);
                    (at, shown)
                });
                ListedPrompt { id: prompt.id, at, text: text(prompt.text.as_str()) }
            })
            .collect(),
        complete: outline.complete,
    };
    write_html(out, rendered(head.render())?)?;
    let mut ids = HashSet::new();
    write_steps(view, session, document.options, links, &mut ids, out)?;
    for agent in document.agents {
        let kind = if agent.parent_kind.as_deref() == Some("review") { "Review" } else { "Sub-agent" };
        let html = format!(
            "<section class=\"agent\" id=\"session-{}\">\n<h2>{kind}: {}</h2>\n<p class=\"faint\">{}</p>\n",
            in_address(&agent.session_id),
            text(&title(agent)),
            text(&dated_numbers(agent).join(" · "))
        );
        write_html(out, html)?;
        write_steps(view, agent, document.options, links, &mut ids, out)?;
        write_html(out, "</section>\n".to_owned())?;
    }
    let end = "<p class=\"end\">Exported by annals.</p>\n</div>\n</div>\n</main>\n</body>\n</html>\n";
    write_html(out, end.to_owned())
}

fn write_steps(
    view: &View<'_>,
    session: &SessionView,
    options: &ExportOptions,
    links: &mut Links<'_>,
    ids: &mut HashSet<String>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut count = 0;
    view.transcript(session, options.transcript(), &mut |mut entry: Entry| {
        count += 1;
        // A copy has the id of its original, and ids are there once.
        while !ids.insert(entry.id.clone()) {
            entry.id.push('x');
        }
        let mut failure = None;
        let Links { session: agent, picture, .. } = links;
        let mut addresses = Addresses {
            base: None,
            agent: *agent,
            editor: None,
            picture: &mut |entry, number| {
                let id = entry.id.trim_end_matches('x');
                let found = view.picture(session, id, number).and_then(|found| match found {
                    Some(found) => picture(id, number, found),
                    None => Ok(None),
                });
                found.unwrap_or_else(|error| {
                    failure = Some(error);
                    None
                })
            },
        };
        let html = rendered(entry_alone(&entry, &mut addresses).render())?;
        match failure {
            Some(error) => Err(error),
            None => write_html(out, html),
        }
    })?;
    if count == 0 {
        write_html(out, "<p class=\"faint\">No messages in this session.</p>\n".to_owned())?;
    }
    Ok(())
}

fn ties(document: &SessionDocument<'_>, links: &Links<'_>) -> Vec<(&'static str, Option<String>, String)> {
    let session = document.session;
    let mut ties = Vec::new();
    let origin = session.parent_session_id.as_deref().or(session.copied_from.as_deref());
    if let Some(origin) = origin {
        let kind = match session.parent_kind.as_deref() {
            Some("sub_agent") => "Started by",
            Some("review") => "Review of",
            Some("fork") => "Forked from",
            Some("revert") => "Reverted from",
            _ => "Continues",
        };
        ties.push((kind, (links.session)(origin), origin.to_owned()));
    }
    for (title, id) in document.children {
        ties.push(("Sub-agent", (links.session)(id), title.clone()));
    }
    ties
}

/// With what opens the session again.
fn document_facts(document: &SessionDocument<'_>, resume: String) -> Vec<(&'static str, String)> {
    let session = document.session;
    let mut facts = facts(session);
    facts.push(("source", session.source.clone()));
    facts.push(("show", format!("annals show {}:{}", session.source, session.session_id)));
    if !resume.is_empty() {
        facts.push(("resume", resume));
    }
    facts
}

/// A line of the index.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IndexLine {
    pub href: String,
    pub title: String,
    pub label: String,
    pub project: String,
    pub at: String,
    pub numbers: String,
}

impl IndexLine {
    pub fn of(session: &SessionView, href: String) -> IndexLine {
        let line = SessionLine::of(session);
        let marks: Vec<&str> = line.marks.iter().copied().filter(|mark| *mark != "active").collect();
        let marks = if marks.is_empty() { String::new() } else { format!(" · {}", marks.join(", ")) };
        IndexLine {
            href,
            title: line.title,
            label: line.source.to_owned(),
            project: line.project.map(|(_, path)| path).unwrap_or_default(),
            at: session.first_message_at.clone().unwrap_or_default(),
            numbers: format!("{}{marks}", line.numbers),
        }
    }
}

struct ListedLine {
    href: String,
    title: String,
    label: String,
    project: String,
    project_name: String,
    at: String,
    day: String,
    numbers: String,
}

#[derive(Template)]
#[template(path = "export_index.html")]
struct ExportIndex {
    styles: Html,
    count: String,
    /// Number, month, lines.
    groups: Vec<(usize, String, Vec<ListedLine>)>,
}

/// The sessions of all documents, newest first, by month.
pub fn write_index(lines: &[IndexLine], out: &mut dyn Write) -> Result<()> {
    let mut months: BTreeMap<String, Vec<&IndexLine>> = BTreeMap::new();
    for line in lines {
        months.entry(line.at.get(..7).unwrap_or_default().to_owned()).or_default().push(line);
    }
    let groups = months.into_iter().rev().enumerate().map(|(number, (month, mut lines))| {
        lines.sort_by(|left, right| (&right.at, &right.href).cmp(&(&left.at, &left.href)));
        let lines = lines.into_iter().map(|line| ListedLine {
            href: line.href.clone(),
            title: line.title.clone(),
            label: line.label.clone(),
            project_name: format::last_part(&line.project).to_owned(),
            project: line.project.clone(),
            day: format::minute(&line.at),
            at: line.at.clone(),
            numbers: line.numbers.clone(),
        });
        let month = if month.is_empty() { "No date".to_owned() } else { month };
        (number, month, lines.collect())
    });
    let page = ExportIndex {
        styles: styles(),
        count: format::counted(lines.len(), "session"),
        groups: groups.collect(),
    };
    write_html(out, rendered(page.render())?)
}

fn styles() -> Html {
    Html(format!("{STYLES}{EXPORT_STYLES}"))
}

fn rendered(html: askama::Result<String>) -> Result<String> {
    html.map_err(|_| Error::new("cannot render the document"))
}

fn write_html(out: &mut dyn Write, html: String) -> Result<()> {
    out.write_all(visible(html).as_bytes())?;
    Ok(())
}
