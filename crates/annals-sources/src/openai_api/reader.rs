//! Reads the traces of a session in order of arrival: messages, calls and usage, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::body::TraceBody;
use super::exchange::{ModelRequest, ModelResponse};
use super::facts::Noted;
use super::references;
use super::references::References;
use super::steps::{Ran, TraceStep, What};
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
    /// The element at hand, by its bytes.
    element: ContentKey,
    last_row: Option<Span>,
    session: Arc<str>,
    state: State,
}

#[derive(Default)]
struct State {
    noted: Noted,
    /// All that was told, by its place in a line of steps, by the provider's id, or by its response.
    seen: BTreeSet<ContentKey>,
    /// Words in the order in which they were told, and the line of steps that ends with them.
    told: Vec<(ContentKey, ContentKey)>,
    /// Where the line of steps is behind each response.
    behind: BTreeMap<String, ContentKey>,
    /// Behind the last element.
    last: Option<ContentKey>,
    /// Prompts that came with an id, and those that came without: a list tells again what a request told.
    named: BTreeMap<ContentKey, u32>,
    unnamed: BTreeMap<ContentKey, u32>,
    /// Places of calls by their id.
    calls: BTreeMap<String, u64>,
    /// Where answers stand whose stream broke off, by their response.
    unfinished: BTreeMap<String, u64>,
    ledger: UsageLedger,
}

/// What the steps of one body have in common.
struct Context<'c, 'b> {
    body: &'c TraceBody<'b>,
    at: Option<Time>,
    model: Option<Arc<str>>,
    /// The response that they are of, and the number of the choice.
    response: Option<(&'c str, usize)>,
    /// They are items of a list, and not of a call.
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
            line = self.tell(&request.steps, &context, base, out);
        }
        self.last_row = None;
        if let Some(body) = &trace.response {
            let context = Context { body, at, model: None, response: None, listed: true };
            self.tell(&answer.instructions, &context, line, out);
            self.tell(&answer.listed, &Context { at: None, ..context }, line, out);
            let mut ends = Vec::new();
            for (number, choice) in answer.choices.iter().enumerate() {
                let response = id.as_deref().filter(|_| !answer.unfinished).map(|id| (id, number));
                let context = Context { body, at: ended_at, model: model.clone(), response, listed: false };
                ends.push(self.tell(choice, &context, line, out));
            }
            line = ends.first().copied().unwrap_or(line);
            self.note_unfinished(&answer, id.as_deref(), out);
            let context = Context { body, at: ended_at, model: None, response: None, listed: false };
            // What was used is told with the last row of the answer.
            let last_row = self.last_row;
            self.tell(&answer.failures, &context, line, out);
            self.last_row = last_row.or(self.last_row);
        }
        if let Some(body) = &trace.error {
            let mut failures = Vec::new();
            match body.json() {
                Some(error) => super::steps::failure(error, &mut failures),
                None => super::steps::plain_failure(body.text(), &mut failures),
            }
            let context = Context { body, at: ended_at, model: None, response: None, listed: false };
            self.tell(&failures, &context, line, out);
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
            let used = usage(self.session.clone(), span, at, key, model, tokens);
            out.extend(self.state.ledger.count(used, answer.usage.is_some(), trace.cost).map(Item::Usage));
        }
        Verdict::Kept(trace.form.name().into())
    }

    /// The end of an answer may come in another file than its start: the start is no answer then.
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

    /// Where the line of steps stands that a request goes on with.
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

    /// Requests repeat what was said. Some leave out its start: then the longest stretch that was told before counts.
    fn align(&self, steps: &[TraceStep<'_>]) -> ContentKey {
        let contents: Vec<ContentKey> =
            steps.iter().filter(|step| references::counts(step)).map(|step| step.content).collect();
        let start = references::start();
        let known =
            contents.first().is_none_or(|first| self.state.seen.contains(&references::next(start, *first)));
        if known {
            return start;
        }
        let told = &self.state.told;
        let shared = |from: usize| {
            told[from..].iter().zip(&contents).take_while(|((told, _), new)| told == *new).count()
        };
        let best = (0..told.len()).map(|from| (shared(from), from)).max();
        match best {
            Some((length, from)) if length >= 2 => match from.checked_sub(1) {
                Some(before) => told[before].1,
                None => start,
            },
            _ => start,
        }
    }

    /// Tells what was not told before; answers where the line of steps stands then.
    fn tell(
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
            // What is beside the line is known by its words alone.
            let place = match &step.what {
                _ if counts => references::next(line, step.content),
                // The same may happen again.
                What::Said { kind: MessageKind::Notice, .. } => {
                    step.content.then(self.element.hex().as_bytes())
                }
                What::Said { .. } | What::Called { .. } | What::Returned { .. } => step.content,
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
            old = old || self.told_otherwise(step, named.is_some(), context.listed);
            if old {
                continue;
            }
            if counts {
                self.state.told.push((step.content, line));
            }
            let own = ContentKey::of(&[self.session.as_bytes(), place.hex().as_bytes()]);
            let key = of_response.or(named).unwrap_or(own);
            self.emit(step, context, key, &mut message, out);
        }
        line
    }

    /// A list has ids for what requests told without: the same words then are the same prompt.
    fn told_otherwise(&mut self, step: &TraceStep<'_>, named: bool, listed: bool) -> bool {
        if !matches!(step.what, What::Said { kind: MessageKind::Prompt, .. }) {
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
        match &step.what {
            What::Said { role, kind, line } => {
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
            What::Called { call_id, name, kind, title, within, ran } => {
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
            What::Returned { call_id, ran } => match self.state.calls.get(call_id) {
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

    /// The names under which later traces may look for this session.
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
            // One version of a name is enough: it is the session that counts.
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
        // Readers of captures see all of them again.
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        if self.session.is_empty() {
            return Vec::new();
        }
        let mut facts = self.state.noted.facts();
        facts.cost_usd = self.state.ledger.reported_cost();
        vec![Facts { session: self.session.clone(), rank: 0, facts }]
    }
}

fn result(session: Arc<str>, call: u64, output: Span, at: Option<Time>, ran: Ran) -> Item {
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
