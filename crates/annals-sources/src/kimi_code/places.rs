//! Whose a file is, by its path: `sessions/<workspace>/<session>/agents/<agent>/…`.

/// The agent that a person talks to.
pub const MAIN: &str = "main";

/// The session of an agent. Agents are numbered within their session.
pub fn agent_session(session: &str, agent: &str) -> String {
    match agent {
        MAIN => session.to_owned(),
        _ => format!("{session}.{agent}"),
    }
}

/// Where a transcript is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place<'p> {
    pub workspace: &'p str,
    pub session: &'p str,
    pub agent: &'p str,
}

pub fn place_of(path: &str) -> Option<Place<'_>> {
    // A file that is recorded has its whole path.
    let below = path.strip_prefix("sessions/").or_else(|| Some(path.rsplit_once("/sessions/")?.1))?;
    let mut parts = below.split('/');
    let (workspace, session) = (parts.next()?, parts.next()?);
    let agent = parts.next().filter(|folder| *folder == "agents").and_then(|_| parts.next());
    Some(Place { workspace, session, agent: agent.unwrap_or(MAIN) })
}

/// The key of a complete output: its path below the folder of the workspace, wherever the home is.
pub fn output_key(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let (_, below) = path.rsplit_once("/session_").or_else(|| path.split_once("session_"))?;
    let file = below.contains("/tasks/").then(|| format!("session_{below}"));
    file.filter(|file| !file.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::{Place, agent_session, output_key, place_of};

    #[test]
    fn transcripts_are_found_by_their_path() {
        let place = place_of("sessions/wd_gauge_d901/session_5e55/agents/agent-0/wire.jsonl");
        assert_eq!(
            place,
            Some(Place { workspace: "wd_gauge_d901", session: "session_5e55", agent: "agent-0" })
        );
        assert_eq!(place_of("sessions/wd/session_5e55/state.json").map(|place| place.agent), Some("main"));
        let whole = place_of("/home/ada/.kimi-code/sessions/wd/session_5e55/agents/agent-0/wire.jsonl");
        assert_eq!(whole.map(|place| (place.session, place.agent)), Some(("session_5e55", "agent-0")));
        assert_eq!(agent_session("session_5e55", "agent-0"), "session_5e55.agent-0");
        assert_eq!(agent_session("session_5e55", "main"), "session_5e55");
    }

    #[test]
    fn outputs_have_one_key_wherever_the_home_is() {
        let key = Some("session_5e55/agents/main/tasks/bash-1/output.log".to_owned());
        assert_eq!(
            output_key("/h/.kimi-code/sessions/wd/session_5e55/agents/main/tasks/bash-1/output.log"),
            key
        );
        assert_eq!(output_key("sessions/wd/session_5e55/agents/main/tasks/bash-1/output.log"), key);
        assert_eq!(output_key("/tmp/x.log"), None);
    }
}
