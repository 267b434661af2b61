//! A point in time: microseconds since 1970 in UTC, parsed from what clients write, formatted as RFC 3339.

use serde::{Deserialize, Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

impl Time {
    pub const fn from_micros(micros: i64) -> Time {
        Time(micros)
    }

    pub fn from_millis(millis: i64) -> Time {
        Time(millis.saturating_mul(1_000))
    }

    pub fn from_seconds(seconds: i64) -> Time {
        Time(seconds.saturating_mul(1_000_000))
    }

    pub fn micros(self) -> i64 {
        self.0
    }

    /// Minutes since 1970.
    pub fn minute(self) -> i64 {
        self.0.div_euclid(60_000_000)
    }

    /// Days since 1970 in UTC.
    pub fn day(self) -> i64 {
        self.0.div_euclid(DAY)
    }

    pub fn from_day(day: i64) -> Time {
        Time(day.saturating_mul(DAY))
    }

    /// The date alone.
    pub fn date(self) -> String {
        let (year, month, day) = civil_from_days(self.0.clamp(FIRST, LAST).div_euclid(DAY));
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// RFC 3339 with any fraction and offset; text without an offset is taken as UTC.
    pub fn parse(text: &str) -> Option<Time> {
        parse_utc(text.as_bytes())
            .or_else(|| text.parse::<jiff::Timestamp>().ok().map(|stamp| Time(stamp.as_microsecond())))
    }

    /// UTC with milliseconds, or microseconds if there are any.
    pub fn rfc3339(self) -> String {
        // RFC 3339 years have four digits.
        let moment = self.0.clamp(FIRST, LAST);
        let (days, in_day) = (moment.div_euclid(DAY), moment.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        let (seconds, micros) = (in_day / 1_000_000, in_day % 1_000_000);
        let mut text = String::with_capacity("2026-11-15T07:28:43.975000Z".len());
        let parts = [
            (year, 4, '-'),
            (month, 2, '-'),
            (day, 2, 'T'),
            (seconds / 3600, 2, ':'),
            (seconds / 60 % 60, 2, ':'),
            (seconds % 60, 2, '.'),
            if micros % 1_000 == 0 { (micros / 1_000, 3, 'Z') } else { (micros, 6, 'Z') },
        ];
        // Lists contain many times, and `format!` costs ten times as much.
        for (number, digits, end) in parts {
            for place in (0..digits).rev() {
                text.push(char::from(b'0' + (number / 10_i64.pow(place) % 10) as u8));
            }
            text.push(end);
        }
        text
    }
}

/// Answers carry text; stored states keep the number (see `Deserialize` and `stored`).
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

const DAY: i64 = 86_400_000_000;
/// The years 0 to 9999.
const FIRST: i64 = -719_528 * DAY;
const LAST: i64 = 2_932_897 * DAY - 1;

/// Parses the usual form, `2026-11-15T07:28:43.975Z`, without the cost of a general parser.
fn parse_utc(text: &[u8]) -> Option<Time> {
    if text.len() < 20 || *text.last()? != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        text[from..to]
            .iter()
            .try_fold(0i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, byte)| text[*at] != *byte) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let fraction = match &text[19..text.len() - 1] {
        [] => 0,
        [b'.', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            (0..6).fold(0i64, |sum, at| sum * 10 + digits.get(at).map_or(0, |byte| i64::from(byte - b'0')))
        }
        _ => return None,
    };
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Time(seconds * 1_000_000 + fraction))
}

/// Days since 1970-01-01 of a Gregorian date, by eras of 400 years that begin in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn reads_what_clients_write() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-15T07:28:43.975Z", 1_794_727_723_975_000),
            ("2026-11-15T07:28:37.664620952Z", 1_794_727_717_664_620),
            ("2026-11-15T09:28:43.975+02:00", 1_794_727_723_975_000),
            ("2024-02-29T23:59:59Z", 1_709_251_199_000_000),
        ];
        for (text, micros) in cases {
            assert_eq!(Time::parse(text), Some(Time(micros)), "{text}");
        }
        for text in ["", "yesterday", "2026-13-15T07:28:43Z", "2026-11-15T07:28:43.Z", "2026-11-15 07:28"] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    #[test]
    fn writes_back_what_it_read() {
        for text in ["1969-12-31T23:59:59.999Z", "2026-11-15T07:28:43.975Z", "2000-02-29T00:00:00.000001Z"] {
            assert_eq!(Time::parse(text).unwrap().rfc3339(), text);
        }
    }

    #[test]
    fn absurd_moments_stay_within_four_digits() {
        assert_eq!(Time(i64::MAX).rfc3339(), "9999-12-31T23:59:59.999999Z");
        assert_eq!(Time(i64::MIN).rfc3339(), "0000-01-01T00:00:00.000Z");
    }

    #[test]
    fn agrees_with_jiff_over_two_centuries() {
        for day in (-20_000..60_000).step_by(17) {
            let ours = Time(day * super::DAY + 12_345_678_000);
            let theirs = jiff::Timestamp::from_microsecond(ours.micros()).unwrap();
            assert_eq!(Time::parse(&theirs.to_string()), Some(ours));
            assert_eq!(ours.rfc3339().parse::<jiff::Timestamp>().unwrap(), theirs);
        }
    }
}
