//! What is new inside of rows whose type is known: blocks, parts of results, fields.

use super::kinds::{ASSISTANT_BLOCKS, RESULT_PARTS, USER_BLOCKS};
use super::people::OTHER_ORIGINS;
use crate::json::{Json, Object};

/// Fields of chain rows, sorted, as far as any version was seen to write them.
const ROW_FIELDS: &[&str] = &[
    "agentColor",
    "agentId",
    "agentName",
    "apiBlockIndex",
    "apiError",
    "apiErrorParams",
    "apiErrorStatus",
    "apiErrorType",
    "apiRefusalCategory",
    "apiRefusalExplanation",
    "attachment",
    "attributionAgent",
    "attributionMcpServer",
    "attributionMcpTool",
    "attributionPlugin",
    "attributionSkill",
    "cause",
    "commandRun",
    "compactMetadata",
    "content",
    "costUSD",
    "cwd",
    "data",
    "direction",
    "durationMs",
    "effort",
    "entrypoint",
    "error",
    "errorDetails",
    "failedResponseHadNoToolCall",
    "forkedFrom",
    "gitBranch",
    "hasOutput",
    "hookAdditionalContext",
    "hookCount",
    "hookErrors",
    "hookInfos",
    "imagePasteIds",
    "interruptedMessageId",
    "isAbortedMidStream",
    "isApiErrorMessage",
    "isCompactSummary",
    "isMeta",
    "isSidechain",
    "isTeammate",
    "isVisibleInTranscriptOnly",
    "leafUuid",
    "level",
    "logicalParentUuid",
    "madeBy",
    "maxRetries",
    "mcpCallNotReadOnly",
    "mcpMeta",
    "message",
    "messageCount",
    "microcompactMetadata",
    "neutralContent",
    "operation",
    "origin",
    "originalModel",
    "parentToolUseID",
    "parentUuid",
    "perTurnEffort",
    "permissionDecision",
    "permissionMode",
    "planContent",
    "preventedContinuation",
    "promptCacheRequested",
    "promptId",
    "promptSource",
    "queueSkipAttachments",
    "refusedMessageId",
    "refusedUserMessageUuid",
    "refusingModel",
    "rendered",
    "renderedBesideToolResult",
    "renderedInHumanTurn",
    "renderedRole",
    "requestId",
    "requestRef",
    "requestedModel",
    "retryAttempt",
    "retryInMs",
    "sandboxed",
    "sessionId",
    "sessionKind",
    "session_id",
    "slug",
    "source",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "stopReason",
    "subtype",
    "summary",
    "teamName",
    "thinkingDisplay",
    "thinkingDurationMs",
    "thinkingMetadata",
    "timestamp",
    "todos",
    "toolInputStreamMs",
    "toolUseID",
    "toolUseResult",
    "toolUseResultText",
    "turnCompanion",
    "turnOrigin",
    "turnPosition",
    "type",
    "url",
    "userModified",
    "userType",
    "uuid",
    "version",
];

const MESSAGE_FIELDS: &[&str] = &[
    "container",
    "content",
    "context_management",
    "diagnostics",
    "id",
    "model",
    "role",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "type",
    "usage",
];

const MESSAGE_ROLES: &[&str] = &["user", "assistant"];

const MESSAGE_TYPES: &[&str] = &["message"];

/// Fields of the rows outside of the chain that are read.
const STATE_FIELDS: &[(&str, &[&str])] = &[
    ("ai-title", &["aiTitle", "sessionId", "timestamp", "type"]),
    ("continued-in", &["continuedInSessionId", "sessionId", "timestamp", "type"]),
    ("custom-title", &["customTitle", "sessionId", "timestamp", "type"]),
    (
        "file-history-delta",
        &["backup", "messageId", "sessionId", "snapshotMessageId", "timestamp", "trackingPath", "type"],
    ),
    (
        "file-history-snapshot",
        &["isSnapshotUpdate", "messageId", "sessionId", "snapshot", "timestamp", "type"],
    ),
    ("last-prompt", &["explicit", "lastPrompt", "leafUuid", "sessionId", "timestamp", "type"]),
    ("mode", &["mode", "sessionId", "timestamp", "type"]),
    ("permission-mode", &["permissionMode", "sessionId", "timestamp", "type"]),
    ("queue-operation", QUEUE_FIELDS),
    ("summary", &["leafUuid", "sessionId", "summary", "timestamp", "type"]),
    ("worktree-state", &["sessionId", "timestamp", "type", "worktreeSession"]),
];

const QUEUE_FIELDS: &[&str] = &[
    "commandUuid",
    "content",
    "deliveryId",
    "images",
    "operation",
    "reason",
    "sessionId",
    "timestamp",
    "type",
    "uuid",
];

/// Why an entry was taken out of the queue.
const QUEUE_REASONS: &[&str] = &["absorbed_mid_turn", "cancelled"];

/// What a `queued_command` attachment holds.
const COMMAND_MODES: &[&str] = &["prompt", "bash", "task-notification", "orphaned-permission"];

/// Calls `visit` with the kind of every field of a row outside of the chain that is not known.
pub fn each_unknown_state(row: &Object<'_>, kind: &str, visit: &mut dyn FnMut(String)) {
    let Some((_, known)) = STATE_FIELDS.iter().find(|(name, _)| *name == kind) else { return };
    for name in unknown_names(row.fields().iter().map(|(name, _)| *name), known) {
        visit(format!("{kind} field/{name}"));
    }
    if let Some(reason) = row.get_text("reason").filter(|reason| !QUEUE_REASONS.contains(&reason.as_ref())) {
        visit(format!("{kind} reason/{reason}"));
    }
    // An entry of the queue is like the content of a row.
    for part in row.get("content").iter().flat_map(|content| content.items()) {
        let name = part.get_text("type").unwrap_or_default();
        if !part.is_string() && !USER_BLOCKS.contains(&name.as_ref()) {
            visit(format!("{kind} content block/{name}"));
        }
    }
}

/// Calls `visit` with the kind of everything in a chain row that is not known.
pub fn each_unknown(row: &Object<'_>, kind: &str, visit: &mut dyn FnMut(String)) {
    for name in unknown_names(row.fields().iter().map(|(name, _)| *name), ROW_FIELDS) {
        visit(format!("{kind} field/{name}"));
    }
    let queued = row.get("attachment").and_then(|attachment| attachment.get("origin"));
    let origin = row.get("origin").or(queued).and_then(|origin| origin.get_text("kind"));
    if let Some(origin) = origin.filter(|kind| *kind != "human" && !OTHER_ORIGINS.contains(&kind.as_ref())) {
        visit(format!("{kind} origin/{origin}"));
    }
    let mode = row.get("attachment").and_then(|attachment| attachment.get_text("commandMode"));
    if let Some(mode) = mode.filter(|mode| !COMMAND_MODES.contains(&mode.as_ref())) {
        visit(format!("queued_command mode/{mode}"));
    }
    let Some(message) = row.get("message") else { return };
    for name in unknown_names(message.fields().map(|(name, _)| name), MESSAGE_FIELDS) {
        visit(format!("{kind} message field/{name}"));
    }
    for (name, known) in [("role", MESSAGE_ROLES), ("type", MESSAGE_TYPES)] {
        if let Some(value) = message.get_text(name).filter(|value| !known.contains(&value.as_ref())) {
            visit(format!("{kind} message {name}/{value}"));
        }
    }
    let known = if kind == "assistant" { ASSISTANT_BLOCKS } else { USER_BLOCKS };
    for block in message.get("content").iter().flat_map(|content| content.items()) {
        if block.is_string() {
            continue;
        }
        let name = block.get_text("type").unwrap_or_default();
        if !known.contains(&name.as_ref()) {
            visit(format!("{kind} content block/{name}"));
        }
        if name == "tool_result" {
            each_unknown_part(block, visit);
        }
    }
}

fn each_unknown_part(result: Json<'_>, visit: &mut dyn FnMut(String)) {
    for part in result.get("content").iter().flat_map(|content| content.items()) {
        let name = part.get_text("type").unwrap_or_default();
        if !part.is_string() && !RESULT_PARTS.contains(&name.as_ref()) {
            visit(format!("tool result part/{name}"));
        }
    }
}

fn unknown_names<'a>(
    names: impl Iterator<Item = &'a [u8]>,
    known: &'static [&'static str],
) -> impl Iterator<Item = String> {
    names
        .filter(move |name| known.binary_search_by(|known| known.as_bytes().cmp(name)).is_err())
        .map(|name| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{MESSAGE_FIELDS, ROW_FIELDS, STATE_FIELDS, each_unknown};
    use crate::json::Json;

    fn unknown(kind: &str, row: &str) -> Vec<String> {
        let mut found = Vec::new();
        each_unknown(&Json::parse(row.as_bytes()).unwrap().object(), kind, &mut |kind| found.push(kind));
        found
    }

    #[test]
    fn names_are_sorted() {
        assert!(ROW_FIELDS.is_sorted() && MESSAGE_FIELDS.is_sorted());
        assert!(STATE_FIELDS.iter().all(|(_, fields)| fields.is_sorted()));
    }

    #[test]
    fn what_is_new_inside_of_a_row_is_named() {
        let row = r#"{"type":"user","aura":1,"message":{"role":"user","mood":2,"content":[
            {"type":"text","text":"x"},{"type":"smell"},"bare",
            {"type":"tool_result","content":[{"type":"text","text":"y"},{"type":"hologram"}]}]}}"#;
        assert_eq!(
            unknown("user", row),
            [
                "user field/aura",
                "user message field/mood",
                "user content block/smell",
                "tool result part/hologram"
            ]
        );
        let sent = r#"{"type":"user","origin":{"kind":"oracle"}}"#;
        assert_eq!(unknown("user", sent), ["user origin/oracle"]);
        let queued =
            r#"{"type":"attachment","attachment":{"type":"queued_command","commandMode":"whisper"}}"#;
        assert_eq!(unknown("attachment", queued), ["queued_command mode/whisper"]);
        let known = r#"{"type":"assistant","message":{"content":[{"type":"tool_use"},{"type":"thinking"}]}}"#;
        assert_eq!(unknown("assistant", known), Vec::<String>::new());
    }
}
