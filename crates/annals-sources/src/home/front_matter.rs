//! Front matter of Markdown files: `---`, YAML, `---`, then the body.

use serde_json::{Map, Value};

use super::yaml;

/// Splits a file into fields and body. A file without front matter is all body; invalid YAML stays as text.
pub fn split(text: &str) -> (Map<String, Value>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(after) = text.strip_prefix("---").and_then(|rest| rest.split_once('\n')) else {
        return (Map::new(), text);
    };
    if !after.0.trim().is_empty() {
        return (Map::new(), text);
    }
    let mut position = 0;
    for line in after.1.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let body = &after.1[position + line.len()..];
            return (yaml::fields(&after.1[..position]), body.trim_start_matches(['\r', '\n']));
        }
        position += line.len();
    }
    (Map::new(), text)
}

#[cfg(test)]
mod tests {
    use super::split;
    use serde_json::json;

    #[test]
    fn fields_and_body_come_apart() {
        let text = "---\nname: shout\ndescription: >\n  Say it\n  loudly\nallowed-tools:\n  - Read\n  - \"Bash(ls:*)\"\n\
            disable: true\nargument-hint: [name]\n---\n\nBody --- here\n";
        let (fields, body) = split(text);
        assert_eq!(fields["name"], "shout");
        assert_eq!(fields["description"], "Say it loudly");
        assert_eq!(fields["allowed-tools"], json!(["Read", "Bash(ls:*)"]));
        assert_eq!(fields["disable"], true);
        assert_eq!(fields["argument-hint"], json!(["name"]));
        assert_eq!(body, "Body --- here\n");
    }

    #[test]
    fn files_without_it_are_all_body() {
        for text in ["plain", "---\nnever closed: yes\n", "--- not alone\nx\n---\n", ""] {
            assert_eq!(split(text), (serde_json::Map::new(), text));
        }
    }
}
