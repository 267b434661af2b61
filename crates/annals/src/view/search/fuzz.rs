//! What the fuzzer in `fuzz/` calls: a search query from any text.

use super::query::read_query;
use annals_core::Time;

/// Whether a text is a query.
pub fn fuzz_query(text: &str) -> bool {
    let Ok(query) = read_query(text, Time::from_millis(1_794_744_000_000)) else { return false };
    let groups: Vec<_> = query.clauses.iter().map(super::query::Clause::wanted).collect();
    let _ = (query.is_empty(), groups);
    true
}
