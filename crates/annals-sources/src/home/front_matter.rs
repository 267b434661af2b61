//! Front matter of Markdown files: `---`, names and values, `---`, then the body. Tolerant, because people write it.

use serde_json::{Map, Value};

/// Fields and body. A file without front matter is all body; what is not understood stays as text.
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
            return (fields(&after.1[..position]), body.trim_start_matches(['\r', '\n']));
        }
        position += line.len();
    }
    (Map::new(), text)
}

fn fields(text: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#', '-']))
        else {
            continue;
        };
        let mut below = Vec::new();
        while let Some(next) =
            lines.next_if(|next| next.starts_with([' ', '\t', '-']) || next.trim().is_empty())
        {
            below.push(next);
        }
        fields.insert(name.trim().to_owned(), field_value(value.trim(), &below));
    }
    fields
}

fn field_value(value: &str, below: &[&str]) -> Value {
    let inner: Vec<&str> = below.iter().map(|line| line.trim()).collect();
    if value.is_empty() && inner.iter().any(|line| line.starts_with("- ")) {
        let items = inner.iter().filter_map(|line| line.strip_prefix("- ")).map(|item| plain(item.trim()));
        return Value::Array(items.collect());
    }
    match value.chars().next() {
        // Block scalars: folded into one line, or kept line by line.
        Some('>') => Value::from(inner.join(" ").trim()),
        Some('|') => Value::from(inner.join("\n").trim_end()),
        None if !inner.is_empty() => Value::from(inner.join("\n").trim_end()),
        _ => plain(value),
    }
}

fn plain(value: &str) -> Value {
    let quoted = |quote: char| value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote);
    if quoted('"') || quoted('\'') {
        return Value::from(&value[1..value.len() - 1]);
    }
    match value {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "" | "null" | "~" => Value::Null,
        text => Value::from(text),
    }
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
        assert_eq!(fields["argument-hint"], "[name]");
        assert_eq!(body, "Body --- here\n");
    }

    #[test]
    fn files_without_it_are_all_body() {
        for text in ["plain", "---\nnever closed: yes\n", "--- not alone\nx\n---\n", ""] {
            assert_eq!(split(text), (serde_json::Map::new(), text));
        }
    }
}
