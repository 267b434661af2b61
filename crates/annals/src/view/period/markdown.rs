//! A day, a week or a month as Markdown for a stand-up.

use super::{PeriodProject, PeriodReport, PeriodSession, RepeatedFailure};
use crate::view::format::{cost, counted, last_part, local};
use annals_core::{Calendar, Period, Time};

/// Prompts of a session, files and failures of a project that are listed first.
const PROMPTS: usize = 5;
const FILES: usize = 8;
const FAILURES: usize = 5;

/// How much of a period is written, and how.
pub struct PeriodMarkdown<'a> {
    pub part: PeriodPart,
    /// Makes a heading stand out where the output can.
    pub strong: &'a dyn Fn(&str) -> String,
    /// The id of a session as it is shown.
    pub id: &'a dyn Fn(&str) -> String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeriodPart {
    /// The first prompts, files and failures.
    First,
    All,
}

/// `Week of 2026-11-16 to 2026-11-22`.
pub fn period_title(period: &Period) -> String {
    match period.calendar {
        Calendar::Day => period.first.strftime("%A, %Y-%m-%d").to_string(),
        Calendar::Week => format!("Week of {} to {}", period.first, period.last),
        Calendar::Month => period.first.strftime("%B %Y").to_string(),
    }
}

impl PeriodReport {
    /// What there was, as short texts.
    pub fn facts(&self) -> Vec<String> {
        let mut facts = vec![
            counted(self.session_count, "session"),
            counted(self.projects.len(), "project"),
            counted(self.prompt_count, "prompt"),
            counted(self.file_count, "changed file"),
        ];
        facts.extend((self.commit_count > 0).then(|| counted(self.commit_count, "commit")));
        facts.extend((self.failed_call_count > 0).then(|| counted(self.failed_call_count, "failed call")));
        facts.push(cost(self.cost_usd));
        facts
    }
}

impl RepeatedFailure {
    /// The first line of what was called.
    pub fn call(&self) -> &str {
        let title = self.title.as_str().lines().next().unwrap_or_default();
        if title.is_empty() { self.tool.as_str() } else { title }
    }
}

impl PeriodMarkdown<'_> {
    /// The lines of a report.
    pub fn lines(&self, report: &PeriodReport, period: &Period) -> Vec<String> {
        let mut lines = vec![(self.strong)(&format!("# {}", period_title(period))), String::new()];
        if report.projects.is_empty() {
            lines.push("Nothing was archived.".to_owned());
            return lines;
        }
        lines.push(report.facts().join(" · "));
        for project in &report.projects {
            self.push_project(&mut lines, project);
        }
        lines
    }

    fn most(&self, first: usize) -> usize {
        match self.part {
            PeriodPart::First => first,
            PeriodPart::All => usize::MAX,
        }
    }

    fn push_project(&self, lines: &mut Vec<String>, project: &PeriodProject) {
        let cwd = project.project.as_ref().map_or("(no directory)", |cwd| cwd.as_str());
        let sessions = counted(project.sessions.len(), "session");
        lines.extend([
            String::new(),
            (self.strong)(&format!("## {}", last_part(cwd))),
            String::new(),
            format!("`{cwd}` · {sessions} · {}", cost(project.cost_usd)),
            String::new(),
        ]);
        for session in &project.sessions {
            self.push_session(lines, session);
        }
        if !project.files.is_empty() {
            let shown = project.files.iter().take(self.most(FILES)).map(|file| match file.change_count {
                1 => format!("`{}`", file.path),
                count => format!("`{}` ({count}×)", file.path),
            });
            let shown: Vec<String> = shown.collect();
            let more = more(project.files.len(), shown.len());
            lines.push(format!("- Files changed: {}{more}", shown.join(", ")));
        }
        for commit in &project.commits {
            let hash = &commit.hash[..commit.hash.len().min(8)];
            lines.push(format!("- Commit `{hash}` {}", commit.subject));
        }
        if !project.failures.is_empty() {
            let shown = project.failures.iter().take(self.most(FAILURES)).map(|failure| {
                let exit = failure.exit_code.map(|code| format!(" exit {code}")).unwrap_or_default();
                let count = if failure.count > 1 { format!(" ({}×)", failure.count) } else { String::new() };
                format!("`{}`{exit}{count}", failure.call().replace('`', "'"))
            });
            let shown: Vec<String> = shown.collect();
            let more = more(project.failures.len(), shown.len());
            lines.push(format!("- Failed: {}{more}", shown.join(", ")));
        }
    }

    fn push_session(&self, lines: &mut Vec<String>, session: &PeriodSession) {
        let title = session.heading().map_or("(no title)", |title| title.as_str());
        let at = session.started_at.as_deref().and_then(Time::parse).map(local).unwrap_or_default();
        let mut facts = vec![at, session.provider_label.to_owned(), (self.id)(&session.session_id)];
        facts.extend(session.cost_usd.map(|dollars| cost(Some(dollars))));
        facts.retain(|fact| !fact.is_empty());
        let title = (self.strong)(&format!("**{}**", title.lines().next().unwrap_or_default()));
        lines.push(format!("- {title} ({})", facts.join(", ")));
        let most = self.most(PROMPTS);
        lines.extend(session.prompts.iter().take(most).map(|prompt| format!("  - {prompt}")));
        let left = session.prompts.len().saturating_sub(most);
        if left > 0 {
            lines.push(format!("  - … {}", counted(left, "more prompt")));
        }
    }
}

fn more(all: usize, shown: usize) -> String {
    if all > shown { format!(" and {} more", all - shown) } else { String::new() }
}
