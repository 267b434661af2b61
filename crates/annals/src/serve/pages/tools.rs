//! The tools page: calls, failures and durations, files and commands, by source, project and period.

use std::collections::BTreeMap;

use askama::Template;
use serde::Deserialize;

use super::filters::{Bar, Filtered, Filters};
use super::html::in_address;
use super::{Frame, PageRequest, Theme, plot};
use crate::serve::answer::Answered;
use crate::view::format;
use crate::view::{CallTimes, ToolAnalytics, ToolsQuery, View, find_source, source_labels};
use annals_core::{Error, Result};

/// Rows in each list.
const TOP: usize = 20;

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    frame: Frame,
    bar: Bar,
    numbers: String,
    is_empty: bool,
    /// The columns of tools: name, address that sorts by it, whether it is sorted by it.
    columns: Vec<(&'static str, String, bool)>,
    tools: Vec<ToolLine>,
    lists: Vec<List>,
}

struct ToolLine {
    name: String,
    shown: String,
    /// Its calls, those that failed, and the slowest.
    calls_address: String,
    failed_address: String,
    slowest_address: String,
    calls: String,
    failed: String,
    rate: String,
    median: String,
    slowest: String,
    share: i64,
    failed_share: i64,
}

struct List {
    title: &'static str,
    what: &'static str,
    lines: Vec<Line>,
}

struct Line {
    name: String,
    shown: String,
    href: String,
    count: String,
    share: i64,
    /// What belongs to it: a command of a program, with how often it was run.
    parts: Vec<(String, String, String)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Parameters {
    sort: String,
}

/// A column of tools by which they are sorted: label, name in the address, and the value, the largest first.
type Column = (&'static str, &'static str, fn(&Tool) -> i64);

const COLUMNS: [Column; 5] = [
    ("calls", "", |tool| tool.calls),
    ("failed", "failed", |tool| tool.failed),
    ("rate", "rate", |tool| tool.failed * 1_000_000 / tool.calls.max(1)),
    ("median", "median", |tool| tool.times.median().unwrap_or(-1)),
    ("slowest", "slowest", |tool| tool.times.slowest().unwrap_or(-1)),
];

pub(super) async fn page(
    asker: PageRequest,
    Filtered(filters, parameters): Filtered<Parameters>,
) -> Answered {
    let filters = filters.or_days("30");
    asker.show(move |view, theme| tools_page(view, &filters, &parameters.sort, theme)).await
}

fn tools_page(view: &View<'_>, filters: &Filters, sort: &str, theme: Theme) -> Result<ToolsPage> {
    let sorted = COLUMNS.into_iter().find(|(_, name, _)| *name == sort);
    let (.., value) = sorted.ok_or_else(|| {
        Error::bad_request("invalid value of `sort`")
            .hint("use failed, rate, median or slowest, or leave it out")
    })?;
    let sums = sums(view, filters)?;
    let mut tools: Vec<(&String, &Tool)> = sums.tools.iter().collect();
    tools.sort_by_key(|(name, tool)| (std::cmp::Reverse(value(tool)), std::cmp::Reverse(tool.calls), *name));
    let most = sums.tools.values().map(|tool| tool.calls).max().unwrap_or(1);
    let search =
        |filter: &str, word: &str| format!("/search?q={}", in_address(&format!("{filter}{}", quote(word))));
    Ok(ToolsPage {
        frame: Frame::new("/tools", "Tools", theme).with_filters(filters),
        bar: Bar::of(view, "/tools", filters, &["project", "machine"])?.keeping(&[("sort", sort)]),
        numbers: format!(
            "{} in {}, {} failed ({})",
            format::counted(sums.calls, "call"),
            format::counted(sums.sessions, "session"),
            format::number(sums.failed),
            format::percent(sums.failed as f64 / sums.calls.max(1) as f64)
        ),
        is_empty: sums.tools.is_empty(),
        columns: COLUMNS
            .map(|(label, name, _)| (label, filters.address("/tools", &[("sort", name)]), name == sort))
            .to_vec(),
        tools: tools.into_iter().map(|(name, tool)| tool_line(name, tool, most, filters)).collect(),
        lists: vec![
            programs(&sums.commands),
            list("Files written", "file", &sums.written, &|name| search("file:", name)),
            list("Files read", "file", &sums.read, &|name| search("file:", name)),
        ],
    })
}

fn tool_line(name: &str, tool: &Tool, most: i64, filters: &Filters) -> ToolLine {
    let calls = |set: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> = std::iter::once(("tool", name)).chain(set.iter().copied()).collect();
        filters.address("/tools/calls", &all)
    };
    let time = |milliseconds: Option<i64>| milliseconds.map_or(String::new(), format::milliseconds);
    ToolLine {
        name: name.to_owned(),
        shown: shorten(name, Kept::Start),
        calls_address: calls(&[]),
        failed_address: calls(&[("failed", "true")]),
        slowest_address: calls(&[("order", "slowest")]),
        calls: format::number(tool.calls),
        failed: format::number(tool.failed),
        rate: format::percent(tool.failed as f64 / tool.calls.max(1) as f64),
        median: time(tool.times.median()),
        slowest: time(tool.times.slowest()),
        share: plot::share(tool.calls, most),
        failed_share: plot::share(tool.failed, most),
    }
}

/// Calls of the assistants and the period that the bar says.
pub(super) fn sums(view: &View<'_>, filters: &Filters) -> Result<Sums> {
    let mut sums = Sums::default();
    for query in queries(filters)? {
        sums.add(&view.tools(&query)?);
    }
    Ok(sums)
}

/// A query for each source that the bar includes.
pub(super) fn queries(filters: &Filters) -> Result<Vec<ToolsQuery>> {
    let period = filters.period()?;
    let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let sources = source_labels().filter(|(name, _)| filters.source.is_empty() || *name == filters.source);
    let queries = sources.filter_map(|(name, _)| find_source(name)).map(|source| ToolsQuery {
        source,
        days: None,
        since: period.since,
        until: period.until,
        machine: text(&filters.machine),
        project: text(&filters.project),
    });
    Ok(queries.collect())
}

/// Counts by name.
type Counts = BTreeMap<String, i64>;

/// What is known of the calls of a tool.
#[derive(Default)]
pub(super) struct Tool {
    pub calls: i64,
    pub failed: i64,
    times: CallTimes,
}

/// Totals of the selected sources.
#[derive(Default)]
pub(super) struct Sums {
    sessions: i64,
    pub calls: i64,
    pub failed: i64,
    pub tools: BTreeMap<String, Tool>,
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
            self.tools.entry(name.clone()).or_default().calls += count.as_i64().unwrap_or(0);
        }
        for (name, count) in &of.failed_counts.0 {
            self.tools.entry(name.clone()).or_default().failed += count.as_i64().unwrap_or(0);
        }
        for (name, times) in &of.times {
            self.tools.entry(name.clone()).or_default().times.merge(times);
        }
        for command in &of.top_commands {
            *self.commands.entry(command.command.to_string()).or_default() += command.count;
        }
        for (counts, files) in
            [(&mut self.read, &of.top_files_read), (&mut self.written, &of.top_files_written)]
        {
            for file in files {
                *counts.entry(file.path.to_string()).or_default() += file.count;
            }
        }
    }
}

fn list(title: &'static str, what: &'static str, counts: &Counts, href: &dyn Fn(&str) -> String) -> List {
    let lines = most_first(counts).map(|(name, count, share)| Line {
        name: name.to_owned(),
        shown: shorten(name, Kept::End),
        href: href(name),
        count: format::number(count),
        share,
        parts: Vec::new(),
    });
    List { title, what, lines: lines.collect() }
}

/// The first rows: names, counts, and their share of the largest one.
fn most_first(counts: &Counts) -> impl Iterator<Item = (&str, i64, i64)> {
    let mut sorted: Vec<(&String, i64)> = counts.iter().map(|(name, count)| (name, *count)).collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most = sorted.first().map_or(1, |(_, count)| *count);
    sorted.into_iter().take(TOP).map(move |(name, count)| (name.as_str(), count, plot::share(count, most)))
}

/// Commands by the program that they run.
fn programs(commands: &Counts) -> List {
    let search = |words: &str| format!("/search?q={}", in_address(&quote(words)));
    let mut programs = Counts::new();
    for (command, count) in commands {
        *programs.entry(program_of(command).to_owned()).or_default() += count;
    }
    let lines = most_first(&programs).map(|(program, count, share)| {
        let of_program: Counts = commands
            .iter()
            .filter(|(command, _)| program_of(command) == program)
            .map(|(command, count)| (command.clone(), *count))
            .collect();
        let parts = most_first(&of_program)
            .map(|(command, count, _)| {
                (shorten(command, Kept::Start), search(command), format::number(count))
            })
            .collect();
        Line {
            name: program.to_owned(),
            shown: shorten(program, Kept::Start),
            href: search(program),
            count: format::number(count),
            share,
            parts,
        }
    });
    List { title: "Most frequent commands", what: "program", lines: lines.collect() }
}

/// The program that a command runs: its first word, without variables set before it.
fn program_of(command: &str) -> &str {
    let is_variable = |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    let word = command.split_whitespace().find(|word| !is_variable(word)).unwrap_or(command);
    format::last_part(word)
}

/// Which end of a name says the most.
enum Kept {
    Start,
    End,
}

/// Truncates a name: the end of a path and the start of a command say the most.
fn shorten(name: &str, kept: Kept) -> String {
    const ROOM: usize = 38;
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= ROOM {
        return name.to_owned();
    }
    match kept {
        Kept::End => format!("…{}", letters[letters.len() - ROOM..].iter().collect::<String>()),
        Kept::Start => format!("{}…", letters[..ROOM].iter().collect::<String>()),
    }
}

/// A search term, quoted if it has spaces.
fn quote(word: &str) -> String {
    let word = word.replace('"', " ");
    if word.contains(char::is_whitespace) { format!("\"{}\"", word.trim()) } else { word }
}

#[cfg(test)]
mod tests {
    use super::program_of;

    #[test]
    fn a_program_is_the_first_word_that_sets_no_variable() {
        assert_eq!(program_of("cargo test --locked"), "cargo");
        assert_eq!(program_of("RUST_LOG=debug  ./target/debug/annals up"), "annals");
        assert_eq!(program_of("/usr/bin/env python3"), "env");
        assert_eq!(program_of("a/b=c"), "b=c");
        assert_eq!(program_of("PATH=x"), "PATH=x");
        assert_eq!(program_of(""), "");
    }
}
