//! Text as HTML: escaped, control characters made visible, masks of secrets marked.

use std::fmt;

use askama::filters::HtmlSafe;

/// HTML built by this module: every text in it has been escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Html(pub String);

impl fmt::Display for Html {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

/// Escapes archived text.
pub(super) fn text(text: &str) -> Html {
    let mut html = String::with_capacity(text.len() + text.len() / 8);
    push_text(&mut html, text);
    Html(html)
}

pub(super) fn push_text(html: &mut String, text: &str) {
    let mut rest = text;
    while let Some(open) = rest.find("[secret:") {
        let (before, from) = rest.split_at(open);
        push_escaped(html, before);
        let Some(close) = from.find(']').filter(|close| *close < 64) else {
            push_escaped(html, &from[..1]);
            rest = &from[1..];
            continue;
        };
        html.push_str("<mark class=\"secret\" title=\"masked secret\">");
        push_escaped(html, &from[..=close]);
        html.push_str("</mark>");
        rest = &from[close + 1..];
    }
    push_escaped(html, rest);
}

/// Also for attributes: both quotes are escaped.
pub(super) fn push_escaped(html: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            letter => push_visible(html, letter),
        }
    }
}

fn push_visible(html: &mut String, letter: char) {
    match letter {
        '\r' => {}
        // Control characters are shown as pictures of themselves.
        '\0'..='\u{1f}' if is_hidden(letter) => {
            html.push(char::from_u32(0x2400 + letter as u32).unwrap_or('\u{fffd}'));
        }
        '\u{7f}' => html.push('\u{2421}'),
        letter if is_hidden(letter) => html.push_str(&format!("⟨U+{:04X}⟩", letter as u32)),
        letter => html.push(letter),
    }
}

/// Line breaks and tabs are part of a page.
fn is_hidden(letter: char) -> bool {
    annals_core::is_hidden(letter) && letter != '\n' && letter != '\t'
}

/// Makes the invisible characters of a rendered page visible: templates escape only what HTML requires.
pub(super) fn visible(page: String) -> String {
    if !page.chars().any(is_hidden) {
        return page;
    }
    let mut html = String::with_capacity(page.len() + 64);
    page.chars().for_each(|letter| push_visible(&mut html, letter));
    html
}

pub(super) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    push_escaped(&mut html, text);
    html
}

pub(super) use annals_core::in_address;

#[cfg(test)]
mod tests {
    use super::{in_address, text, visible};

    #[test]
    fn nothing_in_a_text_is_markup() {
        let shown = text("<script>alert('x')</script> \u{1b}[31m \u{202e}").0;
        assert_eq!(shown, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; \u{241b}[31m ⟨U+202E⟩");
    }

    #[test]
    fn a_page_has_no_invisible_letter() {
        let page = "<b title=\"\u{1b}\u{202e}\">\u{9b}é … \u{7f}</b>\n";
        assert_eq!(visible(page.into()), "<b title=\"\u{241b}⟨U+202E⟩\">⟨U+009B⟩é … \u{2421}</b>\n");
        assert_eq!(visible("<p>plain</p>".into()), "<p>plain</p>");
    }

    #[test]
    fn masks_are_marked() {
        let shown = text("key [secret:github:3f9a] <[secret:").0;
        assert!(shown.starts_with("key <mark class=\"secret\""), "{shown}");
        assert!(shown.ends_with("[secret:github:3f9a]</mark> &lt;[secret:"), "{shown}");
    }

    #[test]
    fn addresses_hold_any_text() {
        assert_eq!(in_address("a b/ü&"), "a%20b%2F%C3%BC%26");
    }
}
