//! Adds a member to an object of a JSON file and takes it out again; every other byte stays, comments too.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::Edited;

type Outcome = Result<Option<Edited>, String>;

/// Sets `list.name`; none if it has this value already.
pub fn set(text: &str, list: &str, name: &str, value: &Value) -> Outcome {
    let mut text = text.to_owned();
    if text.trim().is_empty() {
        text = "{}\n".to_owned();
    }
    let plain = without_comments(&text)?;
    let document = Object::at(&plain, 0).ok_or("it is no JSON object")?;
    let unit = document.unit(&plain);
    let Some(member) = document.member(list) else {
        let inner = Value::Object([(name.to_owned(), value.clone())].into_iter().collect());
        let (at, insertion, added) = document.insertion(&plain, list, &inner, &unit, "");
        text.replace_range(at, &insertion);
        return checked(Edited { text, removed: Vec::new(), added, made_list: true });
    };
    let servers = Object::at(&plain, member.value.start).ok_or("its list of servers is no object")?;
    if let Some(known) = servers.member(name) {
        if serde_json::from_str::<Value>(&plain[known.value.clone()]).is_ok_and(|known| known == *value) {
            return Ok(None);
        }
        let indent = line_indent(&plain, known.key);
        let removed = lines(&format!("\"{name}\": {}", &text[known.value.clone()]));
        let written =
            if servers.is_multiline(&plain) { pretty(value, &unit, &indent) } else { value.to_string() };
        let added = lines(&format!("\"{name}\": {written}"));
        text.replace_range(known.value.clone(), &written);
        return checked(Edited { text, removed, added, made_list: false });
    }
    let indent = line_indent(&plain, member.key);
    let (at, insertion, added) = servers.insertion(&plain, name, value, &unit, &indent);
    text.replace_range(at, &insertion);
    checked(Edited { text, removed: Vec::new(), added, made_list: false })
}

/// Removes `list.name`, and the list too if it is empty then and was made for it.
pub fn remove(text: &str, list: &str, name: &str, with_list: bool) -> Outcome {
    let plain = without_comments(text)?;
    let document = Object::at(&plain, 0).ok_or("it is no JSON object")?;
    let Some(member) = document.member(list) else { return Ok(None) };
    let Some(servers) = Object::at(&plain, member.value.start) else { return Ok(None) };
    let Some(known) = servers.member(name) else { return Ok(None) };
    let removed = lines(&format!("\"{name}\": {}", &text[known.value.clone()]));
    let range =
        if with_list && servers.members.len() == 1 { document.removal(list) } else { servers.removal(name) };
    let mut text = text.to_owned();
    text.replace_range(range.unwrap_or_default(), "");
    checked(Edited { text, removed, added: Vec::new(), made_list: false })
}

/// An edit that makes a file unreadable is not made.
fn checked(edited: Edited) -> Outcome {
    without_comments(&edited.text)?;
    Ok(Some(edited))
}

/// The text with spaces instead of comments, if it is JSON then. Errors name a place, no content.
fn without_comments(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('\u{feff}').map_or_else(|| text.to_owned(), |rest| format!("   {rest}"));
    let mut bytes = text.clone().into_bytes();
    let (mut at, mut in_string) = (0, false);
    while at < bytes.len() {
        match (in_string, bytes[at], bytes.get(at + 1)) {
            (true, b'\\', _) => at += 1,
            (_, b'"', _) => in_string = !in_string,
            (false, b'/', Some(b'/' | b'*')) => {
                let is_line = bytes[at + 1] == b'/';
                let rest = &bytes[at..];
                let length = if is_line {
                    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
                } else {
                    rest.windows(2).skip(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 4)
                };
                for byte in &mut bytes[at..at + length] {
                    *byte = if *byte == b'\n' { b'\n' } else { b' ' };
                }
                at += length.max(1) - 1;
            }
            _ => {}
        }
        at += 1;
    }
    let plain = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    serde_json::from_str::<IgnoredAny>(&plain)
        .map_err(|error| format!("it is not JSON (line {}, column {})", error.line(), error.column()))?;
    Ok(plain)
}

struct Member {
    name: String,
    /// Where its name starts.
    key: usize,
    value: Range<usize>,
}

/// An object of a text that is known to be JSON.
struct Object {
    /// From brace to brace.
    braces: Range<usize>,
    members: Vec<Member>,
}

impl Object {
    fn at(text: &str, at: usize) -> Option<Object> {
        let bytes = text.as_bytes();
        let start = skip_space(bytes, at);
        if bytes.get(start) != Some(&b'{') {
            return None;
        }
        let mut members = Vec::new();
        let mut at = skip_space(bytes, start + 1);
        while bytes.get(at) == Some(&b'"') {
            let key = at;
            let end = skip_value(bytes, key)?;
            let name = serde_json::from_str(&text[key..end]).ok()?;
            let value = skip_space(bytes, skip_space(bytes, end) + 1);
            let end = skip_value(bytes, value)?;
            members.push(Member { name, key, value: value..end });
            at = skip_space(bytes, end);
            if bytes.get(at) == Some(&b',') {
                at = skip_space(bytes, at + 1);
            }
        }
        Some(Object { braces: start..at + 1, members })
    }

    /// The last one of this name counts, as for the client.
    fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().rev().find(|member| member.name == name)
    }

    fn is_multiline(&self, text: &str) -> bool {
        text[self.braces.clone()].contains('\n')
    }

    /// What its members are indented with.
    fn unit(&self, text: &str) -> String {
        let first = self.members.first().map(|member| line_indent(text, member.key));
        first.filter(|indent| !indent.is_empty()).unwrap_or_else(|| "  ".to_owned())
    }

    /// What to write where for a new last member, and its lines. `outer` is the indentation of the object's own line.
    fn insertion(
        &self,
        text: &str,
        name: &str,
        value: &Value,
        unit: &str,
        outer: &str,
    ) -> (Range<usize>, String, Vec<String>) {
        let name = Value::from(name);
        let indent = match self.members.last() {
            Some(last) if self.is_multiline(text) => line_indent(text, last.key),
            _ => format!("{outer}{unit}"),
        };
        let written = format!("{name}: {}", pretty(value, unit, &indent));
        let added = lines(&written);
        match self.members.last() {
            Some(last) if self.is_multiline(text) => {
                (last.value.end..last.value.end, format!(",\n{indent}{written}"), added)
            }
            Some(last) => (last.value.end..last.value.end, format!(", {name}: {value}"), added),
            None => {
                let inside = self.braces.start + 1..self.braces.end - 1;
                (inside, format!("\n{indent}{written}\n{outer}"), added)
            }
        }
    }

    /// What to delete for a member, with the comma that it needs no more.
    fn removal(&self, name: &str) -> Option<Range<usize>> {
        let at = self.members.iter().rposition(|member| member.name == name)?;
        let member = &self.members[at];
        Some(match (at.checked_sub(1).map(|before| &self.members[before]), self.members.get(at + 1)) {
            (Some(before), None) => before.value.end..member.value.end,
            (_, Some(after)) => member.key..after.key,
            (None, None) => self.braces.start + 1..self.braces.end - 1,
        })
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The end of the value that starts here.
fn skip_value(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth, mut in_string) = (start, 0_usize, false);
    while let Some(byte) = bytes.get(at) {
        match (in_string, byte) {
            (true, b'\\') => at += 1,
            (true, b'"') | (false, b']' | b'}') => {
                if !in_string && depth == 0 {
                    return Some(at);
                }
                depth -= usize::from(!in_string);
                in_string = false;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            (false, b'"') => in_string = true,
            (false, b'[' | b'{') => depth += 1,
            (false, b',' | b':' | b' ' | b'\n' | b'\r' | b'\t') if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
    (depth == 0 && !in_string).then_some(at)
}

/// The white space that the line of this place starts with.
fn line_indent(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..at].chars().take_while(|letter| matches!(letter, ' ' | '\t')).collect()
}

fn pretty(value: &Value, unit: &str, indent: &str) -> String {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let inner = format!("{indent}{unit}");
            let fields = fields.iter().map(|(name, field)| {
                format!("{inner}{}: {}", Value::from(name.as_str()), pretty(field, unit, &inner))
            });
            format!("{{\n{}\n{indent}}}", fields.collect::<Vec<_>>().join(",\n"))
        }
        other => other.to_string(),
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry() -> Value {
        json!({"command": "/bin/annals", "args": ["mcp"]})
    }

    /// What was installed can be removed, and then the file is what it was, byte for byte.
    #[test]
    fn removing_undoes_installing_byte_for_byte() {
        let files = [
            "{}",
            "{}\n",
            "{\n  \"a\": 1\n}\n",
            "{\"a\":1,\"mcpServers\":{\"other\":{\"command\":\"x\"}},\"z\":[1,2]}",
            "{\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\"} // mine\n\t},\n\t\"b\": \"}{,\\\"\"\n}",
            "{\n  // a comment with \" and {\n  \"a\": \"é\", /* more */\n  \"mcpServers\": {}\n}\n",
            "{ \"projects\": {\"/w\": {\"mcpServers\": {\"annals\": 1}}}, \"oauth\": \"sk-secret\" }\n",
            "\u{feff}{\r\n    \"mcpServers\": {\r\n        \"o\": {}\r\n    }\r\n}\r\n",
        ];
        for before in files {
            let installed = set(before, "mcpServers", "annals", &entry()).unwrap().unwrap();
            let plain = without_comments(&installed.text).unwrap();
            let value: Value = serde_json::from_str(plain.trim_start()).unwrap();
            assert_eq!(value["mcpServers"]["annals"], entry(), "{}", installed.text);
            assert!(!installed.added.join("\n").contains("sk-secret"));
            assert_eq!(set(&installed.text, "mcpServers", "annals", &entry()), Ok(None), "{before}");
            let other = json!({"command": "/other", "args": []});
            let changed = set(&installed.text, "mcpServers", "annals", &other).unwrap().unwrap();
            assert!(changed.removed.join("").contains("/bin/annals"));
            let again = set(&changed.text, "mcpServers", "annals", &entry()).unwrap().unwrap();
            for text in [installed.text, again.text] {
                let removed = remove(&text, "mcpServers", "annals", installed.made_list).unwrap().unwrap();
                assert_eq!(removed.text, before);
            }
            assert_eq!(remove(before, "mcpServers", "annals", false), Ok(None));
        }
    }

    #[test]
    fn an_entry_in_the_middle_can_be_removed() {
        let text = "{\"mcpServers\": {\"a\": 1, \"annals\": {}, \"b\": 2}}";
        let removed = remove(text, "mcpServers", "annals", true).unwrap().unwrap();
        assert_eq!(removed.text, "{\"mcpServers\": {\"a\": 1, \"b\": 2}}");
    }

    #[test]
    fn what_is_no_json_is_refused_without_its_content() {
        for text in [
            "{\"key\": \"sk-secret\",}",
            "[1]",
            "sk-secret",
            "{\"mcpServers\": [\"sk-secret\"]}",
            "{\"a\": /* ",
        ] {
            let refused = set(text, "mcpServers", "annals", &entry()).unwrap_err();
            assert!(!refused.contains("sk-secret"), "{refused}");
        }
    }
}
