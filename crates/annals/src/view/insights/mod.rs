//! Moments worth reading: prompts typed again, turns that a person stopped, compactions, large contexts, calls that
//! failed, lines rewritten soon, and caches that were missed. Nothing is graded: each number is a count of rows.

mod cache;
mod churn;
mod notices;
mod prompts;

use std::collections::HashMap;

use crate::view::context::View;
use crate::view::format;
use annals_core::{ContentKey, FileId, Raw, Result, SessionId, Shown, Span, Time};
use annals_sources::by_name;
use annals_store::{Between, InSession, SessionFilter};

/// What a moment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InsightKind {
    /// A prompt with the words of another one in the same directory.
    Repeated,
    /// A person stopped the assistant.
    Interrupted,
    /// The client replaced the conversation by a summary.
    Compacted,
    /// The response of a session that was sent the most tokens.
    Context,
    Failed,
    /// An edit that replaced lines which were written within the hour before.
    Rewritten,
    /// A response that sent tokens again which the response before had in the cache.
    Missed,
}

impl InsightKind {
    pub const ALL: [InsightKind; 7] = [
        InsightKind::Failed,
        InsightKind::Interrupted,
        InsightKind::Repeated,
        InsightKind::Compacted,
        InsightKind::Context,
        InsightKind::Rewritten,
        InsightKind::Missed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            InsightKind::Repeated => "repeated",
            InsightKind::Interrupted => "interrupted",
            InsightKind::Compacted => "compacted",
            InsightKind::Context => "context",
            InsightKind::Failed => "failed",
            InsightKind::Rewritten => "rewritten",
            InsightKind::Missed => "missed",
        }
    }

    pub fn from_name(name: &str) -> Option<InsightKind> {
        InsightKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The amount of several moments: their sum, or the largest context.
    pub fn total<'m>(self, moments: impl Iterator<Item = &'m Moment>) -> f64 {
        let amounts = moments.map(|moment| moment.amount);
        match self {
            InsightKind::Context => amounts.fold(0.0, f64::max),
            InsightKind::Repeated
            | InsightKind::Interrupted
            | InsightKind::Compacted
            | InsightKind::Failed
            | InsightKind::Rewritten
            | InsightKind::Missed => amounts.sum(),
        }
    }

    /// An amount as people read it.
    pub fn write(self, amount: f64) -> String {
        match self {
            InsightKind::Context => format::compact(amount as i64),
            InsightKind::Missed => format::money(amount),
            InsightKind::Repeated
            | InsightKind::Interrupted
            | InsightKind::Compacted
            | InsightKind::Failed
            | InsightKind::Rewritten => format::number(amount as i64),
        }
    }
}

/// One of them.
#[derive(Debug)]
pub struct Moment {
    pub kind: InsightKind,
    pub at: Time,
    /// 1, or tokens, lines or dollars.
    pub amount: f64,
    session: SessionId,
    source: String,
    cwd: Option<Raw>,
    step: StepPlace,
    about: About,
    /// What was typed.
    pub words: Option<ContentKey>,
}

#[derive(Debug)]
enum StepPlace {
    Key(ContentKey),
    /// The last step up to this offset.
    Until(FileId, u64),
}

/// What there is to read about a moment.
#[derive(Debug)]
enum About {
    Nothing,
    Path(Raw),
    /// A tool, and what it was called with.
    Call(Raw, Raw),
    Line(FileId, Span),
    Text(String),
}

/// A moment as it is listed.
#[derive(Debug)]
pub struct MomentView {
    pub source: &'static str,
    pub provider_label: &'static str,
    pub session_id: String,
    /// What people call its session.
    pub session: Option<Shown>,
    pub step: Option<String>,
    pub about: Option<Shown>,
}

/// The moments of a period.
#[derive(Debug, Default)]
pub struct Insights {
    /// In order of kind; the largest contexts, edits and misses come first, and otherwise the latest.
    pub moments: Vec<Moment>,
    /// Prompts and notices of clients that were too many to be read.
    pub unread: usize,
}

impl Insights {
    pub fn of(&self, kind: InsightKind) -> impl Iterator<Item = &Moment> {
        self.moments.iter().filter(move |moment| moment.kind == kind)
    }
}

impl View<'_> {
    /// The moments in sessions that fit, from one moment to before another; of sub-agents too, except for prompts.
    pub fn insights(&self, filter: &SessionFilter, between: Between) -> Result<Insights> {
        let filter = self.without_guesses(filter)?;
        let typed = SessionFilter { with_agents: false, ..filter.clone().into_owned() };
        let all = SessionFilter { with_agents: true, ..filter.into_owned() };
        let mut insights = Insights::default();
        prompts::add(self, &typed, between, &mut insights)?;
        notices::add(self, &all, between, &mut insights)?;
        cache::add(self, &all, between, &mut insights)?;
        churn::add(self, &all, between, &mut insights)?;
        self.archive.failures_between(&all, between, &mut |row| {
            let about = About::Call(row.tool, row.title);
            insights.moments.push(Moment::new(
                InsightKind::Failed,
                row.place,
                1.0,
                StepPlace::Key(row.step),
                about,
            ));
        })?;
        insights.moments.sort_by(|one, other| {
            let order = one.kind.cmp(&other.kind).then(other.amount.total_cmp(&one.amount));
            order.then(other.at.cmp(&one.at)).then(one.session.cmp(&other.session))
        });
        Ok(insights)
    }

    /// The working directories of moments, as they are shown; in the order of the moments.
    pub fn folders_of(&self, insights: &Insights) -> Vec<Option<Shown>> {
        let mut known: HashMap<&[u8], Shown> = HashMap::new();
        let folders = insights.moments.iter().map(|moment| {
            let cwd = moment.cwd.as_ref()?;
            let shown = known.entry(cwd.expose()).or_insert_with(|| self.door.raw(cwd));
            Some(shown.clone())
        });
        folders.collect()
    }

    /// A moment with its session, and where it is in it.
    pub fn moment(&self, moment: &Moment) -> Result<Option<MomentView>> {
        let Some(session) = self.session_of_row(moment.session)? else { return Ok(None) };
        let Some(source) = by_name(&moment.source) else { return Ok(None) };
        let step = match moment.step {
            StepPlace::Key(key) => Some(key),
            StepPlace::Until(file, offset) => self.archive.step_until(moment.session, file, offset)?,
        };
        let about = match &moment.about {
            About::Nothing => None,
            About::Path(path) => Some(self.door.raw(path)),
            About::Call(tool, title) if title.expose().iter().all(u8::is_ascii_whitespace) => {
                Some(self.door.raw(tool))
            }
            About::Call(_, title) => Some(self.door.raw(title)),
            About::Line(file, span) => Some(self.line_of(&session, *file, *span)?),
            About::Text(text) => Some(self.door.text(text)),
        };
        Ok(Some(MomentView {
            source: source.manifest().source,
            provider_label: source.manifest().label,
            session: session.heading().cloned(),
            session_id: session.session_id,
            step: step.map(ContentKey::hex),
            about,
        }))
    }
}

impl Moment {
    fn new(kind: InsightKind, place: InSession, amount: f64, step: StepPlace, about: About) -> Moment {
        Moment {
            kind,
            at: place.at,
            amount,
            session: place.session,
            source: place.source,
            cwd: place.cwd,
            step,
            about,
            words: None,
        }
    }
}
