//! The origin of the lines of a file: session, prompt, call and model, with a grade of confidence.

pub(super) mod alike;
pub(super) mod evidence;
pub(super) mod files;
pub(super) mod history;
pub(super) mod hunks;
pub(super) mod known;
pub(super) mod matching;
pub(super) mod over_time;
pub(super) mod surviving_lines;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use utoipa::ToSchema;

use super::context::View;
use super::door::{Door, between_letters};
use super::search::passages::PassageReader;
use crate::view::session::list::heading;
use annals_core::{Arranged, Result, SessionId, Shown, Time};
use annals_sources::by_name;
pub use evidence::{Evidence, EvidenceKind, Statement};
pub use hunks::CodeFile;
use hunks::{Candidates, CodeCall, HunkReader, fingerprints_of, rarity};
use matching::{Claim, HunkLine, TracedLines, claim_lines};

/// Characters of a prompt that are shown.
const PROMPT: usize = 200;

/// The lines of a file in order, as spans with one origin each.
#[derive(Debug, Serialize, ToSchema)]
pub struct Blame {
    pub file: Shown,
    pub lines: LineGrades,
    pub spans: Vec<BlameSpan>,
    /// Calls, which spans refer to by index.
    pub origins: Vec<Origin>,
    /// What notes and trailers of commits say, which spans refer to by index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

/// Number of lines by grade.
#[derive(Debug, Default, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Grades)]
pub struct LineGrades {
    pub total: usize,
    /// Text of an edit, unchanged.
    pub exact: usize,
    /// The same text elsewhere, or in another file.
    pub moved: usize,
    /// Similar text.
    pub changed: usize,
    /// Read by a session, but not written by one.
    pub read: usize,
    /// A note of the commit names who wrote it; no edit is known.
    pub noted: usize,
    /// A trailer of the commit names an assistant; nothing else is known.
    pub trailer: usize,
    pub unknown: usize,
}

/// Adjacent lines that come from the same call, with the same grade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Span)]
pub struct BlameSpan {
    pub start: usize,
    pub end: usize,
    pub grade: &'static str,
    pub origin: Option<usize>,
    /// Line number of the first line when it was written.
    pub written_at_line: Option<u32>,
    /// Index of a note or a trailer about these lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<usize>,
}

/// A call that wrote lines, or read them.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Origin {
    /// Stable id of the call.
    pub id: String,
    pub source: String,
    pub provider_label: &'static str,
    pub session_id: String,
    pub title: Option<Shown>,
    /// What the caller named the session; shown instead of the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Shown>,
    /// Message id for `annals show --at`.
    pub message_id: String,
    pub call_id: Shown,
    pub tool: String,
    pub at: Option<String>,
    pub model: Option<String>,
    /// The prompt that led to it.
    pub prompt: Option<Shown>,
    pub prompt_id: Option<String>,
    /// Path as the call named it.
    pub file: Shown,
}

impl View<'_> {
    /// Traces every line of these files. Several files cost little more than one: the index is read once.
    pub fn blame(&self, files: &[CodeFile]) -> Result<Vec<Blame>> {
        let hits = self.archive.fingerprint_hits(&fingerprints_of(files))?;
        let name_of = |file: &CodeFile| file.path.rsplit('/').next().unwrap_or_default().to_owned();
        let calls_by_name = self.archive.calls_by_file_name(&files.iter().map(name_of).collect())?;
        let none = BTreeMap::new();
        let mut reader = HunkReader::new(self.archive);
        let mut builder = OriginBuilder::new(self);
        let mut blames = Vec::with_capacity(files.len());
        for file in files {
            let of_name = calls_by_name.get(&name_of(file)).unwrap_or(&none);
            let candidates = reader.read(file, &hits, of_name)?;
            let lines: Vec<HunkLine> = file.text.lines().map(|line| HunkLine::new(line, false)).collect();
            let deadlines = file.deadlines();
            let traced = TracedLines { lines: &lines, deadlines: &deadlines, first: file.is_passage() };
            let claims = claim_lines(traced, &candidates.hunks, &|print| rarity(&hits, print));
            blames.push(builder.blame(file, &claims, &candidates)?);
        }
        Ok(blames)
    }
}

impl View<'_> {
    /// Traces a text from anywhere, with its masked lines; for the owner.
    pub fn blame_text(&self, text: &CodeFile) -> Result<Option<(Blame, Vec<Shown>)>> {
        if !self.archive.is_whole() {
            return Ok(None);
        }
        let blame = self.blame(std::slice::from_ref(text))?.pop();
        Ok(blame.map(|blame| (blame, self.shown_lines(&text.text))))
    }
}

impl Blame {
    /// Shortens the path of a file below a directory.
    pub fn make_relative(&mut self, folder: &str) {
        let path = self.file.as_str().strip_prefix(folder.trim_end_matches('/'));
        if let Some(path) = path.and_then(|path| path.strip_prefix('/')) {
            self.file = Shown::new(path);
        }
    }

    /// Only some lines, with their own sums and origins.
    pub fn part(mut self, from: usize, to: usize) -> Blame {
        self.lines = LineGrades::default();
        self.spans.retain(|span| span.start <= to && span.end >= from);
        let (mut origins, mut numbers) = (Vec::new(), HashMap::new());
        let (mut evidence, mut statements) = (Vec::new(), HashMap::new());
        for span in &mut self.spans {
            let cut = from.saturating_sub(span.start);
            span.start += cut;
            span.end = span.end.min(to);
            let step = u32::try_from(cut).ok();
            span.written_at_line =
                span.written_at_line.zip(step).and_then(|(line, step)| line.checked_add(step));
            self.lines.total += span.end + 1 - span.start;
            self.lines.count(span.grade, span.end + 1 - span.start);
            span.origin = span.origin.map(|origin| {
                *numbers.entry(origin).or_insert_with(|| {
                    origins.push(self.origins[origin].clone());
                    origins.len() - 1
                })
            });
            span.evidence = span.evidence.map(|number| {
                *statements.entry(number).or_insert_with(|| {
                    evidence.push(self.evidence[number].clone());
                    evidence.len() - 1
                })
            });
        }
        self.origins = origins;
        self.evidence = evidence;
        self
    }
}

/// Turns claims into origins.
struct OriginBuilder<'a> {
    view: &'a View<'a>,
    steps: PassageReader<'a>,
    /// The title and the name of each session.
    titles: HashMap<SessionId, (Option<Shown>, Option<Shown>)>,
}

impl<'a> OriginBuilder<'a> {
    fn new(view: &'a View<'a>) -> OriginBuilder<'a> {
        let steps = PassageReader { view, contents: view.archive.contents() };
        OriginBuilder { view, steps, titles: HashMap::new() }
    }
}

impl OriginBuilder<'_> {
    fn blame(&mut self, file: &CodeFile, claims: &[Option<Claim>], candidates: &Candidates) -> Result<Blame> {
        let (origins, numbers) = self.origins(claims, candidates)?;
        let mut spans: Vec<BlameSpan> = Vec::new();
        let mut grades = LineGrades { total: claims.len(), ..LineGrades::default() };
        let mut last: Option<Claim> = None;
        for (at, claim) in claims.iter().enumerate() {
            let hunk = claim.map(|claim| &candidates.hunks[claim.hunk]);
            let origin = hunk.and_then(|hunk| numbers.get(&hunk.call).copied());
            let grade = claim.map_or("unknown", |claim| claim.grade.name());
            grades.count(grade, 1);
            let continues = spans.last().is_some_and(|span| span.origin == origin && span.grade == grade);
            // Lines that were not adjacent when written get separate spans.
            let adjacent = match (last, claim) {
                (Some(last), Some(claim)) => last.hunk == claim.hunk && claim.line == last.line + 1,
                (None, None) => true,
                _ => false,
            };
            last = *claim;
            match spans.last_mut().filter(|_| continues && adjacent) {
                Some(span) => span.end = at + 1,
                None => spans.push(BlameSpan {
                    start: at + 1,
                    end: at + 1,
                    grade,
                    origin,
                    written_at_line: claim.and_then(|claim| {
                        let start = candidates.hunks[claim.hunk].start?;
                        start.checked_add(u32::try_from(claim.line).ok()?)
                    }),
                    evidence: None,
                }),
            }
        }
        let file = self.view.door.text(&file.path);
        Ok(Blame { file, lines: grades, spans, origins, evidence: Vec::new() })
    }

    /// Every call that has a line, numbered in order of appearance.
    fn origins(
        &mut self,
        claims: &[Option<Claim>],
        candidates: &Candidates,
    ) -> Result<(Vec<Origin>, HashMap<usize, usize>)> {
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        for claim in claims.iter().flatten() {
            let next = numbers.len();
            numbers.entry(candidates.hunks[claim.hunk].call).or_insert(next);
        }
        let mut calls: Vec<(usize, usize)> = numbers.iter().map(|(call, number)| (*number, *call)).collect();
        calls.sort_unstable();
        let origins = calls.iter().map(|(_, call)| self.origin(&candidates.calls[*call]));
        Ok((origins.collect::<Result<_>>()?, numbers))
    }

    fn origin(&mut self, call: &CodeCall) -> Result<Origin> {
        let row = &call.row;
        if !self.titles.contains_key(&row.session_id) {
            let title = self.view.archive.session_title(row.session_id)?;
            let of = Arranged::session(&call.source, &row.session);
            let name = self.view.arrangement(&of)?.name;
            self.titles.insert(row.session_id, (title.map(|title| self.view.door.raw(&title)), name));
        }
        let (title, name) = self.titles[&row.session_id].clone();
        let step = self.steps.step_of(row)?;
        let prompt = call.prompt.as_ref();
        let label = by_name(&call.source).map_or("", |source| source.manifest().label);
        Ok(Origin {
            id: row.key.hex(),
            source: call.source.clone(),
            provider_label: label,
            session_id: row.session.clone(),
            title,
            name,
            message_id: step.id,
            call_id: self.view.door.text(&row.call_id),
            tool: row.name.clone(),
            at: row.at.map(Time::rfc3339),
            model: row.model.clone(),
            prompt: prompt.map(|(_, text)| prompt_start(self.view.door, text)),
            prompt_id: prompt.map(|(key, _)| key.hex()),
            file: self.view.door.text(&call.path),
        })
    }
}

/// The first line of a prompt, masked before it is truncated: half a secret is not recognised as one.
fn prompt_start(door: &Door, text: &str) -> Shown {
    let masked = door.text(text);
    let line = masked.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
    let end = between_letters(&line, PROMPT);
    let cut = line[..end].rfind("[secret:").filter(|open| !line[*open..end].contains(']'));
    Shown::new(&line[..cut.unwrap_or(end)])
}

impl Origin {
    /// What people call the session: its name, or else its title.
    pub fn heading(&self) -> Option<&Shown> {
        heading(&self.name, &self.title)
    }
}

impl LineGrades {
    fn count(&mut self, grade: &str, lines: usize) {
        let of_grade = match grade {
            "exact" => &mut self.exact,
            "moved" => &mut self.moved,
            "changed" => &mut self.changed,
            "read" => &mut self.read,
            "noted" => &mut self.noted,
            "trailer" => &mut self.trailer,
            _ => &mut self.unknown,
        };
        *of_grade += lines;
    }

    fn add(&mut self, other: &LineGrades) {
        self.total += other.total;
        self.exact += other.exact;
        self.moved += other.moved;
        self.changed += other.changed;
        self.read += other.read;
        self.noted += other.noted;
        self.trailer += other.trailer;
        self.unknown += other.unknown;
    }
}

/// Shares of the lines of many files: by grade, session, source and model.
#[derive(Debug, Default, Serialize)]
pub struct BlameSums {
    pub files: Vec<FileSum>,
    pub lines: LineGrades,
    pub sessions: Vec<Share>,
    pub sources: Vec<Share>,
    pub models: Vec<Share>,
}

#[derive(Debug, Serialize)]
pub struct FileSum {
    pub file: Shown,
    pub lines: LineGrades,
}

#[derive(Debug, Serialize)]
pub struct Share {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Shown>,
    pub lines: usize,
    pub share: f64,
}

/// Sums up traced lines; lines that were only read have no author.
pub fn blame_sums(blames: &[Blame]) -> BlameSums {
    let mut sums = BlameSums::default();
    let mut sessions: BTreeMap<String, (Option<Shown>, usize)> = BTreeMap::new();
    let mut sources: BTreeMap<String, (Option<Shown>, usize)> = BTreeMap::new();
    let mut models: BTreeMap<String, (Option<Shown>, usize)> = BTreeMap::new();
    for blame in blames {
        sums.lines.add(&blame.lines);
        sums.files.push(FileSum { file: blame.file.clone(), lines: blame.lines });
        for span in blame.spans.iter().filter(|span| span.grade != "read") {
            let Some(origin) = span.origin.and_then(|origin| blame.origins.get(origin)) else { continue };
            let lines = span.end + 1 - span.start;
            sessions.entry(origin.session_id.clone()).or_insert((origin.heading().cloned(), 0)).1 += lines;
            sources.entry(origin.source.clone()).or_default().1 += lines;
            models.entry(origin.model.clone().unwrap_or_else(|| "unknown".into())).or_default().1 += lines;
        }
    }
    let total = sums.lines.total;
    sums.sessions = shares(sessions, total);
    sums.sources = shares(sources, total);
    sums.models = shares(models, total);
    sums
}

/// Largest first.
fn shares(lines: BTreeMap<String, (Option<Shown>, usize)>, total: usize) -> Vec<Share> {
    let total = total.max(1) as f64;
    let share = |(name, (title, lines)): (String, (Option<Shown>, usize))| Share {
        name,
        title,
        lines,
        share: lines as f64 / total,
    };
    let mut shares: Vec<Share> = lines.into_iter().map(share).collect();
    shares.sort_by(|left, right| right.lines.cmp(&left.lines).then_with(|| left.name.cmp(&right.name)));
    shares
}

impl View<'_> {
    /// The masked lines of a file, to show next to their origins.
    pub fn shown_lines(&self, text: &str) -> Vec<Shown> {
        self.door.lines(text)
    }
}
