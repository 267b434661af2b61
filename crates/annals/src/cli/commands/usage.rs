//! `annals usage`: tokens and cost, each response once, and the responses behind every figure.

use clap::Args;

use crate::cli::ui::table::{dollars, fit, number, table};
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::{
    Door, Paging, ResponsePage, UsageQuery, UsageReport, UsageRow, find_session, responses, usage,
};
use annals_core::{Error, Result};
use annals_store::{ResponseFilter, Store, UsageBy};

#[derive(Args)]
pub struct UsageArguments {
    /// What to sum by
    #[arg(long, value_name = "WHAT", default_value = "day",
          value_parser = clap::builder::PossibleValuesParser::new(UsageBy::ALL.map(UsageBy::name)))]
    by: String,
    /// The last so many days (in UTC), or `all`
    #[arg(long, value_name = "N", default_value = "30")]
    days: String,
    /// Only this source
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Only sessions that ran in this folder or below it
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Only this session, by its id or the start of it
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// The responses behind the sums: id, model, price row, and copies that were left out
    #[arg(long)]
    explain: bool,
    /// How many rows at most [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    limit: Option<i64>,
    /// Go on after an earlier page: its next_cursor
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub fn run(context: &mut Context, options: &UsageArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        super::sync::source_named(source)?;
    }
    let store = context.archive_or_new()?;
    let door = context.door(&store)?;
    let ask = UsageQuery {
        by: UsageBy::from_name(&options.by).unwrap_or(UsageBy::Day),
        // One session is wanted whole, however old it is.
        days: if options.session.is_some() { None } else { super::tools::days(&options.days)? },
        filter: ResponseFilter {
            source: options.source.clone(),
            session: options
                .session
                .as_deref()
                .map(|id| session_row(context, &store, &door, id))
                .transpose()?,
            model: options.model.clone(),
            project: options.project.as_deref().map(super::sessions::absolute),
            ..ResponseFilter::default()
        },
        page: Paging { limit: options.limit.unwrap_or(i64::MAX - 1), cursor: options.cursor.clone() },
    };
    if options.explain {
        return explain(context, &store, &door, &ask);
    }
    let report = usage(&context.scope, &store, &door, &ask, now())?;
    if context.json {
        context.output.json(&report)?;
    } else {
        print(context, &report)?;
    }
    Ok(if report.rows.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn session_row(context: &Context, store: &Store, door: &Door, id: &str) -> Result<i64> {
    let session = find_session(&context.scope, store, door, id, now())?;
    session.map(|session| session.row).ok_or_else(|| {
        Error::new(format!("no session begins with {id:?}")).hint("`annals sessions --all` lists them")
    })
}

fn print(context: &mut Context, report: &UsageReport) -> Result<()> {
    if report.rows.is_empty() {
        if !context.quiet {
            context.output.note("no usage in these days");
            context.output.note("hint: --days all looks at everything");
        }
        return Ok(());
    }
    let head = ["", "#responses", "#input", "#output", "#cache read", "#cache write", "#total", "#cost"];
    let cells = |name: String, row: &UsageRow| {
        let tokens = &row.tokens;
        let counts = [
            row.response_count,
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write,
            tokens.total,
        ];
        // A sum that leaves something out says so.
        let partly = if row.unpriced_models.is_empty() || row.cost_usd.is_none() { "" } else { "+" };
        let cost = format!("{}{partly}", dollars(row.cost_usd));
        std::iter::once(name).chain(counts.map(number)).chain([cost]).collect::<Vec<_>>()
    };
    let name = |row: &UsageRow| row.key.as_ref().map_or("(unknown)".to_owned(), |key| fit(key.as_str(), 48));
    let mut rows: Vec<Vec<String>> = report.rows.iter().map(|row| cells(name(row), row)).collect();
    rows.push(cells("total".into(), &report.total));
    for line in table(&head, &rows) {
        context.output.line(line)?;
    }
    if context.quiet {
        return Ok(());
    }
    context.output.flush()?;
    for unpriced in &report.unpriced_models {
        context.output.note(format!(
            "no price is known for {}: {} responses, {} tokens are not in the cost",
            unpriced.model,
            number(unpriced.response_count),
            number(unpriced.tokens)
        ));
    }
    if report.excluded_copies > 0 {
        let copies = number(report.excluded_copies);
        context.output.note(format!("{copies} copies of responses in forks and resumes were left out"));
    }
    context.output.note("cost is estimated from list prices of tokens; --explain shows what is behind it");
    Ok(())
}

fn explain(context: &mut Context, store: &Store, door: &Door, ask: &UsageQuery) -> Result<Outcome> {
    let page = responses(&context.scope, store, door, ask, now())?;
    if context.json {
        context.output.json(&page)?;
    } else {
        print_responses(context, &page)?;
    }
    Ok(if page.responses.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn print_responses(context: &mut Context, page: &ResponsePage) -> Result<()> {
    let head = [
        "when", "response", "session", "model", "#input", "#output", "#cached", "#written", "#cost", "price",
    ];
    let rows: Vec<Vec<String>> = page
        .responses
        .iter()
        .map(|response| {
            let tokens = &response.tokens;
            let price = match (&response.counted_in, &response.price) {
                (Some(origin), _) => format!("copy, counted in {origin}"),
                (None, _) if response.copied => "copy".to_owned(),
                (None, Some(price)) => format!("{} from {}", price.model, price.from),
                (None, None) => "no price known".to_owned(),
            };
            vec![
                time::local_text(response.at.as_ref()),
                fit(response.response_id.as_str(), 32),
                fit(&response.session_id, 13),
                response.model.as_ref().map_or_else(String::new, ToString::to_string),
                number(tokens.input),
                number(tokens.output),
                number(tokens.cache_read),
                number(tokens.cache_write),
                if response.copied { "-".to_owned() } else { dollars(response.cost_usd) },
                price,
            ]
        })
        .collect();
    for line in table(&head, &rows) {
        context.output.line(line)?;
    }
    Ok(())
}
