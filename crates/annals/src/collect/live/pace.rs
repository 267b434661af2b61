//! Request pacing: groups, pauses, waits after a refusal, and an estimate of the remaining rate limit.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use annals_core::Time;

/// Parallel requests.
pub const GROUP: usize = 5;
/// Retries after the first attempt.
pub const RETRIES: u32 = 3;
/// We do not start with a session that ends sooner.
pub const SESSION_LEFT: Duration = Duration::from_secs(5 * 60);

/// The unit of waits; tests shorten it.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub second: Duration,
}

impl Pace {
    /// Pause between two groups.
    pub fn pause(self) -> Duration {
        self.second / 5
    }

    /// Wait before a retry: 2, 4, 8, 16 seconds.
    pub fn wait(self, tries: u32) -> Duration {
        self.second * (2 << tries.min(3))
    }

    /// Timeout of a request; long enough that a busy machine is not mistaken for a silent provider.
    pub fn limit(self) -> Duration {
        (self.second * 30).max(Duration::from_secs(3))
    }

    fn minutes(self, from: Time, to: Time) -> f64 {
        let passed = to.micros().saturating_sub(from.micros()).max(0) as f64;
        passed / (60.0 * self.second.as_micros().max(1) as f64)
    }
}

/// A token bucket as learned from refusals: its size, and how many requests per minute it refills. Kept between runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Time of the last refusal, in microseconds.
    refused_at: Option<i64>,
    /// Requests granted since then.
    given: u64,
    per_minute: f64,
    holds: u64,
}

/// What may be requested now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// Nothing was ever refused.
    Free,
    Some(u64),
    /// More was granted than expected: this many at a time, until one is refused.
    Probe(u64),
    /// Certainly nothing.
    Empty,
}

impl Default for Bucket {
    /// As users report for the strictest provider: about two hundred, then one per minute.
    fn default() -> Bucket {
        Bucket { refused_at: None, given: 0, per_minute: 1.0, holds: 200 }
    }
}

impl Bucket {
    pub fn allowance(&self, pace: Pace, now: Time) -> Allowance {
        // A refusal in the future was recorded by a wrong clock.
        let Some(refused_at) = self.refused_at.filter(|at| *at <= now.micros()) else {
            return Allowance::Free;
        };
        let gained = self.gained(pace, refused_at, now);
        let left = gained - self.given as f64;
        match left >= 1.0 {
            true => Allowance::Some(left as u64),
            false if self.given == 0 => Allowance::Empty,
            // The estimate was too low: continue carefully, and faster with every request granted.
            false => Allowance::Probe(1 + (self.given as f64 - gained).max(0.0) as u64 / 4),
        }
    }

    pub fn given(&mut self) {
        self.given += 1;
    }

    pub fn refused(&mut self, pace: Pace, now: Time) {
        match self.refused_at {
            None => self.holds = self.given.max(1),
            Some(refused_at) => {
                let minutes = pace.minutes(Time::from_micros(refused_at), now);
                // A bucket that was full says nothing about how fast it refills.
                let filled = self.given as f64 >= 0.9 * self.holds as f64;
                if filled {
                    self.holds = self.holds.max(self.given);
                } else if minutes >= 1.0 {
                    let seen = self.given as f64 / minutes;
                    self.per_minute = (f64::midpoint(self.per_minute, seen)).clamp(0.2, 60.0);
                }
            }
        }
        self.refused_at = Some(now.micros());
        self.given = 0;
    }

    /// Wait between two single requests. Every tenth is sent at once, so that a faster pace is noticed.
    pub fn slot(&self, pace: Pace) -> Duration {
        let minute = pace.second * 60;
        if self.given % 10 == 9 { Duration::ZERO } else { minute.div_f64(self.per_minute.max(0.01)) }
    }

    /// How long `count` more requests will take.
    pub fn time_for(&self, count: u64, pace: Pace, now: Time) -> Duration {
        let at_once = match self.allowance(pace, now) {
            Allowance::Free => self.holds.saturating_sub(self.given),
            Allowance::Some(left) => left,
            Allowance::Probe(_) | Allowance::Empty => 0,
        };
        let later = count.saturating_sub(at_once) as f64 / self.per_minute.max(0.01) * 60.0;
        let groups = count.min(at_once).div_ceil(GROUP as u64);
        pace.second.mul_f64(later) + pace.pause() * u32::try_from(groups).unwrap_or(u32::MAX)
    }

    fn gained(&self, pace: Pace, refused_at: i64, now: Time) -> f64 {
        (pace.minutes(Time::from_micros(refused_at), now) * self.per_minute).min(self.holds as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { second: Duration::from_secs(1) };

    fn at(minutes: i64) -> Time {
        Time::from_seconds(1_800_000_000 + 60 * minutes)
    }

    #[test]
    fn a_bucket_is_used_fully_and_not_overrun() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.allowance(PACE, at(0)), Allowance::Free);
        for _ in 0..230 {
            bucket.given();
        }
        bucket.refused(PACE, at(1));
        assert_eq!(bucket.allowance(PACE, at(1)), Allowance::Empty);
        assert_eq!(bucket.time_for(100, PACE, at(1)), Duration::from_secs(6000));
        // After thirty minutes about thirty are available again; after three days no more than the bucket holds.
        assert_eq!(bucket.allowance(PACE, at(31)), Allowance::Some(30));
        assert_eq!(bucket.allowance(PACE, at(4321)), Allowance::Some(230));
        for _ in 0..30 {
            bucket.given();
        }
        assert_eq!(bucket.allowance(PACE, at(31)), Allowance::Probe(1));
        for _ in 0..8 {
            bucket.given();
        }
        assert_eq!(bucket.allowance(PACE, at(31)), Allowance::Probe(3));
        // It granted 38 in 30 minutes, a little more than expected.
        bucket.refused(PACE, at(31));
        assert_eq!(bucket.allowance(PACE, at(31)), Allowance::Empty);
        assert_eq!(bucket.allowance(PACE, at(91)), Allowance::Some(68));
    }

    #[test]
    fn a_refusal_that_is_yet_to_come_hinders_nobody() {
        // A clock that was a year ahead and has been corrected.
        let mut bucket = Bucket::default();
        bucket.refused(PACE, at(525_600));
        assert_eq!(bucket.allowance(PACE, at(0)), Allowance::Free);
        bucket.given();
        bucket.refused(PACE, at(1));
        assert_eq!(bucket.allowance(PACE, at(1)), Allowance::Empty);
    }

    #[test]
    fn waits_double() {
        assert_eq!([0, 1, 2, 3].map(|tries| PACE.wait(tries).as_secs()), [2, 4, 8, 16]);
        assert_eq!(PACE.pause(), Duration::from_millis(200));
        assert_eq!(PACE.limit(), Duration::from_secs(30));
    }
}
