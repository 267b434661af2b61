//! What is written as markup in texts: calls of tools, their results, and the words of a person among the client's.

use serde_json::{Map, Value};

/// Tools of clients before version 3, which models call with markup in their answers.
const TOOLS: &[&str] = &[
    "execute_command",
    "read_file",
    "write_to_file",
    "replace_in_file",
    "search_files",
    "list_files",
    "list_code_definition_names",
    "browser_action",
    "web_fetch",
    "web_search",
    "use_mcp_tool",
    "access_mcp_resource",
    "load_mcp_documentation",
    "use_skill",
    "use_subagents",
    "new_task",
    "new_rule",
    "condense",
    "summarize_task",
    "report_bug",
    "generate_explanation",
];

/// Tools whose argument is the answer itself, and that argument.
const ANSWERS: &[(&str, &str)] = &[
    ("attempt_completion", "result"),
    ("ask_followup_question", "question"),
    ("plan_mode_respond", "response"),
];

/// Parameters that may contain markup of their own.
const LONG: &[&str] = &["content", "diff", "result", "arguments", "response"];

/// Around the words of a person.
const WORDS: &[&str] = &["task", "feedback", "user_message", "answer", "new_instructions"];

/// How texts begin that the client adds, in lower case.
const INJECTED: &[&str] = &[
    "<environment_details>",
    "<mode_notice>",
    "<explicit_instructions",
    "<system-reminder>",
    "# task_progress",
    "# todo list",
    "[error]",
    "[task resumption]",
    "[[note]",
    "(this is an automated message",
];

/// A call in a text, and what stands before it.
#[derive(Debug, PartialEq)]
pub struct MarkedCall<'t> {
    pub before: &'t str,
    pub name: &'t str,
    pub input: Value,
}

/// The first call in an answer.
pub fn call_in(text: &str) -> Option<MarkedCall<'_>> {
    marked(text, TOOLS.iter().copied())
}

/// The answer itself, if it is the argument of a tool.
pub fn answer_in(text: &str) -> Option<(&str, String)> {
    let found = marked(text, ANSWERS.iter().map(|(name, _)| *name))?;
    let (_, field) = ANSWERS.iter().find(|(name, _)| *name == found.name)?;
    let answer = found.input.get(field)?.as_str()?;
    Some((found.before, answer.to_owned()))
}

fn marked<'t>(text: &'t str, names: impl Iterator<Item = &'static str>) -> Option<MarkedCall<'t>> {
    let found = names.filter_map(|name| Some((text.find(&format!("<{name}>"))?, name)));
    let (at, name) = found.min()?;
    let inner = &text[at + name.len() + 2..];
    let inner = inner.rfind(&format!("</{name}>")).map_or(inner, |end| &inner[..end]);
    let name = &text[at + 1..=at + name.len()];
    Some(MarkedCall { before: text[..at].trim_end(), name, input: Value::Object(parameters(inner)) })
}

fn parameters(mut rest: &str) -> Map<String, Value> {
    let mut found = Map::new();
    while let Some((_, opened)) = rest.split_once('<') {
        let Some((tag, behind)) = opened.split_once('>') else { break };
        let is_tag = !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let close = format!("</{tag}>");
        let end = if LONG.contains(&tag) { behind.rfind(&close) } else { behind.find(&close) };
        let Some(end) = end.filter(|_| is_tag) else {
            rest = opened;
            continue;
        };
        let value = &behind[..end];
        let value = value.strip_prefix('\n').unwrap_or(value);
        // What is written to a file ends with its own newline.
        let value = if tag == "content" { value } else { value.strip_suffix('\n').unwrap_or(value) };
        found.insert(tag.to_owned(), Value::from(value));
        rest = &behind[end + close.len()..];
    }
    found
}

/// `[name for 'title'] Result:` and what follows.
pub fn result_in(text: &str) -> Option<(&str, &str)> {
    let (name, output) = answered(text)?;
    TOOLS.contains(&name).then_some((name, output))
}

/// Of any tool, also of those whose argument is the answer.
fn answered(text: &str) -> Option<(&str, &str)> {
    let head = text.strip_prefix('[')?;
    let end = head.find(|c: char| !(c.is_ascii_lowercase() || c == '_'))?;
    let name = &head[..end];
    let is_tool = TOOLS.contains(&name) || ANSWERS.iter().any(|(answer, _)| *answer == name);
    let (_, output) = head.split_once("] Result:").filter(|_| is_tool)?;
    Some((name, output.strip_prefix('\n').unwrap_or(output)))
}

/// The words of a person in a text: what is in the client's markup, or all of it. None if the client wrote it.
pub fn words_in(text: &str) -> Option<&str> {
    if let Some(words) = input_in(text) {
        return Some(words);
    }
    let start: String = text.trim_start().chars().take(40).flat_map(char::to_lowercase).collect();
    if INJECTED.iter().any(|injected| start.starts_with(injected)) {
        return None;
    }
    match answered(text) {
        // What a tool found may look like anything; a person only speaks after refusing it.
        Some((name, output)) if TOOLS.contains(&name) => {
            output.starts_with("The user ").then(|| tagged(output, &["feedback"])).flatten()
        }
        Some((_, output)) => tagged(output, WORDS),
        None => tagged(text, WORDS).or_else(|| Some(text.trim()).filter(|text| !text.is_empty())),
    }
}

fn tagged<'t>(text: &'t str, tags: &[&str]) -> Option<&'t str> {
    tags.iter().find_map(|tag| {
        let (_, inner) = text.split_once(&format!("<{tag}>"))?;
        let close = format!("</{tag}>");
        Some(inner.rfind(&close).map_or(inner, |end| &inner[..end]).trim())
    })
}

/// `<user_input mode="…">words</user_input>`
fn input_in(text: &str) -> Option<&str> {
    let (_, tag) = text.split_once("<user_input")?;
    let (_, inner) = tag.split_once('>')?;
    Some(inner.rfind("</user_input>").map_or(inner, |end| &inner[..end]).trim())
}

#[cfg(test)]
mod tests {
    use super::{answer_in, call_in, result_in, words_in};

    #[test]
    fn calls_are_read_out_of_answers() {
        let text = "I write it.\n\n<write_to_file>\n<path>a.html</path>\n<content>\n<p>Oil</p>\n</content>\n</write_to_file>";
        let call = call_in(text).expect("a call");
        assert_eq!((call.before, call.name), ("I write it.", "write_to_file"));
        assert_eq!(call.input["content"], "<p>Oil</p>\n");
        assert_eq!(call.input["path"], "a.html");
        assert_eq!(call_in("No tools, <b>only</b> words"), None);
        let cut = call_in("<execute_command>\n<command>ls").expect("a call that was cut");
        assert_eq!(cut.input.as_object().map(serde_json::Map::len), Some(0));
    }

    #[test]
    fn the_last_answer_is_the_argument_of_a_tool() {
        let text = "Fine.\n<attempt_completion>\n<result>The dial is oiled.</result>\n</attempt_completion>";
        assert_eq!(answer_in(text), Some(("Fine.", "The dial is oiled.".into())));
    }

    #[test]
    fn results_name_their_tool() {
        assert_eq!(result_in("[read_file for 'a'] Result:\n1 | x"), Some(("read_file", "1 | x")));
        assert_eq!(result_in("[note] Result:\nx"), None);
        assert_eq!(result_in("read it"), None);
    }

    #[test]
    fn words_are_separate_from_what_the_client_adds() {
        assert_eq!(words_in("<task>\nOil it\n</task>"), Some("Oil it"));
        assert_eq!(words_in("<user_input mode=\"act\">Oil it</user_input>"), Some("Oil it"));
        assert_eq!(words_in("The user said:\n<feedback>\nNo\n</feedback>"), Some("No"));
        assert_eq!(words_in("<environment_details>\n# Files"), None);
        assert_eq!(words_in("\n# task_progress RECOMMENDED"), None);
        assert_eq!(words_in("Oil it"), Some("Oil it"));
        let text = "[attempt_completion] Result:\nThe user said:\n<feedback>\nGrease it\n</feedback>";
        assert_eq!(words_in(text), Some("Grease it"));
        assert_eq!(words_in("[read_file for 'a'] Result:\n<task>none</task>"), None);
        let refused =
            "[read_file for 'a'] Result:\nThe user denied this operation.\n<feedback>\nNo\n</feedback>";
        assert_eq!(words_in(refused), Some("No"));
    }
}
