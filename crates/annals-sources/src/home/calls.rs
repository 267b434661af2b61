//! Tool calls as most clients write them: calls that wait for their results, titles, and the files they touched.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::title::in_a_line;
use crate::json::Json;
use annals_core::{FileWork, Item, Operation, Range, Touch};

/// How many calls may wait for a result.
const OPEN_CALLS: usize = 512;
/// Longer arguments are not kept for the result, only the path in them.
const ARGUMENTS: usize = 20_000;
/// How much of arguments without a telling word is shown.
const START: usize = 400;

/// A call whose result is to come.
#[derive(Serialize, Deserialize)]
pub struct OpenCall {
    pub id: String,
    pub offset: u64,
    pub name: String,
    /// What the result needs of them.
    pub arguments: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duration_ms: Option<i64>,
    /// Lines of the whole file that the call writes, if its arguments are too long to be kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    lines: Option<u32>,
}

impl OpenCall {
    /// The file that the call touched, if no more is known of its work.
    pub fn touched(&self, path: String, operation: Operation) -> OtherwiseTouched {
        let lines = self.lines.filter(|_| operation != Operation::Read);
        OtherwiseTouched { path, operation, after: lines.map(|end| Range { start: 1, end }) }
    }
}

/// A file that a call touched, and the lines that it wrote if they are known.
pub struct OtherwiseTouched {
    pub path: String,
    pub operation: Operation,
    pub after: Option<Range>,
}

/// The number of lines of a file that these arguments write as a whole.
fn written_lines(arguments: Json<'_>) -> Option<u32> {
    let is_part = ["old_text", "insert_line"].iter().any(|name| arguments.get(name).is_some());
    let text = arguments.get("content").or_else(|| arguments.get("new_text").filter(|_| !is_part));
    let count = text.and_then(Json::text)?.lines().count();
    u32::try_from(count).ok().filter(|count| *count > 0)
}

#[derive(Default, Serialize, Deserialize)]
pub struct OpenCalls(VecDeque<OpenCall>);

impl OpenCalls {
    /// `path` is the field of the arguments that is kept if they are long.
    pub fn push(&mut self, id: String, offset: u64, name: String, arguments: Option<Json<'_>>, path: &str) {
        let short = arguments.filter(|arguments| arguments.bytes().len() <= ARGUMENTS);
        let lines = arguments.filter(|_| short.is_none()).and_then(written_lines);
        let arguments = match (short, arguments.and_then(|arguments| arguments.get(path))) {
            (Some(arguments), _) => String::from_utf8_lossy(arguments.bytes()).into_owned(),
            (None, Some(value)) if value.bytes().len() <= ARGUMENTS => {
                format!("{{\"{path}\":{}}}", String::from_utf8_lossy(value.bytes()))
            }
            (None, _) => "{}".to_owned(),
        };
        if self.0.len() >= OPEN_CALLS {
            self.0.pop_front();
        }
        self.0.push_back(OpenCall { id, offset, name, arguments, duration_ms: None, lines });
    }

    pub fn find(&mut self, id: &str) -> Option<&mut OpenCall> {
        self.0.iter_mut().rfind(|call| call.id == id)
    }

    /// The call that a result answers.
    pub fn take(&mut self, id: &str) -> Option<OpenCall> {
        let at = self.0.iter().rposition(|call| call.id == id)?;
        self.0.remove(at)
    }
}

/// The word of the arguments that says most: the first of these fields that is text.
pub fn title_of_call(arguments: Json<'_>, names: &[&str]) -> String {
    let word = names.iter().find_map(|name| arguments.get(name).filter(|value| value.is_string()));
    match word {
        Some(word) => in_a_line(&word.head(2_000)),
        None => {
            let bytes = arguments.bytes();
            in_a_line(&String::from_utf8_lossy(&bytes[..bytes.len().min(START)]))
        }
    }
}

/// The files that a successful call touched; `otherwise` if its work is not known in detail.
pub fn touches(
    session: &Arc<str>,
    call: u64,
    work: Vec<FileWork>,
    otherwise: Option<OtherwiseTouched>,
    out: &mut Vec<Item>,
) {
    let touch = |path: String, operation: Operation, before, after| {
        Item::Touch(Touch { session: session.clone(), call, path, operation, before, after })
    };
    if work.is_empty() {
        out.extend(otherwise.map(|known| touch(known.path, known.operation, None, known.after)));
    }
    for work in work {
        out.push(touch(work.path, work.operation, work.before.range, work.after.range));
    }
}

#[cfg(test)]
mod tests {
    use super::OpenCalls;
    use crate::json::Json;
    use annals_core::{Operation, Range};

    #[test]
    fn of_long_arguments_only_the_path_waits_for_the_result() {
        let mut calls = OpenCalls::default();
        let long = format!(r#"{{"content":"{}","path":"a.txt"}}"#, "x\\n".repeat(10_000));
        calls.push("1".into(), 0, "write".into(), Json::parse(long.as_bytes()), "path");
        calls.push("2".into(), 9, "read".into(), Json::parse(br#"{"path":"b","limit":1}"#), "path");
        let write = calls.take("1").expect("open");
        assert_eq!(write.arguments, r#"{"path":"a.txt"}"#);
        let whole = Range { start: 1, end: 10_000 };
        assert_eq!(write.touched("a.txt".into(), Operation::Update).after, Some(whole));
        let read = calls.take("2").expect("open");
        assert_eq!(read.arguments, r#"{"path":"b","limit":1}"#);
        assert_eq!(read.touched("b".into(), Operation::Read).after, None);
        assert!(calls.take("2").is_none());
    }

    #[test]
    fn few_calls_wait() {
        let mut calls = OpenCalls::default();
        for number in 0..600_u64 {
            calls.push(number.to_string(), number, String::new(), None, "path");
        }
        assert!(calls.take("0").is_none());
        assert!(calls.find("599").is_some());
    }
}
