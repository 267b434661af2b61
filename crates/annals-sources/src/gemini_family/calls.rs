//! Tool calls of a chat: call and result are in one record.

use std::borrow::Cow;

use super::files::{is_replace, path_in};
use crate::json::{Json, Object};
use annals_core::CallKind;

/// Before the path of the file with a complete output.
const FULL_OUTPUT: &[&str] = &["For full output see: ", "saved to: "];

/// The fields of arguments that say most, the most telling first.
pub const TITLES: &[&str] = &[
    "command",
    "file_path",
    "absolute_path",
    "pattern",
    "query",
    "url",
    "prompt",
    "objective",
    "title",
    "path",
    "dir_path",
    "name",
    "description",
];

/// The kind of a tool by its name.
pub fn kind_of(name: &str) -> CallKind {
    match name {
        "run_shell_command" => CallKind::Shell,
        "write_file" => CallKind::Edit,
        name if is_replace(name) => CallKind::Edit,
        "read_file" | "read_many_files" | "list_directory" => CallKind::Read,
        "glob" | "grep_search" | "search_file_content" => CallKind::Search,
        "web_fetch" | "google_web_search" | "web_search" => CallKind::Web,
        "invoke_agent" | "delegate_to_agent" | "codebase_investigator" | "agent" | "task" => CallKind::Agent,
        name if name.starts_with("mcp_") => CallKind::Mcp,
        _ => CallKind::Function,
    }
}

/// What the model got back: the output or the error in the response of a result.
pub fn response_text(result: Json<'_>) -> Option<Cow<'_, str>> {
    if let Some(text) = result.text() {
        return Some(text);
    }
    let responses = result.items().filter_map(|part| part.get("functionResponse")?.get("response"));
    let texts: Vec<Cow<'_, str>> = responses
        .filter_map(|response| {
            let value = response.get("output").or_else(|| response.get("error"));
            Some(match value {
                Some(value) if value.is_string() => value.text()?,
                Some(value) => String::from_utf8_lossy(value.bytes()),
                None => String::from_utf8_lossy(response.bytes()),
            })
        })
        .collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(Cow::Owned(many.join("\n"))),
    }
}

/// The exit code in the text of a shell result. Newer clients leave the line out for commands that succeed.
pub fn exit_code(text: &str) -> Option<i64> {
    let code = text.lines().rev().find_map(|line| line.trim().strip_prefix("Exit Code: "));
    match code {
        Some(code) => code.trim().parse().ok(),
        None => {
            let text = text.strip_prefix("<untrusted_context>\n").unwrap_or(text);
            let failed = text.lines().rev().take(8).any(|line| {
                (line.starts_with("Signal: ") || line.starts_with("Error: ")) && !line.ends_with("(none)")
            });
            let is_report = text.starts_with("Output: ") || text.contains("\nOutput: ");
            (is_report && !failed).then_some(0)
        }
    }
}

/// The record with the complete output that a shortened one names, as `stream/key`.
pub fn full_output(text: &str) -> Option<String> {
    let head = text.get(..4_000).unwrap_or(text);
    let rest = FULL_OUTPUT.iter().find_map(|mark| head.split_once(mark))?.1;
    let path = rest.lines().next()?.trim();
    Some(format!("tool_outputs/{}", output_key(path)?))
}

/// The key of a file with a complete output: its name, below the folder of its session if it has one.
pub fn output_key(path: &str) -> Option<String> {
    let mut parts = path.rsplit(['/', '\\']);
    let file = parts.next().filter(|file| !file.is_empty())?;
    let (folder, above) = (parts.next()?, parts.next()?);
    Some(match above {
        "tool-outputs" | "tool-results" => format!("{folder}/{file}"),
        _ => file.to_owned(),
    })
}

/// Absolute paths in the arguments of a call: the working directory may be above one of them.
pub fn paths_in(args: &Object<'_>) -> Option<String> {
    let folder = || args.get_text("dir_path").map(|path| path.into_owned());
    path_in(args)
        .or_else(folder)
        .filter(|path| path.starts_with('/') || path.as_bytes().get(1) == Some(&b':'))
}

#[cfg(test)]
mod tests {
    use super::{exit_code, full_output, response_text};
    use crate::json::Json;

    #[test]
    fn exit_codes_are_in_the_text() {
        assert_eq!(
            exit_code("Command: x\nOutput: 1 failed\nError: (none)\nExit Code: 3\nSignal: (none)"),
            Some(3)
        );
        assert_eq!(
            exit_code("<untrusted_context>\nOutput: fine\nProcess Group PGID: 1\n</untrusted_context>"),
            Some(0)
        );
        assert_eq!(exit_code("Output: x\nSignal: SIGKILL"), None);
        assert_eq!(exit_code("[Operation Cancelled] Reason: User cancelled the operation."), None);
    }

    #[test]
    fn complete_outputs_are_named_by_session_and_file() {
        let text = "Output too large. For full output see: /h/.gemini/tmp/a/tool-outputs/session-1/sh_1.txt\nOutput: x";
        assert_eq!(full_output(text).as_deref(), Some("tool_outputs/session-1/sh_1.txt"));
        let old = "saved to: /h/.gemini/tmp/cb/run_shell_command-1-a.output\nTo read";
        assert_eq!(full_output(old).as_deref(), Some("tool_outputs/run_shell_command-1-a.output"));
        assert_eq!(full_output("Output: x"), None);
    }

    #[test]
    fn results_are_outputs_or_errors() {
        let text =
            |result: &str| response_text(Json::parse(result.as_bytes()).unwrap()).unwrap().into_owned();
        assert_eq!(text(r#"[{"functionResponse":{"response":{"output":"a"}}}]"#), "a");
        assert_eq!(text(r#"[{"functionResponse":{"response":{"error":"b"}}}]"#), "b");
        assert_eq!(text(r#"[{"functionResponse":{"response":{"x":1}}}]"#), r#"{"x":1}"#);
    }
}
