//! Raw and shown text: what the archive contains is `Raw`, what leaves the program is `Shown`.

use std::fmt;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// Text or bytes as a client wrote them. It can be neither printed nor serialized; only `view` opens it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Raw(Vec<u8>);

impl Raw {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Raw {
        Raw(bytes.into())
    }

    /// Only for the redaction door in `view`, as the tidy test enforces.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Raw({} bytes)", self.0.len())
    }
}

/// Text that passed redaction, or was written by annals itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Hash, ToSchema)]
pub struct Shown(String);

impl Shown {
    /// Only for text that passed the door, and for our own texts such as labels and statuses.
    pub fn new(text: impl Into<String>) -> Shown {
        Shown(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// JSON in which every string passed the door.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(transparent)]
pub struct ShownJson(serde_json::Value);

impl ShownJson {
    /// Only for values that passed the door, and for our own.
    pub fn new(value: serde_json::Value) -> ShownJson {
        ShownJson(value)
    }

    pub fn value(&self) -> &serde_json::Value {
        &self.0
    }

    pub fn into_value(self) -> serde_json::Value {
        self.0
    }
}
