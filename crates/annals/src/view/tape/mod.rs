//! A session as a tape: which code was read and changed, and when; one JSON object per line, deterministic.

pub(super) mod event;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzz;
pub(super) mod grades;
pub(super) mod lines;
pub(super) mod maker;
pub(super) mod trace;

use std::io::Read;

use serde_json::{Map, Value, json};

use super::context::View;
use super::door::Door;
use super::session::entry_builder::kept_apart;
use super::session::list::SessionView;
use annals_core::{Encoding, Error, Framing, Result, SessionFacts, ShownJson, Verdict};
use annals_sources::json::Scan;
use annals_sources::{FileContext, Recorder, Source, TapeForm, by_name};
use annals_store::{Archive, TranscriptFile};
use event::{Event, moment};
use grades::CoverageGrades;
use lines::{Ending, each_line};
pub use maker::Drift;
use maker::{Emitted, Resolve, TapeMaker};
use trace::Traces;

/// Drifts that are reported one by one; the others are only counted.
const DRIFTS: usize = 100;
/// Lines searched for the file's name.
const NAMELESS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TapeFormat {
    #[default]
    Tape,
    AgentTrace,
}

/// How much of an input is compared with the formats of other clients.
const SNIFFED: u64 = 1 << 20;
const SNIFFED_LINES: usize = 50;

#[derive(Debug, Clone, Copy, Default)]
pub struct TapeOptions {
    /// Fail on a line that does not fit the format.
    pub strict: bool,
    pub format: TapeFormat,
    /// Add complete outputs and earlier file contents that are archived outside the transcripts.
    pub resolve: bool,
    /// Add the text of what was read, not only its hash.
    pub read_text: bool,
}

/// What is known after the last line. The first line of a tape reports its coverage, so it is made last.
#[derive(Debug)]
pub struct TapeEnd {
    pub first: Option<ShownJson>,
    pub drifts: Vec<Drift>,
    pub drift_count: u64,
}

/// Lines that come from outside the archive.
pub struct Recording<'r> {
    pub source: &'static dyn Source,
    /// The file's path; without one, the reader identifies the session from the lines.
    pub path: Option<&'r str>,
    pub framing: Framing,
}

type Visit<'s> = dyn FnMut(ShownJson) -> Result<()> + 's;

/// Converts lines that need not be in any archive to a tape.
pub fn record(
    door: &Door,
    recording: &Recording<'_>,
    options: TapeOptions,
    input: &mut dyn Read,
    visit: &mut Visit<'_>,
) -> Result<TapeEnd> {
    let recorder = recorder_of(recording.source)?;
    let form = recorder.form();
    let document = form.document_reader.filter(|_| recording.framing == Framing::Whole);
    let reader = document.unwrap_or(form.lines_reader);
    let mut taping = Taping::new(recording.source, recorder, options);
    let context = recording.path.map(|path| FileContext { path: path.to_owned(), modified: None });
    let file = Reading { reader, context, framing: recording.framing, resolve: None };
    let mut start = Vec::new();
    input.take(SNIFFED).read_to_end(&mut start)?;
    refuse_foreign(recording.source, form, &start)?;
    taping.file(door, file, &mut start.chain(input), visit)?;
    taping.refuse_unread()?;
    taping.end(door, visit)
}

/// Refuses lines of another client: their tape would look like a session in which nothing happened.
fn refuse_foreign(source: &'static dyn Source, form: &TapeForm, start: &[u8]) -> Result<()> {
    let known_lines = |source: &'static dyn Source, form: &TapeForm| {
        let file = FileContext { path: String::new(), modified: None };
        let mut reader = source.reader(form.lines_reader, &file, None);
        let lines = start.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(SNIFFED_LINES);
        let verdicts = lines.map(|line| reader.read(0, Scan::new(line).line(), &mut Vec::new()));
        verdicts.filter(|verdict| matches!(verdict, Verdict::Kept(_))).count()
    };
    if known_lines(source, form) > 0 {
        return Ok(());
    }
    for other in annals_sources::registry().iter().copied() {
        let other_form = other.recorder().map(Recorder::form).filter(|other| other.format != form.format);
        if let Some(other_form) = other_form
            && known_lines(other, other_form) > 0
        {
            return Err(Error::new(format!("no line of the input is {}", form.format))
                .hint(format!("use --format {}", other_form.format)));
        }
    }
    Ok(())
}

impl View<'_> {
    /// The tape of an archived session: all of its transcripts, in order.
    pub fn tape(
        &self,
        session: &SessionView,
        options: TapeOptions,
        visit: &mut Visit<'_>,
    ) -> Result<TapeEnd> {
        let source = by_name(&session.source)
            .ok_or_else(|| Error::new(format!("unknown source {:?}", session.source)))?;
        let recorder = recorder_of(source)?;
        if session.history_only {
            let id = &session.session_id;
            return Err(Error::new(format!("cannot export session {id} as a tape: it has no transcript"))
                .hint(format!("`annals show {id}` prints its prompts")));
        }
        let form = recorder.form();
        let mut taping = Taping::new(source, recorder, options);
        taping.only = Some(session.session_id.clone());
        for file in self.archive.transcript_sources(session.row)? {
            let known =
                file.reader == form.lines_reader || Some(file.reader.as_str()) == form.document_reader;
            if !known {
                continue;
            }
            let from = FromArchive { archive: self.archive, source, file: &file };
            let resolve: Option<&dyn Resolve> = if options.resolve { Some(&from) } else { None };
            let stored = self.archive.transcript_bytes(&file);
            let mut content: Box<dyn Read + '_> = match file.encoding {
                Encoding::Plain => Box::new(stored),
                Encoding::Zstd => Box::new(zstd::stream::read::Decoder::new(stored)?),
            };
            let context = Some(FileContext { path: file.path.clone(), modified: file.modified });
            let reading = Reading { reader: &file.reader, context, framing: file.framing, resolve };
            taping.file(self.door, reading, &mut content, visit)?;
        }
        taping.end(self.door, visit)
    }
}

/// Whether a session can be exported as a tape.
pub fn has_tape(session: &SessionView) -> bool {
    !session.history_only && by_name(&session.source).is_some_and(|source| source.recorder().is_some())
}

fn recorder_of(source: &'static dyn Source) -> Result<&'static dyn Recorder> {
    let label = source.manifest().label;
    source
        .recorder()
        .ok_or_else(|| Error::new(format!("cannot export {label} as tapes: its sessions change no files")))
}

/// One file, and how it is read.
struct Reading<'r> {
    reader: &'r str,
    context: Option<FileContext>,
    framing: Framing,
    resolve: Option<&'r dyn Resolve>,
}

/// A tape in progress, over all files of a session.
struct Taping {
    source: &'static dyn Source,
    recorder: &'static dyn Recorder,
    options: TapeOptions,
    session: String,
    /// The session to export; every session of the input if `None`.
    only: Option<String>,
    facts: Option<SessionFacts>,
    grades: CoverageGrades,
    /// What the files so far had.
    emitted: Emitted,
    traces: Traces,
    drifts: Vec<Drift>,
    drift_count: u64,
}

impl Taping {
    fn new(source: &'static dyn Source, recorder: &'static dyn Recorder, options: TapeOptions) -> Taping {
        Taping {
            source,
            recorder,
            options,
            session: String::new(),
            only: None,
            facts: None,
            grades: CoverageGrades::default(),
            emitted: Emitted::default(),
            traces: Traces::default(),
            drifts: Vec::new(),
            drift_count: 0,
        }
    }

    fn file(
        &mut self,
        door: &Door,
        file: Reading<'_>,
        input: &mut dyn Read,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let (source, recorder, form) = (self.source, self.recorder, self.recorder.form());
        let mut earlier = Some(std::mem::take(&mut self.emitted).next_file());
        let mut only = self.only.clone();
        let mut open = |context: &FileContext| {
            let mut maker = TapeMaker::new(door, source, recorder, file.reader, context, file.resolve);
            maker.emitted = earlier.take().unwrap_or_default();
            maker.only = only.take();
            maker
        };
        let mut maker = file.context.as_ref().map(&mut open);
        let mut waiting: Vec<(u64, u64, Vec<u8>)> = Vec::new();
        let nameless = FileContext { path: String::new(), modified: None };
        let mut number = 0;
        each_line(input, file.framing, &mut |offset, bytes, ending| {
            number += 1;
            if maker.is_none() {
                let named = recorder.name_of(bytes);
                if named.is_none() && waiting.len() < NAMELESS && bytes.len() < 1 << 20 {
                    waiting.push((number, offset, bytes.to_vec()));
                    return Ok(());
                }
                let path = named.unwrap_or_default();
                maker = Some(open(&FileContext { path, modified: None }));
            }
            let Some(maker) = maker.as_mut() else { return Ok(()) };
            for (number, offset, bytes) in std::mem::take(&mut waiting) {
                self.line(maker, form, number, (offset, &bytes, Ending::Line), visit)?;
            }
            self.line(maker, form, number, (offset, bytes, ending), visit)
        })?;
        let mut maker = maker.unwrap_or_else(|| open(&nameless));
        for (number, offset, bytes) in waiting {
            self.line(&mut maker, form, number, (offset, &bytes, Ending::Line), visit)?;
        }
        let (session, facts) = maker.facts();
        self.grades.merge(&maker.final_grades());
        self.emitted = maker.emitted;
        if self.session.is_empty() {
            self.session = session;
        }
        match &mut self.facts {
            Some(first) => first.fill_from(&facts),
            None => self.facts = Some(facts),
        }
        Ok(())
    }

    fn line(
        &mut self,
        maker: &mut TapeMaker<'_>,
        form: &TapeForm,
        number: u64,
        (offset, bytes, ending): (u64, &[u8], Ending),
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        maker.line = number;
        let drift = match ending {
            Ending::Line => {
                let (traces, TapeOptions { format, read_text, .. }) = (&mut self.traces, self.options);
                let mut emitted = 0;
                let drift = maker.read(offset, bytes, &mut |event: Event| {
                    emitted += 1;
                    match format {
                        TapeFormat::Tape => visit(event.line(form, read_text)),
                        TapeFormat::AgentTrace => {
                            traces.add(event);
                            Ok(())
                        }
                    }
                })?;
                maker.grades.lines += u64::from(drift.is_none() || emitted > 0);
                drift
            }
            Ending::CutOff => Some(maker.drift("the last line is truncated")),
            Ending::TooLong => Some(maker.drift("the line is too long")),
        };
        let Some(drift) = drift else { return Ok(()) };
        if self.options.strict {
            return Err(Error::new(format!("line {}: {}", drift.line, drift.what))
                .hint("without --strict, such lines are skipped with a warning"));
        }
        self.drift_count += 1;
        if self.drifts.len() < DRIFTS {
            self.drifts.push(drift);
        }
        Ok(())
    }

    /// Refuses an input that has lines, none of which can be read.
    fn refuse_unread(&self) -> Result<()> {
        match self.drifts.first() {
            Some(drift) if self.grades.lines == 0 => {
                let format = self.recorder.form().format;
                let Drift { line, what } = drift;
                Err(Error::new(format!("no line of the input is {format}: line {line}: {what}")))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn end(self, door: &Door, visit: &mut Visit<'_>) -> Result<TapeEnd> {
        let facts = self.facts.unwrap_or_default();
        let form = self.recorder.form();
        let mut first = None;
        match self.options.format {
            TapeFormat::Tape => first = Some(meta(door, self.recorder, &self.session, &facts, &self.grades)),
            TapeFormat::AgentTrace => {
                self.traces.emit(door, form, self.source.manifest().source, &facts, visit)?;
            }
        }
        Ok(TapeEnd { first, drifts: self.drifts, drift_count: self.drift_count })
    }
}

/// The first line: identifies the session and reports the coverage.
fn meta(
    door: &Door,
    recorder: &dyn Recorder,
    session: &str,
    facts: &SessionFacts,
    grades: &CoverageGrades,
) -> ShownJson {
    let mut meta = Map::new();
    meta.insert("t".into(), Value::from(moment(facts.started_at)));
    meta.insert("k".into(), Value::from("meta"));
    let form = recorder.form();
    let mut put = |name: &str, text: Option<&str>| {
        if let Some(text) = text {
            meta.insert(name.into(), json!(door.text(text)));
        }
    };
    put("model", Some(facts.models.first().map_or(recorder.provider(facts), String::as_str)));
    put("repo_head", facts.git_commit.as_deref());
    put("label", facts.name.as_deref().or(facts.title.as_deref()).or(facts.first_prompt.as_deref()));
    put("cwd", facts.cwd.as_deref());
    put("client_version", facts.client_version.as_deref());
    if let Some(parent) = &facts.parent {
        let kind = facts.parent_kind.map(annals_core::LinkKind::name);
        meta.insert("parent".into(), json!({"session_id": parent, "kind": kind}));
    }
    grades.write_fields(form.flag, &mut meta);
    meta.insert("source".into(), json!({"harness": form.harness, "session_id": session}));
    ShownJson::new(Value::Object(meta))
}

/// Outputs and snapshots that are archived outside the transcript.
struct FromArchive<'a> {
    archive: Archive<'a>,
    source: &'static dyn Source,
    file: &'a TranscriptFile,
}

impl Resolve for FromArchive<'_> {
    fn output(&self, record: &str) -> Result<Option<String>> {
        let mut contents = self.archive.contents();
        kept_apart(self.archive, &mut contents, self.source, record)
    }

    fn snapshot(&self, path: &str) -> Result<Option<String>> {
        let kept = self.archive.newest_content(self.file.instance, path)?;
        Ok(kept.and_then(|kept| String::from_utf8(kept.expose().to_vec()).ok()))
    }
}
