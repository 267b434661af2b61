//! Reads Parquet files back, row by row.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use annals_testkit::files::files_below;

/// A row by the names of its columns.
pub struct Row(BTreeMap<String, Field>);

impl Row {
    /// Nothing counts as 0; a decimal is its unscaled number.
    pub fn number(&self, name: &str) -> i64 {
        match &self.0[name] {
            Field::Long(number) => *number,
            Field::Decimal(decimal) => {
                decimal.data().iter().fold(0_i64, |sum, byte| (sum << 8) | i64::from(*byte))
            }
            Field::Null => 0,
            other => panic!("{name} is {other:?}"),
        }
    }

    pub fn is(&self, name: &str) -> bool {
        self.0[name] == Field::Bool(true)
    }

    pub fn text(&self, name: &str) -> String {
        match &self.0[name] {
            Field::Str(text) => text.clone(),
            other => panic!("{name} is {other:?}"),
        }
    }
}

/// The rows of every table of an export; those of a month are in its file.
pub fn read(folder: &Path) -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for path in
        files_below(folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "parquet"))
    {
        let relative = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        let [table, source, month, part] = relative.split('/').collect::<Vec<_>>()[..] else {
            panic!("{relative} is no partition");
        };
        assert!(source.starts_with("source=") && part == "part-0.parquet", "{relative}");
        let month = month.strip_prefix("month=").unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr();
        assert!(schema.num_columns() > 5, "{relative}");
        for row in reader.get_row_iter(None).unwrap() {
            let row = Row(row.unwrap().into_columns().into_iter().collect());
            let time =
                ["occurred_at", "first_message_at", "changed_at"].iter().find_map(|name| row.0.get(*name));
            let expected = match time {
                Some(Field::TimestampMicros(micros)) => {
                    annals_core::Time::from_micros(*micros).date()[..7].to_owned()
                }
                _ => "__HIVE_DEFAULT_PARTITION__".to_owned(),
            };
            assert_eq!(month, expected, "{relative}");
            tables.entry(table.to_owned()).or_default().push(row);
        }
    }
    tables
}
