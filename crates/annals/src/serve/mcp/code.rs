//! The tools about files: which session wrote each line, and every edit of a file.

use serde_json::json;

use super::arguments::{BlameArguments, FileArguments, OutputArguments, parse};
use super::sessions::SCHEME;
use super::text::{Answer, Position, item, one_line, quote};
use super::tools::Call;
use crate::view::format::{counted, minute};
use crate::view::{FileEdit, FoundFile, LineageQuery, Origin, Paging, UnseenFile};
use annals_core::{Error, Result, Shown, in_address};

/// Edits read per page.
const PAGE: i64 = 20;
/// Bytes of the text that an edit replaced, and of what it wrote.
const EDIT: usize = 900;

/// Paths to look for: below the caller's folder first, then as it was given.
fn paths(folder: Option<&str>, file: &str) -> Vec<String> {
    let file = file.trim().trim_start_matches("./");
    let below = folder.filter(|_| !file.starts_with('/'));
    let below = below.map(|folder| format!("{}/{file}", folder.trim_end_matches('/')));
    below.into_iter().chain([file.to_owned()]).collect()
}

fn not_found(file: &str) -> Error {
    Error::bad_request(format!("no session worked on {:?}", one_line(file, 120)))
        .hint("use the path as sessions named it; search_history with file:NAME finds sessions; only the owner may ask")
}

impl Call<'_> {
    pub fn blame(self) -> Result<String> {
        let (arguments, output): (BlameArguments, _) = parse(self.arguments)?;
        let start = Position::parse(output.cursor.as_deref())?;
        for path in paths(self.folder, &arguments.file) {
            let query = LineageQuery { file: path, start: arguments.start, end: arguments.end };
            match self.view.lineage(&query)? {
                Some(FoundFile::Known(lineage, lines)) => {
                    return blame_text(&lineage, &lines, &output, &start);
                }
                Some(FoundFile::Unseen(unseen)) => return unseen_text(&unseen, &output, &start),
                None => {}
            }
        }
        Err(not_found(&arguments.file))
    }

    pub fn file_history(self) -> Result<String> {
        let (arguments, output): (FileArguments, _) = parse(self.arguments)?;
        let start = Position::parse(output.cursor.as_deref())?;
        let page = Paging { limit: PAGE, cursor: start.page.clone() };
        for path in paths(self.folder, &arguments.file) {
            let Some(history) = self.view.file_history(&path, &page)? else { continue };
            let about = json!({"file": history.file, "touches": history.touches, "others": history.others});
            let mut answer = Answer::new(format!("Edits of {}", history.file), about);
            answer.facts.push(format!(
                "Sessions read or changed it {}; edits, the latest first:",
                counted(history.touches as i64, "time")
            ));
            answer.empty = "Sessions only read it.".to_owned();
            for (number, edit) in history.edits.iter().enumerate().skip(start.skipped) {
                answer.items.push(item(edit_text(edit), edit, Position::new(start.page.clone(), number))?);
            }
            answer.next = history.next_cursor.map(|cursor| Position::new(Some(cursor), 0));
            return answer.write(&output, &start);
        }
        Err(not_found(&arguments.file))
    }
}

fn blame_text(
    lineage: &crate::view::Lineage,
    lines: &[Shown],
    output: &OutputArguments,
    start: &Position,
) -> Result<String> {
    let blame = &lineage.blame;
    let about = json!({"file": blame.file, "lines": blame.lines, "seen_at": lineage.seen_at,
        "complete": lineage.complete, "others": lineage.others});
    let mut answer = Answer::new(format!("Who wrote {}", blame.file), about);
    let seen = lineage.seen_at.as_deref().map(minute).unwrap_or_default();
    answer.facts.push(format!("Lines as sessions last saw the file ({seen}); it may have changed since."));
    answer.empty = "No lines in this range.".to_owned();
    for (number, span) in blame.spans.iter().enumerate().skip(start.skipped) {
        let origin = span.origin.and_then(|origin| blame.origins.get(origin));
        let first = lines.get(span.start.saturating_sub(1)).map(|line| line.as_str()).unwrap_or_default();
        let mut text = format!("## Lines {}-{} · {}\n", span.start, span.end, span.grade);
        text.push_str(&quote(&one_line(first, 120), 200));
        text.push_str(
            &origin.map_or_else(|| "no session is known to have written them\n".to_owned(), origin_text),
        );
        let json = json!({"span": span, "origin": origin, "first_line": first});
        answer.items.push(item(text, &json, Position::new(None, number))?);
    }
    answer.write(output, start)
}

fn unseen_text(unseen: &UnseenFile, output: &OutputArguments, start: &Position) -> Result<String> {
    let about = json!({"file": unseen.file, "edit_count": unseen.edit_count, "others": unseen.others});
    let mut answer = Answer::new(format!("Edits of {}", unseen.file), about);
    answer
        .facts
        .push(format!("Its lines are not known: {}. Its last edits, in order of time:", unseen.reason()));
    for (number, edit) in unseen.edits.iter().enumerate().skip(start.skipped) {
        answer.items.push(item(edit_text(edit), edit, Position::new(None, number))?);
    }
    answer.write(output, start)
}

fn origin_text(origin: &Origin) -> String {
    let title = origin.heading().map_or("(no title)", |title| title.as_str());
    let when = origin.at.as_deref().map(minute).unwrap_or_default();
    let model =
        origin.model.as_deref().map(|model| format!(" · {}", one_line(model, 60))).unwrap_or_default();
    let mut text = format!(
        "{} · {} · {when}{model} · {}\n{SCHEME}{}#{}\n",
        one_line(title, 160),
        origin.provider_label,
        one_line(&origin.tool, 60),
        in_address(&origin.session_id),
        origin.message_id
    );
    if let Some(prompt) = &origin.prompt {
        text.push_str(&format!("prompt:\n{}", quote(prompt.as_str(), 400)));
    }
    text
}

fn edit_text(edit: &FileEdit) -> String {
    let line = edit.start.map(|start| format!(" at line {start}")).unwrap_or_default();
    let mut text = format!("## {}{line}\n{}", edit.operation, origin_text(&edit.origin));
    for (what, part) in [("before", &edit.before), ("after", &edit.after)] {
        if let Some(part) = part.as_ref().filter(|part| !part.as_str().is_empty()) {
            text.push_str(&format!("{what}:\n{}", quote(part.as_str(), EDIT)));
        }
    }
    text
}
