//! Times in exports: seconds with a fraction, whole seconds, milliseconds, text of these, ISO dates.

use serde_json::Value;

use crate::json::Json;
use annals_core::Time;

/// Zero and less mean that nobody knows.
pub fn moment(json: Json<'_>) -> Option<Time> {
    let text = match json.text() {
        Some(text) => text,
        None => String::from_utf8_lossy(json.bytes()),
    };
    match text.parse::<f64>() {
        Ok(number) => from_number(number),
        Err(_) => Time::parse(&text),
    }
}

/// The same of a parsed value.
pub fn moment_of(value: &Value) -> Option<Time> {
    Json::parse(value.to_string().as_bytes()).and_then(moment)
}

pub fn time_value(time: Option<Time>) -> Value {
    time.map(Time::rfc3339).map(Value::from).unwrap_or_default()
}

fn from_number(number: f64) -> Option<Time> {
    let seconds = if number > 1e12 { number / 1e3 } else { number };
    (seconds > 0.0 && seconds < 2.5e11).then(|| Time::from_micros((seconds * 1e6).round() as i64))
}

#[cfg(test)]
mod tests {
    use super::moment;
    use crate::json::Json;

    #[test]
    fn one_reader_for_all_ways_to_write_a_moment() {
        let read = |text: &str| Json::parse(text.as_bytes()).and_then(moment).map(|time| time.rfc3339());
        let expected = Some("2026-03-01T12:00:00.250Z".to_owned());
        for text in [
            "1772366400.25",
            "1772366400250",
            "\"1772366400.25\"",
            "\"2026-03-01T12:00:00.25Z\"",
            "\"2026-03-01T12:00:00.250000+00:00\"",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        for text in ["0", "-1", "null", "\"\"", "\"soon\"", "1e300", "{}"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
