//! The outline of a session: its number of steps, its prompts, and the position of a step by id.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::branches::{Branch, Branches};
use super::list::SessionView;
use super::transcript::{TranscriptPage, TranscriptQuery};
use crate::view::context::View;
use crate::view::door::{Door, between_letters};
use crate::view::paging::{Paging, write_numbers};
use crate::view::usage::prices::millionths;
use crate::view::usage::reported::SessionTotals;
use annals_core::{AccessKind, Block, ContentKey, FileId, MessageKind, Result, Shown, Span, Time};
use annals_sources::{Source, by_name};
use annals_store::{Contents, MessageRow, PromptPlace, ResponseFilter, RowPlace};

/// Most prompts listed; longer sessions are paged by steps.
const MOST: usize = 2_000;
/// Bytes of a prompt shown on its line.
const LINE: usize = 120;

#[derive(Debug, Serialize, ToSchema)]
pub struct Outline {
    /// Steps of the session, numbered from 0 like `seq` of messages.
    pub step_count: i64,
    pub prompts: Vec<PromptLine>,
    /// False if there are more prompts.
    pub complete: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PromptLine {
    pub id: String,
    pub seq: i64,
    pub at: Option<String>,
    /// The start of the prompt on one line.
    pub text: Shown,
    /// Tokens of the responses up to the next prompt; 0 if the conversation branches.
    pub tokens: i64,
    /// Their estimated cost, as far as they have a price.
    pub cost_usd: Option<f64>,
}

impl View<'_> {
    pub fn outline(&self, session: &SessionView, branch: &Branch) -> Result<Outline> {
        self.note_access(session.row, AccessKind::Conversation);
        let mut contents = self.archive.contents();
        let (mut prompts, mut complete) = (Vec::new(), true);
        let mut places = Vec::new();
        let source = by_name(&session.source);
        self.each_prompt(session, branch, &mut |place| {
            if prompts.len() == MOST {
                complete = false;
                return Ok(false);
            }
            places.push((place.file, place.span.offset));
            prompts.push(PromptLine {
                tokens: 0,
                cost_usd: None,
                id: place.key.hex(),
                seq: place.step,
                at: place.at.map(Time::rfc3339),
                text: self.prompt_line(session, source, &mut contents, &place)?,
            });
            Ok(true)
        })?;
        if Branches::of(self.archive, session.row, branch)?.is_none() {
            self.add_spent(session, &places, &mut prompts)?;
        }
        Ok(Outline { step_count: self.count_steps(session, branch)?, prompts, complete })
    }

    /// Adds each response to the prompt before it in the same file.
    fn add_spent(
        &self,
        session: &SessionView,
        places: &[(FileId, u64)],
        prompts: &mut [PromptLine],
    ) -> Result<()> {
        let mut by_file: HashMap<FileId, Vec<(u64, usize)>> = HashMap::new();
        for (number, (file, offset)) in places.iter().enumerate() {
            by_file.entry(*file).or_default().push((*offset, number));
        }
        by_file.values_mut().for_each(|offsets| offsets.sort_unstable());
        let filter = ResponseFilter { session: Some(session.row), ..ResponseFilter::default() };
        let mut totals = SessionTotals::default();
        self.archive.each_response(&filter, RowPlace::default(), &mut |row| {
            let offsets = by_file.get(&row.file).filter(|_| !row.copied);
            let before = offsets.and_then(|offsets| {
                let after = offsets.partition_point(|(offset, _)| *offset <= row.span.offset);
                offsets.get(after.checked_sub(1)?)
            });
            if let Some(prompt) = before.and_then(|(_, number)| prompts.get_mut(*number)) {
                prompt.tokens += row.tokens.total();
                if let Some(cost) = self.response_cost(&row, &mut totals, Some(session.row))?.cost {
                    prompt.cost_usd = Some(millionths(prompt.cost_usd.unwrap_or(0.0) + cost.dollars()));
                }
            }
            Ok(true)
        })?;
        Ok(())
    }

    /// The prompts of a session from one moment to before another, each on one line.
    pub(in crate::view) fn prompts_between(
        &self,
        session: &SessionView,
        from: Time,
        to: Time,
    ) -> Result<Vec<(Option<Time>, Shown)>> {
        let mut contents = self.archive.contents();
        let mut prompts = Vec::new();
        let source = by_name(&session.source);
        self.each_prompt(session, &Branch::Current, &mut |place| {
            if place.at.is_some_and(|at| at >= from && at < to) {
                prompts.push((place.at, self.prompt_line(session, source, &mut contents, &place)?));
            }
            Ok(prompts.len() < MOST)
        })?;
        prompts.sort_by_key(|(at, _)| *at);
        Ok(prompts)
    }

    /// The start of a prompt on one line.
    fn prompt_line(
        &self,
        session: &SessionView,
        source: Option<&'static dyn Source>,
        contents: &mut Contents<'_>,
        place: &PromptPlace,
    ) -> Result<Shown> {
        self.prompt_at(session, source, contents, place.file, place.span)
    }

    pub(in crate::view) fn prompt_at(
        &self,
        session: &SessionView,
        source: Option<&'static dyn Source>,
        contents: &mut Contents<'_>,
        file: FileId,
        span: Span,
    ) -> Result<Shown> {
        let mut raw = vec![contents.span(file, span)?];
        for line in self.archive.message_lines(session.row, file, span.offset)? {
            raw.push(contents.span(file, line)?);
        }
        let lines: Vec<&[u8]> = raw.iter().map(|line| line.expose()).collect();
        let blocks = source.map_or(Vec::new(), |source| source.blocks(&lines));
        let text = blocks.into_iter().find_map(|block| match block {
            Block::Text(text) if !text.trim().is_empty() => Some(text),
            Block::Image { .. } | Block::Attachment { .. } => Some("(attachment)".into()),
            _ => None,
        });
        Ok(line(self.door, &text.unwrap_or_default()))
    }

    /// In order of the transcript, or of the branch.
    fn each_prompt(
        &self,
        session: &SessionView,
        branch: &Branch,
        visit: &mut dyn FnMut(PromptPlace) -> Result<bool>,
    ) -> Result<()> {
        let Some(branches) = Branches::of(self.archive, session.row, branch)? else {
            return Ok(self.archive.each_prompt(session.row, &mut |place| Ok(visit(place)?))?);
        };
        let places: Vec<(FileId, u64)> = branches.steps().map(|(_, node)| (node.file, node.offset)).collect();
        let rows = self.archive.messages_at(session.row, &places)?.into_iter();
        let prompts: HashMap<(FileId, u64), MessageRow> = rows
            .filter(|row| row.kind == MessageKind::Prompt)
            .map(|row| ((row.file, row.span.offset), row))
            .collect();
        for (step, place) in places.iter().enumerate() {
            let Some(row) = prompts.get(place) else { continue };
            let place =
                PromptPlace { step: step as i64, key: row.key, file: row.file, span: row.span, at: row.at };
            if !visit(place)? {
                break;
            }
        }
        Ok(())
    }

    /// How many steps a session has.
    pub fn count_steps(&self, session: &SessionView, branch: &Branch) -> Result<i64> {
        match Branches::of(self.archive, session.row, branch)? {
            Some(branches) => Ok(branches.steps().count() as i64),
            None => Ok(self.archive.count_steps(session.row)?),
        }
    }

    /// The number of a step by its id; a call within a message has the number of the message.
    pub fn step_of(&self, session: &SessionView, branch: &Branch, id: &str) -> Result<Option<i64>> {
        let Some(key) = ContentKey::from_hex(id) else { return Ok(None) };
        match Branches::of(self.archive, session.row, branch)? {
            Some(branches) => {
                Ok(branches.steps().position(|(_, node)| node.key == key).map(|number| number as i64))
            }
            None => Ok(self.archive.step_of_key(session.row, key)?),
        }
    }

    /// Steps of a session from a number on.
    pub fn steps_from(
        &self,
        session: &SessionView,
        branch: &Branch,
        step: i64,
        limit: i64,
    ) -> Result<TranscriptPage> {
        let query = TranscriptQuery { changes: true, branch: branch.clone(), ..TranscriptQuery::default() };
        self.steps_of_query(session, query, step, limit)
    }

    /// The same, with more or less of each step.
    pub fn steps_of_query(
        &self,
        session: &SessionView,
        query: TranscriptQuery,
        step: i64,
        limit: i64,
    ) -> Result<TranscriptPage> {
        let (file, place) = match Branches::of(self.archive, session.row, &query.branch)? {
            Some(branches) => {
                let before = usize::try_from(step - 1).ok().and_then(|before| branches.steps().nth(before));
                (0, before.map_or(-1, |(at, _)| at as i64))
            }
            None => self.archive.place_before_step(session.row, step)?,
        };
        let cursor = Some(write_numbers(&[file as i64, place, step.max(0)]));
        self.transcript_page(session, query, &Paging { limit, cursor })
    }
}

/// Masked before it is truncated: half a secret is not recognised as one.
fn line(door: &Door, text: &str) -> Shown {
    let start = &text[..between_letters(text, 4 * 1024)];
    let shown = door.text(start);
    let words: Vec<&str> = shown.as_str().split_whitespace().collect();
    let line = words.join(" ");
    let cut = between_letters(&line, LINE);
    if cut < line.len() { Shown::new(format!("{}…", &line[..cut])) } else { Shown::new(line) }
}
