//! Breaks long lines for a terminal: prose between words, everything else where the line is full.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::table::start_within;

/// Narrower than that, breaking lines makes them worse.
const LEAST: usize = 20;
/// Prose in longer lines is hard to read.
const PROSE: usize = 100;
/// What a tab is shown as where lines are broken: its width depends on where it is.
const TAB: &str = "    ";

/// Lines of prose, each within the width of the terminal and easy to read; all as they are if there is no limit.
pub fn prose(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return text.lines().map(str::to_owned).collect() };
    text.lines().flat_map(|line| words(line, width.clamp(LEAST, PROSE))).collect()
}

/// One line of output or code as lines within the terminal, after something else of this width.
pub fn code(line: &str, width: Option<usize>, before: usize) -> Vec<String> {
    let Some(width) = width else { return vec![line.to_owned()] };
    let width = width.saturating_sub(before).max(LEAST);
    let line = line.replace('\t', TAB);
    let mut rest = line.as_str();
    let mut lines = Vec::new();
    while rest.width() > width {
        let end = at_least_one(rest, start_within(rest, width));
        lines.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    lines.push(rest.to_owned());
    lines
}

/// Continues below the text of a list item or a quotation, not below its mark.
fn words(line: &str, width: usize) -> Vec<String> {
    let line = line.replace('\t', TAB);
    if line.width() <= width {
        return vec![line];
    }
    let indent = " ".repeat(indentation(&line).min(width / 2));
    let (mut lines, mut rest, mut first) = (Vec::new(), line.as_str(), true);
    loop {
        let before = if first { "" } else { indent.as_str() };
        let room = width - before.len();
        if rest.width() <= room {
            lines.push(format!("{before}{rest}"));
            return lines;
        }
        let full = at_least_one(rest, start_within(rest, room));
        // Not within the mark of a list item.
        let least = if first { indent.len() } else { 0 };
        let (end, next) = break_before(rest, full, least);
        lines.push(format!("{before}{}", rest[..end].trim_end()));
        rest = rest[next..].trim_start();
        first = false;
        if rest.is_empty() {
            return lines;
        }
    }
}

/// Where a line that is full at `full` ends, and where the next one starts: at the last space, or between two letters of
/// a script without spaces.
fn break_before(text: &str, full: usize, least: usize) -> (usize, usize) {
    if text[full..].starts_with(' ') {
        return (full, full + 1);
    }
    let is_wide = |letter: Option<char>| letter.is_some_and(|letter| letter.width() == Some(2));
    if is_wide(text[full..].chars().next()) || is_wide(text[..full].chars().next_back()) {
        return (full, full);
    }
    match text[..full].rfind(' ').filter(|space| *space > least) {
        Some(space) => (space, space + 1),
        None => (full, full),
    }
}

/// Never nothing: a letter may be wider than the room.
fn at_least_one(text: &str, end: usize) -> usize {
    if end > 0 { end } else { text.chars().next().map_or(0, char::len_utf8) }
}

/// How far the text of a line is indented: by spaces, and by the mark of a list item or a quotation.
fn indentation(line: &str) -> usize {
    let text = line.trim_start_matches(' ');
    let spaces = line.len() - text.len();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match text.as_bytes() {
        [b'-' | b'*' | b'+' | b'>', b' ', ..] => 2,
        _ if (1..=3).contains(&digits) && text[digits..].starts_with(". ") => digits + 2,
        _ => 0,
    };
    spaces + mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_breaks_between_words() {
        assert_eq!(prose("one two three four five six", Some(20)), ["one two three four", "five six"]);
        assert_eq!(prose("- one two three four five", Some(20)), ["- one two three four", "  five"]);
        assert_eq!(prose("10. one two three four", Some(20)), ["10. one two three", "    four"]);
        assert_eq!(prose("修复登录页面的问题并添加测试", Some(20)), ["修复登录页面的问题并", "添加测试"]);
        assert_eq!(prose("a\n\nb", Some(20)), ["a", "", "b"]);
        assert_eq!(prose("x".repeat(45).as_str(), Some(20)).len(), 3);
        assert_eq!(prose("one two three four five six", None), ["one two three four five six"]);
        assert_eq!(prose(&"word ".repeat(60), Some(200))[0].width(), 99);
    }

    #[test]
    fn code_breaks_where_the_line_is_full() {
        assert_eq!(code("let x = 1; // and more", Some(25), 5), ["let x = 1; // and mo", "re"]);
        assert_eq!(code("\tx", Some(80), 0), ["    x"]);
        assert_eq!(code("\tx", None, 0), ["\tx"]);
        assert_eq!(code("", Some(80), 0), [""]);
    }
}
