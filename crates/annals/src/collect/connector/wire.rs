//! The messages between annals and an outside connector, as `docs/protocol.md` describes them.

use serde::Deserialize;
use serde_json::{Value, json};

use annals_core::{FailureKind, Time};
use annals_store::DueGap;

/// Raised when connectors have to know about a change.
pub const VERSION: u32 = 1;
/// Longer lines are not read.
pub const LONGEST_LINE: usize = 16 << 20;
const LONGEST_NAME: usize = 64;
const LONGEST_KEY: usize = 1_000;
const LONGEST_LOCATOR: usize = 16 << 10;

/// A message from a connector.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum WireMessage {
    Schema { stream: String, schema: serde_json::Map<String, Value> },
    Record(Record),
    RecordError { stream: String, key: String, message: String },
    State { stream: String, cursor: Value, records: Option<u64> },
    DetailGap(Gap),
    DetailGapRecovered { stream: String, key: String },
    DetailCoverage(DetailCoverage),
    SkipResult { stream: String, reason: String, count: Option<u64> },
    Progress { message: String, count: Option<u64>, total: Option<u64> },
    Estimate { seconds_left: u64 },
    Interaction(Interaction),
    Done(Done),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Record {
    pub stream: String,
    pub key: String,
    pub emitted_at: String,
    #[serde(default)]
    pub op: RecordOperation,
    pub data: Option<serde_json::Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordOperation {
    #[default]
    Upsert,
    Delete,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Gap {
    pub stream: String,
    pub key: String,
    /// A failure kind of the retry policy.
    pub reason: Option<String>,
    /// The HTTP status, which determines the failure kind if `reason` does not.
    pub http_status: Option<u16>,
    pub message: Option<String>,
    pub locator: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DetailCoverage {
    pub stream: String,
    pub considered: u64,
    pub records: u64,
    pub gaps: u64,
    pub skipped: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Interaction {
    pub request_id: String,
    pub kind: InteractionKind,
    pub message: String,
    pub link: Option<String>,
}

/// Only the first can be answered: annals takes no passwords for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InteractionKind {
    ManualAction,
    Credentials,
    Otp,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Done {
    pub status: DoneStatus,
    pub records_emitted: u64,
    pub error: Option<DoneError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneStatus {
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DoneError {
    pub message: String,
}

/// Why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// Not a JSON object with a `type`.
    Garbage,
    /// A type that this version does not know.
    UnknownKind(String),
    /// A known type with invalid content: the two sides do not agree on the protocol.
    Wrong(String),
}

const KINDS: [&str; 12] = [
    "SCHEMA",
    "RECORD",
    "RECORD_ERROR",
    "STATE",
    "DETAIL_GAP",
    "DETAIL_GAP_RECOVERED",
    "DETAIL_COVERAGE",
    "SKIP_RESULT",
    "PROGRESS",
    "ESTIMATE",
    "INTERACTION",
    "DONE",
];

pub fn read(line: &[u8]) -> Result<WireMessage, Unread> {
    let value: Value = serde_json::from_slice(line).map_err(|_| Unread::Garbage)?;
    let kind = value.get("type").and_then(Value::as_str).ok_or(Unread::Garbage)?.to_owned();
    if !KINDS.contains(&kind.as_str()) {
        return Err(Unread::UnknownKind(kind));
    }
    let message =
        WireMessage::deserialize(value).map_err(|error| Unread::Wrong(format!("{kind}: {error}")))?;
    match wrong_part(&message) {
        Some(wrong) => Err(Unread::Wrong(format!("{kind}: {wrong}"))),
        None => Ok(message),
    }
}

/// Checks what the types cannot express.
fn wrong_part(message: &WireMessage) -> Option<&'static str> {
    let (stream, key, wrong) = match message {
        WireMessage::Schema { stream, .. }
        | WireMessage::State { stream, .. }
        | WireMessage::SkipResult { stream, .. } => (stream, None, None),
        WireMessage::Record(record) => (&record.stream, Some(&record.key), record.wrong_part()),
        WireMessage::RecordError { stream, key, .. } | WireMessage::DetailGapRecovered { stream, key } => {
            (stream, Some(key), None)
        }
        WireMessage::DetailGap(gap) => (&gap.stream, Some(&gap.key), gap.wrong_part()),
        WireMessage::DetailCoverage(coverage) => (&coverage.stream, None, None),
        WireMessage::Progress { .. }
        | WireMessage::Estimate { .. }
        | WireMessage::Interaction(_)
        | WireMessage::Done(_) => {
            return None;
        }
    };
    if !is_name(stream) {
        return Some("`stream` must consist of letters, digits, `_` and `-`");
    }
    if key.is_some_and(|key| key.is_empty() || key.len() > LONGEST_KEY) {
        return Some("`key` must have 1 to 1,000 bytes");
    }
    wrong
}

/// Whether this is a valid name of a connector or a stream: names are part of paths and keys.
pub fn is_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain)
}

impl Record {
    fn wrong_part(&self) -> Option<&'static str> {
        if Time::parse(&self.emitted_at).is_none() {
            return Some("`emitted_at` must be an RFC 3339 time");
        }
        (self.op == RecordOperation::Upsert && self.data.is_none()).then_some("`data` is missing")
    }
}

impl Gap {
    fn wrong_part(&self) -> Option<&'static str> {
        if self.reason.is_none() && self.http_status.is_none() {
            return Some("`reason` or `http_status` is required");
        }
        if self.reason.as_ref().is_some_and(|why| FailureKind::from_name(why).is_none()) {
            return Some("`reason` is not a reason of the retry policy");
        }
        let long = self.locator.as_ref().is_some_and(|locator| locator.to_string().len() > LONGEST_LOCATOR);
        long.then_some("`locator` is longer than 16 KiB")
    }

    pub fn why(&self) -> FailureKind {
        let reason = self.reason.as_deref().and_then(FailureKind::from_name);
        reason.or(self.http_status.map(FailureKind::of_status)).unwrap_or(FailureKind::Failed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// From the state on.
    Incremental,
    /// As if there were no state; none is sent.
    FullRefresh,
    /// Only the gaps.
    GapsOnly,
}

/// The first line sent to a connector.
pub fn start(run: i64, mode: RunMode, state: &[(String, String)], gaps: &[DueGap]) -> String {
    let cursor = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let state: serde_json::Map<String, Value> = match mode {
        RunMode::FullRefresh => serde_json::Map::new(),
        RunMode::Incremental | RunMode::GapsOnly => {
            state.iter().map(|(stream, text)| (stream.clone(), cursor(text))).collect()
        }
    };
    let gaps: Vec<Value> = gaps
        .iter()
        .map(|gap| {
            json!({
                "stream": gap.stream,
                "key": gap.key,
                "reason": gap.why.name(),
                "attempts": gap.attempts,
                "locator": cursor(&gap.locator),
            })
        })
        .collect();
    let mode = match mode {
        RunMode::Incremental => "incremental",
        RunMode::FullRefresh => "full_refresh",
        RunMode::GapsOnly => "gaps_only",
    };
    json!({
        "type": "START",
        "protocol_version": VERSION,
        "run_id": run.to_string(),
        "mode": mode,
        "state": state,
        "gaps": gaps,
    })
    .to_string()
}

pub fn interaction_response(request_id: &str, status: &str) -> String {
    json!({"type": "INTERACTION_RESPONSE", "request_id": request_id, "status": status}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation that people write connectors by.
    const PAGE: &str = include_str!("../../../../../docs/protocol.md");

    #[test]
    fn every_example_of_the_page_is_a_message() {
        let mut seen = Vec::new();
        for line in PAGE.lines().filter_map(|line| line.strip_prefix("← ")) {
            let message = read(line.as_bytes());
            assert!(message.is_ok(), "{line}: {message:?}");
            let value: Value = serde_json::from_str(line).unwrap();
            seen.push(value["type"].as_str().unwrap().to_owned());
        }
        for kind in KINDS {
            assert!(seen.iter().any(|seen| seen == kind), "docs/protocol.md has no example of {kind}");
        }
        let sent = PAGE.lines().filter_map(|line| line.strip_prefix("→ "));
        let sent: Vec<Value> = sent.map(|line| serde_json::from_str(line).unwrap()).collect();
        let gap = DueGap {
            id: 1,
            stream: "notes".into(),
            key: "n7".into(),
            locator: r#"{"page":7}"#.into(),
            why: FailureKind::RateLimited,
            attempts: 2,
        };
        let state = [("notes".to_owned(), r#"{"seen":41}"#.to_owned())];
        let start: Value = serde_json::from_str(&start(12, RunMode::Incremental, &state, &[gap])).unwrap();
        assert!(sent.contains(&start), "{start}");
        let response: Value = serde_json::from_str(&interaction_response("r1", "success")).unwrap();
        assert!(sent.contains(&response), "{response}");
        for why in <FailureKind as strum::VariantArray>::VARIANTS.iter().copied() {
            assert!(PAGE.contains(&format!("`{}`", why.name())), "docs/protocol.md does not say {why:?}");
        }
    }

    #[test]
    fn lines_that_are_no_messages() {
        let table = [
            ("", Unread::Garbage),
            ("hello", Unread::Garbage),
            ("[1]", Unread::Garbage),
            (r#"{"type":7}"#, Unread::Garbage),
            (r#"{"type":"RECORD""#, Unread::Garbage),
            (r#"{"type":"HELLO"}"#, Unread::UnknownKind("HELLO".into())),
        ];
        for (line, unread) in table {
            assert_eq!(read(line.as_bytes()), Err(unread), "{line}");
        }
        let wrong = [
            r#"{"type":"RECORD","stream":"notes"}"#,
            r#"{"type":"RECORD","stream":"a/b","key":"1","emitted_at":"2026-11-15T10:00:00Z","data":{}}"#,
            r#"{"type":"RECORD","stream":"notes","key":"","emitted_at":"2026-11-15T10:00:00Z","data":{}}"#,
            r#"{"type":"RECORD","stream":"notes","key":"1","emitted_at":"today","data":{}}"#,
            r#"{"type":"RECORD","stream":"notes","key":"1","emitted_at":"2026-11-15T10:00:00Z"}"#,
            r#"{"type":"RECORD","stream":"notes","key":"1","emitted_at":"2026-11-15T10:00:00Z","data":[1]}"#,
            r#"{"type":"STATE","stream":"notes"}"#,
            r#"{"type":"DETAIL_GAP","stream":"notes","key":"1"}"#,
            r#"{"type":"DETAIL_GAP","stream":"notes","key":"1","reason":"bored"}"#,
            r#"{"type":"DONE","status":"great","records_emitted":1}"#,
            r#"{"type":"DONE","status":"succeeded","records_emitted":-1}"#,
        ];
        for line in wrong {
            assert!(matches!(read(line.as_bytes()), Err(Unread::Wrong(_))), "{line}");
        }
    }
}
