//! Unified diffs as HTML: lines with their numbers, and what changed within a line.

use super::html::push_text;

/// A line of a diff as it is shown.
struct Line<'d> {
    class: &'static str,
    number: Option<usize>,
    /// With its first character, which says what became of it.
    text: &'d str,
}

pub(super) fn push_diff(html: &mut String, diff: &str) {
    let lines = read(diff);
    let mut at = 0;
    while at < lines.len() {
        let removed = run(&lines[at..], "dr");
        let added = run(&lines[at + removed..], "da");
        // Lines that replace as many others are compared with them one by one.
        if removed > 0 && removed == added {
            let (old, new) = lines[at..at + 2 * removed].split_at(removed);
            let changes: Vec<_> = old.iter().zip(new).map(|(old, new)| changed(old.text, new.text)).collect();
            old.iter()
                .zip(&changes)
                .for_each(|(line, changed)| push_line(html, line, changed.map(|both| both.0)));
            new.iter()
                .zip(&changes)
                .for_each(|(line, changed)| push_line(html, line, changed.map(|both| both.1)));
            at += 2 * removed;
        } else {
            let count = (removed + added).max(1);
            lines[at..at + count].iter().for_each(|line| push_line(html, line, None));
            at += count;
        }
    }
    if !diff.ends_with('\n') {
        html.truncate(html.trim_end_matches('\n').len());
    }
}

fn run(lines: &[Line<'_>], class: &str) -> usize {
    lines.iter().take_while(|line| line.class == class).count()
}

fn read(diff: &str) -> Vec<Line<'_>> {
    // The next line of the file before and after, once a hunk says where it is.
    let mut next: Option<(usize, usize)> = None;
    let mut lines = Vec::new();
    for text in diff.lines() {
        let (class, number) = match text.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => ("dh", None),
            [b'@', b'@', ..] => {
                next = starts(text);
                ("dh", None)
            }
            [b'+', ..] => ("da", next.map(|(_, after)| after)),
            [b'-', ..] => ("dr", next.map(|(before, _)| before)),
            _ => ("dc", next.map(|(_, after)| after)),
        };
        if let Some((before, after)) = &mut next {
            *before += usize::from(matches!(class, "dr" | "dc"));
            *after += usize::from(matches!(class, "da" | "dc"));
        }
        lines.push(Line { class, number, text });
    }
    lines
}

/// Where a hunk starts, before and after: `@@ -12,3 +14,5 @@`.
fn starts(header: &str) -> Option<(usize, usize)> {
    let mut parts = header.split(' ').skip(1);
    let mut number =
        |sign: char| -> Option<usize> { parts.next()?.strip_prefix(sign)?.split(',').next()?.parse().ok() };
    Some((number('-')?, number('+')?))
}

fn push_line(html: &mut String, line: &Line<'_>, changed: Option<(usize, usize)>) {
    html.push_str("<span class=\"");
    html.push_str(line.class);
    if let Some(number) = line.number {
        html.push_str(&format!("\" data-n=\"{number}"));
    }
    html.push_str("\">");
    match changed {
        Some((start, end)) if start < end => {
            push_text(html, &line.text[..start]);
            html.push_str("<b>");
            push_text(html, &line.text[start..end]);
            html.push_str("</b>");
            push_text(html, &line.text[end..]);
        }
        _ => push_text(html, line.text),
    }
    html.push_str("</span>\n");
}

/// The stretch of bytes of each line that differs, if the lines have enough in common to compare them.
type Stretches = ((usize, usize), (usize, usize));

fn changed(old: &str, new: &str) -> Option<Stretches> {
    let start = 1 + common(old[1..].chars(), new[1..].chars());
    let end = common(old[start..].chars().rev(), new[start..].chars().rev());
    let similar = 3 * (start - 1 + end) >= old.len().max(new.len()) - 1;
    similar.then_some(((start, old.len() - end), (start, new.len() - end)))
}

/// Bytes of the letters that two texts have in common from the start.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).map(|(letter, _)| letter.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::push_diff;

    fn of(diff: &str) -> String {
        let mut html = String::new();
        push_diff(&mut html, diff);
        html
    }

    #[test]
    fn lines_have_numbers() {
        assert_eq!(
            of("--- a\n+++ b\n@@ -7,2 +9,3 @@\n x\n+y\n z\n"),
            "<span class=\"dh\">--- a</span>\n<span class=\"dh\">+++ b</span>\n<span class=\"dh\">@@ -7,2 +9,3 @@</span>\n\
             <span class=\"dc\" data-n=\"9\"> x</span>\n<span class=\"da\" data-n=\"10\">+y</span>\n\
             <span class=\"dc\" data-n=\"11\"> z</span>\n"
        );
        assert_eq!(of("+a"), "<span class=\"da\">+a</span>");
    }

    #[test]
    fn what_changed_in_a_line_is_marked() {
        assert_eq!(
            of("-let ä = 1;\n+let ö = 1;\n"),
            "<span class=\"dr\">-let <b>ä</b> = 1;</span>\n<span class=\"da\">+let <b>ö</b> = 1;</span>\n"
        );
        assert_eq!(
            of("-aaaa\n+zzzz\n"),
            "<span class=\"dr\">-aaaa</span>\n<span class=\"da\">+zzzz</span>\n"
        );
        assert_eq!(
            of("-a b\n+a b <c>\n"),
            "<span class=\"dr\">-a b</span>\n<span class=\"da\">+a b<b> &lt;c&gt;</b></span>\n"
        );
        assert_eq!(of("-x\n"), "<span class=\"dr\">-x</span>\n");
        assert_eq!(of("-\n+\n"), "<span class=\"dr\">-</span>\n<span class=\"da\">+</span>\n");
    }
}
