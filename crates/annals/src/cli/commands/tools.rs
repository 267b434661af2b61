//! `annals tools`: tool calls, touched files and shell commands, counted.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::source_name;
use crate::cli::ui::table::Column;
use crate::cli::{Context, Outcome};
use crate::view::format::{counted, number};
use crate::view::{ToolAnalytics, ToolsQuery};
use annals_core::{Error, Result};
use annals_sources::registry;

#[derive(Args)]
pub struct ToolsArguments {
    /// Count only calls of this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Number of days to include, or `all`
    #[arg(long, value_name = "N", default_value = "30")]
    days: String,
}

pub fn run(context: &mut Context, options: &ToolsArguments) -> Result<Outcome> {
    let days = days(&options.days)?;
    let sources = match &options.source {
        Some(name) => vec![super::sync::parse_source(name)?],
        None => registry().to_vec(),
    };
    let store = context.archive_or_empty()?;
    let door = context.door(&store)?;
    let disk = super::sources::on_disk(&context.config);
    let view = context.view(&store, &door).with_disk(&disk);
    let mut all = Vec::new();
    for source in sources {
        all.push(view.tools(&ToolsQuery {
            source,
            days,
            since: None,
            until: None,
            machine: None,
            project: None,
        })?);
    }
    if context.json {
        context.output.json(&json!({"sources": all, "next_cursor": null}))?;
    } else {
        for analytics in all.iter().filter(|analytics| analytics.tool_call_count > 0) {
            print(context, analytics)?;
        }
    }
    let calls: i64 = all.iter().map(|analytics| analytics.tool_call_count).sum();
    if calls == 0 && !context.json && !context.quiet {
        context.output.note("no tool calls in this period");
        context.output.note("hint: annals tools --days all");
    }
    Ok(if calls == 0 { Outcome::Nothing } else { Outcome::Done })
}

/// A number of days, or none for all.
pub fn days(text: &str) -> Result<Option<i64>> {
    if text == "all" {
        return Ok(None);
    }
    let number = text.parse::<i64>().ok().filter(|days| (1..=100_000).contains(days));
    number.map(Some).ok_or_else(|| {
        Error::new(format!("not a number of days: {text:?}")).hint("use --days 7, --days 30 or --days all")
    })
}

fn print(context: &mut Context, analytics: &ToolAnalytics) -> Result<()> {
    let title = context.output.strong(analytics.state.provider_label);
    let days = analytics
        .date_range_days
        .map_or("all time".to_owned(), |days| format!("last {}", counted(days, "day")));
    context.output.line(format!(
        "{title}  {days}: {}, {}, {} failed",
        counted(analytics.session_count, "session"),
        counted(analytics.tool_call_count, "call"),
        number(analytics.failed_call_count)
    ))?;
    let tools: Vec<Vec<String>> = analytics
        .tool_counts
        .0
        .iter()
        .map(|(name, count)| {
            let failed = analytics.failed_counts.0.get(name).and_then(Value::as_i64).unwrap_or(0);
            vec![number(count.as_i64().unwrap_or(0)), number(failed), name.clone()]
        })
        .collect();
    if !tools.is_empty() {
        context.output.line("")?;
        let columns = [Column::number("count"), Column::number("failed"), Column::text("tool").cut_end(20)];
        context.output.table("  ", &columns, &tools)?;
    }
    let read = analytics.top_files_read.iter().map(|file| (file.path.to_string(), file.count)).collect();
    let written =
        analytics.top_files_written.iter().map(|file| (file.path.to_string(), file.count)).collect();
    let commands =
        analytics.top_commands.iter().map(|command| (command.command.to_string(), command.count)).collect();
    let lists: [(&str, Vec<(String, i64)>); 3] =
        [("file read", read), ("file written", written), ("command", commands)];
    for (name, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
        let rows: Vec<Vec<String>> =
            list.iter().map(|(text, count)| vec![number(*count), text.replace('\n', " ")]).collect();
        context.output.line("")?;
        let text = Column::text(name);
        let text = if name.starts_with("file") { text.cut_front(20) } else { text.cut_end(20) };
        context.output.table("  ", &[Column::number("count"), text], &rows)?;
    }
    context.output.line("")
}
