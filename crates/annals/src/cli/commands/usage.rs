//! `annals usage`: tokens and estimated cost, with the responses behind every figure.

use clap::Args;
use strum::VariantNames as _;

use crate::cli::source_name;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::view::format::{cost, counted, number, plural};
use crate::view::{Paging, ResponsePage, ShortIds, UsageQuery, UsageReport, UsageRow, View};
use annals_core::{Error, Result, SessionId};
use annals_store::{ResponseFilter, UsageBy};

#[derive(Args)]
pub struct UsageArguments {
    /// Group by
    #[arg(long, value_name = "WHAT", default_value = "day",
          value_parser = clap::builder::PossibleValuesParser::new(UsageBy::VARIANTS))]
    by: String,
    /// Number of days to include, or `all`
    #[arg(long, value_name = "N", default_value = "30")]
    days: String,
    /// Include only this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Include only this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Include only sessions that ran in this directory or below it
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Include only this session: its id, or the beginning of it
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// List the responses behind the sums: id, model, price, and copies that are not counted
    #[arg(long)]
    explain: bool,
    /// List at most N rows [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    limit: Option<i64>,
    /// Continue after a page: the `next_cursor` of its JSON
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub fn run(context: &mut Context, options: &UsageArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        super::sync::parse_source(source)?;
    }
    let store = context.archive_or_empty()?;
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let query = UsageQuery {
        by: UsageBy::from_name(&options.by).unwrap_or(UsageBy::Day),
        // A single session is complete, however old it is.
        days: if options.session.is_some() { None } else { super::tools::days(&options.days)? },
        filter: ResponseFilter {
            source: options.source.clone(),
            session: options.session.as_deref().map(|id| session_row(&view, id)).transpose()?,
            model: options.model.clone(),
            project: options.project.as_deref().map(super::sessions::absolute),
            local_days: true,
            ..ResponseFilter::default()
        },
        page: Paging { limit: options.limit.unwrap_or(i64::MAX - 1), cursor: options.cursor.clone() },
    };
    if options.explain {
        return explain(context, &view, &query);
    }
    let report = view.usage(&query)?;
    if context.json {
        context.output.json(&report)?;
    } else {
        let ids = context.short_ids(&view)?;
        print(context, &report, &ids)?;
    }
    Ok(if report.rows.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn session_row(view: &View<'_>, id: &str) -> Result<SessionId> {
    let session = view.find_session(id)?;
    session.map(|session| session.row).ok_or_else(|| {
        Error::new(format!("no session found with id {id:?}"))
            .hint("`annals sessions --all` lists all sessions")
    })
}

fn print(context: &mut Context, report: &UsageReport, ids: &ShortIds) -> Result<()> {
    if report.rows.is_empty() {
        if !context.quiet {
            context.output.note("no token counts in this period");
            context.output.note("hint: annals usage --days all");
        }
        return Ok(());
    }
    let first =
        if report.by == "project" { Column::text("").cut_front(16) } else { Column::text("").cut_end(16) };
    let columns = [
        first,
        Column::number("responses").leave_out(1),
        Column::number("input").leave_out(2),
        Column::number("output").leave_out(3),
        Column::number("cache read").leave_out(4),
        Column::number("cache write").leave_out(5),
        Column::number("total"),
        Column::number("cost"),
    ];
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
        // Marks a sum that does not include everything.
        let partly = if row.unpriced_models.is_empty() || row.cost_usd.is_none() { "" } else { "+" };
        let cost = format!("{}{partly}", cost(row.cost_usd));
        std::iter::once(name).chain(counts.map(number)).chain([cost]).collect::<Vec<_>>()
    };
    let name = |row: &UsageRow| match &row.key {
        Some(key) if report.by == "session" => ids.of(key.as_str()).to_owned(),
        Some(key) => key.to_string(),
        None => "(unknown)".to_owned(),
    };
    let mut rows: Vec<Vec<String>> = report.rows.iter().map(|row| cells(name(row), row)).collect();
    rows.push(cells("total".into(), &report.total));
    context.output.table("", &columns, &rows)?;
    if context.quiet {
        return Ok(());
    }
    context.output.flush()?;
    for unpriced in &report.unpriced_models {
        context.output.note(format!(
            "note: no price for {}: {} and {} tokens are not in the cost",
            unpriced.model,
            counted(unpriced.response_count, "response"),
            number(unpriced.tokens)
        ));
    }
    if report.excluded_copies > 0 {
        let copies = plural(report.excluded_copies, "copied response", "copied responses");
        context.output.note(format!("note: {copies} in forks and resumed sessions not counted again"));
    }
    if report.hidden_session_count > 0 {
        let hidden = plural(report.hidden_session_count, "hidden session", "hidden sessions");
        context.output.note(format!("note: {hidden} in the archive; what they used is counted"));
    }
    context
        .output
        .note("note: cost is what clients report, else an estimate from list prices; use --explain for the responses behind it");
    Ok(())
}

fn explain(context: &mut Context, view: &View<'_>, query: &UsageQuery) -> Result<Outcome> {
    let page = view.responses(query)?;
    if context.json {
        context.output.json(&page)?;
    } else {
        let ids = context.short_ids(view)?;
        print_responses(context, &page, &ids)?;
    }
    Ok(if page.responses.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn print_responses(context: &mut Context, page: &ResponsePage, ids: &ShortIds) -> Result<()> {
    let columns = [
        Column::text("when"),
        Column::text("response").cut_end(16).leave_out(6),
        Column::text("session"),
        Column::text("model").cut_end(12),
        Column::number("input").leave_out(2),
        Column::number("output").leave_out(3),
        Column::number("cache read").leave_out(4),
        Column::number("cache write").leave_out(5),
        Column::number("cost"),
        Column::text("price").cut_end(12).leave_out(1),
    ];
    let rows: Vec<Vec<String>> = page
        .responses
        .iter()
        .map(|response| {
            let tokens = &response.tokens;
            let price = match (&response.counted_in, &response.price) {
                (Some(origin), _) => format!("copy, counted in {origin}"),
                (None, _) if response.copied => "copy".to_owned(),
                (None, Some(price)) => format!("{} since {}", price.model, price.from),
                (None, None) => "no price".to_owned(),
            };
            vec![
                time::local_text(response.at.as_ref()),
                response.response_id.to_string(),
                ids.of(&response.session_id).to_owned(),
                response.model.as_ref().map_or_else(String::new, ToString::to_string),
                number(tokens.input),
                number(tokens.output),
                number(tokens.cache_read),
                number(tokens.cache_write),
                if response.copied { "-".to_owned() } else { cost(response.cost_usd) },
                price,
            ]
        })
        .collect();
    context.output.table("", &columns, &rows)?;
    Ok(())
}
