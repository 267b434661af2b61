//! What tool calls did to files: from structured results if there are any, otherwise from the call itself.

use super::blocks;
use super::replace::replaced;
use crate::json::{Json, Line, Object, Scan};
use crate::tape::diff::{Change, Changes};
use crate::tape::shell_read::{is_read, shell_read};
use crate::{CallLines, Printed, Recorder, Snapshot, TapeForm};
use annals_core::{Block, FileRegion, FileWork, Operation};

pub struct ClaudeTape;

const FORM: TapeForm = TapeForm {
    format: "claude-jsonl",
    harness: "claude-code",
    vendor: "anthropic",
    flag: "claude",
    lines_reader: "transcript",
    document_reader: None,
};

impl Recorder for ClaudeTape {
    fn form(&self) -> &'static TapeForm {
        &FORM
    }

    fn name_of(&self, line: &[u8]) -> Option<String> {
        let row = Json::parse(line)?;
        let session = row.get_text("sessionId").filter(|id| !id.is_empty())?;
        let sidechain = row.get("isSidechain").and_then(Json::boolean) == Some(true);
        match row.get_text("agentId").filter(|_| sidechain) {
            // Where sub-agents have files of their own, they are below their session.
            Some(agent) => Some(format!("{session}/subagents/agent-{agent}.jsonl")),
            None => Some(format!("{session}.jsonl")),
        }
    }

    fn folder(&self, line: &[u8]) -> Option<String> {
        Json::parse(line)?.get_text("cwd").filter(|cwd| !cwd.is_empty()).map(|cwd| cwd.into_owned())
    }

    fn missing(&self, line: &[u8]) -> Option<&'static str> {
        let row = Json::parse(line)?;
        let kind = row.get_text("type").unwrap_or_default();
        if !matches!(kind.as_ref(), "user" | "assistant") {
            return None;
        }
        for name in ["uuid", "sessionId", "timestamp", "message"] {
            if row.get(name).is_none() {
                return Some(name);
            }
        }
        let Some(content) = row.get("message").and_then(|message| message.get("content")) else {
            return Some("message.content");
        };
        content.items().find_map(|block| {
            let needed: &[(&str, &'static str)] = match block.get_text("type").unwrap_or_default().as_ref() {
                "tool_use" => {
                    &[("id", "tool_use.id"), ("name", "tool_use.name"), ("input", "tool_use.input")]
                }
                "tool_result" => &[("tool_use_id", "tool_result.tool_use_id")],
                "text" => &[("text", "text.text")],
                _ => &[],
            };
            needed.iter().find(|(name, _)| block.get(name).is_none()).map(|(_, field)| *field)
        })
    }

    fn arguments(&self, call: &[u8]) -> String {
        let input = Json::parse(call).and_then(|call| call.get("input"));
        input.map(|input| String::from_utf8_lossy(input.bytes()).into_owned()).unwrap_or_default()
    }

    fn printed(&self, lines: &CallLines<'_>) -> Printed {
        let detail = structured(lines.detail);
        if let Some(detail) = detail.as_ref().filter(|detail| detail.get("stdout").is_some()) {
            let text = |name: &str| detail.get_text(name).unwrap_or_default().into_owned();
            return Printed { stdout: text("stdout"), stderr: text("stderr") };
        }
        Printed { stdout: lines.output.map(output_text).unwrap_or_default(), stderr: String::new() }
    }

    fn work(&self, lines: &CallLines<'_>) -> Vec<FileWork> {
        let call = Json::parse(lines.call).map(Json::object);
        let name = call.as_ref().and_then(|call| call.get_text("name")).unwrap_or_default();
        let input = call.as_ref().and_then(|call| call.get("input")).map(Json::object);
        let Some(input) = input else { return Vec::new() };
        let detail = structured(lines.detail);
        let path = input.get_text("file_path").or_else(|| input.get_text("notebook_path"));
        let reported = detail.as_ref().and_then(|detail| detail.get_text("filePath"));
        let path = reported.or(path).map(|path| path.into_owned());
        match (name.as_ref(), path) {
            ("Read", Some(path)) => read_work(path, &input, detail.as_ref(), lines.output),
            ("Edit", Some(path)) => {
                let given = |name: &str| input.get_text(name).map(|text| text.into_owned());
                let (old, new) = (given("old_string"), given("new_string"));
                with_given(edit_work(path, &input, detail.as_ref()), old.as_deref(), new.as_deref())
            }
            ("MultiEdit", Some(path)) => edits_work(path, &input, detail.as_ref()),
            ("Write", Some(path)) => {
                let content = input.get_text("content");
                with_given(write_work(path, &input, detail.as_ref()), None, content.as_deref())
            }
            ("NotebookEdit", Some(path)) => notebook_work(path, &input, detail.as_ref()),
            ("Bash", _) => bash_work(&input, detail.as_ref(), lines.folder),
            _ => Vec::new(),
        }
    }

    fn written(&self, call: Line<'_>) -> Vec<String> {
        let Some(call) = call.json().map(Json::object) else { return Vec::new() };
        let Some(input) = call.get("input").map(Json::object) else { return Vec::new() };
        texts_put_in(call.get_text("name").unwrap_or_default().as_ref(), &input)
    }

    /// An edit within a line has only a part of it; the patch in the result has the whole.
    fn written_besides(&self, detail: Line<'_>) -> Vec<String> {
        let detail = detail.json().filter(|detail| detail.is_object()).map(Json::object);
        let Some(detail) = detail else { return Vec::new() };
        let Some(patch) = detail.get("structuredPatch") else { return Vec::new() };
        let put_in = match (detail.get_text("newString"), detail.get("edits")) {
            (Some(text), _) => vec![text.into_owned()],
            (None, Some(edits)) => new_strings(edits),
            // A written file is whole.
            (None, None) => return Vec::new(),
        };
        let is_known = |line: &str| put_in.iter().any(|text| text.lines().any(|known| known == line));
        let added = patch.items().filter_map(|hunk| hunk.get("lines")).flat_map(|lines| {
            lines.items().filter_map(Json::text).filter(|line| line.starts_with('+')).collect::<Vec<_>>()
        });
        added.map(|line| line[1..].to_owned()).filter(|line| !is_known(line)).collect()
    }

    fn snapshot(&self, path: &str) -> Option<Snapshot> {
        let key = path.strip_prefix("file-history/")?;
        let (session, _) = key.split_once('/')?;
        Some(Snapshot { session: session.to_owned(), stream: "file_snapshots", key: key.to_owned() })
    }

    fn unnumbered<'l>(&self, line: &'l str) -> &'l str {
        numbered_line(line).map_or(line, |(_, text)| text)
    }
}

fn structured(detail: Option<&[u8]>) -> Option<Object<'_>> {
    Json::parse(detail?).filter(|detail| detail.is_object()).map(Json::object)
}

fn output_text(block: &[u8]) -> String {
    let output = blocks::blocks(&[Scan::new(block).line()]).into_iter().find_map(|block| match block {
        Block::ToolResult { output, .. } => Some(output),
        _ => None,
    });
    output.unwrap_or_default()
}

fn texts_put_in(tool: &str, input: &Object<'_>) -> Vec<String> {
    let text = |name: &str| input.get_text(name).map(|text| text.into_owned()).into_iter().collect();
    match tool {
        "Edit" => text("new_string"),
        "MultiEdit" => input.get("edits").map(new_strings).unwrap_or_default(),
        "Write" => text("content"),
        "NotebookEdit" => text("new_source"),
        _ => Vec::new(),
    }
}

fn new_strings(edits: Json<'_>) -> Vec<String> {
    edits.items().filter_map(|edit| edit.get_text("new_string").map(|text| text.into_owned())).collect()
}

/// The lines that really came, without the numbers that the client put before them.
fn read_work(
    path: String,
    input: &Object<'_>,
    detail: Option<&Object<'_>>,
    output: Option<&[u8]>,
) -> Vec<FileWork> {
    let mut work = FileWork::new(path, Operation::Read);
    let file = detail.and_then(|detail| detail.get("file")).map(Json::object);
    let reported = file.as_ref().and_then(|file| {
        // A read from line 0, or from before it, is one from the start.
        let start = u32::try_from(file.get_integer("startLine")?.max(1)).ok()?;
        Some(FileRegion::lines(start, file.get_text("content")?.into_owned()))
    });
    work.after = match (reported, detail, output) {
        (Some(piece), _, _) => piece,
        // A picture, or a file that had not changed.
        (None, Some(_), _) | (None, None, None) => return Vec::new(),
        (None, None, Some(block)) => match unnumbered_text(&output_text(block)) {
            Some((start, text)) => FileRegion::lines(start, text),
            None => return Vec::new(),
        },
    };
    // The requested part starts there: anything else is not the file's text.
    let requested =
        input.get_integer("offset").and_then(|offset| u32::try_from(offset).ok()).unwrap_or(1).max(1);
    work.after.range.filter(|range| range.start == requested).map(|_| work).into_iter().collect()
}

/// `   12→text`, or `12<tab>text` since 2.1.197.
fn numbered_line(line: &str) -> Option<(u32, &str)> {
    let digits = line.trim_start_matches(' ');
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).filter(|end| *end > 0)?;
    let rest = digits[end..].strip_prefix('→').or_else(|| digits[end..].strip_prefix('\t'))?;
    Some((digits[..end].parse().ok()?, rest))
}

/// The numbered lines that an output begins with: the first number, and their text.
fn unnumbered_text(output: &str) -> Option<(u32, String)> {
    let mut text = String::new();
    let (start, _) = numbered_line(output.lines().next()?)?;
    let mut last = "";
    for (line, expected) in output.lines().zip(start..) {
        let Some((_, line)) = numbered_line(line).filter(|(number, _)| *number == expected) else { break };
        text.push_str(line);
        text.push('\n');
        last = line;
    }
    // The place behind the last newline is shown as a line of its own.
    if last.is_empty() && text.len() > 1 {
        text.pop();
    }
    Some((start, text))
}

fn edit_work(path: String, input: &Object<'_>, detail: Option<&Object<'_>>) -> Vec<FileWork> {
    let work = FileWork::new(path, Operation::Update);
    let texts = detail.map(|detail| {
        let before = detail.get_text("originalFile").map(|text| text.into_owned());
        let given = |name: &str, requested: &str| {
            detail.get_text(name).or_else(|| input.get_text(requested)).unwrap_or_default().into_owned()
        };
        let (old, new) = (given("oldString", "old_string"), given("newString", "new_string"));
        let all = detail.get("replaceAll").and_then(Json::boolean) == Some(true);
        let after = before.clone().and_then(|mut file| replaced(&mut file, &old, &new, all).map(|_| file));
        FileTexts { before, after, old, new }
    });
    let hunks = detail.zip(texts).and_then(|(detail, texts)| Some((patched(detail, &texts)?, texts.after)));
    if let Some((places, whole)) = hunks.filter(|(places, _)| !places.is_empty()) {
        return with_whole(places.into_iter().map(|place| place.of(&work)).collect(), whole);
    }
    let piece = |name: &str| input.get_text(name).map(FileRegion::text).unwrap_or_default();
    vec![FileWork { before: piece("old_string"), after: piece("new_string"), ..work }]
}

/// One for each edit, at the lines where it was when its turn came.
fn edits_work(path: String, input: &Object<'_>, detail: Option<&Object<'_>>) -> Vec<FileWork> {
    let original = detail.and_then(|detail| detail.get_text("originalFileContents"));
    let mut file = original.map(|text| text.into_owned());
    let mut found = Vec::new();
    for edit in input.get("edits").iter().flat_map(|edits| edits.items()) {
        let text = |name: &str| edit.get_text(name).unwrap_or_default().into_owned();
        let (old, new) = (text("old_string"), text("new_string"));
        let all = edit.get("replace_all").and_then(Json::boolean) == Some(true);
        let places = file.as_mut().and_then(|file| replaced(file, &old, &new, all));
        if places.is_none() {
            file = None;
        }
        let places =
            places.unwrap_or_else(|| vec![(FileRegion::text(&*old), FileRegion::text(&*new))]).into_iter();
        let works = places.map(|(before, after)| FileWork {
            before,
            after,
            ..FileWork::new(path.clone(), Operation::Update)
        });
        found.extend(with_given(works.collect(), Some(&old), Some(&new)));
    }
    with_whole(found, file)
}

/// Adds the whole file after the call to its last place.
fn with_whole(mut works: Vec<FileWork>, whole: Option<String>) -> Vec<FileWork> {
    if let Some(last) = works.last_mut() {
        last.whole = whole;
    }
    works
}

/// Adds the texts of the call itself, which need not be whole lines.
fn with_given(mut works: Vec<FileWork>, before: Option<&str>, after: Option<&str>) -> Vec<FileWork> {
    for work in &mut works {
        work.before.given = before.map(str::to_owned);
        work.after.given = after.map(str::to_owned);
    }
    works
}

fn write_work(path: String, input: &Object<'_>, detail: Option<&Object<'_>>) -> Vec<FileWork> {
    let content = input.get_text("content").unwrap_or_default().into_owned();
    let updates = detail.and_then(|detail| detail.get_text("type")).is_some_and(|kind| kind == "update");
    let operation = if updates || detail.is_none() { Operation::Update } else { Operation::Create };
    let work = FileWork::new(path, operation);
    let places = detail.filter(|_| updates).and_then(|detail| {
        let before = detail.get_text("originalFile").map(|text| text.into_owned());
        let texts = FileTexts { before, after: Some(content.clone()), ..FileTexts::default() };
        patched(detail, &texts).filter(|places| !places.is_empty())
    });
    let works = match places {
        Some(places) => places.into_iter().map(|place| place.of(&work)).collect(),
        None => vec![FileWork { after: FileRegion::lines(1, content.clone()), ..work }],
    };
    with_whole(works, Some(content))
}

/// A cell has no lines of the file: its texts are emitted, its position is not.
fn notebook_work(path: String, input: &Object<'_>, detail: Option<&Object<'_>>) -> Vec<FileWork> {
    let failed = detail.and_then(|detail| detail.get_text("error")).is_some_and(|error| !error.is_empty());
    if failed {
        return Vec::new();
    }
    let mut work = FileWork::new(path, Operation::Update);
    let before = detail.and_then(|detail| detail.get_text("old_source"));
    work.before = before.map(FileRegion::text).unwrap_or_default();
    let deletes = input.get_text("edit_mode").is_some_and(|mode| mode == "delete");
    if !deletes {
        work.after = input.get_text("new_source").map(FileRegion::text).unwrap_or_default();
    }
    vec![work]
}

fn bash_work(input: &Object<'_>, detail: Option<&Object<'_>>, folder: Option<&str>) -> Vec<FileWork> {
    let command = read_command(input);
    command.and_then(|command| printed_read(&command, detail, folder)).into_iter().collect()
}

/// The command of a call that may prove to have read a file.
pub fn read_command(input: &Object<'_>) -> Option<String> {
    let is_awaited = input.get("run_in_background").and_then(Json::boolean) != Some(true);
    let command = input.get_text("command").filter(|command| is_awaited && is_read(command))?;
    Some(command.into_owned())
}

/// What a command read, by the client's record of what it printed.
pub fn printed_read(command: &str, detail: Option<&Object<'_>>, folder: Option<&str>) -> Option<FileWork> {
    // The text for the model is trimmed; only the record has what was printed, unless it was too long for it.
    let detail = detail?;
    let flag = |name: &str| detail.get(name).and_then(Json::boolean) == Some(true);
    let cut = detail.get("persistedOutputPath").is_some() || detail.get("backgroundTaskId").is_some();
    let printed = detail.get_text("stdout").unwrap_or_default();
    let is_whole = !cut
        && !flag("interrupted")
        && detail.get_text("stderr").is_none_or(|text| text.is_empty())
        && printed.len() < 30_000;
    shell_read(command, &printed, folder).filter(|_| is_whole)
}

/// What is known of a file's text before and after a change. The client writes its patch for the eye: leading tabs
/// are spaces there, and line ends are gone.
#[derive(Default)]
struct FileTexts {
    before: Option<String>,
    after: Option<String>,
    /// The texts that the call replaced and put in.
    old: String,
    new: String,
}

/// The changed places of a `structuredPatch`, in the file's own text where it is known; nothing when the result has
/// no patch.
fn patched(detail: &Object<'_>, texts: &FileTexts) -> Option<Vec<Change>> {
    let patch = detail.get("structuredPatch")?;
    let mut before = ExactLines::new(texts.before.as_deref(), &texts.old);
    let mut after = ExactLines::new(texts.after.as_deref(), &texts.new);
    let mut changes = Changes::default();
    for hunk in patch.items() {
        let start = |name: &str| hunk.get_integer(name).and_then(|line| u32::try_from(line).ok());
        let starts = start("oldStart").zip(start("newStart"));
        match starts {
            Some((old, new)) => changes.start(old, new),
            None => changes.start_anywhere(),
        }
        before.go_to(starts.map(|(old, _)| old));
        after.go_to(starts.map(|(_, new)| new));
        for line in hunk.get("lines").iter().flat_map(|lines| lines.items()) {
            let line = line.text().unwrap_or_default();
            let text = line.get(1..).unwrap_or_default();
            match line.as_bytes().first() {
                Some(b'-') => changes.removed(&before.next(text)),
                Some(b'+') => changes.added(&after.next(text)),
                Some(b'\\') => changes.without_newline(),
                _ => {
                    before.next(text);
                    changes.unchanged(&after.next(text));
                }
            }
        }
    }
    Some(changes.finish())
}

/// The lines of a text as they really are, found by their number and by what the patch shows of them.
struct ExactLines<'t> {
    file: Option<Vec<&'t str>>,
    at: Option<usize>,
    given: Vec<&'t str>,
    given_at: usize,
}

impl<'t> ExactLines<'t> {
    fn new(file: Option<&'t str>, given: &'t str) -> ExactLines<'t> {
        let file = file.map(|text| text.split_inclusive('\n').collect());
        ExactLines { file, at: None, given: given.lines().collect(), given_at: 0 }
    }

    fn go_to(&mut self, line: Option<u32>) {
        self.at = line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
    }

    /// The next line, which the patch shows as `shown`.
    fn next(&mut self, shown: &str) -> String {
        let is_shown = |line: &str| {
            line.trim_end_matches(['\r', '\n']).trim_start() == shown.trim_end_matches('\r').trim_start()
        };
        let line = self.at.and_then(|at| self.file.as_ref()?.get(at).copied());
        self.at = self.at.map(|at| at + 1);
        if let Some(line) = line.filter(|line| is_shown(line)) {
            return line.to_owned();
        }
        let rest = self.given.get(self.given_at..).unwrap_or_default();
        if let Some(found) = rest.iter().position(|line| is_shown(line)) {
            self.given_at += found + 1;
            let line = rest[found];
            // The first and the last line that a call gives may be parts of lines.
            let is_longer = line.len() - line.trim_start().len() >= shown.len() - shown.trim_start().len()
                || line.starts_with('\t');
            return format!("{}\n", if is_longer { line } else { shown });
        }
        format!("{shown}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_core::Range;

    fn work(call: &str, output: Option<&str>, detail: Option<&str>) -> Vec<FileWork> {
        let bytes = |text: Option<&'static str>| text.map(str::as_bytes);
        let _ = bytes;
        ClaudeTape.work(&CallLines {
            call: call.as_bytes(),
            output: output.map(str::as_bytes),
            detail: detail.map(str::as_bytes),
            folder: Some("/w"),
        })
    }

    #[test]
    fn reads_are_the_lines_that_came() {
        let call = r#"{"type":"tool_use","name":"Read","input":{"file_path":"/w/a.py","offset":5}}"#;
        let output =
            r#"{"type":"tool_result","content":"     5→one\n     6→  two\n     7→\n\n<system-reminder>9→x"}"#;
        let found = work(call, Some(output), None);
        assert_eq!(found[0].after, FileRegion::lines(5, "one\n  two\n".into()));
        assert_eq!(found[0].after.range, Some(Range { start: 5, end: 6 }));
        let detail = r#"{"type":"text","file":{"filePath":"/w/a.py","content":"one\n  two\n","numLines":3,"startLine":5,"totalLines":7}}"#;
        assert_eq!(work(call, Some(output), Some(detail)), found);
        let tabs = r#"{"type":"tool_result","content":"5\tone\n6\t  two\n7\t"}"#;
        assert_eq!(work(call, Some(tabs), None), found);
        let picture = r#"{"type":"image","file":{"base64":"AA"}}"#;
        assert_eq!(work(call, Some(output), Some(picture)), []);
    }

    fn given(text: &str, region: FileRegion) -> FileRegion {
        FileRegion { given: Some(text.to_owned()), ..region }
    }

    #[test]
    fn edits_take_their_lines_from_the_patch() {
        let call =
            r#"{"name":"Edit","input":{"file_path":"/w/a.py","old_string":"Hello","new_string":"Hi"}}"#;
        let detail = r#"{"filePath":"/w/a.py","oldString":"Hello","newString":"Hi","structuredPatch":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":[" x","-say Hello","+say Hi"]}]}"#;
        let found = work(call, None, Some(detail));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].after, given("Hi", FileRegion::lines(2, "say Hi\n".into())));
        assert_eq!(found[0].before, given("Hello", FileRegion::lines(2, "say Hello\n".into())));
        assert_eq!(work(call, None, None)[0].after, given("Hi", FileRegion::text("Hi")));
        assert_eq!(ClaudeTape.written_besides(Scan::new(detail.as_bytes()).line()), ["say Hi"]);
        assert_eq!(ClaudeTape.written(Scan::new(call.as_bytes()).line()), ["Hi"]);
    }

    #[test]
    fn lines_of_a_patch_have_their_tabs_and_ends() {
        let call = r#"{"name":"Edit","input":{"file_path":"/w/a.go","old_string":"\t\tb()","new_string":"\t\tc()\n\t\td()"}}"#;
        let patch = r#""structuredPatch":[{"oldStart":1,"oldLines":3,"newStart":1,"newLines":4,"lines":[" a {","-    b()","+    c()","+    d()"," }","\\ No newline at end of file"]}]"#;
        let detail = format!(
            r#"{{"filePath":"/w/a.go","oldString":"\t\tb()","newString":"\t\tc()\n\t\td()","originalFile":"a {{\n\t\tb()\n}}","replaceAll":false,{patch}}}"#
        );
        let found = work(call, None, Some(&detail));
        assert_eq!(found[0].before.text.as_deref(), Some("\t\tb()\n"));
        assert_eq!(found[0].after.text.as_deref(), Some("\t\tc()\n\t\td()\n"));
        // Without the file, the texts of the call have them.
        let bare = format!(
            r#"{{"filePath":"/w/a.go","oldString":"\t\tb()","newString":"\t\tc()\n\t\td()","originalFile":null,{patch}}}"#
        );
        assert_eq!(work(call, None, Some(&bare))[0].after.text, found[0].after.text);
        assert_eq!(work(call, None, Some(&bare))[0].before.text, found[0].before.text);
    }

    #[test]
    fn every_edit_of_many_is_told() {
        let call = r#"{"name":"MultiEdit","input":{"file_path":"/w/a","edits":[{"old_string":"b","new_string":"B\nC"},{"old_string":"d","new_string":"D"}]}}"#;
        let detail =
            r#"{"filePath":"/w/a","edits":[],"originalFileContents":"a\nb\nd\n","structuredPatch":[]}"#;
        let found = work(call, None, Some(detail));
        assert_eq!(found.len(), 2);
        assert_eq!(
            (&found[0].before, &found[0].after),
            (
                &given("b", FileRegion::lines(2, "b\n".into())),
                &given("B\nC", FileRegion::lines(2, "B\nC\n".into()))
            )
        );
        assert_eq!(
            (&found[1].before, &found[1].after),
            (
                &given("d", FileRegion::lines(4, "d\n".into())),
                &given("D", FileRegion::lines(4, "D\n".into()))
            )
        );
    }

    #[test]
    fn written_files_are_whole_or_their_changes() {
        let call = r#"{"name":"Write","input":{"file_path":"/w/a","content":"x\ny\n"}}"#;
        let created = r#"{"type":"create","filePath":"/w/a","content":"x\ny\n","structuredPatch":[]}"#;
        let found = work(call, None, Some(created));
        assert_eq!(
            (found[0].operation, &found[0].after),
            (Operation::Create, &given("x\ny\n", FileRegion::lines(1, "x\ny\n".into())))
        );
        let updated = r#"{"type":"update","filePath":"/w/a","content":"x\ny\n","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":2,"lines":[" x","+y"]}]}"#;
        let found = work(call, None, Some(updated));
        assert_eq!(
            (found[0].operation, &found[0].after),
            (Operation::Update, &given("x\ny\n", FileRegion::lines(2, "y\n".into())))
        );
    }
}
