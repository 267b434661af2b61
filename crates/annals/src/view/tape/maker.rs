//! Makes the events of a tape from the lines of a transcript, in order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::event::{Edited, Event, Told};
use super::grades::CoverageGrades;
use crate::view::door::Door;
use annals_core::{
    Block, Call, CallKind, CallResult, FileRegion, FileWork, Item, MessageKind, Operation, Result, Role,
    SessionFacts, Shown, Span, Time, Verdict,
};
use annals_sources::json::Scan;
use annals_sources::{CallLines, FileContext, Reader, Recorder, Source};

/// Calls that are remembered until all is known of them.
const HELD: usize = 4096 + 64;
/// Their bytes; of older calls beyond that no work is told, and the grades say so.
const HELD_BYTES: usize = 64 << 20;
/// Results that came before their calls.
const EARLY: usize = 16;
const EARLY_BYTES: usize = 1 << 20;

/// Looks up what is kept apart from the transcript: whole outputs by `stream/key`, snapshots of files by their path.
pub trait Resolve {
    fn output(&self, record: &str) -> Result<Option<String>>;
    fn snapshot(&self, path: &str) -> Result<Option<String>>;
}

/// What a line should have been and was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The first line has number 1.
    pub line: u64,
    pub what: Shown,
}

type Visit<'s> = dyn FnMut(Event) -> Result<()> + 's;

pub struct TapeMaker<'a> {
    door: &'a Door,
    source: &'static dyn Source,
    recorder: &'static dyn Recorder,
    reader: Box<dyn Reader>,
    resolve: Option<&'a dyn Resolve>,
    held: VecDeque<Held>,
    held_bytes: usize,
    early: VecDeque<(u64, Vec<u8>)>,
    /// Snapshots of files that were not changed since, by the path that the client names.
    snapshots: HashMap<String, String>,
    last: Option<Time>,
    agent: Option<bool>,
    pub grades: CoverageGrades,
    pub line: u64,
}

/// A call, and what was told of it.
struct Held {
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

/// A line while its items are told.
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
            resolve,
            held: VecDeque::new(),
            held_bytes: 0,
            early: VecDeque::new(),
            snapshots: HashMap::new(),
            last: None,
            agent: None,
            grades: CoverageGrades::default(),
            line: 0,
        }
    }

    pub fn facts(&self) -> (String, SessionFacts) {
        let told = self.reader.facts().into_iter().next();
        told.map(|told| (told.session.to_string(), told.facts)).unwrap_or_default()
    }

    /// Tells what a line holds; answers what is wrong with it.
    pub fn read(&mut self, offset: u64, bytes: &[u8], see: &mut Visit<'_>) -> Result<Option<Drift>> {
        let mut items = Vec::new();
        let verdict = self.reader.read(offset, Scan::new(bytes).line(), &mut items);
        let line = Line { offset, bytes };
        let unmatched = items
            .iter()
            .any(|item| matches!(item, Item::Message(message) if message.kind == MessageKind::Result));
        if unmatched && bytes.len() <= EARLY_BYTES {
            self.early.truncate(EARLY - 1);
            self.early.push_front((offset, bytes.to_vec()));
        }
        // What nobody knows is no part of a tape.
        let unknown = matches!(verdict, Verdict::Unknown(_));
        for item in items.iter().filter(|item| !(unknown && matches!(item, Item::Message(_)))) {
            self.item(&line, item, &items, see)?;
        }
        let drift = match verdict {
            Verdict::Kept(_) => self.recorder.missing(bytes).map(|field| format!("{field} is missing")),
            Verdict::Unknown(kind) => Some(format!("unknown type {kind:?}")),
            Verdict::Malformed(why) => Some(why),
            Verdict::Skipped(_) | Verdict::Parts(_) => None,
        };
        Ok(drift.map(|what| self.drift(&what)))
    }

    pub fn drift(&mut self, what: &str) -> Drift {
        self.grades.drifted = true;
        Drift { line: self.line, what: self.door.text(what) }
    }

    fn item(&mut self, line: &Line<'_>, item: &Item, all: &[Item], see: &mut Visit<'_>) -> Result<()> {
        match item {
            // What was not sent is no part of the conversation.
            Item::Message(message) if message.kind == MessageKind::Unsent => Ok(()),
            Item::Message(message) => {
                let role = match message.role {
                    Role::Tool => Role::User,
                    Role::User | Role::Assistant | Role::System | Role::Developer => message.role,
                };
                let inherited = message.inherited;
                let bytes = line.within(message.span);
                self.said(&message.session, role, message.at, inherited, bytes, see)
            }
            Item::Extend { session, span, .. } => {
                let (at, bytes) = (self.last, line.within(*span));
                self.said(session, Role::Assistant, at, false, bytes, see)
            }
            Item::Call(call) => self.call(line, call, see),
            Item::Result(result) => self.result(line, result, all, see),
            Item::Document(document) if self.resolve.is_some() => {
                let told = line
                    .within(document.span)
                    .and_then(|bytes| self.source.record(document.stream, &document.key, bytes));
                let word = |name: &str| told.as_ref().and_then(|told| told.get(name)?.as_str());
                if let (Some(path), Some(kept)) = (word("path"), word("bytes_at")) {
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
            | Item::Landmark { .. }
            | Item::Link(_)
            | Item::Ended { .. }
            | Item::Forget { .. }
            | Item::Recount { .. }
            | Item::Typed(_)
            | Item::Spoken { .. }
            | Item::Tree(_)
            | Item::Drift(_)
            | Item::Passage(_) => Ok(()),
        }
    }

    fn said(
        &mut self,
        session: &Arc<str>,
        role: Role,
        at: Option<Time>,
        inherited: bool,
        bytes: Option<&[u8]>,
        see: &mut Visit<'_>,
    ) -> Result<()> {
        let blocks = bytes.map(|bytes| self.source.blocks(&[bytes])).unwrap_or_default();
        let texts = blocks.into_iter().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            Block::Event { name, text } if text.is_empty() => Some(name),
            Block::Event { text, .. } => Some(text),
            Block::Image { media_type, .. } => Some(format!("[image {media_type}]")),
            Block::Attachment { name } => Some(format!("[attachment {name}]")),
            // Thoughts are no part of a tape; calls and results are told for themselves.
            Block::Thinking(_)
            | Block::Context { .. }
            | Block::ToolCall { .. }
            | Block::ToolResult { .. } => None,
        });
        let content = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        if content.is_empty() {
            return Ok(());
        }
        let told = Told::Message { role: role.name(), content: self.door.text(&content) };
        self.tell(session, at, inherited, told, see)
    }

    fn call(&mut self, line: &Line<'_>, call: &Call, see: &mut Visit<'_>) -> Result<()> {
        let bytes = line.within(call.span).unwrap_or_default();
        let orphan = call.kind == CallKind::Orphan;
        if orphan {
            self.grades.orphans = true;
        } else {
            let told = Told::Call {
                tool: call.name.to_string(),
                call_id: self.door.text(&call.call_id),
                arguments: self.door.text(&self.recorder.arguments(bytes)),
            };
            self.tell(&call.session, call.at, call.inherited, told, see)?;
        }
        let folder = self.recorder.folder(line.bytes);
        let folder = folder.or_else(|| self.facts().1.cwd.filter(|_| needs_folder(call.kind)));
        // What was copied keeps its mark also when the answer came in another stretch.
        let held = Held {
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

    fn result(
        &mut self,
        line: &Line<'_>,
        result: &CallResult,
        all: &[Item],
        see: &mut Visit<'_>,
    ) -> Result<()> {
        let Some(at) = self.held.iter().rposition(|held| held.call == result.call) else { return Ok(()) };
        let Some(mut held) = self.held.remove(at) else { return Ok(()) };
        self.held_bytes -= held.bytes.len();
        let told = self.answer(line, result, all, &mut held, see);
        // Of an answered call the client's record may still come, and it has all that is needed.
        if held.answered && (held.edited || held.kind != CallKind::Edit) {
            held.bytes = Vec::new();
        }
        self.held_bytes += held.bytes.len();
        self.held.insert(at, held);
        told
    }

    fn answer(
        &mut self,
        line: &Line<'_>,
        result: &CallResult,
        all: &[Item],
        held: &mut Held,
        see: &mut Visit<'_>,
    ) -> Result<()> {
        let early =
            self.early.iter().map(|(offset, bytes)| Line { offset: *offset, bytes }).collect::<Vec<_>>();
        let find = |span: Span| {
            line.within(span).or_else(|| early.iter().find_map(|line| line.within(span))).map(<[u8]>::to_vec)
        };
        let (output, detail) = (result.output.and_then(find), result.detail.and_then(find));
        let lines = CallLines {
            call: &held.bytes,
            output: output.as_deref(),
            detail: detail.as_deref(),
            folder: held.folder.as_deref(),
        };
        // A call within a script has no output of its own: the record is all there is.
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
            let told = Told::Result {
                tool: held.name.to_string(),
                call_id: self.door.text(&held.call_id),
                exit: result.exit_code,
                ok: result.ok,
                stdout: self.door.text(&printed.stdout),
                stderr: self.door.text(&printed.stderr),
            };
            self.tell(&result.session, result.at, held.inherited, told, see)?;
        }
        if edits && !held.edited {
            held.edited = true;
            let done: Vec<FileWork> = work.iter().filter(|work| !work.is_read()).cloned().collect();
            self.grades.edited(!done.is_empty());
            for mut work in done {
                self.fill_in(&mut work)?;
                let model = held.model.as_deref().map(str::to_owned);
                let told = Told::Edit(Box::new(Edited::new(self.door, &held.call_id, model, &work)));
                self.tell(&result.session, result.at, held.inherited, told, see)?;
            }
        }
        if answers {
            self.looked(result, held, &work, see)?;
        }
        Ok(())
    }

    /// Reads of a call that has ended, and what its end says about what is known.
    fn looked(
        &mut self,
        result: &CallResult,
        held: &Held,
        work: &[FileWork],
        see: &mut Visit<'_>,
    ) -> Result<()> {
        let ok = result.ok == Some(true);
        let reads: Vec<&FileWork> = work.iter().filter(|work| ok && work.is_read()).collect();
        match held.kind {
            CallKind::Shell => self.grades.ran(!reads.is_empty()),
            CallKind::Read if ok => self.grades.read(!reads.is_empty()),
            CallKind::Edit if ok && !held.edited => self.grades.edited(false),
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
            let told = Told::Read {
                call_id: self.door.text(&held.call_id),
                file: self.door.text(&work.path),
                range,
                text: work.after.text.as_deref().map(|text| self.door.text(text)),
            };
            self.tell(&result.session, result.at, held.inherited, told, see)?;
        }
        Ok(())
    }

    /// What stood there before, from the client's copy of the file, if that is the first change since.
    fn fill_in(&mut self, work: &mut FileWork) -> Result<()> {
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

    fn tell(
        &mut self,
        session: &Arc<str>,
        at: Option<Time>,
        inherited: bool,
        told: Told,
        see: &mut Visit<'_>,
    ) -> Result<()> {
        // Old lines have no time of their own: they are not before the one above them.
        let at = at.or(self.last).or_else(|| self.facts().1.started_at);
        self.last = at;
        // All of a sub-agent's rows may be elsewhere too; only copies of another conversation are worth a mark.
        let inherited = inherited && !self.is_agent();
        see(Event { at, session: session.to_string(), inherited, told })
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

/// Patches and commands name paths from where they run.
fn needs_folder(kind: CallKind) -> bool {
    matches!(kind, CallKind::Edit | CallKind::Shell | CallKind::Read)
}
