//! Reads the traces of one session in the order of their arrival: what was said, called and used, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::super::captures::{Captures, Header, header_verdict};
use super::super::{Facts, Reader};
use super::body::Body;
use super::exchange::{Answer, Asked, tokens};
use super::references::{self, References};
use super::steps::{Ran, Step, What};
use super::trace::{Trace, time_in_id};
use crate::model::{
    Call, CallResult, Document, Item, Key, Message, MessageKind, SessionFacts, Span, Tally, Time, Usage,
    Verdict,
};

pub struct TraceReader {
    captures: Captures,
    /// The element at hand, by its bytes.
    element: Key,
    last_row: Option<u64>,
    session: Arc<str>,
    state: State,
}

#[derive(Default)]
struct State {
    facts: SessionFacts,
    /// All that was told, by its place in a line of steps, by the provider's id, or by its response.
    seen: BTreeSet<Key>,
    /// Words in the order in which they were told, and the line of steps that ends with them.
    told: Vec<(Key, Key)>,
    /// Where the line of steps stands behind each response.
    behind: BTreeMap<String, Key>,
    /// Behind the last element.
    last: Option<Key>,
    /// Prompts that came with an id, and those that came without: a list tells again what a request told.
    named: BTreeMap<Key, u32>,
    unnamed: BTreeMap<Key, u32>,
    /// Places of calls by their id.
    calls: BTreeMap<String, u64>,
    counted: BTreeSet<Key>,
    /// The model that was asked for, where no answer names one.
    asked_for: Option<String>,
    reported_cost: f64,
    /// Responses whose log tells no cost.
    without_cost: u64,
}

/// What the steps of one body have in common.
struct Context<'c, 'b> {
    body: &'c Body<'b>,
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
        self.element = Key::of(&[element]);
        let session = header.fields.get("session").and_then(Value::as_str).unwrap_or_default();
        if self.session.is_empty() {
            self.session = session.into();
        }
        let asked = trace.request.as_ref().map(Asked::read).unwrap_or_default();
        let answer = trace.response.as_ref().map(Answer::read).unwrap_or_default();
        let id = answer.id.clone().or_else(|| trace.response_id.clone()).map(|id| references::plain_id(&id));
        let named = trace.model.as_deref().or(asked.model.as_deref());
        let model: Option<Arc<str>> = answer.model.as_deref().or(named).map(Into::into);
        let at = trace.started_at.or(answer.at);
        let ended_at = answer.at.filter(|_| trace.ended_at.is_none()).or(trace.ended_at).or(at);
        self.note(&trace, &answer, at, ended_at);
        self.state.asked_for = self.state.asked_for.take().or_else(|| named.map(str::to_owned));
        let length = element.len() as u64;
        self.refer(header, &trace, &asked, &answer, Span { offset, length }, at, out);

        let base = self.base(&asked, &answer, &trace);
        let mut line = base;
        if let Some(body) = &trace.request {
            let listed = trace.is_dump();
            let context = Context { body, at: at.filter(|_| !listed), model: None, response: None, listed };
            line = self.tell(&asked.steps, &context, base, out);
        }
        self.last_row = None;
        if let Some(body) = &trace.response {
            let context = Context { body, at, model: None, response: None, listed: true };
            self.tell(&answer.instructions, &context, line, out);
            self.tell(&answer.listed, &Context { at: None, ..context }, line, out);
            let mut ends = Vec::new();
            for (number, choice) in answer.choices.iter().enumerate() {
                let response = id.as_deref().map(|id| (id, number));
                let context = Context { body, at: ended_at, model: model.clone(), response, listed: false };
                ends.push(self.tell(choice, &context, line, out));
            }
            line = ends.first().copied().unwrap_or(line);
            let context = Context { body, at: ended_at, model: None, response: None, listed: false };
            self.tell(&answer.failures, &context, line, out);
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
        // What was used is told with the last row of the answer.
        let place = self.last_row.unwrap_or(offset);
        let at = ended_at.or(at);
        self.used(&trace, &answer, id.as_deref(), Span { offset: place, length }, at, model, out);
        Verdict::Kept(trace.form.name().into())
    }

    /// Where the line of steps stands that a request goes on with.
    fn base(&self, asked: &Asked<'_>, answer: &Answer<'_>, trace: &Trace<'_>) -> Key {
        let previous = asked.previous.as_ref().or(answer.previous.as_ref());
        if let Some(line) = previous.and_then(|id| self.state.behind.get(id)) {
            return *line;
        }
        let goes_on =
            asked.conversation.is_some() || answer.conversation.is_some() || trace.request.is_none();
        match self.state.last.filter(|_| goes_on || previous.is_some()) {
            Some(last) => last,
            None => self.align(&asked.steps),
        }
    }

    /// Requests repeat what was said. Some leave out its start: then the longest stretch that was told before counts.
    fn align(&self, steps: &[Step<'_>]) -> Key {
        let contents: Vec<Key> =
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
    fn tell(&mut self, steps: &[Step<'_>], context: &Context<'_, '_>, base: Key, out: &mut Vec<Item>) -> Key {
        let mut line = base;
        let mut message = None;
        for (number, step) in steps.iter().enumerate() {
            let counts = references::counts(step);
            // What stands beside the line is known by its words alone.
            let place = match &step.what {
                _ if counts => references::next(line, step.content),
                // The same may happen again.
                What::Said { kind: MessageKind::Notice, .. } => {
                    step.content.then(self.element.hex().as_bytes())
                }
                What::Said { .. } | What::Called { .. } | What::Returned { .. } => step.content,
            };
            let named = step.id.as_deref().map(|id| Key::of(&[b"item", id.as_bytes()]));
            let of_response = context.response.map(|(id, choice)| {
                Key::of(&[b"response", id.as_bytes(), &choice.to_le_bytes(), &number.to_le_bytes()])
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
            let own = Key::of(&[self.session.as_bytes(), place.hex().as_bytes()]);
            let key = of_response.or(named).unwrap_or(own);
            self.emit(step, context, key, &mut message, out);
        }
        line
    }

    /// A list has ids for what requests told without: the same words then are the same prompt.
    fn told_otherwise(&mut self, step: &Step<'_>, named: bool, listed: bool) -> bool {
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
        step: &Step<'_>,
        context: &Context<'_, '_>,
        key: Key,
        message: &mut Option<u64>,
        out: &mut Vec<Item>,
    ) {
        let span = context.body.span(step.bytes);
        let at = context.at.or_else(|| step.id.as_deref().filter(|_| context.listed).and_then(time_in_id));
        let (session, model) = (self.session.clone(), context.model.clone());
        match &step.what {
            What::Said { role, kind, line } => {
                if *kind == MessageKind::Prompt && self.state.facts.first_prompt.is_none() {
                    self.state.facts.first_prompt = Some(line.clone()).filter(|line| !line.is_empty());
                }
                *message = Some(span.offset);
                self.last_row = *message;
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
                self.last_row = message.or(Some(span.offset));
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
                    let (role, kind) = (crate::model::Role::Tool, MessageKind::Result);
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

    /// Tokens of a response, once however many logs tell of it.
    #[allow(clippy::too_many_arguments, reason = "the parts of one response, used once")]
    fn used(
        &mut self,
        trace: &Trace<'_>,
        answer: &Answer<'_>,
        id: Option<&str>,
        span: Span,
        at: Option<Time>,
        model: Option<Arc<str>>,
        out: &mut Vec<Item>,
    ) {
        let Some(usage) = answer.usage.or(trace.usage) else { return };
        let key = match id {
            Some(id) => Key::of(&[b"usage", id.as_bytes()]),
            None => Key::of(&[b"usage", self.session.as_bytes(), self.element.hex().as_bytes()]),
        };
        let [input, output, cache_read, cache_write, reasoning] = tokens(usage);
        let first = self.state.counted.insert(key);
        match trace.cost {
            Some(cost) if first => self.state.reported_cost += cost,
            None if first => self.state.without_cost += 1,
            // Another log tells what the first did not.
            Some(cost) if self.state.without_cost > 0 && self.state.counted.insert(key.then(b"cost")) => {
                self.state.without_cost -= 1;
                self.state.reported_cost += cost;
            }
            _ => {}
        }
        if first && trace.cost.is_some() {
            self.state.counted.insert(key.then(b"cost"));
        }
        out.push(Item::Usage(Usage {
            session: self.session.clone(),
            span,
            at,
            key,
            inherited: false,
            model,
            again: false,
            input,
            output,
            cache_read,
            cache_write,
            cache_write_hour: 0,
            reasoning,
        }));
    }

    /// The names under which later traces may look for this session.
    #[allow(clippy::too_many_arguments, reason = "the parts of one trace, used once")]
    fn refer(
        &self,
        header: &Header,
        trace: &Trace<'_>,
        asked: &Asked<'_>,
        answer: &Answer<'_>,
        span: Span,
        at: Option<Time>,
        out: &mut Vec<Item>,
    ) {
        let mut names = References::of(trace, asked, answer).names(&self.session);
        if header.fields.get("several").is_some() {
            names.extend(trace.custom_id.as_deref().map(references::several));
        }
        names.extend(header.fields.get("element").and_then(Value::as_str).map(str::to_owned));
        for key in names {
            // One version of a name is enough: it is the session that counts.
            let content = Key::of(&[key.as_bytes(), self.session.as_bytes()]);
            let session = Some(self.session.clone());
            out.push(Item::Document(Document { stream: "references", key, session, at, span, content }));
        }
    }

    fn note(&mut self, trace: &Trace<'_>, answer: &Answer<'_>, at: Option<Time>, ended_at: Option<Time>) {
        let facts = &mut self.state.facts;
        facts.started_at = [facts.started_at, at, ended_at].into_iter().flatten().min();
        facts.last_at = facts.last_at.max(at).max(ended_at);
        let model = answer.model.as_deref();
        if let Some(model) = model.filter(|model| !facts.models.iter().any(|known| known == model)) {
            facts.models.push(model.to_owned());
        }
        let form = trace.form.name();
        facts.entrypoint.get_or_insert_with(|| form.to_owned());
        gather(facts, "forms", form);
        for name in [&answer.conversation, &trace.of] {
            if let Some(conversation) = name.as_deref().filter(|id| id.starts_with("conv_")) {
                facts.native.insert("conversation_id".into(), Value::from(conversation));
            }
        }
        if let Some(custom_id) = &trace.custom_id {
            facts.native.insert("custom_id".into(), Value::from(custom_id.as_str()));
        }
        if let Some(tier) = &answer.service_tier {
            gather(facts, "service_tiers", tier);
        }
        if let Some(metadata) = answer.metadata.filter(|metadata| metadata.bytes().len() < 2_000) {
            facts.native.insert("metadata".into(), metadata.value());
        }
        facts.native.extend(trace.native.clone());
    }
}

impl Reader for TraceReader {
    fn read(&mut self, offset: u64, bytes: &[u8], out: &mut Vec<Item>) -> Verdict {
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
        let mut facts = self.state.facts.clone();
        let told = !self.state.counted.is_empty() && self.state.without_cost == 0;
        if facts.models.is_empty() {
            facts.models.extend(self.state.asked_for.clone());
        }
        facts.cost_usd = Some(self.state.reported_cost).filter(|_| told);
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

fn gather(facts: &mut SessionFacts, name: &str, value: &str) {
    let list = facts.native.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|known| known == value)) {
        list.push(Value::from(value));
    }
}
