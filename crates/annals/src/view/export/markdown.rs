//! A session as Markdown: front matter, prompts and answers, folded thinking, commands with their output, edits as diffs.

use std::io::Write;

use serde_json::{Map, Value};

use super::{ExportOptions, Links};
use crate::view::arrangement::ArrangementView;
use crate::view::context::View;
use crate::view::format::{self, counted, number, size};
use crate::view::session::list::SessionView;
use crate::view::session::transcript::{BlockView, ChangeView, Entry, FileView};
use annals_core::{Result, in_address, is_hidden};

/// Outputs of more lines are folded.
const OPEN_LINES: usize = 30;

/// Writes a session, and its sub-agents as further sections.
pub fn write_markdown(
    view: &View<'_>,
    session: &SessionView,
    agents: &[SessionView],
    options: &ExportOptions,
    links: &mut Links<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut document = Document { out, view };
    document.front_matter(session, options, (links.resume)(session))?;
    document.line(&format!("# {}\n", one_line(&title_of(session))))?;
    document.note(session.note.as_ref())?;
    document.conversation(session, options, links)?;
    for agent in agents {
        document.line(&format!(
            "\n---\n\n<a id=\"session-{}\"></a>\n\n# {}: {}\n",
            in_address(&agent.session_id),
            if agent.parent_kind.as_deref() == Some("review") { "Review" } else { "Sub-agent" },
            one_line(&title_of(agent))
        ))?;
        document.line(&format!("{}\n", facts(agent)))?;
        document.conversation(agent, options, links)?;
    }
    Ok(())
}

fn title_of(session: &SessionView) -> String {
    let title = session.heading().map(|title| title.as_str().trim()).filter(|title| !title.is_empty());
    title.map_or_else(|| format!("Untitled, {}", session.session_id), str::to_owned)
}

fn facts(session: &SessionView) -> String {
    let mut facts = vec![format!("`{}`", session.session_id), session.models.join(", ")];
    facts.extend(session.first_message_at.as_deref().map(moment));
    facts.push(counted(session.message_count, "message"));
    facts.push(counted(session.tool_call_count, "tool call"));
    facts.push(format!("{} tokens", number(session.tokens.total)));
    facts.push(format::cost(session.cost_usd));
    facts.retain(|fact| !fact.is_empty());
    facts.join(" · ")
}

struct Document<'w> {
    out: &'w mut dyn Write,
    view: &'w View<'w>,
}

impl Document<'_> {
    /// Every value is JSON, which is YAML too.
    fn front_matter(&mut self, session: &SessionView, options: &ExportOptions, resume: String) -> Result<()> {
        let shown = |text: &Option<annals_core::Shown>| match text {
            Some(text) => Value::from(text.as_str()),
            None => Value::Null,
        };
        let tags = session.tags.iter().map(|tag| Value::from(tag.as_str())).collect::<Vec<_>>();
        let tags = Some(tags).filter(|tags| !tags.is_empty());
        let fields = [
            ("id", Value::from(session.session_id.as_str())),
            ("source", Value::from(session.source.as_str())),
            ("client", Value::from(session.provider_label)),
            ("title", shown(&session.title)),
            ("name", shown(&session.name)),
            ("starred", if session.starred { true.into() } else { Value::Null }),
            ("tags", Value::from(tags)),
            ("project", shown(&session.cwd)),
            ("branch", shown(&session.git_branch)),
            ("model", Value::from(session.models.first().cloned())),
            ("models", Value::from(session.models.clone())),
            ("started", Value::from(session.first_message_at.clone())),
            ("ended", Value::from(session.last_message_at.clone())),
            ("parent", Value::from(session.parent_session_id.clone())),
            ("messages", Value::from(session.message_count)),
            ("tool_calls", Value::from(session.tool_call_count)),
            ("tokens", Value::from(session.tokens.total)),
            ("cost_usd", Value::from(session.cost_usd)),
            ("billing", Value::from(session.billing_source)),
            ("resume", Value::from(resume)),
            ("show", Value::from(format!("annals show {}:{}", session.source, session.session_id))),
            (
                "link",
                Value::from(format!(
                    "{}/sessions/{}/{}",
                    options.web,
                    session.source,
                    in_address(&session.session_id)
                )),
            ),
        ];
        self.line("---\nexporter: annals")?;
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null() && *value != "") {
            self.line(&format!("{name}: {value}"))?;
        }
        self.line("---\n")
    }

    fn conversation(
        &mut self,
        session: &SessionView,
        options: &ExportOptions,
        links: &mut Links<'_>,
    ) -> Result<()> {
        if let Some(origin) = session.copied_from.as_deref().filter(|_| !options.copies) {
            let origin = link(&format!("session {origin}"), (links.session)(origin));
            self.line(&format!("*Earlier messages are part of {origin}.*\n"))?;
        }
        let view = self.view;
        let mut speaker = String::new();
        view.transcript(session, options.transcript(), &mut |entry| {
            self.entry(session, &entry, links, &mut speaker)
        })
    }

    fn entry(
        &mut self,
        session: &SessionView,
        entry: &Entry,
        links: &mut Links<'_>,
        speaker: &mut String,
    ) -> Result<()> {
        let who = match entry.kind {
            "prompt" => "User",
            "answer" | "thinking" | "call" => "Assistant",
            "injected" => "Context",
            "summary" => "Summary",
            "agent" => "Agent",
            "command" => "Command",
            "result" => "Result",
            "unsent" => "Not sent",
            _ => "Notice",
        };
        self.line(&format!("<a id=\"m-{}\"></a>\n", entry.id))?;
        // Steps of one speaker follow each other under one heading.
        if *speaker != who || entry.kind == "prompt" {
            let at = entry.at.as_deref().map(|at| format!(" · {}", moment(at))).unwrap_or_default();
            let copied = if entry.copied { " (copied)" } else { "" };
            self.line(&format!("## {who}{at}{copied}\n"))?;
            *speaker = who.to_owned();
        }
        let mut pictures = 0;
        for block in &entry.blocks {
            if let BlockView::Image { media_type, bytes, path } = block {
                self.picture(
                    session,
                    entry,
                    (media_type, *bytes),
                    path.as_ref().map(|path| path.as_str()),
                    pictures,
                    links,
                )?;
                pictures += 1;
                continue;
            }
            self.block(entry, block, links)?;
        }
        self.arrangement(entry.arrangement.as_ref())
    }

    /// What the person said about a step.
    fn arrangement(&mut self, arranged: Option<&ArrangementView>) -> Result<()> {
        let Some(arranged) = arranged else { return Ok(()) };
        let mut marks = Vec::new();
        if arranged.starred {
            marks.push("\u{2605}".to_owned());
        }
        marks.extend(arranged.name.as_ref().map(|name| format!("**{}**", one_line(name.as_str()))));
        marks.extend(arranged.tags.iter().map(|tag| code(&format!("#{tag}"))));
        if !marks.is_empty() {
            self.line(&format!("{}\n", marks.join(" ")))?;
        }
        self.note(arranged.note.as_ref())
    }

    fn note(&mut self, note: Option<&annals_core::Shown>) -> Result<()> {
        let Some(note) = note else { return Ok(()) };
        self.line("**Note**\n")?;
        self.quote(note.as_str())
    }

    fn block(&mut self, entry: &Entry, block: &BlockView, links: &Links<'_>) -> Result<()> {
        match block {
            BlockView::Text { text, .. } if text.as_str().trim().is_empty() => Ok(()),
            BlockView::Text { text, .. } => match entry.kind {
                "prompt" | "unsent" => self.quote(text.as_str()),
                "answer" | "summary" | "agent" => self.line(&format!("{}\n", closed(text.as_str()))),
                kind => self.folded(
                    &format!("{}: {}", label(kind), first_line(text.as_str())),
                    &fenced("text", text.as_str()),
                ),
            },
            BlockView::Thinking { text, .. } => self.folded("Thinking", &closed(text.as_str())),
            BlockView::Image { .. } => Ok(()),
            BlockView::Attachment { name } => self.line(&format!("**Attachment** {}\n", code(name.as_str()))),
            BlockView::Event { name, text } => {
                self.line(&format!("*{}*\n", escaped(one_line(&format!("{name} {text}")).trim())))
            }
            BlockView::ToolCall { name, kind, title, input, files, changes, agent_session_id, .. } => {
                let label = if *kind == "shell" { "Command" } else { "Tool" };
                let name = if *kind == "shell" { String::new() } else { format!(" {}", code(name)) };
                let has_title =
                    !title.as_str().trim().is_empty() && *kind != "shell" && !title.as_str().starts_with('{');
                let about = if has_title { format!(" {}", code(title.as_str())) } else { String::new() };
                self.line(&format!("**{label}**{name}{about}\n"))?;
                self.call(kind, title.as_str(), input.value(), files, changes)?;
                if let Some(agent) = agent_session_id {
                    let agent = link(&format!("sub-agent {agent}"), (links.session)(agent));
                    self.line(&format!("Started {agent}\n"))?;
                }
                Ok(())
            }
            BlockView::ToolResult { ok, exit_code, duration_ms, output, .. } => {
                let mut end = Vec::new();
                end.extend(exit_code.map(|code| format!("exit {code}")));
                if exit_code.is_none() && *ok == Some(false) {
                    end.push("failed".to_owned());
                }
                end.extend(duration_ms.map(format::milliseconds));
                let end = if end.is_empty() { String::new() } else { format!(" ({})", end.join(", ")) };
                let output = output.as_str();
                match output.lines().count() {
                    _ if output.trim().is_empty() => self.line(&format!("**Result**{end}: no output\n")),
                    lines if lines > OPEN_LINES => self.folded(
                        &format!("Result{end}: {}", counted(lines as i64, "line")),
                        &fenced("text", output),
                    ),
                    _ => self.line(&format!("**Result**{end}\n\n{}\n", fenced("text", output))),
                }
            }
        }
    }

    fn call(
        &mut self,
        kind: &str,
        title: &str,
        input: &Value,
        files: &[FileView],
        changes: &[ChangeView],
    ) -> Result<()> {
        for change in changes {
            let operation = change.operation.replace('_', " ");
            self.line(&format!("**Edit** {} ({operation})\n", code(change.path.as_str())))?;
            self.line(&format!("{}\n", fenced("diff", change.diff.as_str())))?;
        }
        if changes.is_empty() {
            self.input(kind, title, input)?;
        }
        let others = files.iter().filter(|file| !changes.iter().any(|change| is_same_file(file, change)));
        let mut list = String::new();
        for file in others {
            let lines = file.after.or(file.before);
            let lines = lines.map(|[start, end]| format!(", lines {start}–{end}")).unwrap_or_default();
            list.push_str(&format!(
                "- {} {}{lines}\n",
                file.operation.replace('_', " "),
                code(file.path.as_str())
            ));
        }
        if !list.is_empty() {
            self.line(&list)?;
        }
        Ok(())
    }

    fn input(&mut self, kind: &str, title: &str, input: &Value) -> Result<()> {
        match input {
            Value::Object(fields) if kind == "shell" => {
                let command = ["command", "cmd"].iter().find_map(|name| match fields.get(*name)? {
                    Value::String(command) => Some(command.as_str()),
                    Value::Array(_) => Some(title),
                    _ => None,
                });
                match command {
                    Some(command) => self.line(&format!("{}\n", fenced("sh", command))),
                    None => self.fields(fields),
                }
            }
            Value::Object(fields) => self.fields(fields),
            Value::String(text) => self.line(&format!("{}\n", fenced("text", text))),
            Value::Null => Ok(()),
            other => self.line(&format!("{}\n", fenced("json", &serde_json::to_string_pretty(other)?))),
        }
    }

    /// Long texts are shown as they are, the rest as JSON.
    fn fields(&mut self, fields: &Map<String, Value>) -> Result<()> {
        let is_long = |value: &Value| value.as_str().is_some_and(|text| text.contains('\n'));
        let short: Map<String, Value> = fields
            .iter()
            .filter(|(_, value)| !is_long(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !short.is_empty() {
            self.line(&format!("{}\n", fenced("json", &serde_json::to_string_pretty(&short)?)))?;
        }
        for (name, text) in fields.iter().filter(|(_, value)| is_long(value)) {
            let text = text.as_str().unwrap_or_default();
            self.line(&format!("{}:\n\n{}\n", code(name), fenced("text", text)))?;
        }
        Ok(())
    }

    fn picture(
        &mut self,
        session: &SessionView,
        entry: &Entry,
        (media_type, bytes): (&str, u64),
        path: Option<&str>,
        number: usize,
        links: &mut Links<'_>,
    ) -> Result<()> {
        let mut about = format!("image, {media_type}");
        if bytes > 0 {
            about.push_str(&format!(", {}", size(bytes)));
        }
        let found = self.view.picture(session, &entry.id, number)?;
        let address = match found {
            Some(picture) => (links.picture)(&entry.id, number, picture)?,
            None => None,
        };
        match address {
            Some(address) => self.line(&format!("![{about}]({address})\n")),
            None => {
                let path = path.map(|path| format!(" {}", code(path))).unwrap_or_default();
                self.line(&format!("*({about}){path}*\n"))
            }
        }
    }

    fn quote(&mut self, text: &str) -> Result<()> {
        let quoted: String =
            text.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned() + "\n").collect();
        self.line(&quoted)
    }

    fn folded(&mut self, summary: &str, markdown: &str) -> Result<()> {
        // What is folded must not end the fold.
        let inner = markdown.replace("</details", "&lt;/details").replace("</DETAILS", "&lt;/DETAILS");
        let summary = escaped_html(&one_line(summary));
        self.line(&format!("<details><summary>{summary}</summary>\n\n{inner}\n\n</details>\n"))
    }

    fn line(&mut self, text: &str) -> Result<()> {
        self.out.write_all(visible(text).as_bytes())?;
        self.out.write_all(b"\n")?;
        Ok(())
    }
}

/// Edits may name a file by a relative path.
fn is_same_file(file: &FileView, change: &ChangeView) -> bool {
    let (touched, changed) = (file.path.as_str(), change.path.as_str());
    touched == changed || touched.strip_suffix(changed).is_some_and(|folder| folder.ends_with('/'))
}

fn label(kind: &str) -> &str {
    match kind {
        "injected" => "Context",
        "command" => "Command",
        "result" => "Result",
        _ => "Text",
    }
}

/// `2026-11-15 07:28:43 UTC`
fn moment(at: &str) -> String {
    format!("{} UTC", at.get(..19).unwrap_or(at).replace('T', " "))
}

fn link(text: &str, address: Option<String>) -> String {
    match address {
        Some(address) => format!("[{}]({address})", escaped(text)),
        None => code(text),
    }
}

/// Code in a line of text, with a fence longer than any inside.
fn code(text: &str) -> String {
    let text = one_line(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let room = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { String::new() } else { format!("{fence}{room}{text}{room}{fence}") }
}

/// A code block, with a fence longer than any inside.
fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat((longest_run(text) + 1).max(3));
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Markdown that ends the code block it may have left open.
fn closed(text: &str) -> String {
    let mut open: Option<(u8, usize)> = None;
    for line in text.lines() {
        let inner = line.trim_start_matches([' ', '>']);
        let Some(mark) = inner.bytes().next().filter(|byte| matches!(byte, b'`' | b'~')) else { continue };
        let run = inner.bytes().take_while(|byte| *byte == mark).count();
        let rest = inner.get(run..).unwrap_or_default();
        match open {
            None if run >= 3 && !(mark == b'`' && rest.contains('`')) => open = Some((mark, run)),
            Some((opened, length)) if mark == opened && run >= length && rest.trim().is_empty() => {
                open = None
            }
            _ => {}
        }
    }
    match open {
        Some((mark, length)) => {
            format!("{}\n{}", text.trim_end(), char::from(mark).to_string().repeat(length))
        }
        None => text.trim_end().to_owned(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let short: String = line.chars().take(80).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}

/// Text that must not become markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

fn escaped_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Makes control characters visible, as every output does.
fn visible(text: &str) -> std::borrow::Cow<'_, str> {
    let control = |letter: char| is_hidden(letter) && letter != '\n' && letter != '\t';
    if !text.contains(control) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\r' => {}
            letter if control(letter) => match u32::from(letter) {
                code @ 0..0x20 => out.push(char::from_u32(0x2400 + code).unwrap_or('\u{fffd}')),
                0x7f => out.push('\u{2421}'),
                code => out.push_str(&format!("⟨U+{code:04X}⟩")),
            },
            letter => out.push(letter),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::{closed, code, fenced};

    #[test]
    fn fences_are_longer_than_any_inside() {
        assert_eq!(fenced("text", "a\n```sh\nb\n```\n"), "````text\na\n```sh\nb\n```\n````");
        assert_eq!(fenced("", "plain"), "```\nplain\n```");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`b`"), "`` `b` ``");
    }

    #[test]
    fn an_open_code_block_is_closed() {
        assert_eq!(closed("x\n```rust\nfn f() {}"), "x\n```rust\nfn f() {}\n```");
        assert_eq!(closed("````\n```\n````\n"), "````\n```\n````");
        assert_eq!(closed("~~~\n```\n"), "~~~\n```\n~~~");
        assert_eq!(closed("a ```inline``` b\n```inline```"), "a ```inline``` b\n```inline```");
    }
}
