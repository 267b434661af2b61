//! What tool calls did to files: from the client's record of an edit if there is one, otherwise from the call itself.

use crate::home::folders::absolute;
use crate::json::{Json, Object};
use crate::tape::diff::{Change, between};
use crate::tape::shell_read::shell_read;
use crate::tape::unified::unified_diff_changes;
use annals_core::{FileRegion, FileWork, Operation};

/// Characters of a line after which the client cuts it.
const LONGEST_LINE: usize = 2_000;

/// A tool call with its result.
pub(super) struct FileCall<'a> {
    pub name: &'a str,
    pub input: &'a Object<'a>,
    /// The client's record of the result.
    pub metadata: Option<Json<'a>>,
    /// The text for the model.
    pub output: Option<&'a str>,
    /// Where relative paths start.
    pub folder: Option<&'a str>,
}

impl FileCall<'_> {
    /// What a successful call did to files, or read from them; empty if that cannot be proven.
    pub fn work(&self) -> Vec<FileWork> {
        match (self.name, self.path()) {
            ("edit", Some(path)) => self.edited(path),
            ("write", Some(path)) => self.written(path).into_iter().collect(),
            ("apply_patch", _) => self.patched(),
            ("read", Some(path)) => self.read(path).into_iter().collect(),
            ("bash" | "shell", _) => self.printed().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The same, with files of which only the name is known.
    pub fn touched(&self) -> Vec<FileWork> {
        let work = self.work();
        let operation = match self.name {
            "edit" | "multiedit" | "write" => Operation::Update,
            "read" => Operation::Read,
            _ => return work,
        };
        match self.path() {
            Some(path) if work.is_empty() => vec![FileWork::new(path, operation)],
            _ => work,
        }
    }

    fn path(&self) -> Option<String> {
        let path = self.input.get_text("filePath").or_else(|| self.input.get_text("path"))?;
        Some(absolute(&path, self.folder)).filter(|path| !path.is_empty())
    }

    fn edited(&self, path: String) -> Vec<FileWork> {
        let work = FileWork::new(path, Operation::Update);
        let given = |name: &str| self.input.get_text(name).map(|text| text.into_owned());
        let (old, new) = (given("oldString"), given("newString"));
        let record = self.metadata.and_then(|metadata| metadata.get("filediff"));
        let diff = self.metadata.and_then(|metadata| metadata.get_text("diff"));
        let mut found = match changes_of(record, diff.as_deref()) {
            changes if changes.is_empty() => {
                let region = |text: &Option<String>| {
                    text.as_ref().filter(|text| !text.is_empty()).map(FileRegion::text).unwrap_or_default()
                };
                vec![FileWork { before: region(&old), after: region(&new), ..work }]
            }
            changes => changes.into_iter().map(|change| change.of(&work)).collect(),
        };
        if let [one] = found.as_mut_slice() {
            (one.before.given, one.after.given) = (old, new);
        }
        found
    }

    /// There is no diff: what was there before is known only of a new file.
    fn written(&self, path: String) -> Option<FileWork> {
        let content = self.input.get_text("content")?.into_owned();
        let existed = self.metadata.and_then(|metadata| metadata.get("exists")).and_then(Json::boolean);
        let operation = if existed == Some(false) { Operation::Create } else { Operation::Update };
        let mut work = FileWork::new(path, operation);
        work.after = FileRegion::lines(1, content.clone());
        work.after.given = Some(content.clone());
        work.whole = Some(content);
        Some(work)
    }

    fn patched(&self) -> Vec<FileWork> {
        let files = self.metadata.and_then(|metadata| metadata.get("files"));
        let mut found = Vec::new();
        for file in files.iter().flat_map(|files| files.items()) {
            let Some(path) = file.get_text("filePath").filter(|path| !path.is_empty()) else { continue };
            let path = absolute(&path, self.folder);
            let moved = file.get_text("movePath").map(|path| absolute(&path, self.folder));
            let operation = match file.get_text("type").unwrap_or_default().as_ref() {
                "add" => Operation::Create,
                "delete" => Operation::Delete,
                "move" => Operation::MoveTo,
                _ => Operation::Update,
            };
            let mut work = FileWork::new(moved.clone().unwrap_or_else(|| path.clone()), operation);
            work.moved_from = moved.map(|_| path);
            let patch = file.get_text("patch");
            match changes_of(Some(file), patch.as_deref()) {
                changes if changes.is_empty() => found.push(work),
                changes => found.extend(changes.into_iter().map(|change| change.of(&work))),
            }
        }
        found
    }

    /// Newer clients note which lines they showed; older ones only number them in the text.
    fn read(&self, path: String) -> Option<FileWork> {
        let (start, text) = self.displayed().or_else(|| numbered(self.output?))?;
        // The client cuts longer lines.
        if text.lines().any(|line| line.chars().count() >= LONGEST_LINE) {
            return None;
        }
        let mut work = FileWork::new(path, Operation::Read);
        work.after = FileRegion::lines(start, text);
        Some(work)
    }

    fn displayed(&self) -> Option<(u32, String)> {
        let shown = self.metadata?.get("display")?.object();
        let number = |name: &str| shown.get_integer(name);
        let is_file = shown.get_text("type").is_none_or(|kind| kind == "file");
        let text = shown.get_text("text").filter(|text| is_file && !text.is_empty())?;
        let (start, end) = (number("lineStart")?, number("lineEnd")?);
        let is_exact = i64::try_from(text.split('\n').count()) == Ok(end - start + 1);
        let start = u32::try_from(start).ok().filter(|start| is_exact && *start > 0)?;
        Some((start, text.into_owned()))
    }

    fn printed(&self) -> Option<FileWork> {
        let command = self.input.get_text("command")?;
        let is_cut = self.metadata.and_then(|metadata| metadata.get("truncated")).and_then(Json::boolean);
        let printed = self.output.filter(|text| is_cut != Some(true) && text.ends_with('\n'))?;
        let folder = self.input.get_text("workdir");
        shell_read(&command, printed, folder.as_deref().or(self.folder))
    }
}

/// The lines of `00001| text` or `1: text`, and the number of the first.
fn numbered(output: &str) -> Option<(u32, String)> {
    let (_, shown) = output.split_once("<content>").or_else(|| output.split_once("<file>"))?;
    let mut start = None;
    let mut lines = Vec::new();
    for line in shown.strip_prefix('\n').unwrap_or(shown).split('\n') {
        // What follows the lines has no number.
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = line.split_at(digits);
        let Some(text) = rest.strip_prefix(": ").or_else(|| rest.strip_prefix("| ")) else { break };
        let Ok(number) = number.parse::<u32>() else { break };
        if number != *start.get_or_insert(number) + u32::try_from(lines.len()).ok()? {
            return None;
        }
        lines.push(text);
    }
    // These clients show the end of the last line as one more.
    if lines.len() > 1 && lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    (!lines.is_empty()).then_some((start.filter(|start| *start > 0)?, lines.join("\n")))
}

/// The changes of one file: its text before and after, or a diff.
fn changes_of(record: Option<Json<'_>>, diff: Option<&str>) -> Vec<Change> {
    let text = |name: &str| record.and_then(|record| record.get_text(name));
    if let (Some(before), Some(after)) = (text("before"), text("after")) {
        return between(&before, &after);
    }
    let patch = text("patch").filter(|patch| !patch.is_empty());
    let diff = patch.as_deref().or(diff);
    diff.map(|diff| unified_diff_changes(diff).finish()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::FileCall;
    use crate::json::Json;
    use annals_core::{FileWork, Operation, Range};

    fn work(name: &str, input: &str, metadata: &str) -> Vec<FileWork> {
        let input = Json::parse(input.as_bytes()).unwrap().object();
        let metadata = Json::parse(metadata.as_bytes());
        FileCall { name, input: &input, metadata, output: None, folder: Some("/w") }.work()
    }

    #[test]
    fn an_edit_has_the_lines_of_its_diff() {
        let input = r#"{"filePath":"/w/a","oldString":"x","newString":"y"}"#;
        let diff = r#"{"diff":"--- a\n+++ a\n@@ -1,2 +1,2 @@\n k\n-x\n+y\n"}"#;
        let whole = r#"{"filediff":{"before":"k\nx\n","after":"k\ny\n"}}"#;
        for metadata in [diff, whole] {
            let found = work("edit", input, metadata);
            assert_eq!(found[0].after.range, Some(Range { start: 2, end: 2 }), "{metadata}");
            assert_eq!(found[0].after.text.as_deref(), Some("y\n"));
        }
        assert_eq!(work("edit", input, "{}")[0].after.text.as_deref(), Some("y"));
    }

    #[test]
    fn new_files_and_patches_are_told_apart() {
        let input = r#"{"filePath":"a","content":"x\n"}"#;
        assert_eq!(work("write", input, r#"{"exists":false}"#)[0].operation, Operation::Create);
        assert_eq!(work("write", input, r#"{"exists":true}"#)[0].operation, Operation::Update);
        let files = r#"{"files":[{"filePath":"/w/a","type":"add","patch":"@@ -0,0 +1,1 @@\n+x\n"},{"filePath":"/w/b","type":"delete"}]}"#;
        let found = work("apply_patch", "{}", files);
        let operations: Vec<Operation> = found.iter().map(|work| work.operation).collect();
        assert_eq!(operations, [Operation::Create, Operation::Delete]);
    }

    fn read(output: &str) -> Option<(Range, String)> {
        let input = Json::parse(br#"{"filePath":"a"}"#).unwrap().object();
        let call = FileCall {
            name: "read",
            input: &input,
            metadata: None,
            output: Some(output),
            folder: Some("/w"),
        };
        let region = call.work().pop()?.after;
        Some((region.range?, region.text?))
    }

    #[test]
    fn numbered_lines_of_older_clients_are_read() {
        let oldest = "<file>\n00001| a: 1\n00002|     b\n00003| \n</file>";
        let older = "<path>/w/a</path>\n<type>file</type>\n<content>1: a: 1\n2:     b\n3: \n\n(End of file - total 3 lines)\n</content>";
        for output in [oldest, older] {
            let (range, text) = read(output).unwrap();
            assert_eq!((range, text.trim_end()), (Range { start: 1, end: 2 }, "a: 1\n    b"), "{output}");
        }
        let (range, _) = read("<file>\n00041| x\n00042| y\n\n(File has more lines.)\n</file>").unwrap();
        assert_eq!(range, Range { start: 41, end: 42 });
        assert_eq!(read("<file>\n00001| a\n00003| c\n</file>"), None, "a line is missing");
        assert_eq!(
            read(&format!("<file>\n00001| {}\n</file>", "x".repeat(2_000))),
            None,
            "cut by the client"
        );
        assert_eq!(read("Directory listing"), None);
    }

    #[test]
    fn lines_that_do_not_fit_their_numbers_are_not_read() {
        let shown = |end: u32| {
            format!(
                r#"{{"display":{{"type":"file","text":"a\nb","lineStart":1,"lineEnd":{end},"totalLines":2}}}}"#
            )
        };
        assert_eq!(work("read", r#"{"filePath":"a"}"#, &shown(2)).len(), 1);
        for end in [1, 3] {
            assert!(work("read", r#"{"filePath":"a"}"#, &shown(end)).is_empty());
        }
    }
}
