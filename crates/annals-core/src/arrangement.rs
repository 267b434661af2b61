//! What a person arranges: stars, tags, names and notes, what is hidden, and saved searches. Each change is a version of
//! one value; of all versions, whatever order they arrive in, the same one counts.

use std::cmp::Ordering;

use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::error::{Error, Result};
use crate::stored::named;
use crate::time::Time;

/// The stream of arrangements, as exports name it.
pub const STREAM: &str = "annals/arrangement";

/// Bytes of a note.
pub const LONGEST_NOTE: usize = 1 << 20;
/// Characters of a name of a session, a message, a project or a saved search.
const LONGEST_NAME: usize = 300;
/// Characters of a tag.
const LONGEST_TAG: usize = 64;
/// Bytes of the query of a saved search.
const LONGEST_QUERY: usize = 8 << 10;
/// What a masked secret begins with.
const MASK: &str = "[secret:";

/// What can be arranged.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum ArrangedKind {
    Session,
    Message,
    /// A directory in which sessions ran.
    Project,
    /// A saved search.
    Search,
}

/// What is said about it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum ArrangedField {
    Star,
    Tag,
    Name,
    Note,
    Hidden,
    /// Of a saved search.
    Query,
}

named!(ArrangedKind, ArrangedField);

/// Something that is arranged, by keys that are the same in every archive.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arranged {
    pub kind: ArrangedKind,
    /// The source of a session; empty for projects and searches.
    pub source: String,
    /// The key of a session, the path of a project, the name of a search.
    pub target: String,
    /// The id of a message; empty for everything else.
    pub message: String,
}

impl Arranged {
    pub fn session(source: &str, key: &str) -> Arranged {
        let [source, target] = [source, key].map(str::to_owned);
        Arranged { kind: ArrangedKind::Session, source, target, message: String::new() }
    }

    pub fn message(source: &str, key: &str, message: &str) -> Arranged {
        let of = Arranged::session(source, key);
        Arranged { kind: ArrangedKind::Message, message: message.to_owned(), ..of }
    }

    pub fn project(path: &str) -> Arranged {
        let path = match path.trim_end_matches('/') {
            "" => path,
            trimmed => trimmed,
        };
        Arranged { kind: ArrangedKind::Project, ..Arranged::session("", path) }
    }

    pub fn search(name: &str) -> Arranged {
        Arranged { kind: ArrangedKind::Search, ..Arranged::session("", name) }
    }
}

/// One version of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrangement {
    pub of: Arranged,
    pub field: ArrangedField,
    /// The tag; empty for other fields, of which there is one.
    pub item: String,
    /// `None` once it is removed.
    pub value: Option<String>,
    pub at: Time,
}

impl Arrangement {
    /// Whether it can be an arrangement at all: what comes from elsewhere may contain anything.
    pub fn check(&self) -> Result<()> {
        let of = &self.of;
        let is_session = matches!(of.kind, ArrangedKind::Session | ArrangedKind::Message);
        let has_message = of.kind == ArrangedKind::Message;
        let fits = match self.field {
            ArrangedField::Query => of.kind == ArrangedKind::Search,
            ArrangedField::Hidden => matches!(of.kind, ArrangedKind::Session | ArrangedKind::Project),
            ArrangedField::Star | ArrangedField::Tag | ArrangedField::Name | ArrangedField::Note => {
                of.kind != ArrangedKind::Search
            }
        };
        let is_tag = self.field == ArrangedField::Tag;
        if of.target.is_empty()
            || of.source.is_empty() == is_session
            || of.message.is_empty() == has_message
            || self.item.is_empty() == is_tag
            || !fits
        {
            return Err(Error::bad_request(format!(
                "not an arrangement: {} of a {}",
                self.field.name(),
                of.kind.name()
            )));
        }
        if is_tag && tag(&self.item)? != self.item {
            return Err(Error::bad_request("a tag of an arrangement is not in its usual form"));
        }
        match (&self.value, self.field) {
            (None, _) | (Some(_), ArrangedField::Star | ArrangedField::Tag | ArrangedField::Hidden) => Ok(()),
            (Some(value), ArrangedField::Name) => name(value).map(drop),
            (Some(value), ArrangedField::Note) => note(value).map(drop),
            (Some(value), ArrangedField::Query) => query(value).map(drop),
        }
    }

    /// Reads the data of a record, as exports write it. None if it is not an arrangement.
    pub fn of_record(data: &Value) -> Option<Arrangement> {
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let version = Arrangement {
            of: Arranged {
                kind: ArrangedKind::from_name(&text("kind"))?,
                source: text("source"),
                target: text("target"),
                message: text("message_id"),
            },
            field: ArrangedField::from_name(&text("field"))?,
            item: text("tag"),
            value: match data.get("value")? {
                Value::Null => None,
                value => Some(value.as_str()?.to_owned()),
            },
            at: Time::parse(&text("at"))?,
        };
        version.check().ok().map(|()| version)
    }

    /// The order of versions of one value: the latest counts. Of equally late ones, one with a masked secret yields to the
    /// text that it was made from.
    pub fn order(&self, other: &Arrangement) -> Ordering {
        let rank = |version: &Arrangement| {
            let is_whole = version.value.as_ref().is_none_or(|value| !value.contains(MASK));
            (version.at, is_whole, version.value.clone())
        };
        rank(self).cmp(&rank(other))
    }
}

/// A name on one line; none if nothing is left of it.
pub fn name(text: &str) -> Result<Option<String>> {
    let letters = text.chars().filter(|letter| !letter.is_control() || letter.is_whitespace());
    let name: String = letters.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() > LONGEST_NAME {
        return Err(Error::bad_request(format!("a name has at most {LONGEST_NAME} characters"))
            .hint("write longer texts into a note"));
    }
    Ok(Some(name).filter(|name| !name.is_empty()))
}

/// A tag as it is compared: in lower case, without `#` before it.
pub fn tag(text: &str) -> Result<String> {
    let text = text.trim();
    let tag = text.strip_prefix('#').unwrap_or(text).to_lowercase();
    let is_odd = |letter: char| letter.is_whitespace() || letter.is_control() || letter == ',';
    if tag.is_empty() || tag.contains(is_odd) {
        return Err(Error::bad_request(format!("not a tag: {text:?}"))
            .hint("a tag is one word; join words with a hyphen: to-do"));
    }
    if tag.chars().count() > LONGEST_TAG {
        return Err(Error::bad_request(format!("a tag has at most {LONGEST_TAG} characters")));
    }
    Ok(tag)
}

/// A note; none if it is blank.
pub fn note(text: &str) -> Result<Option<String>> {
    if text.len() > LONGEST_NOTE {
        return Err(Error::bad_request("a note has at most 1 MB")
            .hint("keep long texts in a file, and name it in the note"));
    }
    let text = text.replace("\r\n", "\n").replace('\0', "");
    Ok(Some(text.trim_end().to_owned()).filter(|text| !text.trim().is_empty()))
}

/// The query of a saved search.
pub fn query(text: &str) -> Result<String> {
    let query = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if query.is_empty() {
        return Err(
            Error::bad_request("empty query").hint("use words, a \"phrase\", or a filter such as tag:NAME")
        );
    }
    if query.len() > LONGEST_QUERY {
        return Err(Error::bad_request("the query is too long to be saved"));
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(value: Option<&str>, at: i64) -> Arrangement {
        Arrangement {
            of: Arranged::session("somewhere", "one"),
            field: ArrangedField::Note,
            item: String::new(),
            value: value.map(str::to_owned),
            at: Time::from_micros(at),
        }
    }

    #[test]
    fn of_two_versions_the_same_counts_in_any_order() {
        let later = [
            (version(Some("a"), 1), version(None, 2)),
            (version(None, 1), version(Some("a"), 1)),
            (version(Some("a"), 1), version(Some("b"), 1)),
            (version(Some("key [secret:aws:1234]"), 1), version(Some("key a"), 1)),
        ];
        for (older, newer) in &later {
            assert_eq!(older.order(newer), Ordering::Less, "{older:?} {newer:?}");
            assert_eq!(newer.order(older), Ordering::Greater, "{older:?} {newer:?}");
        }
        assert_eq!(version(Some("a"), 1).order(&version(Some("a"), 1)), Ordering::Equal);
    }

    #[test]
    fn names_tags_and_notes_have_one_form() {
        assert_eq!(name("  a\n\u{1b}[31mb\u{7} ").unwrap().as_deref(), Some("a [31mb"));
        assert_eq!(name(" \u{7} ").unwrap(), None);
        assert_eq!(name("Größe 🚀 名前").unwrap().as_deref(), Some("Größe 🚀 名前"));
        assert!(name(&"x".repeat(301)).is_err());
        assert_eq!(tag(" #To-Do ").unwrap(), "to-do");
        for text in ["", "#", "two words", "a,b", "a\u{1b}b", &"x".repeat(65)] {
            assert!(tag(text).unwrap_err().is_bad_request(), "{text:?}");
        }
        assert_eq!(note("a\r\nb\0 \n\n").unwrap().as_deref(), Some("a\nb"));
        assert_eq!(note(" \n").unwrap(), None);
        assert!(note(&"x".repeat(LONGEST_NOTE)).unwrap().is_some());
        assert!(note(&"x".repeat(LONGEST_NOTE + 1)).is_err());
        assert_eq!(Arranged::project("/w/").target, "/w");
        assert_eq!(Arranged::project("/").target, "/");
    }

    #[test]
    fn only_what_belongs_together_is_an_arrangement() {
        assert!(version(Some("a"), 1).check().is_ok());
        let of = |of: Arranged, field: ArrangedField, item: &str| Arrangement {
            of,
            field,
            item: item.to_owned(),
            ..version(Some("a"), 1)
        };
        use ArrangedField::{Hidden, Query, Star, Tag};
        assert!(of(Arranged::project("/w"), Hidden, "").check().is_ok());
        assert!(of(Arranged::search("mine"), Query, "").check().is_ok());
        assert!(of(Arranged::message("s", "k", "m"), Tag, "x").check().is_ok());
        for odd in [
            of(Arranged::search("mine"), Star, ""),
            of(Arranged::message("s", "k", "m"), Hidden, ""),
            of(Arranged::session("s", "k"), Query, ""),
            of(Arranged::session("s", "k"), Tag, ""),
            of(Arranged::session("s", "k"), Tag, "X Y"),
            of(Arranged::session("s", "k"), Star, "x"),
            of(Arranged::session("", "k"), Star, ""),
            of(Arranged::session("s", ""), Star, ""),
        ] {
            assert!(odd.check().is_err(), "{odd:?}");
        }
    }
}
