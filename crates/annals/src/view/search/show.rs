//! Search results as shown: the best passages of each session, with highlights.

use std::rc::Rc;

use super::passages::{FoundPassage, PassageStep};
use super::snippet::Marker;
use super::{Group, PassageView, SHOWN, SearchResult, Searcher};
use crate::view::session::list::SessionView;
use annals_core::{AccessKind, PassageKind, Result, Shown, Time};
use annals_sources::by_name;

impl Searcher<'_> {
    /// None if all of its hits are copies, or not visible.
    pub fn result(&self, group: Group, marker: &Marker<'_>, shown: usize) -> Result<Option<SearchResult>> {
        let mut reader = self.reader();
        let mut passages_found: Vec<(f32, Rc<FoundPassage>)> = Vec::new();
        let mut read_count = 0;
        for (score, hit) in &group.hits {
            if passages_found.len() == shown || read_count == 4 * SHOWN {
                break;
            }
            read_count += 1;
            passages_found.extend(self.read(&mut reader, hit)?.map(|found| (*score, found)));
        }
        let more_passages = group.hits.len() - read_count;
        let by_title = group.hits.is_empty();
        if passages_found.is_empty() && !by_title {
            return Ok(None);
        }
        let row = passages_found.first().and_then(|(_, first)| first.step.as_ref()).map(|step| step.session);
        let session = match row.or(by_title.then_some(group.session)) {
            Some(row) => match self.view.session_of_row(row)? {
                Some(session) => Some(session),
                None => return Ok(None),
            },
            None => None,
        };
        let mut passages = Vec::new();
        for (score, found) in &passages_found {
            passages.push(self.passage(found, *score, marker)?);
            if let Some(step) = &found.step {
                self.view.note_access(step.session, AccessKind::Search);
            }
        }
        Ok(Some(self.view(session, &passages_found, passages, group.score, more_passages)))
    }

    fn view(
        &self,
        session: Option<SessionView>,
        passages_found: &[(f32, Rc<FoundPassage>)],
        passages: Vec<PassageView>,
        score: f32,
        more_passages: usize,
    ) -> SearchResult {
        let record = passages_found.first().and_then(|(_, found)| found.record.as_ref());
        match session {
            Some(session) => SearchResult {
                kind: "session",
                source: session.source,
                provider_label: session.provider_label,
                session_id: Some(session.session_id),
                stream: None,
                title: session.title,
                name: session.name,
                starred: session.starred,
                tags: session.tags,
                cwd: session.cwd,
                git_branch: session.git_branch,
                last_message_at: session.last_message_at,
                score: f64::from(score),
                passages,
                more_passages,
                resume_command: Some(session.resume_command).filter(|command| !command.is_empty()),
            },
            None => {
                let source = record.map_or(String::new(), |record| record.source.clone());
                SearchResult {
                    kind: "library",
                    provider_label: by_name(&source).map_or("", |source| source.manifest().label),
                    source,
                    session_id: None,
                    stream: record.map(|record| record.stream.clone()),
                    title: record
                        .map(|record| self.view.door.text(&format!("{} {}", record.stream, record.key))),
                    name: None,
                    starred: false,
                    tags: Vec::new(),
                    cwd: None,
                    git_branch: None,
                    last_message_at: record.and_then(|record| record.at).map(Time::rfc3339),
                    score: f64::from(score),
                    passages,
                    more_passages,
                    resume_command: None,
                }
            }
        }
    }

    /// The number of a step, and whether it is on a branch that the client does not show.
    fn position(&self, step: &PassageStep) -> Result<(Option<i64>, bool)> {
        let PassageStep { session, file, place, .. } = *step;
        match self.view.archive.node_at(session, file, place)? {
            Some(node) => Ok((self.view.archive.steps_on_branch(session, file, place)?, !node.current)),
            None => Ok((Some(self.view.archive.steps_before(session, file, place)?), false)),
        }
    }

    fn passage(&self, found: &FoundPassage, score: f32, marker: &Marker<'_>) -> Result<PassageView> {
        let (snippet, highlights) = marker.snippet(self.view.door, &found.text);
        let (position, off_branch) = match &found.step {
            Some(step) => self.position(step)?,
            None => (None, false),
        };
        let (role, kind) = match found.hit.kind {
            PassageKind::User => ("user", "message"),
            PassageKind::Assistant => ("assistant", "message"),
            PassageKind::Thinking => ("thinking", "message"),
            PassageKind::Call | PassageKind::Files => ("tool", "call"),
            PassageKind::Result | PassageKind::Output => ("tool", "result"),
            PassageKind::Record => ("library", "library"),
        };
        Ok(PassageView {
            message_id: match (&found.step, &found.record) {
                (Some(step), _) => Shown::new(step.id.clone()),
                (None, Some(record)) => self.view.door.text(&record.key),
                (None, None) => Shown::default(),
            },
            position,
            off_branch,
            role,
            kind,
            tool: found.tool.as_deref().map(|tool| self.view.door.text(tool)),
            at: found.at.map(Time::rfc3339),
            score: f64::from(score),
            snippet,
            highlights,
        })
    }
}
