//! The only door for content: raw text becomes shown text, with secrets masked.

use serde_json::Value;

use annals_core::{Raw, Result, Shown, ShownJson, each_embedded_text, each_text};
use annals_redact::{Redactor, SecretMatch, each_field, each_item};
use annals_store::Store;

/// Longer texts are shown as a preview and marked as such.
pub const PREVIEW: usize = 5 * 1024;

pub struct Door {
    redactor: Option<Redactor>,
}

impl Door {
    /// Masks secrets with the key of this archive, so that a secret always has the same mask.
    pub fn masking(store: &Store) -> Result<Door> {
        let Some(stored) = store.setting_or_make("mask_key", || random_bytes().to_vec())? else {
            return Ok(Door::masking_alone());
        };
        let mut key = [0; 32];
        for (to, from) in key.iter_mut().zip(stored) {
            *to = from;
        }
        Ok(Door { redactor: Some(Redactor::new(key)) })
    }

    /// Masks without an archive. The key is the same everywhere, so that the same lines always give the same masks; a
    /// mask has four digits, enough to tell two secrets apart and too few to recover one.
    pub fn masking_alone() -> Door {
        Door { redactor: Some(Redactor::new([0; 32])) }
    }

    /// Masks nothing: for the owner, on this machine, on request.
    pub fn revealing() -> Door {
        Door { redactor: None }
    }

    /// For texts of a run itself, such as a file name in a warning.
    pub fn show(&self, text: &str) -> Shown {
        self.text(text)
    }

    pub fn raw(&self, raw: &Raw) -> Shown {
        self.text(&String::from_utf8_lossy(raw.expose()))
    }

    pub(super) fn text(&self, text: &str) -> Shown {
        match &self.redactor {
            Some(redactor) => Shown::new(redactor.replace_in_document(text, &SecretMatch::to_string)),
            None => Shown::new(text),
        }
    }

    /// The lines of a text. The text is masked as a whole, and every line that a secret extends into has its mask.
    pub(super) fn lines(&self, text: &str) -> Vec<Shown> {
        let mut secrets = Vec::new();
        if let Some(redactor) = &self.redactor {
            redactor.each(text, &mut |found| secrets.push((found.range.clone(), found.to_string())));
        }
        let mut shown = Vec::new();
        let (mut at, mut next) = (0, 0);
        for line in text.split_inclusive('\n') {
            let end = at + line.trim_end_matches(['\n', '\r']).len();
            let (mut masked, mut from) = (String::new(), at);
            while let Some((range, mark)) = secrets.get(next).filter(|(range, _)| range.start < end) {
                masked.push_str(text.get(from..range.start).unwrap_or_default());
                masked.push_str(mark);
                from = range.end.min(end).max(from);
                if range.end > end {
                    break;
                }
                next += 1;
            }
            masked.push_str(&text[from..end]);
            shown.push(Shown::new(masked));
            at += line.len();
            // Drop secrets that ended on this line.
            while secrets.get(next).is_some_and(|(range, _)| range.end <= at) {
                next += 1;
            }
        }
        shown
    }

    pub(super) fn json(&self, value: Value) -> ShownJson {
        self.json_preview(value, Extent::Whole).0
    }

    /// A text or its start, and the full length if it was truncated.
    pub(super) fn preview(&self, text: &str, extent: Extent) -> (Shown, Option<u64>) {
        let (shown, full_bytes) = self.cut(text, extent, &|text| self.text(text).to_string());
        (Shown::new(shown), full_bytes)
    }

    /// The same for every string in a value; returns the length of the longest truncated string.
    pub(super) fn json_preview(&self, value: Value, extent: Extent) -> (ShownJson, Option<u64>) {
        let mut longest = None;
        let shown = self.shown(&value, None, extent, &mut longest);
        (ShownJson::new(shown), longest)
    }

    /// Masks first: a truncated secret would show its start and no longer be recognised.
    fn cut(&self, text: &str, extent: Extent, mask: &dyn Fn(&str) -> String) -> (String, Option<u64>) {
        if extent == Extent::Whole || text.len() <= PREVIEW {
            return (mask(text), None);
        }
        let mut masked = mask(&text[..between_letters(text, PREVIEW + BEYOND)]);
        let mut cut = between_letters(&masked, PREVIEW);
        // Do not cut a mask in two.
        let near = between_letters(&masked, cut.saturating_sub(64));
        let mut marks = masked[near..].match_indices("[secret:").map(|(at, _)| near + at);
        let across = |open: &usize| masked[*open..].find(']').is_none_or(|close| open + close >= cut);
        if let Some(open) = marks.find(|open| *open < cut && across(open)) {
            cut = open;
        }
        masked.truncate(cut);
        (masked, Some(text.len() as u64))
    }

    /// `before` is what identifies a string: its field name, or the flag before it.
    fn shown(&self, value: &Value, before: Option<&str>, extent: Extent, longest: &mut Option<u64>) -> Value {
        match value {
            Value::String(text) => {
                let (shown, full_bytes) = self.cut(text, extent, &|text| self.masked_after(before, text));
                *longest = (*longest).max(full_bytes);
                Value::from(shown)
            }
            Value::Array(items) => {
                let mut shown = Vec::with_capacity(items.len());
                each_item(items, before, |before, item| {
                    shown.push(self.shown(item, before, extent, longest));
                });
                Value::Array(shown)
            }
            Value::Object(fields) => {
                let mut shown = serde_json::Map::with_capacity(fields.len());
                each_field(fields, |name, before, value| {
                    let value = self.shown(value, Some(before), extent, longest);
                    shown.insert(self.text(name).to_string(), value);
                });
                Value::Object(shown)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn masked_after(&self, before: Option<&str>, text: &str) -> String {
        match &self.redactor {
            Some(redactor) => redactor.replace_after(before, text, &SecretMatch::to_string).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Whether secrets are shown as they are.
    pub(super) fn reveals(&self) -> bool {
        self.redactor.is_none()
    }

    /// Emits the texts of a document, without the names of its fields. Masks first: some secrets are recognised only by
    /// their field.
    pub(super) fn each_text(&self, value: &Value, emit: &mut dyn FnMut(&str)) {
        match &self.redactor {
            Some(redactor) => {
                redactor.each_text(value, None, &SecretMatch::to_string, emit);
            }
            None => each_text(value, emit),
        }
    }

    /// The same for a text, which may be a document.
    pub(super) fn each_embedded_text(&self, text: &str, emit: &mut dyn FnMut(&str)) {
        match &self.redactor {
            Some(redactor) => {
                redactor.each_embedded_text(text, None, &SecretMatch::to_string, emit);
            }
            None => each_embedded_text(text, emit),
        }
    }
}

/// How much of a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Start,
}

impl Extent {
    pub(super) fn of(full: bool) -> Extent {
        if full { Extent::Whole } else { Extent::Start }
    }
}

/// How far beyond the end of a preview to look for the end of a secret.
const BEYOND: usize = 16 * 1024;

/// The last character boundary at or before this offset.
pub(super) fn between_letters(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Unguessable bytes from the operating system.
/// A new key.
pub fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    // Without randomness we cannot continue: a guessable key would be worse than none.
    #[expect(clippy::expect_used, reason = "an operating system without randomness keeps no secrets")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn door() -> Door {
        Door { redactor: Some(Redactor::new([7; 32])) }
    }

    /// Assembled at run time, so that no scanner takes this file for a leak.
    fn key() -> String {
        format!("ghp_{}", "aB3dE6gH9".repeat(4))
    }

    #[test]
    fn no_secret_shows_its_start_at_the_end_of_a_preview() {
        for before in PREVIEW - 60..PREVIEW + 5 {
            let text = format!("{} {} {}", "x".repeat(before - 1), key(), "tail ".repeat(20));
            let (shown, full_bytes) = door().preview(&text, Extent::Start);
            assert!(!shown.as_str().contains("ghp_"), "{before}");
            assert!(shown.as_str().len() <= PREVIEW, "{before}");
            assert!(!shown.as_str().ends_with("[secret"), "{before}");
            assert_eq!(full_bytes, Some(text.len() as u64));
            assert!(door().preview(&text, Extent::Whole).0.as_str().contains("[secret:github:"), "{before}");
        }
    }

    #[test]
    fn every_line_of_a_long_secret_is_masked() {
        let key = format!(
            "-----BEGIN {0} KEY-----\n{1}\n{1}\n-----END {0} KEY-----",
            "PRIVATE",
            "aB3dE6gH9+/x".repeat(5)
        );
        let text = format!("first\n{key}\ntoken = \"{}\" # end\n\nlast", self::key());
        let lines = door().lines(&text);
        assert_eq!(lines.len(), text.lines().count());
        let all: Vec<&str> = lines.iter().map(Shown::as_str).collect();
        assert!(!all.join("\n").contains("aB3dE6gH9"), "{all:?}");
        assert_eq!((all[0], all[6], all[7]), ("first", "", "last"));
        assert!(all[5].starts_with("token = \"[secret:") && all[5].ends_with("# end"), "{all:?}");
        assert_eq!(Door { redactor: None }.lines("a\nb").len(), 2);
    }

    #[test]
    fn the_text_before_a_value_identifies_it() {
        let secret = ["Made0Up1", "Not2Live3", "Key4"].concat();
        let values = [
            json!({"password": secret}),
            json!({"password": "sunflower"}),
            json!({"args": ["--password", "sunflower"]}),
            json!({"name": "DB_PASSWORD", "value": secret}),
            json!({"args": ["--token", secret, "x"]}),
            json!({"env": [{"key": "API_SECRET", "value": secret}]}),
        ];
        for value in values {
            let shown = door().json(value.clone());
            let leaked =
                [secret.as_str(), "sunflower"].iter().any(|word| shown.value().to_string().contains(word));
            assert!(!leaked, "{value}");
            assert!(shown.value().to_string().contains("[secret:"), "{value}");
        }
        let plain = json!({"name": "colour", "value": "dark red", "args": ["--verbose", "src/main.rs"]});
        assert_eq!(door().json(plain.clone()).value(), &plain);
    }
}
