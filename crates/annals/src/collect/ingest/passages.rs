//! Turns messages, calls, outputs, paths and library items into passages of the text index.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::LazyLock;

use serde_json::Value;

use annals_core::{
    Block, Call, CallKind, CallResult, ContentKey, Document, FILE_MARK, Family, Item, LONGEST_TEXT,
    MODEL_MARK, Message, MessageKind, Operation, Passage, PassageKind, Role, SECRET_MARK, Span, TOOL_MARK,
    TermSet, Touch, TypedPrompt, each_embedded_text, each_gram_term, each_line_term, each_sampled_line_term,
    each_text, line_fingerprint,
};
use annals_redact::Redactor;
use annals_sources::Source;
use annals_sources::json::Line;

/// Recent outputs to compare repetitions with; calls may run in parallel.
const REMEMBERED: usize = 4;

/// Letters of a prompt that are compared with the client's prompt history, and more.
const TYPED: usize = 64 << 10;

pub struct Passages {
    source: &'static dyn Source,
    words: TermSet,
    thoughts: TermSet,
    /// Recent outputs by the offset of their call.
    outputs: VecDeque<(u64, String)>,
    /// The client keeps a prompt history, with which prompts are compared.
    has_history: bool,
    spoken: Vec<Item>,
}

impl Passages {
    pub fn new(source: &'static dyn Source) -> Passages {
        let (words, thoughts) = (TermSet::default(), TermSet::default());
        let has_history = source.manifest().stream("history").is_some();
        Passages { source, words, thoughts, outputs: VecDeque::new(), has_history, spoken: Vec::new() }
    }

    /// Adds the passages of the items from index `from` on, which all came from this line.
    pub fn gather(&mut self, offset: u64, line: Line<'_>, items: &mut Vec<Item>, from: usize) {
        let mut found = Vec::new();
        // Results that are indexed with their call.
        let outputs = items.iter().skip(from).filter_map(|item| match item {
            Item::Result(result) => result.output.map(|span| span.offset),
            _ => None,
        });
        let mut outputs: Vec<u64> = outputs.collect();
        outputs.sort_unstable();
        for item in items.iter().skip(from) {
            let within = |span: Span| line.part(span.offset.checked_sub(offset)?, span.length);
            match item {
                Item::Message(message)
                    if message.kind == MessageKind::Result
                        && outputs.binary_search(&message.span.offset).is_ok() => {}
                Item::Message(message) => self.message(message, within(message.span), &mut found),
                Item::Extend { session, message, span } => {
                    if let Some(line) = within(*span) {
                        let spoken = SpokenLine::new(session, *message, PassageKind::Assistant);
                        self.add_spoken(&spoken, line, &mut found);
                    }
                }
                Item::Call(call) => self.call(call, within(call.span), &mut found),
                // If it has both, the output is shown.
                Item::Result(result) => {
                    if let Some(span) = result.output.or(result.detail) {
                        let work = items.iter().skip(from).find_map(|item| match item {
                            Item::Touch(touch) if touch.call == result.call => Some(touch.operation),
                            _ => None,
                        });
                        let detail = result.detail.and_then(within);
                        self.output(result, within(span), work.map(|work| (work, detail)), &mut found);
                    }
                }
                // Injected text turns out to be typed by the user; this line has the same text.
                Item::Amend { session, offset, kind: MessageKind::Prompt } => {
                    let spoken =
                        SpokenLine { typed: true, ..SpokenLine::new(session, *offset, PassageKind::User) };
                    self.add_spoken(&spoken, line, &mut found);
                }
                Item::Touch(touch) => self.touch(touch, &mut found),
                Item::Document(document) => self.record(document, within(document.span), &mut found),
                Item::Typed(typed) => {
                    if let Some(line) = within(typed.span) {
                        self.typed(typed, line, &mut found);
                    }
                }
                Item::Amend { .. }
                | Item::Rekey { .. }
                | Item::Usage(_)
                | Item::Summary(_)
                | Item::Landmark(_)
                | Item::Link(_)
                | Item::Ended { .. }
                | Item::Forget { .. }
                | Item::Recount { .. }
                | Item::Spoken { .. }
                | Item::Tree(_)
                | Item::Project(_)
                | Item::Drift(_)
                | Item::Passage(_) => {}
            }
        }
        items.extend(found.into_iter().map(Item::Passage));
        items.append(&mut self.spoken);
    }

    fn message(&mut self, message: &Message, line: Option<Line<'_>>, found: &mut Vec<Passage>) {
        let kind = match (message.kind, message.role) {
            // Text injected by the client is in the library, or is not anyone's words.
            (MessageKind::Injected, _) => return,
            (MessageKind::Thinking, _) => PassageKind::Thinking,
            // The assistant wrote it, whoever the row says.
            (MessageKind::Summary, _) => PassageKind::Assistant,
            // An output whose call comes later, or never.
            (MessageKind::Result, _) => PassageKind::Result,
            (_, Role::User) => PassageKind::User,
            (_, Role::Assistant | Role::System | Role::Developer | Role::Tool) => PassageKind::Assistant,
        };
        let Some(line) = line else { return };
        let before = found.len();
        let spoken = SpokenLine {
            whole: message.kind == MessageKind::Result,
            typed: kind == PassageKind::User
                && matches!(message.kind, MessageKind::Prompt | MessageKind::Command | MessageKind::Unsent),
            ..SpokenLine::new(&message.session, message.span.offset, kind)
        };
        if let Some(model) = &message.model {
            add_marked(&mut self.words, MODEL_MARK, model);
        }
        self.add_spoken(&spoken, line, found);
        for passage in &mut found[before..] {
            passage.at = message.at;
        }
    }

    fn add_spoken(&mut self, spoken: &SpokenLine<'_>, line: Line<'_>, found: &mut Vec<Passage>) {
        let mut typed = (spoken.typed && self.has_history).then(String::new);
        for block in self.source.line_blocks(&[line]) {
            match block {
                Block::Text(text) | Block::Event { text, .. } => {
                    add_text(&mut self.words, &text);
                    if let Some(typed) = &mut typed {
                        typed.extend(text.chars().take(TYPED.saturating_sub(typed.len())));
                    }
                }
                Block::Thinking(text) => add_text(&mut self.thoughts, &text),
                Block::Attachment { name } => add_text(&mut self.words, &name),
                Block::Image { path, .. } => add_text(&mut self.words, path.as_deref().unwrap_or_default()),
                Block::ToolResult { output, .. } if spoken.whole => add_text(&mut self.words, &output),
                // Calls and results have separate rows; context is not anyone's words.
                Block::Context { .. } | Block::ToolCall { .. } | Block::ToolResult { .. } => {}
            }
        }
        if let Some(typed) = typed {
            let words = ContentKey::of_words(&typed);
            self.spoken.push(Item::Spoken { session: spoken.session.clone(), offset: spoken.offset, words });
        }
        let kinds = [(&mut self.words, spoken.kind), (&mut self.thoughts, PassageKind::Thinking)];
        for (words, kind) in kinds {
            let terms = words.take();
            if terms.length > 0 {
                let session = Some(spoken.session.clone());
                found.push(Passage { session, offset: spoken.offset, kind, at: None, terms });
            }
        }
    }

    /// The session that shows it is decided once all sessions are known.
    fn typed(&mut self, typed: &TypedPrompt, line: Line<'_>, found: &mut Vec<Passage>) {
        for block in self.source.line_blocks(&[line]) {
            if let Block::Text(text) = block {
                add_text(&mut self.words, &text);
            }
        }
        let (offset, at, terms) = (typed.span.offset, Some(typed.at), self.words.take());
        found.push(Passage { session: None, offset, kind: PassageKind::User, at, terms });
    }

    fn call(&mut self, call: &Call, line: Option<Line<'_>>, found: &mut Vec<Passage>) {
        add_marked(&mut self.words, TOOL_MARK, &call.name);
        if let Some(model) = &call.model {
            add_marked(&mut self.words, MODEL_MARK, model);
        }
        add_text(&mut self.words, &call.name);
        for block in line.map(|line| self.source.line_blocks(&[line])).into_iter().flatten() {
            if let Block::ToolCall { input, .. } = block {
                add_document(&mut self.words, &input);
            }
        }
        if call.kind == CallKind::Edit
            && let (Some(recorder), Some(line)) = (self.source.recorder(), line)
        {
            for text in recorder.written(line) {
                each_line_term(&text, |term| self.words.add(&term));
                each_gram_term(&text, |term| self.words.add(&term));
            }
        }
        found.push(Passage {
            session: Some(call.session.clone()),
            offset: call.span.offset,
            kind: PassageKind::Call,
            at: call.at,
            terms: self.words.take(),
        });
    }

    /// `work` is what the call did to a file, and the client's record of it.
    fn output(
        &mut self,
        result: &CallResult,
        line: Option<Line<'_>>,
        work: Option<(Operation, Option<Line<'_>>)>,
        found: &mut Vec<Passage>,
    ) {
        let recorder = self.source.recorder();
        if let (Some(recorder), Some((operation, Some(detail)))) = (recorder, work)
            && operation != Operation::Read
        {
            for line in recorder.written_besides(detail) {
                each_line_term(&line, |term| self.words.add(&term));
            }
        }
        let reads = work.is_some_and(|(operation, _)| operation == Operation::Read);
        for block in line.map(|line| self.source.line_blocks(&[line])).into_iter().flatten() {
            if let Block::ToolResult { output, .. } = block {
                if let Some(recorder) = recorder.filter(|_| reads) {
                    let lines = output.lines().map(|line| line_fingerprint(recorder.unnumbered(line)));
                    each_sampled_line_term(lines, |term| self.words.add(&term));
                }
                self.add_output(result.call, output);
            }
        }
        let terms = self.words.take();
        if !terms.is_empty() {
            let (session, offset, at) = (Some(result.session.clone()), result.call, result.at);
            found.push(Passage { session, offset, kind: PassageKind::Result, at, terms });
        }
    }

    /// Clients write an output twice, once for the model and once for themselves. Of the second, only new text is
    /// added.
    fn add_output(&mut self, call: u64, output: String) {
        match self.outputs.iter().find(|(of, _)| *of == call) {
            Some((_, before)) => add_part(&mut self.words, &output, not_emitted(before, &output)),
            None => {
                add_output(&mut self.words, &output);
                if output.len() <= LONGEST_TEXT {
                    self.outputs.truncate(REMEMBERED - 1);
                    self.outputs.push_front((call, output));
                }
            }
        }
    }

    fn touch(&mut self, touch: &Touch, found: &mut Vec<Passage>) {
        let last = touch.path.rsplit(['/', '\\']).next().unwrap_or(&touch.path);
        add_marked(&mut self.words, FILE_MARK, last);
        add_text(&mut self.words, &touch.path);
        let (session, offset, terms) = (Some(touch.session.clone()), touch.call, self.words.take());
        found.push(Passage { session, offset, kind: PassageKind::Files, at: None, terms });
    }

    fn record(&mut self, document: &Document, line: Option<Line<'_>>, found: &mut Vec<Passage>) {
        let manifest = self.source.manifest();
        let family = manifest.stream(document.stream).map(|stream| stream.family);
        let kind = match (manifest.searched.contains(&document.stream), family) {
            // An output of a conversation belongs to its call; other records are results themselves.
            (true, Some(Family::Transcript)) => PassageKind::Output,
            (true, _) | (false, Some(Family::Authored | Family::Memory)) => PassageKind::Record,
            (false, _) => return,
        };
        if kind == PassageKind::Record {
            add_text(&mut self.words, &document.key);
        }
        add_text(&mut self.words, &String::from_utf8_lossy(line.map(Line::bytes).unwrap_or_default()));
        let (offset, at, terms) = (document.span.offset, document.at, self.words.take());
        found.push(Passage { session: None, offset, kind, at, terms });
    }
}

/// The middle of a text, without the start and end that it shares with another one. Words at the cuts are included
/// whole.
fn not_emitted(before: &str, text: &str) -> Range<usize> {
    let end = text.len() - shared_end(before.as_bytes(), text.as_bytes());
    let start = shared_start(before.as_bytes(), &text.as_bytes()[..end]);
    let start = text.as_bytes()[..start].iter().rposition(u8::is_ascii_whitespace).unwrap_or(0);
    let rest = &text.as_bytes()[end..];
    let end = end + rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    if text.get(start..end).is_some() { start..end } else { 0..text.len() }
}

fn shared_start(before: &[u8], text: &[u8]) -> usize {
    const STEP: usize = 32;
    let steps = before.chunks_exact(STEP).zip(text.chunks_exact(STEP));
    let start = STEP * steps.take_while(|(before, text)| before == text).count();
    start + before[start..].iter().zip(&text[start..]).take_while(|(before, text)| before == text).count()
}

fn shared_end(before: &[u8], text: &[u8]) -> usize {
    const STEP: usize = 32;
    let steps = before.rchunks_exact(STEP).zip(text.rchunks_exact(STEP));
    let end = STEP * steps.take_while(|(before, text)| before == text).count();
    let rest = before[..before.len() - end].iter().rev().zip(text[..text.len() - end].iter().rev());
    end + rest.take_while(|(before, text)| before == text).count()
}

/// A line with spoken text, and where its passage belongs.
struct SpokenLine<'a> {
    session: &'a std::sync::Arc<str>,
    offset: u64,
    kind: PassageKind,
    /// The line is a result without a call, so its output is indexed here.
    whole: bool,
    /// Typed by the user.
    typed: bool,
}

impl<'a> SpokenLine<'a> {
    fn new(session: &'a std::sync::Arc<str>, offset: u64, kind: PassageKind) -> SpokenLine<'a> {
        SpokenLine { session, offset, kind, whole: false, typed: false }
    }
}

/// Adds the terms of a text. Those within its secrets are kept apart.
fn add_text(words: &mut TermSet, text: &str) {
    let text = &text[..boundary(text, LONGEST_TEXT + BEYOND)];
    let shown = SECRETS.replace_in_document(text, &|_| BLANK.to_owned());
    words.add_text(&shown);
    if let Cow::Owned(_) = shown {
        words.add_secrets_of(text);
    }
}

/// The same for a part of a text: what comes before it may give its secrets away.
fn add_part(words: &mut TermSet, text: &str, part: Range<usize>) {
    if part.is_empty() {
        return;
    }
    let from = boundary(text, part.start.saturating_sub(BEYOND));
    let around = &text[from..boundary(text, part.end.saturating_add(BEYOND)).max(part.end)];
    let (mut shown, mut at) = (String::new(), part.start);
    SECRETS.each(around, &mut |secret| {
        let secret = (secret.range.start + from).max(at)..(secret.range.end + from).min(part.end);
        if !secret.is_empty() {
            shown.push_str(&text[at..secret.start]);
            shown.push_str(BLANK);
            at = secret.end;
        }
    });
    words.add_text(&(shown + &text[at..part.end]));
    if at > part.start {
        words.add_secrets_of(&text[part]);
    }
}

/// The same for the texts in a document, some of which are secrets by the names of their fields.
fn add_document(words: &mut TermSet, value: &Value) {
    if SECRETS.each_text(value, None, &|_| BLANK.to_owned(), &mut |text| words.add_text(text)) {
        each_text(value, &mut |text| words.add_secrets_of(text));
    }
}

/// The same for an output, which may be a document.
fn add_output(words: &mut TermSet, output: &str) {
    if !output.starts_with(['{', '[']) {
        return add_text(words, output);
    }
    if SECRETS.each_embedded_text(output, None, &|_| BLANK.to_owned(), &mut |text| words.add_text(text)) {
        each_embedded_text(output, &mut |text| words.add_secrets_of(text));
    }
}

/// Adds a name with its mark.
fn add_marked(words: &mut TermSet, mark: &[u8], name: &str) {
    let term = [mark, name.to_lowercase().as_bytes()].concat();
    match SECRETS.mask(name) {
        Cow::Borrowed(_) => words.add(&term),
        Cow::Owned(_) => words.add(&[SECRET_MARK, &term].concat()),
    }
}

/// The last character boundary at or before this offset.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Separates what comes before a secret from what comes after it.
const BLANK: &str = " ";
/// How far beyond the indexed text to look for the end of a secret.
const BEYOND: usize = 16 << 10;

/// The key is of no use here: only the places of secrets matter.
static SECRETS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([0; 32]));

#[cfg(test)]
mod tests {
    use super::not_emitted;
    use annals_core::TermSet;

    #[test]
    fn nothing_new_is_lost_and_little_is_repeated() {
        let long = "some line of output\n".repeat(20);
        let pairs = [
            (long.as_str(), long.clone()),
            (&long, format!("exit 0\n{long}")),
            (&long, format!("{long}the end")),
            (&long, format!("{}middle {long}", &long[..50])),
            ("one two", "one tool two".to_owned()),
            ("one to", "one two".to_owned()),
            ("one two", "one two one two".to_owned()),
            ("", "new".to_owned()),
            ("new", String::new()),
            ("äö 修复", "äü 修登复".to_owned()),
        ];
        let terms = |text: &str| {
            let mut terms = TermSet::default();
            terms.add_text(text);
            terms.take().iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        for (before, text) in pairs {
            let new = &text[not_emitted(before, &text)];
            let indexed = [terms(before), terms(new)].concat();
            assert!(terms(&text).iter().all(|term| indexed.contains(term)), "{before:?} {text:?} {new:?}");
            assert!(new.len() < 30, "{new:?}");
        }
    }
}
