//! What tool calls did to files. The client writes no diffs: the call itself has the texts.

use crate::home::folders::absolute;
use crate::json::Object;
use crate::tape::shell_read::shell_read;
use annals_core::{FileRegion, FileWork, Operation};

/// A successful call, as far as it is known.
pub(super) struct FileCall<'a> {
    pub name: &'a str,
    pub arguments: &'a Object<'a>,
    pub output: Option<&'a str>,
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
        let work = match (self.name, self.path()) {
            ("Edit", Some(path)) => self.edited(path),
            ("Write", Some(path)) => self.written(path),
            ("Read", Some(path)) => self.read(path),
            ("Bash", _) => self.printed(),
            _ => None,
        };
        work.into_iter().collect()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.arguments.get_text(name).map(|text| text.into_owned())
    }

    fn edited(&self, path: String) -> Option<FileWork> {
        let (old, new) = (self.text("old_string"), self.text("new_string")?);
        let region =
            |text: &str| if text.is_empty() { FileRegion::default() } else { FileRegion::text(text) };
        let mut work = FileWork::new(path, Operation::Update);
        work.before = region(old.as_deref().unwrap_or_default());
        work.after = region(&new);
        (work.before.given, work.after.given) = (old, Some(new));
        Some(work)
    }

    fn written(&self, path: String) -> Option<FileWork> {
        let content = self.text("content")?;
        let mut work = FileWork::new(path, Operation::Update);
        work.after = FileRegion::lines(1, content.clone());
        work.after.given = Some(content.clone());
        work.whole = Some(content);
        Some(work)
    }

    fn read(&self, path: String) -> Option<FileWork> {
        let (start, text) = numbered(self.output?)?;
        let mut work = FileWork::new(path, Operation::Read);
        work.after = FileRegion::lines(start, text);
        Some(work)
    }

    fn printed(&self) -> Option<FileWork> {
        let printed = self.output.filter(|printed| printed.ends_with('\n'))?;
        shell_read(&self.text("command")?, printed, self.folder)
    }
}

/// A line without the number that the client put before it.
pub fn unnumbered(line: &str) -> &str {
    line.split_once('\t')
        .filter(|(number, _)| number.trim().parse::<u32>().is_ok())
        .map_or(line, |(_, rest)| rest)
}

/// The first number of consecutive numbered lines, and their text.
fn numbered(output: &str) -> Option<(u32, String)> {
    let mut start = None;
    let mut text = String::new();
    for (line, at) in output.lines().zip(0_u32..) {
        let (number, rest) = line.split_once('\t')?;
        let number = number.trim().parse::<u32>().ok()?;
        if *start.get_or_insert(number) != number.checked_sub(at)? {
            return None;
        }
        text.push_str(rest);
        text.push('\n');
    }
    start.filter(|start| *start > 0).map(|start| (start, text))
}

#[cfg(test)]
mod tests {
    use super::{FileCall, numbered, unnumbered};
    use crate::json::Json;
    use annals_core::{FileWork, Range};

    fn work(name: &str, arguments: &str, output: &str) -> Vec<FileWork> {
        let arguments = Json::parse(arguments.as_bytes()).unwrap().object();
        FileCall { name, arguments: &arguments, output: Some(output), folder: Some("/w") }.work()
    }

    #[test]
    fn numbered_lines_are_read() {
        assert_eq!(numbered("7\ta\n8\tb"), Some((7, "a\nb\n".into())));
        assert_eq!(numbered("7\ta\n9\tb"), None);
        assert_eq!(numbered("no numbers"), None);
        assert_eq!((unnumbered("12\tx\ty"), unnumbered("x\ty")), ("x\ty", "x\ty"));
        let read = work("Read", r#"{"path":"a"}"#, "1\tx\n2\ty");
        assert_eq!((read[0].path.as_str(), read[0].after.range), ("/w/a", Some(Range { start: 1, end: 2 })));
    }

    #[test]
    fn calls_have_the_texts_that_they_write() {
        let edit = work("Edit", r#"{"path":"a","old_string":"x","new_string":"y\nz"}"#, "ok");
        assert_eq!((edit[0].after.text.as_deref(), edit[0].after.range), (Some("y\nz"), None));
        let write = work("Write", r#"{"path":"/w/a","content":"x\ny\n"}"#, "ok");
        assert_eq!(write[0].after.range, Some(Range { start: 1, end: 2 }));
    }
}
