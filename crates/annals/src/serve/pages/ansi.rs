//! Output of terminals: colours and weights become classes, all other escape sequences are left out.

use super::html::{Html, push_text, text};

/// What the text looks like from here on.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Style {
    bold: bool,
    faint: bool,
    italic: bool,
    underlined: bool,
    /// One of the sixteen colours.
    colour: Option<u8>,
}

impl Style {
    fn classes(self) -> String {
        let mut classes: Vec<String> = [
            (self.bold, "t-bold"),
            (self.faint, "t-faint"),
            (self.italic, "t-italic"),
            (self.underlined, "t-line"),
        ]
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, class)| class.to_owned())
        .collect();
        classes.extend(self.colour.map(|colour| format!("t{}", colour % 8)));
        classes.join(" ")
    }

    /// Applies the numbers of one sequence; what has no class of ours changes nothing.
    fn apply(&mut self, numbers: &str) {
        let mut numbers = numbers.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Style::default(),
                1 => self.bold = true,
                2 => self.faint = true,
                3 => self.italic = true,
                4 => self.underlined = true,
                22 => (self.bold, self.faint) = (false, false),
                23 => self.italic = false,
                24 => self.underlined = false,
                30..=37 => self.colour = Some(number as u8 - 30),
                90..=97 => self.colour = Some(number as u8 - 90),
                39 => self.colour = None,
                // Colours by number or by parts: those after the first sixteen are shown as plain text.
                38 | 48 => match numbers.next() {
                    Some(5) => {
                        let chosen = numbers.next();
                        if number == 38 {
                            self.colour = chosen.filter(|chosen| *chosen < 16).map(|chosen| chosen as u8 % 8);
                        }
                    }
                    Some(2) => {
                        numbers.by_ref().take(3).for_each(drop);
                        if number == 38 {
                            self.colour = None;
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// Text that may hold escape sequences of terminals.
pub(super) fn terminal_text(output: &str) -> Html {
    if !output.contains('\u{1b}') {
        return text(output);
    }
    let mut html = String::with_capacity(output.len() + output.len() / 8);
    let mut style = Style::default();
    let mut rest = output;
    while let Some(at) = rest.find('\u{1b}') {
        push_styled(&mut html, &rest[..at], style);
        rest = after_sequence(&rest[at + 1..], &mut style);
    }
    push_styled(&mut html, rest, style);
    Html(html)
}

fn push_styled(html: &mut String, text: &str, style: Style) {
    if text.is_empty() {
        return;
    }
    if style == Style::default() {
        return push_text(html, text);
    }
    html.push_str(&format!("<span class=\"{}\">", style.classes()));
    push_text(html, text);
    html.push_str("</span>");
}

/// The text after one sequence, whose escape character was read.
fn after_sequence<'t>(text: &'t str, style: &mut Style) -> &'t str {
    let mut letters = text.char_indices();
    match letters.next() {
        // A control sequence ends with a letter or a few other characters.
        Some((_, '[')) => match text[1..].find(|letter: char| ('@'..='~').contains(&letter)) {
            Some(end) => {
                if text[1 + end..].starts_with('m') {
                    style.apply(&text[1..1 + end]);
                }
                &text[1 + end + 1..]
            }
            None => "",
        },
        // A title or a link ends with a bell, or with an escape and a backslash.
        Some((_, ']')) => match text.find(['\u{7}', '\u{1b}']) {
            Some(end) if text[end..].starts_with('\u{7}') => &text[end + 1..],
            Some(end) => text[end + 1..].strip_prefix('\\').unwrap_or(&text[end..]),
            None => "",
        },
        Some((_, letter)) => &text[letter.len_utf8()..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::terminal_text;

    #[test]
    fn colours_are_classes_and_the_rest_is_left_out() {
        let of = |output: &str| terminal_text(output).0;
        assert_eq!(of("plain <b>"), "plain &lt;b&gt;");
        assert_eq!(of("\u{1b}[1;31mred\u{1b}[0m ok"), "<span class=\"t-bold t1\">red</span> ok");
        assert_eq!(of("\u{1b}[38;5;2mx\u{1b}[39my"), "<span class=\"t2\">x</span>y");
        assert_eq!(of("\u{1b}[38;2;1;2;3mx\u{1b}[2K\u{1b}[1Ay"), "xy");
        assert_eq!(of("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\!"), "link!");
        assert_eq!(of("\u{1b}[31"), "");
        assert_eq!(of("\u{1b}"), "");
        assert_eq!(of("a\u{1b}üb"), "ab");
    }

    #[test]
    fn masks_stay_marked() {
        let shown = terminal_text("\u{1b}[32m[secret:github:3f9a]\u{1b}[0m").0;
        assert!(shown.contains("<mark class=\"secret\""), "{shown}");
    }
}
