//! Tokens and cost of a session's responses, each counted once however many logs contain it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::Json;
use annals_core::{ContentKey, Span, Time, Tokens, Usage};

#[derive(Default)]
pub struct UsageLedger {
    counted: BTreeMap<ContentKey, CountedResponse>,
    reported_cost: f64,
}

/// A response whose tokens were counted.
struct CountedResponse {
    offset: u64,
    /// Counted from the response itself, not from a log, which has no cached tokens.
    exactly: bool,
    with_cost: bool,
}

impl UsageLedger {
    /// Returns a row to write if there is something new: a response, or exact numbers from the response itself.
    pub fn count(&mut self, mut usage: Usage, exactly: bool, cost: Option<f64>) -> Option<Usage> {
        let with_cost = cost.is_some();
        let Some(counted) = self.counted.get_mut(&usage.key) else {
            self.counted.insert(usage.key, CountedResponse { offset: usage.span.offset, exactly, with_cost });
            self.reported_cost += cost.unwrap_or(0.0);
            return Some(usage);
        };
        if !counted.with_cost {
            self.reported_cost += cost.unwrap_or(0.0);
        }
        counted.with_cost |= with_cost;
        if counted.exactly || !exactly {
            return None;
        }
        counted.exactly = true;
        (usage.span.offset, usage.again) = (counted.offset, true);
        Some(usage)
    }

    /// The total cost in logs; `None` unless every response has one.
    pub fn reported_cost(&self) -> Option<f64> {
        let is_complete = !self.counted.is_empty() && self.counted.values().all(|counted| counted.with_cost);
        Some(self.reported_cost).filter(|_| is_complete)
    }
}

pub fn usage(
    session: Arc<str>,
    span: Span,
    at: Option<Time>,
    key: ContentKey,
    model: Option<Arc<str>>,
    used: Json<'_>,
) -> Usage {
    Usage { session, span, at, key, inherited: false, model, again: false, tokens: tokens(used) }
}

fn tokens(usage: Json<'_>) -> Tokens {
    let usage = usage.object();
    let number = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| usage.get_integer(name));
        found.unwrap_or(0).clamp(0, 1 << 40)
    };
    let detail = |names: [&str; 2], name: &str| {
        let found = names.iter().find_map(|details| usage.get(details)?.get_integer(name));
        found.unwrap_or(0).clamp(0, 1 << 40)
    };
    let (input, output) = (["input_tokens", "prompt_tokens"], ["output_tokens", "completion_tokens"]);
    let of_input = ["input_tokens_details", "prompt_tokens_details"];
    let cache_read = detail(of_input, "cached_tokens");
    let cache_write = detail(of_input, "cache_write_tokens");
    Tokens {
        input: (number(input) - cache_read - cache_write).max(0),
        output: number(output),
        cache_read,
        cache_write,
        cache_write_hour: 0,
        reasoning: detail(["output_tokens_details", "completion_tokens_details"], "reasoning_tokens"),
    }
}
