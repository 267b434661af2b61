//! Typed columns as Parquet: rows wait in memory until a row group is full.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use annals_core::{Error, Result, Time};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text that repeats, stored once per file.
    Name,
    /// Text that is different in every row.
    Text,
    Integer,
    Number,
    Boolean,
    /// Microseconds in UTC.
    Moment,
    /// Dollars with twelve decimals, so that sums are exact.
    Money,
}

/// A column; a required one has a value in every row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub name: &'static str,
    pub kind: ColumnKind,
    pub required: bool,
}

/// One value of a row.
#[derive(Debug)]
pub enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Number(f64),
    Boolean(bool),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Integer(number)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Number(number)
    }
}

impl From<bool> for Cell {
    fn from(is: bool) -> Cell {
        Cell::Boolean(is)
    }
}

impl From<Time> for Cell {
    fn from(time: Time) -> Cell {
        Cell::Integer(time.micros())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

/// Rows of a row group.
const MOST_ROWS: usize = 100_000;
/// Bytes of texts that wait in memory.
const MOST_BYTES: usize = 16 << 20;

/// The values of a column that wait to be written.
enum Values {
    Texts(Vec<ByteArray>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Booleans(Vec<bool>),
}

/// Writes one file.
pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: &'static [Column],
    values: Vec<(Values, Vec<i16>)>,
    waiting: usize,
    bytes: usize,
    pub rows: u64,
}

impl<W: Write + Send> ParquetFile<W> {
    pub fn new(table: &str, columns: &'static [Column], sink: W) -> Result<ParquetFile<W>> {
        let schema = schema(table, columns).map_err(failed)?;
        let level = ZstdLevel::try_new(3).map_err(failed)?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by(format!("annals version {}", env!("CARGO_PKG_VERSION")));
        for column in columns {
            let dictionary = column.kind == ColumnKind::Name;
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(column.name), dictionary);
        }
        let writer = SerializedFileWriter::new(sink, schema, Arc::new(properties.build())).map_err(failed)?;
        let values = columns.iter().map(|column| (empty(column.kind), Vec::new())).collect();
        Ok(ParquetFile { writer, columns, values, waiting: 0, bytes: 0, rows: 0 })
    }

    /// A row has one cell for each column.
    pub fn push(&mut self, row: Vec<Cell>) -> Result<()> {
        debug_assert_eq!(row.len(), self.columns.len(), "a row of another table");
        for ((column, (values, levels)), cell) in self.columns.iter().zip(&mut self.values).zip(row) {
            let cell = match cell {
                // A required column has something in every row.
                Cell::Null if column.required => nothing(column.kind),
                cell => cell,
            };
            levels.push(i16::from(!matches!(cell, Cell::Null)));
            match (values, cell) {
                (Values::Texts(texts), Cell::Text(text)) => {
                    self.bytes += text.len();
                    texts.push(ByteArray::from(text.into_bytes()));
                }
                (Values::Integers(numbers), Cell::Integer(number)) => numbers.push(number),
                (Values::Numbers(numbers), Cell::Number(number)) => numbers.push(number),
                (Values::Booleans(flags), Cell::Boolean(flag)) => flags.push(flag),
                (_, Cell::Null) => {}
                _ => return Err(Error::new(format!("column {} has values of another type", column.name))),
            }
        }
        self.waiting += 1;
        self.rows += 1;
        if self.waiting >= MOST_ROWS || self.bytes >= MOST_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.waiting == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for (column, (values, levels)) in self.columns.iter().zip(&mut self.values) {
            let mut writer = group
                .next_column()
                .map_err(failed)?
                .ok_or_else(|| Error::new(format!("no room for column {}", column.name)))?;
            let levels = std::mem::take(levels);
            let levels = (!column.required).then_some(levels.as_slice());
            let wrote = match std::mem::replace(values, empty(column.kind)) {
                Values::Texts(texts) => writer.typed::<ByteArrayType>().write_batch(&texts, levels, None),
                Values::Integers(numbers) => writer.typed::<Int64Type>().write_batch(&numbers, levels, None),
                Values::Numbers(numbers) => writer.typed::<DoubleType>().write_batch(&numbers, levels, None),
                Values::Booleans(flags) => writer.typed::<BoolType>().write_batch(&flags, levels, None),
            };
            wrote.map_err(failed)?;
            writer.close().map_err(failed)?;
        }
        group.close().map_err(failed)?;
        (self.waiting, self.bytes) = (0, 0);
        Ok(())
    }

    /// Writes what waits and the footer.
    pub fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.writer.close().map_err(failed)?;
        Ok(self.rows)
    }
}

fn empty(kind: ColumnKind) -> Values {
    match kind {
        ColumnKind::Name | ColumnKind::Text => Values::Texts(Vec::new()),
        ColumnKind::Integer | ColumnKind::Moment | ColumnKind::Money => Values::Integers(Vec::new()),
        ColumnKind::Number => Values::Numbers(Vec::new()),
        ColumnKind::Boolean => Values::Booleans(Vec::new()),
    }
}

fn nothing(kind: ColumnKind) -> Cell {
    match kind {
        ColumnKind::Name | ColumnKind::Text => Cell::Text(String::new()),
        ColumnKind::Integer | ColumnKind::Moment | ColumnKind::Money => Cell::Integer(0),
        ColumnKind::Number => Cell::Number(0.0),
        ColumnKind::Boolean => Cell::Boolean(false),
    }
}

fn schema(table: &str, columns: &[Column]) -> std::result::Result<TypePtr, ParquetError> {
    let mut fields = Vec::with_capacity(columns.len());
    for column in columns {
        let (physical, logical) = match column.kind {
            ColumnKind::Name | ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Integer => (PhysicalType::INT64, None),
            ColumnKind::Number => (PhysicalType::DOUBLE, None),
            ColumnKind::Boolean => (PhysicalType::BOOLEAN, None),
            ColumnKind::Moment => (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            ColumnKind::Money => (PhysicalType::INT64, Some(LogicalType::decimal(12, 18))),
        };
        let mut field = Type::primitive_type_builder(column.name, physical)
            .with_repetition(if column.required { Repetition::REQUIRED } else { Repetition::OPTIONAL })
            .with_logical_type(logical);
        if column.kind == ColumnKind::Money {
            field = field.with_precision(18).with_scale(12);
        }
        fields.push(Arc::new(field.build()?));
    }
    Ok(Arc::new(Type::group_type_builder(table).with_fields(fields).build()?))
}

fn failed(error: ParquetError) -> Error {
    Error::new(format!("cannot write Parquet: {error}"))
}
