//! Steps of a session as HTML: messages and tool calls.

use askama::Template;
use serde_json::Value;

use super::code;
use super::html::{Html, text};
use super::markdown::markdown;
use crate::view::format;
use crate::view::{BlockView, Entry, FileView};

#[derive(Template)]
#[template(path = "entries.html")]
pub(super) struct Entries {
    /// The address of the session.
    pub base: String,
    pub entries: Vec<EntryHtml>,
}

pub(super) struct EntryHtml {
    id: String,
    seq: usize,
    class: &'static str,
    who: &'static str,
    label: String,
    at: Option<(String, String)>,
    model: Option<String>,
    marks: Vec<String>,
    /// Alternatives to this step: id, and whether it is this one.
    /// Id, whether it is shown, and number.
    branches: Vec<(String, bool, usize)>,
    branch_count: usize,
    blocks: Vec<BlockHtml>,
    usage: Option<String>,
}

enum BlockHtml {
    Prose(Html),
    Plain(Html),
    Folded { class: &'static str, summary: String, html: Html },
    Picture { address: String, text: String },
    Note(String),
    Call(Box<CallHtml>),
}

struct CallHtml {
    kind: &'static str,
    mark: &'static str,
    name: String,
    title: String,
    outcome: &'static str,
    state: Option<String>,
    took: Option<String>,
    open: bool,
    /// Operation, file name, directory, and the address of its lineage.
    files: Vec<(&'static str, String, String, String)>,
    /// Items of a to-do list: state, mark, text.
    steps: Vec<(&'static str, &'static str, String)>,
    /// Operation, file, and diff.
    changes: Vec<(String, String, Html)>,
    agent: Option<String>,
    input: Html,
    output: Option<Html>,
    /// Address and size of the complete output.
    whole: Option<(String, String)>,
}

impl Html {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(super) fn entries(base: &str, list: &[Entry]) -> Entries {
    Entries { base: base.to_owned(), entries: list.iter().map(|entry| entry_html(base, entry)).collect() }
}

fn entry_html(base: &str, entry: &Entry) -> EntryHtml {
    let (class, who) = match entry.kind {
        "prompt" => ("prompt", "User"),
        "answer" => ("answer", "Assistant"),
        "thinking" => ("thinking", "Thinking"),
        "call" => ("tool", "Tool"),
        "injected" => ("injected", "Context"),
        "summary" => ("summary", "Summary"),
        "agent" => ("agent", "Agent"),
        "command" => ("command", "Command"),
        "result" => ("tool", "Result"),
        "unsent" => ("notice", "Not sent"),
        _ => ("notice", "Notice"),
    };
    let mut blocks = Vec::new();
    let (mut calls, mut pictures) = (0, 0);
    let mut list = entry.blocks.iter().peekable();
    while let Some(block) = list.next() {
        match block {
            BlockView::Text { text: shown, cut } => {
                let shown_text = shown.as_str();
                if shown_text.trim().is_empty() {
                    continue;
                }
                let note = cut.full_bytes.map(note_of_cut);
                blocks.push(match class {
                    "answer" | "summary" | "agent" => BlockHtml::Prose(markdown(shown_text)),
                    "injected" | "command" => BlockHtml::Folded {
                        class: "injected",
                        summary: first_line(shown_text),
                        html: Html(format!("<pre>{}</pre>", text(shown_text))),
                    },
                    _ => BlockHtml::Plain(text(shown_text)),
                });
                blocks.extend(note.map(BlockHtml::Note));
            }
            BlockView::Thinking { text: shown, cut } => {
                blocks.push(BlockHtml::Folded {
                    class: "thinking",
                    summary: format!("Thinking: {}", first_line(shown.as_str())),
                    html: markdown(shown.as_str()),
                });
                blocks.extend(cut.full_bytes.map(|bytes| BlockHtml::Note(note_of_cut(bytes))));
            }
            BlockView::Image { media_type, bytes, path } => {
                let mut text = format!("image, {media_type}");
                if *bytes > 0 {
                    text.push_str(&format!(", {}", format::size(*bytes as i64)));
                }
                if let Some(path) = path {
                    text.push_str(&format!(", {path}"));
                }
                blocks.push(match *bytes {
                    0 => BlockHtml::Note(text),
                    _ => BlockHtml::Picture {
                        address: format!("{base}/picture/{}/{pictures}", entry.id),
                        text,
                    },
                });
                pictures += 1;
            }
            BlockView::Attachment { name } => blocks.push(BlockHtml::Note(format!("attachment: {name}"))),
            BlockView::Event { name, text: shown } => {
                blocks.push(BlockHtml::Note(format!("{name} {shown}").trim().to_owned()));
            }
            BlockView::ToolCall { .. } => {
                let result = list.next_if(|next| matches!(next, BlockView::ToolResult { .. }));
                if let Some(call) = call_html(base, entry, calls, block, result) {
                    blocks.push(BlockHtml::Call(Box::new(call)));
                }
                calls += 1;
            }
            BlockView::ToolResult { output, .. } => blocks.push(BlockHtml::Folded {
                class: "result",
                summary: format!("Result: {}", first_line(output.as_str())),
                html: Html(format!("<pre>{}</pre>", text(output.as_str()))),
            }),
        }
    }
    if blocks.is_empty() {
        blocks.push(BlockHtml::Note("no content".into()));
    }
    EntryHtml {
        id: entry.id.clone(),
        seq: entry.seq,
        class,
        who,
        label: format!("{who}, step {}", entry.seq),
        at: entry.at.clone().map(|at| {
            let shown = format::minute(&at);
            (at, shown)
        }),
        model: entry.model.clone().filter(|_| class == "answer" || class == "tool"),
        marks: if entry.copied { vec!["copy".into()] } else { Vec::new() },
        branches: entry
            .branches
            .iter()
            .map(|branch| (branch.id.clone(), branch.current, branch.number))
            .collect(),
        branch_count: entry.branch_count.unwrap_or(0),
        blocks,
        usage: entry.usage.as_ref().map(|tokens| {
            let mut parts = vec![
                format!("{} input", format::compact(tokens.input)),
                format!("{} output", format::compact(tokens.output)),
            ];
            if tokens.cache_read > 0 {
                parts.push(format!("{} cache read", format::compact(tokens.cache_read)));
            }
            if tokens.cache_write > 0 {
                parts.push(format!("{} cache write", format::compact(tokens.cache_write)));
            }
            if tokens.reasoning > 0 {
                parts.push(format!("{} reasoning", format::compact(tokens.reasoning)));
            }
            parts.extend(entry.cost_usd.map(format::money));
            parts.join(" · ")
        }),
    }
}

fn call_html(
    base: &str,
    entry: &Entry,
    number: usize,
    call: &BlockView,
    result: Option<&BlockView>,
) -> Option<CallHtml> {
    let BlockView::ToolCall { name, kind, title, input, files, changes, agent_session_id, .. } = call else {
        return None;
    };
    let mut html = CallHtml {
        kind,
        mark: match *kind {
            "shell" => "$",
            "edit" => "±",
            "read" => "▤",
            "search" => "⌕",
            "web" => "⊕",
            "agent" => "◆",
            "script" => "λ",
            _ => "•",
        },
        name: name.clone(),
        title: title.to_string(),
        outcome: "open",
        state: None,
        took: None,
        open: false,
        files: files.iter().map(describe_file).collect(),
        steps: steps(input.value()),
        changes: changes
            .iter()
            .map(|change| {
                let mut diff = String::new();
                code::push_diff(&mut diff, change.diff.as_str());
                (change.operation.replace('_', " "), change.path.to_string(), Html(diff))
            })
            .collect(),
        agent: agent_session_id.as_ref().map(|id| {
            let source = base.split('/').nth(2).unwrap_or_default();
            format!("/sessions/{source}/{}", super::html::in_address(id))
        }),
        input: Html::default(),
        output: None,
        whole: None,
    };
    if let Some((_, _, first)) = html.steps.first().filter(|_| html.title.starts_with('{')) {
        html.title = format!("{}: {first}", format::counted(html.steps.len(), "task"));
    }
    // Short edits are what people look for.
    let lines: usize = changes.iter().map(|change| change.diff.as_str().lines().count()).sum();
    html.open = (1..=OPEN_LINES).contains(&lines);
    // Input with a special rendering needs no JSON.
    if html.steps.is_empty() && html.changes.is_empty() {
        html.input = input_html(kind, title.as_str(), input.value());
    }
    if let Some(BlockView::ToolResult { ok, exit_code, duration_ms, output, cut, .. }) = result {
        (html.outcome, html.state) = match (ok, exit_code) {
            (_, Some(code)) if *code != 0 => ("failed", Some(format!("exit {code}"))),
            (Some(false), _) => ("failed", Some("failed".into())),
            (_, Some(_)) => ("ok", Some("exit 0".into())),
            (Some(true), None) => ("ok", Some("ok".into())),
            (None, None) => ("done", None),
        };
        html.took = duration_ms.map(format::milliseconds);
        if !output.as_str().is_empty() {
            html.output = Some(text(output.as_str()));
        }
        html.whole = cut
            .full_bytes
            .map(|bytes| (format!("{base}/output/{}/{number}", entry.id), format::size(bytes as i64)));
    }
    Some(html)
}

/// Renders a command as a command, anything else as its fields.
fn input_html(kind: &str, title: &str, input: &Value) -> Html {
    let command = match input {
        Value::Object(fields) if kind == "shell" => {
            ["command", "cmd"].iter().find_map(|name| match fields.get(*name)? {
                Value::String(command) => Some(command.clone()),
                Value::Array(_) => Some(title.to_owned()),
                _ => None,
            })
        }
        Value::String(command) => Some(command.clone()),
        _ => None,
    };
    match command {
        Some(command) => code::highlighted(if kind == "shell" { "sh" } else { "js" }, &command),
        None if input.is_null() => Html::default(),
        None => {
            let pretty = serde_json::to_string_pretty(input).unwrap_or_default();
            code::highlighted("json", &pretty)
        }
    }
}

fn describe_file(file: &FileView) -> (&'static str, String, String, String) {
    let lines = |range: &Option<[u32; 2]>| match range {
        Some([start, end]) if start == end => format!("line {start}"),
        Some([start, end]) => format!("lines {start}–{end}"),
        None => String::new(),
    };
    let at = if file.after.is_some() { lines(&file.after) } else { lines(&file.before) };
    let address = format!("/lineage?file={}", super::html::in_address(file.path.as_str()));
    (file.operation, file.path.to_string(), at, address)
}

/// A to-do list: any list in an input whose entries have a state and a text.
fn steps(input: &Value) -> Vec<(&'static str, &'static str, String)> {
    let Value::Object(fields) = input else { return Vec::new() };
    let lists = fields.values().filter_map(Value::as_array).filter(|list| !list.is_empty());
    for list in lists {
        let read: Option<Vec<_>> = list.iter().map(step).collect();
        if let Some(steps) = read {
            return steps;
        }
    }
    Vec::new()
}

fn step(entry: &Value) -> Option<(&'static str, &'static str, String)> {
    let (name, mark) = match entry.get("status")?.as_str()? {
        "completed" | "done" => ("done", "☑"),
        "in_progress" => ("in progress", "▶"),
        "pending" | "not_started" => ("to do", "☐"),
        "cancelled" | "canceled" => ("cancelled", "☒"),
        _ => return None,
    };
    let text = ["content", "step", "text", "title"].iter().find_map(|name| entry.get(*name)?.as_str())?;
    Some((name, mark, text.to_owned()))
}

/// Lines of a diff shown without unfolding.
const OPEN_LINES: usize = 40;

fn note_of_cut(bytes: u64) -> String {
    format!("Truncated. Show all {} with Source.", format::size(bytes))
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(|line| line.trim().trim_matches('*')).find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    let short: String = line.chars().take(100).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}
