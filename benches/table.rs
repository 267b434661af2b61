//! The tables that benches print: each figure with its limit and a floor.

/// One line of the table.
pub struct Row {
    what: String,
    unit: &'static str,
    measured: f64,
    pub limit: Option<f64>,
    /// Whether the limit is a minimum instead of a maximum.
    least: bool,
    floor: String,
}

impl Row {
    pub fn new(what: &str, unit: &'static str, measured: f64, limit: Option<f64>, floor: String) -> Self {
        Self { what: what.to_owned(), unit, measured, limit, least: false, floor }
    }

    /// A share that must be reached.
    pub fn at_least(what: &str, measured: f64, limit: f64) -> Self {
        Self { least: true, ..Self::new(what, "", measured, Some(limit), "-".to_owned()) }
    }

    pub fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| match self.least {
            true => self.measured < limit || self.measured.is_nan(),
            false => self.measured > limit,
        })
    }

    fn cells(&self) -> [String; 5] {
        let verdict = match self.limit {
            None => "",
            Some(_) if self.is_over() && self.least => "UNDER",
            Some(_) if self.is_over() => "OVER",
            Some(_) => "ok",
        };
        let limit = self.limit.map_or_else(
            || "-".to_owned(),
            |limit| {
                let least = if self.least { "at least " } else { "" };
                format!("{least}{limit} {}", self.unit)
            },
        );
        let measured =
            format!("{:.*} {}", if self.measured < 100.0 { 2 } else { 0 }, self.measured, self.unit);
        [self.what.clone(), measured, limit, self.floor.clone(), verdict.to_owned()]
    }
}

pub fn print_table(rows: &[Row]) {
    let head = ["what", "measured", "limit", "floor", "verdict"].map(str::to_owned);
    let lines: Vec<[String; 5]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    for (index, line) in lines.iter().enumerate() {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("{}", cells.join("  ").trim_end());
        if index == 0 {
            println!("{}", widths.map(|width| "-".repeat(width)).join("  "));
        }
    }
}
