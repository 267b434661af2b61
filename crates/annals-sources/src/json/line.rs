//! Lines that are scanned once, however often they are read.

use std::cell::{Cell, OnceCell};

use super::scan::{Mark, mark_value, skip_space, skip_value};
use super::{Json, Object};

/// The most values that are marked in one line. More marks would need as much memory as the line.
const MOST_MARKS: usize = 1 << 20;

/// Finds all values of a line in one pass, on first use.
pub struct Scan<'a> {
    bytes: &'a [u8],
    /// Marks of all values, parents before children; empty if there are too many.
    marks: OnceCell<Vec<Mark>>,
    room: Cell<Vec<Mark>>,
}

impl<'a> Scan<'a> {
    pub fn new(bytes: &'a [u8]) -> Scan<'a> {
        Scan::within(bytes, ScanRoom::default())
    }

    /// Scans with the memory of an earlier scan.
    pub fn within(bytes: &'a [u8], room: ScanRoom) -> Scan<'a> {
        Scan { bytes, marks: OnceCell::new(), room: Cell::new(room.0) }
    }

    pub fn into_room(self) -> ScanRoom {
        match self.marks.into_inner() {
            Some(marks) => ScanRoom(marks),
            None => ScanRoom(self.room.into_inner()),
        }
    }

    /// The whole line.
    pub fn line(&self) -> Line<'_> {
        Line { bytes: self.bytes, start: 0, scan: self }
    }

    fn marks(&self) -> &[Mark] {
        self.marks.get_or_init(|| {
            let mut marks = self.room.take();
            marks.clear();
            let limit = if self.bytes.len() > u32::MAX as usize { 0 } else { MOST_MARKS };
            let mut at = skip_space(self.bytes, 0);
            while at < self.bytes.len() {
                let before = marks.len();
                let Some(end) = mark_value(self.bytes, at, &mut marks, limit) else {
                    marks.truncate(before);
                    break;
                };
                at = skip_space(self.bytes, end);
            }
            if marks.len() >= limit {
                marks.clear();
            }
            marks
        })
    }

    /// The value that starts here.
    fn value_at(&self, start: usize) -> Option<Json<'_>> {
        let marks = self.marks();
        match marks.binary_search_by_key(&start, |mark| mark.start as usize) {
            Ok(found) => {
                let mark = marks[found];
                let bytes = &self.bytes[start..mark.end as usize];
                Some(Json::marked(bytes, &marks[found..found + mark.count as usize]))
            }
            Err(_) => skip_value(self.bytes, start).map(|end| Json::plain(&self.bytes[start..end])),
        }
    }
}

/// Reusable memory of a scan.
#[derive(Debug, Default)]
pub struct ScanRoom(Vec<Mark>);

/// A line, or a part of one that shares its scan.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    bytes: &'a [u8],
    start: usize,
    scan: &'a Scan<'a>,
}

impl<'a> Line<'a> {
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// A part of the line; `None` if it is out of range.
    pub fn part(self, start: u64, length: u64) -> Option<Line<'a>> {
        let start = usize::try_from(start).ok()?;
        let bytes = self.bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)?;
        Some(Line { bytes, start: self.start + start, scan: self.scan })
    }

    /// The single value of the line, surrounded only by whitespace.
    pub fn json(self) -> Option<Json<'a>> {
        let start = skip_space(self.bytes, 0);
        let json = self.scan.value_at(self.start + start)?;
        let end = start + json.bytes().len();
        (end <= self.bytes.len() && skip_space(self.bytes, end) == self.bytes.len()).then_some(json)
    }

    /// The objects on the line (nearly always one). An error has the offset of what is not an object.
    pub fn objects(self) -> Objects<'a> {
        Objects { line: self, at: 0 }
    }

    /// True for one or more objects and nothing else.
    pub fn is_complete(self) -> bool {
        let mut objects = self.objects();
        objects.next().is_some_and(|first| first.is_ok()) && objects.all(|object| object.is_ok())
    }
}

pub struct Objects<'a> {
    line: Line<'a>,
    at: usize,
}

impl<'a> Iterator for Objects<'a> {
    type Item = Result<(usize, Object<'a>), usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.line.bytes;
        let start = skip_space(bytes, self.at);
        if start >= bytes.len() {
            return None;
        }
        self.at = bytes.len();
        let json = Some(start).filter(|start| bytes[*start] == b'{');
        let json = json.and_then(|start| self.line.scan.value_at(self.line.start + start));
        match json.filter(|json| json.bytes().len() <= bytes.len() - start) {
            Some(json) => {
                self.at = start + json.bytes().len();
                Some(Ok((start, json.object())))
            }
            None => Some(Err(start)),
        }
    }
}
