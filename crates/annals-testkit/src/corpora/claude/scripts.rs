//! The rows of generated Claude Code transcripts, as scripts that a session fills in. Each row starts with its kind:
//! `c` is a row of the chain with more fields after `^`, `s` a state row, `m` one that only main transcripts have;
//! then the first version that writes it. Indented lines continue it, `$name` is a value, `~` encloses what the first
//! version lacks, `!` what the third adds.

pub const OPENING: &str = r#"
m1 "type":"mode","mode":"normal","sessionId":"$session"
m1 "type":"permission-mode","permissionMode":"acceptEdits","sessionId":"$session"
c1 "attachment":{"type":"hook_success","hookName":"SessionStart:startup","toolUseID":"$fresh","hookEvent":
    "SessionStart","content":"","stdout":"ready\n","stderr":"","exitCode":0,"command":"./ready","durationMs":
    $number},"type":"attachment"
    ^!,"rendered":[{"content":"SessionStart hook success"}],"renderedRole":"system"!
c2 "attachment":{"type":"environment","snapshot":{"workingDirectory":"$cwd","isWorktree":false,
    "isGitRepo":true,"platform":"linux","shell":"bash"}},"type":"attachment"
    ^,"rendered":[{"content":"In $cwd on linux"}],"renderedRole":"system"
c2 "attachment":{"type":"skill_listing","content":"$listing","skillCount":16,"isInitial":true},
    "type":"attachment"^,"rendered":[{"content":"These skills exist:\n$listing"}],"renderedRole":"system"
s2 "type":"api-request-shape","sessionId":"$session",$agent"shapeHash":"$shape","timestamp":"$timeZ",
    "version":"$version","shape":{"system":[{"type":"text","text":"$text"}],"tools":[{"name":"Bash",
    "description":"$listing","input_schema":{"type":"object","properties":{"command":{"type":"string"}}}}]}"#;
pub const SNAPSHOT: &str = r#"
c2 "attachment":{"type":"prompt_snapshot","systemPrompt":["$text"],"reminderFold":false},
    "type":"attachment""#;
pub const SUMMARY: &str = r#"
m0 "type":"summary","summary":"$title","leafUuid":"$other""#;
pub const PROMPT: &str = r#"
c0 ~"promptId":"$prompt",~"type":"user","message":{"role":"user","content":$content}
    ^~,"permissionMode":"acceptEdits","promptSource":"typed","origin":{"kind":"human"}~
    !,"turnOrigin":"human","turnPosition":{"promptIndex":$turn,"turnIndex":$turn}!
m0 "type":"file-history-snapshot","messageId":"$leaf","snapshot":{"messageId":"$leaf","trackedFileBackups":
    {$tracked},"timestamp":"$timeZ"},"isSnapshotUpdate":false"#;
pub const QUEUED: &str = r#"
m0 "type":"queue-operation","operation":"enqueue","timestamp":"$timeZ","sessionId":"$session",
    "content":"$text"
m0 "type":"queue-operation","operation":"dequeue","timestamp":"$timeZ","sessionId":"$session""#;
pub const ATTACHED: &str = r#"
c1 "attachment":{"type":"file","filename":"$cwd/$path","content":{"type":"text","file":{"filePath":
    "$cwd/$path","content":"$text","numLines":$lines,"startLine":1,"totalLines":$lines}},
    "displayPath":"$path"},"type":"attachment"
    ^!,"rendered":[{"content":"Result of calling the Read tool:\n$text"}],"renderedRole":"user"!"#;
pub const REMINDER: &str = r#"
c1 "attachment":{"type":"task_reminder","content":[],"itemCount":0},"type":"attachment"
    ^!,"rendered":[{"content":"The task tools have not been used for a while."}],"renderedRole":"system"!"#;
pub const BLOB: &str = r#"
s2 "type":"api-request-blob","sessionId":"$session",$agent"hash":"$sent","message":{"role":"$role","content":
    [$blocks]}"#;
pub const REQUEST: &str = r#"
s2 "type":"api-request","sessionId":"$session",$agent"id":"$reference","timestamp":"$timeZ",
    "version":"$version","querySource":"repl_main_thread","shapeHash":"$shape","params":{"model":"$model",
    "betas":["interleaved-thinking-2025-05-14","context-management-2025-06-27",
    "prompt-caching-scope-2026-01-05"],"max_tokens":128000,"thinking":{"type":"adaptive","display":"omitted"},
    "context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
    "output_config":{"effort":"medium"}},"base":"$fresh","keep":$number,"tail":[$tail],
    "cacheControl":[{"path":["system",0],"value":{"type":"ephemeral"}}],"requestDigest":"$hash""#;
pub const ANSWER: &str = r#"
c0 "message":{"model":"$model","id":"msg_01$message","type":"message","role":"assistant","content":[$block],
    "stop_reason":$stop,"stop_sequence":null,"usage":$usage~,"stop_details":null~}!,"apiBlockIndex":$index!,
    "requestId":"req_011$request"!,"requestRef":"$reference","requestedModel":"$model",
    "promptCacheRequested":"5m"!,"type":"assistant"^!,"effort":"medium","perTurnEffort":"medium",
    "madeBy":"model"!"#;
pub const RESULT: &str = r#"
c0 ~"promptId":"$prompt",~"type":"user","message":{"role":"user","content":[$block]}^$structured
    ~,"sourceToolAssistantUUID":"$source"~!,"permissionDecision":{"decision":"accept","source":"config",
    "reasonType":"mode"}!"#;
pub const CLOSING: &str = r#"
c1 "type":"system","subtype":"turn_duration","durationMs":$took,"messageCount":$index,
    "level":"info","isMeta":false
m1 "type":"ai-title","aiTitle":"$title","sessionId":"$session"
m1 "type":"last-prompt","lastPrompt":"$asked","leafUuid":"$leaf","sessionId":"$session"
m2 "type":"cost-state","sessionId":"$session","totalCostUSD":$index.$number,"totalAPIDuration":$took,
    "totalToolDuration":$number,"totalLinesAdded":$number,"totalLinesRemoved":$number,"totalDuration":$took,
    "startTime":$started,"modelUsage":{"$model":{"inputTokens":$number,"outputTokens":$spent,
    "cacheReadInputTokens":$took,"cacheCreationInputTokens":$spent,"webSearchRequests":0,
    "costUSD":$index.$number}},"hasUnknownModelCost":false"#;
pub const BOUNDARY: &str = r#"
c0 "logicalParentUuid":"$before","type":"system","subtype":"compact_boundary","content":
    "Conversation compacted","level":"info","isMeta":false,
    "compactMetadata":{"trigger":"auto","preTokens":$spent}
c0 "type":"user","message":{"role":"user","content":"$text"},"isVisibleInTranscriptOnly":true,
    "isCompactSummary":true"#;

pub const HEAD: &str = r#"{"parentUuid":$parent,"isSidechain":$side,$agent"#;
pub const IDENTITY: &str = r#","uuid":"$uuid","timestamp":"$timeZ""#;
pub const PLACE: &str = concat!(
    r#""userType":"external",~"entrypoint":"cli",~"cwd":"$cwd","sessionId":"$session","#,
    r#""version":"$version","gitBranch":"main""#
);
