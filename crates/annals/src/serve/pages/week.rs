//! The week page: what was done in a week, a day or a month, by project, and the same as Markdown for a stand-up.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::assistant::colour;
use super::filters::query_of;
use super::html::in_address;
use super::lineage::address_of;
use super::session::plain;
use super::{Frame, PageRequest, Theme};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, with_view};
use crate::serve::api::parameters::Params;
use crate::view::format;
use crate::view::{PeriodMarkdown, PeriodPart, PeriodProject, View, period_title};
use annals_core::{Calendar, Error, Period, Result, current_period, parse_period};

/// Prompts of a session, files and failures of a project that are listed before the rest is unfolded.
const PROMPTS: usize = 3;
const FILES: usize = 8;
const FAILURES: usize = 5;

#[derive(Template)]
#[template(path = "week.html")]
struct WeekPage {
    frame: Frame,
    tab: &'static str,
    title: String,
    /// Name, address, whether it is chosen.
    calendars: Vec<(&'static str, String, bool)>,
    before: Option<String>,
    after: Option<String>,
    calendar: &'static str,
    date: String,
    facts: Vec<String>,
    markdown: String,
    projects: Vec<ProjectPart>,
}

struct ProjectPart {
    name: String,
    path: String,
    sessions_address: Option<String>,
    facts: String,
    sessions: Vec<SessionPart>,
    files: Vec<FileLine>,
    more_files: Vec<FileLine>,
    failures: Vec<FailureLine>,
    more_failures: Vec<FailureLine>,
}

struct SessionPart {
    href: String,
    title: String,
    label: &'static str,
    colour: String,
    at: Option<(String, String)>,
    cost: String,
    prompts: Vec<String>,
    more_prompts: Vec<String>,
}

struct FileLine {
    path: String,
    href: Option<String>,
    count: Option<String>,
}

struct FailureLine {
    call: String,
    facts: String,
    href: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    /// A date in it, or words for one; today if missing.
    date: String,
    /// `day` or `month`; a week if missing.
    calendar: String,
}

const CALENDARS: [(&str, &str, Calendar); 3] =
    [("Day", "day", Calendar::Day), ("Week", "", Calendar::Week), ("Month", "month", Calendar::Month)];

impl Parameters {
    fn period(&self, view: &View<'_>) -> Result<(&'static str, Period)> {
        let found = CALENDARS.into_iter().find(|(_, name, _)| *name == self.calendar.trim());
        let (_, name, calendar) = found.ok_or_else(|| {
            Error::bad_request("invalid value of `calendar`")
                .hint("use day or month, or leave it out for a week")
        })?;
        let period = match self.date.trim() {
            "" => current_period(calendar, view.now())?,
            date => parse_period(date, calendar, view.now())?,
        };
        Ok((name, period))
    }
}

pub(super) async fn page(asker: PageRequest, Params(parameters): Params<Parameters>) -> Answered {
    asker.show(move |view, theme| week_page(view, &parameters, theme)).await
}

/// The same as the terminal prints, without commits: no route runs git.
pub(super) async fn markdown(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(parameters): Params<Parameters>,
) -> Answered {
    let text = with_view(app, caller, move |view| {
        let (_, period) = parameters.period(view)?;
        let markdown = PeriodMarkdown { part: PeriodPart::First, strong: &str::to_owned, id: &str::to_owned };
        Ok(Some(markdown.lines(&view.period(&period)?, &period).join("\n")))
    });
    Ok(plain("text/markdown; charset=utf-8", format!("{}\n", text.await?.unwrap_or_default())))
}

fn week_page(view: &View<'_>, parameters: &Parameters, theme: Theme) -> Result<WeekPage> {
    let (calendar, period) = parameters.period(view)?;
    let today = current_period(Calendar::Day, view.now())?;
    let report = view.period(&period)?;
    let address = |path: &str, calendar: &str, date: &str| {
        let pairs = [("date", date), ("calendar", calendar)];
        format!("{path}{}", query_of(pairs.into_iter()))
    };
    let date = period.first.to_string();
    let day_before = period.first.yesterday().ok().map(|day| day.to_string());
    let next = period.last.tomorrow().ok();
    let until = next.map(|day| day.to_string()).unwrap_or_default();
    let days = (date.as_str(), until.as_str());
    let calendars = CALENDARS.map(|(label, name, known)| {
        // Today stays in sight when the period that contains it gets shorter.
        let is_current = (period.first..=period.last).contains(&today.first);
        let date = if is_current { "" } else { date.as_str() };
        (label, address("/week", name, date), known == period.calendar)
    });
    Ok(WeekPage {
        frame: Frame::new("/insights", period_title(&period), theme),
        tab: "week",
        title: period_title(&period),
        calendars: calendars.to_vec(),
        before: day_before.map(|day| address("/week", calendar, &day)),
        after: next
            .filter(|next| *next <= today.first)
            .map(|next| address("/week", calendar, &next.to_string())),
        calendar,
        facts: report.facts(),
        markdown: address("/week/markdown", calendar, &date),
        projects: report.projects.iter().map(|project| project_part(project, days)).collect(),
        date,
    })
}

/// Whether a prompt on one line says no more than a title, which may be cut before its end.
fn is_same(prompt: &str, title: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (prompt, title) = (words(prompt), words(title));
    let start = |text: &str| text.strip_suffix('…').map(str::to_owned);
    match (start(&prompt), start(&title)) {
        (None, None) => prompt == title,
        // The longer of the two shows more of the same text.
        (Some(cut), None) => title.starts_with(&cut) && !cut.is_empty(),
        (None, Some(_)) => false,
        (Some(cut), Some(short)) => cut == short,
    }
}

fn project_part(project: &PeriodProject, (since, until): (&str, &str)) -> ProjectPart {
    let path = project.project.as_ref().map(|path| path.as_str());
    let sessions_address =
        path.map(|path| format!("/sessions?project={}&since={since}&until={until}", in_address(path)));
    let sessions = project.sessions.iter().map(|session| {
        let heading = session.heading().map(|title| title.as_str().trim());
        let mut prompts: Vec<String> = session.prompts.iter().map(ToString::to_string).collect();
        // A title that is the start of the first prompt needs it once.
        if prompts.first().is_some_and(|first| heading.is_some_and(|title| is_same(first, title))) {
            prompts.remove(0);
        }
        let more_prompts = prompts.split_off(prompts.len().min(PROMPTS));
        SessionPart {
            href: format!("/sessions/{}/{}", session.source, in_address(&session.session_id)),
            title: session.heading().map_or("Untitled", |title| title.as_str().trim()).to_owned(),
            label: session.provider_label,
            colour: colour(&session.source),
            at: session.started_at.clone().map(|at| (at.clone(), format::minute(&at))),
            cost: session.cost_usd.map_or(String::new(), format::money),
            prompts,
            more_prompts,
        }
    });
    let mut files: Vec<FileLine> = project
        .files
        .iter()
        .map(|file| {
            let file_path = file.path.as_str();
            // A path within the project; others are complete.
            let whole = match path {
                Some(cwd) if !file_path.starts_with('/') => {
                    Some(format!("{}/{file_path}", cwd.trim_end_matches('/')))
                }
                _ => Some(file_path.to_owned()).filter(|path| path.starts_with('/')),
            };
            FileLine {
                path: file_path.to_owned(),
                href: whole.map(|whole| format!("{}&view=history", address_of(&whole))),
                count: (file.change_count > 1).then(|| format!("{}×", file.change_count)),
            }
        })
        .collect();
    let mut failures: Vec<FailureLine> = project
        .failures
        .iter()
        .map(|failure| {
            let exit = failure.exit_code.map(|code| format!("exit {code}"));
            let count = (failure.count > 1).then(|| format!("{}×", failure.count));
            let words = format!("\"{}\"", failure.call().replace('"', " "));
            FailureLine {
                call: failure.call().to_owned(),
                facts: [exit, count].into_iter().flatten().collect::<Vec<_>>().join(" · "),
                href: format!("/search?q={}&since={since}&until={until}", in_address(&words)),
            }
        })
        .collect();
    let more_files = files.split_off(files.len().min(FILES));
    let more_failures = failures.split_off(failures.len().min(FAILURES));
    ProjectPart {
        name: path.map_or("No directory", format::last_part).to_owned(),
        path: path.unwrap_or_default().to_owned(),
        sessions_address,
        facts: format!(
            "{} · {} · {}",
            format::counted(project.sessions.len(), "session"),
            format::counted(project.prompt_count(), "prompt"),
            format::cost(project.cost_usd)
        ),
        sessions: sessions.collect(),
        files,
        more_files,
        failures,
        more_failures,
    }
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn a_prompt_is_left_out_if_its_title_says_it() {
        assert!(is_same("Oil the gears", "Oil  the gears\n"));
        assert!(is_same("Oil the…", "Oil the gears"), "the title has all of it");
        assert!(is_same("Oil…", "Oil…"));
        assert!(!is_same("Oil the gears, and the axle", "Oil the gears"));
        assert!(!is_same("Oil the gears, and the axle", "Oil the…"), "the prompt has more");
        assert!(!is_same("…", ""));
    }
}
