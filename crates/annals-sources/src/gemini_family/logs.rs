//! `logs.json`: every prompt typed in the interactive client. It outlives transcripts.

use std::borrow::Cow;

use crate::home::history::{HistoryEntry, HistoryReader};
use crate::json::Object;
use annals_core::Time;

pub fn reader() -> HistoryReader {
    HistoryReader { entry }
}

/// What an entry of the log says.
pub fn text<'j>(entry: &Object<'j>) -> Option<Cow<'j, str>> {
    entry.get("messageId").and_then(|_| entry.get_text("message"))
}

fn entry(entry: &Object<'_>) -> Result<HistoryEntry, &'static str> {
    let session = entry.get_text("sessionId").ok_or("sessionId")?;
    let number = entry.get_integer("messageId").ok_or("messageId")?;
    let at = entry.get_text("timestamp").and_then(|text| Time::parse(&text)).ok_or("timestamp")?;
    Ok(HistoryEntry {
        // Two clients of one session number their prompts alike.
        key: format!("{session}:{number}:{}", at.micros()),
        at,
        session: Some(session.as_ref().into()),
        project: None,
        text: text(entry).unwrap_or_default().into_owned(),
    })
}
