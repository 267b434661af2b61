//! The tools that list and count: search, sessions, recent work, usage, library.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::arguments::{
    LibraryArguments, ListArguments, OutputArguments, RecentArguments, SearchArguments, SumBy,
    UsageArguments, parse,
};
use super::sessions::{citation, heading, place};
use super::text::{Answer, Position, item, one_line, quote};
use crate::view::format::{compact, cost, counted, day, minute, number, plural, size};
use crate::view::{
    BlockView, Branch, Entry, LibraryQuery, Paging, SearchQuery, SearchResult, SessionQuery, SessionView,
    UsageQuery, View, source_by_common_name, source_labels,
};
use annals_core::{Error, Result, Shown, Time, in_address, parse_moment};
use annals_store::{ResponseFilter, SessionFilter, UsageBy};

/// What a tool is called with.
pub(super) struct Call<'c> {
    pub view: &'c View<'c>,
    /// The folder that the caller works in.
    pub folder: Option<&'c str>,
    pub arguments: Option<Map<String, Value>>,
}

/// Results per page; the budget decides how many of them are shown.
const SEARCH_PAGE: i64 = 20;
const LIST_PAGE: i64 = 50;
const RECENT_PAGE: i64 = 8;
const USAGE_PAGE: i64 = 100;
/// Microseconds since the last line of a session that may run now.
const LATELY: i64 = 600_000_000;
/// Bytes of quoted texts in lists.
const SNIPPET: usize = 600;
const LAST_WORDS: usize = 500;

/// The project that a caller means, and whether they named it.
pub(super) struct Project {
    pub path: Option<String>,
    pub is_named: bool,
    /// For titles.
    pub shown: Shown,
}

impl Project {
    pub fn of(view: &View<'_>, named: Option<&str>, folder: Option<&str>) -> Project {
        let named = named.map(str::trim).filter(|named| !named.is_empty());
        let path = match named {
            None | Some(".") => folder,
            Some("*") => None,
            Some(path) => Some(path),
        };
        let shown = path.map_or_else(|| view.show("all projects"), |path| view.show(&one_line(path, 120)));
        Project { path: path.map(str::to_owned), is_named: named.is_some(), shown }
    }

    fn fill(&self, filter: &mut SessionFilter) {
        let is_path = self.path.as_deref().is_some_and(|path| path.starts_with('/'));
        filter.project = self.path.clone().filter(|_| is_path);
        filter.project_part = self.path.clone().filter(|_| !is_path);
    }
}

fn moment(text: Option<&str>, now: Time) -> Result<Option<Time>> {
    text.map(|text| parse_moment(text, now).map_err(Error::into_bad_request)).transpose()
}

fn known_source(name: Option<String>) -> Result<Option<String>> {
    let Some(name) = name else { return Ok(None) };
    match source_by_common_name(&name) {
        Some(source) => Ok(Some(source.to_owned())),
        None => {
            let known: Vec<&str> = source_labels().map(|(source, _)| source).collect();
            Err(Error::bad_request(format!("unknown source {name:?}"))
                .hint(format!("use {}", known.join(", "))))
        }
    }
}

/// Sessions whose assistants work now. The one that asks is among them: a search would find the question itself.
fn running_sessions(view: &View<'_>) -> Result<HashSet<String>> {
    let since = Time::from_micros(view.now().micros().saturating_sub(LATELY));
    let filter = SessionFilter { since: Some(since), with_agents: true, ..SessionFilter::default() };
    let page = Paging { limit: LIST_PAGE, cursor: None };
    let list = view.sessions(&SessionQuery { filter, page, brief: true })?;
    let running = list.sessions.into_iter().filter(|session| session.is_active);
    Ok(running.map(|session| session.session_id).collect())
}

impl Call<'_> {
    pub fn search(self) -> Result<String> {
        let (arguments, output): (SearchArguments, _) = parse(self.arguments)?;
        let start = Position::parse(output.cursor.as_deref())?;
        let mut project = Project::of(self.view, arguments.project.as_deref(), self.folder);
        let now = self.view.now();
        let mut query = SearchQuery {
            query: arguments.query.clone(),
            source: known_source(arguments.source)?,
            project: project.path.clone(),
            role: arguments.role.map(|role| <&str>::from(role).to_owned()),
            since: moment(arguments.since.as_deref(), now)?,
            until: moment(arguments.until.as_deref(), now)?,
            recent: arguments.recent,
            page: Paging { limit: SEARCH_PAGE, cursor: None },
            ..SearchQuery::default()
        };
        // A page that was found elsewhere is continued there.
        let (everywhere, page) = match &start.page {
            Some(page) => (page.starts_with('*'), page.trim_start_matches('*').to_owned()),
            None => (false, String::new()),
        };
        query.page.cursor = Some(page).filter(|page| !page.is_empty());
        let mut widened = everywhere;
        if everywhere {
            query.project = None;
        }
        let mut found = self.view.search(&query)?;
        if found.results.is_empty()
            && !project.is_named
            && query.project.is_some()
            && start == Position::default()
        {
            query.project = None;
            found = self.view.search(&query)?;
            widened = !found.results.is_empty();
        }
        let running = if arguments.include_running { HashSet::new() } else { running_sessions(self.view)? };
        let is_running =
            |result: &SearchResult| result.session_id.as_ref().is_some_and(|id| running.contains(id));
        let left_out = found.results.iter().filter(|result| is_running(result)).count();
        let fact = widened.then(|| format!("Nothing in {}; these are from all projects.", project.shown));
        if widened {
            project = Project::of(self.view, Some("*"), None);
        }
        let title =
            format!("{} in {}", one_line(&format!("Search: {}", arguments.query), 120), project.shown);
        let about = json!({"total": found.total, "mode": found.mode, "project": project.shown});
        let mut answer = Answer::new(title, about);
        answer.facts.extend(fact);
        let many = if found.complete { "" } else { "at least " };
        let mode = if found.mode == "any" { "; no message has all words, these are the closest" } else { "" };
        answer.facts.push(format!("{many}{}{mode}", counted(found.total as i64, "result")));
        if left_out > 0 {
            let left_out = counted(left_out as i64, "result");
            answer
                .facts
                .push(format!("{left_out} in sessions that run now left out; include_running shows them"));
        }
        answer.empty = "No matches. Try fewer or other words, project: \"*\", or list_sessions.".to_owned();
        let star = if widened { "*" } else { "" };
        let page_of = |cursor: Option<&String>| match (cursor, widened) {
            (Some(cursor), _) => Some(format!("{star}{cursor}")),
            (None, true) => Some("*".to_owned()),
            (None, false) => None,
        };
        let this_page = page_of(query.page.cursor.as_ref());
        for (number, result) in found.results.iter().enumerate().skip(start.skipped) {
            if is_running(result) {
                continue;
            }
            answer.items.push(item(search_text(result), result, Position::new(this_page.clone(), number))?);
        }
        answer.next = found.next_cursor.as_ref().map(|cursor| Position::new(page_of(Some(cursor)), 0));
        answer.write(&output, &start)
    }

    pub fn list(self) -> Result<String> {
        let (arguments, output): (ListArguments, _) = parse(self.arguments)?;
        let start = Position::parse(output.cursor.as_deref())?;
        let project = Project::of(self.view, arguments.project.as_deref(), self.folder);
        let now = self.view.now();
        let mut filter = SessionFilter {
            source: known_source(arguments.source)?,
            since: moment(arguments.since.as_deref(), now)?,
            until: moment(arguments.until.as_deref(), now)?,
            words: arguments.words,
            with_errors: arguments.failed,
            with_agents: arguments.include_subagents,
            ..SessionFilter::default()
        };
        project.fill(&mut filter);
        let page = Paging { limit: LIST_PAGE, cursor: start.page.clone() };
        let list = self.view.sessions(&SessionQuery { filter, page, brief: true })?;
        let about = json!({"total": list.total, "project": project.shown});
        let mut answer = Answer::new(format!("Sessions in {}", project.shown), about);
        answer.facts.push(format!("{}, newest first", counted(list.total, "session")));
        answer.empty = "No sessions. Try project: \"*\" or an earlier `since`.".to_owned();
        for (number, session) in list.sessions.iter().enumerate().skip(start.skipped) {
            let text = format!("## {}\n{}\n", heading(session), session_facts(session));
            answer.items.push(item(text, session, Position::new(start.page.clone(), number))?);
        }
        answer.next = list.next_cursor.map(|cursor| Position::new(Some(cursor), 0));
        answer.write(&output, &start)
    }

    pub fn recent(self) -> Result<String> {
        let (arguments, output): (RecentArguments, _) = parse(self.arguments)?;
        let project = Project::of(self.view, arguments.project.as_deref(), self.folder);
        let since = moment(arguments.since.as_deref(), self.view.now())?;
        recent_work(self.view, &project, since, &output)
    }

    pub fn usage(self) -> Result<String> {
        let (arguments, output): (UsageArguments, _) = parse(self.arguments)?;
        let start = Position::parse(output.cursor.as_deref())?;
        // Without a project, all of them: a sum of one project would be taken for the whole.
        let project = Project::of(self.view, arguments.project.as_deref().or(Some("*")), self.folder);
        let days = arguments.days.unwrap_or(30);
        let query = UsageQuery {
            by: match arguments.by.unwrap_or(SumBy::Day) {
                SumBy::Day => UsageBy::Day,
                SumBy::Model => UsageBy::Model,
                SumBy::Project => UsageBy::Project,
                SumBy::Session => UsageBy::Session,
                SumBy::Source => UsageBy::Source,
            },
            days: Some(days).filter(|days| *days > 0),
            filter: ResponseFilter {
                source: known_source(arguments.source)?,
                project: project.path.clone(),
                ..ResponseFilter::default()
            },
            page: Paging { limit: USAGE_PAGE, cursor: start.page.clone() },
        };
        let report = self.view.usage(&query)?;
        let total = &report.total;
        let about = json!({"by": report.by, "days": report.date_range_days, "project": project.shown, "total": total,
            "unpriced_models": report.unpriced_models});
        let period =
            if days > 0 { format!("the last {}", counted(days, "day")) } else { "all days".to_owned() };
        let mut answer = Answer::new(format!("Usage by {} in {}, {period}", report.by, project.shown), about);
        answer.facts.push(format!(
            "Total: {} tokens ({} input, {} output, {} cache read, {} cache write), {}, estimated cost {}",
            number(total.tokens.total),
            compact(total.tokens.input),
            compact(total.tokens.output),
            compact(total.tokens.cache_read),
            compact(total.tokens.cache_write),
            counted(total.response_count, "response"),
            cost(total.cost_usd)
        ));
        answer.empty = "No token counts in this period.".to_owned();
        for (at, row) in report.rows.iter().enumerate().skip(start.skipped) {
            let key = row.key.as_ref().map_or("unknown", |key| key.as_str());
            let text = format!(
                "- {}: {} tokens, {}, {}",
                one_line(key, 200),
                compact(row.tokens.total),
                counted(row.response_count, "response"),
                cost(row.cost_usd)
            );
            answer.items.push(item(text, row, Position::new(start.page.clone(), at))?);
        }
        answer.next = report.next_cursor.map(|cursor| Position::new(Some(cursor), 0));
        answer.write(&output, &start)
    }

    pub fn library(self) -> Result<String> {
        let (arguments, output): (LibraryArguments, _) = parse(self.arguments)?;
        let start = Position::parse(output.cursor.as_deref())?;
        let project = Project::of(self.view, arguments.project.as_deref(), self.folder);
        let mut query = LibraryQuery {
            source: known_source(arguments.source)?,
            kind: arguments.kind,
            project: project.path.clone(),
            session: None,
        };
        if let Some(name) = arguments.name {
            query.project = None;
            return library_item(self.view, &query, &name, &output, &start);
        }
        let items = self.view.library(&query, self.view.now())?;
        let title = format!("Instructions, skills, memory and settings in effect in {}", project.shown);
        let mut answer = Answer::new(title, json!({"total": items.len(), "project": project.shown}));
        answer.facts.push(format!("{}; `name` shows the text of one", counted(items.len() as i64, "item")));
        for (number, found) in items.iter().enumerate().skip(start.skipped) {
            let versions = if found.versions > 1 {
                format!(", version {} of {}", found.version, found.versions)
            } else {
                String::new()
            };
            let text = format!(
                "- {} {} ({}, {}, {}, changed {}{versions})",
                found.kind,
                one_line(found.id.as_str(), 200),
                found.source,
                found.scope,
                size(found.bytes),
                day(&found.changed_at)
            );
            answer.items.push(item(text, found, Position::new(None, number))?);
        }
        answer.write(&output, &start)
    }
}

fn library_item(
    view: &View<'_>,
    query: &LibraryQuery,
    name: &str,
    output: &OutputArguments,
    start: &Position,
) -> Result<String> {
    let found = view.history(query, name)?;
    if found.is_empty() {
        return Err(Error::bad_request(format!("no library item {:?}", one_line(name, 80)))
            .hint("call library without `name` for the list"));
    }
    let mut answer = Answer::new(format!("Library: {}", one_line(name, 120)), json!({"name": name}));
    answer.facts.push("The first version is complete; later ones are differences.".to_owned());
    let mut at = 0;
    for (library_item, versions) in &found {
        for version in versions {
            if at >= start.skipped {
                let ended =
                    version.deleted_at.as_deref().map(|at| format!(", deleted {at}")).unwrap_or_default();
                let text = format!(
                    "## {} {} version {} ({}{ended})\n{}",
                    library_item.kind,
                    one_line(library_item.id.as_str(), 200),
                    version.version,
                    version.changed_at,
                    quote(version.diff.as_str(), usize::MAX)
                );
                let json = json!({"item": library_item, "version": version});
                answer.items.push(item(text, &json, Position::new(None, at))?);
            }
            at += 1;
        }
    }
    answer.write(output, start)
}

/// What was done in a project lately, and how each session ended.
pub fn recent_work(
    view: &View<'_>,
    project: &Project,
    since: Option<Time>,
    output: &OutputArguments,
) -> Result<String> {
    let start = Position::parse(output.cursor.as_deref())?;
    let mut filter = SessionFilter { since, ..SessionFilter::default() };
    project.fill(&mut filter);
    let page = Paging { limit: RECENT_PAGE, cursor: start.page.clone() };
    let list = view.sessions(&SessionQuery { filter, page, brief: true })?;
    let mut answer = Answer::new(
        format!("Recent work in {}", project.shown),
        json!({"total": list.total, "project": project.shown}),
    );
    answer.facts.push(format!("{}, newest first", counted(list.total, "session")));
    answer.empty = "No sessions here yet. Try project: \"*\".".to_owned();
    for (number, session) in list.sessions.iter().enumerate().skip(start.skipped) {
        let ending = Ending::of(view, session)?;
        let mut text = format!("## {}\n{}\n", heading(session), session_facts(session));
        if let Some((id, prompt)) = &ending.prompt {
            text.push_str(&format!(
                "Last prompt {}\n{}",
                citation(session, Some(id)),
                quote(prompt, LAST_WORDS)
            ));
        }
        if let Some((id, words)) = &ending.answer {
            text.push_str(&format!(
                "Last answer {}\n{}",
                citation(session, Some(id)),
                quote(words, LAST_WORDS)
            ));
        }
        for open in &ending.open {
            text.push_str(&format!("Open end: {}\n", one_line(open, 300)));
        }
        let json = json!({
            "session": session,
            "last_prompt": ending.prompt.as_ref().map(|(_, text)| text),
            "last_answer": ending.answer.as_ref().map(|(_, text)| text),
            "open_ends": ending.open,
            "citation": citation(session, None),
        });
        answer.items.push(item(text, &json, Position::new(start.page.clone(), number))?);
    }
    answer.next = list.next_cursor.map(|cursor| Position::new(Some(cursor), 0));
    answer.write(output, &start)
}

/// How a session ended: the last prompt and answer, and what was left open.
#[derive(Default)]
struct Ending {
    prompt: Option<(String, String)>,
    answer: Option<(String, String)>,
    open: Vec<String>,
}

/// Steps at the end of a session that are read for its ending.
const LAST_STEPS: i64 = 12;

impl Ending {
    fn of(view: &View<'_>, session: &SessionView) -> Result<Ending> {
        let steps = view.count_steps(session, &Branch::Current)?;
        let page = view.steps_from(session, &Branch::Current, (steps - LAST_STEPS).max(0), LAST_STEPS)?;
        let mut ending = Ending::default();
        let mut failed = None;
        let mut ends_with_prompt = false;
        for entry in page.messages.iter().filter(|entry| entry.is_conversation()) {
            let words = text_of(entry);
            match entry.kind {
                "prompt" | "command" => {
                    ends_with_prompt = true;
                    ending.prompt = words.map(|words| (entry.id.clone(), words));
                }
                "answer" => {
                    ends_with_prompt = false;
                    if let Some(words) = words {
                        ending.answer = Some((entry.id.clone(), words));
                        failed = None;
                    }
                }
                _ => {}
            }
            failed = last_failure(entry).or(failed);
        }
        if ending.prompt.is_none() {
            let outline = view.outline(session, &Branch::Current)?;
            ending.prompt = outline.prompts.last().map(|last| (last.id.clone(), last.text.to_string()));
        }
        if session.is_active {
            ending.open.push("the assistant is working in it now".to_owned());
        } else if ends_with_prompt {
            ending.open.push("the last prompt has no answer".to_owned());
        } else if let Some(title) = failed {
            ending.open.push(format!("it ended after a failed call: {title}"));
        }
        let asks = |(_, words): &(String, String)| words.trim_end().ends_with('?');
        if !ends_with_prompt && ending.answer.as_ref().is_some_and(asks) {
            ending.open.push("the last answer is a question".to_owned());
        }
        Ok(ending)
    }
}

/// The texts of a step without thinking and calls.
fn text_of(entry: &Entry) -> Option<String> {
    let texts = entry.blocks.iter().filter_map(|block| match block {
        BlockView::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The title of the last call of a step, if it failed.
fn last_failure(entry: &Entry) -> Option<String> {
    let mut title = None;
    let mut failed = None;
    for block in &entry.blocks {
        match block {
            BlockView::ToolCall { name, title: what, .. } => title = Some(format!("{name} {what}")),
            BlockView::ToolResult { ok, exit_code, .. } => {
                let fails = *ok == Some(false) || exit_code.is_some_and(|code| code != 0);
                failed = title.clone().filter(|_| fails);
            }
            _ => {}
        }
    }
    failed
}

fn session_facts(session: &SessionView) -> String {
    let mut facts = vec![
        counted(session.message_count, "message"),
        counted(session.tool_call_count, "call"),
        format!("{} tokens", compact(session.tokens.total)),
        cost(session.cost_usd),
    ];
    facts.extend(session.parent_kind.as_ref().map(|kind| one_line(kind, 40)));
    format!("{}\n{}", facts.join(" · "), place(session))
}

fn search_text(result: &SearchResult) -> String {
    let title = result.heading().map_or("(no title)", |title| title.as_str());
    let when = result.last_message_at.as_deref().map(minute).unwrap_or_default();
    let mut facts = vec![result.provider_label.to_owned(), when];
    facts.extend(result.cwd.as_ref().map(|cwd| one_line(cwd.as_str(), 120)));
    facts.extend(result.git_branch.as_ref().map(|branch| one_line(branch.as_str(), 60)));
    facts.retain(|fact| !fact.is_empty());
    let mut text = format!("## {}\n{}\n", one_line(title, 160), facts.join(" · "));
    if let Some(id) = &result.session_id {
        text.push_str(&format!(
            "annals://session/{} · `annals show {}`\n",
            in_address(id),
            one_line(id, 120)
        ));
    }
    for passage in &result.passages {
        let who = match &passage.tool {
            Some(tool) => format!("{} {}", passage.role, one_line(tool.as_str(), 60)),
            None => passage.role.to_owned(),
        };
        let step = passage.position.map(|position| format!(" (step {position})")).unwrap_or_default();
        let cited = match &result.session_id {
            Some(id) => format!(" annals://session/{}#{}", in_address(id), passage.message_id),
            None => format!(" {}", one_line(passage.message_id.as_str(), 160)),
        };
        text.push_str(&format!("- {who}{step}{cited}\n{}", quote(passage.snippet.as_str(), SNIPPET)));
    }
    if result.more_passages > 0 {
        text.push_str(&format!(
            "- and {}\n",
            plural(result.more_passages as i64, "more match", "more matches")
        ));
    }
    text
}
