//! The search page: results as you type, grouped by session, with highlights and filter chips.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::assistant::colour;
use super::filters::query_of;
use super::html::{Html, in_address, push_text};
use super::search_help::{Help, help};
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::api::parameters::{Params, SearchParameters};
use crate::view::format;
use crate::view::{PassageView, SearchAnswer, SearchFacets, SearchQuery, SearchResult, View, source_labels};
use annals_core::Result;

/// Projects among the filters.
const PROJECTS: usize = 8;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    query: String,
    /// Filters that the form keeps.
    hidden: Vec<(&'static str, String)>,
    chips: Vec<Chip>,
    /// What counts are of, if not of all results.
    counted: Option<String>,
    error: Option<(String, String)>,
    /// Example: the query, the same for an address, and what it finds.
    examples: Vec<(&'static str, String, &'static str)>,
    /// Saved searches: name, query for an address, and the query.
    saved: Vec<(String, String, String)>,
    /// What was made of the words: a text, a link, and its address.
    notes: Vec<(String, &'static str, String)>,
    total: String,
    help: Help,
    results: Vec<ResultHtml>,
    more: Option<String>,
}

/// A filter that is set or removed.
struct Chip {
    label: String,
    address: String,
    chosen: bool,
    /// How many results have it.
    count: Option<String>,
    colour: Option<String>,
}

struct ResultHtml {
    href: String,
    title: Html,
    about: String,
    passages: Vec<PassageHtml>,
    more: usize,
    /// The session with the words to find in it.
    all: String,
}

struct PassageHtml {
    href: String,
    what: String,
    at: Option<(String, String)>,
    snippet: Html,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SearchForm {
    pub(super) q: String,
    source: String,
    role: String,
    kind: String,
    sort: String,
    project: String,
    since: String,
    until: String,
    cursor: String,
}

impl SearchForm {
    fn pairs(&self) -> [(&'static str, &String); 9] {
        [
            ("q", &self.q),
            ("source", &self.source),
            ("role", &self.role),
            ("kind", &self.kind),
            ("sort", &self.sort),
            ("project", &self.project),
            ("since", &self.since),
            ("until", &self.until),
            ("cursor", &self.cursor),
        ]
    }

    /// The address of the page with one filter set or removed.
    fn with(&self, name: &str, value: &str) -> String {
        let mut pairs = Vec::new();
        for (known, before) in self.pairs() {
            let value = if known == name {
                value
            } else if known == "cursor" {
                ""
            } else {
                before
            };
            if !value.is_empty() {
                pairs.push(format!("{known}={}", in_address(value)));
            }
        }
        format!("/search?{}", pairs.join("&"))
    }

    /// The same without filters.
    pub(super) fn of(query: &str) -> SearchForm {
        SearchForm { q: query.to_owned(), ..SearchForm::default() }
    }

    /// The same filters with other words.
    pub(super) fn asking(&self, query: &str) -> SearchForm {
        SearchForm { q: query.to_owned(), cursor: String::new(), ..self.clone() }
    }

    pub(super) fn address(&self) -> String {
        format!("/search{}", query_of(self.pairs().into_iter().map(|(name, value)| (name, value.as_str()))))
    }

    pub(super) fn is_filtered(&self) -> bool {
        let shapes = ["q", "sort", "cursor"];
        self.pairs().into_iter().any(|(name, value)| !shapes.contains(&name) && !value.trim().is_empty())
    }

    pub(super) fn to_parameters(&self) -> SearchParameters {
        let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.trim().is_empty());
        SearchParameters {
            q: self.q.clone(),
            source: non_empty(&self.source),
            project: non_empty(&self.project),
            role: non_empty(&self.role),
            kind: non_empty(&self.kind),
            since: non_empty(&self.since),
            until: non_empty(&self.until),
            sort: non_empty(&self.sort),
            limit: Some(20),
            cursor: non_empty(&self.cursor),
        }
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(form): Params<SearchForm>,
) -> Response {
    let theme = Theme::of(&headers);
    render(app, caller, move |view| search_page(view, &form, theme).map(Some)).await
}

fn search_page(view: &View<'_>, form: &SearchForm, theme: Theme) -> Result<SearchPage> {
    let mut page = SearchPage {
        frame: Frame::new("/search", if form.q.is_empty() { "Search" } else { &form.q }, theme),
        query: form.q.clone(),
        hidden: form
            .pairs()
            .into_iter()
            .filter(|(name, value)| *name != "q" && *name != "cursor" && !value.is_empty())
            .map(|(name, value)| (name, value.clone()))
            .collect(),
        chips: chips(form, None),
        counted: None,
        error: None,
        examples: [
            ("\"connection refused\"", "an exact phrase"),
            ("tool:Bash cargo test", "calls of one tool"),
            ("file:src/main.rs", "sessions that touched a file"),
            ("role:user flaky -windows since:30d", "your prompts of the last month"),
        ]
        .map(|(text, finds)| (text, in_address(text), finds))
        .to_vec(),
        saved: Vec::new(),
        notes: Vec::new(),
        total: String::new(),
        help: Help::default(),
        results: Vec::new(),
        more: None,
    };
    if form.q.trim().is_empty() {
        let saved = view.saved_searches()?.into_iter();
        page.saved = saved
            .map(|search| {
                let query = search.query.to_string();
                (search.name.to_string(), in_address(&query), query)
            })
            .collect();
        return Ok(page);
    }
    let query = form.to_parameters().read().map(|query| SearchQuery { with_facets: true, ..query });
    let found = query.and_then(|query| view.search(&query));
    match found {
        Ok(found) => {
            page.chips = chips(form, Some(&found.facets));
            page.counted = found
                .facets
                .counted
                .map(|counted| format!("Counts are of the first {} results.", format::number(counted)));
            page.total = summary(&form.q, &found);
            page.notes = notes(form, &found);
            if let Some(percent) = found.indexed_percent {
                page.total.push_str(&format!(" · {percent} % indexed, newest first"));
            }
            page.more = found.next_cursor.as_ref().map(|cursor| form.with("cursor", cursor));
            if found.results.is_empty() && found.complete && form.cursor.is_empty() {
                page.help = help(view, form)?;
            }
            page.results = found.results.iter().map(|result| result_html(result, &form.q)).collect();
        }
        // The box searches while the user types, so incomplete queries are normal.
        Err(error) if error.is_bad_request() => {
            page.error = Some((error.what, error.hint.unwrap_or_default()));
        }
        Err(error) => return Err(error),
    }
    Ok(page)
}

/// Filters; with results only those that some of them have, and how many.
fn chips(form: &SearchForm, facets: Option<&SearchFacets>) -> Vec<Chip> {
    let mut chips = Vec::new();
    let mut chip = |label: &str, name: &str, value: &str, now: &str, count: Option<usize>| {
        let chosen = now == value;
        chips.push(Chip {
            label: label.to_owned(),
            address: form.with(name, if chosen { "" } else { value }),
            chosen,
            count: count.map(format::number),
            colour: (name == "source").then(|| colour(value)),
        });
    };
    for (source, label) in source_labels() {
        let counts = facets.map(|facets| facets.sources.iter().find(|(name, _)| name == source));
        match counts {
            Some(None) if source != form.source => {}
            Some(count) => chip(label, "source", source, &form.source, count.map(|(_, count)| *count)),
            None => chip(label, "source", source, &form.source, None),
        }
    }
    for (project, count) in facets.iter().flat_map(|facets| facets.projects.iter().take(PROJECTS)) {
        let name = format::last_part(project.as_str());
        if form.project != project.as_str() {
            chip(name, "project", project.as_str(), &form.project, Some(*count));
        }
    }
    for (role, label) in
        [("user", "prompts"), ("assistant", "answers"), ("thinking", "thinking"), ("tool", "tools")]
    {
        chip(label, "role", role, &form.role, None);
    }
    chip("library", "kind", "library", &form.kind, None);
    chip("newest first", "sort", "recent", &form.sort, None);
    for (name, value) in [("project", &form.project), ("since", &form.since), ("until", &form.until)] {
        if !value.is_empty() {
            chip(&format!("{name}: {value}"), name, value, value, None);
        }
    }
    chips
}

/// `9 sessions, 26 matches`; matches are counted if all of them are on this page.
fn summary(query: &str, found: &SearchAnswer) -> String {
    if found.results.is_empty() && !found.complete {
        return format!("No matches for \u{201c}{query}\u{201d} so far");
    }
    if found.results.is_empty() {
        return format!("No matches for \u{201c}{query}\u{201d}");
    }
    let noun =
        if found.results.iter().all(|result| result.session_id.is_some()) { "session" } else { "result" };
    let mut text = format::counted(found.total, noun);
    if !found.complete {
        text.push_str(" or more");
    } else if found.next_cursor.is_none() {
        let matches: usize =
            found.results.iter().map(|result| result.passages.len() + result.more_passages).sum();
        text.push_str(&format!(", {}", format::plural(matches, "match", "matches")));
    }
    if found.mode == "any" {
        text.push_str(". These are the closest matches.");
    }
    text
}

/// The time that is preferred and the words that are replaced, each with the search without it.
fn notes(form: &SearchForm, found: &SearchAnswer) -> Vec<(String, &'static str, String)> {
    let mut notes = Vec::new();
    for correction in found.corrections.iter().filter(|correction| correction.typed != correction.used) {
        let (typed, used) = (correction.typed.as_str(), correction.used.as_str());
        let quoted = form.q.split(' ').map(|word| match word.to_lowercase() == typed {
            true => format!("\"{word}\""),
            false => word.to_owned(),
        });
        let quoted = quoted.collect::<Vec<_>>().join(" ");
        let text = format!("No session has \u{201c}{typed}\u{201d}; showing \u{201c}{used}\u{201d}.");
        notes.push((text, "Search as typed", form.with("q", &quoted)));
    }
    if let Some(time) = &found.time {
        let [since, until] = &time.days;
        let text = format!("Preferring \u{201c}{}\u{201d}: {since} to {until}.", time.text);
        notes.push((text, "Any time", form.with("q", &without(&form.q, time.text.as_str()))));
    }
    notes
}

/// The query without these words.
fn without(query: &str, words: &str) -> String {
    let bare =
        |word: &str| word.to_lowercase().trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned();
    let (all, words): (Vec<&str>, Vec<&str>) =
        (query.split_whitespace().collect(), words.split(' ').collect());
    let at = all
        .windows(words.len())
        .position(|window| window.iter().map(|word| bare(word)).eq(words.iter().copied()));
    let is_left = |number: &usize| at.is_none_or(|at| !(at..at + words.len()).contains(number));
    all.iter()
        .enumerate()
        .filter(|(number, _)| is_left(number))
        .map(|(_, word)| *word)
        .collect::<Vec<_>>()
        .join(" ")
}

fn result_html(result: &SearchResult, query: &str) -> ResultHtml {
    let base = match (&result.session_id, &result.stream) {
        (Some(id), _) => format!("/sessions/{}/{}", result.source, in_address(id)),
        (None, stream) => {
            let key = result.passages.first().map_or("", |passage| passage.message_id.as_str());
            format!(
                "/library/item?source={}&kind={}&id={}",
                result.source,
                in_address(stream.as_deref().unwrap_or_default()),
                in_address(key)
            )
        }
    };
    let about = [
        Some(result.provider_label.to_owned()),
        result.cwd.as_ref().map(|cwd| format::last_part(cwd.as_str()).to_owned()),
        result.git_branch.as_ref().map(|branch| format!("⎇ {branch}")),
        result.last_message_at.as_deref().map(format::minute),
    ];
    let title = result.heading().map_or("Untitled", |title| title.as_str());
    let mut title_html = String::new();
    push_text(&mut title_html, title);
    ResultHtml {
        title: Html(title_html),
        about: about.into_iter().flatten().collect::<Vec<_>>().join(" · "),
        passages: result.passages.iter().map(|passage| passage_html(&base, result, passage, query)).collect(),
        more: result.more_passages,
        all: format!("{base}?q={}", in_address(query)),
        href: base,
    }
}

fn passage_html(base: &str, result: &SearchResult, passage: &PassageView, query: &str) -> PassageHtml {
    let id = passage.message_id.as_str();
    PassageHtml {
        href: match result.session_id {
            Some(_) => format!("{base}?at={0}&q={1}#m-{0}", in_address(id), in_address(query)),
            None => base.to_owned(),
        },
        what: match (&passage.tool, passage.kind) {
            (Some(tool), kind) => format!("{tool} {kind}"),
            (None, "message") => passage.role.into(),
            (None, kind) => kind.into(),
        },
        at: passage.at.clone().map(|at| {
            let shown = format::minute(&at);
            (at, shown)
        }),
        snippet: highlight(passage.snippet.as_str(), &passage.highlights),
    }
}

/// Positions are counted in characters.
fn highlight(text: &str, highlights: &[[usize; 2]]) -> Html {
    let letters: Vec<char> = text.chars().collect();
    let slice = |from: usize, to: usize| -> String {
        letters.get(from..to.min(letters.len())).unwrap_or_default().iter().collect()
    };
    let mut html = String::new();
    let mut at = 0;
    for [start, length] in highlights.iter().copied().filter(|[start, _]| *start < letters.len()) {
        if start < at {
            continue;
        }
        push_text(&mut html, &slice(at, start));
        html.push_str("<mark>");
        push_text(&mut html, &slice(start, start + length));
        html.push_str("</mark>");
        at = (start + length).min(letters.len());
    }
    push_text(&mut html, &slice(at, letters.len()));
    Html(html)
}

#[cfg(test)]
mod tests {
    use super::{highlight, without};

    #[test]
    fn a_time_is_removed_from_a_query() {
        assert_eq!(without("what did we fix in March?", "in march"), "what did we fix");
        assert_eq!(without("Last week the login", "last week"), "the login");
        assert_eq!(without("login", "last week"), "login");
    }

    #[test]
    fn highlights_are_placed_by_character() {
        assert_eq!(highlight("ü<b> x", &[[2, 1], [5, 9]]).0, "ü&lt;<mark>b</mark>&gt; <mark>x</mark>");
        assert_eq!(highlight("abc", &[[9, 1]]).0, "abc");
    }
}
