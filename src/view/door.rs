//! The one door for content: raw text becomes shown text, with secrets masked.

use serde_json::Value;

use crate::model::{Raw, Result, Scope, Shown, ShownJson};
use crate::redact::Redactor;
use crate::store::Store;

/// Text longer than this is shown as a preview that says so.
pub const PREVIEW: usize = 5 * 1024;

pub struct Door {
    redactor: Option<Redactor>,
}

impl Door {
    /// Masks secrets with this archive's own key, so that one secret always has one mark.
    pub fn masking(scope: &Scope, store: &Store) -> Result<Door> {
        let made = store.setting_or_make(scope, "mask_key", || random_bytes().to_vec())?;
        let mut key = [0; 32];
        for (to, from) in key.iter_mut().zip(made) {
            *to = from;
        }
        Ok(Door { redactor: Some(Redactor::new(key)) })
    }

    /// Shows everything: for the owner, at this machine, who asked for it.
    pub fn revealing(_scope: &Scope) -> Door {
        Door { redactor: None }
    }

    /// For words of a run itself, such as a file's name in a warning.
    pub fn show(&self, _scope: &Scope, text: &str) -> Shown {
        self.text(text)
    }

    pub(super) fn raw(&self, raw: &Raw) -> Shown {
        self.text(&String::from_utf8_lossy(raw.expose()))
    }

    pub(super) fn text(&self, text: &str) -> Shown {
        match &self.redactor {
            Some(redactor) => Shown::new(redactor.mask(text)),
            None => Shown::new(text),
        }
    }

    pub(super) fn json(&self, value: Value) -> ShownJson {
        ShownJson::new(self.masked(value))
    }

    fn masked(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text).to_string()),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.masked(item)).collect()),
            Value::Object(fields) => Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| {
                        let masked = match &value {
                            // The name tells what the value is: they are judged together.
                            Value::String(text) => self.masked_field(&name, text),
                            _ => self.masked(value),
                        };
                        (self.text(&name).to_string(), masked)
                    })
                    .collect(),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn masked_field(&self, name: &str, text: &str) -> Value {
        let Some(redactor) = &self.redactor else { return Value::from(text) };
        let joined = format!("\"{name}\": \"{text}\"");
        let shown = redactor.mask(&joined);
        let inner = shown.strip_prefix(&format!("\"{name}\": \"")).and_then(|rest| rest.strip_suffix('"'));
        Value::from(inner.map_or_else(|| redactor.mask(text).into_owned(), str::to_owned))
    }
}

/// The start of a long text, cut between characters, and how long it was.
pub(super) fn preview(text: &str, full: bool) -> (&str, Option<u64>) {
    if full || text.len() <= PREVIEW {
        return (text, None);
    }
    let mut cut = PREVIEW;
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    (&text[..cut], Some(text.len() as u64))
}

/// The same for every string in a value: what is too long is cut, and the length of the longest is told.
pub(super) fn preview_json(value: Value, full: bool) -> (Value, Option<u64>) {
    match value {
        Value::String(text) => {
            let (start, full_bytes) = preview(&text, full);
            (Value::from(start), full_bytes)
        }
        Value::Array(items) => {
            let (items, cuts): (Vec<Value>, Vec<Option<u64>>) =
                items.into_iter().map(|item| preview_json(item, full)).unzip();
            (Value::Array(items), cuts.into_iter().flatten().max())
        }
        Value::Object(fields) => {
            let mut longest = None;
            let fields = fields.into_iter().map(|(name, value)| {
                let (value, full_bytes) = preview_json(value, full);
                longest = longest.max(full_bytes);
                (name, value)
            });
            (Value::Object(fields.collect()), longest)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => (value, None),
    }
}

/// Unguessable bytes from the operating system.
pub(super) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    // There is no way on without randomness: a guessable key would be worse than none.
    #[expect(clippy::expect_used, reason = "an operating system without randomness keeps no secrets")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
