//! The gaps page: what could not be fetched, why, and when it is retried.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;

use super::filters::query_of;
use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::{Params, source_of};
use crate::view::format;
use crate::view::{GapQuery, MISSING, Paging, View, source_labels};
use annals_core::{Error, Result};

/// Gaps on a page.
const ROWS: i64 = 100;
/// Statuses as in the address, and what they mean.
const STATUSES: [(&str, &str); 3] = [("", "Missing"), ("recovered", "Recovered"), ("terminal", "Given up")];

#[derive(Template)]
#[template(path = "gaps.html")]
struct GapsPage {
    frame: Frame,
    tab: &'static str,
    /// Name, address, whether it is chosen.
    statuses: Vec<(&'static str, String, bool)>,
    gaps: Vec<GapRow>,
    more: Option<String>,
}

struct GapRow {
    key: String,
    source: String,
    why: String,
    status: String,
    attempts: String,
    /// For machines, and as shown without a script.
    last: (String, String),
    next: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    source: String,
    status: String,
    cursor: String,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<Parameters>,
) -> Answered {
    let theme = Theme::of(&headers);
    let source = Some(parameters.source.as_str()).filter(|source| !source.is_empty());
    let source = source_of(source)?;
    let statuses = match parameters.status.as_str() {
        "" => MISSING.iter().map(ToString::to_string).collect(),
        status if STATUSES.iter().any(|(known, _)| *known == status) => vec![status.to_owned()],
        _ => {
            let error = Error::bad_request("invalid value of `status`").hint("use recovered or terminal");
            return Err(error.into());
        }
    };
    let cursor = Some(parameters.cursor.clone()).filter(|cursor| !cursor.is_empty());
    let query = GapQuery { source, statuses, page: Paging { limit: ROWS, cursor } };
    Ok(render(app, caller, move |view| gaps_page(view, &parameters, &query, theme).map(Some)).await)
}

fn gaps_page(view: &View<'_>, parameters: &Parameters, query: &GapQuery, theme: Theme) -> Result<GapsPage> {
    let list = view.gaps(query)?;
    let address = |status: &str, cursor: &str| {
        let pairs = [("source", parameters.source.as_str()), ("status", status), ("cursor", cursor)];
        format!("/gaps{}", query_of(pairs.into_iter()))
    };
    let label = |source: &str| {
        let label = source_labels().find(|(name, _)| *name == source);
        label.map_or_else(|| source.to_owned(), |(_, label)| label.to_owned())
    };
    let gaps = list.gaps.into_iter().map(|gap| GapRow {
        key: gap.key.to_string(),
        source: label(&gap.source),
        why: format!("{}: {}", gap.why.replace('_', " "), gap.reason),
        status: gap.status.replace('_', " "),
        attempts: format::number(gap.attempts),
        last: (gap.last_tried_at.clone(), format!("{} UTC", format::minute(&gap.last_tried_at))),
        next: gap.eta,
    });
    Ok(GapsPage {
        frame: Frame::new("/audit", "Gaps", theme),
        tab: "gaps",
        statuses: STATUSES
            .map(|(status, name)| (name, address(status, ""), parameters.status == status))
            .to_vec(),
        gaps: gaps.collect(),
        more: list.next_cursor.as_ref().map(|cursor| address(&parameters.status, cursor)),
    })
}
