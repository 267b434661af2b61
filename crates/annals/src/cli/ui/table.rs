//! Plain-text tables that fit the terminal: columns as wide as their longest cell, numbers aligned to the right, long
//! texts shortened, and the least important columns left out when there is no room for them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;
/// Where there is no limit, a longer cell does not make its column wider: it only pushes the rest of its line.
const WIDEST: usize = 60;

/// How a column is called, and what may be done to it when there is no room.
#[derive(Debug, Clone, Copy)]
pub struct Column<'n> {
    name: &'n str,
    numeric: bool,
    shorten: Option<(End, usize)>,
    /// Columns of a higher number are left out first; those of zero never.
    leave_out: u8,
}

/// Which end of a text is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

impl<'n> Column<'n> {
    pub const fn text(name: &'n str) -> Column<'n> {
        Column { name, numeric: false, shorten: None, leave_out: 0 }
    }

    pub const fn number(name: &'n str) -> Column<'n> {
        Column { name, numeric: true, shorten: None, leave_out: 0 }
    }

    /// May lose its end down to this width, as titles do.
    pub const fn cut_end(self, least: usize) -> Column<'n> {
        Column { shorten: Some((End::Back, least)), ..self }
    }

    /// May lose its beginning down to this width, as paths do.
    pub const fn cut_front(self, least: usize) -> Column<'n> {
        Column { shorten: Some((End::Front, least)), ..self }
    }

    /// May be left out; a higher number goes first.
    pub const fn leave_out(self, order: u8) -> Column<'n> {
        Column { leave_out: order, ..self }
    }
}

/// The lines of a table of at most `room` columns of the terminal.
pub fn table(columns: &[Column<'_>], rows: &[Vec<String>], room: Option<usize>) -> Vec<String> {
    let widest = |number: usize| {
        let cells = rows.iter().filter_map(|row| row.get(number)).map(|cell| cell.width());
        cells.chain([columns[number].name.width()]).max().unwrap_or(0)
    };
    let natural: Vec<usize> = (0..columns.len()).map(widest).collect();
    let widths = match room {
        Some(room) => fitted(columns, &natural, room),
        None => natural.iter().zip(columns).map(|(width, column)| Some(padded(*width, column))).collect(),
    };
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (number, cell) in cells.iter().enumerate().take(columns.len()) {
            let (Some(width), column) = (widths[number], &columns[number]) else { continue };
            let cell = &cell.replace('\n', " ");
            let cell = match (room, column.shorten) {
                (Some(_), Some((End::Front, _))) => fit_front(cell, width),
                (Some(_), _) => fit(cell, width),
                (None, _) => cell.clone(),
            };
            let space = " ".repeat(width.saturating_sub(cell.width()));
            if !text.is_empty() {
                text.push_str("  ");
            }
            match column.numeric {
                true => text.extend([space.as_str(), &cell]),
                false => text.extend([cell.as_str(), &space]),
            }
        }
        text.trim_end().to_owned()
    };
    let names: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
    std::iter::once(line(&names)).chain(rows.iter().map(|row| line(row))).collect()
}

fn padded(width: usize, column: &Column<'_>) -> usize {
    if column.shorten.is_some() { width.min(WIDEST) } else { width }
}

/// The width of each column; none for those that are left out.
fn fitted(columns: &[Column<'_>], natural: &[usize], room: usize) -> Vec<Option<usize>> {
    let least = |number: usize| match columns[number].shorten {
        Some((_, least)) => natural[number].min(least.max(columns[number].name.width())),
        None => natural[number],
    };
    let mut widths: Vec<Option<usize>> = (0..columns.len()).map(|number| Some(least(number))).collect();
    loop {
        let shown: Vec<usize> = widths.iter().flatten().copied().collect();
        let needed = shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1);
        if needed <= room {
            widen(&mut widths, natural, room - needed);
            return widths;
        }
        let first_to_go = (0..columns.len())
            .filter(|number| widths[*number].is_some() && columns[*number].leave_out > 0)
            .max_by_key(|number| columns[*number].leave_out);
        match first_to_go {
            Some(number) => widths[number] = None,
            None => {
                squeeze(&mut widths, columns, needed - room);
                return widths;
            }
        }
    }
}

/// Shares what is left among the columns that have less than they need, one column of the terminal at a time.
fn widen(widths: &mut [Option<usize>], natural: &[usize], mut left: usize) {
    while left > 0 {
        let mut any = false;
        for (width, natural) in widths.iter_mut().zip(natural) {
            if let Some(width) = width.as_mut().filter(|width| **width < *natural && left > 0) {
                *width += 1;
                left -= 1;
                any = true;
            }
        }
        if !any {
            return;
        }
    }
}

/// The terminal is too narrow even so: texts lose what is missing, the widest first.
fn squeeze(widths: &mut [Option<usize>], columns: &[Column<'_>], missing: usize) {
    for _ in 0..missing {
        let texts = widths.iter_mut().zip(columns).filter(|(_, column)| column.shorten.is_some());
        let widest = texts.filter_map(|(width, _)| width.as_mut()).max_by_key(|width| **width);
        match widest.filter(|width| **width > 1) {
            Some(width) => *width -= 1,
            None => return,
        }
    }
}

/// At most `width` columns of the terminal, with an ellipsis when the end is cut off.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let kept = start_within(text, width.saturating_sub(1));
    format!("{}…", &text[..kept])
}

/// At most `width` columns of the terminal, with an ellipsis when the beginning is cut off.
pub fn fit_front(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut left, mut start) = (width.saturating_sub(1), text.len());
    for (at, letter) in text.char_indices().rev() {
        match left.checked_sub(letter.width().unwrap_or(0)) {
            Some(rest) => (left, start) = (rest, at),
            None => break,
        }
    }
    format!("…{}", &text[start..])
}

/// How many bytes of a text fit into some columns of the terminal.
pub fn start_within(text: &str, width: usize) -> usize {
    let mut left = width;
    for (at, letter) in text.char_indices() {
        match left.checked_sub(letter.width().unwrap_or(0)) {
            Some(rest) => left = rest,
            None => return at,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let columns = [Column::text("name"), Column::number("n")];
        assert_eq!(
            table(&columns, &rows(&[&["a", "1"], &["bbb", "22"]]), None),
            ["name   n", "a      1", "bbb   22"]
        );
        let columns = [Column::text("n"), Column::number("n")];
        assert_eq!(
            table(&columns, &rows(&[&["修复", "1"], &["bbb", "22"]]), None),
            ["n      n", "修复   1", "bbb   22"]
        );
    }

    #[test]
    fn long_text_ends_or_begins_with_an_ellipsis() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("äöü", 3), "äöü");
        assert_eq!(fit("修复登录", 5), "修复…");
        assert_eq!(fit("修复登录", 8), "修复登录");
        assert_eq!(fit_front("/home/ada/engine", 9), "…a/engine");
        assert_eq!(fit_front("修复登录", 6), "…登录");
        assert_eq!(fit_front("abc", 0), "…");
    }

    #[test]
    fn a_table_shortens_texts_before_it_leaves_columns_out() {
        let columns = [
            Column::text("when"),
            Column::text("project").cut_front(7),
            Column::text("title").cut_end(8),
            Column::number("calls").leave_out(2),
            Column::number("cost").leave_out(1),
            Column::text("id"),
        ];
        let cells = rows(&[
            &["09:00", "/home/ada/engine", "修复登录页面的问题", "12", "$1.00", "0199"],
            &["10:00", "/w", "Fix it 🎉", "1,234", "$0.50", "5e55"],
        ]);
        let wide = table(&columns, &cells, Some(80));
        assert_eq!(wide, table(&columns, &cells, None));
        assert_eq!(
            table(&columns, &cells, Some(50)),
            [
                "when   project     title        calls   cost  id",
                "09:00  …da/engine  修复登录页…     12  $1.00  0199",
                "10:00  /w          Fix it 🎉    1,234  $0.50  5e55",
            ]
            .map(str::to_owned),
            "shortened"
        );
        let narrow = table(&columns, &cells, Some(36));
        assert_eq!(narrow[0], "when   project     title        id");
        for width in 10..100 {
            let lines = table(&columns, &cells, Some(width));
            let most = lines.iter().map(|line| line.width()).max().unwrap_or(0);
            // Times, numbers and ids are never cut.
            assert!(most <= width.max(5 + 1 + 1 + 4 + 3 * GAP), "{width}: {lines:#?}");
        }
    }
}
