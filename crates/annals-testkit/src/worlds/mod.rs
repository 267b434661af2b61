//! Made-up work whose truth is known: repositories with an author for each line, and months of one person's sessions.

pub mod lineage;
pub mod story;
