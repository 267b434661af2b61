//! Pairs calls with their outputs, the client's records of commands, patches and scripts, and the touched files.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::outcome::{CommandOutcome, read_outcome};
use super::patch::{PatchChange, PatchedFile, find_patches, parse_patch, unified_diff_hunks};
use super::reads::{may_read, read_work, recorded_read};
use super::requests::{ToolRequest, command_of};
use super::rollout::RolloutLine;
use crate::home::folders::absolute;
use crate::home::title::in_a_line;
use crate::json::{Json, Object, unescape};
use annals_core::{Call, CallKind, CallResult, FileWork, Item, Operation, Range, Touch};

/// More calls than this without an answer are not a conversation; the oldest are let go as unanswered.
const OPEN: usize = 4096;
/// Records of a command may follow its output by a few lines.
const CLOSED: usize = 64;
/// How much of an output's two ends is looked at for its outcome.
const EDGE: usize = 4096;

/// How much of a script is remembered while it runs.
const SCRIPT: usize = 4096;

/// Session, whether the stretch may be a copy, and the model of the turn.
pub type Turn = (Arc<str>, bool, Option<Arc<str>>);

/// Calls that wait for their output, and those answered lately.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenCalls {
    open: VecDeque<Entry>,
    closed: VecDeque<Entry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    call_id: String,
    offset: u64,
    kind: CallKind,
    /// Files that a patch names, touched if it succeeds and the client does not say more itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    patched: Vec<(String, Operation, Option<Range>)>,
    #[serde(default)]
    touched: bool,
    /// Its request, when its output may prove that it read a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<ReadRequest>,
    /// What it read is known: from its output or from the client's record, whichever came first.
    #[serde(default)]
    was_read: bool,
    /// The worst exit code of commands that a script ran.
    #[serde(default)]
    inner_exit: Option<i64>,
    /// The start of a script's text, to tell which of two running scripts made a call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    script: String,
}

/// What is remembered of a request until its output comes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ReadRequest {
    name: String,
    kind: CallKind,
    body: String,
    folder: Option<String>,
}

impl ReadRequest {
    fn of(request: &ToolRequest, folder: Option<&str>) -> Option<ReadRequest> {
        may_read(request).then(|| ReadRequest {
            name: request.name.clone(),
            kind: request.kind,
            body: request.body.clone(),
            folder: folder.map(str::to_owned),
        })
    }

    fn work(self, output: &str) -> Option<FileWork> {
        let ReadRequest { name, kind, body, folder } = self;
        let request = ToolRequest { name, kind, title: String::new(), workdir: folder, body };
        read_work(&request, output, None)
    }
}

impl OpenCalls {
    pub fn call(
        &mut self,
        kind: &str,
        line: &RolloutLine<'_>,
        turn: Turn,
        cwd: Option<&str>,
        out: &mut Vec<Item>,
    ) {
        let payload = &line.payload;
        let call_id =
            payload.get_text("call_id").or_else(|| payload.get_text("id")).unwrap_or_default().into_owned();
        let request = ToolRequest::read(kind, payload);
        let patches: Vec<PatchedFile> = match request.kind {
            // What a script patches, the client records as calls of its own.
            CallKind::Script => Vec::new(),
            _ => find_patches(&request.body).iter().flat_map(|body| parse_patch(body)).collect(),
        };
        let call_kind = if patches.is_empty() { request.kind } else { CallKind::Edit };
        let script = match request.kind {
            CallKind::Script => request.body.chars().take(SCRIPT).collect(),
            _ => String::new(),
        };
        let workdir = request.workdir.as_deref().or(cwd);
        let patched = patches.iter().flat_map(|file| touches_of(file, workdir)).collect();
        let read = if patches.is_empty() { ReadRequest::of(&request, workdir) } else { None };
        let session = turn.0.clone();
        out.push(Item::Call(Call {
            session: turn.0,
            span: line.span,
            at: line.at,
            key: line.key,
            inherited: turn.1,
            call_id: call_id.clone(),
            name: request.name.into(),
            kind: call_kind,
            title: patch_title(&patches).unwrap_or(request.title),
            parent: None,
            message: None,
            model: turn.2,
        }));
        if kind == "web_search_call" || kind == "image_generation_call" {
            // The provider ran it; the item carries its own status and no output follows.
            out.push(Item::Result(CallResult {
                session,
                call: line.span.offset,
                output: None,
                detail: None,
                at: line.at,
                ok: payload.get_text("status").map(|status| status == "completed"),
                exit_code: None,
                duration_ms: None,
                full: None,
            }));
            return;
        }
        if self.open.len() >= OPEN {
            self.open.pop_front();
        }
        let offset = line.span.offset;
        self.open.push_back(Entry {
            call_id,
            offset,
            kind: call_kind,
            patched,
            touched: false,
            read,
            was_read: false,
            inner_exit: None,
            script,
        });
    }

    /// The output that the model saw.
    pub fn output(
        &mut self,
        session: &Arc<str>,
        line: &RolloutLine<'_>,
        inherited: bool,
        out: &mut Vec<Item>,
    ) {
        let call_id = line.payload.get_text("call_id").unwrap_or_default();
        let output = line.payload.get("output").or_else(|| line.payload.get("tools"));
        let mut outcome = output.map(outcome_of).unwrap_or_default();
        let Some(at) = self.open.iter().rposition(|entry| *entry.call_id == *call_id) else {
            self.orphan(session, line, call_id.into_owned(), outcome, inherited, out);
            return;
        };
        let Some(mut entry) = self.open.remove(at) else { return };
        if let Some(exit) = entry.inner_exit {
            outcome.exit_code = Some(exit);
            outcome.ok = Some(exit == 0 && outcome.ok != Some(false));
        }
        out.push(Item::Result(CallResult {
            session: session.clone(),
            call: entry.offset,
            output: Some(line.span),
            detail: None,
            at: line.at,
            ok: outcome.ok,
            exit_code: outcome.exit_code,
            duration_ms: outcome.duration_ms,
            full: None,
        }));
        if outcome.ok != Some(false)
            && !entry.was_read
            && let Some(read) = entry.read.take()
        {
            let work = read.work(&output.map(whole_text).unwrap_or_default());
            entry.was_read = work.is_some();
            out.extend(work.map(|work| touch_of(session, entry.offset, work)));
        }
        if outcome.ok == Some(true) && !entry.touched {
            entry.touched = !entry.patched.is_empty();
            for (path, operation, after) in std::mem::take(&mut entry.patched) {
                let call = entry.offset;
                out.push(Item::Touch(Touch {
                    session: session.clone(),
                    call,
                    path,
                    operation,
                    before: None,
                    after,
                }));
            }
        }
        self.close(entry);
    }

    /// A result without a call keeps a row of its own, so that its text can be found.
    fn orphan(
        &mut self,
        session: &Arc<str>,
        line: &RolloutLine<'_>,
        call_id: String,
        outcome: CommandOutcome,
        inherited: bool,
        out: &mut Vec<Item>,
    ) {
        out.push(Item::Call(Call {
            session: session.clone(),
            span: line.span,
            at: line.at,
            key: line.key,
            inherited,
            call_id,
            name: "unknown".into(),
            kind: CallKind::Orphan,
            title: String::new(),
            // Not an invocation of its own: nothing to count.
            parent: Some(line.span.offset),
            message: None,
            model: None,
        }));
        out.push(Item::Result(CallResult {
            session: session.clone(),
            call: line.span.offset,
            output: Some(line.span),
            detail: None,
            at: line.at,
            ok: outcome.ok,
            exit_code: outcome.exit_code,
            duration_ms: outcome.duration_ms,
            full: None,
        }));
    }

    /// `patch_apply_end`, `exec_command_end`, `mcp_tool_call_end`, `web_search_end`.
    pub fn ended(&mut self, kind: &str, session: &Arc<str>, line: &RolloutLine<'_>, out: &mut Vec<Item>) {
        let payload = &line.payload;
        let call_id = payload.get_text("call_id").unwrap_or_default().into_owned();
        let Some(entry) = self.find(&call_id) else { return };
        let call = entry.offset;
        let success = payload.get("success").and_then(Json::boolean).or_else(|| match kind {
            "mcp_tool_call_end" => payload.get("result").map(|result| result.get("Err").is_none()),
            _ => None,
        });
        let exit_code = payload.get_integer("exit_code");
        out.push(Item::Result(CallResult {
            session: session.clone(),
            call,
            output: None,
            detail: Some(line.span),
            at: line.at,
            ok: success.or(exit_code.map(|code| code == 0)),
            exit_code,
            duration_ms: duration(payload),
            full: None,
        }));
        if success == Some(true) && !entry.touched {
            entry.touched = true;
            changes(session, call, payload, out);
        }
        if exit_code == Some(0) && !entry.was_read {
            entry.was_read = reads(session, call, payload, out);
        }
    }

    /// An item of a paginated file: the client's own record of a command, patch or MCP call.
    pub fn item(
        &mut self,
        kind: &str,
        item: &Object<'_>,
        line: &RolloutLine<'_>,
        turn: Turn,
        out: &mut Vec<Item>,
    ) {
        if item.get_text("source").is_some_and(|source| source == "user_shell") {
            // The person's own command; the message that reports it to the model has the row.
            return;
        }
        let id = item.get_text("id").unwrap_or_default().into_owned();
        let exit_code = item.get_integer("exit_code");
        let ok = item.get_text("status").and_then(|status| match status.as_ref() {
            "completed" => Some(true),
            "failed" | "declined" => Some(false),
            _ => None,
        });
        let session = turn.0.clone();
        let (call, fresh) = match self.find(&id) {
            Some(entry) => {
                let is_change = kind == "FileChange";
                let fresh = if is_change { !entry.touched } else { !entry.was_read };
                entry.touched |= is_change;
                entry.was_read |= kind == "CommandExecution" && exit_code == Some(0);
                (entry.offset, fresh)
            }
            None => {
                self.inner_call(kind, item, id, line, turn, exit_code, out);
                (line.span.offset, true)
            }
        };
        out.push(Item::Result(CallResult {
            session: session.clone(),
            call,
            output: None,
            detail: Some(line.span),
            at: line.at,
            ok: exit_code.map(|code| code == 0).or(ok),
            exit_code,
            duration_ms: duration(item),
            full: None,
        }));
        if kind == "FileChange" && ok == Some(true) && fresh {
            changes(&session, call, item, out);
        }
        let has_ended_well = kind == "CommandExecution" && exit_code == Some(0);
        if has_ended_well && fresh && !reads(&session, call, item, out) {
            let folder = item.get_text("cwd");
            let folder = folder.as_deref().map(|folder| folder.strip_prefix("file://").unwrap_or(folder));
            out.extend(recorded_read(item, folder).map(|work| touch_of(&session, call, work)));
        }
    }

    /// A call that a script made: a row under the script's, not counted again.
    #[allow(clippy::too_many_arguments, reason = "one call site; a struct would only rename the arguments")]
    fn inner_call(
        &mut self,
        kind: &str,
        item: &Object<'_>,
        id: String,
        line: &RolloutLine<'_>,
        turn: Turn,
        exit_code: Option<i64>,
        out: &mut Vec<Item>,
    ) {
        let script = self.running_script(item);
        let parent = script.as_ref().map_or(line.span.offset, |script| script.offset);
        if let (Some(script), Some(code)) = (script, exit_code) {
            script.inner_exit = Some(script.inner_exit.filter(|before| *before != 0).unwrap_or(code));
        }
        let (name, call_kind, title) = match kind {
            "CommandExecution" => ("exec_command".to_owned(), CallKind::Shell, command_of(item)),
            "FileChange" => {
                let first = item.get("changes").and_then(|changes| changes.fields().next());
                let path = first.map(|(path, _)| unescape(path)).unwrap_or_default();
                ("apply_patch".to_owned(), CallKind::Edit, path)
            }
            _ => {
                let server = item.get_text("server").unwrap_or_default();
                let tool = item.get_text("tool").unwrap_or_default();
                (format!("mcp__{server}__{tool}"), CallKind::Mcp, tool.into_owned())
            }
        };
        out.push(Item::Call(Call {
            session: turn.0,
            span: line.span,
            at: line.at,
            key: line.key,
            inherited: turn.1,
            call_id: id,
            name: name.into(),
            kind: call_kind,
            title: in_a_line(&title),
            parent: Some(parent),
            message: None,
            model: turn.2,
        }));
    }

    /// The script that made a call: the one whose text names its command, else the one started last.
    fn running_script(&mut self, item: &Object<'_>) -> Option<&mut Entry> {
        let command = serde_json::to_string(&command_of(item)).unwrap_or_default();
        let command = command.trim_matches('"');
        let scripts =
            || self.open.iter().enumerate().rev().filter(|(_, entry)| entry.kind == CallKind::Script);
        let named = scripts().find(|(_, entry)| !command.is_empty() && entry.script.contains(command));
        let (at, _) = named.or_else(|| scripts().next())?;
        self.open.get_mut(at)
    }

    fn find(&mut self, call_id: &str) -> Option<&mut Entry> {
        if let Some(at) = self.open.iter().rposition(|entry| entry.call_id == call_id) {
            return self.open.get_mut(at);
        }
        self.closed.iter_mut().rev().find(|entry| entry.call_id == call_id)
    }

    fn close(&mut self, entry: Entry) {
        if self.closed.len() >= CLOSED {
            self.closed.pop_front();
        }
        self.closed.push_back(entry);
    }
}

/// An output is a string, or parts of which the first texts matter.
fn outcome_of(output: Json<'_>) -> CommandOutcome {
    if output.is_string() {
        return read_outcome(&output.head(EDGE), &output.tail(EDGE));
    }
    let first = output.items().find_map(|part| part.get("text"));
    first.map(|text| read_outcome(&text.head(EDGE), &text.tail(EDGE))).unwrap_or_default()
}

fn duration(record: &Object<'_>) -> Option<u64> {
    let duration = record.get("duration")?;
    let seconds = duration.get_integer("secs")?;
    let nanos = duration.get_integer("nanos").unwrap_or(0);
    u64::try_from(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000)).ok()
}

/// Files of a `changes` map, with the lines of each hunk.
fn changes(session: &Arc<str>, call: u64, record: &Object<'_>, out: &mut Vec<Item>) {
    let Some(changes) = record.get("changes") else { return };
    let mut touch = |path: &str, operation, before, after| {
        let path = path.to_owned();
        out.push(Item::Touch(Touch { session: session.clone(), call, path, operation, before, after }));
    };
    for (path, change) in changes.fields() {
        let path = unescape(path);
        let content_lines = || change.get_text("content").and_then(|content| all_lines(&content));
        match change.get_text("type").unwrap_or_default().as_ref() {
            "add" => touch(&path, Operation::Create, None, content_lines()),
            "delete" => touch(&path, Operation::Delete, content_lines(), None),
            _ => {
                let moved = change.get_text("move_path");
                let target = moved.as_deref().unwrap_or(&path);
                if moved.is_some() {
                    touch(&path, Operation::MoveFrom, None, None);
                    touch(target, Operation::MoveTo, None, None);
                }
                let diff = change.get_text("unified_diff").unwrap_or_default();
                let hunks = unified_diff_hunks(&diff);
                for hunk in &hunks {
                    let range =
                        |range: super::patch::PatchRange| Range { start: range.start, end: range.end };
                    touch(target, Operation::Update, hunk.before.map(range), hunk.after.map(range));
                }
                if hunks.is_empty() && moved.is_none() {
                    touch(target, Operation::Update, None, None);
                }
            }
        }
    }
}

fn all_lines(content: &str) -> Option<Range> {
    let lines = u32::try_from(content.lines().count()).ok().filter(|lines| *lines > 0)?;
    Some(Range { start: 1, end: lines })
}

/// An output as it is: a string, or the texts of its parts.
fn whole_text(output: Json<'_>) -> String {
    match output.text() {
        Some(text) => text.into_owned(),
        None => output.items().filter_map(|part| part.get_text("text")).collect::<Vec<_>>().join("\n"),
    }
}

fn touch_of(session: &Arc<str>, call: u64, work: FileWork) -> Item {
    Item::Touch(Touch {
        session: session.clone(),
        call,
        path: work.path,
        operation: work.operation,
        before: None,
        after: work.after.range,
    })
}

/// Files that the client saw a command read; false when it saw none.
fn reads(session: &Arc<str>, call: u64, record: &Object<'_>, out: &mut Vec<Item>) -> bool {
    let Some(parsed) = record.get("parsed_cmd") else { return false };
    let before = out.len();
    let cwd = record.get_text("cwd").map(|cwd| cwd.strip_prefix("file://").unwrap_or(&cwd).to_owned());
    for command in
        parsed.items().filter(|command| command.get_text("type").is_some_and(|kind| kind == "read"))
    {
        let Some(path) = command.get_text("path").or_else(|| command.get_text("name")) else { continue };
        let path = absolute(&path, cwd.as_deref());
        let session = session.clone();
        out.push(Item::Touch(Touch {
            session,
            call,
            path,
            operation: Operation::Read,
            before: None,
            after: None,
        }));
    }
    out.len() > before
}

/// What a patch's own text says of one file.
fn touches_of(file: &PatchedFile, cwd: Option<&str>) -> Vec<(String, Operation, Option<Range>)> {
    let path = absolute(&file.path, cwd);
    let after = file.hunks.first().and_then(|hunk| hunk.after);
    let after = after.map(|range| Range { start: range.start, end: range.end });
    match (file.change, &file.moved_to) {
        (PatchChange::Add, _) => vec![(path, Operation::Create, after)],
        (PatchChange::Delete, _) => vec![(path, Operation::Delete, None)],
        (PatchChange::Update, None) => vec![(path, Operation::Update, None)],
        (PatchChange::Update, Some(target)) => {
            vec![(path, Operation::MoveFrom, None), (absolute(target, cwd), Operation::MoveTo, None)]
        }
    }
}

/// The files of a patch say more than the command around it.
fn patch_title(patches: &[PatchedFile]) -> Option<String> {
    let first = in_a_line(&patches.first()?.path);
    match patches.len() {
        1 => Some(first),
        many => Some(format!("{first} and {} more", many - 1)),
    }
}
