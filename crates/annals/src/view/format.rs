//! Numbers, sizes, money, times and plurals as people read them, in the terminal and on the pages.

use std::time::Duration;

use jiff::Timestamp;

use annals_core::{Time, zone};

/// The first day of the month after one like `2026-03`.
pub fn month_after(month: &str) -> String {
    let (year, number) = month.split_once('-').unwrap_or((month, ""));
    match (year.parse::<i32>(), number.parse::<u32>()) {
        (Ok(year), Ok(12)) => format!("{:04}-01-01", year + 1),
        (Ok(year), Ok(number)) => format!("{year:04}-{:02}-01", number + 1),
        _ => String::new(),
    }
}

/// With separators: `1,234,567`.
pub fn number(count: impl TryInto<i64>) -> String {
    let count = count.try_into().unwrap_or(i64::MAX);
    let digits = count.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if count < 0 { format!("-{text}") } else { text }
}

/// Three significant digits at most: `950`, `12.3 K`, `1.6 B`.
pub fn compact(count: i64) -> String {
    let (amount, unit) = scaled(count.unsigned_abs(), &["", " K", " M", " B", " T"]);
    format!("{}{amount}{unit}", if count < 0 { "-" } else { "" })
}

/// Three significant digits at most: `512 B`, `5 kB`, `1.48 GB`.
pub fn size(bytes: impl TryInto<u64>) -> String {
    let (amount, unit) = scaled(bytes.try_into().unwrap_or(0), &[" B", " kB", " MB", " GB", " TB"]);
    format!("{amount}{unit}")
}

fn scaled<'u>(count: u64, units: &[&'u str]) -> (String, &'u str) {
    let (mut amount, mut step) = (count as f64, 0);
    while amount >= 999.5 && step + 1 < units.len() {
        amount /= 1_000.0;
        step += 1;
    }
    let decimals = match amount {
        _ if step == 0 => 0,
        amount if amount < 9.995 => 2,
        amount if amount < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{amount:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    (text.to_owned(), units[step])
}

/// `$0.42`; more digits below a cent, none above a thousand dollars.
pub fn money(dollars: f64) -> String {
    match dollars.abs() {
        size if size > 0.0 && size < 0.01 => format!("${dollars:.4}"),
        size if size < 1_000.0 => format!("${dollars:.2}"),
        _ => format!("${}", number(dollars.round() as i64)),
    }
}

/// A cost that may be unknown.
pub fn cost(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| "?".to_owned(), money)
}

/// A share of one: `98.5 %`.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// `1 file`, `2,000 files`.
pub fn counted(count: impl TryInto<i64>, noun: &str) -> String {
    plural(count, noun, &format!("{noun}s"))
}

/// `1 reply`, `2 replies`.
pub fn plural(count: impl TryInto<i64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(i64::MAX);
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// How long something took: its two largest units.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.subsec_millis()),
        1..60 => format!("{:.1} s", time.as_millis() as f64 / 1_000.0),
        60..3_600 => two_units(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two_units(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two_units(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

pub fn milliseconds(count: i64) -> String {
    duration(Duration::from_millis(u64::try_from(count).unwrap_or(0)))
}

/// How long something will take: rounded up to a minute.
pub fn wait(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60).max(1);
    duration(Duration::from_secs(minutes * 60))
}

fn two_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        small => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// An RFC 3339 time to the minute, in UTC; a browser shows it in its own time zone.
pub fn minute(moment: &str) -> String {
    moment.get(..16).unwrap_or(moment).replace('T', " ")
}

/// The day of an RFC 3339 time, in UTC.
pub fn day(moment: &str) -> &str {
    moment.get(..10).unwrap_or(moment)
}

/// A time to the minute, in the time zone of this machine.
pub fn local(time: Time) -> String {
    in_local_time(Timestamp::from_microsecond(time.micros()).ok(), "%Y-%m-%d %H:%M")
        .unwrap_or_else(|| "?".into())
}

/// An RFC 3339 time to the minute, in the time zone of this machine; empty without one.
pub fn local_text(moment: Option<&String>) -> String {
    moment.and_then(|moment| Time::parse(moment)).map(local).unwrap_or_default()
}

/// The time of day of an RFC 3339 time, in the time zone of this machine.
pub fn local_clock(moment: &str) -> String {
    in_local_time(moment.parse().ok(), "%H:%M:%S").unwrap_or_default()
}

fn in_local_time(moment: Option<Timestamp>, form: &str) -> Option<String> {
    Some(moment?.to_zoned(zone()).strftime(form).to_string())
}

/// The last component of a path.
pub fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().filter(|part| !part.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        assert_eq!([0, 999, 1_234_567, -1_234].map(number), ["0", "999", "1,234,567", "-1,234"]);
        assert_eq!(number(u64::MAX), number(i64::MAX));
    }

    #[test]
    fn large_numbers_have_three_digits() {
        assert_eq!([0, 950, 1_234, -45_600].map(compact), ["0", "950", "1.23 K", "-45.6 K"]);
        assert_eq!([1_600_000_000, 999_600, 100_000_000].map(compact), ["1.6 B", "1 M", "100 M"]);
        assert_eq!(
            [0_u64, 999, 5_000, 1_234, 12_000_000].map(size),
            ["0 B", "999 B", "5 kB", "1.23 kB", "12 MB"]
        );
        assert_eq!([999_999_i64, 1_480_000_000, -1].map(size), ["1 MB", "1.48 GB", "0 B"]);
    }

    #[test]
    fn money_has_cents() {
        assert_eq!(
            [0.0, 0.0042, 0.42, 12.345, 1_234.5].map(money),
            ["$0.00", "$0.0042", "$0.42", "$12.35", "$1,235"]
        );
        assert_eq!(cost(None), "?");
        assert_eq!([0.0, 0.985, 1.0].map(percent), ["0 %", "98.5 %", "100 %"]);
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2_000].map(|count| counted(count, "file")), ["0 files", "1 file", "2,000 files"]);
        assert_eq!(plural(2, "reply", "replies"), "2 replies");
    }

    #[test]
    fn durations_have_two_units() {
        assert_eq!(
            [12, 1_500, 61_500, 7_260_000].map(milliseconds),
            ["12 ms", "1.5 s", "1 min 1 s", "2 h 1 min"]
        );
        let waits = [
            (0, "1 min"),
            (60, "1 min"),
            (61, "2 min"),
            (3_600, "1 h"),
            (3_660, "1 h 1 min"),
            (90_000, "1 d 1 h"),
        ];
        for (seconds, words) in waits {
            assert_eq!(wait(Duration::from_secs(seconds)), words, "{seconds}");
        }
    }

    #[test]
    fn times_are_cut_to_the_minute() {
        assert_eq!(minute("2026-11-15T07:28:43.975Z"), "2026-11-15 07:28");
        assert_eq!(day("2026-11-15T07:28:43.975Z"), "2026-11-15");
        assert_eq!(last_part("/home/someone/shop/"), "shop");
    }
}
