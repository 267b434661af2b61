//! Made-up work whose truth is known: repositories with an author for each line, months of one person's sessions, and
//! secrets in every place.

pub mod lineage;
pub mod planted;
pub mod story;
