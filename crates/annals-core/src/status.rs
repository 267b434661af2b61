//! The status of a line, and of a source.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr};

use crate::stored::named;

/// Each line has one status, so that the audit adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LineStatus {
    Kept,
    Unknown,
    Malformed,
    Skipped,
    /// Blanked because it was forgotten.
    Forgotten,
    /// Not a line, but something new inside one: counted in addition.
    Drift,
}

/// Absence is a status, not an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Display, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SourceStatus {
    Available,
    /// A home without sessions.
    Empty,
    /// A home with transcripts of which no line can be read.
    Unsupported,
    #[default]
    Unavailable,
    Error,
}

named!(LineStatus, SourceStatus);
