//! `annals search`: finds words in prompts, answers, thinking, commands, outputs, paths, titles and authored things.

use clap::Args;

use crate::cli::ui::table::number;
use crate::cli::ui::time;
use crate::cli::{Answer, Desk, now};
use crate::view::{Paging, PassageView, SearchAnswer, SearchAsk, SearchResult, search};
use annals_core::{Error, Result};

#[derive(Args)]
#[command(
    after_help = "Words all have to stand in one message; quotes make a \"phrase\", OR alternatives, -word leaves out, \
                        auth* completes. Filters: source: project: role:user|assistant|thinking|tool tool: file: model: \
                        branch: since: until: kind:message|call|result|library. A question whose words stand nowhere \
                        together finds what holds most of them."
)]
pub struct Options {
    /// What to look for
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// best or recent first
    #[arg(long, value_name = "ORDER", default_value = "best",
          value_parser = clap::builder::PossibleValuesParser::new(["best", "recent"]))]
    sort: String,
    /// How many sessions at most
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(i64).range(1..))]
    limit: i64,
    /// Go on after an earlier page: its next_cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    let store = desk
        .archive()?
        .ok_or_else(|| Error::new("there is no archive yet").hint("`annals sync` makes one"))?;
    let door = desk.door(&store)?;
    let ask = SearchAsk {
        query: options.query.join(" "),
        recent: options.sort == "recent",
        page: Paging { limit: options.limit, cursor: options.cursor.clone() },
        ..SearchAsk::default()
    };
    let answer = search(&desk.scope, &store, &door, &ask, now())?;
    if desk.json {
        desk.output.json(&answer)?;
    } else {
        print(desk, &answer)?;
    }
    Ok(if answer.results.is_empty() { Answer::Nothing } else { Answer::Done })
}

fn print(desk: &mut Desk, answer: &SearchAnswer) -> Result<()> {
    if answer.results.is_empty() {
        if !desk.quiet {
            desk.output.note("nothing found");
            desk.output.note("hint: fewer words find more; `annals sync` captures what is new");
        }
        return Ok(());
    }
    if answer.mode == "any" && !desk.quiet {
        desk.output.note("no message holds all words; these hold most of them");
    }
    for result in &answer.results {
        print_result(desk, result)?;
    }
    if !desk.quiet {
        desk.output.flush()?;
        let shown = number(i64::try_from(answer.results.len()).unwrap_or(i64::MAX));
        let total = number(i64::try_from(answer.total).unwrap_or(i64::MAX));
        let more = if answer.complete { "" } else { " at least" };
        desk.output
            .note(format!("{shown} of{more} {total}; annals show SESSION --at MESSAGE opens one there"));
    }
    Ok(())
}

fn print_result(desk: &mut Desk, result: &SearchResult) -> Result<()> {
    let title = result.title.as_ref().map_or("(no title)", |title| title.as_str());
    let title = desk.output.strong(title);
    desk.output.line(title)?;
    let mut facts = vec![time::local_text(result.last_message_at.as_ref()), result.provider_label.to_owned()];
    facts.extend(result.cwd.as_ref().map(ToString::to_string));
    facts.extend(result.session_id.clone());
    facts.retain(|fact| !fact.is_empty());
    desk.output.line(format!("  {}", facts.join(" \u{b7} ")))?;
    for passage in &result.passages {
        print_passage(desk, passage)?;
    }
    if result.more_passages > 0 {
        let more = number(i64::try_from(result.more_passages).unwrap_or(i64::MAX));
        desk.output.line(format!("  and {more} more"))?;
    }
    if let Some(command) = &result.resume_command {
        let command = desk.output.faint(&format!("  {command}"));
        desk.output.line(command)?;
    }
    desk.output.line("")
}

fn print_passage(desk: &mut Desk, passage: &PassageView) -> Result<()> {
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
        text.push_str(&desk.output.strong(&marked));
        at = end;
    }
    text.extend(&letters[at..]);
    let id = match (passage.position, passage.kind) {
        (_, "library") => String::new(),
        _ => format!(" {}", passage.message_id),
    };
    let branch = if passage.off_branch { " (another branch)" } else { "" };
    desk.output.line(format!("  {whose}{id}{branch}: {text}"))
}
