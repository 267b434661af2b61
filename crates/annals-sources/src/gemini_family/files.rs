//! What tool calls did to files: from the client's record of an edit if there is one, otherwise from the call itself.

use crate::home::folders::absolute;
use crate::json::{Json, Object};
use crate::tape::diff::between;
use annals_core::{FileRegion, FileWork, Operation};

/// How an output begins that is not the text of the file alone.
const NOT_THE_FILE: &[&str] =
    &["IMPORTANT:", "[File content truncated", "Read lines ", "Skipped", "Cannot display"];

/// A tool call with its result.
pub struct FileCall<'a> {
    pub name: &'a str,
    pub args: &'a Object<'a>,
    /// The client's record of the result.
    pub display: Option<Json<'a>>,
    /// The text for the model.
    pub output: Option<&'a str>,
    /// Where relative paths start.
    pub folder: Option<&'a str>,
}

/// Tools that change a file by replacing text in it.
pub fn is_replace(name: &str) -> bool {
    matches!(name, "replace" | "edit")
}

/// The path that a call names.
pub fn path_in(args: &Object<'_>) -> Option<String> {
    let names = ["file_path", "absolute_path", "path"];
    let path = names.iter().find_map(|name| args.get_text(name)).filter(|path| !path.is_empty());
    path.map(|path| path.into_owned())
}

impl FileCall<'_> {
    /// What a successful call did to its file, or read from it; empty if that cannot be proven.
    pub fn work(&self) -> Vec<FileWork> {
        let Some(path) = self.path() else { return Vec::new() };
        match self.name {
            name if is_replace(name) => self.replaced(path),
            "write_file" => self.written(path),
            "read_file" => self.read(path).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The file that a successful call touched, if it is one that reads or changes a file.
    pub fn touched(&self) -> Option<(String, Operation)> {
        let operation = match self.name {
            name if is_replace(name) => self.operation(),
            "write_file" => self.operation(),
            "read_file" => Operation::Read,
            _ => return None,
        };
        self.path().map(|path| (path, operation))
    }

    fn path(&self) -> Option<String> {
        let recorded = self.record().and_then(|record| record.get_text("filePath"));
        let path = recorded.map(|path| path.into_owned()).or_else(|| path_in(self.args))?;
        Some(absolute(&path, self.folder))
    }

    fn record(&self) -> Option<Object<'_>> {
        self.display.filter(|display| display.is_object()).map(Json::object)
    }

    fn operation(&self) -> Operation {
        let is_new = self.record().and_then(|record| record.get("isNewFile")).and_then(Json::boolean);
        let made = self.output.is_some_and(|output| {
            let head = output.trim_start();
            head.starts_with("Successfully created") || head.starts_with("Created new file")
        });
        if is_new.unwrap_or(made) { Operation::Create } else { Operation::Update }
    }

    /// The file before and after, if the client recorded both whole.
    fn texts(&self) -> Option<(String, String)> {
        let record = self.record()?;
        let flag = |name: &str| record.get(name).and_then(Json::boolean) == Some(true);
        if flag("truncatedForSession") || flag("originalContentTruncated") || flag("newContentTruncated") {
            return None;
        }
        // A new file has no text before; some clients say null.
        let before = record.get_text("originalContent").unwrap_or_default().into_owned();
        Some((before, record.get_text("newContent")?.into_owned()))
    }

    fn replaced(&self, path: String) -> Vec<FileWork> {
        let work = FileWork::new(path, self.operation());
        let given = |name: &str| self.args.get_text(name).map(|text| text.into_owned());
        let (old, new) = (given("old_string"), given("new_string"));
        let mut found = match self.texts() {
            Some((before, after)) => places(&work, &before, after),
            None => {
                let region = |text: &Option<String>| {
                    text.as_ref().filter(|text| !text.is_empty()).map(FileRegion::text).unwrap_or_default()
                };
                vec![FileWork { before: region(&old), after: region(&new), ..work }]
            }
        };
        for one in &mut found {
            (one.before.given, one.after.given) = (old.clone(), new.clone());
        }
        found
    }

    fn written(&self, path: String) -> Vec<FileWork> {
        let work = FileWork::new(path, self.operation());
        let content = self.args.get_text("content").map(|text| text.into_owned());
        let mut found = match (self.texts(), &content) {
            (Some((before, after)), _) if work.operation == Operation::Update => {
                places(&work, &before, after)
            }
            (Some((_, after)), _) => vec![whole(&work, after)],
            (None, Some(content)) => vec![whole(&work, content.clone())],
            (None, None) => return Vec::new(),
        };
        for one in &mut found {
            one.after.given.clone_from(&content);
        }
        found
    }

    /// A file that was read whole; parts of files come with words of the client around them.
    fn read(&self, path: String) -> Option<FileWork> {
        let output = self.output?;
        let part =
            ["offset", "limit", "start_line", "end_line"].iter().any(|name| self.args.get(name).is_some());
        if part
            || output.is_empty()
            || NOT_THE_FILE.iter().any(|start| output.trim_start().starts_with(start))
        {
            return None;
        }
        let mut work = FileWork::new(path, Operation::Read);
        work.after = FileRegion::lines(1, output.to_owned());
        Some(work)
    }
}

fn whole(work: &FileWork, text: String) -> FileWork {
    let after = FileRegion::lines(1, text.clone());
    FileWork { after, whole: Some(text), ..work.clone() }
}

/// The changed places between two texts of a file, with the whole text at the last one.
fn places(work: &FileWork, before: &str, after: String) -> Vec<FileWork> {
    let mut found: Vec<FileWork> =
        between(before, &after).into_iter().map(|change| change.of(work)).collect();
    if let Some(last) = found.last_mut() {
        last.whole = Some(after);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::FileCall;
    use crate::json::Json;
    use annals_core::{FileWork, Operation, Range};

    fn work(name: &str, args: &str, display: &str, output: &str) -> Vec<FileWork> {
        let args = Json::parse(args.as_bytes()).unwrap().object();
        let display = Json::parse(display.as_bytes());
        FileCall { name, args: &args, display, output: Some(output), folder: Some("/w") }.work()
    }

    #[test]
    fn an_edit_has_the_lines_of_the_clients_record() {
        let display = r#"{"fileDiff":"…","filePath":"/w/a.py","originalContent":"a\nb\nc\n","newContent":"a\nB\nC\nc\n"}"#;
        let found =
            work("replace", r#"{"file_path":"a.py","old_string":"b","new_string":"B\nC"}"#, display, "ok");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].operation), ("/w/a.py", Operation::Update));
        assert_eq!(found[0].before.range, Some(Range { start: 2, end: 2 }));
        assert_eq!(found[0].after.range, Some(Range { start: 2, end: 3 }));
        assert_eq!(found[0].after.text.as_deref(), Some("B\nC\n"));
        assert_eq!(found[0].whole.as_deref(), Some("a\nB\nC\nc\n"));
    }

    #[test]
    fn without_a_record_the_call_tells_what_it_replaced() {
        let found =
            work("edit", r#"{"file_path":"/w/a.py","old_string":"b","new_string":"B"}"#, "null", "ok");
        assert_eq!(found[0].after.text.as_deref(), Some("B"));
        assert_eq!(found[0].after.range, None);
        let cut = r#"{"truncatedForSession":true,"originalContent":"b","newContent":"B"}"#;
        let found = work("edit", r#"{"file_path":"/w/a.py","old_string":"b","new_string":"B"}"#, cut, "ok");
        assert_eq!(found[0].after.range, None);
    }

    #[test]
    fn a_new_file_is_created_and_another_is_changed() {
        let made = "Successfully created and wrote to new file: /w/a.py.";
        let found = work("write_file", r#"{"file_path":"a.py","content":"x\n"}"#, "null", made);
        assert_eq!((found[0].operation, found[0].path.as_str()), (Operation::Create, "/w/a.py"));
        let display = r#"{"originalContent":"x\n","newContent":"x\ny\n","isNewFile":false}"#;
        let found = work("write_file", r#"{"file_path":"/w/a.py","content":"x\ny\n"}"#, display, "ok");
        assert_eq!(found[0].operation, Operation::Update);
        assert_eq!(found[0].after.text.as_deref(), Some("y\n"));
    }

    #[test]
    fn only_whole_files_are_read_certainly() {
        assert_eq!(work("read_file", r#"{"absolute_path":"/w/a"}"#, "\"\"", "x\n").len(), 1);
        assert!(work("read_file", r#"{"absolute_path":"/w/a","limit":5}"#, "\"\"", "x\n").is_empty());
        assert!(work("read_file", r#"{"file_path":"/w/a"}"#, "\"\"", "IMPORTANT: The file").is_empty());
    }
}
