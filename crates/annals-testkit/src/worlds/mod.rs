//! Made-up work with a known truth: repositories with an author for each line, months of one person's sessions, secrets
//! everywhere, and what clients do to words that a person typed once.

pub mod lineage;
pub mod people;
pub mod planted;
mod planted_homes;
pub mod story;
