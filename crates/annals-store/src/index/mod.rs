//! The text index: immutable segments of terms, how they are written, merged and searched.

mod digest;
pub(crate) mod format;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
pub(crate) mod lineage;
mod lists;
pub(crate) mod merge;
pub(crate) mod search;
pub(crate) mod write;
