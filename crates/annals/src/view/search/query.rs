//! Parses search queries: words, phrases, prefixes, alternatives, exclusions and filters.

use super::stop_words::{WordRole, roles};
use annals_core::{
    Error, NamedTime, PassageKind, Result, Time, arrangement, composed, each_whole_term, find_time,
    parse_moment,
};
use annals_store::TermGroup;

/// More than anybody types; the rest is ignored.
const MOST_CLAUSES: usize = 32;

/// More words than anybody types.
const MOST_WORDS: usize = 500;

/// Refuses what nobody types before anything is made of it.
pub fn check_words(text: &str) -> Result<()> {
    match text.split_whitespace().nth(MOST_WORDS) {
        None => Ok(()),
        Some(_) => Err(Error::bad_request("too many words").hint(format!("use at most {MOST_WORDS} words"))),
    }
}

/// A parsed search query.
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
    /// What the caller arranged: sessions with all of these tags, with a star, with a note, or that are hidden.
    pub tags: Vec<String>,
    pub starred: bool,
    pub noted: bool,
    pub hidden: bool,
    /// A time that the words name. Sessions of that time are preferred.
    pub when: Option<NamedTime>,
}

/// Matches if any of its pieces does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clause {
    pub pieces: Vec<QueryPiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPiece {
    pub typed: String,
    /// As typed, in lower case and with single spaces.
    pub text: String,
    pub terms: Vec<Vec<u8>>,
    /// Also matches terms that begin with the last one.
    pub prefix: bool,
    pub quoted: bool,
    /// The terms must be adjacent, as typed.
    pub exact: bool,
    pub role: WordRole,
}

/// Fails only on an invalid filter.
pub fn parse_query(text: &str, now: Time) -> Result<Query> {
    let mut query = Query::default();
    let mut or = false;
    for word in split_words(text) {
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
            && apply_filter(&mut query, name, word.text, now)?
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
        let Some(piece) = parse_piece(text, word.quoted) else { continue };
        let clauses = if word.negated { &mut query.unwanted } else { &mut query.clauses };
        if clauses.len() < MOST_CLAUSES && (!or || clauses.is_empty()) {
            clauses.push(Clause::default());
        }
        if let Some(clause) = clauses.last_mut().filter(|clause| or || clause.pieces.is_empty()) {
            clause.pieces.push(piece);
        }
        or = false;
    }
    mark_roles(&mut query);
    Ok(query)
}

/// Words are judged together: what means nothing in one language is a word of another.
fn mark_roles(query: &mut Query) {
    let pieces = query.clauses.iter_mut().filter(|clause| clause.pieces.len() == 1);
    let mut pieces: Vec<&mut QueryPiece> =
        pieces.flat_map(|clause| &mut clause.pieces).filter(|piece| !piece.quoted && !piece.prefix).collect();
    let roles = roles(&pieces.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>());
    pieces.iter_mut().zip(roles).for_each(|(piece, role)| piece.role = role);
}

impl Query {
    /// Whether only sessions are searched that the caller arranged.
    pub fn is_of_arranged(&self) -> bool {
        self.starred || self.noted || self.hidden || !self.tags.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        let nothing = Query { unwanted: self.unwanted.clone(), ..Query::default() };
        *self == nothing
    }

    /// Whether it reads like a sentence: words, some of which are only there to make one.
    pub fn is_question(&self) -> bool {
        let role = |clause: &Clause| match clause.pieces.as_slice() {
            [piece] if !piece.quoted && !piece.is_code() => Some(piece.role),
            _ => None,
        };
        self.unwanted.is_empty()
            && self.clauses.iter().all(|clause| role(clause).is_some())
            && self.clauses.iter().any(|clause| role(clause) == Some(WordRole::Stop))
            && self.clauses.iter().any(|clause| role(clause) != Some(WordRole::Stop))
    }

    /// Takes the words that name a time out.
    pub fn take_time(&mut self, now: Time) {
        let is_bare = |clause: &Clause| clause.pieces.len() == 1 && !clause.pieces[0].quoted;
        if self.since.is_some() || self.until.is_some() || !self.unwanted.is_empty() {
            return;
        }
        let words: Vec<&str> = self
            .clauses
            .iter()
            .map(|clause| if is_bare(clause) { clause.pieces[0].text.as_str() } else { "" })
            .collect();
        let Some((range, when)) = find_time(&words, now) else { return };
        let is_content = |clause: &Clause| clause.pieces.iter().any(|piece| piece.role != WordRole::Stop);
        let (before, after) = (&self.clauses[..range.start], &self.clauses[range.end..]);
        // Alone, it is what is searched for.
        if before.iter().chain(after).any(is_content) {
            self.clauses.drain(range);
            self.when = Some(when);
        }
    }
}

impl Clause {
    /// The terms that a passage must contain; adjacency is checked later.
    pub fn term_groups(&self) -> Vec<TermGroup> {
        match self.pieces.as_slice() {
            [piece] => (0..piece.terms.len()).map(|number| piece.term_group(number)).collect(),
            pieces => {
                let mut any = TermGroup::default();
                for piece in pieces {
                    // The longest term is usually the rarest.
                    let longest = (0..piece.terms.len()).max_by_key(|number| piece.terms[*number].len());
                    let group = piece.term_group(longest.unwrap_or(0));
                    any.terms.extend(group.terms);
                    any.prefixes.extend(group.prefixes);
                }
                vec![any]
            }
        }
    }

    /// Whether a text, in lower case and with single spaces, contains one of the pieces as typed.
    pub fn matches(&self, text: &str) -> bool {
        self.pieces.iter().any(|piece| text.contains(&piece.text))
    }

    pub fn is_exact(&self) -> bool {
        self.pieces.iter().any(|piece| piece.exact)
            || self.pieces.len() > 1 && self.pieces.iter().any(|piece| piece.terms.len() > 1)
    }
}

impl QueryPiece {
    /// Several terms with signs between them, such as a path; `Anna's` is none.
    pub fn is_code(&self) -> bool {
        let is_sign = |letter: char| letter.is_ascii_punctuation() && letter != '\'';
        self.exact && self.text.contains(is_sign)
    }

    pub fn term_group(&self, number: usize) -> TermGroup {
        let Some(term) = self.terms.get(number) else { return TermGroup::default() };
        let last = number + 1 == self.terms.len();
        // A single character of a script without spaces is indexed only in pairs with its neighbours.
        let letter =
            std::str::from_utf8(term).is_ok_and(|text| !text.is_ascii() && text.chars().count() == 1);
        let prefixes = if last && self.prefix || letter { vec![term.clone()] } else { Vec::new() };
        TermGroup { terms: vec![term.clone()], prefixes, ..TermGroup::default() }
    }
}

fn parse_piece(text: &str, quoted: bool) -> Option<QueryPiece> {
    let prefix = !quoted && text.ends_with('*');
    let text = if prefix { text.trim_end_matches('*') } else { text };
    let mut terms: Vec<Vec<u8>> = Vec::new();
    each_whole_term(text, |term| {
        if terms.len() < MOST_CLAUSES && !terms.iter().any(|known| known == term) {
            terms.push(term.to_vec());
        }
    });
    let (typed, text) = (text.to_owned(), normalize(text));
    let word = text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    // A single term represents the phrase only if nothing else was typed.
    let more = terms.len() > 1 || terms.first().is_some_and(|term| quoted && *term != text.as_bytes());
    let exact = more && (quoted || !word || !text.is_ascii());
    (!terms.is_empty()).then_some(QueryPiece {
        typed,
        text,
        terms,
        prefix,
        quoted,
        exact,
        role: WordRole::Content,
    })
}

/// Lower case and single spaces: how texts are compared.
pub fn normalize(text: &str) -> String {
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
            out.extend(composed(word).chars().flat_map(char::to_lowercase));
        }
    }
    out
}

const FILTERS: [&str; 11] =
    ["source", "project", "branch", "model", "tool", "file", "role", "kind", "since", "until", "tag"];

/// Returns false if there is no filter of this name.
fn apply_filter(query: &mut Query, name: &str, value: &str, now: Time) -> Result<bool> {
    let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
    match name {
        "source" => query.source = text(),
        "project" => query.project = text(),
        "branch" => query.branch = text(),
        "model" => query.model = text(),
        "tool" => query.tool = text(),
        "file" => query.file = text(),
        "role" => query.kinds = intersect_kinds(query.kinds.as_deref(), parse_role(value)?),
        "kind" => query.kinds = intersect_kinds(query.kinds.as_deref(), parse_kinds(value)?),
        "tag" => query.tags.push(arrangement::tag(value)?),
        "is" if value == "starred" => query.starred = true,
        "is" if value == "hidden" => query.hidden = true,
        "has" if value == "note" => query.noted = true,
        "since" => query.since = Some(parse_time(value, now)?),
        "until" => query.until = Some(parse_time(value, now)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn parse_time(text: &str, now: Time) -> Result<Time> {
    parse_moment(text, now).map_err(Error::into_bad_request)
}

pub fn parse_role(value: &str) -> Result<Vec<PassageKind>> {
    use PassageKind::{Assistant, Call, Files, Output, Thinking, User};
    Ok(match value {
        "user" => vec![User],
        "assistant" => vec![Assistant],
        "thinking" => vec![Thinking],
        "tool" => vec![Call, PassageKind::Result, Output, Files],
        _ => {
            return Err(Error::bad_request(format!("unknown role {value:?}"))
                .hint("use user, assistant, thinking or tool"));
        }
    })
}

pub fn parse_kinds(value: &str) -> Result<Vec<PassageKind>> {
    use PassageKind::{Assistant, Call, Files, Output, Record, Thinking, User};
    Ok(match value {
        "message" => vec![User, Assistant, Thinking],
        "call" => vec![Call, Files],
        "result" => vec![PassageKind::Result, Output],
        "library" => vec![Record],
        _ => {
            return Err(Error::bad_request(format!("unknown kind {value:?}"))
                .hint("use message, call, result or library"));
        }
    })
}

/// Both filters apply; contradictory ones leave an empty list, which matches nothing.
pub fn intersect_kinds(
    before: Option<&[PassageKind]>,
    mut with: Vec<PassageKind>,
) -> Option<Vec<PassageKind>> {
    with.retain(|kind| before.is_none_or(|before| before.contains(kind)));
    Some(with)
}

struct QueryWord<'t> {
    negated: bool,
    name: Option<&'t str>,
    text: &'t str,
    quoted: bool,
}

/// Splits at spaces outside quotes; an unclosed quote extends to the end.
fn split_words(text: &str) -> impl Iterator<Item = QueryWord<'_>> {
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
        // `model::terms` is code, not a filter.
        let named = named.filter(|at| !rest[at + 1..].starts_with(':'));
        let name = named.map(|at| &rest[..at]);
        if let Some(at) = named {
            rest = &rest[at + 1..];
        }
        if let Some(inner) = rest.strip_prefix('"') {
            let end = inner.find('"').unwrap_or(inner.len());
            rest = inner.get(end + 1..).unwrap_or("");
            return Some(QueryWord { negated, name, text: &inner[..end], quoted: true });
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(QueryWord { negated, name, text: word, quoted: false })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Query {
        parse_query(text, Time::parse("2026-11-15T12:00:00Z").unwrap()).unwrap()
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
    fn queries_parse_as_typed() {
        assert_eq!(terms(&read("flaky login Test")), [["flaky"], ["login"], ["test"]]);
        assert_eq!(terms(&read("red OR blue sky")), [vec!["red", "blue"], vec!["sky"]]);
        let query = read("cat -dog -\"wet nose\" -- - x-y");
        assert_eq!(query.unwanted.len(), 2);
        assert_eq!(terms(&query), [vec!["cat"], vec!["x", "y"]]);
        let phrase = read("\"exact  Phrase here\"");
        assert!(phrase.clauses[0].pieces[0].exact && phrase.clauses[0].matches("an exact phrase here"));
        let prefix = read("auth*");
        assert!(prefix.clauses[0].pieces[0].prefix && !prefix.clauses[0].is_exact());
        assert!(read("src/foo.rs").clauses[0].is_exact());
        assert!(!read("camelCase snake_case").clauses.iter().any(Clause::is_exact));
        assert_eq!(terms(&read("登录测试")), [["登录", "录测", "测试"]]);
    }

    #[test]
    fn filters_are_distinguished_from_words() {
        let query = read(
            "source:some_source project:\"/home/ada/my app\" role:tool since:7d until:2026-11-01 http://x:80/y std::fs",
        );
        assert_eq!(query.source.as_deref(), Some("some_source"));
        assert_eq!(query.project.as_deref(), Some("/home/ada/my app"));
        assert_eq!(query.kinds.map(|kinds| kinds.len()), Some(4));
        assert!(query.since.is_some() && query.until.is_some());
        assert_eq!(query.clauses.len(), 2);
        assert!(query.clauses[0].matches("see http://x:80/y"));
        for text in ["role:king", "kind:x", "since:soon"] {
            let error = parse_query(text, Time::from_micros(0)).unwrap_err();
            assert!(error.is_bad_request() && error.hint.is_some(), "{text}");
        }
    }

    #[test]
    fn sentences_are_questions() {
        for (text, is_question) in [
            ("how did we fix the login", true),
            ("wie haben wir das Problem mit dem Login gelöst", true),
            ("flaky login test", false),
            ("the \"flaky login\"", false),
            ("the login -test", false),
            ("how would they", false),
            ("die hard", false),
            ("where is Anna's letter", true),
            ("dry-run then", false),
        ] {
            assert_eq!(read(text).is_question(), is_question, "{text}");
        }
    }
}
