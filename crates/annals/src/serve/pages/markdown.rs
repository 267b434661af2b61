//! Markdown of answers as HTML: no raw HTML, no remote images, links only to web and mail addresses.

use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeStream,
};

use super::code;
use super::html::{Html, push_text};

pub(super) fn markdown(text: &str) -> Html {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = TextMergeStream::new(Parser::new_ext(text, options));
    let mut html = String::with_capacity(text.len() * 3 / 2);
    pulldown_cmark::html::push_html(
        &mut html,
        Harmless { events, code: None, pictures: 0, table: Table::default() },
    );
    Html(html)
}

/// Events, with everything removed that is not text.
struct Harmless<'t, E: Iterator<Item = Event<'t>>> {
    events: E,
    /// Language and text of the open code block.
    code: Option<(String, String)>,
    /// Nesting of open images: their text is shown instead.
    pictures: usize,
    table: Table,
}

/// The place in an open table.
#[derive(Default)]
struct Table {
    columns: Vec<Alignment>,
    column: usize,
    is_head: bool,
}

impl Table {
    /// The tag of the next cell, if its column is aligned: styles within tags are not allowed on pages.
    fn aligned_cell(&mut self) -> Option<String> {
        let tag = if self.is_head { "th" } else { "td" };
        let class = match self.columns.get(self.column) {
            Some(Alignment::Right) => Some("number"),
            Some(Alignment::Center) => Some("middle"),
            Some(Alignment::Left | Alignment::None) | None => None,
        };
        self.column += 1;
        class.map(|class| format!("<{tag} class=\"{class}\">"))
    }
}

impl<'t, E: Iterator<Item = Event<'t>>> Iterator for Harmless<'t, E> {
    type Item = Event<'t>;

    fn next(&mut self) -> Option<Event<'t>> {
        loop {
            let event = self.events.next()?;
            if let Some((_, code)) = &mut self.code {
                match event {
                    Event::Text(text) => code.push_str(&text),
                    Event::End(TagEnd::CodeBlock) => {
                        let (language, code) = self.code.take()?;
                        let shown = code::highlighted(&language, &code);
                        return Some(markup(format!("<pre><code>{shown}</code></pre>\n")));
                    }
                    _ => {}
                }
                continue;
            }
            return Some(match event {
                Event::Text(text) => shown(&text),
                Event::Html(html) | Event::InlineHtml(html) => shown(&html),
                Event::Code(code) => {
                    let mut html = String::from("<code>");
                    push_text(&mut html, &code);
                    html.push_str("</code>");
                    markup(html)
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.to_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    self.code = Some((language, String::new()));
                    continue;
                }
                Event::Start(Tag::Table(columns)) => {
                    let plain = vec![Alignment::None; columns.len()];
                    self.table = Table { columns, ..Table::default() };
                    Event::Start(Tag::Table(plain))
                }
                Event::Start(Tag::TableHead) => {
                    (self.table.column, self.table.is_head) = (0, true);
                    event
                }
                Event::Start(Tag::TableRow) => {
                    (self.table.column, self.table.is_head) = (0, false);
                    event
                }
                Event::Start(Tag::TableCell) => self.table.aligned_cell().map_or(event, markup),
                Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
                Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
                Event::Start(Tag::Link { dest_url, .. }) => {
                    let dest_url = if is_harmless(&dest_url) { dest_url } else { CowStr::from("#") };
                    let (title, id) = (CowStr::from(""), CowStr::from(""));
                    Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id })
                }
                Event::Start(Tag::Image { dest_url, .. }) => {
                    self.pictures += 1;
                    let mut html = String::from("<span class=\"picture\" title=\"");
                    push_text(&mut html, &dest_url.replace("[secret:", "[ secret:"));
                    html.push_str("\">image:  ");
                    markup(html)
                }
                Event::End(TagEnd::Image) => {
                    self.pictures = self.pictures.saturating_sub(1);
                    markup("</span>".into())
                }
                // Headings of an answer are not headings of the page.
                Event::Start(Tag::Heading { .. }) => markup("<p class=\"heading\">".into()),
                Event::End(TagEnd::Heading(_)) => markup("</p>\n".into()),
                Event::TaskListMarker(done) => markup(if done { "☑ ".into() } else { "☐ ".into() }),
                other => other,
            });
        }
    }
}

fn shown<'t>(text: &str) -> Event<'t> {
    let mut html = String::with_capacity(text.len());
    push_text(&mut html, text);
    markup(html)
}

fn markup<'t>(html: String) -> Event<'t> {
    Event::InlineHtml(CowStr::from(html))
}

fn is_harmless(address: &str) -> bool {
    let lower = address.trim().to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn what_runs_in_a_browser_is_shown_as_text() {
        let hostile = [
            "<script>alert(1)</script>",
            "before <img src=x onerror=alert(1)> after",
            "[click](javascript:alert(1))",
            "[click](JaVaScRiPt:alert(1))",
            "[click](data:text/html;base64,PHNjcmlwdD4=)",
            "<svg onload=alert(1)><script>alert(1)</script></svg>",
            "![x](https://elsewhere.example/pixel.png)",
            "<a href=\"javascript:alert(1)\">x</a>",
            "[x](https://example.com \"onmouseover=alert(1)\")",
            "```<script>\nalert(1)\n```",
            "<https://example.com/\"onclick=alert(1)>",
        ];
        for text in hostile {
            let shown = markdown(text).0;
            for bad in [
                "<script",
                "<img",
                "<svg",
                "href=\"javascript",
                "href=\"JaVa",
                "href=\"data",
                "\" on",
                "\"on",
            ] {
                assert!(!shown.contains(bad), "{text} -> {shown}");
            }
        }
    }

    #[test]
    fn aligned_columns_have_classes_and_no_styles() {
        let shown = markdown("|a|b|c|\n|-|-:|:-:|\n|1|2|3|\n|4|5|6|\n").0;
        assert!(!shown.contains("style"), "{shown}");
        for part in [
            "<th>a</th><th class=\"number\">b</th><th class=\"middle\">c</th>",
            "<td>1</td><td class=\"number\">2</td><td class=\"middle\">3</td>",
            "<td class=\"number\">5</td>",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn markdown_is_rendered() {
        let shown = markdown(
            "# Title\n\n**bold** `code` [link](https://example.com)\n\n- [x] one\n\n|a|b|\n|-|-|\n|1|2|\n",
        )
        .0;
        for part in [
            "<p class=\"heading\">Title</p>",
            "<strong>bold</strong>",
            "<code>code</code>",
            "<a href=\"https://example.com\">link</a>",
            "☑ one",
            "<td>1</td>",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
