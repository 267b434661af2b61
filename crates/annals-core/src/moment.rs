//! Times and periods as people write them: `7d`, `yesterday`, `monday`, `last week`, `march`, `2026-03-01`.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::{ToSpan, Zoned};

use super::nearest::nearest_few;
use super::zone::{zone, zoned};
use super::{Error, Result, Time};

/// A day, a week from Monday to Sunday, or a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calendar {
    Day,
    Week,
    Month,
}

/// A stretch of whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub calendar: Calendar,
    pub first: Date,
    /// The last day, included.
    pub last: Date,
}

impl Period {
    /// The day, week or month that contains a date.
    pub fn of(calendar: Calendar, date: Date) -> Period {
        let (first, last) = match calendar {
            Calendar::Day => (date, date),
            Calendar::Week => {
                let first = date.saturating_sub(i64::from(date.weekday().to_monday_zero_offset()).days());
                (first, first.saturating_add(6.days()))
            }
            Calendar::Month => (date.first_of_month(), date.last_of_month()),
        };
        Period { calendar, first, last }
    }

    /// When it begins, and when the next one does.
    pub fn bounds(&self) -> Result<(Time, Time)> {
        let start = |date: Date| date.to_zoned(zone()).map(|start| time(&start));
        let outside = |_| Error::bad_request(format!("not a date on any calendar: {}", self.first));
        let next = self.last.checked_add(1.day()).map_err(outside)?;
        Ok((start(self.first).map_err(outside)?, start(next).map_err(outside)?))
    }
}

/// A point in time; days are those of the zone that people mean.
pub fn parse_moment(text: &str, now: Time) -> Result<Time> {
    let here = zoned(now).ok_or_else(|| unclear(text))?;
    let words = folded(text);
    if let Some(moment) = ago(&words, &here) {
        return Ok(time(&moment));
    }
    if words == "now" {
        return Ok(now);
    }
    if let Some(exact) = Time::parse(text) {
        return Ok(exact);
    }
    let local = match named_date(&words, &here) {
        Some((_, date)) => date.at(0, 0, 0, 0),
        None => {
            let given = text.trim().replace(' ', "T");
            given.parse::<DateTime>().map_err(|_| unclear(text))?
        }
    };
    Ok(time(&local.to_zoned(zone()).map_err(|_| unclear(text))?))
}

/// The day, week or month that a text names: a date in it, or a word such as `yesterday`, `last week` or `march`.
pub fn parse_period(text: &str, calendar: Calendar, now: Time) -> Result<Period> {
    let here = zoned(now).ok_or_else(|| unclear(text))?;
    let words = folded(text);
    let date = match named_date(&words, &here) {
        Some((_, date)) => date,
        None => zoned(parse_moment(text, now)?).ok_or_else(|| unclear(text))?.date(),
    };
    Ok(Period::of(calendar, date))
}

/// The period of today.
pub fn current_period(calendar: Calendar, now: Time) -> Result<Period> {
    zoned(now).map(|here| Period::of(calendar, here.date())).ok_or_else(|| unclear("now"))
}

/// Lower case, with single spaces in place of what else separates words.
fn folded(text: &str) -> String {
    let text = text.trim().to_lowercase();
    // A dash within digits belongs to a date.
    let is_date = text.starts_with(|first: char| first.is_ascii_digit());
    let text = if is_date { text } else { text.replace(['-', '_'], " ") };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
pub(crate) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WORDS: [&str; 7] =
    ["today", "yesterday", "this week", "last week", "this month", "last month", "last year"];

/// A name for a date in the past, and how long the named period is. Names of days and months mean the last one, which
/// may be the current one; with `last` before them, never the current one.
fn named_date(words: &str, here: &Zoned) -> Option<(Calendar, Date)> {
    let today = here.date();
    let week = Period::of(Calendar::Week, today).first;
    let found = match words {
        "today" => (Calendar::Day, today),
        "yesterday" => (Calendar::Day, today.checked_sub(1.day()).ok()?),
        "this week" | "week" => (Calendar::Week, week),
        "last week" => (Calendar::Week, week.checked_sub(1.week()).ok()?),
        "this month" | "month" => (Calendar::Month, today.first_of_month()),
        "last month" => (Calendar::Month, today.first_of_month().checked_sub(1.month()).ok()?),
        "this year" | "year" => (Calendar::Month, today.first_of_year()),
        "last year" => (Calendar::Month, today.first_of_year().checked_sub(1.year()).ok()?),
        _ => {
            let (name, strictly) = match words.strip_prefix("last ") {
                Some(name) => (name, true),
                None => (words, false),
            };
            return named_day(name, strictly, today)
                .or_else(|| named_month(name, strictly, today))
                .or_else(|| numbered(words));
        }
    };
    Some(found)
}

/// `monday`, `mon`.
fn named_day(name: &str, strictly: bool, today: Date) -> Option<(Calendar, Date)> {
    let day = position(name, &DAYS)?;
    let day = Weekday::from_monday_zero_offset(i8::try_from(day).ok()?).ok()?;
    if today.weekday() == day && !strictly {
        return Some((Calendar::Day, today));
    }
    Some((Calendar::Day, today.nth_weekday(-1, day).ok()?))
}

/// `march`, `mar`, `march 2025`.
fn named_month(name: &str, strictly: bool, today: Date) -> Option<(Calendar, Date)> {
    let (name, year) = match name.split_once(' ') {
        Some((name, year)) => (name, Some(year.parse::<i16>().ok().filter(|year| *year >= 1970)?)),
        None => (name, None),
    };
    let month = i8::try_from(position(name, &MONTHS)? + 1).ok()?;
    let is_past = if strictly { month < today.month() } else { month <= today.month() };
    let year = year.unwrap_or(if is_past { today.year() } else { today.year().checked_sub(1)? });
    Some((Calendar::Month, Date::new(year, month, 1).ok()?))
}

/// `2026-03` and `2026-03-01`.
fn numbered(words: &str) -> Option<(Calendar, Date)> {
    if words.len() == 7 {
        return Some((Calendar::Month, format!("{words}-01").parse::<Date>().ok()?));
    }
    (words.len() == 10).then(|| words.parse::<Date>().ok()).flatten().map(|date| (Calendar::Day, date))
}

/// The position of a name of which at least the first three letters are given.
fn position(name: &str, names: &[&str]) -> Option<usize> {
    let name = name.strip_suffix('.').unwrap_or(name);
    (name.len() >= 3).then(|| names.iter().position(|full| full.starts_with(name))).flatten()
}

/// `7d`, `7 days`, `2 weeks ago`.
fn ago(words: &str, here: &Zoned) -> Option<Zoned> {
    let words = words.strip_suffix(" ago").unwrap_or(words);
    let unit = words.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = words.split_at(unit);
    let number: i64 = number.parse().ok()?;
    let span = match unit.trim() {
        "m" | "min" | "minute" | "minutes" => number.minutes(),
        "h" | "hour" | "hours" => number.hours(),
        "d" | "day" | "days" => number.days(),
        "w" | "week" | "weeks" => number.weeks(),
        "mo" | "month" | "months" => number.months(),
        "y" | "year" | "years" => number.years(),
        _ => return None,
    };
    here.checked_sub(span).ok()
}

fn time(moment: &Zoned) -> Time {
    Time::from_micros(moment.timestamp().as_microsecond())
}

fn unclear(text: &str) -> Error {
    let names: Vec<&str> = WORDS.iter().chain(&DAYS).chain(&MONTHS).copied().collect();
    let near = nearest_few(&folded(text), &names);
    let hint = match near.is_empty() {
        true => "use 2026-03-01, 2026-03-01T12:00:00Z, 7d, 12h, today, yesterday, monday, last week or march"
            .to_owned(),
        false => format!("did you mean {}?", near.join(", ")),
    };
    Error::bad_request(format!("not a time: {text:?}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Sunday.
    const NOW: &str = "2026-11-15T12:00:00Z";

    #[test]
    fn reads_what_people_type() {
        let now = Time::parse(NOW).unwrap();
        let parse = |text: &str| parse_moment(text, now);
        assert_eq!(parse("2026-11-01T00:00:00Z").unwrap().rfc3339(), "2026-11-01T00:00:00.000Z");
        assert_eq!(now.micros() - parse("12h").unwrap().micros(), 12 * 3_600_000_000);
        assert_eq!(parse("3d").unwrap(), parse("3 days ago").unwrap());
        assert_eq!(parse("2w").unwrap(), parse("14 days").unwrap());
        assert!(parse("yesterday").unwrap() < parse("today").unwrap());
        assert!(parse("2026-03-01 09:30").unwrap() > parse("2026-03-01").unwrap());
        for text in ["", "soon", "7", "d", "99999999999999999999d", "2026-99-01", "ma", "last", "march 99"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let hint = |text: &str| parse(text).unwrap_err().hint.unwrap_or_default();
        assert_eq!(hint("mondy"), "did you mean monday?");
        assert!(hint("yesteday").starts_with("did you mean yesterday"), "{}", hint("yesteday"));
        assert!(hint("soon").starts_with("use 2026-03-01"), "{}", hint("soon"));
    }

    #[test]
    fn names_mean_the_last_one() {
        let here = Time::parse(NOW).unwrap();
        let here =
            jiff::Timestamp::from_microsecond(here.micros()).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
        for (text, date) in [
            ("Monday", "2026-11-09"),
            ("sun", "2026-11-15"),
            ("last sunday", "2026-11-08"),
            ("last-week", "2026-11-02"),
            ("this week", "2026-11-09"),
            ("March", "2026-03-01"),
            ("nov", "2026-11-01"),
            ("last november", "2025-11-01"),
            ("december", "2025-12-01"),
            ("march 2025", "2025-03-01"),
            ("last month", "2026-10-01"),
            ("2026-02", "2026-02-01"),
        ] {
            let found = named_date(&folded(text), &here).map(|(_, date)| date.to_string());
            assert_eq!(found.as_deref(), Some(date), "{text}");
        }
    }

    #[test]
    fn periods_are_whole_days() {
        let of = |calendar, date: &str| {
            let period = Period::of(calendar, date.parse().unwrap());
            (period.first.to_string(), period.last.to_string())
        };
        let pair = |first: &str, last: &str| (first.to_owned(), last.to_owned());
        assert_eq!(of(Calendar::Week, "2026-11-15"), pair("2026-11-09", "2026-11-15"));
        assert_eq!(of(Calendar::Week, "2026-11-16"), pair("2026-11-16", "2026-11-22"));
        assert_eq!(of(Calendar::Month, "2024-02-10"), pair("2024-02-01", "2024-02-29"));
        assert_eq!(of(Calendar::Day, "2026-11-15"), pair("2026-11-15", "2026-11-15"));
        let (from, to) = Period::of(Calendar::Day, "2026-11-15".parse().unwrap()).bounds().unwrap();
        assert_eq!(to.micros() - from.micros(), 86_400_000_000);
    }
}
