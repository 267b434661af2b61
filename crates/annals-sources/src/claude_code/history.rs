//! `history.jsonl`: every prompt typed, in all projects. It outlives transcripts.

use crate::home::history::{HistoryEntry, HistoryReader};
use crate::json::Object;
use annals_core::{ContentKey, Time};

pub fn reader() -> HistoryReader {
    HistoryReader { entry }
}

fn entry(line: &Object<'_>) -> Result<HistoryEntry, &'static str> {
    let millis = line.get_integer("timestamp").ok_or("timestamp")?;
    Ok(HistoryEntry {
        key: format!("{millis}:{}", ContentKey::of(&[line.bytes()]).hex()),
        at: Time::from_millis(millis),
        session: line.get_text("sessionId").map(|session| session.as_ref().into()),
        project: line.get_text("project").map(Into::into),
        text: text(line).unwrap_or_default(),
    })
}

/// What was typed, with short pastes in place of their marks; long ones are in separate files.
pub fn text(line: &Object<'_>) -> Option<String> {
    line.get_integer("timestamp")?;
    let mut text = line.get_text("display")?.into_owned();
    let pastes = line.get("pastedContents");
    for (number, paste) in pastes.iter().flat_map(|pastes| pastes.fields()) {
        let Some(content) = paste.get_text("content") else { continue };
        let mark = format!("[Pasted text #{}", String::from_utf8_lossy(number));
        if let Some((start, end)) = find_mark(&text, &mark) {
            text.replace_range(start..end, &content);
        }
    }
    Some(text)
}

/// `[Pasted text #1 +60 lines]`, and `[Pasted text #1]` for a single line.
fn find_mark(text: &str, mark: &str) -> Option<(usize, usize)> {
    let ends_number = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
    let (start, _) = text.match_indices(mark).find(|(at, _)| ends_number(&text[at + mark.len()..]))?;
    let end = start + text[start..].find(']')? + 1;
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::json::Json;

    #[test]
    fn pastes_are_put_back() {
        let line = r#"{"display":"a [Pasted text #1 +2 lines] b [Pasted text #10] c","timestamp":5,"pastedContents":{
            "10":{"id":10,"type":"text","content":"ten"},"1":{"id":1,"type":"text","content":"one\ntwo"},
            "2":{"id":2,"type":"text","contentHash":"ab"}}}"#;
        let line = Json::parse(line.as_bytes()).unwrap().object();
        assert_eq!(text(&line).as_deref(), Some("a one\ntwo b ten c"));
    }
}
