//! What notes and trailers of commits say about lines: further evidence, never stronger than the text of an edit. Named
//! sessions are checked against the archive.

use std::collections::HashSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::{Blame, BlameSpan, LineGrades};
use crate::view::context::View;
use annals_core::{Result, Shown};
use annals_sources::git::Attribution;

/// Where a statement about a commit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvidenceKind {
    /// A note names the lines that a session wrote.
    Note,
    /// A trailer names who took part in a commit.
    Trailer,
}

impl EvidenceKind {
    /// Also the grade of lines that nothing else is known about.
    pub fn name(self) -> &'static str {
        match self {
            EvidenceKind::Note => "noted",
            EvidenceKind::Trailer => "trailer",
        }
    }
}

/// A statement about lines of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Statement {
    pub kind: EvidenceKind,
    pub commit: String,
    pub who: Attribution,
}

/// A statement, and what the archive has to say about it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Evidence {
    /// `noted` or `trailer`.
    pub kind: &'static str,
    pub commit: String,
    pub tool: Option<Shown>,
    pub session_id: Option<Shown>,
    pub model: Option<Shown>,
    pub person: Option<Shown>,
    /// `agrees`: the session touched the file. `disagrees`: it never did. `alone`: the archive does not have it.
    pub status: &'static str,
    /// Lines that it is about.
    pub lines: usize,
    /// Lines of these that an edit of another session wrote.
    pub contradicted: usize,
}

/// A line while spans are being rebuilt.
#[derive(Clone, PartialEq, Eq)]
struct LineState {
    grade: &'static str,
    origin: Option<usize>,
    written: Option<u32>,
    evidence: Option<usize>,
}

impl View<'_> {
    /// Adds statements to a traced file: `path` is its path in the repository, and each line refers to a statement.
    pub fn add_evidence(
        &self,
        blame: &mut Blame,
        path: &str,
        statements: &[Statement],
        of_lines: &[Option<usize>],
    ) -> Result<()> {
        let mut families: Vec<HashSet<String>> = Vec::new();
        for statement in statements {
            let (status, family) = self.check_statement(&statement.who, path)?;
            let shown = |text: &Option<String>| text.as_deref().map(|text| self.door.text(text));
            let who = &statement.who;
            families.push(family);
            blame.evidence.push(Evidence {
                kind: statement.kind.name(),
                commit: statement.commit.clone(),
                tool: shown(&who.tool),
                session_id: shown(&who.session),
                model: shown(&who.model),
                person: shown(&who.person),
                status,
                lines: 0,
                contradicted: 0,
            });
        }
        let mut lines = states_of(&blame.spans);
        for (line, statement) in lines.iter_mut().zip(of_lines) {
            let Some(number) = *statement else { continue };
            let evidence = &mut blame.evidence[number];
            evidence.lines += 1;
            let is_written = line.origin.is_some() && line.grade != "read";
            let writer = line.origin.filter(|_| is_written).map(|origin| &blame.origins[origin].session_id);
            if let Some(writer) = writer {
                let is_named = statements[number].who.session.is_some();
                evidence.contradicted += usize::from(is_named && !families[number].contains(writer));
                line.evidence = Some(number);
            } else if evidence.status == "disagrees" {
                line.evidence = Some(number);
            } else if statements[number].who.is_assistant() {
                *line = LineState { grade: evidence.kind, evidence: Some(number), ..line.clone() };
            }
        }
        blame.spans = spans_of(&lines);
        blame.lines = LineGrades { total: lines.len(), ..LineGrades::default() };
        for line in &lines {
            blame.lines.count(line.grade, 1);
        }
        Ok(())
    }

    /// Whether the named session touched the file, and the ids of the session and its sub-agents.
    fn check_statement(&self, who: &Attribution, path: &str) -> Result<(&'static str, HashSet<String>)> {
        let Some(session) = who.session.as_deref() else { return Ok(("alone", HashSet::new())) };
        let mut family = self.archive.sessions_on_file(session, path)?;
        // Some programs put the day before the id.
        let undated = session.get(11..).filter(|_| session.get(..11).is_some_and(is_day));
        if let Some(undated) = undated.filter(|_| family.is_empty()) {
            family = self.archive.sessions_on_file(undated, path)?;
        }
        let status = match (family.is_empty(), family.iter().any(|(_, touched)| *touched)) {
            (true, _) => "alone",
            (false, true) => "agrees",
            (false, false) => "disagrees",
        };
        let named = [session, undated.unwrap_or(session)].map(str::to_owned);
        Ok((status, family.into_iter().map(|(key, _)| key).chain(named).collect()))
    }
}

/// `2026-01-15-`
fn is_day(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 | 10 => byte == b'-',
        _ => byte.is_ascii_digit(),
    })
}

fn states_of(spans: &[BlameSpan]) -> Vec<LineState> {
    let of_span = |span: &BlameSpan| {
        let (grade, origin, first) = (span.grade, span.origin, span.written_at_line);
        (0..=span.end - span.start).map(move |step| {
            let written = first.zip(u32::try_from(step).ok()).and_then(|(line, step)| line.checked_add(step));
            LineState { grade, origin, written, evidence: None }
        })
    };
    spans.iter().flat_map(of_span).collect()
}

fn spans_of(lines: &[LineState]) -> Vec<BlameSpan> {
    let mut spans: Vec<BlameSpan> = Vec::new();
    let mut last: Option<&LineState> = None;
    for (at, line) in lines.iter().enumerate() {
        let continues = last.is_some_and(|last| {
            let next = last.written.and_then(|written| written.checked_add(1));
            (last.grade, last.origin, last.evidence) == (line.grade, line.origin, line.evidence)
                && (line.written == next || line.written.is_none() && last.written.is_none())
        });
        last = Some(line);
        match spans.last_mut().filter(|_| continues) {
            Some(span) => span.end = at + 1,
            None => spans.push(BlameSpan {
                start: at + 1,
                end: at + 1,
                grade: line.grade,
                origin: line.origin,
                written_at_line: line.written,
                evidence: line.evidence,
            }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_survive_being_taken_apart() {
        let span = |start, end, grade, origin, written_at_line| BlameSpan {
            start,
            end,
            grade,
            origin,
            written_at_line,
            evidence: None,
        };
        let spans = [
            span(1, 3, "exact", Some(0), Some(7)),
            span(4, 4, "exact", Some(0), Some(12)),
            span(5, 9, "unknown", None, None),
        ];
        assert_eq!(spans_of(&states_of(&spans)), spans);
        assert!(is_day("2026-01-15-") && !is_day("11906c19-37"));
    }
}
