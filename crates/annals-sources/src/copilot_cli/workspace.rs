//! `workspace.yaml`: the name of a session, and where it ran.

use crate::home::yaml;
use crate::json::Line;
use crate::{Facts, FileContext, Reader};
use annals_core::{Item, SessionFacts, Verdict};

use super::session_in;

pub struct WorkspaceReader {
    session: Option<String>,
    facts: Option<SessionFacts>,
}

impl WorkspaceReader {
    pub fn new(file: &FileContext) -> WorkspaceReader {
        WorkspaceReader { session: session_in(&file.path).map(str::to_owned), facts: None }
    }
}

impl Reader for WorkspaceReader {
    fn read(&mut self, _offset: u64, line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        let fields = yaml::fields(&String::from_utf8_lossy(line.bytes()));
        let text = |name: &str| {
            fields
                .get(name)
                .and_then(|value| value.as_str())
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let name = text("name");
        let is_chosen = fields.get("user_named").and_then(serde_json::Value::as_bool) == Some(true);
        let mut facts =
            SessionFacts { cwd: text("cwd"), git_branch: text("branch"), ..SessionFacts::default() };
        match is_chosen {
            true => facts.name = name,
            false => facts.title = name,
        }
        self.facts = Some(facts);
        Verdict::Kept("workspace".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let found = self.session.as_deref().zip(self.facts.clone());
        found.map(|(session, facts)| Facts { session: session.into(), rank: 1, facts }).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::WorkspaceReader;
    use crate::json::Scan;
    use crate::{FileContext, Reader};

    #[test]
    fn a_name_is_chosen_or_made_up() {
        let facts = |text: &str| {
            let path = "session-state/5e55/workspace.yaml".to_owned();
            let mut reader = WorkspaceReader::new(&FileContext { path, modified: None });
            reader.read(0, Scan::new(text.as_bytes()).line(), &mut Vec::new());
            reader.facts().remove(0)
        };
        let made = facts("name: Oil the dial\ncwd: /home/ada/gauge\nbranch: main\nuser_named: false\n");
        assert_eq!(&*made.session, "5e55");
        assert_eq!((made.facts.title.as_deref(), made.facts.name), (Some("Oil the dial"), None));
        assert_eq!(made.facts.git_branch.as_deref(), Some("main"));
        assert_eq!(facts("name: Mine\nuser_named: true\n").facts.name.as_deref(), Some("Mine"));
    }
}
