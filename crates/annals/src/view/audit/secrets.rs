//! Where secrets appear: mark, time, sessions and tools; never the secret itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use utoipa::ToSchema;

use crate::view::context::View;
use crate::view::library::LibraryQuery;
use crate::view::paging::Paging;
use crate::view::session::branches::Branch;
use crate::view::session::list::{SessionQuery, SessionView};
use crate::view::session::transcript::{BlockView, Entry, TranscriptQuery};
use annals_core::{FileId, InstanceId, Result, SessionId, Shown};
use annals_store::{ArchiveState, ItemRow, SessionFilter};

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

/// Sightings by mark.
type Found = BTreeMap<String, Sightings>;

#[derive(Debug, Default, Clone)]
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
        let mut found = Found::new();
        let mut query =
            SessionQuery { filter: filter.clone(), page: Paging { limit: 200, cursor: None }, brief: true };
        loop {
            let list = self.sessions(&query)?;
            for session in &list.sessions {
                self.scan_transcript(session, &mut found)?;
            }
            query.page.cursor = list.next_cursor;
            if query.page.cursor.is_none() {
                break;
            }
        }
        if filter.project.is_none() && filter.since.is_none() && filter.until.is_none() {
            let shelf = LibraryQuery { source: filter.source.clone(), ..LibraryQuery::default() };
            self.scan_library(&shelf, &mut found, &mut |_| true)?;
        }
        Ok(sorted_views(found))
    }

    fn scan_library(
        &self,
        shelf: &LibraryQuery,
        found: &mut Found,
        is_wanted: &mut dyn FnMut(&ItemRow) -> bool,
    ) -> Result<()> {
        self.history_texts(shelf, is_wanted, &mut |text, changed_at| {
            let sighting = Sighting { place: "library", at: Some(changed_at), ..Sighting::default() };
            record_masks(found, text, &sighting);
        })
    }

    fn scan_transcript(&self, session: &SessionView, found: &mut Found) -> Result<()> {
        scan_session(found, session);
        let whole = TranscriptQuery { full: true, branch: Branch::All, ..TranscriptQuery::default() };
        self.transcript(session, whole, &mut |entry| {
            scan_entry(found, &session.session_id, &entry);
            Ok(())
        })
    }

    /// Reads what is new since the last scan of `scanned`, reports all, and returns how many sessions it read. Progress:
    /// sessions whose secrets are known, and all.
    pub fn new_secrets(
        &self,
        scanned: &mut ScannedArchive,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Vec<SecretView>, u64)> {
        // Whatever changes from here on is read the next time.
        let state = self.archive.state()?;
        let homes: Vec<InstanceId> = self.archive.instances()?.iter().map(|home| home.id).collect();
        if scanned.state.is_none_or(|before| before.rebuilds != state.rebuilds) || scanned.homes != homes {
            *scanned = ScannedArchive { homes, ..ScannedArchive::default() };
        }
        let rows: HashSet<SessionId> = self.archive.session_rows_after(-1)?.into_iter().collect();
        let since = scanned.state.map_or(-1, |before| before.commit);
        let changed = self.archive.session_rows_after(since)?;
        scanned.sessions.retain(|row, _| rows.contains(row));
        let (all, known) = (rows.len() as u64, (rows.len() - changed.len().min(rows.len())) as u64);
        for (done, row) in changed.iter().enumerate() {
            progress(known + done as u64, all);
            let mut found = Found::new();
            let filter = SessionFilter { row: Some(*row), with_agents: true, ..SessionFilter::default() };
            let query = SessionQuery { filter, page: Paging { limit: 1, cursor: None }, brief: true };
            for session in &self.sessions(&query)?.sessions {
                self.scan_transcript(session, &mut found)?;
            }
            scanned.sessions.remove(row);
            if !found.is_empty() {
                scanned.sessions.insert(*row, found);
            }
        }
        progress(all, all);
        // Versions of library items never change.
        let ScannedArchive { items, library, .. } = scanned;
        let shelf = LibraryQuery::default();
        self.scan_library(&shelf, library, &mut |row| {
            items.insert((row.file, row.file_version, row.span.offset))
        })?;
        scanned.state = Some(state);
        let mut found = scanned.library.clone();
        for (mark, seen) in scanned.sessions.values().flatten() {
            found.entry(mark.clone()).or_default().add(seen);
        }
        Ok((sorted_views(found), changed.len() as u64))
    }
}

/// What was found in each part of an archive, so that the next scan reads only what is new.
#[derive(Debug, Default)]
pub struct ScannedArchive {
    state: Option<ArchiveState>,
    /// The homes that were visible.
    homes: Vec<InstanceId>,
    /// By the row of the session; only those with secrets.
    sessions: HashMap<SessionId, Found>,
    /// Versions of library items that were read: file, its version, and offset.
    items: HashSet<(FileId, i64, u64)>,
    library: Found,
}

fn sorted_views(found: Found) -> Vec<SecretView> {
    let mut secrets: Vec<SecretView> = found.into_iter().map(|(mark, seen)| view(mark, seen)).collect();
    secrets.sort_by(|left, right| {
        right.occurrences.cmp(&left.occurrences).then_with(|| left.mark.cmp(&right.mark))
    });
    secrets
}

impl Sightings {
    /// Adds those of another part of the archive.
    fn add(&mut self, other: &Sightings) {
        self.occurrences += other.occurrences;
        // Timestamps sort as strings.
        self.first = self.first.iter().chain(&other.first).min().cloned();
        self.last = self.last.iter().chain(&other.last).max().cloned();
        self.sessions.extend(other.sessions.iter().cloned());
        self.tools.extend(other.tools.iter().cloned());
        self.places.extend(other.places.iter().copied());
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

fn scan_session(found: &mut Found, session: &SessionView) {
    let at = session.first_message_at.as_deref();
    let sighting = Sighting { place: "session", at, session: Some(&session.session_id), tool: None };
    let texts = [&session.title, &session.cwd, &session.git_branch, &session.git_origin_url];
    for text in texts.into_iter().flatten() {
        record_masks(found, text.as_str(), &sighting);
    }
}

fn scan_entry(found: &mut Found, session: &str, entry: &Entry) {
    let at = entry.at.as_deref();
    each_text_of(entry, &mut |place, text, tool| {
        record_masks(found, text, &Sighting { place, at, session: Some(session), tool });
    });
}

/// Visits every text of an entry with its place, and the tool whose input or output it is.
pub fn each_text_of(entry: &Entry, scan: &mut dyn FnMut(&'static str, &str, Option<&Shown>)) {
    let mut tool: Option<Shown> = None;
    for block in &entry.blocks {
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
fn record_masks(found: &mut Found, text: &str, sighting: &Sighting<'_>) {
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
