//! What lines there are, and the fields of those that are read.

pub const LINE: &[&str] = &["type", "agentId", "time", "kind"];

/// Lines that are read, with their fields.
pub const FIELDS: &[(&str, &[&str])] = &[
    ("metadata", &["protocol_version", "created_at"]),
    (
        "profile.bind",
        &[
            "activeToolNames",
            "agentsMdPaths",
            "disallowedTools",
            "environmentDisclosure",
            "modelAlias",
            "profileName",
            "subagents",
            "systemPrompt",
            "thinkingEffort",
        ],
    ),
    ("permission.set_mode", &["mode"]),
    ("turn.prompt", &["input", "origin", "promptId", "turnId"]),
    ("turn.steer", &["input", "origin", "promptIds", "messageId", "turnId"]),
    ("turn.cancel", &["turnId", "target", "reason"]),
    ("turn.ended", &["turnId", "reason", "error", "durationMs"]),
    ("context.append_message", &["message"]),
    ("context.append_loop_event", &["event"]),
    (
        "context.apply_compaction",
        &[
            "summary",
            "contextSummary",
            "compactedCount",
            "keptUserMessageCount",
            "summaryOutputTokens",
            "tokensAfter",
            "tokensBefore",
            "wireLines",
        ],
    ),
    ("usage.record", &["model", "usage", "usageScope"]),
    (
        "subagent.spawned",
        &[
            "subagentId",
            "subagentName",
            "parentToolCallId",
            "parentAgentId",
            "callerAgentId",
            "description",
            "runInBackground",
            "model",
            "thinkingEffort",
            "taskId",
        ],
    ),
];

/// Lines of the client about itself, and copies of what other lines have.
pub const MACHINERY: &[&str] = &[
    "agent.message.appended",
    "agent.turn.started",
    "agent.turn.ended",
    "file_history.tracked",
    "file_history.checkpoint",
    "full_compaction.begin",
    "full_compaction.complete",
    "full_compaction.failed",
    "llm.tools_snapshot",
    "plugin.session_start",
    "prompt.aborted",
    "prompt.completed",
    "prompt.steered",
    "runtime.set_binding",
    "subagent.started",
    "subagent.completed",
    "subagent.failed",
    "token_counting.measured",
    "token_counting.rebased",
    "token_counting.turn_recorded",
    "tools.update_store",
    "turn.step.interrupted",
];

/// Parts of messages and answers.
pub const PARTS: &[&str] = &["text", "think", "image", "image_url"];
