//! Reads which files and lines a patch changes, and finds the patch in the text that carries it.

use crate::tape::diff::Changes;
pub use crate::tape::unified::{PatchHunk, PatchRange, unified_diff_changes, unified_diff_hunks};
use annals_core::{FileWork, Operation};

/// What a patch does to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchChange {
    Add,
    Update,
    Delete,
}

/// One file section of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    pub path: String,
    pub moved_to: Option<String>,
    pub change: PatchChange,
    pub hunks: Vec<PatchHunk>,
}

/// All file sections of an `apply_patch` body, in order, several for the same file kept apart.
///
/// The format has no line numbers, so only an added file has a hunk: all of its lines.
pub fn parse_patch(text: &str) -> Vec<PatchedFile> {
    let mut files: Vec<PatchedFile> = Vec::new();
    each_patch_line(text, |line| match (line, files.last_mut()) {
        (PatchLine::File(change, path), _) => {
            files.push(PatchedFile { path: path.to_owned(), moved_to: None, change, hunks: Vec::new() });
        }
        (PatchLine::MoveTo(path), Some(file)) => file.moved_to = Some(path.to_owned()),
        (PatchLine::Body(PatchChange::Add, line), Some(file)) if line.starts_with('+') => {
            count_added_line(file)
        }
        (PatchLine::MoveTo(_) | PatchLine::Body(..), _) => {}
    });
    files
}

/// What an `apply_patch` body does to each file, with the lines that it takes out and puts in.
pub fn patch_work(text: &str) -> Vec<FileWork> {
    let mut sections: Vec<(FileWork, Changes)> = Vec::new();
    each_patch_line(text, |line| match (line, sections.last_mut()) {
        (PatchLine::File(change, path), _) => {
            let operation = match change {
                PatchChange::Add => Operation::Create,
                PatchChange::Update => Operation::Update,
                PatchChange::Delete => Operation::Delete,
            };
            let mut changes = Changes::default();
            if change == PatchChange::Add {
                changes.start(1, 1);
            }
            sections.push((FileWork::new(path, operation), changes));
        }
        (PatchLine::MoveTo(path), Some((work, _))) => {
            work.moved_from = Some(std::mem::replace(&mut work.path, path.to_owned()));
            work.operation = Operation::MoveTo;
        }
        (PatchLine::Body(PatchChange::Add, line), Some((_, changes))) => {
            if let Some(line) = line.strip_prefix('+') {
                changes.added(&format!("{line}\n"));
            }
        }
        (PatchLine::Body(PatchChange::Update, line), Some((_, changes))) => match line.as_bytes().first() {
            Some(b'+') => changes.added(&format!("{}\n", &line[1..])),
            Some(b'-') => changes.removed(&format!("{}\n", &line[1..])),
            _ => changes.start_anywhere(),
        },
        (PatchLine::MoveTo(_) | PatchLine::Body(..), _) => {}
    });
    sections.into_iter().flat_map(|(work, changes)| each_place(&work, changes)).collect()
}

/// A piece of work for each changed place, or one for a file of which nothing more is known.
pub fn each_place(work: &FileWork, changes: Changes) -> Vec<FileWork> {
    let places = changes.finish();
    if places.is_empty() {
        return vec![work.clone()];
    }
    places.into_iter().map(|place| place.of(work)).collect()
}

/// One line of a patch, and what it is.
enum PatchLine<'t> {
    File(PatchChange, &'t str),
    MoveTo(&'t str),
    Body(PatchChange, &'t str),
}

fn each_patch_line<'t>(text: &'t str, mut visit: impl FnMut(PatchLine<'t>)) {
    let mut indentation = None;
    let mut inside = true;
    let mut section = None;
    let mut moved = false;
    for line in text.lines() {
        let line = unindented(line, indentation.unwrap_or_default());
        // In an update a leading space makes a context line, even of a text that looks like a marker.
        let marker = if section == Some(PatchChange::Update) { line } else { line.trim_start() };
        if marker.starts_with(BEGIN) {
            inside = true;
            section = None;
        } else if !inside {
            continue;
        } else if marker.starts_with(END) {
            inside = false;
            section = None;
        } else if let Some((change, path)) = file_header(marker) {
            indentation.get_or_insert(&line[..line.len() - marker.len()]);
            section = (!path.is_empty()).then_some(change);
            moved = false;
            if section.is_some() {
                visit(PatchLine::File(change, path));
            }
        } else if let Some(change) = section {
            let target = marker.strip_prefix(MOVE_TO).map(str::trim).filter(|path| !path.is_empty());
            match target.filter(|_| change == PatchChange::Update && !moved) {
                Some(target) => {
                    moved = true;
                    visit(PatchLine::MoveTo(target));
                }
                None => visit(PatchLine::Body(change, marker)),
            }
        }
    }
}

/// Every patch body that is in a text: the text itself, or a heredoc or quoted argument of a shell command.
/// A body goes from `*** Begin Patch` through `*** End Patch`, or to the end of the text.
pub fn find_patches(text: &str) -> Vec<&str> {
    let mut patches = Vec::new();
    let mut open = None;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let marker = line.trim_start();
        match open {
            None => open = line.find(BEGIN).map(|at| position + at),
            Some(begin) if marker.starts_with(END) => {
                let end = position + line.len() - marker.len() + END.len();
                patches.push(&text[begin..end]);
                open = None;
            }
            Some(_) => {}
        }
        position += line.len();
    }
    patches.extend(open.map(|begin| &text[begin..]));
    patches
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const MOVE_TO: &str = "*** Move to:";
const FILE_HEADERS: [(&str, PatchChange); 3] = [
    ("*** Add File:", PatchChange::Add),
    ("*** Update File:", PatchChange::Update),
    ("*** Delete File:", PatchChange::Delete),
];

fn file_header(line: &str) -> Option<(PatchChange, &str)> {
    FILE_HEADERS.iter().find_map(|(marker, change)| Some((*change, line.strip_prefix(marker)?.trim())))
}

fn unindented<'a>(line: &'a str, indentation: &str) -> &'a str {
    line.strip_prefix(indentation).unwrap_or(line)
}

fn count_added_line(file: &mut PatchedFile) {
    match file.hunks.first_mut() {
        Some(PatchHunk { after: Some(range), .. }) => range.end = range.end.saturating_add(1),
        _ => file.hunks.push(PatchHunk { before: None, after: Some(PatchRange { start: 1, end: 1 }) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch";

    fn file(path: &str, change: PatchChange, lines: u32) -> PatchedFile {
        let after = Some(PatchRange { start: 1, end: lines });
        let hunks = if lines == 0 { Vec::new() } else { vec![PatchHunk { before: None, after }] };
        PatchedFile { path: path.to_owned(), moved_to: None, change, hunks }
    }

    fn hunk(before: Option<(u32, u32)>, after: Option<(u32, u32)>) -> PatchHunk {
        let range = |(start, end)| PatchRange { start, end };
        PatchHunk { before: before.map(range), after: after.map(range) }
    }

    #[test]
    fn all_sections_of_a_patch() {
        let patch = "*** Begin Patch\n*** Add File: new dir/n.txt\n+one\n+\n+three\n*** Update File: old.rs\n\
            *** Move to: src/new.rs\n@@ fn main()\n context\n-a\n+b\n*** End of File\n*** Delete File: gone\n\
            *** Update File: old.rs\n@@\n+c\n*** End Patch\n*** Add File: after the end\n+x\n";
        let mut moved = file("old.rs", PatchChange::Update, 0);
        moved.moved_to = Some("src/new.rs".to_owned());
        let expected = vec![
            file("new dir/n.txt", PatchChange::Add, 3),
            moved,
            file("gone", PatchChange::Delete, 0),
            file("old.rs", PatchChange::Update, 0),
        ];
        assert_eq!(parse_patch(patch), expected);
        assert_eq!(parse_patch(&patch.replace('\n', "\r\n")), expected);
    }

    #[test]
    fn tolerated_patches() {
        let missing_end = "*** Begin Patch\n*** Add File: a\n+x";
        assert_eq!(parse_patch(missing_end), vec![file("a", PatchChange::Add, 1)]);
        assert_eq!(parse_patch("*** Delete File: a"), vec![file("a", PatchChange::Delete, 0)]);
        assert_eq!(
            parse_patch("*** Begin Patch\n*** Add File: a\n*** End Patch"),
            vec![file("a", PatchChange::Add, 0)]
        );
        assert_eq!(parse_patch("*** Begin Patch\n*** Add File:  \n+x\n*** End Patch"), vec![]);
        assert_eq!(parse_patch(""), vec![]);
    }

    #[test]
    fn indented_markers() {
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** Update File: b\n@@\n-x\n+y\n\
            *** Delete File: c\n*** End Patch\n";
        let expected = parse_patch(patch);
        assert_eq!(expected.len(), 3);
        for indentation in [" ", "    ", "\t"] {
            let indented: String = patch.lines().map(|line| format!("{indentation}{line}\n")).collect();
            assert_eq!(parse_patch(&indented), expected);
            assert_eq!(parse_patch(indented.trim_start()), expected);
        }
        let uneven = "*** Begin Patch\n  *** Delete File: a\n    *** Add File: b\n +x\n*** End Patch";
        assert_eq!(
            parse_patch(uneven),
            vec![file("a", PatchChange::Delete, 0), file("b", PatchChange::Add, 1)]
        );
    }

    #[test]
    fn hunks_without_their_context() {
        let diff = "--- a/x\n+++ b/x\n@@ -10,5 +10,6 @@ fn main()\n a\n-b\n+B\n c\n+d\n e\n f\n\
            @@ -30,2 +31 @@\n g\n-h\n";
        assert_eq!(
            unified_diff_hunks(diff),
            [hunk(Some((11, 11)), Some((11, 13))), hunk(Some((31, 31)), None)]
        );
        assert_eq!(unified_diff_hunks(&diff.replace('\n', "\r\n")), unified_diff_hunks(diff));
    }

    #[test]
    fn counts_of_a_hunk() {
        assert_eq!(unified_diff_hunks("@@ -3 +3 @@\n-a\n+b\n"), [hunk(Some((3, 3)), Some((3, 3)))]);
        assert_eq!(unified_diff_hunks("@@ -0,0 +1,2 @@\n+a\n+b\n"), [hunk(None, Some((1, 2)))]);
        assert_eq!(unified_diff_hunks("@@ -1,2 +0,0 @@\n-a\n-b\n"), [hunk(Some((1, 2)), None)]);
        assert_eq!(unified_diff_hunks("@@ -5,2 +5,3 @@\n a\n+x\n\n"), [hunk(None, Some((6, 6)))]);
        let unterminated = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file";
        assert_eq!(unified_diff_hunks(unterminated), [hunk(Some((1, 1)), Some((1, 1)))]);
    }

    #[test]
    fn a_hunk_ends_with_its_counts() {
        let two_files = "@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -7 +7 @@\n-c\n+d\n";
        let expected = [hunk(Some((1, 1)), Some((1, 1))), hunk(Some((7, 7)), Some((7, 7)))];
        assert_eq!(unified_diff_hunks(two_files), expected);
        let cut_short =
            "@@ -1,9 +1,9 @@\n-a\n+b\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -7 +7 @@\n-c\n+d\n";
        assert_eq!(unified_diff_hunks(cut_short), expected);
    }

    #[test]
    fn diffs_without_hunks() {
        for diff in [
            "",
            "@@\n-a\n+b\n",
            "@@ -1 +1 @@\n a\n",
            "@@ -x +1 @@\n-a\n",
            "@@ -99999999999 +1 @@\n-a\n",
            "@@@ -1 -1 +1 @@@\n--a\n",
            "-a\n+b\n",
        ] {
            assert_eq!(unified_diff_hunks(diff), [], "{diff}");
        }
        let last = u32::MAX;
        assert_eq!(
            unified_diff_hunks(&format!("@@ -{last},2 +{last},{last} @@\n-a\n-b\n+c\n")),
            [hunk(Some((last, last)), Some((last, last)))]
        );
    }

    #[test]
    fn patches_are_found_wherever_they_stand() {
        let heredoc = format!("cd src && apply_patch <<'EOF'\n{SMALL}\nEOF\necho done");
        assert_eq!(find_patches(&heredoc), [SMALL]);
        assert_eq!(find_patches(&format!("apply_patch '{SMALL}'")), [SMALL]);
        assert_eq!(find_patches(SMALL), [SMALL]);
        assert_eq!(find_patches(&format!("{SMALL}\nthen\n{SMALL}")), [SMALL, SMALL]);
        assert_eq!(
            find_patches("*** Begin Patch\n*** Add File: a\n+x"),
            ["*** Begin Patch\n*** Add File: a\n+x"]
        );
        assert!(find_patches("no patch in here, *** End Patch").is_empty());
    }

    #[test]
    fn added_markers_are_text() {
        let patch = "*** Begin Patch\n*** Add File: doc.md\n+*** End Patch\n+more\n*** End Patch";
        assert_eq!(find_patches(patch), [patch]);
        assert_eq!(parse_patch(patch), [file("doc.md", PatchChange::Add, 2)]);
    }

    #[test]
    fn hostile_texts_are_read_in_one_pass() {
        for unit in ["*** Begin Patch\n", "*** Begin Patch", "*** End Patch\n", "@@ -1 +1 @@\n", "\n", "+"] {
            let text = unit.repeat(2_000_000 / unit.len());
            let found: usize = find_patches(&text).iter().map(|patch| patch.len()).sum();
            assert!(found <= text.len());
            parse_patch(&text);
            unified_diff_hunks(&text);
        }
    }
}
