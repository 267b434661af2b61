//! What tool calls did to files: from the diff in a result if there is one, otherwise from the call itself.

use super::blocks::content_text;
use crate::home::folders::absolute;
use crate::json::{Json, Object};
use crate::tape::diff::Changes;
use crate::tape::numbered::{DiffSide, NumberedDiff};
use crate::tape::shell_read::shell_read;
use crate::tape::unified::unified_diff_changes;
use annals_core::{FileRegion, FileWork, Operation};

/// What the client adds below the text of a file that it shows in part.
const CUT: &[&str] = &["more lines in file", "Use offset=", "Showing lines"];

/// A call and its result.
pub(super) struct FileCall<'a> {
    pub name: &'a str,
    pub arguments: &'a Object<'a>,
    /// The message with the result.
    pub result: Option<&'a Object<'a>>,
    /// Where relative paths start.
    pub folder: Option<&'a str>,
}

impl FileCall<'_> {
    pub fn path(&self) -> Option<String> {
        let path = self.arguments.get_text("path").filter(|path| !path.is_empty())?;
        Some(absolute(&path, self.folder))
    }

    /// What a successful call did to its file, or read from it; empty if that cannot be proven.
    pub fn work(&self) -> Vec<FileWork> {
        match (self.name, self.path()) {
            ("edit", Some(path)) => self.edited(path),
            ("write", Some(path)) => self.written(path).into_iter().collect(),
            ("read", Some(path)) => self.read(path).into_iter().collect(),
            ("bash", _) => self.printed().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn details(&self) -> Option<Json<'_>> {
        self.result.and_then(|result| result.get("details"))
    }

    fn output(&self) -> String {
        content_text(self.result.and_then(|result| result.get("content")))
    }

    fn edited(&self, path: String) -> Vec<FileWork> {
        let work = FileWork::new(path, Operation::Update);
        let patch = self.details().and_then(|details| details.get_text("patch"));
        let diff = self.details().and_then(|details| details.get_text("diff"));
        let changes =
            patch.map(|patch| unified_diff_changes(&patch)).or_else(|| diff.map(|diff| numbered(&diff)));
        let given = edits(self.arguments);
        let mut found: Vec<FileWork> = match changes.map(Changes::finish).filter(|found| !found.is_empty()) {
            Some(places) => places.into_iter().map(|place| place.of(&work)).collect(),
            None => {
                let region =
                    |text: &str| if text.is_empty() { FileRegion::default() } else { FileRegion::text(text) };
                let pairs = given.iter();
                pairs
                    .map(|(old, new)| FileWork { before: region(old), after: region(new), ..work.clone() })
                    .collect()
            }
        };
        // With several edits it is not certain which of them made a place.
        if let ([(old, new)], [one]) = (given.as_slice(), found.as_mut_slice()) {
            (one.before.given, one.after.given) = (Some(old.clone()), Some(new.clone()));
        }
        found
    }

    fn written(&self, path: String) -> Option<FileWork> {
        let content = self.arguments.get_text("content")?.into_owned();
        let mut work = FileWork::new(path, Operation::Update);
        work.after = FileRegion::lines(1, content.clone());
        work.after.given = Some(content.clone());
        work.whole = Some(content);
        Some(work)
    }

    fn read(&self, path: String) -> Option<FileWork> {
        let part = ["offset", "limit"].iter().any(|name| self.arguments.get(name).is_some());
        let cut = self.details().is_some_and(|details| details.get("truncation").is_some());
        let text = self.output();
        let end = text.lines().next_back().unwrap_or_default();
        if part || cut || text.is_empty() || CUT.iter().any(|mark| end.contains(mark)) {
            return None;
        }
        let mut work = FileWork::new(path, Operation::Read);
        work.after = FileRegion::lines(1, text);
        Some(work)
    }

    fn printed(&self) -> Option<FileWork> {
        let command = self.arguments.get_text("command")?;
        let cut = self.details().is_some_and(|details| details.get("truncation").is_some());
        let printed = self.output();
        shell_read(&command, &printed, self.folder).filter(|_| !cut && printed.ends_with('\n'))
    }
}

/// The texts that an edit replaces and puts in.
pub fn edits(arguments: &Object<'_>) -> Vec<(String, String)> {
    let pair = |edit: &Object<'_>| {
        let text = |name: &str| edit.get_text(name).map(|text| text.into_owned());
        text("newText").map(|new| (text("oldText").unwrap_or_default(), new))
    };
    let listed = arguments.get("edits");
    let mut found: Vec<_> =
        listed.iter().flat_map(|edits| edits.items()).filter_map(|edit| pair(&edit.object())).collect();
    found.extend(pair(arguments));
    found
}

/// A diff whose lines have a sign, their number and their text: `-12 old`, `+12 new`, ` 11 same`.
fn numbered(diff: &str) -> Changes {
    let mut numbered = NumberedDiff::default();
    for line in diff.lines() {
        let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
        let rest = rest.trim_start_matches(' ');
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse::<u32>() else {
            numbered.skip();
            continue;
        };
        let text = rest[end..].strip_prefix(' ').unwrap_or(&rest[end..]);
        let side = if sign == "+" { DiffSide::After } else { DiffSide::Before };
        numbered.line(sign, (side, number), text);
    }
    numbered.into_changes()
}

#[cfg(test)]
mod tests {
    use super::{FileCall, numbered};
    use crate::json::Json;
    use annals_core::{FileWork, Range};

    #[test]
    fn numbered_diffs_have_lines() {
        let places = numbered(
            " 1 fn dial() {\n-2     turn();\n+2     oil();\n+3     turn();\n 3 }\n   ...\n-9 x\n+10 y\n",
        )
        .finish();
        assert_eq!(places.len(), 2);
        assert_eq!(places[0].before.range, Some(Range { start: 2, end: 2 }));
        assert_eq!(places[0].after.range, Some(Range { start: 2, end: 3 }));
        assert_eq!(places[0].after.text.as_deref(), Some("    oil();\n    turn();\n"));
        assert_eq!(places[1].before.range, Some(Range { start: 9, end: 9 }));
    }

    fn work(name: &str, arguments: &str, result: &str) -> Vec<FileWork> {
        let (arguments, result) = (Json::parse(arguments.as_bytes()), Json::parse(result.as_bytes()));
        let (arguments, result) = (arguments.unwrap().object(), result.unwrap().object());
        FileCall { name, arguments: &arguments, result: Some(&result), folder: Some("/w") }.work()
    }

    #[test]
    fn edits_without_a_diff_tell_their_texts() {
        let found = work(
            "edit",
            r#"{"path":"a","edits":[{"oldText":"x","newText":"y"},{"oldText":"p","newText":"q"}]}"#,
            "{}",
        );
        let texts: Vec<_> = found.iter().map(|work| work.after.text.as_deref().unwrap()).collect();
        assert_eq!((texts, found[0].path.as_str()), (vec!["y", "q"], "/w/a"));
        let old = work("edit", r#"{"path":"a","oldText":"x","newText":"y"}"#, "{}");
        assert_eq!(old[0].before.text.as_deref(), Some("x"));
    }

    #[test]
    fn only_whole_files_are_read_certainly() {
        let whole = r#"{"content":[{"type":"text","text":"a\nb\n"}]}"#;
        assert_eq!(work("read", r#"{"path":"a"}"#, whole).len(), 1);
        assert!(work("read", r#"{"path":"a","limit":1}"#, whole).is_empty());
        let cut = r#"{"content":[{"type":"text","text":"a\n\n[5 more lines in file. Use offset=2 to continue.]"}]}"#;
        assert!(work("read", r#"{"path":"a"}"#, cut).is_empty());
        assert_eq!(work("bash", r#"{"command":"cat a"}"#, whole).len(), 1);
    }
}
