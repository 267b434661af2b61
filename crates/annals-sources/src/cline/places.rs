//! Whose a file is, by its path, in the layout of every version.

/// The session of a file, and the session that started it if it is a sub-agent's.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub session: String,
    pub parent: Option<String>,
}

/// `data/sessions/<session>/<file>` of version 3, `data/tasks/<task>/<file>` before. The client's own key of a sub-agent is
/// that of its session and its own.
pub fn place_of(path: &str) -> Place {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let folder = parts.next().unwrap_or_default();
    let agent = name.strip_suffix(".messages.json").filter(|name| name.starts_with("agent_"));
    match agent {
        Some(agent) => Place { session: format!("{folder}__{agent}"), parent: Some(folder.to_owned()) },
        None => Place { session: folder.to_owned(), parent: None },
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, place_of};

    #[test]
    fn files_are_in_the_folder_of_their_session() {
        let own = |session: &str| Place { session: session.into(), parent: None };
        assert_eq!(place_of("data/sessions/177_ab/177_ab.messages.json"), own("177_ab"));
        assert_eq!(place_of("data/tasks/177/ui_messages.json"), own("177"));
        let agent = Place { session: "177_ab__agent_9_x".into(), parent: Some("177_ab".into()) };
        assert_eq!(place_of("data/sessions/177_ab/agent_9_x.messages.json"), agent);
    }
}
