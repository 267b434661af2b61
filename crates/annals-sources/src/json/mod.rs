//! Lazy JSON over bytes: finds fields without building trees, never recurses on input, keeps what is not quite JSON.
//!
//! Transcripts are mostly long strings that no row needs. Scanning past them runs at memory speed, and a line that
//! nests 10,000 deep, holds lone surrogates or raw control bytes is read like any other.

mod scan;

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

pub use scan::unescape;
use scan::{skip_space, skip_string, skip_value};

/// One JSON value as it is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a [u8]);

/// An object with its fields found: one pass over its bytes serves all questions to it.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    json: Json<'a>,
    fields: Vec<(&'a [u8], Json<'a>)>,
}

impl<'a> Object<'a> {
    pub fn bytes(&self) -> &'a [u8] {
        self.json.0
    }

    pub fn fields(&self) -> &[(&'a [u8], Json<'a>)] {
        &self.fields
    }

    /// The first field of that name that is not null.
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

    /// The object that starts here and where it ends, checking structure; `None` if it is not one.
    fn read(bytes: &'a [u8], start: usize) -> Option<(Object<'a>, usize)> {
        let mut fields = Vec::with_capacity(8);
        let mut at = skip_space(bytes, start + 1);
        if bytes.get(at) != Some(&b'}') {
            loop {
                let name_end = skip_string(bytes, at).filter(|_| bytes.get(at) == Some(&b'"'))?;
                let colon = skip_space(bytes, name_end);
                let value = (bytes.get(colon)? == &b':').then(|| skip_space(bytes, colon + 1))?;
                let end = skip_value(bytes, value)?;
                fields.push((&bytes[at + 1..name_end - 1], Json(&bytes[value..end])));
                at = skip_space(bytes, end);
                match bytes.get(at)? {
                    b',' => at = skip_space(bytes, at + 1),
                    b'}' => break,
                    _ => return None,
                }
            }
        }
        Some((Object { json: Json(&bytes[start..at + 1]), fields }, at + 1))
    }
}

/// A value whose objects were opened down to some depth, in one pass over its bytes.
#[derive(Debug, Clone)]
pub struct Opened<'a> {
    pub json: Json<'a>,
    fields: Vec<(&'a [u8], Opened<'a>)>,
}

impl<'a> Opened<'a> {
    /// One value with nothing but space around it, and the objects in it down to `depth`.
    pub fn parse(bytes: &'a [u8], depth: usize) -> Option<Opened<'a>> {
        let (opened, end) = Opened::read(bytes, skip_space(bytes, 0), depth)?;
        (skip_space(bytes, end) == bytes.len()).then_some(opened)
    }

    /// A name and its value as they are in an object.
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
            return Some((Opened { json: Json(&bytes[start..end]), fields: Vec::new() }, end));
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
        Some((Opened { json: Json(&bytes[start..at + 1]), fields }, at + 1))
    }

    pub fn fields(&self) -> &[(&'a [u8], Opened<'a>)] {
        &self.fields
    }

    pub fn into_fields(self) -> Vec<(&'a [u8], Opened<'a>)> {
        self.fields
    }

    /// The first field of that name that is not null.
    pub fn get(&self, name: &str) -> Option<&Opened<'a>> {
        let found = self.fields.iter().find(|(key, _)| *key == name.as_bytes());
        found.map(|(_, value)| value).filter(|value| !value.json.is_null())
    }

    /// That field alone, for its own sake.
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

    /// Its own fields alone.
    pub fn object(&self) -> Object<'a> {
        let fields = self.fields.iter().map(|(name, value)| (*name, value.json)).collect();
        Object { json: self.json, fields }
    }
}

/// The objects on one line (nearly always one), or where it stops being JSON.
pub struct Objects<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Nothing but whitespace, or JSON objects one after another; a failure gives the offset of what is not JSON.
pub fn objects(line: &[u8]) -> Objects<'_> {
    Objects { bytes: line, at: 0 }
}

impl<'a> Iterator for Objects<'a> {
    type Item = Result<(usize, Object<'a>), usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = skip_space(self.bytes, self.at);
        if start >= self.bytes.len() {
            return None;
        }
        self.at = self.bytes.len();
        if self.bytes[start] != b'{' {
            return Some(Err(start));
        }
        match Object::read(self.bytes, start) {
            Some((object, end)) => {
                self.at = end;
                Some(Ok((start, object)))
            }
            None => Some(Err(start)),
        }
    }
}

impl<'a> Json<'a> {
    /// Any one value, with nothing but space around it.
    pub fn parse(bytes: &'a [u8]) -> Option<Json<'a>> {
        let start = skip_space(bytes, 0);
        let end = skip_value(bytes, start)?;
        (skip_space(bytes, end) == bytes.len()).then(|| Json(&bytes[start..end]))
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }

    pub fn is_array(self) -> bool {
        self.0.first() == Some(&b'[')
    }

    pub fn is_string(self) -> bool {
        self.0.first() == Some(&b'"')
    }

    pub fn is_null(self) -> bool {
        self.0 == b"null"
    }

    /// Names and values of an object, in order; nothing for any other value.
    pub fn fields(self) -> Fields<'a> {
        Fields { bytes: self.0, at: if self.is_object() { 1 } else { self.0.len() } }
    }

    /// The fields of an object of which only the start is there; the value that it ends within is missing.
    pub fn fields_of_start(start: &'a [u8]) -> Vec<(&'a [u8], Option<Json<'a>>)> {
        let mut fields = Vec::new();
        let mut at = if start.first() == Some(&b'{') { skip_space(start, 1) } else { start.len() };
        while start.get(at) == Some(&b'"') {
            let Some(name_end) = skip_string(start, at) else { break };
            let name = &start[at + 1..name_end - 1];
            let value = skip_space(start, skip_space(start, name_end) + 1);
            // A number or a word that reaches to the end may go on.
            let Some(end) = skip_value(start, value).filter(|end| *end < start.len()) else {
                fields.push((name, None));
                break;
            };
            fields.push((name, Some(Json(&start[value..end]))));
            at = skip_space(start, end);
            if start.get(at) == Some(&b',') {
                at = skip_space(start, at + 1);
            }
        }
        fields
    }

    /// Its fields, found once; an object without any for every other value.
    pub fn object(self) -> Object<'a> {
        Object { json: self, fields: self.fields().collect() }
    }

    pub fn items(self) -> Items<'a> {
        Items { bytes: self.0, at: if self.is_array() { 1 } else { self.0.len() } }
    }

    /// The first field of that name that is not null.
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

    /// The bytes between the quotes, escapes and all.
    pub fn inner(self) -> Option<&'a [u8]> {
        (self.is_string() && self.0.len() >= 2).then(|| &self.0[1..self.0.len() - 1])
    }

    /// About the first `limit` bytes of a string, cut between escapes.
    pub fn head(self, limit: usize) -> String {
        let Some(inner) = self.inner() else { return String::new() };
        if inner.len() <= limit {
            return unescape(inner);
        }
        let mut at = 0;
        while at < limit {
            at += match inner[at] {
                b'\\' if inner.get(at + 1) == Some(&b'u') => 6,
                b'\\' => 2,
                _ => 1,
            };
        }
        at = at.min(inner.len());
        while at < inner.len() && inner[at] & 0xC0 == 0x80 {
            at += 1;
        }
        unescape(&inner[..at])
    }

    /// About the last `limit` bytes of a string. The cut may fall into an escape, whose rest then shows as text.
    pub fn tail(self, limit: usize) -> String {
        let Some(inner) = self.inner() else { return String::new() };
        let mut at = inner.len().saturating_sub(limit);
        while at > 0 && at < inner.len() && (inner[at] & 0xC0 == 0x80 || inner[at - 1] == b'\\') {
            at += 1;
        }
        unescape(&inner[at..])
    }

    pub fn integer(self) -> Option<i64> {
        let text = std::str::from_utf8(self.0).ok()?;
        text.parse().ok().or_else(|| {
            text.parse::<f64>().ok().filter(|number| number.abs() < 9e15).map(|number| number as i64)
        })
    }

    pub fn get_integer(self, name: &str) -> Option<i64> {
        self.get(name)?.integer()
    }

    pub fn boolean(self) -> Option<bool> {
        match self.0 {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }

    /// A tree for small values. What nests deeper than 64 stays as its own text.
    pub fn value(self) -> Value {
        self.value_within(64)
    }

    fn value_within(self, depth: usize) -> Value {
        match self.0.first() {
            Some(b'{' | b'[') if depth == 0 => Value::String(String::from_utf8_lossy(self.0).into_owned()),
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
            Some(_) => serde_json::from_slice::<Number>(self.0)
                .map(Value::Number)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(self.0).into_owned())),
        }
    }
}

pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut at = skip_space(self.bytes, self.at);
        if self.bytes.get(at) == Some(&b',') {
            at = skip_space(self.bytes, at + 1);
        }
        if self.bytes.get(at) != Some(&b'"') {
            self.at = self.bytes.len();
            return None;
        }
        let key_end = skip_string(self.bytes, at)?;
        let key = &self.bytes[at + 1..key_end - 1];
        let colon = skip_space(self.bytes, key_end);
        let start = skip_space(self.bytes, colon + 1);
        let end = skip_value(self.bytes, start)?;
        self.at = end;
        Some((key, Json(&self.bytes[start..end])))
    }
}

pub struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        let mut at = skip_space(self.bytes, self.at);
        if self.bytes.get(at) == Some(&b',') {
            at = skip_space(self.bytes, at + 1);
        }
        if matches!(self.bytes.get(at), None | Some(b']')) {
            self.at = self.bytes.len();
            return None;
        }
        let end = skip_value(self.bytes, at)?;
        self.at = end;
        Some(Json(&self.bytes[at..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, Opened, objects, unescape};
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
    fn tells_json_from_what_is_not() {
        for good in [r#"{}"#, r#" {"a":[]} "#, r#"{"a":{"b":"\\"}}"#, "{\"a\":\"\u{0}\u{1b}\"}"] {
            assert!(objects(good.as_bytes()).all(|object| object.is_ok()), "{good}");
        }
        for bad in
            [r#"{"a":1"#, r#"{"a" 1}"#, r#"{"a":[1}"#, "plain", r#"{"a":"x}"#, r#"{"a":tru}"#, r#"{a:1}"#]
        {
            assert!(objects(bad.as_bytes()).any(|object| object.is_err()), "{bad}");
        }
        let two: Vec<usize> = objects(br#"{"a":1}{"b":2}"#).map(|object| object.unwrap().0).collect();
        assert_eq!(two, [0, 7]);
        let torn: Vec<bool> = objects(br#"{"a":1}{"b":"#).map(|object| object.is_ok()).collect();
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
    fn opens_objects_as_deep_as_asked() {
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

    proptest! {
        #[test]
        fn agrees_with_serde_json(text in "\\PC{0,40}", number in any::<i64>(), flag in any::<bool>()) {
            let value = serde_json::json!({"t": text, "n": number, "f": flag, "o": {"t": [text, null]}});
            let written = value.to_string();
            prop_assert_eq!(json(&written).value(), value);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, object) in objects(&bytes).flatten() {
                let _ = object.json.value();
            }
            let _ = unescape(&bytes);
        }
    }
}
