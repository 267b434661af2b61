//! Responses that were sent tokens again which the cache had, what that cost, and the largest context of each session.

use std::collections::HashMap;

use super::{About, InsightKind, Insights, Moment, StepPlace};
use crate::view::context::View;
use crate::view::format;
use crate::view::usage::prices::price_of;
use annals_core::{FileId, Result, SessionId, Time, Tokens};
use annals_store::{Between, SessionFilter, TurnRow};

/// Shorter prompts are not cached by any provider.
const LEAST: i64 = 1_024;

pub(super) fn add(
    view: &View<'_>,
    filter: &SessionFilter,
    between: Between,
    insights: &mut Insights,
) -> Result<()> {
    let mut before: Option<Turn> = None;
    let mut largest: HashMap<SessionId, Moment> = HashMap::new();
    view.archive.turns_between(filter, between, &mut |row| {
        // A notice of the client in the place of a response.
        if row.tokens.prompt() == 0 {
            return;
        }
        let turn = Turn::of(&row);
        let missed =
            before.as_ref().filter(|before| before.of == turn.of).and_then(|before| turn.missed(before));
        let (place, step) = (row.place, || StepPlace::Until(row.file, row.offset));
        if let Some(missed) = missed {
            let about = About::Text(missed.text);
            insights.moments.push(Moment::new(
                InsightKind::Missed,
                place.clone(),
                missed.dollars,
                step(),
                about,
            ));
        }
        before = Some(turn);
        let context = row.tokens.prompt() as f64;
        if largest.get(&place.session).is_none_or(|known| known.amount < context) {
            let session = place.session;
            largest
                .insert(session, Moment::new(InsightKind::Context, place, context, step(), About::Nothing));
        }
    })?;
    insights.moments.extend(largest.into_values());
    Ok(())
}

/// A response, as far as its cache is concerned.
struct Turn {
    of: (SessionId, FileId),
    at: Time,
    model: Option<String>,
    tokens: Tokens,
}

struct Missed {
    dollars: f64,
    text: String,
}

impl Turn {
    fn of(row: &TurnRow) -> Turn {
        Turn {
            of: (row.place.session, row.file),
            at: row.place.at,
            model: row.model.clone(),
            tokens: row.tokens,
        }
    }

    /// At least half of what the cache held was sent again, and cost more than reading it from there. A prompt that is
    /// shorter than what was cached is another conversation.
    fn missed(&self, before: &Turn) -> Option<Missed> {
        let now = self.tokens;
        let written = |tokens: Tokens| tokens.cache_write + tokens.cache_write_hour;
        let cached = before.tokens.cache_read + written(before.tokens);
        let sent = Tokens { output: 0, cache_read: 0, reasoning: 0, ..now };
        let missed = (cached - now.cache_read).min(sent.prompt());
        if cached > now.prompt() || missed < LEAST.max(cached / 2) {
            return None;
        }
        let (price, class) = (price_of(self.model.as_deref()?, self.at.day())?, now.prompt_class());
        let read = Tokens { cache_read: missed, ..Tokens::default() };
        let paid = price.cost(class, sent).dollars() * missed as f64 / sent.prompt() as f64;
        let dollars = paid - price.cost(class, read).dollars();
        let waited = format::milliseconds((self.at.micros() - before.at.micros()) / 1_000);
        let switched = if self.model == before.model { "" } else { ", with another model" };
        let text = format!(
            "{} tokens sent again, {waited} after the response before{switched}",
            format::compact(missed)
        );
        (dollars > 0.0).then_some(Missed { dollars, text })
    }
}

#[cfg(test)]
mod tests {
    use super::Turn;
    use annals_core::{FileId, SessionId, Time, Tokens};

    fn turn(minutes: i64, model: &str, [input, cache_read, cache_write]: [i64; 3]) -> Turn {
        Turn {
            of: (SessionId(1), FileId(1)),
            at: Time::from_micros(1_790_000_000_000_000 + minutes * 60_000_000),
            model: Some(model.to_owned()),
            tokens: Tokens { input, cache_read, cache_write, output: 100, ..Tokens::default() },
        }
    }

    #[test]
    fn what_the_cache_had_is_missed_when_it_is_paid_again() {
        let model = "gpt-5";
        let before = turn(0, model, [10, 40_000, 10_000]);
        let missed = turn(20, model, [50_000, 0, 0]).missed(&before).expect("a miss");
        // Sent at $1.25 instead of read at $0.125 per million.
        assert!((missed.dollars - 0.05 * 1.125).abs() < 1e-9, "{}", missed.dollars);
        assert_eq!(missed.text, "50 K tokens sent again, 20 min after the response before");
        let other = turn(1, "o3", [60_000, 0, 0]).missed(&before).expect("a miss");
        assert!(other.text.ends_with(", with another model"), "{}", other.text);
    }

    #[test]
    fn a_hit_a_short_prompt_and_an_unpriced_model_are_no_misses() {
        let model = "gpt-5";
        let before = turn(0, model, [10, 40_000, 10_000]);
        for (now, why) in [
            (turn(1, model, [10, 50_000, 2_000]), "all of it was read"),
            (turn(1, model, [10, 30_000, 22_000]), "most of it was read"),
            (turn(1, model, [900, 0, 20_000]), "a compacted conversation"),
            (turn(1, "nobody-knows-it", [60_000, 0, 0]), "no price"),
        ] {
            assert!(now.missed(&before).is_none(), "{why}");
        }
        let short = turn(0, model, [900, 0, 900]);
        assert!(turn(1, model, [2_000, 0, 0]).missed(&short).is_none(), "too short for a cache");
    }
}
