//! The retry policy: when something that could not be fetched is retried or given up.

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::Time;
use crate::stored::named;

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum FailureKind {
    /// A file, directory or database could not be read.
    Unreadable,
    /// A file changed while it was read.
    Changing,
    /// 401: the user has to log in.
    SignIn,
    /// 429, or a challenge instead of it.
    RateLimited,
    /// 5xx, or no capacity on the other side.
    Pressure,
    /// No response in time, or no connection.
    Timeout,
    /// 404.
    NotFound,
    /// 410.
    Gone,
    /// 403.
    Forbidden,
    /// A response that was not understood, or incomplete.
    Malformed,
    /// A list that does not look as it used to: it says nothing about what it lists.
    ShapeChanged,
    /// Anything else.
    Failed,
}

/// What happens to a gap next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryStep {
    /// Retried by every run.
    EachRun,
    /// Not retried before then.
    NotBefore(Time),
    GivenUp(GiveUp),
}

/// Why a gap is no longer retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum GiveUp {
    NotFound,
    Gone,
    /// Too many attempts without progress; a newer connector or reader tries once more.
    Quarantined,
}

/// The attempts so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts<'t> {
    /// Of the last attempt.
    pub why: FailureKind,
    /// All attempts; none if it was never requested.
    pub attempts: u32,
    /// Attempts that failed because of the item itself, not because of a transient failure: see
    /// `FailureKind::is_transient`.
    pub refusals: u32,
    /// The version of connector and reader at the last attempt, and now.
    pub failed_with: &'t str,
    pub running: &'t str,
}

/// Attempts at something that does not exist.
pub const MISSING_TRIES: u32 = 3;
/// Attempts without progress at something that exists and cannot be fetched.
pub const HOPELESS_TRIES: u32 = 8;

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

/// What happens to a gap whose last attempt was at `now`.
pub fn next_step(history: Attempts<'_>, now: Time) -> RetryStep {
    let after = |first: i64, longest: i64| {
        // Waits double. Beyond twenty doublings every wait is the longest.
        let doublings = history.attempts.saturating_sub(1).min(20);
        RetryStep::NotBefore(Time::from_micros(
            now.micros().saturating_add((first << doublings).min(longest)),
        ))
    };
    let unless = |tries: u32, end: GiveUp, otherwise: RetryStep| {
        if history.refusals >= tries { RetryStep::GivenUp(end) } else { otherwise }
    };
    match history.why {
        FailureKind::Unreadable | FailureKind::Changing | FailureKind::SignIn => RetryStep::EachRun,
        FailureKind::RateLimited => after(MINUTE, HOUR),
        FailureKind::Pressure | FailureKind::Timeout => after(MINUTE, 6 * HOUR),
        // Only another version understands it, or the provider changes its mind.
        FailureKind::ShapeChanged if history.failed_with != history.running => RetryStep::EachRun,
        FailureKind::ShapeChanged => after(24 * HOUR, 24 * HOUR),
        FailureKind::NotFound => unless(MISSING_TRIES, GiveUp::NotFound, after(HOUR, 24 * HOUR)),
        FailureKind::Gone => unless(MISSING_TRIES, GiveUp::Gone, after(HOUR, 24 * HOUR)),
        FailureKind::Forbidden | FailureKind::Malformed | FailureKind::Failed
            if history.failed_with != history.running =>
        {
            RetryStep::EachRun
        }
        FailureKind::Forbidden | FailureKind::Malformed | FailureKind::Failed => {
            unless(HOPELESS_TRIES, GiveUp::Quarantined, after(5 * MINUTE, 24 * HOUR))
        }
    }
}

/// Lower is sooner: few attempts and old age first. An attempt weighs as much as fifteen minutes of waiting, and at
/// most eight of either count: frequent failures are not starved by new gaps, nor do they starve them.
pub fn urgency(attempts: u32, first_seen: Time, now: Time) -> i64 {
    let age = now.micros().saturating_sub(first_seen.micros()).max(0) / (15 * MINUTE);
    i64::from(attempts.min(8)) - age.min(8)
}

impl FailureKind {
    /// The failure kind of an HTTP status other than success.
    pub fn of_status(status: u16) -> FailureKind {
        match status {
            401 => FailureKind::SignIn,
            403 => FailureKind::Forbidden,
            404 => FailureKind::NotFound,
            408 => FailureKind::Timeout,
            410 => FailureKind::Gone,
            429 => FailureKind::RateLimited,
            500..=599 => FailureKind::Pressure,
            _ => FailureKind::Failed,
        }
    }

    /// The failure passes and says nothing about the requested item: never a reason to give up.
    pub fn is_transient(self) -> bool {
        match self {
            FailureKind::Unreadable
            | FailureKind::Changing
            | FailureKind::SignIn
            | FailureKind::RateLimited
            | FailureKind::Pressure
            | FailureKind::Timeout
            | FailureKind::ShapeChanged => true,
            FailureKind::NotFound
            | FailureKind::Gone
            | FailureKind::Forbidden
            | FailureKind::Malformed
            | FailureKind::Failed => false,
        }
    }
}

named!(FailureKind, GiveUp);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Time = Time::from_micros(1_794_727_723_975_000);
    const DAY: i64 = 24 * HOUR;

    fn history(why: FailureKind, attempts: u32) -> Attempts<'static> {
        let refusals = if why.is_transient() { 0 } else { attempts };
        Attempts { why, attempts, refusals, failed_with: "1", running: "1" }
    }

    #[test]
    fn every_reason_has_its_course() {
        // What the first, second, third, eighth and hundredth failure lead to: minutes to wait, or giving up.
        let table = [
            (FailureKind::Unreadable, ["run", "run", "run", "run", "run"]),
            (FailureKind::Changing, ["run", "run", "run", "run", "run"]),
            (FailureKind::SignIn, ["run", "run", "run", "run", "run"]),
            (FailureKind::RateLimited, ["1", "2", "4", "60", "60"]),
            (FailureKind::Pressure, ["1", "2", "4", "128", "360"]),
            (FailureKind::Timeout, ["1", "2", "4", "128", "360"]),
            (FailureKind::NotFound, ["60", "120", "not_found", "not_found", "not_found"]),
            (FailureKind::Gone, ["60", "120", "gone", "gone", "gone"]),
            (FailureKind::Forbidden, ["5", "10", "20", "quarantined", "quarantined"]),
            (FailureKind::Malformed, ["5", "10", "20", "quarantined", "quarantined"]),
            (FailureKind::ShapeChanged, ["1440", "1440", "1440", "1440", "1440"]),
            (FailureKind::Failed, ["5", "10", "20", "quarantined", "quarantined"]),
        ];
        assert_eq!(table.map(|(why, _)| why), FailureKind::VARIANTS);
        for (why, course) in table {
            let steps = [1, 2, 3, 8, 100].map(|attempts| match next_step(history(why, attempts), NOW) {
                RetryStep::EachRun => "run".to_owned(),
                RetryStep::NotBefore(time) => ((time.micros() - NOW.micros()) / MINUTE).to_string(),
                RetryStep::GivenUp(end) => end.name().to_owned(),
            });
            assert_eq!(steps.each_ref().map(String::as_str), course, "{why:?}");
            assert_eq!(FailureKind::from_name(why.name()), Some(why));
        }
        assert_eq!(FailureKind::from_name("lost"), None);
    }

    #[test]
    fn a_newer_version_tries_once_what_was_quarantined() {
        for why in FailureKind::VARIANTS.iter().copied() {
            let newer = Attempts { running: "2", ..history(why, 100) };
            let step = next_step(newer, NOW);
            let quarantined = next_step(history(why, 100), NOW) == RetryStep::GivenUp(GiveUp::Quarantined);
            assert_eq!(
                quarantined,
                matches!(why, FailureKind::Forbidden | FailureKind::Malformed | FailureKind::Failed)
            );
            if quarantined || why == FailureKind::ShapeChanged {
                assert_eq!(step, RetryStep::EachRun, "{why:?}");
            } else {
                assert_eq!(step, next_step(history(why, 100), NOW), "{why:?}: a version changes nothing");
            }
            // Another failure ends it again.
            let failed = Attempts { failed_with: "2", attempts: 101, refusals: newer.refusals + 1, ..newer };
            assert_eq!(next_step(failed, NOW) == RetryStep::GivenUp(GiveUp::Quarantined), quarantined);
        }
    }

    #[test]
    fn statuses_map_to_failure_kinds() {
        let table = [
            (401, FailureKind::SignIn),
            (403, FailureKind::Forbidden),
            (404, FailureKind::NotFound),
            (408, FailureKind::Timeout),
            (410, FailureKind::Gone),
            (418, FailureKind::Failed),
            (429, FailureKind::RateLimited),
            (500, FailureKind::Pressure),
            (503, FailureKind::Pressure),
            (599, FailureKind::Pressure),
            (302, FailureKind::Failed),
        ];
        for (status, why) in table {
            assert_eq!(FailureKind::of_status(status), why, "{status}");
        }
    }

    #[test]
    fn few_tries_and_old_age_come_first() {
        let ago = |minutes: i64| Time::from_micros(NOW.micros() - minutes * MINUTE);
        let fresh_once = urgency(1, ago(0), NOW);
        let fresh_often = urgency(7, ago(0), NOW);
        let old_once = urgency(1, ago(120), NOW);
        let old_often = urgency(100, ago(100_000), NOW);
        assert!(old_once < fresh_once && fresh_once < fresh_often);
        assert!(old_often < fresh_once, "what waits long enough is served though it failed often");
        assert!(old_once < old_often);
    }

    fn any_failure() -> impl Strategy<Value = FailureKind> {
        proptest::sample::select(FailureKind::VARIANTS.to_vec())
    }

    proptest! {
        #[test]
        fn transient_failures_never_end_a_gap(
            why in any_failure(), attempts in 1..u32::MAX, refusals in any::<u32>(), now in any::<i64>(), newer: bool,
        ) {
            let running = if newer { "2" } else { "1" };
            let history = Attempts { why, attempts, refusals, failed_with: "1", running };
            let step = next_step(history, Time::from_micros(now));
            if why.is_transient() {
                prop_assert!(!matches!(step, RetryStep::GivenUp(_)));
            }
            if let RetryStep::NotBefore(next) = step {
                prop_assert!(next.micros() >= now);
                prop_assert!(next.micros().saturating_sub(now) <= DAY);
                prop_assert!(next.micros() > now || now == i64::MAX);
            }
        }

        #[test]
        fn more_tries_and_later_tries_wait_longer(
            why in any_failure(), attempts in 1..1_000u32, more in 0..1_000u32, now in 0..i64::MAX / 2, later in 0..DAY,
        ) {
            let at = |attempts, now| match next_step(history(why, attempts), Time::from_micros(now)) {
                RetryStep::EachRun => 0,
                RetryStep::NotBefore(time) => time.micros(),
                RetryStep::GivenUp(_) => i64::MAX,
            };
            prop_assert!(at(attempts, now) <= at(attempts + more, now));
            prop_assert!(at(attempts, now) <= at(attempts, now + later));
        }

        #[test]
        fn missing_items_are_given_up(attempts in MISSING_TRIES..u32::MAX, now in any::<i64>()) {
            let now = Time::from_micros(now);
            prop_assert_eq!(next_step(history(FailureKind::NotFound, attempts), now), RetryStep::GivenUp(GiveUp::NotFound));
            prop_assert_eq!(next_step(history(FailureKind::Gone, attempts), now), RetryStep::GivenUp(GiveUp::Gone));
        }

        #[test]
        fn urgency_is_bounded_and_monotone(
            attempts in any::<u32>(), first in any::<i64>(), now in any::<i64>(), later in 0..DAY,
        ) {
            let (first, then) = (Time::from_micros(first), Time::from_micros(now.saturating_add(later)));
            let now = Time::from_micros(now);
            let score = urgency(attempts, first, now);
            prop_assert!((-8..=8).contains(&score));
            prop_assert!(urgency(attempts, first, then) <= score);
            prop_assert!(urgency(attempts.saturating_add(1), first, now) >= score);
        }
    }
}
