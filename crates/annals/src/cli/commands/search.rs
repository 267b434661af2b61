//! `annals search`: full-text search in prompts, answers, thinking, commands, outputs, paths, titles and the library.

use clap::Args;

use crate::cli::ui::resume::resume_in;
use crate::cli::ui::table::{fit, fit_front};
use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::view::format::{counted, number};
use crate::view::{Paging, PassageView, SearchAnswer, SearchQuery, SearchResult, ShortIds};
use annals_core::{Error, Result, Scope};

#[derive(Args)]
#[command(after_help = "Query syntax:\n  \
                  connection pool   messages that contain every word\n  \
                  \"retry policy\"    a phrase\n  \
                  redis OR valkey   either word\n  \
                  -test             without this word\n  \
                  auth*             words that begin with auth\n\n\
                  Filters: source: project: role:user|assistant|thinking|tool tool: file: model: branch: since: until: \
                  kind:message|call|result|library tag: is:starred is:hidden has:note\n\n\
                  If you ask a question, or no message contains every word, the closest matches are shown. Sessions from a time \
                  such as `last week` or `in March` come first, and a misspelt word is replaced; quote it to search for it \
                  as typed.")]
pub struct SearchArguments {
    /// Words to search for, and filters
    #[arg(value_name = "QUERY", required_unless_present = "saved")]
    query: Vec<String>,
    /// Save this search under a name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["saved", "cursor"])]
    save: Option<String>,
    /// Run a saved search; words narrow it (`annals searches` lists all)
    #[arg(long, value_name = "NAME")]
    saved: Option<String>,
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
    let mut words = options.query.join(" ");
    if let Some(name) = &options.saved {
        let saved = view.query_of_saved(name)?.ok_or_else(|| super::searches::unknown(name))?;
        words = format!("{saved} {words}").trim_end().to_owned();
    }
    let query = SearchQuery {
        query: words,
        recent: options.sort == "recent",
        page: Paging { limit: options.limit, cursor: options.cursor.clone() },
        // A person waits for this answer, and it must be complete.
        effort: Some(usize::MAX),
        ..SearchQuery::default()
    };
    let mut answer = view.search(&query)?;
    if options.saved.is_some() {
        // The caller did not type it now, so it leaves like any other text of the archive.
        answer.query = view.show(&answer.query).as_str().to_owned();
    }
    if let Some(name) = &options.save {
        let versions = view.saving(name, Some(&query.query))?;
        context.archive_or_new()?.arrange(Scope::Owner, &versions)?;
        if !context.quiet {
            let name = view.show(name);
            context.output.note(format!("saved; `annals search --saved '{name}'` runs it again"));
        }
    }
    if context.json {
        context.output.json(&answer)?;
    } else {
        let ids = context.short_ids(&view)?;
        print(context, &answer, &ids)?;
    }
    Ok(if answer.results.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn print(context: &mut Context, answer: &SearchAnswer, ids: &ShortIds) -> Result<()> {
    let query = &answer.query;
    if !context.quiet {
        for correction in &answer.corrections {
            let (typed, used) = (&correction.typed, &correction.used);
            context.output.note(format!("no session has `{typed}`; showing `{used}`"));
        }
        if let Some(time) = &answer.time {
            let [since, until] = &time.days;
            context.output.note(format!(
                "preferring sessions from `{}` ({since} to {until}); use since: and until: to require a time",
                time.text
            ));
        }
    }
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
        context.output.note("showing the closest matches");
    }
    for result in &answer.results {
        print_result(context, result, ids)?;
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

fn print_result(context: &mut Context, result: &SearchResult, ids: &ShortIds) -> Result<()> {
    let title = result.heading().map_or("(no title)", |title| title.as_str());
    let width = context.output.width().unwrap_or(usize::MAX);
    let title = context.output.strong(&fit(title, width));
    context.output.line(title)?;
    let at = time::local_text(result.last_message_at.as_ref());
    let id = result.session_id.as_ref().map_or("", |id| ids.of(id));
    // The directory gets what the rest leaves.
    let rest: usize = [&at, result.provider_label, id].iter().map(|text| text.chars().count() + 3).sum();
    let cwd = result.cwd.as_ref().map_or("", |cwd| cwd.as_str());
    let cwd = fit_front(cwd, width.saturating_sub(rest + 2).max(8));
    let mut facts = vec![at.as_str(), result.provider_label, cwd.as_str(), id];
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
