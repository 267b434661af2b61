//! Environments and headers in settings: what they contain may be a secret of any shape, so a masked copy has none of it.

use toml_edit::{DocumentMut, Item, TableLike, Value};

/// Tables that programs and servers get their secrets from.
const TABLES: [&str; 4] = ["env", "headers", "http_headers", "env_http_headers"];
const MASK: &str = "[masked]";

/// The settings without such values; `None` if it is not clear where they are.
pub fn without_environments(path: &str, text: &str) -> Option<String> {
    if path.ends_with(".toml") {
        return without_toml(text);
    }
    if path.ends_with(".json") || path.ends_with(".jsonc") || text.trim_start().starts_with('{') {
        return without_json(text);
    }
    Some(without_yaml(text))
}

fn without_toml(text: &str) -> Option<String> {
    if !TABLES.iter().any(|name| text.contains(name)) {
        return Some(text.to_owned());
    }
    let mut document: DocumentMut = text.parse().ok()?;
    mask_table(document.as_table_mut(), Inside::No);
    Some(document.to_string())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Yes,
    No,
}

fn mask_table(table: &mut dyn TableLike, inside: Inside) {
    for (name, item) in table.iter_mut() {
        let inside = if TABLES.contains(&name.get()) { Inside::Yes } else { inside };
        mask_item(item, inside);
    }
}

fn mask_item(item: &mut Item, inside: Inside) {
    match item {
        Item::None => {}
        Item::Table(table) => mask_table(table, inside),
        Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|table| mask_table(table, inside)),
        Item::Value(value) => mask_value(value, inside),
    }
}

fn mask_value(value: &mut Value, inside: Inside) {
    match value {
        Value::InlineTable(table) => mask_table(table, inside),
        Value::Array(values) => values.iter_mut().for_each(|value| mask_value(value, inside)),
        Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
            if inside == Inside::Yes {
                let decor = value.decor().clone();
                *value = Value::from(MASK);
                *value.decor_mut() = decor;
            }
        }
    }
}

/// JSON, also with comments: strings inside of such an object. Nothing else changes, not even its spaces.
fn without_json(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::with_capacity(text.len()), 0, 0);
    // The depth, the depth of the object that is masked, and the string that may be a name.
    let (mut depth, mut masked_at, mut name): (usize, Option<usize>, Option<&str>) = (0, None, None);
    let mut is_value = false;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at)?;
                if masked_at.is_some() && is_value {
                    out.push_str(&text[copied..at]);
                    out.push_str(&format!("\"{MASK}\""));
                    copied = end;
                }
                name = Some(&text[at + 1..end - 1]).filter(|_| !is_value);
                is_value = false;
                at = end;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += text[at..].find("*/")? + 2;
                continue;
            }
            b':' => is_value = true,
            b'{' | b'[' => {
                depth += 1;
                if masked_at.is_none() && is_value && name.is_some_and(|name| TABLES.contains(&name)) {
                    masked_at = Some(depth);
                }
                // Items of arrays are values.
                is_value = bytes[at] == b'[' && masked_at.is_some();
            }
            b'}' | b']' => {
                if masked_at == Some(depth) {
                    masked_at = None;
                }
                depth = depth.checked_sub(1)?;
                is_value = false;
            }
            b',' => is_value = false,
            _ => {}
        }
        at += 1;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// Where a string that starts here ends.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// YAML, also before a text in Markdown: the lines below such a name that are further in.
fn without_yaml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start_matches([' ', '-']).len();
        let is_blank = content.trim().is_empty();
        if within.is_some_and(|outer| !is_blank && indent <= outer) {
            within = None;
        }
        let (name, value) = content.split_once(':').unwrap_or((content, ""));
        let is_table = TABLES.contains(&name.trim_start_matches([' ', '-']).trim_matches(['"', '\'', ' ']));
        match within {
            Some(_) if !is_blank => {
                let start = if value.trim().is_empty() && content.contains(':') {
                    content
                } else {
                    &content[..indent]
                };
                out.push_str(start);
                if start.len() < content.len() {
                    out.push_str(&if content.contains(": ") {
                        format!("{}: {MASK}", name.trim_start())
                    } else {
                        MASK.to_owned()
                    });
                }
            }
            _ if is_table && value.trim_start().starts_with('{') => out.push_str(&format!("{name}: {MASK}")),
            Some(_) | None => out.push_str(content),
        }
        if is_table && value.trim().is_empty() && within.is_none() {
            within = Some(indent);
        }
        out.push_str(&line[content.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_environments;

    #[test]
    fn values_of_environments_and_headers_are_masked_and_nothing_else() {
        let toml = "model = \"m\" # mine\n[mcp_servers.a]\nenv = { A = \"x1y2\", B = 7 }\nargs = [\"-v\"]\n[mcp_servers.a.http_headers]\nC = \"x1y2\"\n";
        let json = "{ \"model\": \"env\", // env: {\n \"env\": {\"A\" : \"x1y2\\\"}\", \"B\": [\"x1y2\"], \"C\": {\"D\": \"x1y2\"}},\n\"n\": \"kept\", \"a\": [\"env\", \"kept\"]}";
        let yaml = "---\nname: kept\nservers:\n  - env:\n      A: x1y2\n      B: >\n        x1y2\n    args: kept\nheaders: {A: x1y2}\n---\nkept: text\n";
        for (path, text, kept) in [
            ("config.toml", toml, "# mine"),
            ("settings.json", json, "\"kept\", \"a\": [\"env\", \"kept\"]}"),
            ("a.md", yaml, "kept: text"),
        ] {
            let masked = without_environments(path, text).unwrap();
            assert!(
                !masked.contains("x1y2") && masked.contains("[masked]") && masked.contains(kept),
                "{masked}"
            );
            assert_eq!(masked.matches("kept").count(), text.matches("kept").count(), "{masked}");
            assert_eq!(masked.lines().count(), text.lines().count(), "{masked}");
        }
        for (path, text) in [
            ("a.toml", "a = \"b\"\n"),
            ("a.json", "{\"a\": [1, {\"b\": \"c\"}]}"),
            ("a.md", "# env\n\nenv is: good\n"),
        ] {
            assert_eq!(without_environments(path, text).as_deref(), Some(text));
        }
        for (path, broken) in [("a.toml", "env = {"), ("a.json", "{\"env\": \"x"), ("a.json", "}")] {
            assert_eq!(without_environments(path, broken), None, "{broken}");
        }
    }
}
