//! Reads the edits that may have written the lines of a file: candidates from the index, texts from the archive.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use similar::{ChangeTag, TextDiff};

use super::matching::{Hunk, HunkLine};
use crate::view::door::between_letters;
use annals_core::{
    Block, CallKind, ContentKey, FileId, FileWork, FingerprintTerm, LineFingerprint, Operation, Raw, Result,
    SessionId, Span, Time, each_gram_term, line_fingerprint,
};
use annals_sources::{CallLines, Recorder, by_name};
use annals_store::{Archive, CallRow, Contents, FingerprintHits, MOST_HOLDERS, PlacedCalls, TouchRow};

/// Most calls whose texts are read for one file.
const MOST_CALLS: usize = 1_500;
/// Calls read per line. Calls on a file of the same name are always read.
const PER_LINE: usize = 2;
/// Calls read because their text is similar, and the number of fingerprints they must share.
const MOST_ALIKE: usize = 24;
const SHARED_GRAMS: usize = 3;

/// Only the start of a long prompt is kept: more than is shown, so that a secret in it is seen in full.
const LONGEST_PROMPT: usize = 16 << 10;

/// A file as it is now, or was at a commit.
#[derive(Debug, Clone, Default)]
pub struct CodeFile {
    /// Empty for a passage that belongs to no file.
    pub path: String,
    /// The repository or directory that the path is relative to.
    pub root: Option<String>,
    pub text: String,
    /// The latest time at which each line can have been written, as far as it is known: when it was committed, or when
    /// the file was saved.
    pub deadlines: Vec<Option<Time>>,
}

/// Clocks differ, and a commit takes its time from before its hooks.
const SLACK_MICROS: i64 = 5 * 60 * 1_000_000;

impl CodeFile {
    /// For each line, in microseconds.
    pub fn deadlines(&self) -> Vec<i64> {
        let limit = |at: &Option<Time>| at.map_or(i64::MAX, |at| at.micros().saturating_add(SLACK_MICROS));
        self.deadlines.iter().map(limit).collect()
    }

    /// Text without a file: who wrote it first.
    pub fn is_passage(&self) -> bool {
        self.path.is_empty()
    }
}

/// A call that wrote or read code.
pub struct CodeCall {
    pub row: CallRow,
    pub source: String,
    /// The path of the file it worked on.
    pub path: String,
    /// The prompt that led to it, and its message.
    pub prompt: Option<(ContentKey, Rc<str>)>,
}

/// Calls that may have written a file.
#[derive(Default)]
pub struct Candidates {
    pub calls: Vec<CodeCall>,
    pub hunks: Vec<Hunk>,
}

/// The fingerprints of all these files, to query the index with.
pub fn fingerprints_of(files: &[CodeFile]) -> Vec<FingerprintTerm> {
    let mut fingerprints = Vec::new();
    for file in files {
        fingerprints.extend(
            file.text
                .lines()
                .map(line_fingerprint)
                .filter(|print| print.is_distinctive)
                .map(LineFingerprint::term),
        );
        each_gram_term(&file.text, |term| fingerprints.push(term));
    }
    fingerprints.sort_unstable();
    fingerprints.dedup();
    fingerprints
}

/// How distinctive a line is, from 0 to 1.
pub fn rarity(hits: &FingerprintHits, print: &LineFingerprint) -> f32 {
    match hits.holders.get(&print.term()).map_or(0, |holders| holders.count) {
        0..=12 => 1.0,
        13..=64 => 0.5,
        65..=MOST_HOLDERS => 0.25,
        _ => 0.1,
    }
}

pub struct HunkReader<'a> {
    pub archive: Archive<'a>,
    pub contents: Contents<'a>,
    /// Source and directory of each session.
    pub sessions: HashMap<SessionId, Option<(String, Option<String>)>>,
    prompts: HashMap<ContentKey, Rc<str>>,
}

impl<'a> HunkReader<'a> {
    pub fn new(archive: Archive<'a>) -> HunkReader<'a> {
        let (contents, sessions, prompts) = (archive.contents(), HashMap::new(), HashMap::new());
        HunkReader { archive, contents, sessions, prompts }
    }

    pub fn read(
        &mut self,
        file: &CodeFile,
        hits: &FingerprintHits,
        of_name: &PlacedCalls,
    ) -> Result<Candidates> {
        let (choose_calls, alike) = choose_calls(file, hits, of_name);
        let mut candidates = Candidates::default();
        // In archive order, so that each segment is decompressed once.
        let mut calls: BTreeMap<(FileId, u64), (SessionId, bool)> = BTreeMap::new();
        for place in &alike {
            let place = &hits.places[*place as usize];
            calls.insert((place.file, place.offset), (place.session, true));
        }
        for place in &choose_calls {
            let place = &hits.places[*place as usize];
            calls.insert((place.file, place.offset), (place.session, false));
        }
        // A file without any distinctive line can still be what one of these calls wrote.
        if !file.text.lines().any(|line| line_fingerprint(line).is_distinctive) {
            let named = of_name.iter().rev().map(|(call, session)| (*call, (*session, false)));
            calls.extend(named.take(MOST_CALLS));
        }
        for ((in_file, place), (session, loose)) in calls {
            self.call(file, session, in_file, place, loose, &mut candidates)?;
        }
        Ok(candidates)
    }

    fn call(
        &mut self,
        file: &CodeFile,
        session: SessionId,
        in_file: FileId,
        place: u64,
        loose: bool,
        candidates: &mut Candidates,
    ) -> Result<()> {
        if session == SessionId::NONE {
            return self.copy(file, in_file, candidates);
        }
        let Some(row) = self.archive.call_at(session, in_file, place)? else { return Ok(()) };
        // A copied call is also in its original session.
        if row.copied || row.ok == Some(false) {
            return Ok(());
        }
        let Some((source, folder)) = self.session(session)? else { return Ok(()) };
        let Some(recorder) = by_name(&source).and_then(|source| source.recorder()) else { return Ok(()) };
        let work = self.work(&row, recorder, folder.as_deref())?;
        let at = row.at.map_or(0, Time::micros);
        let mut of_path: Option<(String, usize)> = None;
        for work in work {
            let lines = written_lines(&work);
            if lines.iter().all(|line| line.context) {
                continue;
            }
            let call = match &of_path {
                Some((path, call)) if *path == work.path => *call,
                _ => {
                    // Read it now, while the segments around the call are decompressed.
                    let prompt = self.prompt(&source, &row)?;
                    let path = work.path.clone();
                    candidates.calls.push(CodeCall {
                        row: row.clone(),
                        source: source.clone(),
                        path,
                        prompt,
                    });
                    candidates.calls.len() - 1
                }
            };
            of_path = Some((work.path.clone(), call));
            candidates.hunks.push(Hunk {
                call,
                read: work.is_read(),
                same_file: is_same_file(file, &work.path, folder.as_deref()),
                nearness: nearness(&file.path, &work.path),
                at,
                start: work.after.range.map(|range| range.start),
                lines,
                loose,
            });
        }
        Ok(())
    }

    pub fn prompt(&mut self, source: &str, row: &CallRow) -> Result<Option<(ContentKey, Rc<str>)>> {
        let message = self.archive.prompt_before(row.session_id, row.file, row.span.offset)?;
        let (Some(message), Some(source)) = (message, by_name(source)) else { return Ok(None) };
        if let Some(cached) = self.prompts.get(&message.key) {
            return Ok(Some((message.key, cached.clone())));
        }
        let mut lines = vec![self.contents.span(message.file, message.span)?];
        for line in self.archive.message_lines(row.session_id, message.file, message.span.offset)? {
            lines.push(self.contents.span(message.file, line)?);
        }
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.expose()).collect();
        let text = source.blocks(&lines).into_iter().find_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        });
        let text = text.unwrap_or_default();
        let start: Rc<str> = text[..between_letters(&text, LONGEST_PROMPT)].into();
        self.prompts.insert(message.key, start.clone());
        Ok(Some((message.key, start)))
    }

    /// A snapshot of a file that a client kept: its session read the content.
    fn copy(&mut self, file: &CodeFile, kept: FileId, candidates: &mut Candidates) -> Result<()> {
        let Some(copy) = self.archive.kept_copy(kept)? else { return Ok(()) };
        let source = by_name(&copy.source);
        let named =
            source.and_then(|source| source.recorder()).and_then(|recorder| recorder.snapshot(&copy.path));
        let (Some(source), Some(named)) = (source, named) else { return Ok(()) };
        let session = self.archive.session_in(copy.instance, &named.session)?;
        let Some(session_id) = session else { return Ok(()) };
        let folder = self.session(session_id)?.and_then(|(_, folder)| folder);
        let mut path = None;
        let contents = &mut self.contents;
        self.archive.each_record(&copy.source, named.stream, Some(&named.key), (0, 0), &mut |record| {
            let bytes =
                contents.span_of_version(record.file, record.file_version, record.encoding, record.span)?;
            let record = source.record(named.stream, &named.key, bytes.expose());
            path = record.and_then(|record| record.get("path")?.as_str().map(str::to_owned));
            Ok(path.is_none())
        })?;
        let Some(path) = path else { return Ok(()) };
        let path = match &folder {
            Some(folder) if !path.starts_with('/') => format!("{}/{path}", folder.trim_end_matches('/')),
            _ => path,
        };
        let span = Span { offset: 0, length: copy.size };
        let text = self.contents.span(kept, span)?;
        let lines = String::from_utf8_lossy(text.expose());
        let lines = lines.lines().map(|line| HunkLine::new(line, false)).collect();
        let row = CallRow {
            session: named.session,
            session_id,
            file: kept,
            span,
            at: copy.at,
            key: ContentKey::of(&[named.key.as_bytes()]),
            copied: false,
            call_id: named.key,
            name: named.stream.to_owned(),
            kind: CallKind::Read,
            title: Raw::default(),
            parent: None,
            full_output: None,
            model: None,
            output: None,
            detail: None,
            ok: Some(true),
            exit_code: None,
            duration_ms: None,
        };
        let (same_file, nearness) =
            (is_same_file(file, &path, folder.as_deref()), nearness(&file.path, &path));
        candidates.calls.push(CodeCall { row, source: copy.source, path, prompt: None });
        candidates.hunks.push(Hunk {
            call: candidates.calls.len() - 1,
            read: true,
            same_file,
            nearness,
            at: copy.at.map_or(0, Time::micros),
            start: Some(1),
            lines,
            loose: false,
        });
        Ok(())
    }

    /// What a call did, if it is known to have succeeded.
    pub fn work(
        &mut self,
        row: &CallRow,
        recorder: &dyn Recorder,
        folder: Option<&str>,
    ) -> Result<Vec<FileWork>> {
        let touches = self.archive.touches(row.session_id, row.file, row.span.offset)?;
        work_of(&mut self.contents, row, &touches, recorder, folder)
    }

    pub fn session(&mut self, session: SessionId) -> Result<Option<(String, Option<String>)>> {
        if let Some(cached) = self.sessions.get(&session) {
            return Ok(cached.clone());
        }
        let home = self.archive.session_home(session)?;
        self.sessions.insert(session, home.clone());
        Ok(home)
    }
}

/// Chooses the calls to read: those on a file of this name, the best few for every line, and those with similar text
/// for lines that have none.
fn choose_calls(
    file: &CodeFile,
    hits: &FingerprintHits,
    of_name: &PlacedCalls,
) -> (HashSet<u32>, HashSet<u32>) {
    // Distinct lines, and until when each can have been written.
    let mut terms: BTreeMap<FingerprintTerm, i64> = BTreeMap::new();
    let deadlines = file.deadlines();
    for (at, line) in file.text.lines().enumerate() {
        let print = line_fingerprint(line);
        if print.is_distinctive {
            let deadline = deadlines.get(at).copied().unwrap_or(i64::MAX);
            let latest = terms.entry(print.term()).or_insert(deadline);
            *latest = deadline.max(*latest);
        }
    }
    let mut lines_of: HashMap<u32, (f32, Vec<(usize, bool)>)> = HashMap::new();
    for (line, (term, deadline)) in terms.iter().enumerate() {
        let Some(holders) = hits.holders.get(term) else { continue };
        for place in &holders.places {
            let (score, lines) = lines_of.entry(*place).or_default();
            *score += 1.0 / holders.count as f32;
            let late = hits.places[*place as usize].minutes.saturating_mul(60_000_000) > *deadline;
            lines.push((line, late));
        }
    }
    let near = |place: u32| {
        let place = &hits.places[place as usize];
        of_name.contains_key(&(place.file, place.offset))
    };
    // Of equal ones the latest, or for a passage the first.
    let age = |place: u32| {
        let minutes = hits.places[place as usize].minutes;
        if file.is_passage() { minutes } else { minutes.saturating_neg() }
    };
    let mut order: Vec<(bool, f32, u32)> =
        lines_of.iter().map(|(place, (score, _))| (near(*place), *score, *place)).collect();
    order.sort_by(|left, right| {
        let by_time = || (age(left.2), left.2).cmp(&(age(right.2), right.2));
        right.0.cmp(&left.0).then(right.1.total_cmp(&left.1)).then_with(by_time)
    });
    // Calls that are too late to have written a line may have read it; they do not take its writer's place.
    let mut covered = vec![[0_usize; 2]; terms.len()];
    let mut choose_calls: HashSet<u32> = HashSet::new();
    for (near, _, place) in order {
        if choose_calls.len() >= MOST_CALLS {
            break;
        }
        let lines = &lines_of[&place].1;
        if near || lines.iter().any(|(line, late)| covered[*line][usize::from(*late)] < PER_LINE) {
            choose_calls.insert(place);
            lines.iter().for_each(|(line, late)| covered[*line][usize::from(*late)] += 1);
        }
    }
    let mut shared: HashMap<u32, usize> = HashMap::new();
    let mut seen: HashSet<FingerprintTerm> = HashSet::new();
    each_gram_term(&file.text, |term| {
        if let Some(holders) = hits.holders.get(&term).filter(|_| seen.insert(term)) {
            holders.places.iter().for_each(|place| *shared.entry(*place).or_default() += 1);
        }
    });
    let mut alike: Vec<(usize, u32)> = shared
        .into_iter()
        .filter(|(place, count)| *count >= SHARED_GRAMS && !choose_calls.contains(place))
        .map(|(place, count)| (count, place))
        .collect();
    alike.sort_unstable_by(|left, right| right.cmp(left));
    (choose_calls, alike.into_iter().take(MOST_ALIKE).map(|(_, place)| place).collect())
}

/// The lines of an edit: those it inserted, and the context lines around them.
pub fn written_lines(work: &FileWork) -> Vec<HunkLine> {
    let after = work.after.text.as_deref().unwrap_or_default();
    let before = work.before.text.as_deref().filter(|_| !work.is_read());
    let Some(before) = before.filter(|before| !before.is_empty() && !after.is_empty()) else {
        return after.lines().map(|line| HunkLine::new(line, false)).collect();
    };
    // Complete lines: an edit within one line has a newline on neither side.
    let (before, after) =
        (format!("{}\n", before.trim_end_matches('\n')), format!("{}\n", after.trim_end_matches('\n')));
    let diff = TextDiff::from_lines(before.as_str(), after.as_str());
    let changes = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Delete);
    changes
        .map(|change| {
            let line = change.value().trim_end_matches(['\n', '\r']);
            HunkLine::new(line, change.tag() == ChangeTag::Equal)
        })
        .collect()
}

fn nearness(ours: &str, theirs: &str) -> usize {
    let parts = |path: &'_ str| path.rsplit('/').map(str::to_owned).collect::<Vec<_>>();
    parts(ours).iter().zip(parts(theirs)).take_while(|(ours, theirs)| *ours == theirs).count()
}

/// The same path, or the same path relative to both directories.
pub fn is_same_file(file: &CodeFile, path: &str, folder: Option<&str>) -> bool {
    // A pasted passage may come from any file.
    if file.path == path || file.is_passage() {
        return true;
    }
    let below = |path: &str, folder: Option<&str>| -> Option<String> {
        let inside = path.strip_prefix(folder?.trim_end_matches('/'))?.strip_prefix('/')?;
        Some(inside.to_owned())
    };
    let ours = below(&file.path, file.root.as_deref());
    let theirs = below(path, folder).or_else(|| (!path.starts_with('/')).then(|| path.to_owned()));
    ours.is_some() && ours == theirs
}

/// What a call did to files or read of them, as far as it is certain.
pub fn work_of(
    contents: &mut Contents<'_>,
    row: &CallRow,
    touches: &[TouchRow],
    recorder: &dyn Recorder,
    folder: Option<&str>,
) -> Result<Vec<FileWork>> {
    let changed = touches.iter().any(|touch| touch.operation != Operation::Read);
    let call = contents.span(row.file, row.span)?;
    let output = row.output.map(|span| contents.span(row.file, span)).transpose()?;
    let detail = row.detail.map(|span| contents.span(row.file, span)).transpose()?;
    let lines = CallLines {
        call: call.expose(),
        output: output.as_ref().map(|output| output.expose()),
        detail: detail.as_ref().map(|detail| detail.expose()),
        folder,
    };
    let mut work = recorder.work(&lines);
    work.retain(|work| changed || work.is_read() && row.ok == Some(true));
    Ok(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_core::FileRegion;

    #[test]
    fn only_new_lines_are_written() {
        let mut work = FileWork::new("/w/a", Operation::Update);
        work.before = FileRegion::text("one\ntwo\nthree");
        work.after = FileRegion::text("one\n2\nthree");
        let actual: Vec<(String, bool)> =
            written_lines(&work).into_iter().map(|line| (line.text, line.context)).collect();
        assert_eq!(actual, [("one".into(), true), ("2".into(), false), ("three".into(), true)]);
    }

    #[test]
    fn files_are_the_same_below_their_folders() {
        let file = CodeFile {
            path: "/here/engine/src/a.rs".into(),
            root: Some("/here/engine".into()),
            text: String::new(),
            deadlines: Vec::new(),
        };
        assert!(is_same_file(&file, "/there/engine2/src/a.rs", Some("/there/engine2")));
        assert!(is_same_file(&file, "/here/engine/src/a.rs", None));
        assert!(!is_same_file(&file, "/there/engine2/lib/a.rs", Some("/there/engine2")));
        assert!(!is_same_file(&file, "/there/engine2/src/a.rs", None));
    }
}
