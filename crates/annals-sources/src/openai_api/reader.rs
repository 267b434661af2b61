//! Reads the traces of a session in order of arrival: messages, calls and usage, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::body::TraceBody;
use super::exchange::{ModelRequest, ModelResponse};
use super::facts::SessionNotes;
use super::references;
use super::references::References;
use super::steps::{CallOutcome, StepKind, TraceStep};
use super::trace::{Trace, time_in_id};
use super::usage::{UsageLedger, usage};
use crate::import::captures::{Captures, Header, header_verdict};
use crate::json::Line;
use crate::{Facts, Reader};
use annals_core::{
    Call, CallResult, ContentKey, Document, Item, Message, MessageKind, Span, Tally, Time, Verdict,
};

pub struct TraceReader {
    captures: Captures,
    /// The key of the current element.
    element: ContentKey,
    last_row: Option<Span>,
    session: Arc<str>,
    state: State,
}

#[derive(Default)]
struct State {
    noted: SessionNotes,
    /// Everything emitted, by its position in a chain of steps, by the provider's id, or by its response.
    seen: BTreeSet<ContentKey>,
    /// Contents in the order in which they were emitted, and the chain of steps that ends with each.
    emitted: Vec<(ContentKey, ContentKey)>,
    /// The chain of steps after each response.
    behind: BTreeMap<String, ContentKey>,
    /// The chain after the last element.
    last: Option<ContentKey>,
    /// Prompts with an id, and those without: a list repeats the prompts of requests.
    named: BTreeMap<ContentKey, u32>,
    unnamed: BTreeMap<ContentKey, u32>,
    /// Offsets of calls by id.
    calls: BTreeMap<String, u64>,
    /// Offsets of answers whose stream broke off, by response.
    unfinished: BTreeMap<String, u64>,
    ledger: UsageLedger,
}

/// What the steps of one body have in common.
struct Context<'c, 'b> {
    body: &'c TraceBody<'b>,
    at: Option<Time>,
    model: Option<Arc<str>>,
    /// The response they belong to, and the number of the choice.
    response: Option<(&'c str, usize)>,
    /// They are items of a list, not of a call.
    listed: bool,
}

impl TraceReader {
    pub fn new() -> TraceReader {
        let captures = Captures::default();
        TraceReader {
            captures,
            element: references::start(),
            last_row: None,
            session: "".into(),
            state: State::default(),
        }
    }

    fn trace(&mut self, header: &Header, element: &[u8], offset: u64, out: &mut Vec<Item>) -> Verdict {
        let Some(trace) = Trace::read(element, offset, &header.member) else {
            return Verdict::Unknown("not a trace".into());
        };
        self.element = ContentKey::of(&[element]);
        let session = header.fields.get("session").and_then(Value::as_str).unwrap_or_default();
        if self.session.is_empty() {
            self.session = session.into();
        }
        for body in [&trace.request, &trace.response].into_iter().flatten().filter_map(TraceBody::json) {
            super::drift::each_unknown(body, &mut |kind| out.push(Item::Drift(kind)));
        }
        let request = trace.request.as_ref().map(ModelRequest::read).unwrap_or_default();
        let answer = trace.response.as_ref().map(ModelResponse::read).unwrap_or_default();
        let id = answer.id.clone().or_else(|| trace.response_id.clone()).map(|id| references::plain_id(&id));
        let named = trace.model.as_deref().or(request.model.as_deref());
        let model: Option<Arc<str>> = answer.model.as_deref().or(named).map(Into::into);
        let at = trace.started_at.or(answer.at);
        let ended_at = answer.at.filter(|_| trace.ended_at.is_none()).or(trace.ended_at).or(at);
        self.state.noted.note(&trace, &answer, [at, ended_at], named);
        let length = element.len() as u64;
        self.refer(header, &trace, &request, &answer, Span { offset, length }, at, out);

        let base = self.base(&request, &answer, &trace);
        let mut line = base;
        if let Some(body) = &trace.request {
            let listed = trace.is_dump();
            let context = Context { body, at: at.filter(|_| !listed), model: None, response: None, listed };
            line = self.emit_new(&request.steps, &context, base, out);
        }
        self.last_row = None;
        if let Some(body) = &trace.response {
            let context = Context { body, at, model: None, response: None, listed: true };
            self.emit_new(&answer.instructions, &context, line, out);
            self.emit_new(&answer.listed, &Context { at: None, ..context }, line, out);
            let mut ends = Vec::new();
            for (number, choice) in answer.choices.iter().enumerate() {
                let response = id.as_deref().filter(|_| !answer.unfinished).map(|id| (id, number));
                let context = Context { body, at: ended_at, model: model.clone(), response, listed: false };
                ends.push(self.emit_new(choice, &context, line, out));
            }
            line = ends.first().copied().unwrap_or(line);
            self.note_unfinished(&answer, id.as_deref(), out);
            let context = Context { body, at: ended_at, model: None, response: None, listed: false };
            // Usage is on the last row of the answer.
            let last_row = self.last_row;
            self.emit_new(&answer.failures, &context, line, out);
            self.last_row = last_row.or(self.last_row);
        }
        if let Some(body) = &trace.error {
            let mut failures = Vec::new();
            match body.json() {
                Some(error) => super::steps::failure(error, &mut failures),
                None => super::steps::plain_failure(body.text(), &mut failures),
            }
            let context = Context { body, at: ended_at, model: None, response: None, listed: false };
            self.emit_new(&failures, &context, line, out);
        }
        if let Some(id) = &id {
            self.state.behind.insert(id.clone(), line);
        }
        self.state.last = Some(line);
        let span = self.last_row.unwrap_or(Span { offset, length });
        let at = ended_at.or(at);
        if let Some(tokens) = answer.usage.or(trace.usage) {
            let key = match &id {
                Some(id) => ContentKey::of(&[b"usage", id.as_bytes()]),
                None => ContentKey::of(&[b"usage", self.session.as_bytes(), self.element.hex().as_bytes()]),
            };
            let used = usage(self.session.clone(), span, at, key, model, (tokens, trace.cost));
            out.extend(self.state.ledger.count(used, answer.usage.is_some()).map(Item::Usage));
        }
        Verdict::Kept(trace.form.name().into())
    }

    /// Another file may have the complete answer; the incomplete one then becomes a notice.
    fn note_unfinished(&mut self, answer: &ModelResponse<'_>, id: Option<&str>, out: &mut Vec<Item>) {
        let Some(id) = id else { return };
        if answer.unfinished {
            self.state.unfinished.extend(self.last_row.map(|row| (id.to_owned(), row.offset)));
        } else if answer.choices.iter().any(|choice| !choice.is_empty())
            && let Some(offset) = self.state.unfinished.remove(id)
        {
            let (session, kind) = (self.session.clone(), MessageKind::Notice);
            out.push(Item::Amend { session, offset, kind });
        }
    }

    /// The chain of steps that a request continues.
    fn base(&self, request: &ModelRequest<'_>, answer: &ModelResponse<'_>, trace: &Trace<'_>) -> ContentKey {
        let previous = request.previous.as_ref().or(answer.previous.as_ref());
        if let Some(line) = previous.and_then(|id| self.state.behind.get(id)) {
            return *line;
        }
        let goes_on =
            request.conversation.is_some() || answer.conversation.is_some() || trace.request.is_none();
        match self.state.last.filter(|_| goes_on || previous.is_some()) {
            Some(last) => last,
            None => self.align(&request.steps),
        }
    }

    /// Requests repeat the conversation. If one leaves out the start, finds the longest part that was emitted before.
    fn align(&self, steps: &[TraceStep<'_>]) -> ContentKey {
        let contents: Vec<ContentKey> =
            steps.iter().filter(|step| references::counts(step)).map(|step| step.content).collect();
        let start = references::start();
        let known =
            contents.first().is_none_or(|first| self.state.seen.contains(&references::next(start, *first)));
        if known {
            return start;
        }
        let emitted = &self.state.emitted;
        let shared = |from: usize| {
            emitted[from..].iter().zip(&contents).take_while(|((old, _), new)| old == *new).count()
        };
        let best = (0..emitted.len()).map(|from| (shared(from), from)).max();
        match best {
            Some((length, from)) if length >= 2 => match from.checked_sub(1) {
                Some(before) => emitted[before].1,
                None => start,
            },
            _ => start,
        }
    }

    /// Emits new steps and returns the chain that ends with them.
    fn emit_new(
        &mut self,
        steps: &[TraceStep<'_>],
        context: &Context<'_, '_>,
        base: ContentKey,
        out: &mut Vec<Item>,
    ) -> ContentKey {
        let mut line = base;
        let mut message = None;
        for (number, step) in steps.iter().enumerate() {
            let counts = references::counts(step);
            // Steps outside of the chain are identified by their content.
            let place = match &step.kind {
                _ if counts => references::next(line, step.content),
                // The same notice may occur again.
                StepKind::Message { kind: MessageKind::Notice, .. } => {
                    step.content.then(self.element.hex().as_bytes())
                }
                StepKind::Message { .. } | StepKind::Call { .. } | StepKind::Result { .. } => step.content,
            };
            let named = step.id.as_deref().map(|id| ContentKey::of(&[b"item", id.as_bytes()]));
            let of_response = context.response.map(|(id, choice)| {
                ContentKey::of(&[b"response", id.as_bytes(), &choice.to_le_bytes(), &number.to_le_bytes()])
            });
            let keys = [Some(place), named, of_response];
            let mut old = keys.iter().flatten().any(|key| self.state.seen.contains(key));
            self.state.seen.extend(keys.into_iter().flatten());
            if counts {
                line = place;
            }
            old = old || self.is_listed_twice(step, named.is_some(), context.listed);
            if old {
                continue;
            }
            if counts {
                self.state.emitted.push((step.content, line));
            }
            let own = ContentKey::of(&[self.session.as_bytes(), place.hex().as_bytes()]);
            let key = of_response.or(named).unwrap_or(own);
            self.emit(step, context, key, &mut message, out);
        }
        line
    }

    /// Lists have ids for prompts that requests have without: the same text is then the same prompt.
    fn is_listed_twice(&mut self, step: &TraceStep<'_>, named: bool, listed: bool) -> bool {
        if !matches!(step.kind, StepKind::Message { kind: MessageKind::Prompt, .. }) {
            return false;
        }
        let state = &mut self.state;
        let (mine, other) = match named && listed {
            true => (&mut state.named, &mut state.unnamed),
            false => (&mut state.unnamed, &mut state.named),
        };
        match other.get_mut(&step.content).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                true
            }
            None => {
                *mine.entry(step.content).or_default() += 1;
                false
            }
        }
    }

    fn emit(
        &mut self,
        step: &TraceStep<'_>,
        context: &Context<'_, '_>,
        key: ContentKey,
        message: &mut Option<u64>,
        out: &mut Vec<Item>,
    ) {
        let span = context.body.span(step.bytes);
        let at = context.at.or_else(|| step.id.as_deref().filter(|_| context.listed).and_then(time_in_id));
        let (session, model) = (self.session.clone(), context.model.clone());
        match &step.kind {
            StepKind::Message { role, kind, line } => {
                if *kind == MessageKind::Prompt {
                    self.state.noted.note_prompt(line);
                }
                *message = Some(span.offset);
                self.last_row = Some(span);
                let (role, kind, tally, inherited) = (*role, *kind, Tally::of(*kind), false);
                out.push(Item::Message(Message {
                    session,
                    span,
                    role,
                    kind,
                    at,
                    key,
                    inherited,
                    model,
                    tally,
                }));
            }
            StepKind::Call { call_id, name, kind, title, within, ran } => {
                let message = message.filter(|_| *within);
                if message.is_none() {
                    self.last_row = Some(span);
                }
                self.state.calls.insert(call_id.clone(), span.offset);
                out.push(Item::Call(Call {
                    session: session.clone(),
                    span,
                    at,
                    key,
                    inherited: false,
                    call_id: call_id.clone(),
                    name: name.as_str().into(),
                    kind: *kind,
                    title: title.clone(),
                    parent: None,
                    message,
                    model,
                }));
                if let Some(ran) = ran {
                    out.push(result(session, span.offset, span, at, *ran));
                }
            }
            StepKind::Result { call_id, ran } => match self.state.calls.get(call_id) {
                Some(call) => out.push(result(session, *call, span, at, *ran)),
                None => {
                    let (role, kind) = (annals_core::Role::Tool, MessageKind::Result);
                    let (tally, inherited) = (Tally::Nothing, false);
                    out.push(Item::Message(Message {
                        session,
                        span,
                        role,
                        kind,
                        at,
                        key,
                        inherited,
                        model,
                        tally,
                    }));
                }
            },
        }
    }

    /// Records the names by which later traces find this session.
    #[allow(clippy::too_many_arguments, reason = "the parts of one trace, used once")]
    fn refer(
        &self,
        header: &Header,
        trace: &Trace<'_>,
        request: &ModelRequest<'_>,
        answer: &ModelResponse<'_>,
        span: Span,
        at: Option<Time>,
        out: &mut Vec<Item>,
    ) {
        let mut names = References::of(trace, request, answer).names(&self.session);
        if header.fields.get("several").is_some() {
            names.extend(trace.custom_id.as_deref().map(references::several));
        }
        names.extend(header.fields.get("element").and_then(Value::as_str).map(str::to_owned));
        for key in names {
            // One version of a name is enough: only its session matters.
            let content = ContentKey::of(&[key.as_bytes(), self.session.as_bytes()]);
            let session = Some(self.session.clone());
            out.push(Item::Document(Document { stream: "references", key, session, at, span, content }));
        }
    }
}

impl Reader for TraceReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        match self.captures.next(bytes) {
            None => header_verdict(),
            Some(header) => self.trace(&header, bytes, offset, out),
        }
    }

    fn save(&self) -> String {
        // Readers of captures get all of them again.
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        if self.session.is_empty() {
            return Vec::new();
        }
        let facts = self.state.noted.facts();
        vec![Facts { session: self.session.clone(), rank: 0, facts }]
    }
}

fn result(session: Arc<str>, call: u64, output: Span, at: Option<Time>, ran: CallOutcome) -> Item {
    Item::Result(CallResult {
        session,
        call,
        output: Some(output),
        detail: None,
        at,
        ok: ran.ok,
        exit_code: ran.exit_code,
        duration_ms: None,
        full: None,
    })
}
