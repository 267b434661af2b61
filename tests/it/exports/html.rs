//! A strict reader of HTML: every tag is closed in order, every attribute quoted, every id there once, nothing runs and
//! nothing is loaded.

use std::collections::BTreeSet;

const VOID: [&str; 6] = ["br", "hr", "img", "input", "link", "meta"];
/// Elements that end a paragraph, so that its end tag would be stray.
const BLOCKS: [&str; 16] = [
    "article", "aside", "details", "div", "dl", "figure", "footer", "h1", "h2", "h3", "header", "main", "ol",
    "pre", "section", "ul",
];

/// What a document contains.
#[derive(Debug, Default)]
pub struct Document {
    pub ids: BTreeSet<String>,
    pub links: Vec<String>,
    pub images: Vec<String>,
    /// Its text, with references resolved.
    pub text: String,
}

/// Reads a document; panics on the first thing that is not strict.
pub fn read(html: &str, what: &str) -> Document {
    let rest = html.strip_prefix("<!doctype html>\n").unwrap_or_else(|| panic!("{what}: no doctype"));
    let mut document = Document::default();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = rest;
    while !rest.is_empty() {
        let Some(start) = rest.find('<') else {
            document.push_text(rest, what);
            break;
        };
        document.push_text(&rest[..start], what);
        let end = start + tag_length(&rest[start..], what);
        let tag = &rest[start + 1..end - 1];
        rest = &rest[end..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{what}: </{name}> closes another element");
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
            "{what}: <{tag}>"
        );
        assert!(
            !["script", "iframe", "object", "embed", "link", "base", "form"].contains(&name),
            "{what}: <{name}>"
        );
        assert!(!(open.contains(&"p") && BLOCKS.contains(&name)), "{what}: <{name}> in a paragraph");
        assert!(!(name == "a" && open.contains(&"a")), "{what}: a link in a link");
        document.attributes(tag[name.len()..].trim(), name, what);
        if name == "style" {
            let end = rest.find("</style>").unwrap_or_else(|| panic!("{what}: <style> has no end"));
            let loads = |(at, _): (usize, &str)| !rest[at..].starts_with("url(#");
            assert!(!rest[..end].match_indices("url(").any(loads), "{what}: styles load");
            assert!(!rest[..end].contains("@import"), "{what}: styles load");
            rest = &rest[end + "</style>".len()..];
        } else if !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{what}: {open:?} are not closed");
    for link in &document.links {
        if let Some(id) = link.strip_prefix('#').filter(|id| !id.is_empty()) {
            assert!(document.ids.contains(id), "{what}: #{id} leads nowhere");
        }
    }
    document
}

/// The length of a tag; `>` within quotes does not end it.
fn tag_length(text: &str, what: &str) -> usize {
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return at + 1,
            b'<' if at > 0 => panic!("{what}: < in a tag: {:?}", text.chars().take(80).collect::<String>()),
            _ => {}
        }
    }
    panic!("{what}: a tag has no end");
}

impl Document {
    fn attributes(&mut self, text: &str, element: &str, what: &str) {
        let mut rest = text;
        let mut names = BTreeSet::new();
        while !rest.is_empty() {
            let end = rest.find(['=', ' ']).unwrap_or(rest.len());
            let name = &rest[..end];
            assert!(
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
                "{what}: attribute {name:?} of <{element}>"
            );
            assert!(!name.starts_with("on"), "{what}: {name} runs");
            assert!(names.insert(name), "{what}: {name} is there twice");
            rest = &rest[end..];
            let mut value = String::new();
            if let Some(quoted) = rest.strip_prefix("=\"") {
                let end = quoted.find('"').unwrap_or_else(|| panic!("{what}: {name} has no end"));
                value = resolved(&quoted[..end], what);
                rest = &quoted[end + 1..];
            }
            rest = rest.trim_start();
            match name {
                "id" => assert!(self.ids.insert(value.clone()), "{what}: id {value} is there twice"),
                "href" => self.links.push(value),
                "src" => {
                    assert!(value.starts_with("data:image/"), "{what}: loads {value}");
                    self.images.push(value);
                }
                "style" | "srcset" | "action" => panic!("{what}: {name}"),
                _ => {}
            }
        }
    }

    fn push_text(&mut self, text: &str, what: &str) {
        assert!(!text.contains('>'), "{what}: > in text: {:?}", text.chars().take(80).collect::<String>());
        self.text.push_str(&resolved(text, what));
    }
}

fn resolved(text: &str, what: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let end = rest[at..].find(';').unwrap_or_else(|| panic!("{what}: a bare & in {rest:?}")) + at;
        let name = &rest[at + 1..end];
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            name => {
                let number = name.strip_prefix('#').and_then(|digits| digits.parse().ok());
                number.and_then(char::from_u32).unwrap_or_else(|| panic!("{what}: &{name};"))
            }
        });
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}
