//! Tokens and cost of a session's responses, each counted once however many logs contain it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::Json;
use annals_core::{ContentKey, Picodollars, Span, Time, Tokens, Usage};

#[derive(Default)]
pub struct UsageLedger {
    counted: BTreeMap<ContentKey, CountedResponse>,
}

/// A response whose tokens were counted.
struct CountedResponse {
    offset: u64,
    /// Counted from the response itself, not from a log, which has no cached tokens.
    exactly: bool,
    tokens: Tokens,
    cost: Option<Picodollars>,
}

impl UsageLedger {
    /// Returns a row to write if there is something new: a response, exact numbers from the response itself, or a cost.
    pub fn count(&mut self, mut usage: Usage, exactly: bool) -> Option<Usage> {
        let Usage { tokens, cost, .. } = usage;
        let Some(counted) = self.counted.get_mut(&usage.key) else {
            let counted = CountedResponse { offset: usage.span.offset, exactly, tokens, cost };
            self.counted.insert(usage.key, counted);
            return Some(usage);
        };
        let (is_exact, has_cost) = (exactly && !counted.exactly, cost.is_some() && counted.cost.is_none());
        if is_exact {
            (counted.exactly, counted.tokens) = (true, tokens);
        }
        counted.cost = counted.cost.or(cost);
        (usage.span.offset, usage.again) = (counted.offset, true);
        (usage.tokens, usage.cost) = (counted.tokens, counted.cost);
        (is_exact || has_cost).then_some(usage)
    }
}

pub fn usage(
    session: Arc<str>,
    span: Span,
    at: Option<Time>,
    key: ContentKey,
    model: Option<Arc<str>>,
    (used, cost): (Json<'_>, Option<f64>),
) -> Usage {
    let cost = cost.and_then(Picodollars::from_dollars);
    Usage { session, span, at, key, inherited: false, model, again: false, tokens: tokens(used), cost }
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
