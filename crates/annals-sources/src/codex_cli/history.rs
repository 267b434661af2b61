//! What was typed, when, in which thread: `history.jsonl`, and `history.json` of the first client. It outlives transcripts.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::home::history::{HistoryEntry, HistoryReader};
use crate::json::{Json, Object};
use annals_core::{ContentKey, Time};

pub fn reader() -> HistoryReader {
    HistoryReader { entry }
}

/// One list of everything, without threads.
pub fn list_reader() -> HistoryReader {
    HistoryReader { entry: list_entry }
}

/// What an entry of either file says.
pub fn text<'j>(line: &Object<'j>) -> Option<Cow<'j, str>> {
    match line.get("ts") {
        Some(_) => line.get_text("text"),
        None => line.get_text("command").filter(|_| line.get_integer("timestamp").is_some()),
    }
}

/// An entry of the first client's list, under the names of the later file.
pub fn record(stream: &str, bytes: &[u8]) -> Option<Value> {
    let item = Json::parse(bytes).filter(|_| stream == "history")?.object();
    let (text, millis) = (item.get_text("command")?, item.get_integer("timestamp")?);
    Some(json!({ "session_id": "", "ts": millis.div_euclid(1_000), "text": text }))
}

fn entry(line: &Object<'_>) -> Result<HistoryEntry, &'static str> {
    let (Some(session), Some(seconds)) = (line.get_text("session_id"), line.get_integer("ts")) else {
        return Err("session_id and ts");
    };
    let hash = blake3::hash(line.get("text").map(Json::bytes).unwrap_or_default()).to_hex();
    Ok(HistoryEntry {
        key: format!("{session}:{seconds}:{}", &hash[..8]),
        at: Time::from_seconds(seconds),
        session: Some(session.as_ref().into()),
        project: None,
        text: text(line).unwrap_or_default().into_owned(),
    })
}

fn list_entry(item: &Object<'_>) -> Result<HistoryEntry, &'static str> {
    let millis = item.get_integer("timestamp").ok_or("timestamp")?;
    Ok(HistoryEntry {
        key: format!("{millis}:{}", ContentKey::of(&[item.bytes()]).hex()),
        at: Time::from_millis(millis),
        session: None,
        project: None,
        text: text(item).unwrap_or_default().into_owned(),
    })
}
