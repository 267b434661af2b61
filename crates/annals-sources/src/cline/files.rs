//! What calls did to files: from the diff in a result if there is one, otherwise from the texts of the call.

use serde_json::Value;

use super::calls::ToolResult;
use crate::home::folders::absolute;
use crate::tape::numbered::{DiffSide, NumberedDiff};
use crate::tape::shell_read::shell_read;
use annals_core::{FileRegion, FileWork, Operation};

/// A successful call.
pub(super) struct FileCall<'a> {
    pub name: &'a str,
    pub input: &'a Value,
    pub result: Option<&'a ToolResult>,
    /// Where relative paths start.
    pub folder: Option<&'a str>,
}

impl FileCall<'_> {
    /// The file that the call touched, if it is one that reads or changes a file.
    pub fn touched(&self) -> Option<(String, Operation)> {
        let operation = match self.name {
            "editor" if self.text("old_text").is_none() && self.input.get("insert_line").is_none() => {
                Operation::Create
            }
            "editor" | "write_to_file" | "replace_in_file" => Operation::Update,
            "read_file" => Operation::Read,
            _ => return None,
        };
        Some((self.path()?, operation))
    }

    /// What it did to files, or read from them; empty if that cannot be proven.
    pub fn work(&self) -> Vec<FileWork> {
        match self.name {
            "editor" => self.edited(),
            "write_to_file" => self.written().into_iter().collect(),
            "replace_in_file" => self.replaced(),
            "read_files" | "read_file" => self.read(),
            "run_commands" | "execute_command" => self.printed().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.input.get(name).and_then(Value::as_str)
    }

    fn path(&self) -> Option<String> {
        let path = self.text("path").filter(|path| !path.is_empty())?;
        Some(absolute(path, self.folder))
    }

    fn output(&self) -> &str {
        let first = self.result.and_then(|result| result.entries.first());
        first.map(|entry| entry.output.as_str()).unwrap_or_default()
    }

    fn edited(&self) -> Vec<FileWork> {
        let (Some((path, operation)), Some(new)) = (self.touched(), self.text("new_text")) else {
            return Vec::new();
        };
        let work = FileWork::new(path, operation);
        if operation == Operation::Create {
            return vec![whole(work, new)];
        }
        let mut found: Vec<FileWork> =
            places(self.output()).into_iter().map(|place| place.of(&work)).collect();
        if found.is_empty() {
            let region =
                |text: &str| if text.is_empty() { FileRegion::default() } else { FileRegion::text(text) };
            let before = region(self.text("old_text").unwrap_or_default());
            found = vec![FileWork { before, after: region(new), ..work }];
        }
        for one in &mut found {
            one.before.given = self.text("old_text").map(str::to_owned);
            one.after.given = Some(new.to_owned());
        }
        found
    }

    fn written(&self) -> Option<FileWork> {
        let (path, operation) = self.touched()?;
        Some(whole(FileWork::new(path, operation), self.text("content")?))
    }

    /// `SEARCH` and `REPLACE` blocks. The result has the whole file, which tells where what is unique in it is.
    fn replaced(&self) -> Vec<FileWork> {
        let (Some((path, operation)), Some(diff)) = (self.touched(), self.text("diff")) else {
            return Vec::new();
        };
        let work = FileWork::new(path, operation);
        let saved = final_content(self.output());
        let mut found: Vec<FileWork> = Vec::new();
        for (old, new) in replacements(diff) {
            let before = if old.is_empty() { FileRegion::default() } else { FileRegion::text(&*old) };
            let line = saved.filter(|_| !new.is_empty()).and_then(|saved| line_of(saved, &new));
            let mut after = match (line, new.is_empty()) {
                (Some(line), _) => FileRegion::lines(line, new.clone()),
                (None, false) => FileRegion::text(&*new),
                (None, true) => FileRegion::default(),
            };
            after.given = Some(new);
            found.push(FileWork { before: FileRegion { given: Some(old), ..before }, after, ..work.clone() });
        }
        if let (Some(last), Some(saved)) = (found.last_mut(), saved) {
            last.whole = Some(saved.to_owned());
        }
        found
    }

    fn read(&self) -> Vec<FileWork> {
        let entries = self.result.iter().flat_map(|result| &result.entries).filter(|entry| !entry.failed);
        let read = entries.filter_map(|entry| {
            let path = if entry.query.is_empty() { self.text("path")? } else { &entry.query };
            let (start, text) = numbered(&entry.output)?;
            let mut work = FileWork::new(absolute(path, self.folder), Operation::Read);
            work.after = FileRegion::lines(start, text);
            Some(work)
        });
        read.collect()
    }

    /// What a single command printed of a file.
    fn printed(&self) -> Option<FileWork> {
        let result = self.result?;
        let [entry] = result.entries.as_slice() else { return None };
        let printed =
            entry.output.split_once("\nOutput:\n").map_or(entry.output.as_str(), |(_, printed)| printed);
        let command = self.text("command").unwrap_or(&entry.query);
        shell_read(command, printed, self.folder).filter(|_| printed.ends_with('\n'))
    }
}

fn whole(mut work: FileWork, content: &str) -> FileWork {
    work.after = FileRegion::lines(1, content.to_owned());
    work.after.given = Some(content.to_owned());
    work.whole = Some(content.to_owned());
    work
}

/// The changes of a diff whose lines have a sign and their number: `-2: old`, `+2: new`.
fn places(output: &str) -> Vec<crate::tape::diff::Change> {
    let Some((_, diff)) = output.split_once("```diff\n") else { return Vec::new() };
    let diff = diff.rsplit_once("\n```").map_or(diff, |(diff, _)| diff);
    let mut numbered = NumberedDiff::default();
    for line in diff.lines() {
        let Some((head, text)) = line.split_once(": ").or_else(|| line.split_once(':')) else { continue };
        let (sign, number) = head.split_at_checked(1).unwrap_or_default();
        let Ok(number) = number.trim().parse::<u32>() else { continue };
        let side = if sign == "-" { DiffSide::Before } else { DiffSide::After };
        numbered.line(sign, (side, number), text);
    }
    numbered.into_changes().finish()
}

/// The pairs of texts of a diff in blocks.
pub fn replacements(diff: &str) -> Vec<(String, String)> {
    let is = |line: &str, sign: char, word: &str| {
        line.starts_with([sign, '<', '>']) && line.trim_end().ends_with(word) && line.len() < 40
    };
    let mut found = Vec::new();
    let (mut old, mut new, mut side) = (String::new(), String::new(), 0);
    for line in diff.lines() {
        match side {
            0 if is(line, '-', "SEARCH") => side = 1,
            1 if line.len() >= 5 && line.trim_end().bytes().all(|byte| byte == b'=') => side = 2,
            2 if is(line, '+', "REPLACE") => {
                found.push((std::mem::take(&mut old), std::mem::take(&mut new)));
                side = 0;
            }
            1 => old.extend([line, "\n"]),
            2 => new.extend([line, "\n"]),
            _ => {}
        }
    }
    found
}

/// The file as it was saved.
fn final_content(output: &str) -> Option<&str> {
    let (_, tag) = output.split_once("<final_file_content path=")?;
    let (_, content) = tag.split_once(">\n")?;
    let end = content.rfind("\n</final_file_content>")?;
    Some(&content[..end])
}

/// The line where a text starts that is there once.
fn line_of(whole: &str, part: &str) -> Option<u32> {
    let at = whole.find(part)?;
    let again = whole.get(at + 1..)?.contains(part);
    let starts = at == 0 || whole[..at].ends_with('\n');
    let line = whole[..at].matches('\n').count() + 1;
    u32::try_from(line).ok().filter(|_| starts && !again)
}

/// A line without the number that the client put before it.
pub fn unnumbered(line: &str) -> &str {
    let split = line.split_once(" | ").filter(|(number, _)| number.trim().parse::<u32>().is_ok());
    split.map_or(line, |(_, rest)| rest)
}

/// The first number of consecutive numbered lines, and their text. Older clients count them behind an empty line.
fn numbered(output: &str) -> Option<(u32, String)> {
    let output = output.rsplit_once("\n\n(File has ").map_or(output, |(lines, _)| lines);
    let mut start = None;
    let mut text = String::new();
    for (line, at) in output.lines().zip(0_u32..) {
        let (number, rest) = line.split_once(" |")?;
        let number = number.trim().parse::<u32>().ok()?;
        if *start.get_or_insert(number) != number.checked_sub(at)? {
            return None;
        }
        text.push_str(rest.strip_prefix(' ').unwrap_or(rest));
        text.push('\n');
    }
    start.filter(|start| *start > 0).map(|start| (start, text))
}

#[cfg(test)]
mod tests {
    use super::super::calls::{Entry, ToolResult};
    use super::{FileCall, numbered, replacements};
    use annals_core::{FileWork, Operation, Range};
    use serde_json::json;

    fn work(name: &str, input: &serde_json::Value, query: &str, output: &str) -> Vec<FileWork> {
        let entry = Entry { query: query.into(), output: output.into(), failed: false };
        let result = ToolResult { entries: vec![entry] };
        FileCall { name, input, result: Some(&result), folder: Some("/w") }.work()
    }

    #[test]
    fn the_diff_of_an_edit_has_lines() {
        let input = json!({"path": "/w/a.py", "old_text": "b\n", "new_text": "B\nC\n"});
        let output = "Edited /w/a.py\n```diff\n-2: b\n+2: B\n+3: C\n```";
        let found = work("editor", &input, "edit:/w/a.py", output);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].before.range, Some(Range { start: 2, end: 2 }));
        assert_eq!(found[0].after.range, Some(Range { start: 2, end: 3 }));
        assert_eq!(found[0].after.text.as_deref(), Some("B\nC\n"));
        let made = work("editor", &json!({"path": "b", "new_text": "x\n"}), "edit:b", "File created");
        assert_eq!((made[0].operation, made[0].path.as_str()), (Operation::Create, "/w/b"));
    }

    #[test]
    fn blocks_are_found_in_the_file_that_was_saved() {
        let diff = "------- SEARCH\n    turn();\n=======\n    oil();\n    turn();\n+++++++ REPLACE";
        assert_eq!(replacements(diff), [("    turn();\n".into(), "    oil();\n    turn();\n".into())]);
        let output = "Saved.\n\n<final_file_content path=\"a.rs\">\nfn dial() {\n    oil();\n    turn();\n}\n\n</final_file_content>";
        let found = work("replace_in_file", &json!({"path": "a.rs", "diff": diff}), "", output);
        assert_eq!(found[0].after.range, Some(Range { start: 2, end: 3 }));
        assert_eq!(found[0].whole.as_deref(), Some("fn dial() {\n    oil();\n    turn();\n}\n"));
    }

    #[test]
    fn numbered_lines_are_read() {
        assert_eq!(numbered("1 | a\n2 | b\n\n(File has 2 lines total.)"), Some((1, "a\nb\n".into())));
        assert_eq!(numbered("7 | a\n9 | b"), None);
        assert_eq!(work("read_files", &json!({}), "/w/a", "1 | x").len(), 1);
    }
}
