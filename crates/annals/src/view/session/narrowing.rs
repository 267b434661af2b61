//! Views of a conversation: prompts and answers, edits, failures.

use super::transcript::{BlockView, Entry};

/// Which steps of a conversation are of interest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Narrowing {
    #[default]
    All,
    /// What people and the assistant wrote, without thinking and calls.
    Prompts,
    /// Calls that changed files.
    Edits,
    /// Calls that failed.
    Failures,
}

impl Narrowing {
    /// The part of a step that is of interest, if any.
    pub fn narrow(self, mut entry: Entry) -> Option<Entry> {
        match self {
            Narrowing::All => return Some(entry),
            Narrowing::Prompts => {
                let is_text = |block: &BlockView| {
                    matches!(
                        block,
                        BlockView::Text { .. } | BlockView::Image { .. } | BlockView::Attachment { .. }
                    )
                };
                if !matches!(entry.kind, "prompt" | "command" | "answer") {
                    return None;
                }
                entry.blocks.retain(is_text);
            }
            Narrowing::Edits => keep_calls(&mut entry, &|call, _| match call {
                BlockView::ToolCall { files, changes, .. } => {
                    !changes.is_empty() || files.iter().any(|file| file.operation != "read")
                }
                _ => false,
            }),
            Narrowing::Failures => keep_calls(&mut entry, &|_, result| match result {
                Some(BlockView::ToolResult { ok, exit_code, .. }) => {
                    *ok == Some(false) || exit_code.is_some_and(|code| code != 0)
                }
                _ => false,
            }),
        }
        (!entry.blocks.is_empty()).then_some(entry)
    }
}

/// Keeps calls, with their results, by what they did.
fn keep_calls(entry: &mut Entry, wanted: &dyn Fn(&BlockView, Option<&BlockView>) -> bool) {
    let id_of = |block: &BlockView| match block {
        BlockView::ToolCall { call_id, .. } | BlockView::ToolResult { call_id, .. } => {
            Some(call_id.as_str().to_owned())
        }
        _ => None,
    };
    let is_result = |block: &&BlockView| matches!(block, BlockView::ToolResult { .. });
    let calls = entry.blocks.iter().filter(|block| matches!(block, BlockView::ToolCall { .. }));
    let kept: Vec<Option<String>> = calls
        .filter(|call| {
            let result = entry.blocks.iter().filter(is_result).find(|result| id_of(result) == id_of(call));
            wanted(call, result)
        })
        .map(&id_of)
        .collect();
    entry.blocks.retain(|block| {
        let id = id_of(block);
        id.is_some() && kept.contains(&id)
    });
}
