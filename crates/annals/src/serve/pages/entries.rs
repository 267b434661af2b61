//! Steps of a session as HTML: messages and tool calls.

use askama::Template;
use serde_json::Value;

use super::ansi::terminal_text;
use super::code;
use super::html::{Html, text};
use super::markdown::markdown;
use super::tagged::untagged;
use super::touched::{ChangeHtml, FileHtml, change_html, file_html};
use crate::view::format;
use crate::view::{BlockView, Editor, Entry, View};

#[derive(Template)]
#[template(path = "entries.html")]
pub(super) struct Entries {
    /// The address of the session; none in a file, where steps link only to themselves.
    pub base: Option<String>,
    pub entries: Vec<EntryHtml>,
}

/// Where the links of a step lead.
pub(super) struct Addresses<'a> {
    /// The address of the session.
    pub base: Option<&'a str>,
    /// The address of a sub-agent of the same source.
    pub agent: &'a dyn Fn(&str) -> Option<String>,
    /// The address of an image with this number in a step.
    pub picture: &'a mut dyn FnMut(&Entry, usize) -> Option<String>,
    /// What opens a line of a file in an editor.
    pub editor: Option<&'a Editor>,
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
    /// What the fold that starts with this step contains.
    opens: Option<String>,
    /// The fold ends with this step.
    closes: bool,
}

enum BlockHtml {
    Prose(Html),
    Plain(Html),
    Command(Html),
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
    milliseconds: Option<i64>,
    open: bool,
    files: Vec<FileHtml>,
    /// Items of a to-do list: state, mark, text.
    steps: Vec<(&'static str, &'static str, String)>,
    /// What the assistant asked, with the answers to choose from: label and description.
    questions: Vec<(String, Vec<(String, String)>)>,
    changes: Vec<ChangeHtml>,
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

pub(super) fn entries(view: &View<'_>, base: &str, list: &[Entry]) -> Entries {
    let source = base.split('/').nth(2).unwrap_or_default();
    let mut addresses = Addresses {
        base: Some(base),
        agent: &|id| Some(format!("/sessions/{source}/{}", super::html::in_address(id))),
        picture: &mut |entry, number| Some(format!("{base}/picture/{}/{number}", entry.id)),
        editor: view.preferences().and_then(|preferences| preferences.editor.as_ref()),
    };
    let mut entries: Vec<EntryHtml> = list.iter().map(|entry| entry_html(entry, &mut addresses)).collect();
    fold_calls(&mut entries);
    Entries { base: Some(base.to_owned()), entries }
}

/// Puts consecutive steps that only call tools, and change nothing, into one fold.
fn fold_calls(entries: &mut [EntryHtml]) {
    let mut at = 0;
    while at < entries.len() {
        let length = entries[at..].iter().take_while(|entry| entry.only_calls()).count();
        let stretch = &mut entries[at..at + length];
        let calls: Vec<&CallHtml> = stretch.iter().flat_map(|entry| entry.calls()).collect();
        if calls.len() >= FEWEST_FOLDED {
            let failed = calls.iter().filter(|call| call.outcome == "failed").count();
            let took: i64 = calls.iter().filter_map(|call| call.milliseconds).sum();
            let parts = [
                Some(format::counted(calls.len(), "call")),
                (failed > 0).then(|| format!("{failed} failed")),
                (took >= 1_000).then(|| format::milliseconds(took)),
            ];
            let summary = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
            if let [first, .., last] = stretch {
                (first.opens, last.closes) = (Some(summary), true);
            }
        }
        at += length.max(1);
    }
}

impl EntryHtml {
    fn calls(&self) -> impl Iterator<Item = &CallHtml> {
        self.blocks.iter().filter_map(|block| match block {
            BlockHtml::Call(call) => Some(&**call),
            BlockHtml::Prose(_)
            | BlockHtml::Plain(_)
            | BlockHtml::Command(_)
            | BlockHtml::Folded { .. }
            | BlockHtml::Picture { .. }
            | BlockHtml::Note(_) => None,
        })
    }

    /// Edits, questions, lists and sub-agents are what people look for: they stay in sight.
    fn only_calls(&self) -> bool {
        let is_plain = |call: &CallHtml| {
            call.changes.is_empty()
                && call.steps.is_empty()
                && call.questions.is_empty()
                && call.agent.is_none()
        };
        self.class == "tool" && self.calls().next().is_some() && self.calls().all(is_plain)
    }
}

/// A step of a file.
pub(super) fn entry_alone(entry: &Entry, addresses: &mut Addresses<'_>) -> Entries {
    Entries { base: None, entries: vec![entry_html(entry, addresses)] }
}

fn entry_html(entry: &Entry, addresses: &mut Addresses<'_>) -> EntryHtml {
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
                let untagged = match class {
                    "command" | "injected" | "notice" => untagged(shown.as_str()),
                    _ => shown.to_string(),
                };
                let shown_text = untagged.as_str();
                if shown_text.trim().is_empty() {
                    continue;
                }
                let note = cut.full_bytes.map(note_of_cut);
                blocks.push(match class {
                    "answer" | "summary" | "agent" => BlockHtml::Prose(markdown(shown_text)),
                    "command" if !shown_text.contains('\n') => BlockHtml::Command(terminal_text(shown_text)),
                    "injected" | "command" => BlockHtml::Folded {
                        class: "injected",
                        summary: first_line(shown_text),
                        html: Html(format!("<pre>{}</pre>", terminal_text(shown_text))),
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
                let address = if *bytes > 0 { (addresses.picture)(entry, pictures) } else { None };
                blocks.push(match address {
                    None => BlockHtml::Note(text),
                    Some(address) => BlockHtml::Picture { address, text },
                });
                pictures += 1;
            }
            BlockView::Attachment { name } => blocks.push(BlockHtml::Note(format!("attachment: {name}"))),
            BlockView::Event { name, text: shown } => {
                blocks.push(BlockHtml::Note(format!("{name} {shown}").trim().to_owned()));
            }
            BlockView::ToolCall { .. } => {
                let result = list.next_if(|next| matches!(next, BlockView::ToolResult { .. }));
                if let Some(call) = call_html(addresses, entry, calls, block, result) {
                    blocks.push(BlockHtml::Call(Box::new(call)));
                }
                calls += 1;
            }
            BlockView::ToolResult { output, .. } => blocks.push(BlockHtml::Folded {
                class: "result",
                summary: format!("Result: {}", first_line(output.as_str())),
                html: Html(format!("<pre>{}</pre>", terminal_text(output.as_str()))),
            }),
        }
    }
    if blocks.is_empty() {
        blocks.push(BlockHtml::Note("no content".into()));
    }
    let mut marks = if entry.copied { vec!["copy".to_owned()] } else { Vec::new() };
    if let Some(arranged) = &entry.arrangement {
        marks.extend(arranged.starred.then(|| "★".to_owned()));
        marks.extend(arranged.name.as_ref().map(ToString::to_string));
        marks.extend(arranged.tags.iter().map(|tag| format!("#{tag}")));
        blocks.extend(arranged.note.as_ref().map(|note| BlockHtml::Folded {
            class: "thinking",
            summary: format!("Note: {}", first_line(note.as_str())),
            html: markdown(note.as_str()),
        }));
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
        marks,
        branches: entry
            .branches
            .iter()
            .map(|branch| (branch.id.clone(), branch.current, branch.number))
            .collect(),
        branch_count: entry.branch_count.unwrap_or(0),
        blocks,
        opens: None,
        closes: false,
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
    addresses: &Addresses<'_>,
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
        milliseconds: None,
        open: false,
        // A file whose change is shown is named there.
        files: files
            .iter()
            .filter(|file| changes.iter().all(|change| change.path.as_str() != file.path.as_str()))
            .map(|file| file_html(file, addresses))
            .collect(),
        steps: steps(input.value()),
        questions: questions(input.value()),
        changes: changes.iter().map(|change| change_html(change, addresses)).collect(),
        agent: agent_session_id.as_deref().and_then(addresses.agent),
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
    html.open |= !html.questions.is_empty();
    if html.steps.is_empty() && html.changes.is_empty() && html.questions.is_empty() {
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
        html.milliseconds = *duration_ms;
        if !output.as_str().is_empty() {
            html.output = Some(terminal_text(output.as_str()));
        }
        html.whole = addresses.base.zip(cut.full_bytes).map(|(base, bytes)| {
            (format!("{base}/output/{}/{number}", entry.id), format::size(bytes as i64))
        });
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

/// Questions to the person: a list in an input whose entries have a question and options.
fn questions(input: &Value) -> Vec<(String, Vec<(String, String)>)> {
    let Some(list) = input.get("questions").and_then(Value::as_array) else { return Vec::new() };
    let read: Option<Vec<_>> = list.iter().map(question).collect();
    read.unwrap_or_default()
}

fn question(entry: &Value) -> Option<(String, Vec<(String, String)>)> {
    let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let options = entry.get("options").and_then(Value::as_array)?.iter();
    let options = options.map(|option| match option.as_str() {
        Some(label) => Some((label.to_owned(), String::new())),
        None => Some((text(option, "label")?, text(option, "description").unwrap_or_default())),
    });
    Some((text(entry, "question")?, options.collect::<Option<_>>()?))
}

/// Calls in a row that are folded into one line.
const FEWEST_FOLDED: usize = 3;
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
