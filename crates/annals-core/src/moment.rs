//! Times as people write them: `7d`, `yesterday`, `2026-03-01`.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

use super::{Error, Result, Time};

/// A point in time; days are those of the local time zone.
pub fn parse_moment(text: &str, now: Time) -> Result<Time> {
    let unclear = || {
        Error::new(format!("not a time: {text:?}"))
            .hint("use 2026-03-01, 2026-03-01T12:00:00Z, 7d, 12h, today or yesterday")
    };
    let zone = TimeZone::system();
    let here = Timestamp::from_microsecond(now.micros()).map_err(|_| unclear())?.to_zoned(zone.clone());
    let moment = match text {
        "now" => Some(here),
        "today" => here.start_of_day().ok(),
        "yesterday" => here.checked_sub(1.day()).and_then(|day| day.start_of_day()).ok(),
        _ => ago(text, &here),
    };
    if let Some(moment) = moment {
        return Ok(time(&moment));
    }
    if let Some(exact) = Time::parse(text) {
        return Ok(exact);
    }
    let local = text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(|date| date.at(0, 0, 0, 0)));
    let local = local.and_then(|local| local.to_zoned(zone)).map_err(|_| unclear())?;
    Ok(time(&local))
}

fn ago(text: &str, here: &Zoned) -> Option<Zoned> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: i64 = number.parse().ok()?;
    let span = match unit {
        "m" => number.minutes(),
        "h" => number.hours(),
        "d" => number.days(),
        "w" => number.weeks(),
        "y" => number.years(),
        _ => return None,
    };
    here.checked_sub(span).ok()
}

fn time(moment: &Zoned) -> Time {
    Time::from_micros(moment.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::super::Time;
    use super::parse_moment as parse;

    #[test]
    fn reads_what_people_type() {
        let now = Time::parse("2026-11-15T12:00:00Z").unwrap();
        assert_eq!(parse("2026-11-01T00:00:00Z", now).unwrap().rfc3339(), "2026-11-01T00:00:00.000Z");
        assert_eq!(now.micros() - parse("12h", now).unwrap().micros(), 12 * 3_600_000_000);
        assert!(parse("yesterday", now).unwrap() < parse("today", now).unwrap());
        assert!(parse("2026-03-01", now).is_ok());
        for text in ["", "soon", "7", "d", "99999999999999999999d", "2026-99-01"] {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }
}
