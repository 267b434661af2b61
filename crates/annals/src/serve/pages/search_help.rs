//! What a search that finds nothing offers instead: how often its words are found alone, and looser searches.

use super::search::SearchForm;
use crate::view::View;
use crate::view::format;
use annals_core::Result;

/// What narrows a search.
const FILTERS: [&str; 13] = [
    "source", "project", "branch", "model", "tool", "file", "role", "kind", "since", "until", "tag", "is",
    "has",
];
/// Words that are looked for alone.
const WORDS: usize = 8;

/// What helps when nothing was found.
#[derive(Debug, Default)]
pub(super) struct Help {
    /// What was typed, what it finds alone, and where.
    pub words: Vec<(String, String, Option<String>)>,
    /// Searches that find more: a label and an address.
    pub looser: Vec<(String, String)>,
}

impl Help {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.looser.is_empty()
    }
}

pub(super) fn help(view: &View<'_>, form: &SearchForm) -> Result<Help> {
    let parts = parts_of(&form.q);
    let mut help = Help::default();
    if form.is_filtered() {
        help.looser.push(("Without the filters".to_owned(), SearchForm::of(&form.q).address()));
    }
    let without = |left_out: &str| {
        let kept: Vec<&str> = parts.iter().filter(|part| **part != left_out).copied().collect();
        kept.join(" ")
    };
    let mut words = Vec::new();
    for part in &parts {
        match kind_of(part) {
            Kind::Filter if parts.len() > 1 => {
                help.looser.push((format!("Without {part}"), form.asking(&without(part)).address()));
            }
            Kind::Phrase => {
                let bare = form.q.replace(part, part.trim_matches('"'));
                help.looser
                    .push((format!("{} in any order", part.trim_matches('"')), form.asking(&bare).address()));
            }
            Kind::Word => words.push(*part),
            Kind::Filter | Kind::Operator => {}
        }
    }
    for word in words.into_iter().take(WORDS) {
        let alone = form.asking(word);
        let found = match alone.to_parameters().read().and_then(|query| view.search(&query)) {
            Err(error) if error.is_bad_request() => continue,
            found => found?,
        };
        let count = || format::counted(found.total, "result");
        let (finds, address): (String, Option<String>) = match found.corrections.first() {
            Some(near) if found.total > 0 => {
                let used = near.used.as_str();
                (format!("is nowhere; “{used}” has {}", count()), Some(form.q.replace(word, used)))
            }
            None if found.total > 0 => (format!("alone has {}", count()), Some(word.to_owned())),
            _ => ("is nowhere".to_owned(), None),
        };
        // A single word that is nowhere was said above.
        if parts.len() > 1 || address.is_some() {
            help.words.push((word.to_owned(), finds, address.map(|words| form.asking(&words).address())));
        }
    }
    Ok(help)
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Word,
    Phrase,
    /// It narrows: `tool:Bash`, `-word`.
    Filter,
    /// `OR` and brackets.
    Operator,
}

fn kind_of(part: &str) -> Kind {
    match part {
        "OR" | "AND" | "(" | ")" => Kind::Operator,
        _ if part.starts_with('-') => Kind::Filter,
        _ if part.starts_with('"') => Kind::Phrase,
        _ if part.split_once(':').is_some_and(|(name, _)| FILTERS.contains(&name)) => Kind::Filter,
        _ => Kind::Word,
    }
}

/// The parts of a query; what is quoted stays together.
fn parts_of(query: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_quoted) = (0, false);
    for (at, letter) in query.char_indices() {
        if letter == '"' {
            is_quoted = !is_quoted;
        }
        if letter.is_whitespace() && !is_quoted {
            parts.push(&query[start..at]);
            start = at + letter.len_utf8();
        }
    }
    parts.push(&query[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::{Kind, kind_of, parts_of};

    #[test]
    fn what_is_quoted_stays_together() {
        assert_eq!(
            parts_of(" low  \"tide at\" tool:\"two words\" ü"),
            ["low", "\"tide at\"", "tool:\"two words\"", "ü"]
        );
        assert_eq!(parts_of("\"left open and on"), ["\"left open and on"]);
        assert_eq!(parts_of("  "), [""; 0]);
    }

    #[test]
    fn filters_are_told_from_words() {
        for (part, kind) in [
            ("tide", Kind::Word),
            ("a::b", Kind::Word),
            ("https://x", Kind::Word),
            ("Type::new", Kind::Word),
            ("tool:Bash", Kind::Filter),
            ("-windows", Kind::Filter),
            ("\"low tide\"", Kind::Phrase),
            ("OR", Kind::Operator),
            ("x:", Kind::Word),
        ] {
            assert_eq!(kind_of(part), kind, "{part}");
        }
    }
}
