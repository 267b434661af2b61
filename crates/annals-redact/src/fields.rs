//! Secrets in JSON documents: a string is a secret by its own shape, or by the field, flag or header before it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Redactor, SecretMatch};

/// Longer texts are not names.
const LONGEST_NAME: usize = 100;
/// Longer documents are not read as a text as well.
const LARGE: usize = 4 << 10;
/// Longer strings of them are not read for what surrounds them.
const LONG: usize = 1 << 10;
/// Strings that are replaced one by one.
const FEW: usize = 16;
/// Fields that name the value beside them, as in `{"name": "DB_PASSWORD", "value": …}`.
const NAMES: [&str; 4] = ["name", "key", "header", "variable"];

/// Visits the fields of an object, each with the text that identifies its value.
pub fn each_field<'v>(fields: &'v Map<String, Value>, mut visit: impl FnMut(&'v str, &str, &'v Value)) {
    let name_field = NAMES.into_iter().find_map(|name| fields.get(name)?.as_str());
    let name_field = name_field.filter(|name| name.len() <= LONGEST_NAME);
    for (name, value) in fields {
        let identifying = name_field.filter(|_| name == "value").unwrap_or(name);
        visit(name, &field_before(identifying), value);
    }
}

/// Visits the items of an array, each with the text that identifies it: a flag, the name of a pair such as
/// `["X-Api-Key", …]`, or what identifies the array.
pub fn each_item<'v>(
    items: &'v [Value],
    before: Option<&str>,
    mut visit: impl FnMut(Option<&str>, &'v Value),
) {
    let name = match items {
        [Value::String(name), Value::String(_)] if is_header(name) => Some(field_before(name)),
        _ => None,
    };
    let mut flag: Option<String> = None;
    for (item, number) in items.iter().zip(0..) {
        let name = name.as_deref().filter(|_| number == 1);
        visit(flag.as_deref().or(name).or(before), item);
        flag = item.as_str().filter(|text| is_flag(text)).map(|text| format!("{text} "));
    }
}

impl Redactor {
    /// Emits every secret of a string that follows `before`.
    pub fn each_after(&self, before: Option<&str>, text: &str, emit: &mut dyn FnMut(SecretMatch)) {
        // A word is a secret only where nothing else can be.
        if is_plain(text) && before.is_none_or(|before| !Redactor::may_name_secret(before)) {
            return;
        }
        let Some(before) = before else { return self.each(text, emit) };
        let quote = if before.ends_with('"') { "\"" } else { "" };
        let mut found = Vec::new();
        self.each(&format!("{before}{text}{quote}"), &mut |secret| found.push(secret));
        let within = before.len()..before.len() + text.len();
        if found.iter().any(|secret| secret.range.start < within.start || secret.range.end > within.end) {
            return self.each(text, emit);
        }
        for mut secret in found {
            secret.range = secret.range.start - before.len()..secret.range.end - before.len();
            emit(secret);
        }
    }

    /// A string that follows `before`, with `mark` instead of its secrets. Borrowed if there are none.
    pub fn replace_after<'t>(
        &self,
        before: Option<&str>,
        text: &'t str,
        mark: &dyn Fn(&SecretMatch) -> String,
    ) -> Cow<'t, str> {
        let mut masked = String::new();
        let mut copied = 0;
        self.each_after(before, text, &mut |found| {
            masked.push_str(&text[copied..found.range.start]);
            masked.push_str(&mark(&found));
            copied = found.range.end;
        });
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        masked.push_str(&text[copied..]);
        Cow::Owned(masked)
    }

    /// Emits the texts of a document as `annals_core::each_text` does, with `mark` instead of their secrets: without the
    /// names of their fields they would no longer be recognised. Returns whether there are any.
    pub fn each_text(
        &self,
        value: &Value,
        before: Option<&str>,
        mark: &dyn Fn(&SecretMatch) -> String,
        emit: &mut dyn FnMut(&str),
    ) -> bool {
        let mut any = false;
        match value {
            Value::String(text) => any = self.each_embedded_text(text, before, mark, emit),
            Value::Array(items) => {
                each_item(items, before, |before, item| any |= self.each_text(item, before, mark, emit));
            }
            Value::Object(fields) => {
                each_field(fields, |_, before, field| any |= self.each_text(field, Some(before), mark, emit));
            }
            Value::Number(number) => emit(&number.to_string()),
            Value::Null | Value::Bool(_) => {}
        }
        any
    }

    /// The same for a text, which may be a document itself.
    pub fn each_embedded_text(
        &self,
        text: &str,
        before: Option<&str>,
        mark: &dyn Fn(&SecretMatch) -> String,
        emit: &mut dyn FnMut(&str),
    ) -> bool {
        let parse = |text: &str| match text.starts_with(['{', '[']) {
            true => serde_json::from_str::<Value>(text).ok(),
            false => None,
        };
        // Most of a large document are long strings. They are read below: reading them twice would take twice as long.
        if let Some(document) = Some(text).filter(|text| text.len() > LARGE).and_then(parse)
            && before.is_none_or(|before| !Redactor::may_name_secret(before))
            && !self.has_secret(&outline(&document).to_string())
        {
            return self.each_text(&document, None, mark, emit);
        }
        let shown = self.replace_after(before, text, mark);
        let any = matches!(shown, Cow::Owned(_));
        match parse(&shown) {
            Some(document) => self.each_text(&document, None, mark, emit) || any,
            None => {
                emit(&shown);
                any
            }
        }
    }

    /// A text with `mark` instead of its secrets, including those that only the structure reveals if it is a document.
    /// Nothing else changes, not even its spaces.
    pub fn replace_in_document<'t>(
        &self,
        text: &'t str,
        mark: &dyn Fn(&SecretMatch) -> String,
    ) -> Cow<'t, str> {
        let shown = self.replace_after(None, text, mark);
        let document = Some(&*shown).filter(|text| text.starts_with(['{', '[']));
        let Some(document) = document.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            return shown;
        };
        let mut found = BTreeMap::new();
        let masked = self.mask_strings(&document, None, mark, &mut found);
        if found.is_empty() {
            return shown;
        }
        let mut text = shown.into_owned();
        for (old, new) in &found {
            // Each replacement reads the whole text, and a string may be written with other escapes.
            if found.len() > FEW || !text.contains(old) {
                return Cow::Owned(masked.to_string());
            }
            text = text.replace(old, new);
        }
        Cow::Owned(text)
    }

    /// The document with masks; `found` gets every string that changed, quoted, before and after.
    fn mask_strings(
        &self,
        value: &Value,
        before: Option<&str>,
        mark: &dyn Fn(&SecretMatch) -> String,
        found: &mut BTreeMap<String, String>,
    ) -> Value {
        match value {
            Value::String(text) => {
                let shown = self.replace_after(before, text, mark);
                let shown = match shown.starts_with(['{', '[']) {
                    true => self.replace_in_document(&shown, mark).into_owned(),
                    false => shown.into_owned(),
                };
                if shown == *text {
                    return value.clone();
                }
                let shown = Value::from(shown);
                found.insert(value.to_string(), shown.to_string());
                shown
            }
            Value::Array(items) => {
                let mut masked = Vec::with_capacity(items.len());
                each_item(items, before, |before, item| {
                    masked.push(self.mask_strings(item, before, mark, found));
                });
                Value::Array(masked)
            }
            Value::Object(fields) => {
                let mut masked = Map::with_capacity(fields.len());
                each_field(fields, |name, before, value| {
                    masked.insert(name.to_owned(), self.mask_strings(value, Some(before), mark, found));
                });
                Value::Object(masked)
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => value.clone(),
        }
    }

    fn has_secret(&self, text: &str) -> bool {
        let mut any = false;
        self.each(text, &mut |_| any = true);
        any
    }
}

/// A document without its long strings: what its fields say about each other.
fn outline(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONG => Value::from(""),
        Value::Array(items) => items.iter().map(outline).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), outline(value))).collect())
        }
        other => other.clone(),
    }
}

/// A word or a few joined words, which no rule takes for a secret: most short fields are like this.
fn is_plain(text: &str) -> bool {
    text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte))
}

fn field_before(name: &str) -> String {
    format!("\"{name}\": \"")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(char::is_whitespace)
}

/// `X-Api-Key` and `DB_PASSWORD`: two other words in a list are two words.
fn is_header(text: &str) -> bool {
    let is_variable = text.contains('_') && !text.contains(char::is_lowercase);
    is_name(text) && (text.contains('-') || is_variable || text.eq_ignore_ascii_case("authorization"))
}

fn is_flag(text: &str) -> bool {
    text.starts_with('-') && is_name(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(value: &Value) -> (Vec<String>, bool) {
        let mut texts = Vec::new();
        let emit = &mut |text: &str| texts.push(text.to_owned());
        let any = Redactor::new([7; 32]).each_text(value, None, &|_| "•".to_owned(), emit);
        (texts, any)
    }

    #[test]
    fn what_only_its_field_reveals_is_masked() {
        let pair = |name: &str, text: &str| vec![name.to_owned(), text.to_owned()];
        for (value, expected) in [
            (json!({"user": "u1", "password": "sunflower"}), pair("u1", "•")),
            (json!(["--password", "sunflower"]), pair("--password", "•")),
            (json!(["X-Api-Key", "abcd-1234"]), pair("X-Api-Key", "•")),
            (json!({"name": "DB_PASSWORD", "value": "sunflower"}), pair("DB_PASSWORD", "•")),
            (json!({"header": "X-Api-Key", "value": "abcd-1234"}), pair("X-Api-Key", "•")),
            (json!({"password": ["sunflower"], "z": "two"}), pair("•", "two")),
            (json!([r#"{"password": "sunflower", "z": "two"}"#]), pair("•", "two")),
            (json!([r#"{"a": ["--token", "abcd1234"]}"#]), pair("--token", "•")),
            (json!([r#"{"a": "b", "args": "{\"password\": \"sunflower\"}"}"#]), pair("b", "•")),
        ] {
            assert_eq!(texts(&value), (expected, true), "{value}");
        }
    }

    #[test]
    fn lists_of_names_are_no_secrets() {
        for value in
            [json!({"required": ["password", "email"]}), json!(["token", "user"]), json!(["a-b", "c"])]
        {
            assert!(!texts(&value).1, "{value}");
        }
    }

    #[test]
    fn documents_keep_their_form() {
        let mask =
            |text: &str| Redactor::new([7; 32]).replace_in_document(text, &|_| "•".to_owned()).into_owned();
        for (text, expected) in [
            ("{ \"args\":  [\"-v\",\\n\"x\"] }", "{ \"args\":  [\"-v\",\\n\"x\"] }"),
            (
                "{\n  \"env\": [ {\"name\": \"DB_PASSWORD\", \"value\": \"sunflower\"} ],\n  \"n\": 1.50\n}",
                "{\n  \"env\": [ {\"name\": \"DB_PASSWORD\", \"value\": \"•\"} ],\n  \"n\": 1.50\n}",
            ),
            ("[[\"X-Api-Key\",  \"abcd-1234\"]]", "[[\"X-Api-Key\",  \"•\"]]"),
            ("no document: a, b", "no document: a, b"),
        ] {
            assert_eq!(mask(text), expected);
        }
        let many: Vec<Value> =
            (0..40).map(|n| json!({"name": "DB_PASSWORD", "value": format!("flower{n}")})).collect();
        assert!(!mask(&Value::from(many).to_string()).contains("flower"));
        let nested = json!({"body": json!([["X-Api-Key", "abcd-1234"]]).to_string()}).to_string();
        assert!(!mask(&nested).contains("abcd-1234"));
        assert_eq!(mask(&mask(&nested)), mask(&nested));
    }

    #[test]
    fn large_documents_are_masked_alike() {
        let padding = "ordinary words of an output\n".repeat(400);
        for inner in [
            json!({"password": "sunflower"}),
            json!({"note": "export DB_PASSWORD=sunflower\nnext"}),
            json!({"long": format!("{padding}DB_PASSWORD=sunflower\n{padding}")}),
            json!({"args": ["--password", "sunflower"], "more": 1}),
            json!({"password": format!("sunflower-{}", "x7".repeat(20))}),
        ] {
            let document = json!({"output": padding, "inner": inner}).to_string();
            let (shown, any) = texts(&Value::from(document));
            assert!(any && !shown.concat().contains("sunflower"), "{inner}");
            assert!(shown.concat().contains(&padding));
        }
    }

    #[test]
    fn other_texts_are_emitted_as_they_are() {
        let value =
            json!({"name": "colour", "value": "red", "n": 7, "args": ["--port", "80", null, "[1, 2]"]});
        let mut plain = Vec::new();
        let emit = &mut |text: &str| plain.push(text.to_owned());
        for text in ["colour", "red", "7", "--port", "80", "1", "2"] {
            emit(text);
        }
        assert_eq!(texts(&value), (plain, false));
    }

    /// The fast path only skips what would not be masked.
    #[test]
    fn plain_words_are_no_secrets() {
        for text in
            ["", "a", "main", "workspace-write", "correct_horse", "abcdefghijklmnopqrs", "---", "a-b-c"]
        {
            assert!(is_plain(text));
            for before in ["token: ", "{\"api_key\": \"", "Authorization: Bearer ", "--token "] {
                let joined = format!("{before}{text}");
                assert_eq!(Redactor::new([7; 32]).mask(&joined), joined);
            }
        }
        assert!(!is_plain("abcdefghijklmnopqrst") && !is_plain("hunter22"));
    }
}
