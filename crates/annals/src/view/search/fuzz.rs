//! Entry point for the fuzzer in `fuzz/`: parses any text as a search query.

use super::query::parse_query;
use annals_core::Time;

/// Whether a text is a valid query.
pub fn fuzz_query(text: &str) -> bool {
    let Ok(query) = parse_query(text, Time::from_millis(1_794_744_000_000)) else { return false };
    let groups: Vec<_> = query.clauses.iter().map(super::query::Clause::term_groups).collect();
    let _ = (query.is_empty(), groups);
    true
}
