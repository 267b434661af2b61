//! Finds secrets in text and masks them.
//!
//! ```
//! use annals_redact::Redactor;
//!
//! // The key decides the last four letters of a mark: equal secrets have equal marks under one key.
//! let redactor = Redactor::new([7; 32]);
//! let masked = redactor.mask("export DB_PASSWORD=correct-horse-7 # and no more");
//! assert!(masked.starts_with("export DB_PASSWORD=[secret:") && !masked.contains("horse"));
//!
//! let mut kinds = Vec::new();
//! redactor.each("Authorization: Bearer abc.def-123456789", &mut |found| kinds.push(found.kind));
//! assert_eq!(kinds.len(), 1);
//! ```

mod certain;
mod commands;
mod escapes;
mod fields;
mod plain;
mod prefilter;
mod rules;
mod scan;
mod slot;
mod table;
mod vendors;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use escapes::Decoded;
pub use fields::{each_field, each_item};

/// Masks a secret as `[secret:<kind>:<4 hex>]`. The hex digits are keyed: within one archive they show which secrets
/// are equal, elsewhere they mean nothing.
pub struct Redactor {
    key: [u8; 32],
}

/// The location of a secret in a text. Displays as the mask shown instead.
pub struct SecretMatch {
    pub kind: &'static str,
    /// Equal for equal secrets of one archive.
    pub hash: [u8; 2],
    pub range: Range<usize>,
}

impl fmt::Display for SecretMatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.hash;
        write!(formatter, "[secret:{}:{first:02x}{second:02x}]", self.kind)
    }
}

impl Redactor {
    pub fn new(key: [u8; 32]) -> Redactor {
        Redactor { key }
    }

    /// Whether a name, such as that of a field, may announce a secret. Errs on the side of yes.
    pub fn may_name_secret(name: &str) -> bool {
        scan::has_anchor(name.as_bytes())
    }

    /// Borrowed if nothing was found. Masking masked text changes nothing.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replace_after(None, text, &SecretMatch::to_string)
    }

    /// Emits every secret of a text, in order.
    pub fn each(&self, text: &str, emit: &mut dyn FnMut(SecretMatch)) {
        let decoded = Decoded::of(text.as_bytes());
        let bytes = decoded.as_ref().map_or(text.as_bytes(), |decoded| &decoded.bytes);
        scan::scan(bytes, &mut |kind, range: Range<usize>| {
            let hash = blake3::keyed_hash(&self.key, &bytes[range.clone()]);
            let [first, second, ..] = *hash.as_bytes();
            let range = decoded.as_ref().map_or(range.clone(), |decoded| decoded.original(range));
            emit(SecretMatch { kind, hash: [first, second], range });
        });
    }
}

#[cfg(test)]
mod tests;
