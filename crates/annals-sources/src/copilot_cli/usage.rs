//! Tokens: exact for each response in newer clients; in older ones only the sums that a process leaves when it ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json::{Json, Object};
use annals_core::Tokens;

/// Sums of the models of a session, as far as they are known.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Totals {
    /// Records of single responses make all sums superfluous.
    pub has_records: bool,
    pub answers: i64,
    answers_before: i64,
    last: BTreeMap<String, Tokens>,
}

impl Totals {
    /// What a process that ends adds to the sums of each model. The sums of some clients begin with each process, those
    /// of others with the session: the number of requests shows which.
    pub fn added(&mut self, metrics: &Object<'_>) -> Vec<(String, Tokens)> {
        let mut requests = 0;
        let mut sums = BTreeMap::new();
        for (name, model) in metrics.fields() {
            let count = model.get("requests").and_then(|requests| requests.get_integer("count"));
            requests += count.unwrap_or(0).clamp(0, 1 << 40);
            let Some(usage) = model.get("usage").map(Json::object) else { continue };
            sums.insert(String::from_utf8_lossy(name).into_owned(), tokens_of(&usage));
        }
        let since = self.answers - self.answers_before;
        let is_cumulative = requests > since;
        let none = BTreeMap::new();
        let before = if is_cumulative { &self.last } else { &none };
        let added = sums.iter().map(|(model, sum)| {
            let known = before.get(model).copied().unwrap_or_default();
            (model.clone(), less(*sum, known))
        });
        let added: Vec<_> = added.filter(|(_, tokens)| tokens.total() > 0).collect();
        self.answers_before = self.answers;
        self.last = sums;
        if self.has_records { Vec::new() } else { added }
    }
}

/// The client's input includes what was cached, its output includes reasoning.
pub fn tokens_of(usage: &Object<'_>) -> Tokens {
    let number = |name: &str| usage.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
    let (cache_read, cache_write) = (number("cacheReadTokens"), number("cacheWriteTokens"));
    Tokens {
        input: (number("inputTokens") - cache_read - cache_write).max(0),
        output: number("outputTokens"),
        cache_read,
        cache_write,
        cache_write_hour: 0,
        reasoning: number("reasoningTokens"),
    }
}

fn less(sum: Tokens, before: Tokens) -> Tokens {
    let left = |sum: i64, before: i64| (sum - before).max(0);
    Tokens {
        input: left(sum.input, before.input),
        output: left(sum.output, before.output),
        cache_read: left(sum.cache_read, before.cache_read),
        cache_write: left(sum.cache_write, before.cache_write),
        cache_write_hour: 0,
        reasoning: left(sum.reasoning, before.reasoning),
    }
}

#[cfg(test)]
mod tests {
    use super::Totals;
    use crate::json::Json;

    fn metrics(requests: u32, input: u32) -> String {
        format!(
            r#"{{"m":{{"requests":{{"count":{requests}}},"usage":{{"inputTokens":{input},"outputTokens":1}}}}}}"#
        )
    }

    fn inputs(second: &str) -> Vec<i64> {
        let mut totals = Totals { answers: 5, ..Totals::default() };
        let mut inputs = Vec::new();
        for (answers, text) in [(5, metrics(5, 50)), (7, second.to_owned())] {
            totals.answers = answers;
            let object = Json::parse(text.as_bytes()).unwrap().object();
            inputs.extend(totals.added(&object).into_iter().map(|(_, tokens)| tokens.input));
        }
        inputs
    }

    #[test]
    fn sums_of_a_resumed_session_count_once() {
        assert_eq!(inputs(&metrics(2, 20)), [50, 20], "of its own process");
        assert_eq!(inputs(&metrics(7, 70)), [50, 20], "of the whole session");
    }
}
