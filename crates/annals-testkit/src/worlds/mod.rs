//! Made-up work with a known truth: repositories with an author for each line, months of one person's sessions, and
//! secrets everywhere.

pub mod lineage;
pub mod planted;
pub mod story;
