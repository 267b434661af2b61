//! Edits of a tape as Agent Trace records, the public format for the origin of code.

use serde_json::{Value, json};

use super::event::{CodeEdit, Event, EventBody, moment};
use crate::view::door::Door;
use annals_core::{ContentKey, Result, SessionFacts, ShownJson, Time};
use annals_sources::TapeForm;

/// The version of the specification we write.
const VERSION: &str = "0.1.0";

/// The edits of a session, call by call.
#[derive(Default)]
pub struct Traces {
    calls: Vec<Trace>,
}

struct Trace {
    at: Option<Time>,
    session: String,
    edits: Vec<CodeEdit>,
}

impl Traces {
    pub fn add(&mut self, event: Event) {
        let EventBody::Edit(edit) = event.body else { return };
        match self.calls.last_mut() {
            Some(trace) if trace.edits.last().is_some_and(|last| last.call_id == edit.call_id) => {
                trace.edits.push(*edit);
            }
            _ => self.calls.push(Trace { at: event.at, session: event.session, edits: vec![*edit] }),
        }
    }

    /// Emits one record for each call that changed files.
    pub fn emit(
        &self,
        door: &Door,
        form: &TapeForm,
        source: &str,
        facts: &SessionFacts,
        visit: &mut dyn FnMut(ShownJson) -> Result<()>,
    ) -> Result<()> {
        for (number, trace) in self.calls.iter().enumerate() {
            visit(trace.record(door, form, source, facts, number))?;
        }
        Ok(())
    }
}

impl Trace {
    fn record(
        &self,
        door: &Door,
        form: &TapeForm,
        source: &str,
        facts: &SessionFacts,
        number: usize,
    ) -> ShownJson {
        let mut files: Vec<Value> = Vec::new();
        let mut listed: Vec<&CodeEdit> = Vec::new();
        for edit in &self.edits {
            if listed.iter().any(|before| before.file == edit.file) {
                continue;
            }
            listed.push(edit);
            let ranges: Vec<Value> = self
                .edits
                .iter()
                .filter(|other| other.file == edit.file)
                .filter_map(|edit| {
                    let range = edit.after.range?;
                    let hash = edit
                        .after
                        .lines_hash
                        .as_ref()
                        .or(edit.after.hash.as_ref())
                        .map(|hash| format!("sha256:{hash}"));
                    Some(json!({"start_line": range.start, "end_line": range.end, "content_hash": hash}))
                })
                .collect();
            let model = edit.model.as_ref().or(facts.models.last());
            let model = model.map(|model| door.text(model));
            let mut contributor = json!({"type": "ai"});
            if let Some(model) = model {
                contributor["model_id"] = json!(model);
            }
            files.push(json!({
                "path": door.text(&below(edit.file.as_str(), facts.cwd.as_deref())),
                "conversations": [{
                    "url": format!("annals:{source}:{}", self.session),
                    "contributor": contributor,
                    "ranges": ranges,
                }],
            }));
        }
        let call = self.edits.first().map_or("", |edit| edit.call_id.as_str());
        let mut record = json!({
            "version": VERSION,
            "id": stable_id(&[source, &self.session, call, &number.to_string()]),
            "timestamp": moment(self.at),
        });
        if let Some(commit) = &facts.git_commit {
            record["vcs"] = json!({"type": "git", "revision": door.text(commit)});
        }
        let version = facts.client_version.as_ref().map(|version| door.text(version));
        record["tool"] = match version {
            Some(version) => json!({"name": form.harness, "version": version}),
            None => json!({"name": form.harness}),
        };
        record["files"] = Value::Array(files);
        record["metadata"] = json!({"annals": {"session_id": self.session, "call_id": call}});
        ShownJson::new(record)
    }
}

/// The path relative to the directory of the session.
fn below(path: &str, folder: Option<&str>) -> String {
    let folder = folder.map(|folder| folder.trim_end_matches('/')).filter(|folder| !folder.is_empty());
    let inside = folder.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/'));
    inside.unwrap_or(path).to_owned()
}

/// A stable id: the same call always gets the same UUID (version 8, for custom hashes).
fn stable_id(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let first = ContentKey::of(&parts);
    let hex = format!("{}{}", first.hex(), first.then(b"second half").hex());
    let variant = match hex.as_bytes()[16] {
        b'0'..=b'3' => '8',
        b'4'..=b'7' => '9',
        b'8'..=b'9' | b'a' | b'b' => 'a',
        _ => 'b',
    };
    format!("{}-{}-8{}-{variant}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::{below, stable_id};

    #[test]
    fn ids_are_uuids_and_stay() {
        let id = stable_id(&["a", "b"]);
        assert_eq!(id, stable_id(&["a", "b"]));
        assert_ne!(id, stable_id(&["ab", ""]));
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'8'));
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }

    #[test]
    fn paths_start_at_the_folder() {
        assert_eq!(below("/w/src/a.rs", Some("/w")), "src/a.rs");
        assert_eq!(below("/shops/a.rs", Some("/shop")), "/shops/a.rs");
        assert_eq!(below("/w/a.rs", None), "/w/a.rs");
    }
}
