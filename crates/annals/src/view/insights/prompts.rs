//! Prompts that a person typed again in the same directory, but for case, spacing and signs.

use std::collections::HashMap;

use super::{About, InsightKind, Insights, Moment, StepPlace};
use crate::view::context::View;
use crate::view::session::list::SessionView;
use annals_core::{Block, ContentKey, FileId, MessageKind, Result, Shown, Span};
use annals_sources::by_name;
use annals_store::{Between, Contents, MomentRow, SessionFilter};

/// Prompts whose words have to be read, because their client keeps no list of what was typed.
const READ: usize = 300;

/// A directory, and what was typed there.
type Typed = (Option<Vec<u8>>, ContentKey);

pub(super) fn add(
    view: &View<'_>,
    filter: &SessionFilter,
    between: Between,
    insights: &mut Insights,
) -> Result<()> {
    let (mut rows, mut unread): (Vec<(MomentRow, ContentKey)>, Vec<MomentRow>) = (Vec::new(), Vec::new());
    let mut left_out = 0;
    let kinds = [MessageKind::Prompt, MessageKind::Prompt];
    view.archive.moments_between(filter, between, kinds, &mut |row| {
        match row.words {
            Some(words) => rows.push((row, words)),
            None if unread.len() < READ => unread.push(row),
            None => left_out += 1,
        }
        true
    })?;
    let mut contents = view.archive.contents();
    unread.sort_by_key(|row| (row.file, row.span.offset));
    for row in unread {
        let words = words_of(&mut contents, &row.place.source, row.file, row.span)?;
        rows.push((row, words));
    }
    insights.unread += left_out;
    let mut counts: HashMap<Typed, usize> = HashMap::new();
    let typed = |row: &MomentRow, words| (row.place.cwd.as_ref().map(|cwd| cwd.expose().to_vec()), words);
    for (row, words) in &rows {
        *counts.entry(typed(row, *words)).or_default() += 1;
    }
    // A picture without words.
    let nothing = ContentKey::of_words("");
    rows.retain(|(row, words)| {
        *words != nothing && counts.get(&typed(row, *words)).is_some_and(|count| *count > 1)
    });
    insights.moments.extend(rows.into_iter().map(|(row, words)| {
        let (step, about) = (StepPlace::Key(row.key), About::Line(row.file, row.span));
        Moment { words: Some(words), ..Moment::new(InsightKind::Repeated, row.place, 1.0, step, about) }
    }));
    Ok(())
}

/// The same as what is stored of clients with such a list.
fn words_of(contents: &mut Contents<'_>, source: &str, file: FileId, span: Span) -> Result<ContentKey> {
    let line = contents.span(file, span)?;
    let blocks = by_name(source).map_or(Vec::new(), |source| source.blocks(&[line.expose()]));
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) | Block::Event { text, .. } => Some(text.as_str()),
        Block::Thinking(_)
        | Block::Image { .. }
        | Block::Attachment { .. }
        | Block::Context { .. }
        | Block::ToolCall { .. }
        | Block::ToolResult { .. } => None,
    });
    Ok(ContentKey::of_words(&texts.collect::<String>()))
}

impl View<'_> {
    /// The start of what a line says, on one line.
    pub(super) fn line_of(&self, session: &SessionView, file: FileId, span: Span) -> Result<Shown> {
        self.prompt_at(session, by_name(&session.source), &mut self.archive.contents(), file, span)
    }
}
