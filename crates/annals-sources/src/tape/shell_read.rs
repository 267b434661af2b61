//! Shell commands that certainly print some lines of one file, and which lines.

use crate::home::folders::absolute;
use annals_core::{FileRegion, FileWork, Operation};

/// The lines that a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrintedLines {
    All,
    /// At most N lines from the start.
    First(u32),
    /// From this line to the end.
    From(u32),
    /// Both included.
    Between(u32, u32),
}

/// True for a command that `shell_read` can analyse.
pub fn is_read(command: &str) -> bool {
    printed_lines(command).is_some()
}

/// What a successful command read, if it is `cat`, `head -n`, `tail -n +` or `sed -n` of one file without any other
/// shell syntax, and if its output matches.
pub fn shell_read(command: &str, printed: &str, folder: Option<&str>) -> Option<FileWork> {
    let (path, lines) = printed_lines(command)?;
    let count = u32::try_from(printed.lines().count()).ok().filter(|count| *count > 0)?;
    let start = match lines {
        PrintedLines::All => 1,
        PrintedLines::First(most) => (count <= most).then_some(1)?,
        PrintedLines::From(line) => line,
        PrintedLines::Between(from, to) => {
            (count <= to.checked_sub(from)?.checked_add(1)?).then_some(from)?
        }
    };
    let whole = path.starts_with('/') || folder.is_some();
    let mut work = FileWork::new(absolute(&path, folder.filter(|_| whole)), Operation::Read);
    work.after = FileRegion::lines(start, printed.to_owned());
    whole.then_some(work)
}

fn printed_lines(command: &str) -> Option<(String, PrintedLines)> {
    let words = plain_words(command.trim())?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (path, lines) = match words.as_slice() {
        ["cat", path] | ["cat", "--", path] => (path, PrintedLines::All),
        ["head", "-n", count, path] => (path, PrintedLines::First(count.parse().ok()?)),
        ["head", count, path] => {
            let digits = count.strip_prefix("-n").or_else(|| count.strip_prefix('-'))?;
            (path, PrintedLines::First(digits.parse().ok()?))
        }
        ["tail", "-n", from, path] => (path, PrintedLines::From(from.strip_prefix('+')?.parse().ok()?)),
        ["sed", "-n", script, path] => {
            let lines = script.strip_suffix('p')?;
            match lines.split_once(',') {
                Some((from, "$")) => (path, PrintedLines::From(from.parse().ok()?)),
                Some((from, to)) => (path, PrintedLines::Between(from.parse().ok()?, to.parse().ok()?)),
                None => {
                    let line = lines.parse().ok()?;
                    (path, PrintedLines::Between(line, line))
                }
            }
        }
        _ => return None,
    };
    (!path.starts_with('-')).then(|| ((*path).to_owned(), lines))
}

/// The words of a command without shell syntax, except for quotes around whole words.
fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = command;
    while !rest.is_empty() {
        let (word, after) = match rest.as_bytes()[0] {
            quote @ (b'\'' | b'"') => {
                let (word, after) = rest[1..].split_once(char::from(quote))?;
                let meant = quote == b'"' && word.contains(['$', '`', '\\', '!']);
                (!meant && !word.contains('\n')).then_some((word, after))?
            }
            _ => {
                let end = rest.find(' ').unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let plain = |letter: char| letter.is_alphanumeric() || "._-/,+@:".contains(letter);
                word.chars().all(plain).then_some((word, after))?
            }
        };
        if !after.is_empty() && !after.starts_with(' ') {
            return None;
        }
        words.push(word.to_owned());
        rest = after.trim_start_matches(' ');
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::{PrintedLines, printed_lines, shell_read};
    use annals_core::Range;

    #[test]
    fn only_what_is_certain_is_read() {
        let table = [
            ("cat src/a.rs", Some(("src/a.rs", PrintedLines::All))),
            ("cat 'a file.txt'", Some(("a file.txt", PrintedLines::All))),
            ("head -n 20 a", Some(("a", PrintedLines::First(20)))),
            ("head -20 a", Some(("a", PrintedLines::First(20)))),
            ("tail -n +5 a", Some(("a", PrintedLines::From(5)))),
            ("sed -n '3,9p' a", Some(("a", PrintedLines::Between(3, 9)))),
            ("sed -n 3,9p a", Some(("a", PrintedLines::Between(3, 9)))),
            ("sed -n '3,$p' a", Some(("a", PrintedLines::From(3)))),
            ("sed -n 7p a", Some(("a", PrintedLines::Between(7, 7)))),
            ("cat a b", None),
            ("cat a | head", None),
            ("cat a > b", None),
            ("cat $HOME/a", None),
            ("cat \"$x\"", None),
            ("cat *.rs", None),
            ("cat ~/a", None),
            ("cat -n a", None),
            ("cat a && cat b", None),
            ("cat a\ncat b", None),
            ("tail -n 5 a", None),
            ("sed -n '/x/,/y/p' a", None),
            ("sed '3,9p' a", None),
            ("cat 'a'b", None),
            ("", None),
        ];
        for (command, expected) in table {
            let expected = expected.map(|(path, lines)| (path.to_owned(), lines));
            assert_eq!(printed_lines(command), expected, "{command}");
        }
    }

    #[test]
    fn the_lines_that_came_are_the_range() {
        let work = shell_read("sed -n 3,9p a.txt", "x\ny\n", Some("/home/ada")).unwrap();
        assert_eq!(work.path, "/home/ada/a.txt");
        assert_eq!(work.after.range, Some(Range { start: 3, end: 4 }));
        assert_eq!(shell_read("sed -n 3,3p a.txt", "x\ny\n", Some("/home/ada")), None);
        assert_eq!(shell_read("cat a.txt", "", Some("/home/ada")), None);
        assert_eq!(shell_read("cat a.txt", "x", None), None);
    }
}
