//! Tokens of each model response, counted once, from records or from running totals.

use serde::{Deserialize, Serialize};

use crate::json::{Json, Object};
use annals_core::Tokens;

/// No response has more tokens than this; sums of what claims more must not overflow.
const MOST: i64 = 1 << 40;

/// Remembers the last running total, so that a repeated or estimated state is not counted again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Meter {
    total: Option<Reported>,
    /// Set by the first exact record: from then on totals say nothing new.
    records: bool,
}

impl Meter {
    /// `token_count`: by how much the total rose since the last one; a response that was interrupted is nowhere else. A
    /// total that fell is a counter that started again, and an unchanged one a repetition, or an estimate after a
    /// compaction. `from_zero` says that nothing was counted before the file's first line.
    pub fn running_total(&mut self, payload: &Object<'_>, from_zero: bool) -> Option<Tokens> {
        let info = payload.get("info")?;
        let total = reported(info.get("total_token_usage")?);
        let before = self.total.replace(total);
        if before == Some(total) || self.records {
            return None;
        }
        let last = info.get("last_token_usage").map(reported);
        let step = match before {
            Some(before) if rose(&before, &total) => {
                std::array::from_fn(|at| total[at].zip(before[at]).map(|(total, before)| total - before))
            }
            None if from_zero => total,
            _ => last.unwrap_or(total),
        };
        // Not every client has every number in the total.
        let counted = std::array::from_fn(|at| step[at].or(last.and_then(|last| last[at])).unwrap_or(0));
        Some(tokens(counted))
    }

    /// `token_usage_record`: exact, one a response.
    pub fn record(&mut self, payload: &Object<'_>) -> Option<Tokens> {
        self.records = true;
        payload.get("usage").map(|usage| tokens(reported(usage).map(Option::unwrap_or_default)))
    }
}

/// Input, cached, written, output and reasoning, as far as they are reported.
type Reported = [Option<i64>; 5];

/// None of the numbers fell: the same counter went on.
fn rose(before: &Reported, total: &Reported) -> bool {
    before
        .iter()
        .zip(total)
        .all(|(before, total)| before.zip(*total).is_none_or(|(before, total)| before <= total))
}

fn reported(usage: Json<'_>) -> Reported {
    let mut numbers = [None; 5];
    for (name, value) in usage.fields() {
        let place = match name {
            b"input_tokens" => 0,
            b"cached_input_tokens" => 1,
            b"cache_write_input_tokens" => 2,
            b"output_tokens" => 3,
            b"reasoning_output_tokens" => 4,
            _ => continue,
        };
        numbers[place] = Some(value.integer().unwrap_or(0).clamp(0, MOST));
    }
    numbers
}

/// The client's input includes cached and written tokens, its output includes reasoning.
fn tokens([input, cached, written, output, reasoning]: [i64; 5]) -> Tokens {
    let cache_read = cached.min(input);
    let cache_write = written.min(input - cache_read);
    let input = input - cache_read - cache_write;
    Tokens { input, output, cache_read, cache_write, cache_write_hour: 0, reasoning }
}

#[cfg(test)]
mod tests {
    use super::{Meter, Tokens};
    use crate::json::Json;

    fn count(total: i64, last: i64) -> String {
        format!(
            r#"{{"info":{{"total_token_usage":{{"input_tokens":{total},"output_tokens":1}},
            "last_token_usage":{{"input_tokens":{last},"cached_input_tokens":2,"output_tokens":1}}}}}}"#
        )
    }

    fn last(meter: &mut Meter, text: &str) -> Option<i64> {
        let payload = Json::parse(text.as_bytes()).unwrap().object();
        meter.running_total(&payload, false).map(|tokens| tokens.input)
    }

    #[test]
    fn a_state_written_twice_counts_once_and_a_restart_counts() {
        let mut meter = Meter::default();
        assert_eq!(last(&mut meter, r#"{"info":null}"#), None);
        assert_eq!(last(&mut meter, &count(10, 10)), Some(8));
        assert_eq!(last(&mut meter, &count(10, 10)), None);
        assert_eq!(last(&mut meter, &count(30, 20)), Some(18));
        assert_eq!(last(&mut meter, &count(30, 5)), None, "an estimate after a compaction");
        assert_eq!(last(&mut meter, &count(7, 7)), Some(5), "the counter restarted");
    }

    #[test]
    fn records_replace_totals() {
        let mut meter = Meter::default();
        let record = r#"{"usage":{"input_tokens":10,"cached_input_tokens":4,"cache_write_input_tokens":3,
            "output_tokens":5,"reasoning_output_tokens":2}}"#;
        let tokens = meter.record(&Json::parse(record.as_bytes()).unwrap().object()).unwrap();
        assert_eq!(
            tokens,
            Tokens { input: 3, output: 5, cache_read: 4, cache_write: 3, cache_write_hour: 0, reasoning: 2 }
        );
        assert_eq!(last(&mut meter, &count(10, 10)), None);
    }

    #[test]
    fn an_interrupted_response_is_in_the_total() {
        let mut meter = Meter::default();
        assert_eq!(last(&mut meter, &count(10, 10)), Some(8));
        assert_eq!(last(&mut meter, &count(45, 20)), Some(33), "15 of them were never reported as the last");
        assert_eq!(last(&mut meter, &count(45, 20)), None);
        let mut meter = Meter::default();
        let first = count(25, 20);
        let payload = Json::parse(first.as_bytes()).unwrap().object();
        assert_eq!(meter.running_total(&payload, true).map(|tokens| tokens.input), Some(23));
    }
}
