//! What clients say that sessions cost as a whole, divided among their responses: sums by day, model and project have to
//! agree with the costs of sessions.

use std::collections::HashMap;

use super::prices::{Price, price_of};
use crate::view::context::View;
use annals_core::{Picodollars, Result, SessionId, Time};
use annals_store::{ResponseFilter, ResponseRow, SessionTotal, UsageBy, UsageSum};

/// Totals of sessions, read when the first response needs one.
#[derive(Default)]
pub struct SessionTotals {
    by_session: Option<HashMap<SessionId, SessionTotal>>,
}

/// What a response cost, and how that is known.
pub struct ResponseCost {
    pub cost: Option<Picodollars>,
    pub billing_source: &'static str,
    /// The price that the cost was estimated from.
    pub price: Option<&'static Price>,
}

impl View<'_> {
    pub fn usage_sums(&self, by: UsageBy, filter: &ResponseFilter) -> Result<Vec<UsageSum>> {
        let mut sums = self.archive.usage_sums(by, filter)?;
        let mut totals = SessionTotals::default();
        sums.iter_mut().try_for_each(|sum| self.divide(sum, &mut totals, filter.session))?;
        Ok(sums)
    }

    pub fn session_usage(&self, session: SessionId) -> Result<Vec<UsageSum>> {
        let mut sums = self.archive.session_usage(session)?;
        let mut totals = SessionTotals::default();
        sums.iter_mut().try_for_each(|sum| self.divide(sum, &mut totals, Some(session)))?;
        Ok(sums)
    }

    /// Gives a sum its part of what its session cost. `only` is the session of all sums, if they have one.
    pub fn divide(
        &self,
        sum: &mut UsageSum,
        totals: &mut SessionTotals,
        only: Option<SessionId>,
    ) -> Result<()> {
        if let Some(session) = sum.total_of.filter(|_| sum.reported.is_none()) {
            sum.reported = self.totals(totals, only)?.get(&session).map(|total| part_of(total, sum));
        }
        Ok(())
    }

    pub fn response_cost(
        &self,
        row: &ResponseRow,
        totals: &mut SessionTotals,
        only: Option<SessionId>,
    ) -> Result<ResponseCost> {
        let day = row.at.map_or(0, Time::day);
        let mut sum = UsageSum {
            group: None,
            source: String::new(),
            day,
            shown_day: day,
            model: row.model.clone(),
            prompt_class: row.tokens.prompt_class(),
            responses: 1,
            tokens: row.tokens,
            reported: row.reported,
            total_of: row.total_of,
        };
        self.divide(&mut sum, totals, only)?;
        if sum.reported.is_some() {
            return Ok(ResponseCost { cost: sum.reported, billing_source: "reported", price: None });
        }
        let price = row.model.as_deref().and_then(|model| price_of(model, day));
        let cost = price.map(|price| price.cost(sum.prompt_class, sum.tokens));
        let billing_source = if cost.is_some() { "estimated" } else { "unknown" };
        Ok(ResponseCost { cost, billing_source, price })
    }

    fn totals<'t>(
        &self,
        totals: &'t mut SessionTotals,
        only: Option<SessionId>,
    ) -> Result<&'t HashMap<SessionId, SessionTotal>> {
        if totals.by_session.is_none() {
            totals.by_session = Some(self.archive.session_totals(only)?);
        }
        Ok(totals.by_session.get_or_insert_default())
    }
}

/// In proportion to list prices if all models of the session have one; otherwise to tokens, or to responses.
fn part_of(total: &SessionTotal, sum: &UsageSum) -> Picodollars {
    let weights: [fn(&UsageSum) -> Option<i128>; 3] =
        [list_price, |sum| Some(i128::from(sum.tokens.total())), |sum| Some(i128::from(sum.responses))];
    for weight in weights {
        let whole: Option<i128> = total.sums.iter().map(weight).sum();
        if let (Some(whole), Some(part)) = (whole.filter(|whole| *whole > 0), weight(sum)) {
            return Picodollars::new(total.cost.count().saturating_mul(part) / whole);
        }
    }
    Picodollars::default()
}

fn list_price(sum: &UsageSum) -> Option<i128> {
    let price = sum.model.as_deref().and_then(|model| price_of(model, sum.day));
    match price {
        Some(price) => Some(price.cost(sum.prompt_class, sum.tokens).count()),
        // A notice of the client, for example.
        None => Some(0).filter(|_| sum.tokens.total() == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_core::Tokens;

    fn sum(model: &str, input: i64) -> UsageSum {
        UsageSum {
            group: None,
            source: String::new(),
            day: 0,
            shown_day: 0,
            model: Some(model.to_owned()),
            prompt_class: 0,
            responses: 1,
            tokens: Tokens { input, ..Tokens::default() },
            reported: None,
            total_of: Some(SessionId(1)),
        }
    }

    fn parts(sums: &[UsageSum]) -> Vec<i128> {
        let total = SessionTotal { cost: Picodollars::new(1_000), sums: sums.to_vec() };
        sums.iter().map(|sum| part_of(&total, sum).count()).collect()
    }

    #[test]
    fn the_parts_of_a_session_are_what_it_cost() {
        assert_eq!(parts(&[sum("gpt-5.4", 100), sum("gpt-5.4", 300)]), [250, 750]);
        assert_eq!(parts(&[sum("gpt-99", 100), sum("gpt-5.4", 100)]), [500, 500]);
        assert_eq!(parts(&[sum("gpt-99", 0), sum("gpt-98", 0)]), [500, 500]);
        assert_eq!(parts(&[sum("gpt-5.4", 7), sum("<synthetic>", 0)]), [1_000, 0]);
    }
}
