//! Lazy JSON over bytes: finds fields without building trees, never recurses on input, tolerates what is not quite
//! JSON.
//!
//! Transcripts are mostly long strings that no row needs. Scanning past them runs at memory speed, and a line that
//! nests 10,000 deep, holds lone surrogates or raw control bytes is read like any other. A `Scan` remembers where all
//! values of a line are, so that reader, blocks and fingerprints share one pass over it.

mod line;
mod scan;

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

pub use line::{Line, Objects, Scan, ScanRoom};
pub use scan::unescape;
use scan::{Mark, skip_space, skip_string, skip_value};

/// One JSON value, as in the file.
#[derive(Debug, Clone, Copy)]
pub struct Json<'a> {
    bytes: &'a [u8],
    /// Marks of the value and of all values in it; empty if it was not scanned.
    marks: &'a [Mark],
}

/// An object with its fields, found in one pass over its bytes.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    json: Json<'a>,
    fields: Vec<(&'a [u8], Json<'a>)>,
}

impl<'a> Object<'a> {
    pub fn bytes(&self) -> &'a [u8] {
        self.json.bytes
    }

    pub fn fields(&self) -> &[(&'a [u8], Json<'a>)] {
        &self.fields
    }

    /// The first field with this name that is not null.
    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        let found = self.fields.iter().find(|(key, _)| *key == name.as_bytes());
        found.map(|(_, value)| *value).filter(|value| !value.is_null())
    }

    pub fn get_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.text()
    }

    pub fn get_integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.integer()
    }
}

/// A value whose objects were opened down to some depth, in one pass over its bytes.
#[derive(Debug, Clone)]
pub struct Opened<'a> {
    pub json: Json<'a>,
    fields: Vec<(&'a [u8], Opened<'a>)>,
}

impl<'a> Opened<'a> {
    /// Parses one value surrounded only by whitespace, and opens the objects in it down to `depth`.
    pub fn parse(bytes: &'a [u8], depth: usize) -> Option<Opened<'a>> {
        let (opened, end) = Opened::read(bytes, skip_space(bytes, 0), depth)?;
        (skip_space(bytes, end) == bytes.len()).then_some(opened)
    }

    /// Parses a name and its value, as in an object.
    pub fn parse_pair(bytes: &'a [u8], depth: usize) -> Option<(&'a [u8], Opened<'a>)> {
        let name_end = skip_string(bytes, 0).filter(|_| bytes.first() == Some(&b'"'))?;
        let colon = skip_space(bytes, name_end);
        let start = (bytes.get(colon)? == &b':').then(|| skip_space(bytes, colon + 1))?;
        let (opened, end) = Opened::read(bytes, start, depth)?;
        (end == bytes.len()).then(|| (&bytes[1..name_end - 1], opened))
    }

    fn read(bytes: &'a [u8], start: usize, depth: usize) -> Option<(Opened<'a>, usize)> {
        if depth == 0 || bytes.get(start) != Some(&b'{') {
            let end = skip_value(bytes, start)?;
            return Some((Opened { json: Json::plain(&bytes[start..end]), fields: Vec::new() }, end));
        }
        let mut fields = Vec::with_capacity(8);
        let mut at = skip_space(bytes, start + 1);
        if bytes.get(at) != Some(&b'}') {
            loop {
                let name_end = skip_string(bytes, at).filter(|_| bytes.get(at) == Some(&b'"'))?;
                let colon = skip_space(bytes, name_end);
                let value = (bytes.get(colon)? == &b':').then(|| skip_space(bytes, colon + 1))?;
                let (opened, end) = Opened::read(bytes, value, depth - 1)?;
                fields.push((&bytes[at + 1..name_end - 1], opened));
                at = skip_space(bytes, end);
                match bytes.get(at)? {
                    b',' => at = skip_space(bytes, at + 1),
                    b'}' => break,
                    _ => return None,
                }
            }
        }
        Some((Opened { json: Json::plain(&bytes[start..at + 1]), fields }, at + 1))
    }

    pub fn fields(&self) -> &[(&'a [u8], Opened<'a>)] {
        &self.fields
    }

    pub fn into_fields(self) -> Vec<(&'a [u8], Opened<'a>)> {
        self.fields
    }

    /// The first field with this name that is not null.
    pub fn get(&self, name: &str) -> Option<&Opened<'a>> {
        let found = self.fields.iter().find(|(key, _)| *key == name.as_bytes());
        found.map(|(_, value)| value).filter(|value| !value.json.is_null())
    }

    /// Takes a field out of the object.
    pub fn take(self, name: &str) -> Option<Opened<'a>> {
        let mut fields = self.fields.into_iter();
        fields.find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
    }

    pub fn get_json(&self, name: &str) -> Option<Json<'a>> {
        self.get(name).map(|value| value.json)
    }

    pub fn get_text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.json.text()
    }

    /// Its direct fields.
    pub fn object(&self) -> Object<'a> {
        let fields = self.fields.iter().map(|(name, value)| (*name, value.json)).collect();
        Object { json: self.json, fields }
    }
}

impl<'a> Json<'a> {
    fn plain(bytes: &'a [u8]) -> Json<'a> {
        Json { bytes, marks: &[] }
    }

    fn marked(bytes: &'a [u8], marks: &'a [Mark]) -> Json<'a> {
        Json { bytes, marks }
    }

    /// The value inside this one with this mark.
    fn inside(self, at: usize) -> Json<'a> {
        let (start, mark) = (self.marks[0].start, self.marks[at]);
        let bytes = &self.bytes[(mark.start - start) as usize..(mark.end - start) as usize];
        Json { bytes, marks: &self.marks[at..at + mark.count as usize] }
    }

    /// Parses one value surrounded only by whitespace.
    pub fn parse(bytes: &'a [u8]) -> Option<Json<'a>> {
        let start = skip_space(bytes, 0);
        let end = skip_value(bytes, start)?;
        (skip_space(bytes, end) == bytes.len()).then(|| Json::plain(&bytes[start..end]))
    }

    /// Parses the value that these bytes start with.
    pub fn parse_first(bytes: &'a [u8]) -> Option<Json<'a>> {
        let start = skip_space(bytes, 0);
        skip_value(bytes, start).map(|end| Json::plain(&bytes[start..end]))
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub fn is_object(self) -> bool {
        self.bytes.first() == Some(&b'{')
    }

    pub fn is_array(self) -> bool {
        self.bytes.first() == Some(&b'[')
    }

    pub fn is_string(self) -> bool {
        self.bytes.first() == Some(&b'"')
    }

    pub fn is_null(self) -> bool {
        self.bytes == b"null"
    }

    /// Names and values of an object, in order; empty for any other value.
    pub fn fields(self) -> Fields<'a> {
        Fields { json: self, at: if self.is_object() { 1 } else { self.bytes.len() } }
    }

    /// The fields of a truncated object. The value that is cut off is missing.
    pub fn fields_of_start(start: &'a [u8]) -> Vec<(&'a [u8], Option<Json<'a>>)> {
        let mut fields = Vec::new();
        let mut at = if start.first() == Some(&b'{') { skip_space(start, 1) } else { start.len() };
        while start.get(at) == Some(&b'"') {
            let Some(name_end) = skip_string(start, at) else { break };
            let name = &start[at + 1..name_end - 1];
            let value = skip_space(start, skip_space(start, name_end) + 1);
            // A number or a word at the end may be cut off.
            let Some(end) = skip_value(start, value).filter(|end| *end < start.len()) else {
                fields.push((name, None));
                break;
            };
            fields.push((name, Some(Json::plain(&start[value..end]))));
            at = skip_space(start, end);
            if start.get(at) == Some(&b',') {
                at = skip_space(start, at + 1);
            }
        }
        fields
    }

    /// Finds its fields; an object without fields for any other value.
    pub fn object(self) -> Object<'a> {
        Object { json: self, fields: self.fields().collect() }
    }

    pub fn items(self) -> Items<'a> {
        Items { json: self, at: if self.is_array() { 1 } else { self.bytes.len() } }
    }

    /// The first field with this name that is not null.
    pub fn get(self, name: &str) -> Option<Json<'a>> {
        self.fields()
            .find(|(key, _)| *key == name.as_bytes())
            .map(|(_, value)| value)
            .filter(|v| !v.is_null())
    }

    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.inner()?;
        Some(match memchr::memchr(b'\\', inner) {
            None => String::from_utf8_lossy(inner),
            Some(_) => Cow::Owned(unescape(inner)),
        })
    }

    pub fn get_text(self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.text()
    }

    /// The bytes between the quotes, including escapes.
    pub fn inner(self) -> Option<&'a [u8]> {
        (self.is_string() && self.bytes.len() >= 2).then(|| &self.bytes[1..self.bytes.len() - 1])
    }

    /// About the first `limit` bytes of a string, cut between escapes.
    pub fn head(self, limit: usize) -> String {
        let Some(inner) = self.inner() else { return String::new() };
        if inner.len() <= limit {
            return unescape(inner);
        }
        let mut at = 0;
        while at < limit {
            at = match memchr::memchr(b'\\', &inner[at..limit]) {
                Some(found) if inner.get(at + found + 1) == Some(&b'u') => at + found + 6,
                Some(found) => at + found + 2,
                None => limit,
            };
        }
        at = at.min(inner.len());
        while at < inner.len() && inner[at] & 0xC0 == 0x80 {
            at += 1;
        }
        unescape(&inner[..at])
    }

    /// About the last `limit` bytes of a string. The cut may be inside an escape, whose rest is then shown as text.
    pub fn tail(self, limit: usize) -> String {
        let Some(inner) = self.inner() else { return String::new() };
        let mut at = inner.len().saturating_sub(limit);
        while at > 0 && at < inner.len() && (inner[at] & 0xC0 == 0x80 || inner[at - 1] == b'\\') {
            at += 1;
        }
        unescape(&inner[at..])
    }

    pub fn integer(self) -> Option<i64> {
        let text = std::str::from_utf8(self.bytes).ok()?;
        text.parse().ok().or_else(|| {
            text.parse::<f64>().ok().filter(|number| number.abs() < 9e15).map(|number| number as i64)
        })
    }

    pub fn get_integer(self, name: &str) -> Option<i64> {
        self.get(name)?.integer()
    }

    pub fn boolean(self) -> Option<bool> {
        match self.bytes {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// Builds a tree, for small values. Values nested deeper than 64 stay as text.
    pub fn value(self) -> Value {
        self.value_within(64)
    }

    fn value_within(self, depth: usize) -> Value {
        match self.bytes.first() {
            Some(b'{' | b'[') if depth == 0 => {
                Value::String(String::from_utf8_lossy(self.bytes).into_owned())
            }
            Some(b'{') => {
                let mut object = Map::new();
                for (key, value) in self.fields() {
                    object.insert(unescape(key), value.value_within(depth - 1));
                }
                Value::Object(object)
            }
            Some(b'[') => Value::Array(self.items().map(|item| item.value_within(depth - 1)).collect()),
            Some(b'"') => Value::String(self.text().unwrap_or_default().into_owned()),
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            Some(b'n') | None => Value::Null,
            Some(_) => serde_json::from_slice::<Number>(self.bytes)
                .map(Value::Number)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(self.bytes).into_owned())),
        }
    }
}

pub struct Fields<'a> {
    json: Json<'a>,
    /// The next mark, or the next byte if there are no marks.
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.json.marks.is_empty() {
            if self.at >= self.json.marks.len() {
                return None;
            }
            let (name, value) = (self.json.inside(self.at), self.json.inside(self.at + 1));
            self.at += 1 + value.marks.len();
            return Some((&name.bytes[1..name.bytes.len() - 1], value));
        }
        let bytes = self.json.bytes;
        let mut at = skip_space(bytes, self.at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        if bytes.get(at) != Some(&b'"') {
            self.at = bytes.len();
            return None;
        }
        let name_end = skip_string(bytes, at)?;
        let name = &bytes[at + 1..name_end - 1];
        let colon = skip_space(bytes, name_end);
        let start = skip_space(bytes, colon + 1);
        let end = skip_value(bytes, start)?;
        self.at = end;
        Some((name, Json::plain(&bytes[start..end])))
    }
}

pub struct Items<'a> {
    json: Json<'a>,
    /// As in `Fields`.
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        if !self.json.marks.is_empty() {
            let item = (self.at < self.json.marks.len()).then(|| self.json.inside(self.at))?;
            self.at += item.marks.len();
            return Some(item);
        }
        let bytes = self.json.bytes;
        let mut at = skip_space(bytes, self.at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        if matches!(bytes.get(at), None | Some(b']')) {
            self.at = bytes.len();
            return None;
        }
        let end = skip_value(bytes, at)?;
        self.at = end;
        Some(Json::plain(&bytes[at..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, Opened, Scan, unescape};
    use proptest::prelude::*;

    fn json(text: &str) -> Json<'_> {
        Json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn finds_fields_without_reading_the_rest() {
        let line =
            json(r#"{"a": {"b": [1, {"c": "x\"}"}]}, "d": null, "e": "\u00e9\n", "f": -1.5e3, "g": true}"#);
        assert_eq!(line.get("a").unwrap().get("b").unwrap().items().count(), 2);
        assert!(line.get("d").is_none(), "null is absent");
        assert_eq!(line.get_text("e").unwrap(), "é\n");
        assert_eq!(line.get_integer("f"), Some(-1500));
        assert_eq!(line.get("g").unwrap().boolean(), Some(true));
        assert!(line.get("nothing").is_none());
    }

    #[test]
    fn distinguishes_json_from_what_is_not() {
        for good in [r#"{}"#, r#" {"a":[]} "#, r#"{"a":{"b":"\\"}}"#, "{\"a\":\"\u{0}\u{1b}\"}"] {
            assert!(Scan::new(good.as_bytes()).line().is_complete(), "{good}");
        }
        for bad in
            [r#"{"a":1"#, r#"{"a" 1}"#, r#"{"a":[1}"#, "plain", r#"{"a":"x}"#, r#"{"a":tru}"#, r#"{a:1}"#]
        {
            assert!(!Scan::new(bad.as_bytes()).line().is_complete(), "{bad}");
        }
        let two = Scan::new(br#"{"a":1}{"b":2}"#);
        let two: Vec<usize> = two.line().objects().map(|object| object.unwrap().0).collect();
        assert_eq!(two, [0, 7]);
        let torn = Scan::new(br#"{"a":1}{"b":"#);
        let torn: Vec<bool> = torn.line().objects().map(|object| object.is_ok()).collect();
        assert_eq!(torn, [true, false]);
    }

    #[test]
    fn survives_deep_nesting_and_odd_text() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        let value = json(&deep);
        assert!(value.get("a").unwrap().is_array());
        assert!(value.value().is_object());
        let mixed = format!("{}1{}", r#"{"a":["#.repeat(500), "]}".repeat(500));
        assert_eq!(json(&mixed).bytes().len(), mixed.len());
        assert!(
            Json::parse(format!("{}1{}", r#"{"a":["#.repeat(500), "}]".repeat(500)).as_bytes()).is_none()
        );
        assert_eq!(unescape(br"lone \ud83d end"), "lone \u{fffd} end");
        assert_eq!(unescape(br"\ud83d\ude00"), "😀");
        assert_eq!(unescape(b"bad \xff utf8"), "bad \u{fffd} utf8");
        assert_eq!(unescape(br"cut \"), "cut ");
        assert_eq!(unescape(br"cut \u12"), "cut \u{fffd}12");
    }

    #[test]
    fn heads_and_tails_are_cut_between_characters() {
        let text = json(r#""ab\ncd\u00e9éef""#);
        assert_eq!(text.head(3), "ab\n");
        assert_eq!(text.head(100), "ab\ncdéeéf".replace("eéf", "éef"));
        assert!(text.tail(3).ends_with("ef"));
        assert!(json(&format!("\"{}\"", "é".repeat(50))).head(7).chars().all(|c| c == 'é'));
    }

    #[test]
    fn opens_objects_down_to_the_given_depth() {
        let bytes = br#" {"a": {"b": {"c": "x"}, "d": null}, "e": [1]} "#;
        let opened = Opened::parse(bytes, 2).unwrap();
        assert_eq!(opened.get("a").unwrap().get_json("b").unwrap().bytes(), br#"{"c": "x"}"#);
        assert!(opened.get("a").unwrap().get("b").unwrap().fields().is_empty());
        assert!(opened.get("a").unwrap().get("d").is_none());
        assert_eq!(opened.object().get("e").unwrap().items().count(), 1);
        let (name, pair) = Opened::parse_pair(br#""n": {"m": 1}"#, 1).unwrap();
        assert_eq!((name, pair.get_json("m").unwrap().bytes()), (&b"n"[..], &b"1"[..]));
        for bad in [&b"{\"a\":1"[..], b"{\"a\" 1}", b"{\"a\":{]}", b"{} x"] {
            assert!(Opened::parse(bad, 3).is_none());
        }
    }

    #[test]
    fn too_many_values_are_found_without_marks() {
        let many = format!("{{\"a\":[{}2],\"b\":\"x\"}}", "1,".repeat(1 << 20));
        let scan = Scan::new(many.as_bytes());
        assert_eq!(scan.line().json().unwrap().get("a").unwrap().items().count(), (1 << 20) + 1);
        let (_, object) = scan.line().objects().next().unwrap().unwrap();
        assert_eq!(object.get_text("b").unwrap(), "x");
        let room = scan.into_room();
        assert_eq!(Scan::within(b"[1,2]", room).line().json().unwrap().items().count(), 2);
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in "\\PC{0,40}", number in any::<i64>(), flag in any::<bool>()) {
            let value = serde_json::json!({"t": text, "n": number, "f": flag, "o": {"t": [text, null]}});
            let written = value.to_string();
            prop_assert_eq!(json(&written).value(), value);
        }

        /// For any text of JSON characters, marks lead to the same values as bytes.
        #[test]
        fn a_scan_agrees_with_the_bytes(text in r#"[\[\]{}:, "\\ab1\-]{0,60}"#, space in " {0,2}") {
            for bytes in [text.clone(), format!("{space}{{\"a\":[{text}],\"b\":{{\"c\":[]}}}}{space}")] {
                let scan = Scan::new(bytes.as_bytes());
                let (scanned, plain) = (scan.line().json(), Json::parse(bytes.as_bytes()));
                prop_assert_eq!(scanned.map(Json::bytes), plain.map(Json::bytes));
                prop_assert_eq!(scanned.map(Json::value), plain.map(Json::value));
                for (at, object) in scan.line().objects().flatten() {
                    let part = scan.line().part(at as u64, object.bytes().len() as u64).unwrap();
                    prop_assert_eq!(part.json().map(Json::bytes), Some(object.bytes()));
                    let plain = Json::parse(object.bytes()).unwrap();
                    prop_assert_eq!(object.json.value(), plain.value());
                }
            }
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, object) in Scan::new(&bytes).line().objects().flatten() {
                let _ = object.json.value();
            }
            let _ = unescape(&bytes);
        }
    }
}
