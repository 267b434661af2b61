//! `annals day`, `annals week`, `annals month`: what was done, as Markdown for a stand-up.

use std::collections::HashSet;
use std::path::Path;

use clap::Args;

use crate::cli::git;
use crate::cli::{Context, Outcome, now};
use crate::view::{PeriodCommit, PeriodMarkdown, PeriodPart, PeriodReport, View};
use annals_core::{Calendar, Period, Result, current_period, parse_period};

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
        let markdown = PeriodMarkdown {
            part: if options.all { PeriodPart::All } else { PeriodPart::First },
            strong: &|text| context.output.strong(text),
            id: &|id| ids.of(id).to_owned(),
        };
        for line in markdown.lines(&report, &period) {
            context.output.line(line)?;
        }
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
