//! `annals search`: full-text search in prompts, answers, thinking, commands, outputs, paths, titles and the library.

use clap::Args;

use crate::cli::ui::resume::resume_in;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::view::format::{counted, number};
use crate::view::{Paging, PassageView, SearchAnswer, SearchQuery, SearchResult};
use annals_core::{Error, Result};

#[derive(Args)]
#[command(after_help = "Query syntax:\n  \
                  connection pool   messages that contain every word\n  \
                  \"retry policy\"    a phrase\n  \
                  redis OR valkey   either word\n  \
                  -test             without this word\n  \
                  auth*             words that begin with auth\n\n\
                  Filters: source: project: role:user|assistant|thinking|tool tool: file: model: branch: since: until: \
                  kind:message|call|result|library\n\n\
                  If no message contains every word, the closest matches are shown.")]
pub struct SearchArguments {
    /// Words to search for, and filters
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// Sort by best match or most recent
    #[arg(long, value_name = "ORDER", default_value = "best",
          value_parser = clap::builder::PossibleValuesParser::new(["best", "recent"]))]
    sort: String,
    /// Show at most N sessions
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(i64).range(1..))]
    limit: i64,
    /// Continue after a page: the `next_cursor` of its JSON
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub fn run(context: &mut Context, options: &SearchArguments) -> Result<Outcome> {
    let store = context.archive()?.ok_or_else(|| Error::new("no archive yet").hint("annals sync"))?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let query = SearchQuery {
        query: options.query.join(" "),
        recent: options.sort == "recent",
        page: Paging { limit: options.limit, cursor: options.cursor.clone() },
        // A person waits for this answer, and it must be complete.
        effort: Some(usize::MAX),
        ..SearchQuery::default()
    };
    let answer = view.search(&query)?;
    if context.json {
        context.output.json(&answer)?;
    } else {
        print(context, &query.query, &answer)?;
    }
    Ok(if answer.results.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn print(context: &mut Context, query: &str, answer: &SearchAnswer) -> Result<()> {
    if answer.results.is_empty() {
        if !context.quiet && !answer.complete {
            context.output.note(format!("no matches for {query:?} in the most relevant messages"));
            context.output.note("hint: add a word or a filter such as project: or since:");
        } else if !context.quiet {
            context.output.note(format!("no matches for {query:?}"));
            context.output.note("hint: try fewer words, or run `annals sync` to capture new sessions");
        }
        return Ok(());
    }
    if answer.mode == "any" && !context.quiet {
        context.output.note("no message contains every word; showing the closest matches");
    }
    for result in &answer.results {
        print_result(context, result)?;
    }
    if !context.quiet {
        context.output.flush()?;
        let shown = number(answer.results.len());
        let total = counted(answer.total, "result");
        let more = if answer.complete { "" } else { "at least " };
        context
            .output
            .note(format!("{shown} of {more}{total}; `annals show SESSION --at MESSAGE` opens a match"));
    }
    Ok(())
}

fn print_result(context: &mut Context, result: &SearchResult) -> Result<()> {
    let title = result.title.as_ref().map_or("(no title)", |title| title.as_str());
    let title = context.output.strong(title);
    context.output.line(title)?;
    let mut facts = vec![time::local_text(result.last_message_at.as_ref()), result.provider_label.to_owned()];
    facts.extend(result.cwd.as_ref().map(ToString::to_string));
    facts.extend(result.session_id.clone());
    facts.retain(|fact| !fact.is_empty());
    context.output.line(format!("  {}", facts.join(" \u{b7} ")))?;
    for passage in &result.passages {
        print_passage(context, passage)?;
    }
    if result.more_passages > 0 {
        let more = number(result.more_passages);
        context.output.line(format!("  {more} more"))?;
    }
    if let Some(command) = &result.resume_command {
        let command = resume_in(result.cwd.as_ref().map(|cwd| cwd.as_str()), command);
        let command = context.output.faint(&format!("  {command}"));
        context.output.line(command)?;
    }
    context.output.line("")
}

fn print_passage(context: &mut Context, passage: &PassageView) -> Result<()> {
    let mut whose = passage.role.to_owned();
    if let Some(tool) = &passage.tool {
        whose = format!("{tool} {}", passage.kind);
    }
    let letters: Vec<char> = passage.snippet.as_str().chars().collect();
    let mut text = String::new();
    let mut at = 0;
    for [start, length] in &passage.highlights {
        let (start, end) = ((*start).min(letters.len()), (start + length).min(letters.len()));
        text.extend(&letters[at.min(start)..start]);
        let marked: String = letters[start..end].iter().collect();
        text.push_str(&context.output.strong(&marked));
        at = end;
    }
    text.extend(&letters[at..]);
    let id = match (passage.position, passage.kind) {
        (_, "library") => String::new(),
        _ => format!(" {}", passage.message_id),
    };
    let branch = if passage.off_branch { " (other branch)" } else { "" };
    context.output.line(format!("  {whose}{id}{branch}: {text}"))
}
