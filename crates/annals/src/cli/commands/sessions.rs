//! `annals sessions`: a list of sessions, newest first.

use clap::Args;

use crate::cli::source_name;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::format::{cost, last_part, number};
use crate::view::{Paging, SessionList, SessionQuery, ShortIds};
use annals_core::{Result, arrangement};
use annals_store::{Hiding, SessionFilter};

#[derive(Args)]
#[command(
    after_help = "Messages are prompts and answers: commands, tool calls, context added by the client and copies of another session's \
                        messages are not counted. In JSON, user_message_count and assistant_message_count count the client's own \
                        records of each side (docs/records.md)."
)]
pub struct SessionsArguments {
    /// List all sessions: no limit, sub-agents included
    #[arg(long, short)]
    all: bool,
    /// List only sessions of this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// List only sessions that ran in this directory or below it
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// List only sessions active since then (2026-03-01, 7d, yesterday)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// List only sessions that started before then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// List only sessions that used this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// List at most N sessions [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    limit: Option<i64>,
    /// Continue after a page: the `next_cursor` of its JSON
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Include sub-agents and reviewers as separate sessions
    #[arg(long)]
    include_subagents: bool,
    /// List only sessions with this tag
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// List only sessions with a star, on themselves or on a message
    #[arg(long)]
    starred: bool,
    /// List only sessions with a note, on themselves or on a message
    #[arg(long)]
    noted: bool,
    /// List only hidden sessions
    #[arg(long)]
    hidden: bool,
    /// List only sessions that repeat the history of another session
    #[arg(long)]
    copies: bool,
}

pub fn run(context: &mut Context, options: &SessionsArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        super::sync::parse_source(source)?;
    }
    let moment = |text: &Option<String>| text.as_deref().map(|text| time::parse(text, now())).transpose();
    let query = SessionQuery {
        filter: SessionFilter {
            source: options.source.clone(),
            project: options.project.as_deref().map(absolute),
            since: moment(&options.since)?,
            until: moment(&options.until)?,
            model: options.model.clone(),
            with_agents: options.all || options.include_subagents || options.copies,
            only_copies: options.copies,
            tags: options.tag.iter().map(|tag| arrangement::tag(tag)).collect::<Result<_>>()?,
            starred: options.starred,
            noted: options.noted,
            hiding: if options.hidden { Hiding::Only } else { Hiding::LeftOut },
            ..SessionFilter::default()
        },
        page: Paging {
            limit: options.limit.unwrap_or(if options.all { i64::MAX - 1 } else { 50 }),
            cursor: options.cursor.clone(),
        },
        brief: false,
    };
    let (list, ids) = match context.archive()? {
        Some(store) => {
            let door = context.door(&store)?;
            let view = context.view(&store, &door);
            (view.sessions(&query)?, context.short_ids(&view)?)
        }
        None => (SessionList { sessions: Vec::new(), next_cursor: None, total: 0 }, ShortIds::default()),
    };
    let answer = if list.sessions.is_empty() { Outcome::Nothing } else { Outcome::Done };
    if context.json {
        context.output.json(&list)?;
    } else {
        print(context, &list, &ids)?;
    }
    Ok(answer)
}

fn print(context: &mut Context, list: &SessionList, ids: &ShortIds) -> Result<()> {
    if list.sessions.is_empty() {
        if !context.quiet {
            context.output.note("no sessions match");
            context.output.note(
                "hint: `annals sync` captures new sessions; `annals sources` lists where they come from",
            );
        }
        return Ok(());
    }
    let columns = [
        Column::text("when"),
        Column::text("project").cut_front(8),
        Column::text("title").cut_end(24),
        Column::number("messages").leave_out(2),
        Column::number("calls").leave_out(3),
        Column::number("tokens").leave_out(4),
        Column::number("cost").leave_out(1),
        Column::text("id"),
    ];
    let rows: Vec<Vec<String>> = list
        .sessions
        .iter()
        .map(|session| {
            let cwd = session.cwd.as_ref().map_or("", |cwd| cwd.as_str());
            let mut title = session.heading().map_or("(no title)", |title| title.as_str()).to_owned();
            if let Some(kind) = &session.parent_kind {
                title = format!("({}) {title}", kind.replace('_', "-"));
            }
            if session.starred {
                title.insert_str(0, "\u{2605} ");
            }
            for tag in &session.tags {
                title.push_str(&format!(" #{tag}"));
            }
            if session.history_only {
                title.push_str(" [prompts only]");
            }
            if session.source_gone {
                title.push_str(" [deleted by client]");
            }
            vec![
                time::local_text(session.last_message_at.as_ref()),
                last_part(cwd).to_owned(),
                title,
                number(session.message_count),
                number(session.tool_call_count),
                number(session.tokens.total),
                cost(session.cost_usd),
                ids.of(&session.session_id).to_owned(),
            ]
        })
        .collect();
    context.output.table("", &columns, &rows)?;
    let shown = list.sessions.len() as i64;
    if shown < list.total && !context.quiet {
        context.output.flush()?;
        context.output.note(format!(
            "{} of {} sessions; use --all to list them all",
            number(shown),
            number(list.total)
        ));
    }
    Ok(())
}

/// A directory as sessions name it. A name that is no directory here stays: it is the name of a project.
pub fn absolute(project: &str) -> String {
    let path = std::path::Path::new(project);
    if !path.exists() && !project.contains(std::path::is_separator) {
        return project.to_owned();
    }
    match path.canonicalize().or_else(|_| std::path::absolute(path)) {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(_) => project.to_owned(),
    }
}
