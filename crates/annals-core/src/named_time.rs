//! Periods that people name in a question: `last week`, `in March`, `3 days ago`, `on 5 July 2025`.

use std::ops::Range;

use jiff::civil::{Date, date};
use jiff::{Span, ToSpan};

use super::Time;
use super::moment::MONTHS;
use super::zone::{zone, zoned};

/// A period, and the words that named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTime {
    pub text: String,
    pub since: Time,
    pub until: Time,
}

impl NamedTime {
    /// Names of months and years, which texts about that time may contain too.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_year = |word: &str| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        self.text.split(' ').filter(move |word| MONTHS.contains(word) || is_year(word))
    }

    /// Whether a passage of this minute is in it; 0 is unknown.
    pub fn contains(&self, minute: i64) -> bool {
        minute != 0 && (self.since.minute()..self.until.minute()).contains(&minute)
    }
}

/// The first period that these words, in lower case, name, and which of them do. Days are those of the local time zone.
pub fn find_time(words: &[&str], now: Time) -> Option<(Range<usize>, NamedTime)> {
    let zone = zone();
    let today = zoned(now)?.date();
    let words: Vec<&str> =
        words.iter().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric())).collect();
    for start in 0..words.len() {
        let Some((count, first, after)) = period_at(&words[start..], today) else { continue };
        // `in March`, `on 5 July`: the small word belongs to it.
        let with = start > 0
            && matches!(words[start - 1], "in" | "on" | "during" | "from" | "of" | "around" | "since");
        let range = start - usize::from(with)..start + count;
        let moment = |day: Date| -> Option<Time> {
            Some(Time::from_micros(day.to_zoned(zone.clone()).ok()?.timestamp().as_microsecond()))
        };
        let period =
            NamedTime { text: words[range.clone()].join(" "), since: moment(first)?, until: moment(after)? };
        return Some((range, period));
    }
    None
}

/// The number of words, the first day, and the day after the last.
fn period_at(words: &[&str], today: Date) -> Option<(usize, Date, Date)> {
    let days = |first: Date, span: Span| Some((first, first.checked_add(span).ok()?));
    let [word, rest @ ..] = words else { return None };
    let next = rest.first().copied().unwrap_or_default();
    let (count, (first, after)) = match (*word, next) {
        ("today", _) => (1, days(today, 1.day())?),
        ("yesterday", _) => (1, days(today.yesterday().ok()?, 1.day())?),
        ("last" | "this", "night" | "morning" | "evening" | "afternoon") => {
            (2, days(today.checked_sub(1.day()).ok()?, 2.days())?)
        }
        ("last" | "past" | "previous" | "this", "week" | "month" | "year" | "quarter") => {
            (2, of_calendar(next, *word == "this", today)?)
        }
        _ => match ago(words, today).or_else(|| of_month(words, today)) {
            Some((count, period)) => (count, period),
            None => match word.parse::<Date>() {
                Ok(day) if word.len() == 10 => (1, days(day, 1.day())?),
                _ => return None,
            },
        },
    };
    Some((count, first, after))
}

/// The calendar week, month or year, and for the last one also the days since: people mean both.
fn of_calendar(unit: &str, this: bool, today: Date) -> Option<(Date, Date)> {
    let monday = today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok()?;
    let first = match unit {
        "week" => monday,
        "month" => today.first_of_month(),
        "quarter" => date(today.year(), (today.month() - 1) / 3 * 3 + 1, 1),
        _ => today.first_of_year(),
    };
    let before = match unit {
        "week" => 7.days(),
        "month" => 1.month(),
        "quarter" => 3.months(),
        _ => 1.year(),
    };
    match this {
        true => Some((first, today.tomorrow().ok()?)),
        false => Some((first.checked_sub(before).ok()?, first)),
    }
}

/// `3 days ago`, `a month ago`, `two weeks ago`: about then.
fn ago(words: &[&str], today: Date) -> Option<(usize, (Date, Date))> {
    let [number, unit, "ago", ..] = words else { return None };
    let number = match *number {
        "a" | "an" | "one" => 1,
        "two" => 2,
        "three" => 3,
        "four" => 4,
        "five" => 5,
        "six" => 6,
        digits => digits.parse::<i64>().ok().filter(|number| (1..1_000).contains(number))?,
    };
    let (span, about) = match unit.trim_end_matches('s') {
        "day" => (number.days(), 0.days()),
        "week" => (number.weeks(), 3.days()),
        "month" => (number.months(), 15.days()),
        "year" => (number.years(), 120.days()),
        _ => return None,
    };
    let then = today.checked_sub(span).ok()?;
    Some((3, (then.checked_sub(about).ok()?, then.checked_add(about).ok()?.tomorrow().ok()?)))
}

/// `in March`, `March 2026`, `5 July`, `July 5th 2025`. `may` and `march` alone are verbs.
fn of_month(words: &[&str], today: Date) -> Option<(usize, (Date, Date))> {
    let month_of =
        |word: &str| MONTHS.iter().zip(1i8..).find(|(name, _)| **name == word).map(|(_, number)| number);
    let day_of = |word: &str| {
        let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let ordinal = matches!(&word[digits.len()..], "" | "st" | "nd" | "rd" | "th");
        digits.parse::<i8>().ok().filter(|day| ordinal && (1..=31).contains(day))
    };
    let year_of = |word: &str| word.parse::<i16>().ok().filter(|year| (1990..2100).contains(year));
    let at = |number: usize| words.get(number).copied().unwrap_or_default();
    let small = usize::from(matches!(at(0), "in" | "on" | "during" | "since"));
    let word = |number: usize| at(small + number);
    let (mut count, month, mut day) = match (month_of(word(0)), day_of(word(0)), month_of(word(1))) {
        (Some(month), _, _) => (1, month, None),
        (None, Some(day), Some(month)) => (2, month, Some(day)),
        _ => {
            let year = year_of(word(0)).filter(|_| small > 0)?;
            return Some((small + 1, (date(year, 1, 1), date(year + 1, 1, 1))));
        }
    };
    if let (None, Some(after)) = (day, day_of(word(count))) {
        (day, count) = (Some(after), count + 1);
    }
    let year = year_of(word(count));
    count += usize::from(year.is_some());
    let is_clear = small > 0 || day.is_some() || year.is_some() || !matches!(month, 3 | 5);
    if !is_clear {
        return None;
    }
    // Without a year, the last one that has begun.
    let year = year.unwrap_or(if (month, day.unwrap_or(1)) <= (today.month(), today.day()) {
        today.year()
    } else {
        today.year() - 1
    });
    let first = Date::new(year, month, day.unwrap_or(1)).ok()?;
    let after = if day.is_some() { first.tomorrow().ok()? } else { first.checked_add(1.month()).ok()? };
    Some((small + count, (first, after)))
}

#[cfg(test)]
mod tests {
    use super::find_time;
    use crate::Time;

    #[test]
    fn periods_are_found_in_questions() {
        let now = Time::parse("2026-11-16T12:00:00Z").unwrap();
        for (question, found) in [
            ("what did we do yesterday", Some(("yesterday", 1.0))),
            ("login fix last week", Some(("last week", 7.0))),
            ("the bug in march", Some(("in march", 31.0))),
            ("trip in may 2025 with anna", Some(("in may 2025", 31.0))),
            ("on july 5th we said", Some(("on july 5th", 1.0))),
            ("meeting 5 july 2025", Some(("5 july 2025", 1.0))),
            ("plans of 2026-03-05", Some(("of 2026-03-05", 1.0))),
            ("notes from 2 days ago", Some(("from 2 days ago", 1.0))),
            ("goals in 2025", Some(("in 2025", 365.0))),
            ("this may fail", None),
            ("ipv4 10 2025", None),
            ("the last one", None),
            ("python 3 days", None),
        ] {
            let words: Vec<&str> = question.split(' ').collect();
            let period = find_time(&words, now).map(|(range, period)| {
                assert_eq!(words[range].join(" "), period.text);
                let days = (period.until.micros() - period.since.micros()) as f64 / 86_400e6;
                assert!(period.since < now, "{question}");
                (period.text, days)
            });
            match (period, found) {
                (None, None) => {}
                (Some((text, days)), Some((expected, count))) => {
                    assert_eq!(text, expected);
                    // A day on which clocks change is an hour longer or shorter.
                    assert!((days - count).abs() < 0.1, "{question}: {days}");
                }
                (period, found) => panic!("{question}: {period:?} is not {found:?}"),
            }
        }
    }
}
