//! The session page: the conversation, and the sessions it is linked to.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::arrange::Arranged;
use super::compare;
use super::entries::{Entries, entries};
use super::filters::query_of;
use super::html::{Html, in_address, text};
use super::rows::{SessionLine, address, title};
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Refusal, answer, with_view};
use crate::serve::api::parameters::{BranchParameters, InPath, Nothing, OfSource, Params};
use crate::view::format;
use crate::view::{Branch, Narrowing, Paging, SearchQuery, SessionQuery, SessionView, TranscriptQuery, View};
use annals_core::{Error, Result};
use annals_store::SessionFilter;

/// Steps loaded at once.
const SIZE: i64 = 40;
/// Steps that a view looks at for one page, and those it reads at once.
const MOST_NARROWED: i64 = 2_000;
const STRETCH: i64 = 200;
/// Sub-agents listed.
const AGENTS: i64 = 30;
/// Sessions listed beside this one.
const BESIDE: i64 = 40;

#[derive(Template)]
#[template(path = "session.html")]
struct SessionPage {
    frame: Frame,
    base: String,
    source: String,
    label: &'static str,
    title: String,
    /// Name of the directory, and the full path for an address.
    project: Option<(String, String)>,
    branch: Option<String>,
    /// First and last moment: for machines, and as shown without a script.
    period: Vec<(String, String)>,
    numbers: Vec<String>,
    marks: Vec<&'static str>,
    /// Relation to this session, address, title.
    ties: Vec<(&'static str, String, String)>,
    arranged: Arranged,
    resume: String,
    instructions: String,
    api: String,
    compare: String,
    facts: Vec<(&'static str, String)>,
    /// Name, address, whether it is chosen.
    views: Vec<(&'static str, String, bool)>,
    /// The latest sessions, beside this one on wide screens.
    beside: Vec<SessionLine>,
    here: String,
    query: String,
    /// Only part of the conversation is shown; where it goes on.
    narrowed: bool,
    more: Option<String>,
    total: i64,
    size: i64,
    from: i64,
    /// Suffix of fragment addresses, if another branch than the client's is shown.
    on_branch: String,
    chunks: Vec<i64>,
    entries: Html,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceParameters {
    /// The id of a step
    at: Option<String>,
    /// The number of a step
    from: Option<i64>,
    /// Words to highlight
    q: Option<String>,
    /// A step of the branch to show
    branch: Option<String>,
    /// What to show: prompts, edits or failures; everything if missing
    view: Option<String>,
}

/// Views of a conversation, as in the address and as people call them.
const VIEWS: [(&str, &str, Narrowing); 4] = [
    ("", "All", Narrowing::All),
    ("prompts", "Prompts and answers", Narrowing::Prompts),
    ("edits", "Edits", Narrowing::Edits),
    ("failures", "Failures", Narrowing::Failures),
];

fn narrowing_of(name: Option<&str>) -> Result<Narrowing> {
    let found = VIEWS.into_iter().find(|(known, ..)| *known == name.unwrap_or_default());
    found
        .map(|(.., narrowing)| narrowing)
        .ok_or_else(|| Error::bad_request("invalid value of `view`").hint("use prompts, edits or failures"))
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(place): Params<PlaceParameters>,
) -> Response {
    let theme = Theme::of(&headers);
    render(app, caller, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        session_page(view, &session, place, theme).map(Some)
    })
    .await
}

fn find_session(view: &View<'_>, source: &str, path: &InPath) -> Result<Option<SessionView>> {
    view.exact_session(source, &path.session_id)
}

fn session_page(
    view: &View<'_>,
    session: &SessionView,
    place: PlaceParameters,
    theme: Theme,
) -> Result<SessionPage> {
    let mut branch = Branch::parse(place.branch.as_deref());
    // A search result may be on a branch that the client does not show.
    if let (Branch::Current, Some(at)) = (&branch, &place.at)
        && view.is_off_branch(session, at)?
    {
        branch = Branch::Through(at.clone());
    }
    let total = view.count_steps(session, &branch)?;
    let step = match &place.at {
        Some(id) => view.step_of(session, &branch, id)?.unwrap_or(0),
        None => place.from.unwrap_or(0),
    };
    let narrowing = narrowing_of(place.view.as_deref())?;
    let narrowed = narrowing != Narrowing::All;
    let step = step.clamp(0, (total - 1).max(0));
    let from = if narrowed { step } else { step / SIZE * SIZE };
    let base = address(session);
    let line = SessionLine::of(session);
    let view_address = |name: &str, from: &str| {
        let pairs = [("branch", place.branch.as_deref().unwrap_or_default()), ("view", name), ("from", from)];
        format!("{base}{}", query_of(pairs.into_iter()))
    };
    let mut more = None;
    let shown = if narrowed {
        let (entries, next) = narrowed_html(view, session, &branch, from, narrowing)?;
        let name = place.view.as_deref().unwrap_or_default();
        more = next.filter(|next| *next < total).map(|next| view_address(name, &next.to_string()));
        entries.render()
    } else {
        steps_html(view, session, &branch, from)?.render()
    };
    let recent =
        SessionQuery { page: Paging { limit: BESIDE, cursor: None }, brief: true, ..SessionQuery::default() };
    let label = session.provider_label;
    Ok(SessionPage {
        frame: Frame::new("/sessions", title(session), theme),
        source: session.source.clone(),
        label,
        title: title(session),
        project: line.project.map(|(name, whole)| (name, in_address(&whole))),
        branch: line.branch,
        period: period(session),
        numbers: numbers(session),
        marks: line.marks,
        ties: ties(view, session)?,
        arranged: Arranged::of(session),
        resume: session.resume_command.clone(),
        instructions: instructions(session),
        api: format!(
            "/api/v1/agent-sessions/{}/sessions/{}",
            session.source,
            in_address(&session.session_id)
        ),
        compare: compare::address_with(session),
        facts: facts(session),
        views: VIEWS.map(|(name, label, known)| (label, view_address(name, ""), known == narrowing)).to_vec(),
        beside: view.sessions(&recent)?.sessions.iter().map(SessionLine::of).collect(),
        here: base.clone(),
        query: place.q.clone().unwrap_or_default(),
        narrowed,
        more,
        total,
        size: SIZE,
        from,
        on_branch: match &branch {
            Branch::Current => String::new(),
            Branch::All => "?branch=all".into(),
            Branch::Through(id) => format!("?branch={}", in_address(id)),
        },
        chunks: if narrowed { Vec::new() } else { (0..total).step_by(SIZE as usize).collect() },
        entries: Html(shown.map_err(|_| Error::new("cannot render the page"))?),
        base,
    })
}

/// The steps of a view from a number on, and the step after the last one that was looked at.
fn narrowed_html(
    view: &View<'_>,
    session: &SessionView,
    branch: &Branch,
    from: i64,
    narrowing: Narrowing,
) -> Result<(Entries, Option<i64>)> {
    let mut kept = Vec::new();
    let mut next = from;
    while (kept.len() as i64) < SIZE && next < from + MOST_NARROWED {
        let page = view.steps_from(session, branch, next, STRETCH)?;
        let count = page.messages.len() as i64;
        kept.extend(page.messages.into_iter().filter_map(|entry| narrowing.narrow(entry)));
        next += count;
        if count < STRETCH {
            return Ok((entries(view, &address(session), &kept), None));
        }
    }
    Ok((entries(view, &address(session), &kept), Some(next)))
}

fn steps_html(view: &View<'_>, session: &SessionView, branch: &Branch, from: i64) -> Result<Entries> {
    let page = view.steps_from(session, branch, from, SIZE)?;
    Ok(entries(view, &address(session), &page.messages))
}

/// The first and the last moment, each as in its data and to the minute.
fn period(session: &SessionView) -> Vec<(String, String)> {
    let moments = [&session.first_message_at, &session.last_message_at].into_iter().flatten();
    moments.map(|at| (at.clone(), format!("{} UTC", format::minute(at)))).collect()
}

/// The numbers after the period as text, where no script shows it in local time.
pub(super) fn dated_numbers(session: &SessionView) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(first), Some(last)) = (&session.first_message_at, &session.last_message_at) {
        let (first, last) = (format::minute(first), format::minute(last));
        let same_day = format::day(&first) == format::day(&last);
        let end = if same_day { last.get(11..).unwrap_or(&last) } else { &last };
        lines.push(format!("{first} – {end} UTC"));
    }
    lines.extend(numbers(session));
    lines
}

fn numbers(session: &SessionView) -> Vec<String> {
    let mut numbers = Vec::new();
    if !session.models.is_empty() {
        numbers.push(session.models.join(", "));
    }
    numbers.push(format::counted(session.message_count, "message"));
    if session.tool_call_count > 0 {
        numbers.push(format::counted(session.tool_call_count, "tool call"));
    }
    if session.tokens.total > 0 {
        numbers.push(format!("{} tokens", format::compact(session.tokens.total)));
    }
    numbers.push(match session.cost_usd {
        Some(cost) => format!("{} {}", format::money(cost), session.billing_source),
        None => "no price".into(),
    });
    numbers
}

/// Parent and child sessions.
fn ties(view: &View<'_>, session: &SessionView) -> Result<Vec<(&'static str, String, String)>> {
    let mut ties = Vec::new();
    let other = |id: &str| view.exact_session(&session.source, id);
    let origin = session.parent_session_id.as_deref().or(session.copied_from.as_deref());
    if let Some(parent) = origin.map(other).transpose()?.flatten() {
        let kind = match session.parent_kind.as_deref() {
            Some("sub_agent") => "Started by",
            Some("review") => "Review of",
            Some("fork") => "Forked from",
            Some("revert") => "Reverted from",
            _ => "Continues",
        };
        ties.push((kind, address(&parent), title(&parent)));
    }
    let filter = SessionFilter {
        source: Some(session.source.clone()),
        parent: Some(session.session_id.clone()),
        with_agents: true,
        ..SessionFilter::default()
    };
    let query = SessionQuery { filter, page: Paging { limit: AGENTS, cursor: None }, brief: true };
    let mut children = view.sessions(&query)?.sessions;
    children.reverse();
    for child in &children {
        let kind = match child.parent_kind.as_deref() {
            Some("sub_agent") => "Sub-agent",
            Some("review") => "Reviewed in",
            _ => "Continued in",
        };
        ties.push((kind, address(child), title(child)));
    }
    Ok(ties)
}

/// The library as of the start of the session.
fn instructions(session: &SessionView) -> String {
    let mut address = format!("/library?source={}", session.source);
    if let Some(cwd) = &session.cwd {
        address.push_str(&format!("&project={}", in_address(cwd.as_str())));
    }
    if let Some(at) = &session.first_message_at {
        address.push_str(&format!("&as_of={}", in_address(at)));
    }
    address
}

pub(super) fn facts(session: &SessionView) -> Vec<(&'static str, String)> {
    let shown = |text: &Option<annals_core::Shown>| text.as_ref().map(ToString::to_string);
    let entrypoints: Vec<&str> = session.entrypoints.iter().map(annals_core::Shown::as_str).collect();
    let tokens = &session.tokens;
    let facts = [
        ("id", Some(session.session_id.clone())),
        ("client's title", shown(&session.title).filter(|_| session.name.is_some())),
        ("directory", shown(&session.cwd)),
        ("client", shown(&session.client_version)),
        ("started from", Some(entrypoints.join(", ")).filter(|text| !text.is_empty())),
        ("commit", shown(&session.git_commit)),
        ("repository", shown(&session.git_origin_url)),
        (
            "tokens",
            (tokens.total > 0).then(|| {
                format!(
                    "{} input, {} output, {} cache read, {} cache write, {} reasoning",
                    format::number(tokens.input),
                    format::number(tokens.output),
                    format::number(tokens.cache_read),
                    format::number(tokens.cache_write),
                    format::number(tokens.reasoning)
                )
            }),
        ),
        ("prompts", Some(format::number(session.user_message_count))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Steps from a number on, as a fragment of the page.
pub(super) async fn steps(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    Params(place): Params<PlaceParameters>,
) -> Response {
    render(app, caller, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        let branch = Branch::parse(place.branch.as_deref());
        steps_html(view, &session, &branch, place.from.unwrap_or(0)).map(Some)
    })
    .await
}

#[derive(Template)]
#[template(path = "outline.html")]
struct OutlinePiece {
    base: String,
    prompts: Vec<PromptHtml>,
    complete: bool,
}

struct PromptHtml {
    id: String,
    seq: i64,
    at: Option<(String, String)>,
    text: Html,
    /// What the responses to it used.
    spent: Option<String>,
}

/// The prompts of a session, as a fragment of the page.
pub(super) async fn outline(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    Params(parameters): Params<BranchParameters>,
) -> Response {
    render(app, caller, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        let branch = Branch::parse(parameters.branch.as_deref());
        let outline = view.outline(&session, &branch)?;
        let prompts = outline.prompts.into_iter().map(|prompt| PromptHtml {
            id: prompt.id,
            seq: prompt.seq,
            at: prompt.at.map(|at| {
                let shown = format::minute(&at);
                (at, shown)
            }),
            text: text(prompt.text.as_str()),
            spent: (prompt.tokens > 0).then(|| {
                let tokens = format!("{} tokens", format::compact(prompt.tokens));
                prompt.cost_usd.map_or(tokens.clone(), |cost| format!("{tokens} · {}", format::money(cost)))
            }),
        });
        Ok(Some(OutlinePiece {
            base: address(&session),
            prompts: prompts.collect(),
            complete: outline.complete,
        }))
    })
    .await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindParameters {
    q: String,
}

#[derive(Serialize)]
struct Matches {
    matches: Vec<Match>,
    complete: bool,
}

#[derive(Serialize)]
struct Match {
    id: String,
    seq: i64,
}

/// Steps of this session that contain the words, in order.
pub(super) async fn find(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(parameters): Params<FindParameters>,
) -> Response {
    answer(app, caller, headers, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        let query = SearchQuery { query: parameters.q, session: Some(session.row), ..SearchQuery::default() };
        let (found, complete) = view.find_in_session(&query)?;
        let matches = found.into_iter().map(|(id, seq)| Match { id, seq }).collect();
        Ok(Some(Matches { matches, complete }))
    })
    .await
}

#[derive(Template)]
#[template(path = "raw.html")]
struct RawPage {
    frame: Frame,
    back: String,
    lines: Vec<(String, Html)>,
}

/// The captured lines of one step.
pub(super) async fn raw(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let theme = Theme::of(&headers);
    render(app, caller, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        let lines = view.lines(&session, &path.key)?;
        let Some(lines) = lines else { return Ok(None) };
        let lines = lines.into_iter().map(|line| {
            let about = format!(
                "{}, byte {}, {}",
                line.part,
                format::number(line.offset as i64),
                format::size(line.length as i64)
            );
            (about, text(line.text.as_str()))
        });
        Ok(Some(RawPage {
            frame: Frame::new("/sessions", "Original record", theme),
            back: format!("{0}?at={1}#m-{1}", address(&session), in_address(&path.key)),
            lines: lines.collect(),
        }))
    })
    .await
}

/// A complete output as plain text.
pub(super) async fn output(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let found = with_view(app, caller, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        let Ok(number) = path.number.parse() else { return Ok(None) };
        view.whole_output(&session, &path.key, number)
    });
    match found.await {
        Ok(Some(output)) => plain("text/plain; charset=utf-8", output.to_string()),
        Ok(None) => Refusal::not_found("output not found").into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

pub(super) fn plain(kind: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// An image of a message; nothing in it can be executed.
pub(super) async fn picture(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let found = with_view(app, caller, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        let Ok(number) = path.number.parse() else { return Ok(None) };
        view.picture(&session, &path.key, number)
    });
    match found.await {
        Ok(Some(picture)) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static(picture.media_type)),
                (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
                (CONTENT_DISPOSITION, HeaderValue::from_static("inline")),
            ];
            (headers, picture.bytes).into_response()
        }
        Ok(None) => Refusal::not_found("image not found").into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// The conversation as Markdown, for pasting elsewhere.
pub(super) async fn markdown(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfSource(source): OfSource,
    path: InPath,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let found = with_view(app, caller, move |view| {
        let Some(session) = find_session(view, source, &path)? else { return Ok(None) };
        let mut out = String::new();
        conversation(view, &session, &mut out)?;
        Ok(Some(out))
    });
    match found.await {
        Ok(Some(text)) => plain("text/markdown; charset=utf-8", text),
        Ok(None) => Refusal::not_found("session not found").into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// Adds the title, the facts and the conversation of a session.
pub(super) fn conversation(view: &View<'_>, session: &SessionView, out: &mut String) -> Result<()> {
    out.push_str(&format!("# {}\n\n", title(session)));
    for line in dated_numbers(session) {
        out.push_str(&format!("- {line}\n"));
    }
    let query = TranscriptQuery { changes: true, ..TranscriptQuery::default() };
    view.transcript(session, query, &mut |entry| {
        super::paste::push_entry(out, &entry);
        Ok(())
    })?;
    Ok(())
}
