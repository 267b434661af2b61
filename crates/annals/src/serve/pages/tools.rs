//! The tools page: calls and failures, files and commands, by source, project and period.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;

use super::filters::{Bar, Filtered, Filters};
use super::html::in_address;
use super::{Frame, Theme, plot, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::Answered;
use crate::serve::api::parameters::Nothing;
use crate::view::format;
use crate::view::{ToolAnalytics, ToolsQuery, View, find_source, source_labels};
use annals_core::Result;

/// Rows in each list.
const TOP: usize = 20;

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    frame: Frame,
    bar: Bar,
    numbers: String,
    is_empty: bool,
    lists: Vec<List>,
}

struct List {
    title: &'static str,
    what: &'static str,
    unit: &'static str,
    failures: bool,
    lines: Vec<Line>,
}

struct Line {
    name: String,
    shown: String,
    href: String,
    count: String,
    share: i64,
    failed: String,
    /// The share of calls that failed.
    rate: String,
    failed_share: i64,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Filtered(filters, Nothing {}): Filtered<Nothing>,
) -> Answered {
    let theme = Theme::of(&headers);
    let filters = filters.or_days("30");
    Ok(render(app, caller, move |view| tools_page(view, &filters, theme).map(Some)).await)
}

fn tools_page(view: &View<'_>, filters: &Filters, theme: Theme) -> Result<ToolsPage> {
    let sums = sums(view, filters)?;
    let search =
        |filter: &str, word: &str| format!("/search?q={}", in_address(&format!("{filter}{}", quote(word))));
    Ok(ToolsPage {
        frame: Frame::new("/tools", "Tools", theme).with_filters(filters),
        bar: Bar::of(view, "/tools", filters, &["project", "machine"])?,
        numbers: format!(
            "{} in {}, {} failed ({:.1} %)",
            format::counted(sums.calls, "call"),
            format::counted(sums.sessions, "session"),
            format::number(sums.failed),
            100.0 * sums.failed as f64 / sums.calls.max(1) as f64
        ),
        is_empty: sums.tools.is_empty(),
        lists: vec![
            list("Calls by tool", "tool", "calls", &sums.tools, true, &|name| search("tool:", name)),
            list("Commands", "command", "count", &sums.commands, false, &|name| {
                format!("/search?q={}", in_address(&quote(name)))
            }),
            list("Files written", "file", "count", &sums.written, false, &|name| search("file:", name)),
            list("Files read", "file", "count", &sums.read, false, &|name| search("file:", name)),
        ],
    })
}

/// Calls of the assistants and the period that the bar says.
pub(super) fn sums(view: &View<'_>, filters: &Filters) -> Result<Sums> {
    let mut sums = Sums::default();
    let period = filters.period()?;
    let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    for (name, _) in source_labels().filter(|(name, _)| filters.source.is_empty() || *name == filters.source)
    {
        let Some(source) = find_source(name) else { continue };
        let query = ToolsQuery {
            source,
            days: None,
            since: period.since,
            until: period.until,
            machine: text(&filters.machine),
            project: text(&filters.project),
        };
        sums.add(&view.tools(&query)?);
    }
    Ok(sums)
}

/// Counts by name, with failures if known.
pub(super) type Counts = BTreeMap<String, (i64, i64)>;

/// Totals of the selected sources.
#[derive(Default)]
pub(super) struct Sums {
    sessions: i64,
    pub calls: i64,
    pub failed: i64,
    pub tools: Counts,
    commands: Counts,
    read: Counts,
    written: Counts,
}

impl Sums {
    fn add(&mut self, of: &ToolAnalytics) {
        self.sessions += of.session_count;
        self.calls += of.tool_call_count;
        self.failed += of.failed_call_count;
        for (name, count) in &of.tool_counts.0 {
            self.tools.entry(name.clone()).or_default().0 += count.as_i64().unwrap_or(0);
        }
        for (name, count) in &of.failed_counts.0 {
            self.tools.entry(name.clone()).or_default().1 += count.as_i64().unwrap_or(0);
        }
        for command in &of.top_commands {
            self.commands.entry(command.command.to_string()).or_default().0 += command.count;
        }
        for (counts, files) in
            [(&mut self.read, &of.top_files_read), (&mut self.written, &of.top_files_written)]
        {
            for file in files {
                counts.entry(file.path.to_string()).or_default().0 += file.count;
            }
        }
    }
}

fn list(
    title: &'static str,
    what: &'static str,
    unit: &'static str,
    counts: &Counts,
    failures: bool,
    href: &dyn Fn(&str) -> String,
) -> List {
    let mut sorted: Vec<(&String, &(i64, i64))> = counts.iter().collect();
    sorted.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let most = sorted.first().map_or(1, |(_, (count, _))| *count);
    let lines = sorted.into_iter().take(TOP).map(|(name, (count, failed))| Line {
        name: name.clone(),
        shown: shorten(name, what == "file"),
        href: href(name),
        count: format::number(*count),
        share: plot::share(*count, most),
        failed: format::number(*failed),
        rate: format::percent(*failed as f64 / (*count).max(1) as f64),
        failed_share: if failures { plot::share(*failed, most) } else { 0 },
    });
    List { title, what, unit, failures, lines: lines.collect() }
}

/// Truncates a name: the end of a path and the start of a command say the most.
fn shorten(name: &str, path: bool) -> String {
    const ROOM: usize = 38;
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= ROOM {
        return name.to_owned();
    }
    match path {
        true => format!("…{}", letters[letters.len() - ROOM..].iter().collect::<String>()),
        false => format!("{}…", letters[..ROOM].iter().collect::<String>()),
    }
}

/// A search term, quoted if it has spaces.
fn quote(word: &str) -> String {
    let word = word.replace('"', " ");
    if word.contains(char::is_whitespace) { format!("\"{}\"", word.trim()) } else { word }
}
