//! Calls that only read a file: the tool for it, and commands that certainly print some of its lines.

use super::outcome::read_body;
use super::requests::{READ_FILE, ToolRequest, command_of};
use crate::home::folders::absolute;
use crate::json::Object;
use crate::tape::shell_read::{is_read, shell_read};
use annals_core::{CallKind, FileRegion, FileWork, Operation};

/// True for a call whose output may prove that it read a file.
pub fn may_read(request: &ToolRequest) -> bool {
    match request.kind {
        CallKind::Shell => is_read(&request.body),
        _ => request.name == READ_FILE && !request.body.is_empty(),
    }
}

/// What a call read, by its output.
pub fn read_work(request: &ToolRequest, output: &str, folder: Option<&str>) -> Option<FileWork> {
    let folder = request.workdir.as_deref().or(folder);
    match request.kind {
        CallKind::Shell => shell_read(&request.body, &read_body(output)?, folder),
        _ if request.name == READ_FILE => numbered_read(&request.body, output, folder),
        _ => None,
    }
}

/// What a command read, by the client's own record of it.
pub fn recorded_read(item: &Object<'_>, folder: Option<&str>) -> Option<FileWork> {
    let printed = item.get_text("aggregated_output").unwrap_or_default();
    // The record keeps 64 KiB, and says nothing when it cut more out.
    let whole = printed.len() < 60 << 10;
    shell_read(&command_of(item), &printed, folder).filter(|_| whole)
}

/// `L12: text` is line 12. Lines that do not follow each other are no range.
fn numbered_read(path: &str, output: &str, folder: Option<&str>) -> Option<FileWork> {
    let (mut text, mut first, mut next) = (String::new(), None, None);
    for line in output.lines() {
        let (number, words) = line.strip_prefix('L')?.split_once(':')?;
        let number: u32 = number.parse().ok()?;
        if next.is_some_and(|next| next != number) {
            return None;
        }
        first = first.or(Some(number));
        next = Some(number.checked_add(1)?);
        text.push_str(words.strip_prefix(' ').unwrap_or(words));
        text.push('\n');
    }
    let whole = path.starts_with('/') || folder.is_some();
    let mut work = FileWork::new(absolute(path, folder), Operation::Read);
    work.after = FileRegion::lines(first?, text);
    (whole && !path.is_empty()).then_some(work)
}

#[cfg(test)]
mod tests {
    use super::numbered_read;
    use annals_core::Range;

    #[test]
    fn numbered_lines_are_a_range() {
        let work = numbered_read("src/dial.rs", "L7: fn turn() {\nL8: \nL9: }", Some("/home/ada/gauge"))
            .expect("a read");
        assert_eq!(work.path, "/home/ada/gauge/src/dial.rs");
        assert_eq!(work.after.range, Some(Range { start: 7, end: 9 }));
        assert_eq!(work.after.text.as_deref(), Some("fn turn() {\n\n}\n"));
        for output in ["", "failed to read file", "L7: a\nL9: b", "L7: a\nb", "Lx: a"] {
            assert_eq!(numbered_read("/a", output, None), None, "{output}");
        }
        assert_eq!(numbered_read("a", "L1: a", None), None, "nobody knows where");
    }
}
