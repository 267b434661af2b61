//! Prompts typed while the assistant was busy, as the rows of the client's queue report them.
//!
//! Clients up to about 2.1.63 have no other record of a prompt that was taken up in the middle of a turn. An entry is shown
//! as unsent until an operation takes it, then as a prompt at that operation. A row that repeats its words replaces it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::people::{Spoken, command, spoken};
use super::transcript::{Row, TranscriptReader};
use crate::json::{Json, Object};
use annals_core::{
    ContentKey, Item, Message, MessageKind, Passage, PassageKind, Role, Span, Tally, TermSet, Time, Verdict,
};

/// How many entries are remembered; older ones stay as they are shown.
const MOST: usize = 64;
/// How much of a text is kept until it is indexed.
const LONGEST: usize = 64 << 10;

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptQueue {
    waiting: VecDeque<Queued>,
    /// Operations that took an entry since the last answer; a row that repeats the words may follow.
    taking: VecDeque<Taking>,
    /// Entries whose words were in a row before the operation that takes them.
    ahead: usize,
    /// Entries that went back to the input box: what is typed next may be the same words.
    returned: Vec<Queued>,
}

#[derive(Serialize, Deserialize)]
struct Queued {
    span: Span,
    kind: MessageKind,
    words: ContentKey,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct Taking {
    span: Span,
    at: Option<Time>,
    /// The words of the entry, where the operation repeats them.
    words: Option<ContentKey>,
}

impl Queued {
    /// Typed by the person, and shown from the start.
    fn is_typed(&self) -> bool {
        matches!(self.kind, MessageKind::Prompt | MessageKind::Command)
    }
}

impl TranscriptReader {
    pub(super) fn queue_operation(&mut self, row: &Row<'_>, out: &mut Vec<Item>) -> Verdict {
        let operation = row.object.get_text("operation").unwrap_or_default();
        let utterance = row.object.get("content").map(|content| queued_utterance(Some(content)));
        match operation.as_ref() {
            "enqueue" => self.enqueue(row, utterance, out),
            "dequeue" | "remove" => {
                let words = utterance.as_ref().map(words_of);
                if is_dropped(&row.object) {
                    self.drop_queued(row, words, out);
                } else if self.state.queue.ahead > 0 {
                    self.state.queue.ahead -= 1;
                } else {
                    let taking = Taking { span: row.span, at: row.at, words };
                    self.state.queue.taking.push_back(taking);
                }
            }
            "popAll" => self.pop_all(row, utterance.as_ref(), out),
            other => return Verdict::Unknown(format!("queue-operation/{other}")),
        }
        Verdict::Kept("queue-operation".into())
    }

    fn enqueue(&mut self, row: &Row<'_>, utterance: Option<Spoken>, out: &mut Vec<Item>) {
        let Spoken { kind, words } =
            utterance.unwrap_or(Spoken { kind: MessageKind::Notice, words: String::new() });
        let (key, mut text) = (words_of(&Spoken { kind, words: words.clone() }), words);
        let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        let queued = Queued { span: row.span, kind, words: key, text };
        if queued.is_typed() {
            self.repeats_returned(&queued.text, out);
            out.push(self.queue_message(row.span, row.at, MessageKind::Unsent, Tally::Nothing, key));
        }
        let waiting = &mut self.state.queue.waiting;
        if waiting.len() >= MOST {
            waiting.pop_front();
        }
        waiting.push_back(queued);
    }

    /// Entries went back to the input box. Clients write each of them again, some of them twice.
    fn pop_all(&mut self, row: &Row<'_>, utterance: Option<&Spoken>, out: &mut Vec<Item>) {
        let queue = &mut self.state.queue;
        let popped: Vec<Queued> = match utterance {
            None => queue.waiting.drain(..).collect(),
            Some(utterance) => {
                let words = words_of(utterance);
                let found = queue.waiting.iter().position(|queued| queued.words == words);
                match found.and_then(|at| queue.waiting.remove(at)) {
                    Some(queued) => vec![queued],
                    None => queue.take_within(&utterance.words),
                }
            }
        };
        for queued in popped.into_iter().filter(Queued::is_typed) {
            out.push(self.mark_unsent(&queued, row.span));
            if self.state.queue.returned.len() < MOST {
                self.state.queue.returned.push(queued);
            }
        }
    }

    /// Words that went back to the input box were sent after all, alone or among others: they are shown there.
    fn repeats_returned(&mut self, text: &str, out: &mut Vec<Item>) {
        for queued in std::mem::take(&mut self.state.queue.returned) {
            if has_words(text, queued.text.trim()) {
                out.push(Item::Forget { session: self.session.clone(), offset: queued.span.offset });
            }
        }
    }

    /// A message of the queue. Its rows have no ids; in a copy the words have the same time.
    fn queue_message(
        &self,
        span: Span,
        at: Option<Time>,
        kind: MessageKind,
        tally: Tally,
        words: ContentKey,
    ) -> Item {
        let key = match at {
            Some(at) => {
                let (name, at, words) = (kind.name().as_bytes(), at.micros().to_le_bytes(), words.hex());
                ContentKey::of(&[b"queue", name, &at, words.as_bytes()])
            }
            None => ContentKey::of(&[self.session.as_bytes(), &span.offset.to_le_bytes()]),
        };
        let (session, role, model) = (self.session.clone(), Role::User, None);
        Item::Message(Message { session, span, role, kind, at, key, inherited: false, model, tally })
    }

    fn drop_queued(&mut self, row: &Row<'_>, words: Option<ContentKey>, out: &mut Vec<Item>) {
        if let Some(queued) = self.state.queue.take(words).filter(Queued::is_typed) {
            out.push(self.mark_unsent(&queued, row.span));
        }
    }

    /// The operation that follows says why an entry was not sent.
    fn mark_unsent(&self, queued: &Queued, operation: Span) -> Item {
        Item::Extend { session: self.session.clone(), message: queued.span.offset, span: operation }
    }

    /// A row has these words, so the queue entry for them no longer counts. False if there was none.
    pub(super) fn repeats_queue(&mut self, utterance: &Spoken, out: &mut Vec<Item>) -> bool {
        if matches!(utterance.kind, MessageKind::Prompt | MessageKind::Command) {
            let command = command(&utterance.words).filter(|_| utterance.kind == MessageKind::Command);
            self.repeats_returned(command.as_deref().unwrap_or(&utterance.words), out);
        }
        let queue = &mut self.state.queue;
        if queue.waiting.is_empty() {
            return false;
        }
        let words = words_of(utterance);
        let found = queue.waiting.iter().position(|queued| queued.words == words);
        let repeated = match found.and_then(|at| queue.waiting.remove(at)) {
            Some(queued) => vec![queued],
            // Some clients send all that waits as one prompt.
            None if !queue.taking.is_empty() => queue.take_within(&utterance.words),
            None => return false,
        };
        let found = !repeated.is_empty();
        for queued in repeated {
            let named = queue.taking.iter().position(|taking| taking.words == Some(queued.words));
            if queue.taking.remove(named.unwrap_or(0)).is_none() {
                queue.ahead += 1;
            }
            if queued.is_typed() {
                out.push(Item::Forget { session: self.session.clone(), offset: queued.span.offset });
            }
        }
        found
    }

    /// A prompt that was not queued is typed when nothing waits: what still does was lost when an earlier run ended.
    pub(super) fn typed_at_rest(&mut self) {
        let queue = &mut self.state.queue;
        if queue.taking.is_empty() {
            queue.waiting.retain(|queued| !queued.is_typed());
        }
    }

    /// An answer begins: what was taken before it and is in no row was taken up in the middle of the turn. Answers from
    /// before that time are history that was copied.
    pub(super) fn take_up_queue(&mut self, answer: &Row<'_>, out: &mut Vec<Item>) {
        if answer.inherited {
            return;
        }
        self.state.queue.ahead = 0;
        let (before, later) = std::mem::take(&mut self.state.queue.taking)
            .into_iter()
            .partition(|taking| taking.at.zip(answer.at).is_none_or(|(taken, answer)| taken <= answer));
        self.state.queue.taking = later;
        let before: VecDeque<Taking> = before;
        for taking in before {
            let Some(queued) = self.state.queue.take(taking.words) else { continue };
            self.take_up(&taking, &queued, out);
        }
    }

    fn take_up(&mut self, taking: &Taking, queued: &Queued, out: &mut Vec<Item>) {
        let session = self.session.clone();
        if queued.is_typed() {
            out.push(Item::Forget { session: session.clone(), offset: queued.span.offset });
        }
        if queued.text.is_empty() {
            return;
        }
        let prompt = queued.kind == MessageKind::Prompt;
        if prompt {
            self.note_prompt(&queued.text);
        }
        let offset = taking.span.offset;
        let tally = if prompt { Tally::Aside } else { Tally::Nothing };
        out.push(self.queue_message(taking.span, taking.at, queued.kind, tally, queued.words));
        out.push(Item::Extend { session: session.clone(), message: offset, span: queued.span });
        // The words are in an earlier line than the one at hand.
        let mut terms = TermSet::default();
        terms.add_text(&queued.text);
        let (session, kind, terms) = (Some(session), PassageKind::User, terms.take());
        out.push(Item::Passage(Passage { session, offset, kind, at: taking.at, terms }));
    }
}

impl PromptQueue {
    /// The entry with these words; without them, the first that the person typed goes before what tasks report.
    fn take(&mut self, words: Option<ContentKey>) -> Option<Queued> {
        let at = match words {
            Some(words) => self.waiting.iter().position(|queued| queued.words == words)?,
            None => self.waiting.iter().position(Queued::is_typed).unwrap_or(0),
        };
        self.waiting.remove(at)
    }

    /// All typed entries whose words are within this text.
    fn take_within(&mut self, text: &str) -> Vec<Queued> {
        let (within, rest): (Vec<Queued>, Vec<Queued>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|queued| queued.is_typed() && is_within(&queued.text, text));
        self.waiting = rest.into();
        within
    }
}

/// Whether these words are in a text, and not inside of longer ones.
fn has_words(text: &str, words: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let is_whole = |(at, _): (usize, &str)| {
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + words.len()..].chars().next())
    };
    !words.is_empty() && text.match_indices(words).any(is_whole)
}

/// Whether a text has these words, be it with pastes in place of their marks.
fn is_within(words: &str, text: &str) -> bool {
    let mut rest = words;
    let mut found = false;
    while !rest.is_empty() {
        let mark = ["[Pasted text #", "[Image #"].iter().filter_map(|mark| rest.find(mark)).min();
        let part = rest[..mark.unwrap_or(rest.len())].trim();
        if !text.contains(part) {
            return false;
        }
        found |= !part.is_empty();
        rest = mark.and_then(|at| rest[at..].split_once(']')).map_or("", |(_, after)| after);
    }
    found
}

/// What an entry is: the queue holds commands as they were typed.
fn queued_utterance(content: Option<Json<'_>>) -> Spoken {
    let mut utterance = spoken(content);
    if utterance.kind == MessageKind::Prompt && is_command(&utterance.words) {
        utterance.kind = MessageKind::Command;
    }
    utterance
}

fn is_command(words: &str) -> bool {
    let Some(rest) = words.strip_prefix('/') else { return false };
    let name = rest.split_whitespace().next().unwrap_or_default();
    let within = |letter: char| letter.is_ascii_alphanumeric() || ":_-".contains(letter);
    !name.is_empty() && name.chars().all(within)
}

/// The identity of the words: a command is the same typed and as a row.
fn words_of(utterance: &Spoken) -> ContentKey {
    let command = command(&utterance.words).filter(|_| utterance.kind == MessageKind::Command);
    let words = command.as_deref().unwrap_or(&utterance.words).trim();
    ContentKey::of(&[b"queued", words.trim_start_matches('!').as_bytes()])
}

/// An operation that names a reason took an entry out unsent, unless the turn absorbed it.
fn is_dropped(row: &Object<'_>) -> bool {
    row.get_text("operation").is_some_and(|operation| operation == "remove")
        && row.get_text("reason").is_some_and(|reason| !reason.starts_with("absorbed"))
}

#[cfg(test)]
mod tests {
    use super::{has_words, is_command, is_within};

    #[test]
    fn words_are_whole() {
        assert!(has_words("turn it", "turn it") && has_words("turn it, slowly", "turn it"));
        assert!(!has_words("look", "ok") && !has_words("okay", "ok") && !has_words("any", ""));
        assert!(has_words("look, ok?", "ok"));
    }

    #[test]
    fn pastes_are_found_by_what_is_around_them() {
        assert!(is_within("look at this", "first\nlook at this"));
        assert!(is_within("look [Pasted text #1 +60 lines] here", "look one\ntwo here"));
        assert!(!is_within("look [Pasted text #1 +60 lines] there", "look one\ntwo here"));
        assert!(!is_within("[Image #1]", "anything"));
    }

    #[test]
    fn paths_are_not_commands() {
        assert!(is_command("/compact"));
        assert!(is_command("/ns:hello world"));
        assert!(!is_command("/home/ada is full"));
        assert!(!is_command("fix it"));
    }
}
