//! The input of a call: its tool, its kind, its command without the shell around it.

use crate::home::title::in_a_line;
use crate::json::{Json, Object};
use annals_core::CallKind;

/// The tool that prints lines of a file, each with its number.
pub const READ_FILE: &str = "read_file";

/// What a call asks for.
pub struct ToolRequest {
    pub name: String,
    pub kind: CallKind,
    pub title: String,
    pub workdir: Option<String>,
    /// Text that may carry a patch.
    pub body: String,
}

impl ToolRequest {
    pub fn read(kind: &str, payload: &Object<'_>) -> ToolRequest {
        let name = payload.get_text("name").unwrap_or_default().into_owned();
        let plain = |name: &str, kind, title: String| ToolRequest {
            name: name.into(),
            kind,
            title: in_a_line(&title),
            workdir: None,
            body: String::new(),
        };
        match kind {
            "web_search_call" => {
                let action = payload.get("action");
                let word = |name: &str| action.and_then(|action| action.get_text(name));
                let title = word("query").or_else(|| word("url")).unwrap_or_default().into_owned();
                plain("web_search", CallKind::Web, title)
            }
            "tool_search_call" => {
                let query = payload.get("arguments").and_then(|arguments| arguments.get_text("query"));
                plain("tool_search", CallKind::Search, query.unwrap_or_default().into_owned())
            }
            "image_generation_call" => {
                let prompt = payload.get_text("revised_prompt").unwrap_or_default();
                plain("image_generation", CallKind::Function, prompt.into_owned())
            }
            "local_shell_call" => {
                let action = payload.get("action");
                let command = action.map(|action| command_of(&action.object())).unwrap_or_default();
                let workdir = action.and_then(|action| action.get_text("working_directory"));
                ToolRequest {
                    name: "local_shell".into(),
                    kind: CallKind::Shell,
                    title: in_a_line(&command),
                    workdir: workdir.map(|path| path.into_owned()),
                    body: command,
                }
            }
            "custom_tool_call" => {
                let body = payload.get_text("input").unwrap_or_default().into_owned();
                let kind = if name == "exec" { CallKind::Script } else { CallKind::Function };
                ToolRequest { name, kind, title: in_a_line(&body), workdir: None, body }
            }
            _ => ToolRequest::function(name, payload),
        }
    }

    /// A function call's arguments are JSON in a string, and may be invalid.
    fn function(name: String, payload: &Object<'_>) -> ToolRequest {
        let text = payload.get_text("arguments").unwrap_or_default();
        let arguments = Json::parse(text.as_bytes());
        let word = |name: &str| arguments.and_then(|arguments| arguments.get_text(name));
        let namespace = payload.get_text("namespace").filter(|namespace| namespace.starts_with("mcp__"));
        let (kind, body) = match (name.as_str(), arguments) {
            (
                "shell" | "container.exec" | "shell_command" | "exec_command" | "local_shell",
                Some(arguments),
            ) => (CallKind::Shell, command_of(&arguments.object())),
            ("apply_patch", Some(_)) => (CallKind::Edit, word("input").unwrap_or_default().into_owned()),
            ("spawn_agent" | "wait_agent" | "send_input" | "close_agent" | "resume_agent", _) => {
                (CallKind::Agent, word("message").unwrap_or_default().into_owned())
            }
            (READ_FILE, _) => (CallKind::Read, word("file_path").unwrap_or_default().into_owned()),
            ("view_image", _) => (CallKind::Read, word("path").unwrap_or_default().into_owned()),
            _ if namespace.is_some() => (CallKind::Mcp, String::new()),
            _ => (CallKind::Function, String::new()),
        };
        let title = if body.is_empty() { text.as_ref() } else { &body };
        let workdir = word("workdir").or_else(|| word("cwd")).map(|path| path.into_owned());
        let title = in_a_line(title);
        let name = match namespace {
            Some(namespace) => format!("{namespace}__{name}"),
            None => name,
        };
        ToolRequest { name, kind, title, workdir, body }
    }
}

/// The command line of `{cmd}`, `{command: "…"}` or `{command: […]}`, without the shell around it.
pub fn command_of(arguments: &Object<'_>) -> String {
    let Some(command) = arguments.get("cmd").or_else(|| arguments.get("command")) else {
        return String::new();
    };
    if let Some(text) = command.text() {
        return text.into_owned();
    }
    let words: Vec<_> = command.items().filter_map(Json::text).collect();
    match words.as_slice() {
        [shell, flag, script] if flag.starts_with('-') && flag.ends_with('c') && is_shell(shell) => {
            script.clone().into_owned()
        }
        words => words.join(" "),
    }
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("bash" | "sh" | "zsh" | "dash" | "fish" | "ash"))
}
