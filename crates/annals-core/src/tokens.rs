//! Token counts of model responses, by kind.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// `input` excludes cached tokens, `output` includes `reasoning`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tokens {
    pub input: i64,
    pub output: i64,
    pub cache_read: i64,
    /// Cache writes with a lifetime of five minutes, or of unknown lifetime.
    pub cache_write: i64,
    pub cache_write_hour: i64,
    pub reasoning: i64,
}

/// Lengths of a prompt in tokens, including cached ones, above which some models cost more.
pub const LONG_PROMPTS: [i64; 3] = [100_000, 200_000, 272_000];

impl Tokens {
    /// What was sent to the model, cached or not.
    pub fn prompt(self) -> i64 {
        self.input + self.cache_read + self.cache_write + self.cache_write_hour
    }

    pub fn total(self) -> i64 {
        self.prompt() + self.output
    }

    /// How many of `LONG_PROMPTS` the prompt exceeds; a migration uses the same limits.
    pub fn prompt_class(self) -> i64 {
        LONG_PROMPTS.iter().map(|limit| i64::from(self.prompt() > *limit)).sum()
    }
}

impl Add for Tokens {
    type Output = Tokens;

    fn add(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            cache_write_hour: self.cache_write_hour + other.cache_write_hour,
            reasoning: self.reasoning + other.reasoning,
        }
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

/// Multiplied by a number of responses, which is negative for responses that are removed.
impl Mul<i64> for Tokens {
    type Output = Tokens;

    fn mul(self, times: i64) -> Tokens {
        Tokens {
            input: self.input * times,
            output: self.output * times,
            cache_read: self.cache_read * times,
            cache_write: self.cache_write * times,
            cache_write_hour: self.cache_write_hour * times,
            reasoning: self.reasoning * times,
        }
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(tokens: I) -> Tokens {
        tokens.fold(Tokens::default(), Add::add)
    }
}
