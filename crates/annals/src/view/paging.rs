//! Pages of long lists: a limit, and an opaque cursor for the end of the previous page.

use annals_core::{Error, Result, from_hex, to_hex};

#[derive(Debug, Clone, Default)]
pub struct Paging {
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// A position in an order of numbers, as a cursor.
pub(super) fn write_numbers<const N: usize>(numbers: &[i64; N]) -> String {
    numbers.map(|number| format!("{number:x}")).join(".")
}

pub(super) fn read_numbers<const N: usize>(cursor: &str) -> Result<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = cursor.split('.');
    for number in &mut numbers {
        let part = parts.next().and_then(|part| u64::from_str_radix(part, 16).ok());
        *number = part.ok_or_else(|| not_a_cursor(cursor))? as i64;
    }
    if parts.next().is_some() { Err(not_a_cursor(cursor)) } else { Ok(numbers) }
}

/// A time and a key.
pub(super) fn write_keyed(number: i64, key: &str) -> String {
    format!("{:x}.{}", number as u64, to_hex(key.as_bytes()))
}

pub(super) fn read_keyed(cursor: &str) -> Result<(i64, String)> {
    let parts = cursor.split_once('.').and_then(|(number, key)| {
        let key = String::from_utf8(from_hex(key)?).ok()?;
        Some((u64::from_str_radix(number, 16).ok()? as i64, key))
    });
    parts.ok_or_else(|| not_a_cursor(cursor))
}

pub(super) fn not_a_cursor(cursor: &str) -> Error {
    let start: String = cursor.chars().take(80).collect();
    Error::bad_request(format!("not a cursor: {start:?}"))
        .hint("use the `next_cursor` of the previous page unchanged")
}

#[cfg(test)]
mod tests {
    use super::{read_keyed, read_numbers, write_keyed, write_numbers};

    #[test]
    fn cursors_read_back() {
        for numbers in [[0, -1, 0], [i64::MIN, i64::MAX, 7]] {
            assert_eq!(read_numbers::<3>(&write_numbers(&numbers)).unwrap(), numbers);
        }
        for (number, key) in [(0, ""), (i64::MIN + 1, "a.b"), (-1, "schl\u{fc}ssel")] {
            assert_eq!(read_keyed(&write_keyed(number, key)).unwrap(), (number, key.to_owned()));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", ".", "..", "0.0", "0.0.0.0", "x.0.0", "0.0.", "0.0.fffffffffffffffff"] {
            assert!(read_numbers::<3>(text).is_err(), "{text}");
        }
        for text in ["", "0", "x.00", "0.0", "0.zz", "0.ff"] {
            assert!(read_keyed(text).is_err(), "{text}");
        }
    }
}
