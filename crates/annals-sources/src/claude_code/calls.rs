//! Pairs `tool_use` with `tool_result` by id, whichever comes first, and reads which files were touched.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::sidecars::full_result_key;
use super::tape::{printed_read, read_command};
use super::transcript::Row;
use crate::home::title::in_a_line;
use crate::json::{Json, Object};
use annals_core::{
    Call, CallKind, CallResult, ContentKey, FileWork, Item, Link, LinkKind, Operation, Range, Span, Time,
    Touch,
};

/// Outputs of this many bytes may be kept apart.
const LONG_OUTPUT: usize = 8_000;
/// What clients write where an output is not whole.
const CUT_MARKS: &[&str] =
    &["<persisted-output", "truncated", "[Old tool result content cleared", "too large", "exceeds maximum"];

/// More calls than this without an answer are not a conversation; the oldest are let go as unanswered.
const OPEN: usize = 4096;
/// Results whose call has not come yet.
const EARLY: usize = 256;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingCalls {
    open: VecDeque<Entry>,
    early: VecDeque<Early>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    id: String,
    /// Saved under its first name.
    #[serde(rename = "place")]
    offset: u64,
    name: String,
    /// The file that the call names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Lines of the file that the call writes as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lines: Option<u32>,
    /// A command that may prove to have read a file, and the folder that it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<(String, Option<String>)>,
}

/// A result that was written before its call.
#[derive(Debug, Serialize, Deserialize)]
struct Early {
    id: String,
    answer: Answered,
}

/// What a result says; which tool it answers may not be known yet.
#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    block: Span,
    #[serde(default)]
    detail: Option<Span>,
    at: Option<Time>,
    ok: bool,
    #[serde(default)]
    outcome: CallOutcome,
    #[serde(default)]
    touched: Vec<Touched>,
}

/// A file that a result names. Without a path it is the one that the call names.
#[derive(Debug, Serialize, Deserialize)]
struct Touched {
    path: Option<String>,
    operation: Operation,
    before: Option<Range>,
    after: Option<Range>,
}

impl Touched {
    fn of(work: FileWork) -> Touched {
        let FileWork { path, operation, after, .. } = work;
        Touched { path: Some(path), operation, before: None, after: after.range }
    }
}

impl PendingCalls {
    /// The `tool_use` blocks of an answer's line.
    pub fn calls(
        &mut self,
        session: &Arc<str>,
        row: &Row<'_>,
        content: Option<Json<'_>>,
        message: u64,
        model: Option<Arc<str>>,
        out: &mut Vec<Item>,
    ) {
        for block in content.iter().flat_map(|content| content.items()) {
            let block_object = block.object();
            let kind = block_object.get_text("type").unwrap_or_default();
            if !matches!(kind.as_ref(), "tool_use" | "server_tool_use" | "mcp_tool_use") {
                continue;
            }
            let id = block_object.get_text("id").unwrap_or_default().into_owned();
            let name = block_object.get_text("name").unwrap_or_default().into_owned();
            let input = block_object.get("input").map(|input| input.object());
            let span = span_of(row, block);
            let path = input.as_ref().and_then(path_in);
            out.push(Item::Call(Call {
                session: session.clone(),
                span,
                at: row.at,
                key: ContentKey::of(&[b"tool_use", id.as_bytes()]),
                inherited: row.inherited,
                call_id: id.clone(),
                name: name.as_str().into(),
                kind: kind_of(&name),
                title: input.as_ref().map(title_of).unwrap_or_default(),
                parent: None,
                message: Some(message),
                model: model.clone(),
            }));
            let read = input.as_ref().filter(|_| name == "Bash").and_then(read_command);
            let read = read.map(|command| (command, row.object.get_text("cwd").map(|cwd| cwd.into_owned())));
            let lines = input.as_ref().filter(|_| name == "Write").and_then(written_lines);
            let entry = Entry { id, offset: span.offset, name, path, lines, read };
            let early = self.early.iter().position(|early| early.id == entry.id);
            if let Some(mut early) = early.and_then(|at| self.early.remove(at)) {
                if early.answer.ok && early.answer.touched.is_empty() {
                    early.answer.touched = touched(&entry.name, None);
                }
                emit_result(session, &entry, early.answer, out);
                continue;
            }
            if self.open.len() >= OPEN {
                self.open.pop_front();
            }
            self.open.push_back(entry);
        }
    }

    /// The `tool_result` blocks of a user row. False when none of them answers a call of this file. `folder` is the session
    /// whose folder has the outputs that were kept apart.
    pub fn results(
        &mut self,
        session: &Arc<str>,
        folder: &str,
        row: &Row<'_>,
        content: Option<Json<'_>>,
        out: &mut Vec<Item>,
    ) -> bool {
        let detail = row.object.get("toolUseResult");
        let structured = detail.filter(|detail| detail.is_object()).map(Json::object);
        let structured = structured.as_ref();
        let mut matched = false;
        for block in content.iter().flat_map(|content| content.items()) {
            let object = block.object();
            if object.get_text("type").is_none_or(|kind| kind != "tool_result") {
                continue;
            }
            let id = object.get_text("tool_use_id").unwrap_or_default();
            let ok = object.get("is_error").and_then(Json::boolean) != Some(true);
            let span = span_of(row, block);
            let entry = self.open.iter().rposition(|entry| *entry.id == *id);
            let entry = entry.and_then(|at| self.open.remove(at));
            let tool = entry.as_ref().map_or_else(|| tool_of(structured), |entry| entry.name.as_str());
            let answer = Answered {
                block: span,
                detail: detail.map(|detail| span_of(row, detail)),
                at: row.at,
                ok,
                outcome: CallOutcome::read(&object, structured, ok).or_by_id(folder, &id, &object),
                touched: match entry.as_ref().and_then(|entry| entry.read.as_ref()) {
                    _ if !ok => Vec::new(),
                    Some((command, folder)) => {
                        let work = printed_read(command, structured, folder.as_deref()).into_iter();
                        work.map(Touched::of).collect()
                    }
                    None => touched(tool, structured),
                },
            };
            match entry {
                Some(entry) => {
                    matched = true;
                    emit_result(session, &entry, answer, out);
                }
                None => {
                    if self.early.len() >= EARLY {
                        self.early.pop_front();
                    }
                    self.early.push_back(Early { id: id.into_owned(), answer });
                }
            }
        }
        matched
    }
}

/// Emits what a result adds to its call.
fn emit_result(session: &Arc<str>, entry: &Entry, answer: Answered, out: &mut Vec<Item>) {
    let Answered { block, detail, at, ok, outcome, touched } = answer;
    out.push(Item::Result(CallResult {
        session: session.clone(),
        call: entry.offset,
        output: Some(block),
        detail,
        at,
        ok: Some(ok),
        exit_code: outcome.exit_code.filter(|_| entry.name == "Bash"),
        duration_ms: outcome.duration_ms,
        full: outcome.full,
    }));
    if let Some(agent) = outcome.agent {
        out.push(Item::Link(Link {
            session: session.clone(),
            other: format!("agent-{agent}"),
            kind: LinkKind::SubAgent,
            position: Some(entry.id.clone()),
        }));
    }
    for touch in touched {
        if let Some(path) = touch.path.or_else(|| entry.path.clone()) {
            let (session, call) = (session.clone(), entry.offset);
            let Touched { operation, before, mut after, .. } = touch;
            if before.is_none() && entry.name == "Write" {
                after = after.or(entry.lines.map(|end| Range { start: 1, end }));
            }
            out.push(Item::Touch(Touch { session, call, path, operation, before, after }));
        }
    }
}

/// What a result says besides its text.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CallOutcome {
    /// Meant only where the tool is a shell.
    exit_code: Option<i64>,
    duration_ms: Option<u64>,
    full: Option<String>,
    agent: Option<String>,
}

impl CallOutcome {
    fn read(block: &Object<'_>, detail: Option<&Object<'_>>, ok: bool) -> CallOutcome {
        let head = block.get("content").map(first_text).unwrap_or_default();
        let exit_code = exit_code(&head, detail, ok);
        let mut outcome = CallOutcome { exit_code, full: persisted(&head), ..CallOutcome::default() };
        let Some(detail) = detail else { return outcome };
        let number = |name: &str| {
            detail.get(name).and_then(|value| std::str::from_utf8(value.bytes()).ok()?.parse::<f64>().ok())
        };
        let millis =
            number("durationMs").or(number("totalDurationMs")).or(number("durationSeconds").map(|s| s * 1e3));
        outcome.duration_ms =
            millis.filter(|millis| *millis >= 0.0 && *millis < 1e12).map(|millis| millis as u64);
        let path = detail.get_text("persistedOutputPath");
        outcome.full = outcome.full.or_else(|| path.and_then(|path| full_stream_key(&path)));
        outcome.agent = detail.get_text("agentId").map(|agent| agent.into_owned());
        outcome
    }

    /// An output that looks cut, or is long, may be kept apart under the id of its call, whether or not a marker says so.
    fn or_by_id(mut self, folder: &str, id: &str, block: &Object<'_>) -> CallOutcome {
        let plain =
            !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        if self.full.is_none() && plain {
            let content = block.get("content");
            let long = content.is_some_and(|content| content.bytes().len() >= LONG_OUTPUT);
            let head = content.map(first_text).unwrap_or_default();
            if long || CUT_MARKS.iter().any(|mark| head.contains(mark)) {
                self.full = Some(format!("tool_results_full/{folder}/{id}.txt"));
            }
        }
        self
    }
}

/// Failed commands begin with their code; what the client calls no error ended with 0, or it says otherwise.
fn exit_code(head: &str, detail: Option<&Object<'_>>, ok: bool) -> Option<i64> {
    if !ok {
        let rest = head.trim_start().strip_prefix("Error: ").unwrap_or(head.trim_start());
        let digits = rest.strip_prefix("Exit code ")?;
        return digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    }
    let unclear = detail.is_some_and(|detail| {
        detail.get("backgroundTaskId").is_some()
            || detail.get("returnCodeInterpretation").is_some()
            || detail.get("interrupted").and_then(Json::boolean) == Some(true)
    });
    (!unclear).then_some(0)
}

/// The file named in a `<persisted-output>` marker, or in the sentence about an output that was too long.
fn persisted(head: &str) -> Option<String> {
    let (_, rest) = head.split_once("saved to: ").or_else(|| head.split_once("saved to "))?;
    let line = rest.lines().next()?.trim();
    // Without a marker, the sentence continues after the path.
    let end = line.split_once("tool-results").map_or(line.len(), |(before, after)| {
        let name = after.find([' ', '"', '`', ')']).unwrap_or(after.len());
        before.len() + "tool-results".len() + name
    });
    full_stream_key(line[..end].trim_end_matches(['.', ',']))
}

fn full_stream_key(path: &str) -> Option<String> {
    full_result_key(path).map(|key| format!("tool_results_full/{key}"))
}

fn first_text(content: Json<'_>) -> String {
    if content.is_string() {
        return content.head(4_000);
    }
    content.items().find_map(|part| part.get("text")).map(|text| text.head(4_000)).unwrap_or_default()
}

/// Where a piece of a row is in the file.
fn span_of(row: &Row<'_>, piece: Json<'_>) -> Span {
    let within = piece.bytes().as_ptr() as usize - row.object.bytes().as_ptr() as usize;
    Span { offset: row.span.offset + within as u64, length: piece.bytes().len() as u64 }
}

fn kind_of(name: &str) -> CallKind {
    match name {
        "Bash" | "BashOutput" | "KillShell" | "PowerShell" => CallKind::Shell,
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => CallKind::Edit,
        "Read" | "NotebookRead" | "LS" => CallKind::Read,
        "Grep" | "Glob" | "ToolSearch" => CallKind::Search,
        "WebSearch" | "WebFetch" => CallKind::Web,
        "Task" | "Agent" | "SendMessage" => CallKind::Agent,
        _ if name.starts_with("mcp__") => CallKind::Mcp,
        _ => CallKind::Function,
    }
}

/// The word of the input that says most.
fn title_of(input: &Object<'_>) -> String {
    let is_distinctive =
        ["command", "file_path", "notebook_path", "pattern", "query", "url", "description", "skill", "path"];
    let word = is_distinctive.iter().find_map(|name| input.get(name).filter(|value| value.is_string()));
    match word {
        Some(word) => in_a_line(&word.head(2_000)),
        None => in_a_line(&String::from_utf8_lossy(&input.bytes()[..input.bytes().len().min(400)])),
    }
}

fn written_lines(input: &Object<'_>) -> Option<u32> {
    let count = input.get_text("content")?.lines().count();
    u32::try_from(count).ok().filter(|count| *count > 0)
}

fn path_in(input: &Object<'_>) -> Option<String> {
    let path = input.get_text("file_path").or_else(|| input.get_text("notebook_path"))?;
    Some(path.into_owned())
}

/// The tool that a structured result is of, as far as files go.
fn tool_of(detail: Option<&Object<'_>>) -> &'static str {
    let Some(detail) = detail else { return "" };
    if detail.get("file").is_some() {
        "Read"
    } else if detail.get("notebook_path").is_some() {
        "NotebookEdit"
    } else if detail.get("structuredPatch").is_some() {
        if detail.get("type").is_some() { "Write" } else { "Edit" }
    } else {
        ""
    }
}

/// Files that a successful call read or changed, with the lines that the client recorded.
fn touched(tool: &str, detail: Option<&Object<'_>>) -> Vec<Touched> {
    let reported = |name: &str| detail.and_then(|detail| detail.get_text(name)).map(|path| path.into_owned());
    let one = |path, operation, after| vec![Touched { path, operation, before: None, after }];
    match tool {
        "Read" => {
            let file = detail.and_then(|detail| detail.get("file")).map(|file| file.object());
            let path = file.as_ref().and_then(|file| file.get_text("filePath")).map(|path| path.into_owned());
            let lines = file.as_ref().and_then(|file| {
                let (start, count) = (file.get_integer("startLine")?, file.get_integer("numLines")?);
                range(start, count)
            });
            one(path, Operation::Read, lines)
        }
        "Edit" | "MultiEdit" | "Write" => {
            let path = reported("filePath");
            let created = reported("type").is_some_and(|kind| kind == "create");
            if tool == "Write" && (created || detail.is_none()) {
                let content = detail.and_then(|detail| detail.get_text("content"));
                let lines = content.and_then(|content| range(1, content.lines().count() as i64));
                let operation = if created { Operation::Create } else { Operation::Update };
                return one(path, operation, lines);
            }
            let hunks: Vec<_> = detail
                .iter()
                .filter_map(|detail| detail.get("structuredPatch"))
                .flat_map(|patch| patch.items())
                .filter_map(|hunk| changed_lines(&hunk.object()))
                .collect();
            if hunks.is_empty() {
                return one(path, Operation::Update, None);
            }
            let operation = Operation::Update;
            let hunks = hunks.into_iter();
            hunks.map(|(before, after)| Touched { path: path.clone(), operation, before, after }).collect()
        }
        "NotebookEdit" => one(reported("notebook_path"), Operation::Update, None),
        _ => Vec::new(),
    }
}

/// First and last line.
type Ends = (i64, i64);

/// The lines that a hunk takes out and puts in, without the context around them.
fn changed_lines(hunk: &Object<'_>) -> Option<(Option<Range>, Option<Range>)> {
    let (mut old, mut new) = (hunk.get_integer("oldStart")?, hunk.get_integer("newStart")?);
    let (mut before, mut after): (Option<Ends>, Option<Ends>) = (None, None);
    for line in hunk.get("lines")?.items() {
        match line.inner().and_then(|line| line.first()) {
            Some(b'-') => {
                before = Some((before.map_or(old, |(first, _)| first), old));
                old += 1;
            }
            Some(b'+') => {
                after = Some((after.map_or(new, |(first, _)| first), new));
                new += 1;
            }
            // A note that the file has no newline at its end is no line of it.
            Some(b'\\') => {}
            _ => {
                old += 1;
                new += 1;
            }
        }
    }
    let lines = |ends: Option<Ends>| ends.and_then(|(first, last)| range(first, last - first + 1));
    Some((lines(before), lines(after)))
}

fn range(start: i64, count: i64) -> Option<Range> {
    let end = start.checked_add(count)?.checked_sub(1)?;
    if start < 1 || end < start {
        return None;
    }
    Some(Range { start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
}

#[cfg(test)]
mod tests {
    use super::{changed_lines, exit_code, persisted};
    use crate::json::Json;
    use annals_core::Range;

    #[test]
    fn hunks_are_narrowed_to_what_changed() {
        let hunk = r#"{"oldStart":3,"oldLines":4,"newStart":3,"newLines":5,"lines":[" a","-b","+B","+C"," d"," e"]}"#;
        let lines = changed_lines(&Json::parse(hunk.as_bytes()).unwrap().object()).unwrap();
        assert_eq!(lines, (Some(Range { start: 4, end: 4 }), Some(Range { start: 4, end: 5 })));
    }

    #[test]
    fn exits_are_read_where_they_are_told() {
        assert_eq!(exit_code("Exit code 127\nnot found", None, false), Some(127));
        assert_eq!(exit_code("Error: Exit code 2", None, false), Some(2));
        assert_eq!(exit_code("The user doesn't want to proceed", None, false), None);
        assert_eq!(exit_code("fine", None, true), Some(0));
        let background = Json::parse(br#"{"backgroundTaskId":"b1"}"#).unwrap().object();
        assert_eq!(exit_code("", Some(&background), true), None);
    }

    #[test]
    fn the_whole_output_is_found_by_its_last_three_parts() {
        let marker = "<persisted-output>\nOutput too large. Full output saved to: /home/ada/.claude/projects/-x/S1/tool-results/b1.txt\n\nPreview";
        assert_eq!(persisted(marker).as_deref(), Some("tool_results_full/S1/b1.txt"));
        assert_eq!(persisted("saved to: /tmp/x"), None);
        let sentence = "Error: result exceeds maximum allowed tokens. Output has been saved to /home/ada/.claude/projects/-x/S1/tool-results/mcp-1.txt. Read it.";
        assert_eq!(persisted(sentence).as_deref(), Some("tool_results_full/S1/mcp-1.txt"));
    }
}
