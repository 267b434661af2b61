//! One session: what is cited, how it is cited, and its steps as text.

use serde_json::json;

use super::arguments::{OutputArguments, Part, ReadArguments, parse};
use super::text::{Answer, Position, item, one_line, quote};
use super::tools::Call;
use crate::view::format::{milliseconds, minute, size};
use crate::view::{BlockView, Branch, ChangeView, Entry, Narrowing, SessionView, TranscriptQuery, View};
use annals_core::{Error, Result, from_address, in_address};

/// Addresses of sessions start with this.
pub const SCHEME: &str = "annals://session/";
/// Steps read at a time.
const STRETCH: i64 = 40;
/// Steps read for one answer, however few of them are of interest.
const MOST_STEPS: i64 = 4_000;
/// Steps shown before the one that was asked for.
const BEFORE: i64 = 2;
/// Bytes of a text, an output and a diff, unless the caller wants all.
const TEXT: usize = 3_000;
const OUTPUT: usize = 700;
const DIFF: usize = 2_000;

/// The address of a session, or of a step of it.
pub fn citation(session: &SessionView, step: Option<&str>) -> String {
    let step = step.map(|step| format!("#{step}")).unwrap_or_default();
    format!("{SCHEME}{}{step}", in_address(&session.session_id))
}

/// The session and the step of an address.
pub fn parse_citation(address: &str) -> Option<(String, Option<String>)> {
    let rest = address.strip_prefix(SCHEME)?;
    let (id, step) = match rest.split_once('#') {
        Some((id, step)) => (id, Some(step.to_owned()).filter(|step| !step.is_empty())),
        None => (rest, None),
    };
    let id = from_address(id)?;
    (!id.is_empty()).then_some((id, step))
}

/// The title of a session, its client and its time.
pub fn heading(session: &SessionView) -> String {
    let title = session.heading().map_or("(no title)", |title| title.as_str());
    let when = session.last_message_at.as_deref().map(minute).unwrap_or_default();
    format!("{} · {} · {when}", one_line(title, 160), session.provider_label)
}

/// Where a session ran and how to open it again.
pub fn place(session: &SessionView) -> String {
    let mut facts: Vec<String> = Vec::new();
    facts.extend(session.cwd.as_ref().map(|cwd| one_line(cwd.as_str(), 160)));
    facts.extend(session.git_branch.as_ref().map(|branch| one_line(branch.as_str(), 60)));
    facts.push(citation(session, None));
    facts.push(format!("`annals show {}`", one_line(&session.session_id, 120)));
    facts.join(" · ")
}

/// A session by its id, the start of it, or its address.
fn find(view: &View<'_>, named: &str) -> Result<(SessionView, Option<String>)> {
    let (id, step) = match parse_citation(named) {
        Some(cited) => cited,
        None => (named.trim().to_owned(), None),
    };
    let missing = || {
        Error::bad_request(format!("no session {:?}", one_line(&id, 80)))
            .hint("search_history and list_sessions give the ids of sessions")
    };
    if id.is_empty() {
        return Err(missing());
    }
    let found = view.find_session(&id).map_err(Error::into_bad_request)?;
    Ok((found.ok_or_else(missing)?, step))
}

impl Call<'_> {
    pub fn read(self) -> Result<String> {
        let (arguments, output): (ReadArguments, _) = parse(self.arguments)?;
        read_session(self.view, &arguments, &output)
    }
}

/// Steps of a session from a place on.
pub fn read_session(view: &View<'_>, arguments: &ReadArguments, output: &OutputArguments) -> Result<String> {
    let start = Position::parse(output.cursor.as_deref())?;
    let (session, cited) = find(view, &arguments.session)?;
    let at = arguments.at.clone().or(cited);
    let (branch, wanted) = find_step(view, &session, at.as_deref())?;
    let first = match &start.page {
        Some(page) => page.parse().map_err(|_| {
            Error::bad_request("not a cursor").hint("use the cursor of the last answer unchanged")
        })?,
        None => wanted.map_or(0, |wanted| (wanted - BEFORE).max(0)),
    };
    let narrowing = match arguments.view.unwrap_or(Part::All) {
        Part::All => Narrowing::All,
        Part::Prompts => Narrowing::Prompts,
        Part::Edits => Narrowing::Edits,
        Part::Failures => Narrowing::Failures,
    };
    let steps = view.count_steps(&session, &branch)?;
    let mut answer = Answer::new(heading(&session), json!({"session": session, "step_count": steps}));
    answer.facts.push(place(&session));
    if !session.resume_command.is_empty() {
        answer.facts.push(format!("Resume: `{}`", one_line(&session.resume_command, 200)));
    }
    answer.empty = format!("None of its {steps} steps match this view.");
    let mut next = Some(first);
    while let Some(from) = next {
        let query = TranscriptQuery {
            full: arguments.full,
            changes: true,
            branch: branch.clone(),
            ..TranscriptQuery::default()
        };
        let page = view.steps_of_query(&session, query, from, STRETCH)?;
        let more = page.next_cursor.is_some();
        next = None;
        for entry in page.messages {
            let (number, id) = (entry.seq as i64, entry.id.clone());
            next = Some(number + 1);
            let is_wanted = Some(number) == wanted;
            if !entry.is_conversation() && !is_wanted {
                continue;
            }
            let Some(entry) = narrowing.narrow(entry) else { continue };
            let text = entry_text(&session, &entry, arguments.full);
            let mut json = serde_json::to_value(&entry)?;
            json["citation"] = citation(&session, Some(&id)).into();
            answer.items.push(item(text, &json, Position::new(Some(number.to_string()), 0))?);
        }
        next = next.filter(|_| more);
        let is_enough = answer.is_full(output) || next.is_some_and(|next| next - first >= MOST_STEPS);
        if is_enough {
            answer.next = next.map(|next| Position::new(Some(next.to_string()), 0));
            break;
        }
    }
    answer.write(output, &start)
}

/// The branch and the number of a step, by its id, the start of it, or its number.
fn find_step(view: &View<'_>, session: &SessionView, at: Option<&str>) -> Result<(Branch, Option<i64>)> {
    let Some(at) = at else { return Ok((Branch::Current, None)) };
    if at.len() < 10
        && let Ok(number) = at.parse::<i64>()
    {
        return Ok((Branch::Current, Some(number.max(0))));
    }
    if let Some(number) = view.step_of(session, &Branch::Current, at)? {
        return Ok((Branch::Current, Some(number)));
    }
    let through = Branch::Through(at.to_owned());
    // Other conversations have no other branch.
    if let Ok(Some(number)) = view.step_of(session, &through, at) {
        return Ok((through, Some(number)));
    }
    Err(Error::bad_request(format!("no step {:?} in this session", one_line(at, 80)))
        .hint("use the part of a citation after #, or the number of a step"))
}

fn entry_text(session: &SessionView, entry: &Entry, full: bool) -> String {
    let most = |usual: usize| if full { usize::MAX } else { usual };
    let who = match entry.kind {
        "prompt" => "user",
        "answer" => "assistant",
        other => other,
    };
    let when = entry.at.as_deref().map(|at| format!(" · {}", minute(at))).unwrap_or_default();
    let mut text = format!("## {} · {who}{when} · {}\n", entry.seq, citation(session, Some(&entry.id)));
    for block in &entry.blocks {
        match block {
            BlockView::Text { text: words, .. } => text.push_str(&quote(words.as_str(), most(TEXT))),
            BlockView::Thinking { text: words, .. } => {
                text.push_str(&format!("(thinking)\n{}", quote(words.as_str(), most(OUTPUT))));
            }
            BlockView::Image { media_type, bytes, .. } => {
                text.push_str(&format!("(image {} {})\n", one_line(media_type, 40), size(*bytes)));
            }
            BlockView::Attachment { name } => {
                text.push_str(&format!("(attachment {})\n", one_line(name.as_str(), 160)));
            }
            BlockView::Event { name, text: words } => {
                text.push_str(&format!("({})\n{}", one_line(name, 60), quote(words.as_str(), most(OUTPUT))));
            }
            BlockView::ToolCall { name, title, files, changes, agent_session_id, .. } => {
                text.push_str(&format!("call {}: {}\n", one_line(name, 60), one_line(title.as_str(), 400)));
                for file in files.iter().filter(|file| !changes.iter().any(|change| change.path == file.path))
                {
                    text.push_str(&format!("{} {}\n", file.operation, one_line(file.path.as_str(), 200)));
                }
                for change in changes {
                    text.push_str(&change_text(change, most(DIFF)));
                }
                if let Some(agent) = agent_session_id {
                    text.push_str(&format!("sub-agent {SCHEME}{}\n", in_address(agent)));
                }
            }
            BlockView::ToolResult { ok, exit_code, duration_ms, output, .. } => {
                let mut end: Vec<String> = exit_code.iter().map(|code| format!("exit {code}")).collect();
                if exit_code.is_none() && *ok == Some(false) {
                    end.push("failed".to_owned());
                }
                end.extend(duration_ms.map(milliseconds));
                let end = if end.is_empty() { String::new() } else { format!(" ({})", end.join(", ")) };
                text.push_str(&format!("result{end}\n{}", quote(output.as_str(), most(OUTPUT))));
            }
        }
    }
    text
}

fn change_text(change: &ChangeView, most: usize) -> String {
    format!(
        "{} {}\n{}",
        change.operation,
        one_line(change.path.as_str(), 200),
        quote(change.diff.as_str(), most)
    )
}

#[cfg(test)]
mod tests {
    use super::{SCHEME, parse_citation};
    use annals_core::in_address;

    #[test]
    fn citations_read_back() {
        for id in ["0199-ab", "agent-x/1 #2", "schl\u{fc}ssel"] {
            let address = format!("{SCHEME}{}#00ff", in_address(id));
            assert_eq!(parse_citation(&address), Some((id.to_owned(), Some("00ff".to_owned()))));
            assert_eq!(parse_citation(&format!("{SCHEME}{}", in_address(id))), Some((id.to_owned(), None)));
        }
        assert!(parse_citation("annals://session/").is_none() && parse_citation("0199-ab").is_none());
    }
}
