//! What an agent waits for: searches over the Model Context Protocol, and the memory of the process that answers them.

use std::time::Instant;

use annals_testkit::agent::Agent;
use serde_json::json;

use super::http::resident;
use super::http_client::Latencies;
use super::table::Row;
use super::{Corpus, Outcome};

/// Requests of one agent.
const CALLS: usize = 1_000;
/// By then everything that is loaded once is loaded.
const WARM: usize = 100;

pub fn rows(corpus: &Corpus<'_>, queries: &[&str]) -> Outcome<Vec<Row>> {
    let mut agent = Agent::of(corpus.annals(&["mcp", "--no-sync"]));
    let mut walls = Vec::new();
    let mut before = f64::NAN;
    for (number, query) in queries.iter().cycle().take(CALLS).enumerate() {
        if number == WARM {
            before = resident(agent.process());
        }
        let started = Instant::now();
        let (text, failed) = agent.try_call("search_history", json!({"query": query, "project": "*"}));
        walls.push(started.elapsed().as_secs_f64() * 1e3);
        if failed {
            return Err(format!("search_history {query}: {text}"));
        }
    }
    let growth = resident(agent.process()) - before;
    let walls = Latencies::of(walls);
    let half = walls.percentile(50);
    let what = format!("an agent's search_history, n {CALLS}, p99 (p50 {half:.1})");
    let dash = || "-".to_owned();
    Ok(vec![
        Row::new(&what, "ms", walls.percentile(99), Some(60.0), dash()),
        Row::new("growth of its memory after the first hundred", "MB", growth.max(0.0), Some(10.0), dash()),
    ])
}
