//! From bytes to rows: capture, line splitting, readers, passages of the text index.

pub(super) mod append;
pub(super) mod blank;
pub(super) mod capture;
pub(super) mod content;
pub(super) mod documents;
pub(super) mod forgotten;
pub(super) mod parse;
pub(super) mod passages;
pub(super) mod target;
