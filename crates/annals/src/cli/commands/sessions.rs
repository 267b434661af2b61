//! `annals sessions`: lists sessions, newest first.

use clap::Args;

use crate::cli::ui::table::{dollars, fit, number, table};
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::sessions;
use crate::view::{Paging, SessionList, SessionQuery};
use annals_core::Result;
use annals_store::SessionFilter;

#[derive(Args)]
pub struct SessionsArguments {
    /// All of them: no limit, sub-agents included
    #[arg(long, short)]
    all: bool,
    /// Only this source
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only sessions that started in this folder or below it
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Only sessions with something since then (2026-03-01, 7d, yesterday)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only sessions that began before then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only sessions that used this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// How many at most [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    limit: Option<i64>,
    /// Go on after an earlier page: its next_cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Sub-agents and reviewers too, each as a session of its own
    #[arg(long)]
    include_subagents: bool,
    /// Only sessions that repeat history of another; what is repeated counts there
    #[arg(long)]
    copies: bool,
}

pub fn run(context: &mut Context, options: &SessionsArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        super::sync::source_named(source)?;
    }
    let moment = |text: &Option<String>| text.as_deref().map(|text| time::parse(text, now())).transpose();
    let ask = SessionQuery {
        filter: SessionFilter {
            source: options.source.clone(),
            project: options.project.as_deref().map(absolute),
            since: moment(&options.since)?,
            until: moment(&options.until)?,
            model: options.model.clone(),
            with_agents: options.all || options.include_subagents || options.copies,
            only_copies: options.copies,
            ..SessionFilter::default()
        },
        page: Paging {
            limit: options.limit.unwrap_or(if options.all { i64::MAX - 1 } else { 50 }),
            cursor: options.cursor.clone(),
        },
        brief: false,
    };
    let list = match context.archive()? {
        Some(store) => {
            let door = context.door(&store)?;
            sessions(&context.scope, &store, &door, &ask, now())?
        }
        None => SessionList { sessions: Vec::new(), next_cursor: None, total: 0 },
    };
    let answer = if list.sessions.is_empty() { Outcome::Nothing } else { Outcome::Done };
    if context.json {
        context.output.json(&list)?;
    } else {
        print(context, &list)?;
    }
    Ok(answer)
}

fn print(context: &mut Context, list: &SessionList) -> Result<()> {
    if list.sessions.is_empty() {
        if !context.quiet {
            context.output.note("no sessions found");
            context.output.note("hint: `annals sync` captures them; `annals sources` shows where it looks");
        }
        return Ok(());
    }
    let head = ["when", "project", "title", "#messages", "#calls", "#tokens", "#cost", "id"];
    let rows: Vec<Vec<String>> = list
        .sessions
        .iter()
        .map(|session| {
            let cwd = session.cwd.as_ref().map_or("", |cwd| cwd.as_str());
            let mut title = session.title.as_ref().map_or("(no title)", |title| title.as_str()).to_owned();
            if let Some(kind) = &session.parent_kind {
                title = format!("({}) {title}", kind.replace('_', "-"));
            }
            if session.source_gone {
                title.push_str(" [gone from source]");
            }
            vec![
                time::local_text(session.last_message_at.as_ref()),
                fit(cwd.rsplit('/').next().unwrap_or(cwd), 20),
                fit(&title, 56),
                number(session.message_count),
                number(session.tool_call_count),
                number(session.tokens.total),
                dollars(session.cost_usd),
                session.session_id.clone(),
            ]
        })
        .collect();
    for line in table(&head, &rows) {
        context.output.line(line)?;
    }
    let shown = list.sessions.len() as i64;
    if shown < list.total && !context.quiet {
        context.output.flush()?;
        context.output.note(format!(
            "{} of {} sessions; --all shows every one",
            number(shown),
            number(list.total)
        ));
    }
    Ok(())
}

/// A folder as sessions name it.
pub fn absolute(project: &str) -> String {
    let path = std::path::Path::new(project);
    match path.canonicalize().or_else(|_| std::path::absolute(path)) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => project.to_owned(),
    }
}
