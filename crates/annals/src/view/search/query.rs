//! Parses search queries: words, phrases, prefixes, alternatives, exclusions and filters.

use annals_core::{Error, PassageKind, Result as Answered, Time, each_whole_term, parse_moment};
use annals_store::TermGroup;

/// More than anybody means; the rest is left out.
const MOST_CLAUSES: usize = 32;

/// A question as it was understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// All of them must match.
    pub clauses: Vec<Clause>,
    pub unwanted: Vec<Clause>,
    pub source: Option<String>,
    pub project: Option<String>,
    pub branch: Option<String>,
    pub model: Option<String>,
    pub tool: Option<String>,
    pub file: Option<String>,
    pub kinds: Option<Vec<PassageKind>>,
    pub since: Option<Time>,
    pub until: Option<Time>,
}

/// Any of its pieces is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clause {
    pub pieces: Vec<QueryPiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPiece {
    /// As typed, in lower case and with single spaces.
    pub text: String,
    pub terms: Vec<Vec<u8>>,
    /// Also terms that begin with the last one.
    pub prefix: bool,
    /// The terms must be adjacent, as typed.
    pub exact: bool,
}

/// Never fails but for a filter that makes no sense.
pub fn read_query(text: &str, now: Time) -> Answered<Query> {
    let mut query = Query::default();
    let mut or = false;
    for word in words(text) {
        let bare = !word.quoted && word.name.is_none();
        if bare && !word.negated && word.text == "OR" {
            or = true;
            continue;
        }
        if bare && !word.negated && word.text == "AND" {
            continue;
        }
        if let Some(name) = word.name.filter(|name| word.negated && FILTERS.contains(name)) {
            return Err(Error::bad_request(format!("-{name}: is not a filter"))
                .hint(format!("use {name}: to narrow a search, or -word to exclude a word")));
        }
        if let Some(name) = word.name
            && filter(&mut query, name, word.text, now)?
        {
            continue;
        }
        let whole;
        let text = match word.name {
            Some(name) => {
                whole = format!("{name}:{}", word.text);
                whole.as_str()
            }
            None => word.text,
        };
        let Some(piece) = piece(text, word.quoted) else { continue };
        let clauses = if word.negated { &mut query.unwanted } else { &mut query.clauses };
        if clauses.len() < MOST_CLAUSES && (!or || clauses.is_empty()) {
            clauses.push(Clause::default());
        }
        if let Some(clause) = clauses.last_mut().filter(|clause| or || clause.pieces.is_empty()) {
            clause.pieces.push(piece);
        }
        or = false;
    }
    Ok(query)
}

impl Query {
    pub fn is_empty(&self) -> bool {
        let nothing = Query { unwanted: self.unwanted.clone(), ..Query::default() };
        *self == nothing
    }
}

impl Clause {
    /// What passages have to hold so that this may fit; what is beside what is looked at later.
    pub fn wanted(&self) -> Vec<TermGroup> {
        match self.pieces.as_slice() {
            [piece] => (0..piece.terms.len()).map(|number| piece.wanted(number)).collect(),
            pieces => {
                let mut any = TermGroup::default();
                for piece in pieces {
                    // The longest term is the rarest, mostly.
                    let longest = (0..piece.terms.len()).max_by_key(|number| piece.terms[*number].len());
                    let wanted = piece.wanted(longest.unwrap_or(0));
                    any.terms.extend(wanted.terms);
                    any.prefixes.extend(wanted.prefixes);
                }
                vec![any]
            }
        }
    }

    /// Words in their usual forms, for questions in which no passage holds all of them as they stand.
    pub fn forms(&self) -> Option<TermGroup> {
        let [piece] = self.pieces.as_slice() else { return self.wanted().pop() };
        let [term] = piece.terms.as_slice() else { return self.wanted().into_iter().next() };
        let word = std::str::from_utf8(term).ok()?;
        if STOP_WORDS.contains(&word) {
            return None;
        }
        let mut wanted = piece.wanted(0);
        let is_word = word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_word {
            let stem = stem(word);
            let forms = ["", "s", "es", "d", "ed", "ing", "e", "er", "ion", "ly"];
            wanted.terms.extend(forms.iter().map(|end| format!("{stem}{end}").into_bytes()));
            if let Some(last) = stem.chars().last() {
                wanted.terms.extend(["ed", "ing"].map(|end| format!("{stem}{last}{end}").into_bytes()));
            }
            wanted.terms.sort();
            wanted.terms.dedup();
        }
        Some(wanted)
    }

    /// Whether a text, in lower case and with single spaces, holds one of the pieces as it was typed.
    pub fn fits(&self, text: &str) -> bool {
        self.pieces.iter().any(|piece| text.contains(&piece.text))
    }

    pub fn is_exact(&self) -> bool {
        self.pieces.iter().any(|piece| piece.exact)
            || self.pieces.len() > 1 && self.pieces.iter().any(|piece| piece.terms.len() > 1)
    }
}

impl QueryPiece {
    fn wanted(&self, number: usize) -> TermGroup {
        let Some(term) = self.terms.get(number) else { return TermGroup::default() };
        let last = number + 1 == self.terms.len();
        // A single letter of a script without spaces is only in pairs, where others are beside it.
        let letter =
            std::str::from_utf8(term).is_ok_and(|text| !text.is_ascii() && text.chars().count() == 1);
        let prefixes = if last && self.prefix || letter { vec![term.clone()] } else { Vec::new() };
        TermGroup { terms: vec![term.clone()], prefixes }
    }
}

/// Takes off one usual ending.
fn stem(word: &str) -> &str {
    for end in ["ing", "ies", "ed", "es", "s", "e"] {
        if let Some(stem) = word.strip_suffix(end).filter(|stem| stem.len() >= 3) {
            // `planning` is `plan` with a letter twice.
            let bytes = stem.as_bytes();
            let doubled =
                matches!(bytes, [.., a, b] if a == b && !b"lsz".contains(a)) && end != "s" && end != "e";
            return if doubled { &stem[..stem.len() - 1] } else { stem };
        }
    }
    word
}

/// Words that a question has and an answer need not have.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it",
    "its", "me", "my", "of", "on", "or", "our", "should", "so", "some", "that", "the", "their", "them",
    "then", "there", "they", "this", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "why", "will", "with", "would", "you", "your",
];

fn piece(text: &str, quoted: bool) -> Option<QueryPiece> {
    let prefix = !quoted && text.ends_with('*');
    let text = if prefix { text.trim_end_matches('*') } else { text };
    let mut terms: Vec<Vec<u8>> = Vec::new();
    each_whole_term(text, |term| {
        if terms.len() < MOST_CLAUSES && !terms.iter().any(|known| known == term) {
            terms.push(term.to_vec());
        }
    });
    let text = plain(text);
    let word = text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    // A single term represents the phrase only when nothing else was typed.
    let more = terms.len() > 1 || terms.first().is_some_and(|term| quoted && *term != text.as_bytes());
    let exact = more && (quoted || !word || !text.is_ascii());
    (!terms.is_empty()).then_some(QueryPiece { text, terms, prefix, exact })
}

/// Small letters, single spaces: how texts are compared.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        let start = out.len();
        if word.is_ascii() {
            out.push_str(word);
            out[start..].make_ascii_lowercase();
        } else {
            out.extend(word.chars().flat_map(char::to_lowercase));
        }
    }
    out
}

const FILTERS: [&str; 10] =
    ["source", "project", "branch", "model", "tool", "file", "role", "kind", "since", "until"];

/// True when the name is one of a filter's.
fn filter(query: &mut Query, name: &str, value: &str, now: Time) -> Answered<bool> {
    let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
    match name {
        "source" => query.source = text(),
        "project" => query.project = text(),
        "branch" => query.branch = text(),
        "model" => query.model = text(),
        "tool" => query.tool = text(),
        "file" => query.file = text(),
        "role" => query.kinds = narrowed(query.kinds.as_deref(), roles(value)?),
        "kind" => query.kinds = narrowed(query.kinds.as_deref(), kinds(value)?),
        "since" => query.since = Some(moment(value, now)?),
        "until" => query.until = Some(moment(value, now)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn moment(text: &str, now: Time) -> Answered<Time> {
    parse_moment(text, now).map_err(Error::into_bad_request)
}

pub fn roles(value: &str) -> Answered<Vec<PassageKind>> {
    use PassageKind::{Assistant, Call, Files, Output, Result, Thinking, User};
    Ok(match value {
        "user" => vec![User],
        "assistant" => vec![Assistant],
        "thinking" => vec![Thinking],
        "tool" => vec![Call, Result, Output, Files],
        _ => {
            return Err(Error::bad_request(format!("unknown role {value:?}"))
                .hint("use user, assistant, thinking or tool"));
        }
    })
}

pub fn kinds(value: &str) -> Answered<Vec<PassageKind>> {
    use PassageKind::{Assistant, Call, Files, Output, Record, Result, Thinking, User};
    Ok(match value {
        "message" => vec![User, Assistant, Thinking],
        "call" => vec![Call, Files],
        "result" => vec![Result, Output],
        "library" => vec![Record],
        _ => {
            return Err(Error::bad_request(format!("unknown kind {value:?}"))
                .hint("use message, call, result or library"));
        }
    })
}

/// Both filters hold; what contradicts leaves nothing, which no passage is.
pub fn narrowed(before: Option<&[PassageKind]>, mut with: Vec<PassageKind>) -> Option<Vec<PassageKind>> {
    with.retain(|kind| before.is_none_or(|before| before.contains(kind)));
    Some(with)
}

struct Word<'t> {
    negated: bool,
    name: Option<&'t str>,
    text: &'t str,
    quoted: bool,
}

/// Cuts at spaces, but not within quotes; a quote that is never closed ends with the text.
fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let negated = rest.len() > 1 && rest.starts_with('-') && !rest[1..].starts_with([' ', '-']);
        if negated {
            rest = &rest[1..];
        }
        let named =
            rest.find(':').filter(|at| *at > 0 && rest[..*at].bytes().all(|byte| byte.is_ascii_lowercase()));
        // `model::terms` is code.
        let named = named.filter(|at| !rest[at + 1..].starts_with(':'));
        let name = named.map(|at| &rest[..at]);
        if let Some(at) = named {
            rest = &rest[at + 1..];
        }
        if let Some(inner) = rest.strip_prefix('"') {
            let end = inner.find('"').unwrap_or(inner.len());
            rest = inner.get(end + 1..).unwrap_or("");
            return Some(Word { negated, name, text: &inner[..end], quoted: true });
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(Word { negated, name, text: word, quoted: false })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Query {
        read_query(text, Time::parse("2026-11-15T12:00:00Z").unwrap()).unwrap()
    }

    fn terms(query: &Query) -> Vec<Vec<String>> {
        let text = |term: &Vec<u8>| String::from_utf8(term.clone()).unwrap();
        query
            .clauses
            .iter()
            .map(|clause| clause.pieces.iter().flat_map(|piece| piece.terms.iter().map(text)).collect())
            .collect()
    }

    #[test]
    fn what_people_type_is_understood() {
        assert_eq!(terms(&read("flaky login Test")), [["flaky"], ["login"], ["test"]]);
        assert_eq!(terms(&read("red OR blue sky")), [vec!["red", "blue"], vec!["sky"]]);
        let query = read("cat -dog -\"wet nose\" -- - x-y");
        assert_eq!(query.unwanted.len(), 2);
        assert_eq!(terms(&query), [vec!["cat"], vec!["x", "y"]]);
        let phrase = read("\"exact  Phrase here\"");
        assert!(phrase.clauses[0].pieces[0].exact && phrase.clauses[0].fits("an exact phrase here"));
        let prefix = read("auth*");
        assert!(prefix.clauses[0].pieces[0].prefix && !prefix.clauses[0].is_exact());
        assert!(read("src/foo.rs").clauses[0].is_exact());
        assert!(!read("camelCase snake_case").clauses.iter().any(Clause::is_exact));
        assert_eq!(terms(&read("登录测试")), [["登录", "录测", "测试"]]);
    }

    #[test]
    fn filters_are_told_from_words() {
        let query = read(
            "source:some_source project:\"/home/ada/my app\" role:tool since:7d until:2026-11-01 http://x:80/y std::fs",
        );
        assert_eq!(query.source.as_deref(), Some("some_source"));
        assert_eq!(query.project.as_deref(), Some("/home/ada/my app"));
        assert_eq!(query.kinds.map(|kinds| kinds.len()), Some(4));
        assert!(query.since.is_some() && query.until.is_some());
        assert_eq!(query.clauses.len(), 2);
        assert!(query.clauses[0].fits("see http://x:80/y"));
        for text in ["role:king", "kind:x", "since:soon"] {
            let problem = read_query(text, Time::from_micros(0)).unwrap_err();
            assert!(problem.is_bad_request() && problem.hint.is_some(), "{text}");
        }
    }

    #[test]
    fn questions_have_forms_and_no_stop_words() {
        let forms = |word: &str| read(word).clauses[0].forms();
        assert!(forms("the").is_none());
        let fix = forms("fixing").unwrap();
        for form in ["fix", "fixed", "fixes", "fixing"] {
            assert!(fix.terms.contains(&form.as_bytes().to_vec()), "{form}");
        }
        assert!(forms("plan").unwrap().terms.contains(&b"planned".to_vec()));
        assert!(forms("planned").unwrap().terms.contains(&b"plan".to_vec()));
    }
}
