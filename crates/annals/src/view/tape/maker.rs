//! Makes the events of a tape from the lines of a transcript, in order.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::event::{CodeEdit, Event, EventBody, sha256};
use super::grades::CoverageGrades;
use crate::view::door::Door;
use annals_core::{
    Block, Call, CallKind, CallResult, ContentKey, FileRegion, FileWork, Item, MessageKind, Operation,
    Result, Role, SessionFacts, Shown, Span, Time, Verdict,
};
use annals_sources::json::Scan;
use annals_sources::{CallLines, FileContext, Reader, Recorder, Source};

/// Calls kept in memory until their results arrive.
const HELD: usize = 4096 + 64;
/// Limit on their bytes. The work of older calls beyond it is not emitted, and the grades reflect that.
const HELD_BYTES: usize = 64 << 20;
/// Results that arrived before their calls.
const EARLY: usize = 16;
const EARLY_BYTES: usize = 1 << 20;

/// Looks up data stored outside the transcript: complete outputs by `stream/key`, snapshots of files by path.
pub trait Resolve {
    fn output(&self, record: &str) -> Result<Option<String>>;
    fn snapshot(&self, path: &str) -> Result<Option<String>>;
}

/// How a line deviates from the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Line number, from 1.
    pub line: u64,
    pub what: Shown,
}

type Visit<'s> = dyn FnMut(Event) -> Result<()> + 's;

/// Messages and calls that files of a session had. Clients copy whole conversations: what is in several files happened once.
#[derive(Debug, Default)]
pub struct Emitted {
    /// Those of files before.
    earlier: HashSet<ContentKey>,
    here: Vec<ContentKey>,
    /// Messages of the file that are copies.
    copies: HashSet<u64>,
}

impl Emitted {
    /// False for a row that a file before had.
    fn is_first(&mut self, key: ContentKey) -> bool {
        let first = !self.earlier.contains(&key);
        if first {
            self.here.push(key);
        }
        first
    }

    /// For the next file of the session.
    pub fn next_file(mut self) -> Emitted {
        self.earlier.extend(self.here.drain(..));
        Emitted { earlier: self.earlier, ..Emitted::default() }
    }
}

pub struct TapeMaker<'a> {
    door: &'a Door,
    source: &'static dyn Source,
    recorder: &'static dyn Recorder,
    reader: Box<dyn Reader>,
    /// What it reads is one document, whose messages are parts of it.
    is_document: bool,
    resolve: Option<&'a dyn Resolve>,
    held: VecDeque<PendingCall>,
    held_bytes: usize,
    early: VecDeque<(u64, Vec<u8>)>,
    /// Where results are whose calls have not been seen.
    unmatched: HashSet<u64>,
    /// Calls that were emitted, by content: a line that is repeated is no second call.
    seen: HashMap<ContentKey, u64>,
    /// Snapshots of files not changed since, by the path the client uses.
    snapshots: HashMap<String, String>,
    last: Option<Time>,
    agent: Option<bool>,
    pub emitted: Emitted,
    /// Emits the events of this session only; those of every session in the file if `None`.
    pub only: Option<String>,
    pub grades: CoverageGrades,
    pub line: u64,
}

/// A call, and which of its events have been emitted.
struct PendingCall {
    call: u64,
    call_id: String,
    name: Arc<str>,
    kind: CallKind,
    model: Option<Arc<str>>,
    bytes: Vec<u8>,
    folder: Option<String>,
    inherited: bool,
    answered: bool,
    edited: bool,
}

/// The line whose items are being processed.
struct Line<'l> {
    offset: u64,
    bytes: &'l [u8],
}

impl Line<'_> {
    fn within(&self, span: Span) -> Option<&[u8]> {
        let start = usize::try_from(span.offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(span.length).ok()?)?)
    }
}

impl<'a> TapeMaker<'a> {
    pub fn new(
        door: &'a Door,
        source: &'static dyn Source,
        recorder: &'static dyn Recorder,
        reader: &str,
        file: &FileContext,
        resolve: Option<&'a dyn Resolve>,
    ) -> TapeMaker<'a> {
        TapeMaker {
            door,
            source,
            recorder,
            reader: source.reader(reader, file, None),
            is_document: recorder.form().document_reader == Some(reader),
            resolve,
            held: VecDeque::new(),
            held_bytes: 0,
            early: VecDeque::new(),
            unmatched: HashSet::new(),
            seen: HashMap::new(),
            snapshots: HashMap::new(),
            last: None,
            agent: None,
            emitted: Emitted::default(),
            only: None,
            grades: CoverageGrades::default(),
            line: 0,
        }
    }

    pub fn facts(&self) -> (String, SessionFacts) {
        let mut all = self.reader.facts().into_iter();
        let wanted = match self.only.as_deref() {
            Some(only) => all.find(|facts| *facts.session == *only),
            None => all.next(),
        };
        wanted.map(|facts| (facts.session.to_string(), facts.facts)).unwrap_or_default()
    }

    /// Emits the events of a line and returns how it deviates from the format, if it does.
    pub fn read(&mut self, offset: u64, bytes: &[u8], visit: &mut Visit<'_>) -> Result<Option<Drift>> {
        let mut items = Vec::new();
        let verdict = self.reader.read(offset, Scan::new(bytes).line(), &mut items);
        let line = Line { offset, bytes };
        let unmatched = items
            .iter()
            .any(|item| matches!(item, Item::Message(message) if message.kind == MessageKind::Result));
        if unmatched {
            self.unmatched.insert(offset);
        }
        if unmatched && bytes.len() <= EARLY_BYTES {
            self.early.truncate(EARLY - 1);
            self.early.push_front((offset, bytes.to_vec()));
        }
        // Lines of unknown types are not part of a tape; a document is, whatever one of its messages is.
        let unknown = matches!(verdict, Verdict::Unknown(_)) && !self.is_document;
        for item in items.iter().filter(|item| !(unknown && matches!(item, Item::Message(_)))) {
            self.item(&line, item, &items, visit)?;
        }
        let drift = match verdict {
            Verdict::Kept(_) => self.recorder.missing(bytes).map(|field| format!("{field} is missing")),
            Verdict::Unknown(kind) => Some(format!("unknown type {kind:?}")),
            Verdict::Malformed(why) => Some(why),
            Verdict::Skipped(_) | Verdict::Parts(_) => None,
        };
        Ok(drift.map(|what| self.drift(&what)))
    }

    /// A file may contain several sessions: a sub-agent's lines are among those of its parent.
    fn wants(&self, session: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == session)
    }

    /// How complete the tape is, after the last line.
    pub fn final_grades(&self) -> CoverageGrades {
        let mut grades = self.grades.clone();
        grades.orphans |= !self.unmatched.is_empty();
        grades
    }

    pub fn drift(&mut self, what: &str) -> Drift {
        self.grades.drifted = true;
        Drift { line: self.line, what: self.door.text(what) }
    }

    fn item(&mut self, line: &Line<'_>, item: &Item, all: &[Item], visit: &mut Visit<'_>) -> Result<()> {
        match item {
            Item::Message(message) if !self.wants(&message.session) => Ok(()),
            Item::Extend { session, .. } if !self.wants(session) => Ok(()),
            Item::Call(call) if !self.wants(&call.session) => Ok(()),
            Item::Result(result) if !self.wants(&result.session) => Ok(()),
            // Unsent messages are not part of the conversation.
            Item::Message(message) if message.kind == MessageKind::Unsent => Ok(()),
            Item::Message(message) if !self.emitted.is_first(message.key) => {
                self.emitted.copies.insert(message.span.offset);
                Ok(())
            }
            Item::Extend { message, .. } if self.emitted.copies.contains(message) => Ok(()),
            Item::Message(message) => {
                let role = match message.role {
                    Role::Tool => Role::User,
                    Role::User | Role::Assistant | Role::System | Role::Developer => message.role,
                };
                let inherited = message.inherited;
                let bytes = line.within(message.span);
                self.emit_message(&message.session, role, message.at, inherited, bytes, visit)
            }
            Item::Extend { session, span, .. } => {
                let (at, bytes) = (self.last, line.within(*span));
                self.emit_message(session, Role::Assistant, at, false, bytes, visit)
            }
            // Without its call, a result is not reported either.
            Item::Call(call) if !self.emitted.is_first(call.key) => Ok(()),
            Item::Call(call) => self.emit_call(line, call, visit),
            Item::Result(result) => self.emit_result(line, result, all, visit),
            Item::Document(document) if self.resolve.is_some() => {
                let record = line
                    .within(document.span)
                    .and_then(|bytes| self.source.record(document.stream, &document.key, bytes));
                let field = |name: &str| record.as_ref().and_then(|record| record.get(name)?.as_str());
                if let (Some(path), Some(kept)) = (field("path"), field("bytes_at")) {
                    self.snapshots.insert(path.to_owned(), kept.to_owned());
                }
                Ok(())
            }
            Item::Document(_)
            | Item::Touch(_)
            | Item::Amend { .. }
            | Item::Rekey { .. }
            | Item::Usage(_)
            | Item::Summary(_)
            | Item::Landmark(_)
            | Item::Link(_)
            | Item::Ended { .. }
            | Item::Forget { .. }
            | Item::Recount { .. }
            | Item::Typed(_)
            | Item::Spoken { .. }
            | Item::Tree(_)
            | Item::Project(_)
            | Item::Drift(_)
            | Item::Passage(_) => Ok(()),
        }
    }

    fn emit_message(
        &mut self,
        session: &Arc<str>,
        role: Role,
        at: Option<Time>,
        inherited: bool,
        bytes: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let blocks = bytes.map(|bytes| self.source.blocks(&[bytes])).unwrap_or_default();
        let texts = blocks.into_iter().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            Block::Event { name, text } if text.is_empty() => Some(name),
            Block::Event { text, .. } => Some(text),
            Block::Image { media_type, .. } => Some(format!("[image {media_type}]")),
            Block::Attachment { name } => Some(format!("[attachment {name}]")),
            // Thinking is not part of a tape; calls and results have their own events.
            Block::Thinking(_)
            | Block::Context { .. }
            | Block::ToolCall { .. }
            | Block::ToolResult { .. } => None,
        });
        let content = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        if content.is_empty() {
            return Ok(());
        }
        let body = EventBody::Message { role: role.name(), content: self.door.text(&content) };
        self.emit(session, at, inherited, body, visit)
    }

    fn emit_call(&mut self, line: &Line<'_>, call: &Call, visit: &mut Visit<'_>) -> Result<()> {
        let bytes = line.within(call.span).unwrap_or_default();
        let content = ContentKey::of(&[call.call_id.as_bytes(), call.name.as_bytes(), bytes]);
        if let Some(first) = self.seen.insert(content, call.span.offset) {
            // Its result is reported for the repetition.
            if let Some(held) = self.held.iter_mut().rfind(|held| held.call == first) {
                held.call = call.span.offset;
            }
            return Ok(());
        }
        let orphan = call.kind == CallKind::Orphan;
        if orphan {
            self.grades.orphans = true;
        } else {
            let body = EventBody::Call {
                tool: call.name.to_string(),
                call_id: self.door.text(&call.call_id),
                arguments: self.door.text(&self.recorder.arguments(bytes)),
            };
            self.emit(&call.session, call.at, call.inherited, body, visit)?;
        }
        let folder = self.recorder.folder(line.bytes);
        let folder = folder.or_else(|| self.facts().1.cwd.filter(|_| needs_folder(call.kind)));
        // A copied call stays inherited even if its result is in another part of the file.
        let held = PendingCall {
            call: call.span.offset,
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            kind: call.kind,
            model: call.model.clone(),
            bytes: bytes.to_vec(),
            folder,
            inherited: call.inherited,
            answered: false,
            edited: false,
        };
        self.held_bytes += held.bytes.len();
        self.held.push_back(held);
        while self.held.len() > HELD {
            let gone = self.held.pop_front();
            self.held_bytes -= gone.map_or(0, |gone| gone.bytes.len());
        }
        let mut oldest = 0;
        while self.held_bytes > HELD_BYTES && oldest < self.held.len() {
            self.held_bytes -= std::mem::take(&mut self.held[oldest].bytes).len();
            oldest += 1;
        }
        Ok(())
    }

    fn emit_result(
        &mut self,
        line: &Line<'_>,
        result: &CallResult,
        all: &[Item],
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let Some(at) = self.held.iter().rposition(|held| held.call == result.call) else { return Ok(()) };
        let Some(mut held) = self.held.remove(at) else { return Ok(()) };
        self.held_bytes -= held.bytes.len();
        let emitted = self.emit_answer(line, result, all, &mut held, visit);
        // The client's record of an answered call may still follow, and it is sufficient.
        if held.answered && (held.edited || held.kind != CallKind::Edit) {
            held.bytes = Vec::new();
        }
        self.held_bytes += held.bytes.len();
        self.held.insert(at, held);
        emitted
    }

    fn emit_answer(
        &mut self,
        line: &Line<'_>,
        result: &CallResult,
        all: &[Item],
        held: &mut PendingCall,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let early =
            self.early.iter().map(|(offset, bytes)| Line { offset: *offset, bytes }).collect::<Vec<_>>();
        let find = |span: Span| {
            line.within(span).or_else(|| early.iter().find_map(|line| line.within(span))).map(<[u8]>::to_vec)
        };
        let (output, detail) = (result.output.and_then(find), result.detail.and_then(find));
        for span in result.output.iter().chain(&result.detail) {
            for line in early.iter().filter(|line| line.within(*span).is_some()) {
                self.unmatched.remove(&line.offset);
            }
        }
        let lines = CallLines {
            call: &held.bytes,
            output: output.as_deref(),
            detail: detail.as_deref(),
            folder: held.folder.as_deref(),
        };
        // A call made by a script has no separate output, only its record.
        let own_record = result.detail.is_some_and(|span| span.offset == held.call);
        let answers = !held.answered
            && (result.output.is_some() || result.detail.is_none() || own_record && detail.is_some());
        let edits = all.iter().any(|item| {
            matches!(item, Item::Touch(touch) if touch.call == held.call && touch.operation != Operation::Read)
        });
        let work = if answers || edits { self.recorder.work(&lines) } else { Vec::new() };
        if answers {
            held.answered = true;
            let mut printed = self.recorder.printed(&lines);
            if let (Some(resolve), Some(full)) = (self.resolve, &result.full)
                && let Some(whole) = resolve.output(full)?
            {
                printed.stdout = whole;
            }
            let body = EventBody::Result {
                tool: held.name.to_string(),
                call_id: self.door.text(&held.call_id),
                exit: result.exit_code,
                ok: result.ok,
                stdout: self.door.text(&printed.stdout),
                stderr: self.door.text(&printed.stderr),
            };
            self.emit(&result.session, result.at, held.inherited, body, visit)?;
        }
        if edits && !held.edited {
            held.edited = true;
            let done: Vec<FileWork> = work.iter().filter(|work| !work.is_read()).cloned().collect();
            self.grades.record_edit(!done.is_empty());
            for mut work in done {
                self.add_previous_text(&mut work)?;
                let model = held.model.as_deref().map(str::to_owned);
                let body = EventBody::Edit(Box::new(CodeEdit::new(self.door, &held.call_id, model, &work)));
                self.emit(&result.session, result.at, held.inherited, body, visit)?;
            }
        }
        if answers {
            self.emit_reads(result, held, &work, visit)?;
        }
        Ok(())
    }

    /// Emits the reads of a finished call and records its coverage.
    fn emit_reads(
        &mut self,
        result: &CallResult,
        held: &PendingCall,
        work: &[FileWork],
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let ok = result.ok == Some(true);
        let reads: Vec<&FileWork> = work.iter().filter(|work| ok && work.is_read()).collect();
        match held.kind {
            CallKind::Shell => self.grades.record_command(!reads.is_empty()),
            CallKind::Read if ok => self.grades.record_read(!reads.is_empty()),
            CallKind::Edit if ok && !held.edited => self.grades.record_edit(false),
            CallKind::Read
            | CallKind::Edit
            | CallKind::Function
            | CallKind::Search
            | CallKind::Web
            | CallKind::Mcp
            | CallKind::Agent
            | CallKind::Script
            | CallKind::Orphan => {}
        }
        for work in reads {
            let Some(range) = work.after.range else { continue };
            let body = EventBody::Read {
                call_id: self.door.text(&held.call_id),
                file: self.door.text(&work.path),
                range,
                text: work.after.text.as_deref().map(|text| self.door.text(text)),
                hash: work.after.text.as_deref().map(sha256),
            };
            self.emit(&result.session, result.at, held.inherited, body, visit)?;
        }
        Ok(())
    }

    /// Adds the previous text from the client's snapshot of the file, if this is the first change since.
    fn add_previous_text(&mut self, work: &mut FileWork) -> Result<()> {
        let Some(resolve) = self.resolve else { return Ok(()) };
        let kept = self.snapshots.iter().find(|(path, _)| {
            **path == work.path || !path.starts_with('/') && work.path.ends_with(&format!("/{path}"))
        });
        let Some(path) = kept.map(|(path, _)| path.clone()) else { return Ok(()) };
        let Some(kept) = self.snapshots.remove(&path) else { return Ok(()) };
        let known = work.before.range.is_some() || work.operation == Operation::Create;
        let Some(text) = resolve.snapshot(&kept)?.filter(|_| !known) else { return Ok(()) };
        match work.before.text.as_deref() {
            None if work.after.range.is_some_and(|range| range.start == 1) => {
                work.before = FileRegion::lines(1, text);
            }
            Some(old) if text.matches(old).count() == 1 => {
                let start = text.find(old).map(|at| text[..at].matches('\n').count());
                let start = start.and_then(|lines| u32::try_from(lines + 1).ok());
                let old = old.to_owned();
                work.before = start.map_or_else(
                    || FileRegion::text(old.clone()),
                    |start| FileRegion::lines(start, old.clone()),
                );
            }
            None | Some(_) => {}
        }
        Ok(())
    }

    fn emit(
        &mut self,
        session: &Arc<str>,
        at: Option<Time>,
        inherited: bool,
        body: EventBody,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        // Old lines have no timestamp: use that of the line before.
        let at = at.or(self.last).or_else(|| self.facts().1.started_at);
        self.last = at;
        // All rows of a sub-agent may be copies; only copies from another conversation are marked.
        let inherited = inherited && !self.is_agent();
        visit(Event { at, session: session.to_string(), inherited, body })
    }

    fn is_agent(&mut self) -> bool {
        if let Some(known) = self.agent {
            return known;
        }
        let known = self.facts().1.parent_kind == Some(annals_core::LinkKind::SubAgent);
        self.agent = Some(known);
        known
    }
}

/// Patches and commands use paths relative to their working directory.
fn needs_folder(kind: CallKind) -> bool {
    matches!(kind, CallKind::Edit | CallKind::Shell | CallKind::Read)
}
