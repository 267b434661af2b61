//! What records there are, and which session a file belongs to.

/// Fields of a record.
pub const LINE: &[&str] = &[
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "type",
    "subtype",
    "provenance",
    "cwd",
    "version",
    "gitBranch",
    "message",
    "model",
    "usageMetadata",
    "contextWindowSize",
    "toolCallResult",
    "systemPayload",
    "agentId",
    "agentName",
    "agentRunId",
    "agentRound",
    "isSidechain",
    "forkedFrom",
];

/// Subtypes of records of the user's side.
pub const PROMPTS: &[&str] = &["", "mid_turn_user_message", "notification", "cron"];

/// Records of the client about itself, and copies of what other records have.
pub const MACHINERY: &[&str] = &[
    "attribution_snapshot",
    "file_history_snapshot",
    "at_command",
    "parent_session",
    "session_source",
    "session_model",
    "agent_bootstrap",
    "agent_retry",
    "branch_checkpoint",
    "goal_state",
    "session_artifact_event",
    "session_artifact_snapshot",
    "turn_result",
    "user_text_elements",
    "realtime_message",
];

/// The session of a transcript by its path, and the session that started it if it is a sub-agent's. Agents are numbered
/// within their session.
pub fn session_of(path: &str) -> (String, Option<String>) {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".meta.json")).unwrap_or(name);
    let (session, folder) = (parts.next(), parts.next());
    match (stem.strip_prefix("agent-"), session, folder) {
        (Some(agent), Some(session), Some("subagents")) => {
            (agent_session(session, agent), Some(session.to_owned()))
        }
        _ => (stem.to_owned(), None),
    }
}

/// The session of a sub-agent. The ids of calls, which agents are named by, may be equal in different sessions.
pub fn agent_session(session: &str, agent: &str) -> String {
    format!("{session}.{agent}")
}

#[cfg(test)]
mod tests {
    use super::session_of;

    #[test]
    fn sub_agents_are_sessions_of_their_own() {
        assert_eq!(session_of("projects/-gauge/chats/5e55.jsonl"), ("5e55".into(), None));
        let agent = ("5e55.general-call_1".to_owned(), Some("5e55".to_owned()));
        assert_eq!(session_of("projects/-gauge/subagents/5e55/agent-general-call_1.jsonl"), agent);
        assert_eq!(session_of("projects/-gauge/subagents/5e55/agent-general-call_1.meta.json"), agent);
    }
}
