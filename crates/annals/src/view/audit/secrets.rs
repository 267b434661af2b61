//! Where secrets appear: mark, time, sessions and tools; never the secret itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::context::View;
use crate::view::library::LibraryQuery;
use crate::view::paging::Paging;
use crate::view::session::branches::Branch;
use crate::view::session::list::{SessionQuery, SessionView};
use crate::view::session::transcript::{BlockView, Entry, TranscriptQuery};
use annals_core::{Result, Shown};
use annals_store::SessionFilter;

/// Sessions listed per secret; all are counted.
const LISTED_SESSIONS: usize = 20;

#[derive(Debug, Serialize, ToSchema)]
pub struct SecretView {
    /// The mask shown instead of it; equal secrets of this archive have equal masks.
    pub mark: String,
    pub kind: String,
    pub occurrences: i64,
    pub first_seen_at: Option<String>,
    pub last_seen_at: Option<String>,
    pub session_count: usize,
    pub sessions: Vec<String>,
    /// Tools whose input or output it appears in.
    pub tools: Vec<Shown>,
    /// Where it appears: prompt, answer, thinking, input, output, library and so on.
    pub places: Vec<&'static str>,
}

#[derive(Debug, Default)]
struct Sightings {
    occurrences: i64,
    first: Option<String>,
    last: Option<String>,
    sessions: Vec<String>,
    tools: BTreeSet<Shown>,
    places: BTreeSet<&'static str>,
}

impl View<'_> {
    /// Reads everything that matches the filter and reports the masked secrets in it.
    pub fn secrets(&self, filter: &SessionFilter) -> Result<Vec<SecretView>> {
        self.secrets_with_progress(filter, &mut |_, _| {})
    }

    /// The same, reporting progress: sessions read so far, and in total.
    pub fn secrets_with_progress(
        &self,
        filter: &SessionFilter,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<SecretView>> {
        let mut done = 0;
        let mut found: BTreeMap<String, Sightings> = BTreeMap::new();
        let mut query =
            SessionQuery { filter: filter.clone(), page: Paging { limit: 200, cursor: None }, brief: true };
        loop {
            let list = self.sessions(&query)?;
            for session in &list.sessions {
                progress(done, u64::try_from(list.total).unwrap_or(0));
                done += 1;
                scan_session(&mut found, session);
                let whole = TranscriptQuery { full: true, branch: Branch::All, ..TranscriptQuery::default() };
                self.transcript(session, whole, &mut |entry| {
                    scan_entry(&mut found, &session.session_id, &entry);
                    Ok(())
                })?;
            }
            query.page.cursor = list.next_cursor;
            if query.page.cursor.is_none() {
                break;
            }
        }
        if filter.project.is_none() && filter.since.is_none() && filter.until.is_none() {
            let shelf = LibraryQuery { source: filter.source.clone(), ..LibraryQuery::default() };
            self.history_texts(&shelf, &mut |text, changed_at| {
                record_masks(
                    &mut found,
                    text,
                    &Sighting { place: "library", at: Some(changed_at), ..Sighting::default() },
                );
            })?;
        }
        let mut secrets: Vec<SecretView> = found.into_iter().map(|(mark, seen)| view(mark, seen)).collect();
        secrets.sort_by(|left, right| {
            right.occurrences.cmp(&left.occurrences).then_with(|| left.mark.cmp(&right.mark))
        });
        Ok(secrets)
    }
}

/// Where a text appears.
#[derive(Debug, Default)]
struct Sighting<'a> {
    place: &'static str,
    at: Option<&'a str>,
    session: Option<&'a str>,
    tool: Option<&'a Shown>,
}

fn scan_session(found: &mut BTreeMap<String, Sightings>, session: &SessionView) {
    let at = session.first_message_at.as_deref();
    let sighting = Sighting { place: "session", at, session: Some(&session.session_id), tool: None };
    let texts = [&session.title, &session.cwd, &session.git_branch, &session.git_origin_url];
    for text in texts.into_iter().flatten() {
        record_masks(found, text.as_str(), &sighting);
    }
}

fn scan_entry(found: &mut BTreeMap<String, Sightings>, session: &str, entry: &Entry) {
    let mut tool: Option<Shown> = None;
    let at = entry.at.as_deref();
    for block in &entry.blocks {
        let mut scan = |place: &'static str, text: &str, tool: Option<&Shown>| {
            record_masks(found, text, &Sighting { place, at, session: Some(session), tool });
        };
        match block {
            BlockView::Text { text, .. } => scan(entry.kind, text.as_str(), None),
            BlockView::Thinking { text, .. } => scan("thinking", text.as_str(), None),
            BlockView::Image { path, .. } => scan("image", path.as_ref().map_or("", Shown::as_str), None),
            BlockView::Attachment { name } => scan("attachment", name.as_str(), None),
            BlockView::Event { text, .. } => scan("event", text.as_str(), None),
            BlockView::ToolCall { name, input, files, .. } => {
                tool = Some(Shown::new(name.clone()));
                scan("input", &input.value().to_string(), tool.as_ref());
                for file in files {
                    scan("file", file.path.as_str(), tool.as_ref());
                }
            }
            BlockView::ToolResult { output, .. } => scan("output", output.as_str(), tool.as_ref()),
        }
    }
}

/// Counts every mask in a text that passed the door.
fn record_masks(found: &mut BTreeMap<String, Sightings>, text: &str, sighting: &Sighting<'_>) {
    let mut rest = text;
    while let Some(open) = rest.find("[secret:") {
        rest = &rest[open..];
        let Some(close) = rest.find(']').filter(|close| *close < 64) else {
            rest = &rest[1..];
            continue;
        };
        let seen = found.entry(rest[..=close].to_owned()).or_default();
        seen.occurrences += 1;
        seen.places.insert(sighting.place);
        seen.tools.extend(sighting.tool.cloned());
        if let Some(session) =
            sighting.session.filter(|session| seen.sessions.last().is_none_or(|last| last != session))
        {
            seen.sessions.push(session.to_owned());
        }
        if let Some(at) = sighting.at {
            // Timestamps sort as strings.
            seen.first = Some(seen.first.take().map_or(at.to_owned(), |first| first.min(at.to_owned())));
            seen.last = Some(seen.last.take().map_or(at.to_owned(), |last| last.max(at.to_owned())));
        }
        rest = &rest[close + 1..];
    }
}

fn view(mark: String, mut seen: Sightings) -> SecretView {
    seen.sessions.sort();
    seen.sessions.dedup();
    SecretView {
        kind: mark.split(':').nth(1).unwrap_or_default().to_owned(),
        mark,
        occurrences: seen.occurrences,
        first_seen_at: seen.first,
        last_seen_at: seen.last,
        session_count: seen.sessions.len(),
        sessions: seen.sessions.into_iter().take(LISTED_SESSIONS).collect(),
        tools: seen.tools.into_iter().collect(),
        places: seen.places.into_iter().collect(),
    }
}
