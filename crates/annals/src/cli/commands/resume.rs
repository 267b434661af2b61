//! `annals resume`: picks a session, goes to its directory and starts its client there.

use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::process::Command;

use clap::Args;
use serde_json::json;

use super::sessions::absolute;
use crate::cli::ui::picker::pick;
use crate::cli::ui::resume::resume_line;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::view::format::last_part;
use crate::view::{Branch, Paging, SearchQuery, SessionQuery, SessionView, View};
use annals_core::{Error, Result};
use annals_store::SessionFilter;

#[derive(Args)]
#[command(
    after_help = "Without words, sessions of this directory come first. On a terminal you choose from a list; \
                        otherwise the command for the best match is printed and nothing is started."
)]
pub struct ResumeArguments {
    /// Words of the title or directory, words of the conversation, or a session id
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Print the command instead of running it
    #[arg(long)]
    print: bool,
}

/// Sessions to choose from.
const CHOICES: i64 = 50;
/// Sessions in a list that is chosen from by number.
const NUMBERED: usize = 10;
/// Prompts of a session in its preview: the first and the last ones.
const PROMPTS: usize = 5;

pub fn run(context: &mut Context, options: &ResumeArguments) -> Result<Outcome> {
    let words = options.words.join(" ");
    let Some(store) = context.archive()? else { return nothing(context) };
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let found = candidates(&view, &words)?;
    let Some(first) = found.first() else { return nothing(context) };
    if context.json {
        let directory = first.cwd.as_ref().map(|cwd| cwd.as_str());
        context
            .output
            .json(&json!({"session": first, "directory": directory, "command": resume_line(first)}))?;
        return Ok(Outcome::Done);
    }
    let interactive = context.output.is_terminal() && std::io::stdin().is_terminal();
    if options.print || !interactive {
        context.output.line(resume_line(first))?;
        return Ok(Outcome::Done);
    }
    let chosen = match found.as_slice() {
        [only] => Some(only),
        several if context.config.is_dumb || !cfg!(unix) => {
            choose_by_number(context, &several[..several.len().min(NUMBERED)])?
        }
        several => {
            let choices: Vec<String> = several.iter().map(line_of).collect();
            let width = context.output.width().unwrap_or(80);
            let chosen = pick(&choices, width, &mut |number| preview(&view, &several[number]))?;
            chosen.and_then(|number| several.get(number))
        }
    };
    let Some(session) = chosen else { return Ok(Outcome::Nothing) };
    context.output.line(resume_line(session))?;
    context.output.flush()?;
    start(session)
}

fn nothing(context: &mut Context) -> Result<Outcome> {
    context.output.note("no session to resume");
    context.output.note("hint: `annals sessions` lists sessions; `annals sync` captures new ones");
    Ok(Outcome::Nothing)
}

/// One session on one line, for those who choose.
fn line_of(session: &SessionView) -> String {
    let title = session.heading().map_or("(no title)", |title| title.as_str());
    let cwd = session.cwd.as_ref().map_or("", |cwd| cwd.as_str());
    let at = time::local_text(session.last_message_at.as_ref());
    format!("{at}  {}  {title}  {}", last_part(cwd), session.provider_label).replace('\n', " ")
}

/// Where it ran, and what was asked for.
fn preview(view: &View<'_>, session: &SessionView) -> Vec<String> {
    let mut lines: Vec<String> = session.cwd.iter().map(ToString::to_string).collect();
    let prompts = view.outline(session, &Branch::Current).map(|outline| outline.prompts).unwrap_or_default();
    let left_out = prompts.len().saturating_sub(PROMPTS);
    for (number, prompt) in prompts.iter().enumerate() {
        if number == 0 || number > left_out {
            lines.push(format!("> {}", prompt.text));
        } else if number == 1 {
            lines.push("  …".to_owned());
        }
    }
    lines
}

/// Sessions that can be resumed, best first.
fn candidates(view: &View<'_>, words: &str) -> Result<Vec<SessionView>> {
    let mut found: Vec<SessionView> = Vec::new();
    let list = |filter: SessionFilter| {
        let page = Paging { limit: CHOICES, cursor: None };
        view.sessions(&SessionQuery { filter, page, brief: false }).map(|list| list.sessions)
    };
    if words.is_empty() {
        let here = SessionFilter { project: Some(absolute(".")), ..SessionFilter::default() };
        found.extend(list(here)?);
        found.extend(list(SessionFilter::default())?);
    } else {
        found.extend(view.find_session(words).unwrap_or_default());
        found.extend(list(SessionFilter { words: Some(words.to_owned()), ..SessionFilter::default() })?);
        let page = Paging { limit: CHOICES, cursor: None };
        let query = SearchQuery { query: words.to_owned(), page, ..SearchQuery::default() };
        for result in view.search(&query)?.results {
            if let Some(id) = &result.session_id {
                found.extend(view.find_session(id).unwrap_or_default());
            }
        }
    }
    found.retain(|session| is_program(&session.resume_command));
    let mut known = std::collections::HashSet::new();
    found.retain(|session| known.insert((session.source.clone(), session.session_id.clone())));
    found.truncate(usize::try_from(CHOICES).unwrap_or(usize::MAX));
    Ok(found)
}

/// Conversations on the web have an address, not a command.
fn is_program(command: &str) -> bool {
    !command.is_empty() && !command.contains("://")
}

fn choose_by_number<'s>(context: &mut Context, found: &'s [SessionView]) -> Result<Option<&'s SessionView>> {
    let rows: Vec<Vec<String>> = found
        .iter()
        .zip(1..)
        .map(|(session, number)| {
            let title = session.heading().map_or("(no title)", |title| title.as_str());
            let cwd = session.cwd.as_ref().map_or("", |cwd| cwd.as_str());
            vec![
                number.to_string(),
                time::local_text(session.last_message_at.as_ref()),
                session.provider_label.to_owned(),
                last_part(cwd).to_owned(),
                title.to_owned(),
            ]
        })
        .collect();
    let columns = [
        Column::number(""),
        Column::text("when"),
        Column::text("assistant").leave_out(1),
        Column::text("project").cut_front(8),
        Column::text("title").cut_end(16),
    ];
    context.output.table("", &columns, &rows)?;
    context.output.flush()?;
    context.output.note(format!("Resume which? [1-{}, Enter for 1, q to quit]", found.len()));
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    match typed.trim() {
        "" => Ok(found.first()),
        "q" => Ok(None),
        number => {
            let chosen = number.parse::<usize>().ok().and_then(|number| found.get(number.checked_sub(1)?));
            chosen.map(Some).ok_or_else(|| {
                Error::new(format!("{number:?} is not in the list"))
                    .hint(format!("type a number from 1 to {}", found.len()))
            })
        }
    }
}

/// Runs the client in the session's directory and ends as it ends.
fn start(session: &SessionView) -> Result<Outcome> {
    let mut words = session.resume_command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(words);
    if let Some(cwd) = session.cwd.as_ref().map(|cwd| cwd.as_str()) {
        if !Path::new(cwd).is_dir() {
            return Err(Error::new(format!("the session's directory {cwd} does not exist on this machine"))
                .hint(format!(
                    "run `{}` in the directory where you want to continue",
                    session.resume_command
                )));
        }
        command.current_dir(cwd);
    }
    let ended = command.status().map_err(|error| {
        Error::new(format!("cannot start {program}: {error}"))
            .hint(format!("install {} or add it to PATH", session.provider_label))
    })?;
    Ok(if ended.success() { Outcome::Done } else { Outcome::Stopped })
}
