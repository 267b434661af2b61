//! Small tables for people: columns as wide as they need to be, numbers to the right, sizes in words.

/// Columns whose names begin with `#` hold numbers.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].trim_start_matches('#').chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let space = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            let numeric = head[column].starts_with('#');
            if column > 0 {
                text.push_str("  ");
            }
            if numeric {
                text.push_str(&space);
            }
            text.push_str(cell);
            if !numeric {
                text.push_str(&space);
            }
        }
        text.trim_end().to_owned()
    };
    let names: Vec<String> = head.iter().map(|name| name.trim_start_matches('#').to_owned()).collect();
    std::iter::once(line(&names)).chain(rows.iter().map(|row| line(row))).collect()
}

pub fn size(bytes: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 999.5 && unit + 1 < units.len() {
        amount /= 1000.0;
        unit += 1;
    }
    if unit == 0 || amount >= 99.95 {
        format!("{amount:.0} {}", units[unit])
    } else {
        format!("{amount:.1} {}", units[unit])
    }
}

/// `1 gap`, `2,000 gaps`.
pub fn counted(count: impl TryInto<i64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(i64::MAX);
    format!("{} {noun}{}", number(count), if count == 1 { "" } else { "s" })
}

pub fn number(count: i64) -> String {
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

/// A cost for people: cents, or more digits when it is less than a few; a question mark when nobody knows.
pub fn dollars(cost: Option<f64>) -> String {
    match cost {
        None => "?".into(),
        Some(cost) if cost == 0.0 || cost >= 0.095 => format!("${cost:.2}"),
        Some(cost) => format!("${cost:.4}"),
    }
}

/// At most `width` characters, with an ellipsis when something is cut.
pub fn fit(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{dollars, fit, number, size, table};

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bbb".to_owned(), "22".to_owned()]];
        assert_eq!(table(&["name", "#n"], &rows), ["name   n", "a      1", "bbb   22"]);
    }

    #[test]
    fn amounts_read_easily() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1_234), "1.2 KB");
        assert_eq!(size(999_999), "1.0 MB");
        assert_eq!(size(2_500_000_000), "2.5 GB");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(-12), "-12");
        assert_eq!(dollars(None), "?");
        assert_eq!([0.0, 0.00366, 12.345].map(|cost| dollars(Some(cost))), ["$0.00", "$0.0037", "$12.35"]);
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("äöü", 3), "äöü");
    }
}
