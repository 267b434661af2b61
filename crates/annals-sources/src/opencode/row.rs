//! A record of the client, as a file or as a row of a table: the row has some fields in columns, the rest in `data`.

use std::borrow::Cow;

use crate::json::{Json, Object};
use annals_core::Time;

/// A session, message or part.
pub(super) struct Row<'a> {
    json: Json<'a>,
    columns: Object<'a>,
    /// Equal to the columns for a record of a file.
    pub body: Object<'a>,
}

impl<'a> Row<'a> {
    pub fn new(json: Json<'a>) -> Row<'a> {
        let columns = json.object();
        let data = columns.get("data").filter(|data| data.is_object());
        let body = data.map_or_else(|| columns.clone(), Json::object);
        Row { json, columns, body }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.json.bytes()
    }

    pub fn id(&self) -> Option<Cow<'a, str>> {
        self.column(&["id"])
    }

    /// A text that is a column under one name, and a field under another.
    pub fn column(&self, names: &[&str]) -> Option<Cow<'a, str>> {
        names.iter().find_map(|name| self.columns.get_text(name)).filter(|text| !text.is_empty())
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.body.get_text(name)
    }

    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        self.body.get(name)
    }

    /// A time in milliseconds: a field of `time`, or a column.
    pub fn time(&self, field: &str, column: &str) -> Option<Time> {
        let of_field = self.body.get("time").and_then(|time| time.get_integer(field));
        milliseconds(of_field.or_else(|| self.columns.get_integer(column)))
    }
}

pub fn milliseconds(number: Option<i64>) -> Option<Time> {
    number.filter(|number| *number > 0).and_then(|number| number.checked_mul(1_000)).map(Time::from_micros)
}

/// The rows of a field of a line, which has one or a list of them.
pub fn rows_in<'a>(line: &Object<'a>, name: &str) -> Vec<Row<'a>> {
    let listed = line.get(name);
    listed.iter().flat_map(|listed| listed.items()).filter(|row| row.is_object()).map(Row::new).collect()
}
