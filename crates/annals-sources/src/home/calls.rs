//! Tool calls as most clients write them: calls that wait for their results, titles, and the files they touched.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::title::in_a_line;
use crate::json::Json;
use annals_core::{FileWork, Item, Operation, Touch};

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
}

#[derive(Default, Serialize, Deserialize)]
pub struct OpenCalls(VecDeque<OpenCall>);

impl OpenCalls {
    /// `path` is the field of the arguments that is kept if they are long.
    pub fn push(&mut self, id: String, offset: u64, name: String, arguments: Option<Json<'_>>, path: &str) {
        let short = arguments.filter(|arguments| arguments.bytes().len() <= ARGUMENTS);
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
        self.0.push_back(OpenCall { id, offset, name, arguments, duration_ms: None });
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
    otherwise: Option<(String, Operation)>,
    out: &mut Vec<Item>,
) {
    let touch = |path: String, operation: Operation, before, after| {
        Item::Touch(Touch { session: session.clone(), call, path, operation, before, after })
    };
    if work.is_empty() {
        out.extend(otherwise.map(|(path, operation)| touch(path, operation, None, None)));
    }
    for work in work {
        out.push(touch(work.path, work.operation, work.before.range, work.after.range));
    }
}

#[cfg(test)]
mod tests {
    use super::OpenCalls;
    use crate::json::Json;

    #[test]
    fn of_long_arguments_only_the_path_waits_for_the_result() {
        let mut calls = OpenCalls::default();
        let long = format!(r#"{{"content":"{}","path":"a.txt"}}"#, "x".repeat(30_000));
        calls.push("1".into(), 0, "write".into(), Json::parse(long.as_bytes()), "path");
        calls.push("2".into(), 9, "read".into(), Json::parse(br#"{"path":"b","limit":1}"#), "path");
        assert_eq!(calls.take("1").expect("open").arguments, r#"{"path":"a.txt"}"#);
        assert_eq!(calls.take("2").expect("open").arguments, r#"{"path":"b","limit":1}"#);
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
