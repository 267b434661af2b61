//! What was done in a day, a week or a month: by project the prompts, the files that were changed, what failed, and what
//! it cost.

pub mod markdown;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::view::context::View;
use crate::view::paging::Paging;
use crate::view::session::list::{SessionQuery, SessionView, heading};
use crate::view::usage::prices::Cost;
use annals_core::{Calendar, Period, Raw, Result, Shown, Time};
use annals_store::{ResponseFilter, SessionFilter, UsageBy, UsageSum};

/// Sessions that are read at once.
const AT_ONCE: i64 = 200;

#[derive(Debug, Serialize)]
pub struct PeriodReport {
    /// `day`, `week` or `month`.
    pub calendar: &'static str,
    /// The first and the last day.
    pub first: String,
    pub last: String,
    pub session_count: usize,
    pub prompt_count: usize,
    pub file_count: usize,
    pub commit_count: usize,
    pub failed_call_count: usize,
    /// Of all responses that have a price; null if none has.
    pub cost_usd: Option<f64>,
    /// Most prompts first.
    pub projects: Vec<PeriodProject>,
}

#[derive(Debug, Default, Serialize)]
pub struct PeriodProject {
    /// The working directory; null if the client does not say.
    pub project: Option<Shown>,
    pub cost_usd: Option<f64>,
    /// In order of time.
    pub sessions: Vec<PeriodSession>,
    /// Files that sessions changed, the most changed first.
    pub files: Vec<ChangedFile>,
    /// Commits of this person in the repository, in order of time.
    pub commits: Vec<PeriodCommit>,
    /// Calls that failed, the most frequent first.
    pub failures: Vec<RepeatedFailure>,
}

#[derive(Debug, Serialize)]
pub struct PeriodSession {
    pub session_id: String,
    pub source: String,
    pub provider_label: &'static str,
    pub title: Option<Shown>,
    /// What the caller named it; shown instead of the title.
    pub name: Option<Shown>,
    pub started_at: Option<String>,
    pub cost_usd: Option<f64>,
    /// What the person asked for, each on one line.
    pub prompts: Vec<Shown>,
}

impl PeriodSession {
    /// What people call it: its name, or else its title.
    pub fn heading(&self) -> Option<&Shown> {
        heading(&self.name, &self.title)
    }
}

#[derive(Debug, Serialize)]
pub struct ChangedFile {
    /// Within the project, if it is there.
    pub path: Shown,
    pub change_count: usize,
}

#[derive(Debug, Serialize)]
pub struct PeriodCommit {
    pub hash: String,
    pub at: String,
    pub subject: Shown,
}

#[derive(Debug, Serialize)]
pub struct RepeatedFailure {
    pub tool: Shown,
    /// The command, or what else was called.
    pub title: Shown,
    pub exit_code: Option<i64>,
    pub count: usize,
}

/// A project while it is put together.
#[derive(Default)]
struct Draft {
    sessions: Vec<PeriodSession>,
    files: BTreeMap<String, usize>,
    failures: BTreeMap<(String, String, Option<i64>), usize>,
    sums: Vec<UsageSum>,
}

/// The bytes of a working directory, or nothing.
type Key = Option<Vec<u8>>;

impl View<'_> {
    pub fn period(&self, period: &Period) -> Result<PeriodReport> {
        let (from, to) = period.bounds()?;
        let within = ResponseFilter { since: Some(from), until: Some(to), ..ResponseFilter::default() };
        let mut drafts: BTreeMap<Key, Draft> = BTreeMap::new();
        let key = |cwd: &Option<Raw>| cwd.as_ref().map(|cwd| cwd.expose().to_vec());
        let mut costs: HashMap<(String, Vec<u8>), Vec<UsageSum>> = HashMap::new();
        for sum in self.usage_sums(UsageBy::Session, &within)? {
            let id = sum.group.as_ref().map(|id| id.expose().to_vec()).unwrap_or_default();
            costs.entry((sum.source.clone(), id)).or_default().push(sum);
        }
        let mut total = Cost::default();
        for sum in self.usage_sums(UsageBy::Project, &within)? {
            total.add(&sum);
            drafts.entry(key(&sum.group)).or_default().sums.push(sum);
        }
        self.archive.failed_calls_between(from, to, &mut |call| {
            let draft = drafts.entry(key(&call.cwd)).or_default();
            let [tool, title] = [&call.tool, &call.title].map(text);
            *draft.failures.entry((tool, title, call.exit_code)).or_default() += 1;
        })?;
        self.archive.changes_between(from, to, &mut |touch| {
            *drafts.entry(key(&touch.cwd)).or_default().files.entry(text(&touch.path)).or_default() += 1;
        })?;
        self.each_session_between(from, to, &mut |session, cwd| {
            let prompts = self.prompts_between(&session, from, to)?;
            let id = (session.source.clone(), session.session_id.clone().into_bytes());
            let cost = costs.get(&id).map(|sums| Cost::of(sums));
            if prompts.is_empty() && cost.is_none() {
                return Ok(());
            }
            drafts.entry(cwd).or_default().sessions.push(PeriodSession {
                started_at: prompts.first().and_then(|(at, _)| at.map(Time::rfc3339)),
                prompts: prompts.into_iter().map(|(_, text)| text).collect(),
                cost_usd: cost.and_then(|cost| cost.known()),
                session_id: session.session_id,
                source: session.source,
                provider_label: session.provider_label,
                title: session.title,
                name: session.name,
            });
            Ok(())
        })?;
        let projects = drafts.into_iter().map(|(cwd, draft)| self.finish_project(cwd, draft));
        let mut projects: Vec<PeriodProject> = projects.filter(|project| !project.is_empty()).collect();
        // Directories are in order already, and stay so among equals.
        projects.sort_by_key(|project| std::cmp::Reverse((project.prompt_count(), project.sessions.len())));
        let sum = |count: &dyn Fn(&PeriodProject) -> usize| projects.iter().map(count).sum::<usize>();
        Ok(PeriodReport {
            calendar: match period.calendar {
                Calendar::Day => "day",
                Calendar::Week => "week",
                Calendar::Month => "month",
            },
            first: period.first.to_string(),
            last: period.last.to_string(),
            session_count: sum(&|project| project.sessions.len()),
            prompt_count: sum(&PeriodProject::prompt_count),
            file_count: sum(&|project| project.files.len()),
            commit_count: 0,
            failed_call_count: sum(&|project| project.failures.iter().map(|failure| failure.count).sum()),
            cost_usd: total.known(),
            projects,
        })
    }

    /// What responses from one moment to before another cost; none if none of them has a price.
    pub fn cost_between(&self, from: Time, to: Time) -> Result<Option<f64>> {
        let within = ResponseFilter { since: Some(from), until: Some(to), ..ResponseFilter::default() };
        Ok(Cost::of(&self.usage_sums(UsageBy::Source, &within)?).known())
    }

    /// What a session cost with its sub-agents; none if it is not archived or has no price.
    pub fn cost_of_session(&self, id: &str) -> Result<Option<f64>> {
        let exact =
            SessionFilter { exact_id: Some(id.to_owned()), with_agents: true, ..SessionFilter::default() };
        let agents =
            SessionFilter { parent: Some(id.to_owned()), only_agents: true, ..SessionFilter::default() };
        let mut cost = Cost::default();
        for filter in [exact, agents] {
            for row in self.archive.session_rows(&filter)? {
                self.session_usage(row)?.iter().for_each(|sum| cost.add(sum));
            }
        }
        Ok(cost.known())
    }

    /// Visits the sessions of people that were active, with their working directories.
    fn each_session_between(
        &self,
        from: Time,
        to: Time,
        visit: &mut dyn FnMut(SessionView, Key) -> Result<()>,
    ) -> Result<()> {
        let filter = SessionFilter { since: Some(from), until: Some(to), ..SessionFilter::default() };
        let mut query = SessionQuery { filter, page: Paging { limit: AT_ONCE, cursor: None }, brief: true };
        loop {
            let list = self.sessions(&query)?;
            for session in list.sessions {
                let cwd = self.archive.session_cwd(session.row)?;
                visit(session, cwd.map(|cwd| cwd.expose().to_vec()))?;
            }
            query.page.cursor = list.next_cursor;
            if query.page.cursor.is_none() {
                return Ok(());
            }
        }
    }

    fn finish_project(&self, cwd: Key, mut draft: Draft) -> PeriodProject {
        let cwd = cwd.map(|cwd| String::from_utf8_lossy(&cwd).into_owned());
        draft.sessions.sort_by(|one, other| {
            (&one.started_at, &one.session_id).cmp(&(&other.started_at, &other.session_id))
        });
        let mut files: Vec<(String, usize)> = draft.files.into_iter().collect();
        files.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let project = cwd.map(|cwd| self.door.text(&cwd));
        // Masked as a whole: what a path is below may be what shows that a part of it is a secret.
        let within = |path: &str| {
            let path = self.door.text(path);
            let below =
                project.as_ref().and_then(|cwd| path.as_str().strip_prefix(cwd.as_str())?.strip_prefix('/'));
            below.map(|below| Shown::new(below.to_owned())).unwrap_or(path)
        };
        let mut failures: Vec<_> = draft.failures.into_iter().collect();
        failures.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        PeriodProject {
            cost_usd: Cost::of(&draft.sums).known(),
            sessions: draft.sessions,
            files: files
                .into_iter()
                .map(|(path, change_count)| ChangedFile { path: within(&path), change_count })
                .collect(),
            commits: Vec::new(),
            failures: failures
                .into_iter()
                .map(|((tool, title, exit_code), count)| RepeatedFailure {
                    tool: self.door.text(&tool),
                    title: self.door.text(&title),
                    exit_code,
                    count,
                })
                .collect(),
            project,
        }
    }
}

impl PeriodProject {
    pub fn prompt_count(&self) -> usize {
        self.sessions.iter().map(|session| session.prompts.len()).sum()
    }

    fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.files.is_empty()
            && self.failures.is_empty()
            && self.cost_usd.is_none()
    }
}

fn text(raw: &Raw) -> String {
    String::from_utf8_lossy(raw.expose()).into_owned()
}
