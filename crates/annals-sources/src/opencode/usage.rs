//! Tokens and cost of one response.

use super::row::Row;
use crate::json::{Json, Object};
use annals_core::{Picodollars, Tokens};

/// What decides how the numbers of a client are to be read.
#[derive(Clone, Copy)]
pub struct Counting<'a> {
    pub version: Option<&'a str>,
    pub provider: &'a str,
}

impl Counting<'_> {
    /// Input without what was cached, output with reasoning. Whether the client's output includes reasoning shows in the
    /// total, or in its version; the oldest ones include what was cached in the input of most providers.
    pub fn tokens(self, tokens: &Object<'_>) -> Tokens {
        let number = |name: &str| tokens.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
        let cache = tokens.get("cache").map(Json::object);
        let cached = |name: &str| {
            let number = cache.as_ref().and_then(|cache| cache.get_integer(name));
            number.unwrap_or(0).clamp(0, 1 << 40)
        };
        let (mut input, output, reasoning) = (number("input"), number("output"), number("reasoning"));
        let (cache_read, cache_write) = (cached("read"), cached("write"));
        if self.is_older_than(1, 0) && !self.provider.contains("anthropic") && input >= cache_read {
            input -= cache_read;
        }
        let without = input + output + cache_read + cache_write;
        let apart = match tokens.get_integer("total") {
            Some(total) => total == without + reasoning,
            None => !self.is_older_than(1, 2),
        };
        let output = if apart { output + reasoning } else { output };
        Tokens { input, output, cache_read, cache_write, cache_write_hour: 0, reasoning }
    }

    fn is_older_than(self, major: u32, minor: u32) -> bool {
        let mut numbers = self.version.unwrap_or_default().split('.').map(|part| part.parse::<u32>().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(own_major), Some(own_minor)) => (own_major, own_minor) < (major, minor),
            _ => false,
        }
    }
}

/// What the client says that a message or one of its steps cost.
pub fn cost_of(row: &Row<'_>) -> Option<Picodollars> {
    Picodollars::parse(row.get("cost")?.bytes())
}

pub fn is_finish(part: &Row<'_>) -> bool {
    part.text("type").as_deref() == Some("step-finish")
}

#[cfg(test)]
mod tests {
    use super::Counting;
    use crate::json::Json;
    use annals_core::Tokens;

    fn tokens(version: &str, text: &str) -> Tokens {
        let counting = Counting { version: Some(version), provider: "acme" };
        counting.tokens(&Json::parse(text.as_bytes()).unwrap().object())
    }

    #[test]
    fn output_has_reasoning_in_every_version() {
        let apart = r#"{"total":30,"input":10,"output":4,"reasoning":6,"cache":{"read":9,"write":1}}"#;
        assert_eq!(tokens("1.18.0", apart).output, 10);
        let within = r#"{"total":24,"input":10,"output":4,"reasoning":2,"cache":{"read":9,"write":1}}"#;
        assert_eq!(tokens("1.18.0", within).output, 4);
        let untold = r#"{"input":10,"output":4,"reasoning":2,"cache":{"read":9,"write":0}}"#;
        assert_eq!((tokens("1.1.65", untold).output, tokens("1.18.0", untold).output), (4, 6));
        assert_eq!((tokens("0.5.29", untold).input, tokens("1.1.65", untold).input), (1, 10));
    }
}
