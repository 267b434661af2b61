//! Numbers, sizes, money and moments as people read them.

/// With separators: 1,234,567.
pub(super) fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// In three digits: 950, 1.23 k, 45.6 M.
pub(super) fn short(number: i64) -> String {
    let size = number.unsigned_abs() as f64;
    for (unit, name) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if size >= unit {
            let part = number as f64 / unit;
            let digits = if part.abs() >= 100.0 {
                0
            } else if part.abs() >= 10.0 {
                1
            } else {
                2
            };
            return format!("{part:.digits$} {name}");
        }
    }
    number.to_string()
}

pub(super) fn bytes(number: i64) -> String {
    if number < 1_000 { format!("{number} B") } else { format!("{}B", short(number)) }
}

pub(super) fn money(dollars: f64) -> String {
    match dollars.abs() {
        0.0 => "$0".into(),
        size if size < 0.01 => format!("${dollars:.4}"),
        size if size < 1_000.0 => format!("${dollars:.2}"),
        _ => format!("${}", count(dollars.round() as i64)),
    }
}

pub(super) fn milliseconds(number: i64) -> String {
    match number {
        ..1_000 => format!("{number} ms"),
        1_000..60_000 => format!("{:.1} s", number as f64 / 1_000.0),
        _ => format!("{} min {} s", number / 60_000, number / 1_000 % 60),
    }
}

/// A moment of RFC 3339 to the minute; a browser shows it in its own time zone.
pub(super) fn minute(moment: &str) -> String {
    moment.get(..16).unwrap_or(moment).replace('T', " ")
}

pub(super) fn day(moment: &str) -> &str {
    moment.get(..10).unwrap_or(moment)
}

/// The last part of a path.
pub(super) fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().filter(|part| !part.is_empty()).unwrap_or(path)
}

pub(super) fn plural(number: i64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            (count(0).as_str(), count(1_234_567).as_str(), count(-999).as_str()),
            ("0", "1,234,567", "-999")
        );
        assert_eq!(
            (short(950).as_str(), short(1_234).as_str(), short(45_600_000).as_str()),
            ("950", "1.23 k", "45.6 M")
        );
        assert_eq!((bytes(12).as_str(), bytes(20_000_000).as_str()), ("12 B", "20.0 MB"));
        assert_eq!(
            (money(0.0).as_str(), money(0.0042).as_str(), money(12.3).as_str()),
            ("$0", "$0.0042", "$12.30")
        );
        assert_eq!((milliseconds(12).as_str(), milliseconds(61_500).as_str()), ("12 ms", "1 min 1 s"));
        assert_eq!(minute("2026-11-15T07:28:43.975Z"), "2026-11-15 07:28");
        assert_eq!(last_part("/home/someone/shop/"), "shop");
    }
}
