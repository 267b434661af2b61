//! Adds a table to a TOML file and takes it out again; every other byte stays.

use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::Edited;

type Outcome = Result<Option<Edited>, String>;

/// Sets `[list.name]`; none if it has these values already.
pub fn set(text: &str, list: &str, name: &str, command: &str, arguments: &[String]) -> Outcome {
    let mut document = parse(text)?;
    let made_list = document.get(list).is_none();
    let block = block(list, name, command, arguments);
    let added: Vec<String> = block.trim().lines().map(str::to_owned).collect();
    let Some(known) = document.get(list).and_then(|servers| servers.get(name)) else {
        let is_inline = document.get(list).is_some_and(Item::is_inline_table);
        if !is_inline {
            // Below everything else, where it changes nothing.
            let text = format!("{text}{block}");
            parse(&text)?;
            return Ok(Some(Edited { text, removed: Vec::new(), added, made_list }));
        }
        fill(&mut document[list][name], command, arguments);
        return Ok(Some(Edited { text: document.to_string(), removed: Vec::new(), added, made_list }));
    };
    let texts = |item: Option<&Item>| -> Vec<String> {
        let items = item.and_then(Item::as_array).into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    if known.get("command").and_then(Item::as_str) == Some(command) && texts(known.get("args")) == arguments {
        return Ok(None);
    }
    let removed = known.to_string().trim().lines().map(str::to_owned).collect();
    let known = &mut document[list][name];
    known["command"] = value(command);
    known["args"] = value(arguments.iter().collect::<Array>());
    Ok(Some(Edited { text: document.to_string(), removed, added, made_list }))
}

/// Removes `[list.name]`.
pub fn remove(text: &str, list: &str, name: &str) -> Outcome {
    let mut document = parse(text)?;
    let Some(known) = document.get(list).and_then(|servers| servers.get(name)) else { return Ok(None) };
    let texts = |key: &str| known.get(key).map(|item| item.to_string().trim().to_owned()).unwrap_or_default();
    let arguments = known.get("args").and_then(Item::as_array).into_iter().flatten();
    let arguments: Vec<String> = arguments.filter_map(|item| item.as_str().map(str::to_owned)).collect();
    let command = known.get("command").and_then(Item::as_str).unwrap_or_default();
    let own = block(list, name, command, &arguments);
    let removed = vec![
        format!("[{list}.{name}]"),
        format!("command = {}", texts("command")),
        format!("args = {}", texts("args")),
    ];
    // As it was written, or as someone changed it since.
    let text = match text.find(&own).filter(|at| is_alone(&text[at + own.len()..])) {
        Some(at) => format!("{}{}", &text[..at], &text[at + own.len()..]),
        None => {
            if let Some(servers) = document.get_mut(list).and_then(Item::as_table_like_mut) {
                servers.remove(name);
            }
            document.to_string()
        }
    };
    parse(&text)?;
    Ok(Some(Edited { text, removed, added: Vec::new(), made_list: false }))
}

/// What follows belongs to another table.
fn is_alone(rest: &str) -> bool {
    let next = rest.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    next.is_none_or(|line| line.starts_with('['))
}

fn block(list: &str, name: &str, command: &str, arguments: &[String]) -> String {
    let mut table = Table::new();
    table["command"] = value(command);
    table["args"] = value(arguments.iter().collect::<Array>());
    format!("\n[{list}.{name}]\n{table}")
}

fn fill(item: &mut Item, command: &str, arguments: &[String]) {
    let mut table = toml_edit::InlineTable::new();
    table.insert("command", command.into());
    table.insert("args", arguments.iter().collect::<Array>().into());
    *item = value(table);
}

/// Errors name a line, no content.
fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse::<DocumentMut>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        format!("it is not TOML (line {line})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(text: &str) -> Edited {
        set(text, "mcp_servers", "annals", "/bin/annals", &["mcp".to_owned()]).unwrap().unwrap()
    }

    #[test]
    fn removing_undoes_installing_byte_for_byte() {
        let files = [
            "",
            "model = \"m\"",
            "model = 'm' # mine\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n# the end\n",
            "[mcp_servers.other]\ncommand = \"x\"\n",
            "[mcp_servers]\n[mcp_servers.other]\ncommand = \"x\"\n\n[z]\na = 1\r\n",
        ];
        for before in files {
            let installed = install(before);
            let document: DocumentMut = installed.text.parse().unwrap();
            assert_eq!(document["mcp_servers"]["annals"]["command"].as_str(), Some("/bin/annals"));
            assert_eq!(
                set(&installed.text, "mcp_servers", "annals", "/bin/annals", &["mcp".to_owned()]),
                Ok(None)
            );
            let removed = remove(&installed.text, "mcp_servers", "annals").unwrap().unwrap();
            assert_eq!(removed.text, before);
            assert_eq!(remove(before, "mcp_servers", "annals"), Ok(None));
        }
    }

    #[test]
    fn other_forms_are_changed_too() {
        let inline = "mcp_servers = { other = { command = \"x\" } }\n";
        let installed = install(inline);
        let document: DocumentMut = installed.text.parse().unwrap();
        assert_eq!(document["mcp_servers"]["other"]["command"].as_str(), Some("x"));
        assert_eq!(remove(&installed.text, "mcp_servers", "annals").unwrap().unwrap().text, inline);
        let moved = "[mcp_servers.annals]\ncommand = \"/old\"\nargs = [\"mcp\"]\nenabled = true # mine\n";
        let changed = install(moved);
        assert_eq!(changed.text, moved.replace("/old", "/bin/annals"));
        assert_eq!(remove(&changed.text, "mcp_servers", "annals").unwrap().unwrap().text.trim(), "");
    }

    #[test]
    fn what_is_no_toml_is_refused_without_its_content() {
        for text in ["token = sk-secret", "[a\nx = 1", "mcp_servers = 3\n"] {
            let refused = set(text, "mcp_servers", "annals", "x", &[]).unwrap_err();
            assert!(!refused.contains("sk-secret"), "{refused}");
        }
    }
}
