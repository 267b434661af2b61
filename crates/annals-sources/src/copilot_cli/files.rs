//! What tool calls did to files: from the diff in a result if there is one, otherwise from the call itself.

use super::calls::without_exit_code;
use crate::home::folders::absolute;
use crate::json::{Json, Object};
use crate::tape::shell_read::shell_read;
use crate::tape::unified::unified_diff_changes;
use annals_core::{FileRegion, FileWork, Operation};

/// A call and what its completion says.
pub(super) struct FileCall<'a> {
    pub name: &'a str,
    pub arguments: &'a Object<'a>,
    /// The data of the event that completes it.
    pub data: Option<&'a Object<'a>>,
    /// Where relative paths start.
    pub folder: Option<&'a str>,
}

impl FileCall<'_> {
    /// What a successful call did to files, or read from them; empty if that cannot be proven.
    pub fn work(&self) -> Vec<FileWork> {
        match self.name {
            "edit" | "create" | "str_replace_editor" | "apply_patch" => self.edited(),
            "view" => self.viewed().into_iter().collect(),
            "bash" => self.printed().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The same, with files of which only the name is known.
    pub fn touched(&self) -> Vec<FileWork> {
        let work = self.work();
        let operation = match self.name {
            "create" => Operation::Create,
            "edit" | "str_replace_editor" => Operation::Update,
            "view" => Operation::Read,
            _ => return work,
        };
        match self.path() {
            Some(path) if work.is_empty() => vec![FileWork::new(path, operation)],
            _ => work,
        }
    }

    fn path(&self) -> Option<String> {
        let path = self.arguments.get_text("path").filter(|path| !path.is_empty())?;
        Some(absolute(&path, self.folder))
    }

    fn result(&self, field: &str) -> Option<String> {
        let result = self.data.and_then(|data| data.get("result"))?;
        result.get_text(field).map(|text| text.into_owned())
    }

    fn edited(&self) -> Vec<FileWork> {
        let given = |name: &str| self.arguments.get_text(name).map(|text| text.into_owned());
        if let (true, Some(path), Some(content)) = (self.name == "create", self.path(), given("file_text")) {
            let mut work = FileWork::new(path, Operation::Create);
            work.after = FileRegion::lines(1, content.clone());
            work.after.given = Some(content.clone());
            work.whole = Some(content);
            return vec![work];
        }
        let mut found = self.result("detailedContent").map(|diff| in_diff(&diff)).unwrap_or_default();
        let (old, new) = (given("old_str"), given("new_str"));
        if found.is_empty()
            && let (Some(path), Some(new)) = (self.path(), &new)
        {
            let region = |text: &str| match text.is_empty() {
                true => FileRegion::default(),
                false => FileRegion::text(text),
            };
            let mut work = FileWork::new(path, Operation::Update);
            (work.before, work.after) = (region(old.as_deref().unwrap_or_default()), region(new));
            found.push(work);
        }
        if let ([one], Some(_)) = (found.as_mut_slice(), &new) {
            (one.before.given, one.after.given) = (old, new);
        }
        found
    }

    /// A view of a whole file is shown as a diff in which nothing changes.
    fn viewed(&self) -> Option<FileWork> {
        if self.arguments.get("view_range").is_some() {
            return None;
        }
        let diff = self.result("detailedContent")?;
        let (_, lines) = diff.split_once("\n@@ -1,")?;
        let (header, lines) = lines.split_once('\n')?;
        let count: usize = header.split([' ', ',']).next()?.parse().ok()?;
        let shown: Option<Vec<&str>> = lines.lines().map(|line| line.strip_prefix(' ')).collect();
        let mut shown = shown.filter(|shown| shown.len() == count)?;
        // The empty line after the last newline is not one of the file.
        if shown.last() == Some(&"") {
            shown.pop();
        }
        let text: String = shown.iter().flat_map(|line| [line, "\n"]).collect();
        let mut work = FileWork::new(self.path()?, Operation::Read);
        work.after = FileRegion::lines(1, text);
        Some(work).filter(|_| !shown.is_empty())
    }

    fn printed(&self) -> Option<FileWork> {
        let command = self.arguments.get_text("command")?;
        let content = self.result("content")?;
        let printed = without_exit_code(&content);
        let is_cut = printed.len() == content.len() || printed.is_empty();
        // The newline before the client's own line is the last of the output.
        shell_read(&command, &format!("{printed}\n"), self.folder).filter(|_| !is_cut)
    }
}

/// The changes of each file in a diff as git writes it. Paths are absolute, without their first slash.
fn in_diff(diff: &str) -> Vec<FileWork> {
    let mut found = Vec::new();
    for part in diff.split("\ndiff --git ").skip(1) {
        let header = |start: &str| {
            let line = part
                .lines()
                .take_while(|line| !line.starts_with("@@"))
                .find_map(|line| line.strip_prefix(start));
            line.filter(|path| *path != "dev/null" && *path != "/dev/null").map(str::to_owned)
        };
        let path = |name: String| {
            let is_drive = name.as_bytes().get(1) == Some(&b':');
            if is_drive || name.starts_with('/') { name } else { format!("/{name}") }
        };
        let (before, after) = (header("--- a/").map(path), header("+++ b/").map(path));
        let (name, operation) = match (before, after) {
            (None, Some(after)) => (after, Operation::Create),
            (Some(before), None) => (before, Operation::Delete),
            (Some(_), Some(after)) => (after, Operation::Update),
            (None, None) => continue,
        };
        let work = FileWork::new(name, operation);
        let places = unified_diff_changes(part).finish();
        if places.is_empty() && operation == Operation::Delete {
            found.push(work.clone());
        }
        found.extend(places.into_iter().map(|place| place.of(&work)));
    }
    found
}

/// The data of an event.
pub fn data_of(detail: &[u8]) -> Option<Object<'_>> {
    Json::parse(detail).filter(|json| json.is_object()).map(Json::object)
}

#[cfg(test)]
mod tests {
    use super::FileCall;
    use crate::json::Json;
    use annals_core::{FileWork, Operation, Range};

    fn work(name: &str, arguments: &str, data: &str) -> Vec<FileWork> {
        let arguments = Json::parse(arguments.as_bytes()).unwrap().object();
        let data = Json::parse(data.as_bytes()).unwrap().object();
        FileCall { name, arguments: &arguments, data: Some(&data), folder: Some("/w") }.work()
    }

    const EDIT: &str = r#"{"result":{"content":"done","detailedContent":"\ndiff --git a/w/a b/w/a\nindex 0..0 100644\n--- a/w/a\n+++ b/w/a\n@@ -1,2 +1,2 @@\n k\n-x\n+y\n"}}"#;

    #[test]
    fn an_edit_has_the_lines_of_its_diff() {
        let found = work("edit", r#"{"path":"/w/a","old_str":"x","new_str":"y"}"#, EDIT);
        assert_eq!((found.len(), found[0].path.as_str()), (1, "/w/a"));
        assert_eq!(found[0].after.range, Some(Range { start: 2, end: 2 }));
        assert_eq!(found[0].after.given.as_deref(), Some("y"));
        let patch = work("apply_patch", "\"*** Begin Patch\"", EDIT);
        assert_eq!(patch[0].after.text.as_deref(), Some("y\n"));
        let made = work("create", r#"{"path":"b","file_text":"x\n"}"#, "{}");
        assert_eq!((made[0].operation, made[0].path.as_str()), (Operation::Create, "/w/b"));
    }

    #[test]
    fn only_whole_views_are_read_certainly() {
        let view = r#"{"result":{"content":"k\nx\n","detailedContent":"\ndiff --git a/w/a b/w/a\n--- a/w/a\n+++ b/w/a\n@@ -1,3 +1,3 @@\n k\n x\n \n"}}"#;
        let found = work("view", r#"{"path":"/w/a"}"#, view);
        assert_eq!(found[0].after.text.as_deref(), Some("k\nx\n"));
        assert!(work("view", r#"{"path":"/w/a","view_range":[1,2]}"#, view).is_empty());
        let printed = r#"{"result":{"content":"k\nx\n<exited with exit code 0>"}}"#;
        assert_eq!(work("bash", r#"{"command":"cat a"}"#, printed).len(), 1);
    }
}
