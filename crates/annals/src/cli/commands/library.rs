//! `annals library`: skills, prompts, rules, instructions and memory, now and at any earlier time.

use clap::Args;
use serde_json::json;

use crate::cli::source_name;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::LibraryQuery;
use crate::view::format::{last_part, size};
use annals_core::{Result, Time};

#[derive(Args)]
pub struct LibraryArguments {
    /// List only items of this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// List only this kind: skills, prompts, memory_notes, …
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// List what was in effect then (2026-03-01, 7d, yesterday)
    #[arg(long, value_name = "WHEN", conflicts_with = "history")]
    as_of: Option<String>,
    /// Show all versions of an item with their differences
    #[arg(long, value_name = "ITEM")]
    history: Option<String>,
}

pub fn run(context: &mut Context, options: &LibraryArguments) -> Result<Outcome> {
    if let Some(source) = &options.source {
        super::sync::parse_source(source)?;
    }
    let then = match &options.as_of {
        Some(text) => time::parse(text, now())?,
        None => Time::from_micros(i64::MAX),
    };
    let query = LibraryQuery {
        source: options.source.clone(),
        kind: options.kind.clone(),
        ..LibraryQuery::default()
    };
    match &options.history {
        Some(item) => show_history(context, &query, item),
        None => list(context, &query, then),
    }
}

fn list(context: &mut Context, query: &LibraryQuery, then: Time) -> Result<Outcome> {
    let items = match context.archive()? {
        Some(store) => {
            let door = context.door(&store)?;
            let view = context.view(&store, &door);
            view.library(query, then)?
        }
        None => Vec::new(),
    };
    let answer = if items.is_empty() { Outcome::Nothing } else { Outcome::Done };
    if context.json {
        context.output.json(&json!({"items": items, "next_cursor": null}))?;
        return Ok(answer);
    }
    let columns = [
        Column::text("kind"),
        Column::text("scope").leave_out(4),
        Column::text("project").cut_front(8).leave_out(2),
        Column::text("name").cut_front(20),
        Column::number("size").leave_out(3),
        Column::text("changed").leave_out(1),
        Column::number("versions").leave_out(5),
        Column::text("source"),
    ];
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            let project = item.project.as_ref().map_or("", |project| project.as_str());
            vec![
                item.kind.to_owned(),
                item.scope.to_owned(),
                last_part(project).to_owned(),
                item.name.to_string(),
                size(item.bytes),
                time::local_text(Some(&item.changed_at)),
                item.versions.to_string(),
                item.source.to_owned(),
            ]
        })
        .collect();
    if rows.is_empty() {
        if !context.quiet {
            context.output.note("no items found");
            context
                .output
                .note("hint: `annals sync` captures skills, prompts, rules, instructions and memory");
        }
        return Ok(answer);
    }
    context.output.table("", &columns, &rows)?;
    Ok(answer)
}

fn show_history(context: &mut Context, query: &LibraryQuery, item: &str) -> Result<Outcome> {
    let found = match context.archive()? {
        Some(store) => {
            let door = context.door(&store)?;
            let view = context.view(&store, &door);
            view.history(query, item)?
        }
        None => Vec::new(),
    };
    if context.json {
        let items: Vec<_> =
            found.iter().map(|(item, versions)| json!({"item": item, "versions": versions})).collect();
        context.output.json(&json!({"items": items, "next_cursor": null}))?;
    } else {
        for (item, versions) in &found {
            let title = context.output.strong(&format!("{} {} ({})", item.kind, item.id, item.source));
            context.output.line(title)?;
            for version in versions {
                let changed = time::local_text(Some(&version.changed_at));
                context.output.line(format!(
                    "── version {} · {changed} · {}",
                    version.version,
                    size(version.bytes)
                ))?;
                context.output.line(version.diff.as_str().trim_end())?;
                if let Some(deleted) = &version.deleted_at {
                    context.output.line(format!("── deleted {}", time::local_text(Some(deleted))))?;
                }
            }
        }
        if found.is_empty() && !context.quiet {
            context.output.note(format!("no item named {item:?}"));
            context.output.note("hint: `annals library` lists all items");
        }
    }
    Ok(if found.is_empty() { Outcome::Nothing } else { Outcome::Done })
}
