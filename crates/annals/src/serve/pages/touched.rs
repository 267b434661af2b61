//! Files in the steps of a session: what a call did to them, and where their lines and an editor are.

use super::diff::push_diff;
use super::entries::Addresses;
use super::html::{Html, in_address};
use crate::view::{ChangeView, FileView};

/// A file that a call worked on.
pub(super) struct FileHtml {
    pub operation: &'static str,
    pub path: String,
    pub lines: String,
    /// The page of its lines.
    pub lineage: Option<String>,
    pub editor: Option<String>,
}

pub(super) struct ChangeHtml {
    pub operation: String,
    pub path: String,
    /// The page of the file's lines.
    pub lineage: Option<String>,
    pub diff: Html,
    pub editor: Option<String>,
}

pub(super) fn change_html(change: &ChangeView, addresses: &Addresses<'_>) -> ChangeHtml {
    let mut diff = String::new();
    push_diff(&mut diff, change.diff.as_str());
    let path = change.path.as_str();
    let line = line_of_change(change.diff.as_str());
    ChangeHtml {
        operation: change.operation.replace('_', " "),
        path: path.to_owned(),
        lineage: lineage_address(path, addresses),
        diff: Html(diff),
        editor: addresses.editor.and_then(|editor| editor.address(path, line)),
    }
}

pub(super) fn file_html(file: &FileView, addresses: &Addresses<'_>) -> FileHtml {
    let lines = |range: &Option<[u32; 2]>| match range {
        Some([start, end]) if start == end => format!("line {start}"),
        Some([start, end]) => format!("lines {start}–{end}"),
        None => String::new(),
    };
    let range = if file.after.is_some() { &file.after } else { &file.before };
    let path = file.path.as_str();
    let is_gone = matches!(file.operation, "delete" | "move_from");
    FileHtml {
        operation: file.operation,
        path: path.to_owned(),
        lines: lines(range),
        lineage: lineage_address(path, addresses),
        editor: addresses
            .editor
            .filter(|_| !is_gone)
            .and_then(|editor| editor.address(path, range.map(|[start, _]| start))),
    }
}

fn lineage_address(path: &str, addresses: &Addresses<'_>) -> Option<String> {
    addresses.base.map(|_| format!("/lineage?file={}", in_address(path)))
}

/// The number of the first line of a diff, in the file as it became.
fn line_of_change(diff: &str) -> Option<u32> {
    let head = diff.lines().find(|line| line.starts_with("@@ "))?;
    let after = head.split(' ').find_map(|part| part.strip_prefix('+'))?;
    after.split(',').next()?.parse().ok().filter(|line| *line > 0)
}

#[cfg(test)]
mod tests {
    use super::line_of_change;

    #[test]
    fn a_change_starts_at_its_line_in_the_new_file() {
        assert_eq!(line_of_change("@@ -1,2 +7,3 @@\n-a\n+b"), Some(7));
        assert_eq!(line_of_change("@@ -0 +2 @@\n+a"), Some(2));
        assert_eq!(line_of_change("@@ -4 +0 @@\n-a"), None, "nothing is left there");
        assert_eq!(line_of_change("+a"), None);
    }
}
