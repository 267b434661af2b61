//! The members page: who sees the caller's sessions and who read them, and for admins the members of their organisation.

use askama::Template;
use serde::Deserialize;

use super::filters::query_of;
use super::{Frame, PageRequest, Theme};
use crate::serve::answer::Answered;
use crate::serve::api::parameters::Params;
use crate::view::format;
use crate::view::{AccessQuery, AccessView, MemberView, Paging, View, ViewerView, source_labels};
use annals_core::{Result, Scope, Shown, in_address};

/// Entries of the log on a page.
const ROWS: i64 = 100;

#[derive(Template)]
#[template(path = "members.html")]
struct MembersPage {
    frame: Frame,
    /// The caller sees sessions of others.
    is_admin: bool,
    viewers: Vec<(String, String)>,
    members: Vec<MemberLine>,
    accesses: Vec<AccessLine>,
    /// Whose sessions the log is about, if one was chosen.
    chosen: String,
    more: Option<String>,
}

struct MemberLine {
    name: String,
    organisation: String,
    role: &'static str,
    machines: String,
    sessions: String,
    size: String,
    masked: Option<String>,
    cost: String,
    push: Option<(String, String)>,
    used: Option<(String, String)>,
    expires: Option<(String, String)>,
    href: String,
}

struct AccessLine {
    viewer: String,
    kind: &'static str,
    member: String,
    session: String,
    href: String,
    assistant: String,
    at: (String, String),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    member: String,
    cursor: String,
}

pub(super) async fn page(request: PageRequest, Params(parameters): Params<Parameters>) -> Answered {
    let is_admin = !matches!(request.caller.scope, Scope::Member(_));
    request.show(move |view, theme| members_page(view, parameters, is_admin, theme)).await
}

fn members_page(
    view: &View<'_>,
    parameters: Parameters,
    is_admin: bool,
    theme: Theme,
) -> Result<MembersPage> {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let query = AccessQuery {
        member: given(&parameters.member),
        page: Paging { limit: ROWS, cursor: given(&parameters.cursor) },
    };
    let list = view.accesses(&query)?;
    let more = list.next_cursor.as_deref().map(|cursor| {
        let pairs = [("member", parameters.member.as_str()), ("cursor", cursor)];
        format!("/members{}", query_of(pairs.into_iter()))
    });
    let title = if is_admin { "Members" } else { "Who sees my sessions" };
    Ok(MembersPage {
        frame: Frame::new("/settings", title, theme),
        is_admin,
        viewers: list.visible_to.iter().map(viewer).collect(),
        members: if is_admin { view.members()?.iter().map(member).collect() } else { Vec::new() },
        accesses: list.accesses.iter().map(access).collect(),
        chosen: view.show(&parameters.member).to_string(),
        more,
    })
}

/// A name, and why they see the sessions.
fn viewer(viewer: &ViewerView) -> (String, String) {
    let why = match (viewer.role, &viewer.organisation) {
        ("admin", Some(organisation)) => format!("admin of {organisation}"),
        ("owner", Some(_)) => "sees the whole archive".to_owned(),
        (_, None) => "has the archive".to_owned(),
        (role, Some(_)) => role.to_owned(),
    };
    (name_of(viewer.name.as_ref()), why)
}

fn name_of(name: Option<&Shown>) -> String {
    name.map_or_else(|| "owner of the hub".to_owned(), ToString::to_string)
}

/// For machines, and as shown without a script.
fn time(at: &str) -> (String, String) {
    (at.to_owned(), format!("{} UTC", format::minute(at)))
}

fn member(member: &MemberView) -> MemberLine {
    MemberLine {
        name: member.name.to_string(),
        organisation: member.organisation.to_string(),
        role: member.role,
        machines: format::number(member.machines),
        sessions: format::number(member.sessions),
        size: format::size(u64::try_from(member.bytes).unwrap_or(0)),
        masked: (member.masked_homes > 0).then(|| format::counted(member.masked_homes, "masked home")),
        cost: member.cost_usd.map_or_else(|| "–".to_owned(), format::money),
        push: member.last_push_at.as_deref().map(time),
        used: member.last_used_at.as_deref().map(time),
        expires: member.token_expires_at.as_deref().map(time),
        href: format!("/members{}", query_of([("member", member.name.as_str())].into_iter())),
    }
}

fn access(access: &AccessView) -> AccessLine {
    let label = source_labels().find(|(name, _)| *name == access.source.as_str());
    AccessLine {
        viewer: name_of(access.viewer.as_ref()),
        kind: access.kind,
        member: name_of(access.member.as_ref()),
        session: access.session_id.to_string(),
        href: format!("/sessions/{}/{}", access.source.as_str(), in_address(access.session_id.as_str())),
        assistant: label.map_or_else(|| access.source.to_string(), |(_, label)| label.to_owned()),
        at: time(&access.last_at),
    }
}
