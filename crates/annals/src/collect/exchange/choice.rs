//! What of an archive is shared: sources, projects and days that are chosen, and files that belong to nothing else.

use std::collections::HashMap;

use annals_core::{FileId, InstanceId, Result, SessionId, Time};
use annals_store::Store;

/// What is pushed. Everything, if nothing is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushChoice {
    pub sources: Vec<String>,
    pub excluded_sources: Vec<String>,
    /// Directories of projects.
    pub projects: Vec<String>,
    pub excluded_projects: Vec<String>,
    /// Sessions that went on after this time.
    pub since: Option<Time>,
}

impl PushChoice {
    pub fn has_source(&self, source: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == source);
        (self.sources.is_empty() || is_named(&self.sources)) && !is_named(&self.excluded_sources)
    }

    /// Equal for equal choices.
    pub fn fingerprint(&self) -> String {
        format!("{self:?}")
    }

    fn chooses_sessions(&self) -> bool {
        !self.projects.is_empty() || !self.excluded_projects.is_empty() || self.since.is_some()
    }

    fn has_session(&self, cwd: Option<&str>, last_at: Option<i64>) -> bool {
        let is_in = |projects: &[String]| {
            projects.iter().any(|project| {
                let rest = cwd.and_then(|cwd| cwd.strip_prefix(project.as_str()));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || project.ends_with('/'))
            })
        };
        (self.projects.is_empty() || is_in(&self.projects))
            && !is_in(&self.excluded_projects)
            && self.since.is_none_or(|since| last_at.is_some_and(|last| last >= since.micros()))
    }

    /// Decides about the files of one home.
    pub fn of_home(&self, store: &Store, instance: InstanceId) -> Result<ChosenFiles> {
        if !self.chooses_sessions() {
            return Ok(ChosenFiles { files: None, sessions: Vec::new() });
        }
        let mut files = HashMap::new();
        let (mut chosen, mut others) = (Vec::new(), Vec::new());
        for (file, sessions) in store.session_places(instance)? {
            // A file with sessions of two projects goes only if both may.
            let mut all = true;
            for place in sessions {
                let is_chosen = self.has_session(place.cwd.as_deref(), place.last_at);
                all &= is_chosen;
                if is_chosen { chosen.push(place.session) } else { others.push(place.session) }
            }
            files.insert(file, all);
        }
        chosen.retain(|id: &SessionId| !others.contains(id));
        let mut sessions = Vec::new();
        for id in chosen {
            // Shorter names are in too many paths.
            sessions.extend(store.session_key_of(id)?.filter(|key| key.len() >= 8));
        }
        Ok(ChosenFiles { files: Some(files), sessions })
    }
}

/// The files of a home that may be sent.
#[derive(Debug)]
pub struct ChosenFiles {
    /// Of files with sessions; all files if there are none.
    files: Option<HashMap<FileId, bool>>,
    /// Chosen sessions: files that are named after one go with it.
    sessions: Vec<String>,
}

impl ChosenFiles {
    pub fn has(&self, file: FileId, path: &str) -> bool {
        let Some(files) = &self.files else { return true };
        match files.get(&file) {
            Some(chosen) => *chosen,
            // Histories and settings tell of every project.
            None => self.sessions.iter().any(|session| path.contains(session.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_directories_and_what_is_excluded_stays() {
        let choice = PushChoice {
            projects: vec!["/w".to_owned()],
            excluded_projects: vec!["/w/tax".to_owned()],
            since: Some(Time::from_micros(5)),
            ..PushChoice::default()
        };
        let cases = [
            (Some("/w"), Some(5), true),
            (Some("/w/a"), Some(9), true),
            (Some("/w/a"), Some(4), false),
            (Some("/w/a"), None, false),
            (Some("/w/tax"), Some(9), false),
            (Some("/w/tax/2026"), Some(9), false),
            (Some("/w/taxi"), Some(9), true),
            (Some("/work"), Some(9), false),
            (None, Some(9), false),
        ];
        for (cwd, last_at, expected) in cases {
            assert_eq!(choice.has_session(cwd, last_at), expected, "{cwd:?} {last_at:?}");
        }
        let sources = PushChoice { excluded_sources: vec!["one".to_owned()], ..PushChoice::default() };
        assert!(sources.has_source("other") && !sources.has_source("one"));
    }
}
