//! The cost of responses: a dated table of prices, and exact integer sums.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use annals_core::{LONG_PROMPTS, Picodollars, Time, Tokens};
use annals_store::UsageSum;

/// One row of the table: USD per million tokens from a date on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Price {
    pub model: String,
    #[serde(default, skip_serializing)]
    aliases: Vec<String>,
    pub from: String,
    #[serde(skip)]
    from_day: i64,
    #[serde(flatten)]
    pub rates: Rates,
    /// Other rates for a whole request whose prompt is longer than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<LongRates>,
    /// When the prices were checked, and where.
    pub checked: String,
    pub origin: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Rates {
    pub input: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_5m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
    pub output: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct LongRates {
    pub above: i64,
    #[serde(flatten)]
    pub rates: Rates,
}

/// The price of a model on a day. Days before its first row use that row; without a day, the newest row is used.
pub fn price_of(model: &str, day: i64) -> Option<&'static Price> {
    let periods = table().find(model)?;
    let in_force = periods.iter().rev().find(|price| day == 0 || price.from_day <= day);
    in_force.or(periods.first()).copied()
}

impl Price {
    pub fn cost(&self, prompt_class: i64, tokens: Tokens) -> Picodollars {
        let class = usize::try_from(prompt_class).unwrap_or(0);
        let long = self.long.filter(|long| LONG_PROMPTS.iter().take(class).any(|limit| *limit == long.above));
        let rates = long.map_or(self.rates, |long| long.rates);
        // If no discount or surcharge is published, cached tokens cost the same as others.
        let write = rates.cache_write_5m.unwrap_or(rates.input);
        // Reasoning is included in the output.
        let costs = [
            (rates.input, tokens.input),
            (rates.output, tokens.output),
            (rates.cached_input.unwrap_or(rates.input), tokens.cache_read),
            (write, tokens.cache_write),
            (rates.cache_write_1h.unwrap_or(write), tokens.cache_write_hour),
        ];
        let costs = costs.iter().map(|(rate, count)| picodollars(*rate) * i128::from(*count));
        Picodollars::new(costs.sum())
    }
}

fn picodollars(per_million: f64) -> i128 {
    (per_million * 1e6).round() as i128
}

/// The cost of some responses, and which of them have no price. What the client says wins over the table.
#[derive(Debug, Clone, Default)]
pub struct Cost {
    priced: Picodollars,
    responses: i64,
    reported_responses: i64,
    pub unpriced: BTreeMap<String, Unpriced>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpriced {
    pub responses: i64,
    pub tokens: i64,
}

impl Cost {
    pub fn of(sums: &[UsageSum]) -> Cost {
        let mut cost = Cost::default();
        for sum in sums {
            cost.add(sum);
        }
        cost
    }

    pub fn add(&mut self, sum: &UsageSum) {
        if let Some(reported) = sum.reported {
            self.priced += reported;
            self.responses += sum.responses;
            self.reported_responses += sum.responses;
            return;
        }
        let tokens = sum.tokens.total();
        let model = sum.model.as_deref().unwrap_or("unknown");
        match price_of(model, sum.day) {
            Some(price) => {
                self.priced += price.cost(sum.prompt_class, sum.tokens);
                self.responses += sum.responses;
            }
            // No tokens were used: a notice of the client, for example.
            None if tokens == 0 => {}
            None => {
                let unpriced = self.unpriced.entry(model.to_owned()).or_default();
                unpriced.responses += sum.responses;
                unpriced.tokens += tokens;
            }
        }
    }

    /// The cost of what has a price; None if nothing has.
    pub fn known(&self) -> Option<f64> {
        (self.responses > 0).then(|| millionths(self.priced.dollars()))
    }

    /// None unless everything has a price: a partial sum would look like the total.
    pub fn whole(&self) -> Option<f64> {
        self.known().filter(|_| self.unpriced.is_empty())
    }

    /// Where the cost comes from, if all of it is known.
    pub fn billing_source(&self) -> &'static str {
        if self.unpriced.is_empty() { self.source_of_known() } else { "unknown" }
    }

    /// Where what is known of the cost comes from.
    pub fn source_of_known(&self) -> &'static str {
        match self.responses {
            0 => "unknown",
            count if count == self.reported_responses => "reported",
            _ => "estimated",
        }
    }
}

/// At most six decimals: sums of prices have more, which mean nothing.
pub fn millionths(dollars: f64) -> f64 {
    (dollars * 1e6).round() / 1e6
}

struct Table {
    rows: HashMap<&'static str, Vec<&'static Price>>,
}

fn table() -> &'static Table {
    static PRICES: OnceLock<Vec<Price>> = OnceLock::new();
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let prices = PRICES.get_or_init(|| read_table().unwrap_or_default());
        let mut rows: HashMap<&str, Vec<&Price>> = HashMap::new();
        for price in prices {
            for name in price.aliases.iter().chain([&price.model]) {
                rows.entry(name).or_default().push(price);
            }
        }
        Table { rows }
    })
}

/// An unreadable table prices nothing, and fails a test.
fn read_table() -> Result<Vec<Price>, toml::de::Error> {
    #[derive(Deserialize)]
    struct Document {
        price: Vec<Price>,
    }
    let mut prices = toml::from_str::<Document>(include_str!("prices.toml"))?.price;
    for price in &mut prices {
        price.from_day = Time::parse(&format!("{}T00:00:00Z", price.from)).map_or(0, Time::day);
    }
    Ok(prices)
}

impl Table {
    /// Looks up the full name, then the name without what vendors and resellers add to it.
    fn find(&self, model: &str) -> Option<&[&'static Price]> {
        if let Some(found) = self.rows.get(model) {
            return Some(found);
        }
        let model = model.to_ascii_lowercase();
        let mut name = model.as_str();
        loop {
            if let Some(found) = self.rows.get(name) {
                return Some(found);
            }
            let shorter = shortened(name);
            if shorter == name {
                return None;
            }
            name = shorter;
        }
    }
}

/// Removes one affix: `openai/`, `us.anthropic.`, `@20250514`, `[1m]`, `-v1:0`, `-latest`, a trailing date.
fn shortened(name: &str) -> &str {
    let is_date = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    if let Some((_, rest)) = name.rsplit_once('/').or_else(|| name.rsplit_once("anthropic.")) {
        return rest;
    }
    if let Some((rest, _)) = name.split_once('@').or_else(|| name.split_once('[')) {
        return rest;
    }
    if let Some(rest) = name.strip_suffix("-latest") {
        return rest;
    }
    match name.rsplit_once('-') {
        Some((rest, last)) if is_date(last) => rest,
        Some((rest, last)) if last.strip_prefix('v').is_some_and(is_version) => rest,
        _ => without_dashed_date(name),
    }
}

/// Removes a trailing `-2025-04-14`.
fn without_dashed_date(name: &str) -> &str {
    let Some((rest, date)) = name.len().checked_sub(11).and_then(|at| name.split_at_checked(at)) else {
        return name;
    };
    let shape = |(at, byte): (usize, u8)| match at {
        0 | 5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    if date.bytes().enumerate().all(shape) { rest } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(date: &str) -> i64 {
        Time::parse(&format!("{date}T00:00:00Z")).unwrap().day()
    }

    #[test]
    fn every_row_is_complete_and_in_order() {
        let rows = read_table().unwrap();
        assert!(rows.len() > 50);
        for price in &rows {
            for date in [&price.from, &price.checked] {
                assert!(Time::parse(&format!("{date}T00:00:00Z")).is_some(), "{price:?}");
            }
            assert!(price.origin.starts_with("https://"), "{price:?}");
            let mut all = vec![price.rates];
            if let Some(long) = price.long {
                assert!(LONG_PROMPTS.contains(&long.above), "{price:?}");
                all.push(long.rates);
            }
            for rates in all {
                assert!(rates.input > 0.0 && rates.output >= rates.input, "{price:?}");
                assert!(rates.cached_input.is_none_or(|cached| cached <= rates.input), "{price:?}");
                let exact = [Some(rates.input), rates.cached_input, rates.cache_write_1h, Some(rates.output)];
                for rate in exact.into_iter().flatten() {
                    assert!((rate * 1e6 - (rate * 1e6).round()).abs() < 1e-3, "{price:?}");
                }
            }
        }
        for pair in rows.windows(2) {
            let later = pair[0].model != pair[1].model || pair[0].from < pair[1].from;
            assert!(later, "{:?}", pair[1]);
        }
    }

    #[test]
    fn names_are_found_however_they_are_dressed() {
        let plain = price_of("gpt-5.4", day("2026-06-01")).unwrap();
        for name in [
            "gpt-5.4-2026-03-05",
            "gpt-5.4-20260305",
            "openai/gpt-5.4",
            "us.anthropic.gpt-5.4-20260305-v1:0",
            "gpt-5.4@20260305",
            "gpt-5.4[1m]",
            "GPT-5.4-latest",
        ] {
            assert_eq!(price_of(name, day("2026-06-01")), Some(plain), "{name}");
        }
        assert_eq!(price_of("gpt-5-2025-08-07", 0).unwrap().model, "gpt-5");
        for name in ["", "-", "gpt", "gpt-99", "gpt-5-minimal", "é-20250101", "<synthetic>"] {
            assert_eq!(price_of(name, 0), None, "{name}");
        }
    }

    #[test]
    fn a_price_holds_from_its_day_on() {
        let input = |date: &str| price_of("o3", day(date)).unwrap().rates.input;
        assert_eq!(input("2025-06-09"), 10.0);
        assert_eq!(input("2025-06-10"), 2.0);
        assert_eq!(input("2024-01-01"), 10.0);
        assert_eq!(price_of("o3", 0).unwrap().rates.input, 2.0);
    }

    #[test]
    fn tokens_cost_by_kind_and_length() {
        let price = price_of("gpt-5.4", day("2026-06-01")).unwrap();
        let count = 1_000_000;
        let input = Tokens { input: count, ..Tokens::default() };
        let million = Tokens {
            input: count,
            output: count,
            cache_read: count,
            cache_write: count,
            cache_write_hour: count,
            reasoning: count,
        };
        // Cache writes cost the same as other input.
        assert_eq!(price.cost(0, million).dollars(), 2.5 + 15.0 + 0.25 + 2.5 + 2.5);
        assert_eq!(price.cost(2, million), price.cost(0, million));
        assert_eq!(price.cost(3, input).dollars(), 5.0);
        let sum = |model: &str, count: i64| UsageSum {
            shown_day: 0,
            group: None,
            source: String::new(),
            day: day("2026-06-01"),
            model: Some(model.to_owned()),
            prompt_class: 0,
            responses: 1,
            tokens: Tokens { input: count, ..Tokens::default() },
            reported: None,
            total_of: None,
        };
        let free = Cost::of(&[sum("<synthetic>", 0)]);
        assert_eq!((free.whole(), free.billing_source()), (None, "unknown"));
        let partly = Cost::of(&[sum("gpt-5.4", 1_000_000), sum("gpt-99", 5)]);
        assert_eq!((partly.known(), partly.whole(), partly.billing_source()), (Some(2.5), None, "unknown"));
        assert_eq!(partly.unpriced["gpt-99"], Unpriced { responses: 1, tokens: 5 });
        let reported = UsageSum { reported: Some(Picodollars::new(7_000_000)), ..sum("gpt-99", 5) };
        let known = Cost::of(std::slice::from_ref(&reported));
        assert_eq!((known.whole(), known.billing_source()), (Some(0.000007), "reported"));
        let both = Cost::of(&[reported, sum("gpt-5.4", 1_000_000)]);
        assert_eq!((both.whole(), both.billing_source()), (Some(2.500007), "estimated"));
    }
}
