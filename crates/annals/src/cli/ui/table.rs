//! Plain-text tables: columns as wide as their longest cell, numbers aligned to the right.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns whose names begin with `#` hold numbers.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([head[column].trim_start_matches('#').width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(widest).collect();
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let space = " ".repeat(widths[column].saturating_sub(cell.width()));
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

/// At most `width` columns, with an ellipsis when something is cut off.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |letter: &char| {
        let left = room.checked_sub(letter.width().unwrap_or(0));
        room = left.unwrap_or(0);
        left.is_some()
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::{fit, table};

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bbb".to_owned(), "22".to_owned()]];
        assert_eq!(table(&["name", "#n"], &rows), ["name   n", "a      1", "bbb   22"]);
        let rows = [vec!["修复".to_owned(), "1".to_owned()], vec!["bbb".to_owned(), "22".to_owned()]];
        assert_eq!(table(&["n", "#n"], &rows), ["n      n", "修复   1", "bbb   22"]);
    }

    #[test]
    fn long_text_ends_in_an_ellipsis() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("äöü", 3), "äöü");
        assert_eq!(fit("修复登录", 5), "修复…");
        assert_eq!(fit("修复登录", 8), "修复登录");
    }
}
