//! Fields and parts that no version of these clients was seen to write.

use crate::home::drift::each_unknown;
use crate::json::Json;
use annals_core::Item;

pub const HEADER: &[&str] = &[
    "sessionId",
    "projectHash",
    "startTime",
    "lastUpdated",
    "kind",
    "directories",
    "summary",
    "messages",
    "memoryScratchpad",
];

pub const MESSAGE: &[&str] =
    &["id", "timestamp", "type", "content", "displayContent", "thoughts", "tokens", "model", "toolCalls"];

pub const CALL: &[&str] = &[
    "id",
    "name",
    "args",
    "result",
    "status",
    "timestamp",
    "resultDisplay",
    "displayName",
    "description",
    "renderOutputAsMarkdown",
    "agentId",
];

const PARTS: &[&str] = &[
    "text",
    "thought",
    "thoughtSignature",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "videoMetadata",
];

/// Reports every part of a content that has a field of an unknown name.
pub fn each_unknown_part(content: Option<Json<'_>>, out: &mut Vec<Item>) {
    for part in content.iter().flat_map(|content| content.items()) {
        each_unknown(&part.object(), &[PARTS], "part", out);
    }
}
