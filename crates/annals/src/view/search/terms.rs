//! A query as index terms: its words, the marks of calls, and the sessions it is limited to.

use std::collections::HashSet;

use super::query::{Clause, Query};
use super::{MOST_TERM_GROUPS, Searcher};
use annals_core::{FILE_MARK, MODEL_MARK, Result, SECRET_MARK, SessionId, TOOL_MARK, Time};
use annals_store::{Hiding, SessionFilter, TermGroup, TermQuery};

fn add_secrets(group: &mut TermGroup) {
    for terms in [&mut group.terms, &mut group.prefixes, &mut group.forms] {
        let marked: Vec<Vec<u8>> = terms.iter().map(|term| [SECRET_MARK, term.as_slice()].concat()).collect();
        terms.extend(marked);
    }
}

impl Searcher<'_> {
    /// All of these groups, and what filters require.
    pub fn term_query(&self, query: &Query, mut groups: Vec<TermGroup>) -> Result<TermQuery> {
        groups.truncate(MOST_TERM_GROUPS);
        // The owner may also find what is within secrets.
        if self.view.door.reveals() {
            groups.iter_mut().for_each(add_secrets);
        }
        let marked = |mark: &[u8], word: &str| TermGroup {
            terms: vec![[mark, word.to_lowercase().as_bytes()].concat()],
            ..TermGroup::default()
        };
        let mut of_calls = Vec::new();
        of_calls.extend(query.tool.as_deref().map(|tool| marked(TOOL_MARK, tool)));
        of_calls.extend(query.file.as_deref().map(|path| {
            let last = path.rsplit(['/', '\\']).next().unwrap_or(path);
            marked(FILE_MARK, last)
        }));
        of_calls.extend(query.model.as_deref().map(|model| {
            let marked = marked(MODEL_MARK, model);
            // A model also matches by the start of its name.
            TermGroup { prefixes: marked.terms.clone(), ..marked }
        }));
        if self.view.door.reveals() {
            of_calls.iter_mut().for_each(add_secrets);
        }
        // Excluded phrases are checked in the text.
        let unwanted = query.unwanted.iter().filter(|clause| !clause.is_exact());
        let mut excluded: Vec<TermGroup> = unwanted.flat_map(Clause::term_groups).collect();
        if self.view.door.reveals() {
            excluded.iter_mut().for_each(add_secrets);
        }
        Ok(TermQuery {
            least: groups.len(),
            groups,
            excluded,
            of_calls,
            kinds: query.kinds.clone(),
            since_minute: query.since.map(Time::minute),
            until_minute: query.until.map(Time::minute),
            sessions: self.sessions(query)?,
        })
    }

    /// The sessions that filters and scope permit; all if nothing restricts them.
    fn sessions(&self, query: &Query) -> Result<Option<HashSet<SessionId>>> {
        if let Some(session) = self.session {
            let filter = SessionFilter { row: Some(session), with_agents: true, ..SessionFilter::default() };
            let mut rows = self.view.archive.session_rows(&filter)?;
            rows.insert(SessionId::NONE);
            return Ok(Some(rows));
        }
        let narrowed = query.source.is_some() || query.project.is_some() || query.branch.is_some();
        let narrowed = narrowed || query.is_of_arranged() || self.view.archive.hides()?;
        if !narrowed && self.view.archive.is_whole() {
            return Ok(None);
        }
        let path = query.project.as_deref().is_some_and(|project| project.starts_with('/'));
        let filter = SessionFilter {
            source: query.source.clone(),
            project: query.project.clone().filter(|_| path),
            project_part: query.project.clone().filter(|_| !path),
            branch: query.branch.clone(),
            starred: query.starred,
            noted: query.noted,
            tags: query.tags.clone(),
            hiding: if query.hidden { Hiding::Only } else { Hiding::LeftOut },
            with_agents: true,
            ..SessionFilter::default()
        };
        let mut rows = self.view.archive.session_rows(self.view.without_guesses(&filter)?.as_ref())?;
        // Records have no session; their owner is determined when they are resolved.
        rows.insert(SessionId::NONE);
        Ok(Some(rows))
    }
}
