//! What responses cost, in exact sums.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// Millionths of a millionth of a dollar: every published token price is an integer number of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Picodollars(i128);

/// No response costs more than a million dollars: a larger number is no price.
const MOST: f64 = 1e6;

impl Picodollars {
    pub const fn new(count: i128) -> Picodollars {
        Picodollars(count)
    }

    /// None of what is not a price.
    pub fn from_dollars(dollars: f64) -> Option<Picodollars> {
        let is_price = dollars.is_finite() && (0.0..MOST).contains(&dollars);
        is_price.then(|| Picodollars((dollars * 1e12).round() as i128))
    }

    /// A number of JSON that a client wrote. Clients write 0 for models whose price they do not know.
    pub fn parse(text: &[u8]) -> Option<Picodollars> {
        let dollars = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
        Picodollars::from_dollars(dollars).filter(|cost| cost.0 > 0)
    }

    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e12
    }

    pub fn count(self) -> i128 {
        self.0
    }

    pub fn stored(self) -> i64 {
        self.0.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    pub fn from_stored(stored: i64) -> Picodollars {
        Picodollars(i128::from(stored))
    }
}

impl Add for Picodollars {
    type Output = Picodollars;

    fn add(self, other: Picodollars) -> Picodollars {
        Picodollars(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Picodollars {
    fn add_assign(&mut self, other: Picodollars) {
        *self = *self + other;
    }
}

/// Multiplied by a number of responses, which is negative for responses that are removed.
impl Mul<i64> for Picodollars {
    type Output = Picodollars;

    fn mul(self, times: i64) -> Picodollars {
        Picodollars(self.0.saturating_mul(i128::from(times)))
    }
}

impl Sum for Picodollars {
    fn sum<I: Iterator<Item = Picodollars>>(costs: I) -> Picodollars {
        costs.fold(Picodollars::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::Picodollars;

    #[test]
    fn only_prices_are_costs() {
        let parse = |text: &str| Picodollars::parse(text.as_bytes()).map(Picodollars::count);
        assert_eq!(parse("0.00366"), Some(3_660_000_000));
        assert_eq!(parse("1e-3"), Some(1_000_000_000));
        for text in ["0", "0.0", "-1", "1e300", "NaN", "inf", "null", "\"1\"", ""] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(Picodollars::from_dollars(0.0), Some(Picodollars::default()));
        let cost = Picodollars::new(7);
        assert_eq!(Picodollars::from_stored((cost * 3).stored()).count(), 21);
        assert_eq!(Picodollars::new(i128::MAX).stored(), i64::MAX);
    }
}
