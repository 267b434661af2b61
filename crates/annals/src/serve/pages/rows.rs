//! A session as a row of a list, on every page that lists sessions.

use super::assistant::colour;
use super::html::in_address;
use crate::view::SessionView;
use crate::view::format;
use annals_core::Time;
use annals_store::SessionTally;

/// A row in a list of sessions.
pub(super) struct SessionLine {
    pub href: String,
    /// How a form names it, in lists where it can be selected.
    pub choice: Option<String>,
    pub title: String,
    pub source: &'static str,
    /// The class of the assistant's colour.
    pub colour: String,
    /// The last component of the directory, and the full path.
    pub project: Option<(String, String)>,
    pub branch: Option<String>,
    pub marks: Vec<&'static str>,
    pub tags: Vec<String>,
    pub models: String,
    pub at: Option<(String, String)>,
    /// The day of `at`, in UTC, on the first row of each day.
    pub day: Option<String>,
    pub numbers: String,
    pub duration: String,
    pub cost: String,
    pub failed: Option<String>,
    /// How many sessions it started, and where they are listed.
    pub agents: Option<(String, String)>,
}

impl SessionLine {
    pub(super) fn of(session: &SessionView) -> SessionLine {
        let mut marks = Vec::new();
        let kinds = [
            (session.starred, "★"),
            (session.is_active, "active"),
            (session.hidden, "hidden"),
            (session.has_note, "note"),
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
            choice: None,
            title: title(session),
            source: session.provider_label,
            colour: colour(&session.source),
            project: session
                .cwd
                .as_ref()
                .map(|cwd| (format::last_part(cwd.as_str()).to_owned(), cwd.to_string())),
            branch: session.git_branch.as_ref().map(ToString::to_string),
            marks,
            tags: session.tags.iter().map(ToString::to_string).collect(),
            models: session.models.join(", "),
            at: session.last_message_at.clone().map(|at| {
                let shown = format::minute(&at);
                (at, shown)
            }),
            day: None,
            numbers: numbers(session),
            duration: duration(session),
            cost: session.cost_usd.map_or(String::new(), format::money),
            failed: None,
            agents: None,
        }
    }

    pub(super) fn selectable(mut self, session: &SessionView) -> SessionLine {
        self.choice = Some(format!("{}:{}", session.source, session.session_id));
        self
    }

    pub(super) fn with_tally(mut self, session: &SessionView, tally: SessionTally) -> SessionLine {
        let count = |count: i64, noun: &str| (count > 0).then(|| format::counted(count, noun));
        self.failed =
            (tally.failed_calls > 0).then(|| format!("{} failed", format::number(tally.failed_calls)));
        self.agents = count(tally.agents, "sub-agent").map(|count| {
            let id = in_address(&session.session_id);
            (count, format!("/sessions?source={}&include_subagents=true&parent={id}", session.source))
        });
        self
    }
}

/// Marks the first row of each day.
pub(super) fn mark_days(rows: &mut [SessionLine]) {
    let mut before = String::new();
    for row in rows {
        let day = row.at.as_ref().map_or("No time", |(at, _)| format::day(at)).to_owned();
        if day != before {
            row.day = Some(day.clone());
            before = day;
        }
    }
}

pub(super) fn address(session: &SessionView) -> String {
    format!("/sessions/{}/{}", session.source, in_address(&session.session_id))
}

pub(super) fn title(session: &SessionView) -> String {
    let title = session.heading().map(|title| title.as_str().trim()).filter(|title| !title.is_empty());
    title.map_or_else(|| format!("Untitled, {}", session.session_id), str::to_owned)
}

/// From the first message to the last one.
fn duration(session: &SessionView) -> String {
    let time = |at: &Option<String>| at.as_deref().and_then(Time::parse);
    let (Some(first), Some(last)) = (time(&session.first_message_at), time(&session.last_message_at)) else {
        return String::new();
    };
    let lasted = last.micros().saturating_sub(first.micros());
    // Below a second, nobody waited.
    if lasted < 1_000_000 { String::new() } else { format::milliseconds(lasted / 1_000) }
}

fn numbers(session: &SessionView) -> String {
    let mut numbers = vec![format::counted(session.message_count, "message")];
    if session.tool_call_count > 0 {
        numbers.push(format::counted(session.tool_call_count, "call"));
    }
    if session.tokens.total > 0 {
        numbers.push(format!("{} tokens", format::compact(session.tokens.total)));
    }
    numbers.join(" · ")
}
