//! The secrets page: where secrets appear, never their values.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;

use super::html::{Html, in_address};
use super::rows::SessionLine;
use super::trace::trace_graph;
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::Params;
use crate::serve::api::secrets::{SecretAnswer, current_results};
use crate::view::format;
use crate::view::{Paging, SecretTrace, SecretView, SessionQuery, View, revoke_at};
use annals_core::{Error, Result};
use annals_store::SessionFilter;

/// Sessions on the page, if they are what is listed.
const GROUPS: usize = 200;
/// Sessions listed per secret.
const LISTED_SESSIONS: usize = 4;

#[derive(Template)]
#[template(path = "secrets.html")]
struct SecretsPage {
    frame: Frame,
    tab: &'static str,
    looking: bool,
    done: u64,
    all: u64,
    total: String,
    looked_at: Option<(String, String)>,
    secrets: Vec<SecretLine>,
    /// How the list is grouped: name, address, whether it is chosen.
    groupings: Vec<(&'static str, &'static str, bool)>,
    sessions: Vec<SessionGroup>,
    /// Sessions that are not listed.
    rest: Option<String>,
    trace: Option<TraceHtml>,
}

/// A session, and the secrets that appear in it.
struct SessionGroup {
    line: SessionLine,
    secrets: Vec<SecretInSession>,
}

struct SecretInSession {
    mark: String,
    address: String,
    revoke_at: Option<&'static str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    /// The secret that is followed.
    mark: String,
    /// `session`, or nothing for a row for each secret.
    by: String,
}

/// One secret, followed.
struct TraceHtml {
    mark: String,
    graph: Html,
    /// What, and the answer.
    facts: Vec<(&'static str, String)>,
    revoke_at: Option<&'static str>,
}

struct SecretLine {
    mark: String,
    /// The page that follows it.
    address: String,
    times: String,
    first: String,
    last: String,
    tools: String,
    places: String,
    /// The start of an id, and the address.
    sessions: Vec<(String, String)>,
    more: usize,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<Parameters>,
) -> Answered {
    let by_session = match parameters.by.as_str() {
        "" => false,
        "session" => true,
        _ => Err(Error::bad_request("invalid value of `by`").hint("use session, or leave it out"))?,
    };
    let theme = Theme::of(&headers);
    let looking = app.clone();
    Ok(render(app, caller, move |view| {
        let run = view.last_run()?;
        let answer = current_results(&looking, caller.scope, run);
        let chosen = answer.secrets.iter().find(|secret| secret.mark == parameters.mark);
        let trace = match chosen {
            Some(secret) => view.trace_secret(&secret.mark, Some(&secret.sessions))?,
            None => None,
        };
        let mut page = secrets_page(&answer, trace.as_ref(), theme);
        page.groupings =
            vec![("By secret", "/secrets", !by_session), ("By session", "/secrets?by=session", by_session)];
        if by_session {
            (page.sessions, page.rest) = by_sessions(view, &answer)?;
        }
        Ok(Some(page))
    })
    .await)
}

/// The sessions that secrets appear in, the latest first.
fn by_sessions(view: &View<'_>, answer: &SecretAnswer) -> Result<(Vec<SessionGroup>, Option<String>)> {
    let mut groups: BTreeMap<&str, Vec<&SecretView>> = BTreeMap::new();
    let mut unlisted = 0;
    for secret in answer.secrets.iter() {
        unlisted += secret.session_count.saturating_sub(secret.sessions.len());
        for id in &secret.sessions {
            groups.entry(id).or_default().push(secret);
        }
    }
    let mut found = Vec::new();
    for (id, secrets) in groups {
        let filter =
            SessionFilter { exact_id: Some(id.to_owned()), with_agents: true, ..SessionFilter::default() };
        let query = SessionQuery { filter, page: Paging { limit: 1, cursor: None }, brief: true };
        let Some(session) = view.sessions(&query)?.sessions.pop() else { continue };
        found.push((session, secrets));
    }
    found.sort_by(|(one, _), (other, _)| other.last_message_at.cmp(&one.last_message_at));
    unlisted += found.len().saturating_sub(GROUPS);
    let groups = found.into_iter().take(GROUPS).map(|(session, secrets)| SessionGroup {
        line: SessionLine::of(&session),
        secrets: secrets
            .into_iter()
            .map(|secret| SecretInSession {
                mark: secret.mark.clone(),
                address: format!("/secrets?mark={}", in_address(&secret.mark)),
                revoke_at: revoke_at(&secret.kind),
            })
            .collect(),
    });
    let rest = (unlisted > 0).then(|| {
        format!(
            "{} not listed here: the page of each secret has all of its sessions.",
            format::counted(unlisted, "more place")
        )
    });
    Ok((groups.collect(), rest))
}

fn secrets_page(answer: &SecretAnswer, trace: Option<&SecretTrace>, theme: Theme) -> SecretsPage {
    SecretsPage {
        trace: trace.map(traced),
        frame: Frame::new("/audit", "Secrets", theme),
        tab: "secrets",
        looking: answer.status == "looking",
        done: answer.sessions_looked_at,
        all: answer.session_count,
        total: format::counted(answer.secrets.len() as i64, "secret"),
        looked_at: answer.looked_at.clone().map(|at| {
            let shown = format::minute(&at);
            (at, shown)
        }),
        secrets: answer.secrets.iter().map(line).collect(),
        groupings: Vec::new(),
        sessions: Vec::new(),
        rest: None,
    }
}

fn traced(trace: &SecretTrace) -> TraceHtml {
    let minute = |at: &Option<String>| at.as_deref().map_or(String::new(), format::minute);
    let entered = trace.entered.as_ref().map_or(String::new(), |entered| {
        let tool = entered.tool.as_ref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        format!("{}{tool}, {}", entered.place, minute(&entered.at))
    });
    let sent = trace.providers.iter().map(|provider| {
        format!("{} (first {})", provider.provider_label, minute(&provider.first_received_at))
    });
    let files: Vec<&str> = trace.written_files.iter().map(|file| file.as_str()).collect();
    let machines: Vec<&str> = trace.machines.iter().map(String::as_str).collect();
    TraceHtml {
        mark: trace.mark.clone(),
        graph: trace_graph(trace),
        facts: vec![
            ("Kind", trace.kind.clone()),
            ("Entered by", entered),
            ("Sent to", sent.collect::<Vec<_>>().join(", ")),
            ("First seen", minute(&trace.first_seen_at)),
            ("Last seen", minute(&trace.last_seen_at)),
            ("Machines", machines.join(", ")),
            ("Written to files", if files.is_empty() { "none known".to_owned() } else { files.join(", ") }),
            ("In command lines", if trace.in_commands { "yes" } else { "no" }.to_owned()),
        ],
        revoke_at: trace.revoke_at,
    }
}

fn line(secret: &SecretView) -> SecretLine {
    let day = |at: &Option<String>| at.as_deref().map_or(String::new(), |at| format::day(at).to_owned());
    let tools: Vec<&str> = secret.tools.iter().map(|tool| tool.as_str()).collect();
    let sessions = secret.sessions.iter().take(LISTED_SESSIONS).map(|id| {
        let short: String = id.chars().take(8).collect();
        (short, format!("/sessions?include_subagents=true&q={}", in_address(id)))
    });
    SecretLine {
        mark: secret.mark.clone(),
        address: format!("/secrets?mark={}", in_address(&secret.mark)),
        times: format::number(secret.occurrences),
        first: day(&secret.first_seen_at),
        last: day(&secret.last_seen_at),
        tools: tools.join(", "),
        places: secret.places.join(", "),
        more: secret.session_count.saturating_sub(LISTED_SESSIONS),
        sessions: sessions.collect(),
    }
}
