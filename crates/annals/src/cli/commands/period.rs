//! `annals day`, `annals week`, `annals month`: what was done, as Markdown for a stand-up.

use std::collections::HashSet;
use std::path::Path;

use clap::Args;

use crate::cli::git;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::format::{cost, counted, last_part};
use crate::view::{PeriodCommit, PeriodProject, PeriodReport, PeriodSession, ShortIds, View};
use annals_core::{Calendar, Period, Result, Time, current_period, parse_period};

#[derive(Args)]
#[command(
    after_help = "Days are those of your time zone; weeks begin on Monday. Commits are yours (`user.email` of git) on the \
                        local branches of each project's repository. Sub-agents count with their project."
)]
pub struct PeriodArguments {
    /// A date, or words: yesterday, monday, last week, march [default: today]
    #[arg(value_name = "DATE")]
    date: Vec<String>,
    /// List every prompt, file and failure instead of the first ones
    #[arg(long, short)]
    all: bool,
    /// Do not run git to find commits
    #[arg(long)]
    no_git: bool,
}

/// Prompts of a session, files and failures of a project that are listed without --all.
const PROMPTS: usize = 5;
const FILES: usize = 8;
const FAILURES: usize = 5;

pub fn run(context: &mut Context, options: &PeriodArguments, calendar: Calendar) -> Result<Outcome> {
    let period = match options.date.is_empty() {
        true => current_period(calendar, now())?,
        false => parse_period(&options.date.join(" "), calendar, now())?,
    };
    let store = context.archive_or_empty()?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let mut report = view.at_once(|| view.period(&period))?;
    if !options.no_git {
        add_commits(&view, &mut report, &period)?;
    }
    let is_empty = report.projects.is_empty();
    if context.json {
        context.output.json(&report)?;
    } else {
        let ids = context.short_ids(&view)?;
        print(context, &report, &period, options.all, &ids)?;
        if is_empty && !context.quiet {
            context
                .output
                .note("hint: `annals sync` captures new sessions; another date: `annals week last week`");
        }
    }
    Ok(if is_empty { Outcome::Nothing } else { Outcome::Done })
}

/// The commits of each repository, once, with the first of its projects.
fn add_commits(view: &View<'_>, report: &mut PeriodReport, period: &Period) -> Result<()> {
    let (from, to) = period.bounds()?;
    let mut known = HashSet::new();
    for project in &mut report.projects {
        let Some(top) = project.project.as_ref().and_then(|cwd| git::top_of(Path::new(cwd.as_str()))) else {
            continue;
        };
        if known.insert(top.clone()) {
            project.commits = git::commits_between(&top, from, to)
                .into_iter()
                .map(|(hash, at, subject)| PeriodCommit {
                    hash,
                    at: at.rfc3339(),
                    subject: view.show(&subject),
                })
                .collect();
        }
        report.commit_count += project.commits.len();
    }
    Ok(())
}

fn print(
    context: &mut Context,
    report: &PeriodReport,
    period: &Period,
    all: bool,
    ids: &ShortIds,
) -> Result<()> {
    let title = match period.calendar {
        Calendar::Day => period.first.strftime("%A, %Y-%m-%d").to_string(),
        Calendar::Week => format!("Week of {} to {}", period.first, period.last),
        Calendar::Month => period.first.strftime("%B %Y").to_string(),
    };
    let title = context.output.strong(&format!("# {title}"));
    context.output.line(title)?;
    context.output.line("")?;
    if report.projects.is_empty() {
        return context.output.line("Nothing was archived.");
    }
    let mut facts = vec![
        counted(report.session_count, "session"),
        counted(report.projects.len(), "project"),
        counted(report.prompt_count, "prompt"),
        counted(report.file_count, "changed file"),
    ];
    facts.extend((report.commit_count > 0).then(|| counted(report.commit_count, "commit")));
    facts.extend((report.failed_call_count > 0).then(|| counted(report.failed_call_count, "failed call")));
    facts.push(cost(report.cost_usd));
    context.output.line(facts.join(" · "))?;
    for project in &report.projects {
        print_project(context, project, all, ids)?;
    }
    Ok(())
}

fn print_project(context: &mut Context, project: &PeriodProject, all: bool, ids: &ShortIds) -> Result<()> {
    let cwd = project.project.as_ref().map_or("(no directory)", |cwd| cwd.as_str());
    let most = |some: usize| if all { usize::MAX } else { some };
    let title = context.output.strong(&format!("## {}", last_part(cwd)));
    context.output.line("")?;
    context.output.line(title)?;
    context.output.line("")?;
    let sessions = counted(project.sessions.len(), "session");
    context.output.line(format!("`{cwd}` · {sessions} · {}", cost(project.cost_usd)))?;
    context.output.line("")?;
    for session in &project.sessions {
        print_session(context, session, most(PROMPTS), ids)?;
    }
    if !project.files.is_empty() {
        let shown = project.files.iter().take(most(FILES)).map(|file| match file.change_count {
            1 => format!("`{}`", file.path),
            count => format!("`{}` ({count}×)", file.path),
        });
        let shown: Vec<String> = shown.collect();
        let more = more(project.files.len(), shown.len());
        context.output.line(format!("- Files changed: {}{more}", shown.join(", ")))?;
    }
    for commit in &project.commits {
        let hash = &commit.hash[..commit.hash.len().min(8)];
        context.output.line(format!("- Commit `{hash}` {}", commit.subject))?;
    }
    if !project.failures.is_empty() {
        let shown = project.failures.iter().take(most(FAILURES)).map(|failure| {
            let title = failure.title.as_str().lines().next().unwrap_or_default();
            let call = if title.is_empty() { failure.tool.as_str() } else { title };
            let exit = failure.exit_code.map(|code| format!(" exit {code}")).unwrap_or_default();
            let count = if failure.count > 1 { format!(" ({}×)", failure.count) } else { String::new() };
            format!("`{}`{exit}{count}", call.replace('`', "'"))
        });
        let shown: Vec<String> = shown.collect();
        let more = more(project.failures.len(), shown.len());
        context.output.line(format!("- Failed: {}{more}", shown.join(", ")))?;
    }
    Ok(())
}

fn print_session(context: &mut Context, session: &PeriodSession, most: usize, ids: &ShortIds) -> Result<()> {
    let title = session.heading().map_or("(no title)", |title| title.as_str());
    let at = session.started_at.as_deref().and_then(Time::parse).map(time::local).unwrap_or_default();
    let mut facts = vec![at, session.provider_label.to_owned(), ids.of(&session.session_id).to_owned()];
    facts.extend(session.cost_usd.map(|dollars| cost(Some(dollars))));
    facts.retain(|fact| !fact.is_empty());
    let title = context.output.strong(&format!("**{}**", title.lines().next().unwrap_or_default()));
    context.output.line(format!("- {title} ({})", facts.join(", ")))?;
    for prompt in session.prompts.iter().take(most) {
        context.output.line(format!("  - {prompt}"))?;
    }
    let left = session.prompts.len().saturating_sub(most);
    if left > 0 {
        context.output.line(format!("  - … {}", counted(left, "more prompt")))?;
    }
    Ok(())
}

fn more(all: usize, shown: usize) -> String {
    if all > shown { format!(" and {} more", all - shown) } else { String::new() }
}
