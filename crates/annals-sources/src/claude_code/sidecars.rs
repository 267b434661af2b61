//! Files besides transcripts: sub-agent metadata, titles, complete outputs, to-do lists.

use serde_json::{Value, json};

use super::kinds::{agent_parent, stem};
use crate::home::authored::WholeFileReader;
use crate::json::{Json, Line, Object};
use crate::{Facts, FileContext, Reader};
use annals_core::{ContentKey, Item, LinkKind, SessionFacts, Time, Verdict};

/// `agent-<id>.meta.json`: what a sub-agent is for and which call started it.
pub struct AgentMetaReader {
    agent: String,
    parent: Option<String>,
    facts: Option<SessionFacts>,
}

impl AgentMetaReader {
    pub fn new(file: &FileContext) -> AgentMetaReader {
        let agent = stem(&file.path).trim_end_matches(".meta").to_owned();
        AgentMetaReader { agent, parent: agent_parent(&file.path), facts: None }
    }
}

impl Reader for AgentMetaReader {
    fn read(&mut self, _offset: u64, line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        let Some(meta) = line.json().filter(|meta| meta.is_object()) else {
            return Verdict::Malformed("not JSON".into());
        };
        let mut facts = SessionFacts {
            title: meta.get_text("description").map(|text| text.into_owned()),
            parent: self.parent.clone(),
            parent_kind: self.parent.as_ref().map(|_| LinkKind::SubAgent),
            ..SessionFacts::default()
        };
        for (name, value) in meta.fields() {
            let name = match name {
                b"agentType" => "agent_type",
                b"toolUseId" => "tool_use_id",
                b"spawnDepth" => "spawn_depth",
                b"isBuiltIn" => "is_built_in",
                _ => continue,
            };
            facts.native.insert(name.into(), value.value());
        }
        self.facts = Some(facts);
        Verdict::Kept("agent meta".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let facts = self.facts.iter();
        facts
            .map(|facts| Facts { session: self.agent.as_str().into(), rank: 5, facts: facts.clone() })
            .collect()
    }
}

/// `<session>/custom-title.json`.
pub struct CustomTitleReader {
    session: Option<String>,
    title: Option<String>,
}

impl CustomTitleReader {
    pub fn new(file: &FileContext) -> CustomTitleReader {
        CustomTitleReader { session: folder_of(&file.path, 1).map(str::to_owned), title: None }
    }
}

impl Reader for CustomTitleReader {
    fn read(&mut self, _offset: u64, line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        let Some(document) = line.json() else { return Verdict::Malformed("not JSON".into()) };
        self.title = document.get_text("customTitle").map(|title| title.into_owned());
        Verdict::Kept("custom title".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let (Some(session), Some(title)) = (&self.session, &self.title) else { return Vec::new() };
        let facts = SessionFacts { name: Some(title.clone()), ..SessionFacts::default() };
        vec![Facts { session: session.as_str().into(), rank: 5, facts }]
    }
}

/// `<session>/tool-results/<file>`.
pub fn full_result(file: &FileContext) -> WholeFileReader {
    let key = full_result_key(&file.path).unwrap_or_else(|| file.path.clone());
    WholeFileReader::new("tool_results_full", key, file).of_session(folder_of(&file.path, 2))
}

/// `todos/<session>-agent-<agent>.json`, `tasks/<list>/<n>.json`.
pub fn todos(file: &FileContext) -> WholeFileReader {
    let name = stem(&file.path);
    let (key, session) = match file.path.strip_prefix("tasks/") {
        Some(rest) => (rest.trim_end_matches(".json"), folder_of(&file.path, 1)),
        None => (name, name.split("-agent-").next()),
    };
    WholeFileReader::new("todos", key.to_owned(), file).of_session(session)
}

/// A file as it was, under the name that the client gave its copy.
pub struct FileSnapshot {
    pub backup: String,
    pub path: String,
    pub at: Option<Time>,
    pub content: ContentKey,
}

/// Snapshots of a `file-history-snapshot` or `file-history-delta` row.
pub fn snapshots(row: &Object<'_>) -> Vec<FileSnapshot> {
    let mut found = Vec::new();
    let mut add = |path: &[u8], backup: Json<'_>| {
        if let Some(name) = backup.get_text("backupFileName") {
            let path = crate::json::unescape(path);
            let content = ContentKey::of(&[path.as_bytes(), name.as_bytes()]);
            let at = backup.get_text("backupTime").and_then(|text| Time::parse(&text));
            found.push(FileSnapshot { backup: name.into_owned(), path, at, content });
        }
    };
    if let (Some(path), Some(backup)) = (row.get("trackingPath").and_then(Json::inner), row.get("backup")) {
        add(path, backup);
    }
    let tracked = row.get("snapshot").and_then(|snapshot| snapshot.get("trackedFileBackups"));
    for (path, backup) in tracked.iter().flat_map(|tracked| tracked.fields()) {
        add(path, backup);
    }
    found
}

/// What a record says beyond its bytes.
pub fn record(stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
    match stream {
        "file_snapshots" => {
            let row = Json::parse(bytes)?.object();
            let (session, name) = key.split_once('/')?;
            let FileSnapshot { backup, path, .. } =
                snapshots(&row).into_iter().find(|found| found.backup == name)?;
            let version = backup.rsplit_once("@v").and_then(|(_, number)| number.parse::<i64>().ok());
            let inner = row.get("snapshot").and_then(|snapshot| snapshot.get_text("messageId"));
            let message = row.get_text("snapshotMessageId").or(inner).or_else(|| row.get_text("messageId"));
            Some(json!({
                "id": key,
                "session_id": session,
                "path": path,
                "version": version,
                "message_id": message,
                "bytes_at": format!("file-history/{key}"),
                "size": null,
                "hash": null,
            }))
        }
        "todos" => todo(key, bytes),
        "tool_results_full" => {
            let text = String::from_utf8_lossy(bytes);
            Some(json!({"id": key, "text": text, "bytes": bytes.len(), "tool_use_id": null}))
        }
        _ => None,
    }
}

/// A to-do list of a session and an agent, or one task of a list.
fn todo(key: &str, bytes: &[u8]) -> Option<Value> {
    match serde_json::from_slice(bytes).ok()? {
        Value::Object(mut task) => {
            let (list, number) = key.rsplit_once('/').unwrap_or((key, key));
            // The client counts from 1 in every list.
            let id = task.insert("id".into(), Value::from(key)).unwrap_or_else(|| Value::from(number));
            task.insert("task_id".into(), id);
            task.insert("session_id".into(), Value::from(list));
            Some(Value::Object(task))
        }
        list => {
            let (session, agent) = key.split_once("-agent-").unwrap_or((key, ""));
            let agent = Some(agent).filter(|agent| !agent.is_empty());
            Some(json!({"id": key, "session_id": session, "agent_id": agent, "todos": list}))
        }
    }
}

/// `<session>/<file>` of a path that ends in `<session>/tool-results/<file>`, wherever it was written.
pub fn full_result_key(path: &str) -> Option<String> {
    let mut parts = path.rsplit(['/', '\\']);
    let (file, folder, session) = (parts.next()?, parts.next()?, parts.next()?);
    (folder == "tool-results").then(|| format!("{session}/{file}"))
}

/// The folder `up` levels above the file.
fn folder_of(path: &str, up: usize) -> Option<&str> {
    path.rsplit('/').nth(up)
}
