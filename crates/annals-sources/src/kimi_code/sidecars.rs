//! Files besides transcripts: the card of a session, and the list of workspaces.

use serde_json::{Value, json};

use super::places::{MAIN, agent_session, place_of};
use crate::home::authored::WholeFileReader;
use crate::json::{Json, Line};
use crate::{Facts, FileContext, Reader};
use annals_core::{Item, LinkKind, ProjectPath, SessionFacts, Time, Verdict};

/// `state.json`: directory, title and agents of a session.
pub struct StateReader {
    session: String,
    facts: Vec<(String, SessionFacts)>,
}

impl StateReader {
    pub fn new(file: &FileContext) -> StateReader {
        let session = place_of(&file.path).map_or("", |place| place.session).to_owned();
        StateReader { session, facts: Vec::new() }
    }
}

impl Reader for StateReader {
    fn read(&mut self, _offset: u64, line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        let Some(state) = line.json().filter(|state| state.is_object()) else {
            return Verdict::Malformed("not JSON".into());
        };
        let text =
            |name: &str| state.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
        let time = |name: &str| state.get_integer(name).map(Time::from_millis);
        let is_own = state.get("isCustomTitle").and_then(Json::boolean) == Some(true);
        let (cwd, title) = (text("cwd"), text("title"));
        let facts = SessionFacts {
            cwd: cwd.clone(),
            name: title.clone().filter(|_| is_own),
            title: title.filter(|_| !is_own),
            started_at: time("createdAt"),
            archived: state.get("archived").and_then(Json::boolean),
            ..SessionFacts::default()
        };
        self.facts = vec![(self.session.clone(), facts)];
        let agents = state.get("agents");
        for (name, agent) in agents.iter().flat_map(|agents| agents.fields()) {
            let name = crate::json::unescape(name);
            if name == MAIN {
                continue;
            }
            let above = agent.get_text("parentAgentId");
            let mut facts = SessionFacts {
                cwd: cwd.clone(),
                parent: Some(agent_session(&self.session, above.as_deref().unwrap_or(MAIN))),
                parent_kind: Some(LinkKind::SubAgent),
                ..SessionFacts::default()
            };
            if let Some(profile) = agent.get("labels").and_then(|labels| labels.get("profileName")) {
                facts.native.insert("agent_type".into(), profile.value());
            }
            self.facts.push((agent_session(&self.session, &name), facts));
        }
        Verdict::Kept("session card".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let facts = self.facts.iter();
        facts
            .map(|(session, facts)| Facts { session: session.as_str().into(), rank: 5, facts: facts.clone() })
            .collect()
    }
}

/// `workspaces.json`: directories that sessions ran in, by the names of their folders.
pub struct WorkspacesReader {
    record: WholeFileReader,
}

impl WorkspacesReader {
    pub fn new(file: &FileContext) -> WorkspacesReader {
        WorkspacesReader { record: WholeFileReader::new("projects", file.path.clone(), file) }
    }
}

impl Reader for WorkspacesReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let verdict = self.record.read(offset, line, out);
        let Some(document) = line.json().filter(|document| document.is_object()) else {
            return Verdict::Malformed("not JSON".into());
        };
        let workspaces = document.get("workspaces");
        for (name, workspace) in workspaces.iter().flat_map(|workspaces| workspaces.fields()) {
            if let Some(path) = workspace.get_text("root") {
                let name = crate::json::unescape(name);
                out.push(Item::Project(ProjectPath { name, path: path.into_owned() }));
            }
        }
        verdict
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// What a record of the list of workspaces says.
pub fn workspaces(key: &str, bytes: &[u8]) -> Value {
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let workspaces = document.get("workspaces").filter(|workspaces| workspaces.is_object());
    json!({"id": key, "projects": workspaces.cloned().unwrap_or_else(|| json!({}))})
}
