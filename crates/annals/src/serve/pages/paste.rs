//! A conversation as Markdown: quoted prompts, answers, edits, and short forms of other tool calls.

use crate::view::{BlockView, Entry};

/// Characters of an output that are included.
const OUTPUT: usize = 2_000;

pub(super) fn push_entry(out: &mut String, entry: &Entry) {
    if !entry.is_conversation() {
        return;
    }
    for block in &entry.blocks {
        match block {
            BlockView::Text { text, .. } if text.as_str().trim().is_empty() => {}
            BlockView::Text { text, .. } if entry.kind == "prompt" => {
                out.push_str("\n## Prompt\n\n");
                for line in text.as_str().lines() {
                    out.push_str(&format!("> {line}\n"));
                }
            }
            BlockView::Text { text, .. } => out.push_str(&format!("\n{}\n", text.as_str().trim_end())),
            BlockView::Thinking { .. } => {}
            BlockView::Image { media_type, .. } => out.push_str(&format!("\n(image, {media_type})\n")),
            BlockView::Attachment { name } => out.push_str(&format!("\n(attachment: {name})\n")),
            BlockView::Event { name, text } => out.push_str(&format!("\n({name} {text})\n")),
            BlockView::ToolCall { name, title, changes, .. } => {
                out.push_str(&format!("\n**{name}** {}\n", inline_code(title.as_str())));
                for change in changes {
                    out.push_str(&format!(
                        "\n{} {}\n",
                        change.operation.replace('_', " "),
                        inline_code(change.path.as_str())
                    ));
                    push_fenced(out, "diff", change.diff.as_str(), usize::MAX);
                }
            }
            BlockView::ToolResult { output, exit_code, .. } => {
                if let Some(code) = exit_code.filter(|code| *code != 0) {
                    out.push_str(&format!("\nexit {code}\n"));
                }
                push_fenced(out, "", output.as_str(), OUTPUT);
            }
        }
    }
}

fn inline_code(text: &str) -> String {
    let text = text.replace(['`', '\n'], " ");
    if text.trim().is_empty() { String::new() } else { format!("`{}`", text.trim()) }
}

/// Uses a fence longer than any in the text.
fn push_fenced(out: &mut String, language: &str, text: &str, most: usize) {
    if text.trim().is_empty() {
        return;
    }
    let short: String = text.chars().take(most).collect();
    let mut fence = String::from("```");
    while short.contains(&fence) {
        fence.push('`');
    }
    let more = if short.len() < text.len() { "\n…" } else { "" };
    out.push_str(&format!("\n{fence}{language}\n{}{more}\n{fence}\n", short.trim_end()));
}
