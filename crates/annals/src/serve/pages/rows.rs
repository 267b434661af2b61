//! A session as a row of a list, on every page that lists sessions.

use super::html::in_address;
use crate::view::SessionView;
use crate::view::format;

/// A row in a list of sessions.
pub(super) struct SessionLine {
    pub href: String,
    pub title: String,
    pub source: &'static str,
    /// The last component of the directory, and the full path.
    pub project: Option<(String, String)>,
    pub branch: Option<String>,
    pub marks: Vec<&'static str>,
    pub at: Option<(String, String)>,
    pub numbers: String,
}

impl SessionLine {
    pub(super) fn of(session: &SessionView) -> SessionLine {
        let mut marks = Vec::new();
        let kinds = [
            (session.is_active, "active"),
            (session.archived, "archived"),
            (session.history_only, "prompts only"),
            (session.source_gone, "deleted by client"),
            (session.parent_kind.as_deref() == Some("sub_agent"), "sub-agent"),
            (session.parent_kind.as_deref() == Some("review"), "review"),
            (session.parent_kind.as_deref() == Some("fork"), "fork"),
        ];
        marks.extend(kinds.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark));
        SessionLine {
            href: address(session),
            title: title(session),
            source: session.provider_label,
            project: session
                .cwd
                .as_ref()
                .map(|cwd| (format::last_part(cwd.as_str()).to_owned(), cwd.to_string())),
            branch: session.git_branch.as_ref().map(ToString::to_string),
            marks,
            at: session.last_message_at.clone().map(|at| {
                let shown = format::minute(&at);
                (at, shown)
            }),
            numbers: numbers(session),
        }
    }
}

pub(super) fn address(session: &SessionView) -> String {
    format!("/sessions/{}/{}", session.source, in_address(&session.session_id))
}

pub(super) fn title(session: &SessionView) -> String {
    let title = session.title.as_ref().map(|title| title.as_str().trim()).filter(|title| !title.is_empty());
    title.map_or_else(|| format!("Untitled, {}", session.session_id), str::to_owned)
}

fn numbers(session: &SessionView) -> String {
    let mut numbers = vec![format::counted(session.message_count, "message")];
    if session.tool_call_count > 0 {
        numbers.push(format::counted(session.tool_call_count, "call"));
    }
    if session.tokens.total > 0 {
        numbers.push(format!("{} tokens", format::compact(session.tokens.total)));
    }
    numbers.extend(session.cost_usd.map(format::money));
    numbers.join(" · ")
}
