//! Where a client keeps what its agents may use: its list of MCP servers, and its folder of skills.

use std::path::PathBuf;

use serde_json::Value;

/// What `annals mcp install` and `annals skill install` change. Nothing here opens a file.
#[derive(Debug, Clone, Default)]
pub struct AgentClient {
    pub servers: Option<ServerList>,
    /// Each skill has a folder in it.
    pub skills: Option<PathBuf>,
}

/// The file of the client that lists the user's MCP servers.
#[derive(Debug, Clone)]
pub struct ServerList {
    pub file: PathBuf,
    pub form: ServerForm,
    /// It also contains credentials: only what annals adds or removes is ever shown.
    pub holds_credentials: bool,
}

/// How a server is listed.
#[derive(Debug, Clone, Copy)]
pub enum ServerForm {
    /// A field of the document, with an object for each server.
    Json { key: &'static str, entry: fn(&str, &[String]) -> Value },
    /// A table for each server, with `command` and `args`.
    Toml { key: &'static str },
}
