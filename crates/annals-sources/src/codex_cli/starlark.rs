//! The part of Starlark that approval rules are written in: calls whose arguments are literals.

use serde_json::{Number, Value};

/// Deeper lists are nobody's rule.
const DEEPEST: usize = 32;

/// A call whose arguments are all literals.
#[derive(Debug, Default, PartialEq)]
pub struct RuleCall {
    pub function: String,
    positional: Vec<Value>,
    named: Vec<(String, Value)>,
}

impl RuleCall {
    /// `None` when it is more than a call with literal arguments: a variable, a loop, a missing bracket.
    pub fn parse(text: &[u8]) -> Option<RuleCall> {
        let mut parser = Parser { text, at: 0 };
        let function = parser.word()?;
        let mut call = RuleCall { function, ..RuleCall::default() };
        parser.expect(b'(')?;
        while !parser.accept(b')') {
            match parser.name_of_argument() {
                Some(name) => {
                    let value = parser.value(0)?;
                    let is_given = call.named.iter().any(|(given, _)| *given == name);
                    call.named.push((name, value));
                    if is_given {
                        return None;
                    }
                }
                // Positional arguments come first.
                None if call.named.is_empty() => call.positional.push(parser.value(0)?),
                None => return None,
            }
            if !parser.accept(b',') {
                parser.expect(b')')?;
                break;
            }
        }
        parser.skip_blank();
        (parser.at == text.len()).then_some(call)
    }

    /// An argument by its name, or by its position among those that the function declares.
    pub fn argument(&self, declared: &[&str], name: &str) -> Option<&Value> {
        let named = self.named.iter().find(|(given, _)| given == name).map(|(_, value)| value);
        let position = declared.iter().position(|declared| *declared == name);
        let value = named.or_else(|| self.positional.get(position?));
        value.filter(|value| !value.is_null())
    }

    /// False when an argument is not among those that the function declares, or is given twice.
    pub fn fits(&self, declared: &[&str]) -> bool {
        let (by_position, others) = declared.split_at(self.positional.len().min(declared.len()));
        by_position.len() == self.positional.len()
            && self.named.iter().all(|(name, _)| others.contains(&name.as_str()))
    }
}

/// Where calls begin and end, outside of other calls, strings and comments. `opens` says which names begin a new
/// call at the start of a line even when the one before was never closed.
pub fn calls(bytes: &[u8], opens: impl Fn(&[u8]) -> bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut at, mut start, mut depth) = (0, None, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'#' => {
                at = end_of_line(bytes, at);
                continue;
            }
            b'"' | b'\'' => {
                at = end_of_string(bytes, at).unwrap_or_else(|stopped| stopped);
                continue;
            }
            b'(' | b'[' | b'{' => {
                if depth == 0 && bytes[at] == b'(' {
                    let word = word_before(bytes, at);
                    start = is_called(bytes, word.0).then_some(word.0).filter(|_| word.0 < word.1);
                }
                depth += 1;
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.extend(start.take().map(|start| (start, at + 1)));
                }
            }
            b'\n' if depth > 0 => {
                let word = word_length(&bytes[at + 1..]);
                let behind = bytes[at + 1 + word..].iter().find(|byte| !matches!(byte, b' ' | b'\t'));
                if behind == Some(&b'(') && opens(&bytes[at + 1..at + 1 + word]) {
                    found.extend(start.take().map(|start| (start, trimmed_end(bytes, at))));
                    depth = 0;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found.extend(start.map(|start| (start, trimmed_end(bytes, bytes.len()))));
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_word(**byte)).count()
}

/// The word that an opening bracket follows, if one does.
fn word_before(bytes: &[u8], bracket: usize) -> (usize, usize) {
    let blank = bytes[..bracket].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let end = bracket - blank;
    (end - bytes[..end].iter().rev().take_while(|byte| is_word(**byte)).count(), end)
}

/// A definition is not a call, and neither is a bracket behind a keyword.
fn is_called(bytes: &[u8], start: usize) -> bool {
    let word = &bytes[start..start + word_length(&bytes[start..])];
    let keyword: &[&[u8]] =
        &[b"if", b"elif", b"in", b"and", b"or", b"not", b"return", b"lambda", b"for", b"else"];
    let (before, end) = word_before(bytes, start);
    !keyword.contains(&word) && &bytes[before..end] != b"def"
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    at + memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at)
}

fn trimmed_end(bytes: &[u8], end: usize) -> usize {
    end - bytes[..end].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Behind the string whose quote is at `at`; an error says where the search for its end stopped.
fn end_of_string(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let quote = bytes[at];
    let triple = bytes[at..].starts_with(&[quote; 3]);
    let width = if triple { 3 } else { 1 };
    let mut end = at + width;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 1,
            b'\n' if !triple => return Err(end),
            byte if byte == quote && (!triple || bytes[end..].starts_with(&[quote; 3])) => {
                return Ok(end + width);
            }
            _ => {}
        }
        end += 1;
    }
    Err(bytes.len())
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Blanks, line ends and comments mean nothing within a call.
    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => self.at = end_of_line(self.text, self.at),
                b'\\' if self.text[self.at + 1..].starts_with(b"\n") => self.at += 2,
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
    }

    fn accept(&mut self, wanted: u8) -> bool {
        self.skip_blank();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        self.accept(wanted).then_some(())
    }

    fn word(&mut self) -> Option<String> {
        self.skip_blank();
        let length = word_length(&self.text[self.at..]);
        let word = &self.text[self.at..self.at + length];
        self.at += length;
        (length > 0 && !word[0].is_ascii_digit()).then(|| String::from_utf8_lossy(word).into_owned())
    }

    /// The name before a `=`; nothing is consumed when there is none.
    fn name_of_argument(&mut self) -> Option<String> {
        let before = self.at;
        let name = self.word().filter(|_| self.accept(b'=') && self.peek() != Some(b'='));
        if name.is_none() {
            self.at = before;
        }
        name
    }

    /// A literal, or literals joined by `+`.
    fn value(&mut self, depth: usize) -> Option<Value> {
        let mut value = self.literal(depth)?;
        while self.accept(b'+') {
            value = match (value, self.literal(depth)?) {
                (Value::String(one), Value::String(other)) => Value::String(one + &other),
                (Value::Array(mut one), Value::Array(other)) => {
                    one.extend(other);
                    Value::Array(one)
                }
                _ => return None,
            };
        }
        Some(value)
    }

    fn literal(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        self.skip_blank();
        match self.peek()? {
            b'"' | b'\'' => self.string(false),
            b'r' if matches!(self.text.get(self.at + 1), Some(b'"' | b'\'')) => {
                self.at += 1;
                self.string(true)
            }
            b'[' => self.list(b']', depth),
            b'(' => self.list(b')', depth),
            b'-' | b'0'..=b'9' => self.number(),
            _ => match self.word()?.as_str() {
                "True" => Some(Value::Bool(true)),
                "False" => Some(Value::Bool(false)),
                "None" => Some(Value::Null),
                _ => None,
            },
        }
    }

    /// A list, or a tuple; one value in brackets is that value.
    fn list(&mut self, close: u8, depth: usize) -> Option<Value> {
        self.at += 1;
        let (mut values, mut commas) = (Vec::new(), 0);
        while !self.accept(close) {
            values.push(self.value(depth + 1)?);
            if !self.accept(b',') {
                self.expect(close)?;
                break;
            }
            commas += 1;
        }
        match close == b')' && values.len() == 1 && commas == 0 {
            true => values.pop(),
            false => Some(Value::Array(values)),
        }
    }

    fn number(&mut self) -> Option<Value> {
        let minus = usize::from(self.peek() == Some(b'-'));
        let length = minus + word_length(&self.text[self.at + minus..]);
        let digits = std::str::from_utf8(&self.text[self.at..self.at + length]).ok()?;
        self.at += length;
        digits.parse::<i64>().ok().map(|number| Value::Number(Number::from(number)))
    }

    fn string(&mut self, raw: bool) -> Option<Value> {
        let end = end_of_string(self.text, self.at).ok()?;
        let whole = &self.text[self.at..end];
        let width = if whole.len() >= 6 && whole.starts_with(&[whole[0]; 3]) { 3 } else { 1 };
        let inner = whole.get(width..whole.len() - width)?;
        self.at = end;
        let bytes = if raw { inner.to_vec() } else { unescaped(inner)? };
        Some(Value::from(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn unescaped(inner: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&kind, behind) = rest.split_first()?;
        rest = behind;
        let simple = match kind {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                let digits = &inner[inner.len() - rest.len() - 1..][..=more];
                rest = &rest[more..];
                push_character(&mut bytes, digits, 8)?;
                continue;
            }
            b'x' | b'u' | b'U' => {
                let width = match kind {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                let (digits, behind) = rest.split_at_checked(width)?;
                rest = behind;
                push_character(&mut bytes, digits, 16)?;
                continue;
            }
            b'\n' => continue,
            b'\\' | b'"' | b'\'' => kind,
            // Not an escape: both stay.
            _ => {
                bytes.push(b'\\');
                kind
            }
        };
        bytes.push(simple);
    }
    Some(bytes)
}

fn push_character(bytes: &mut Vec<u8>, digits: &[u8], radix: u32) -> Option<()> {
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    bytes.extend(char::from_u32(number)?.encode_utf8(&mut [0; 4]).bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{RuleCall, calls};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn arguments(text: &str) -> Option<Vec<(String, Value)>> {
        RuleCall::parse(text.as_bytes()).map(|call| call.named)
    }

    fn argument(text: &str) -> Option<Value> {
        arguments(&format!("f(a = {text})")).map(|mut named| named.remove(0).1)
    }

    #[test]
    fn literals_of_every_form_are_read() {
        for (text, value) in [
            (r#""a""#, json!("a")),
            (r"'it\'s'", json!("it's")),
            ("\"\"\"two\nlines\"\"\"", json!("two\nlines")),
            ("''", json!("")),
            (r"r'\d'", json!(r"\d")),
            (r#""\x41\u00e9\101\t\q""#, json!("Aé\u{41}\t\\q")),
            ("'a' + \"b\"", json!("ab")),
            ("['a'] + ['b',]", json!(["a", "b"])),
            ("[ 'a', # why\n ['b', 'c',],\n]", json!(["a", ["b", "c"]])),
            ("('a',)", json!(["a"])),
            ("('a')", json!("a")),
            ("()", json!([])),
            ("-12", json!(-12)),
            ("True", json!(true)),
            ("None", json!(null)),
        ] {
            assert_eq!(argument(text), Some(value), "{text}");
        }
        for text in ["name", "[x]", "'a", "{'a': 1}", "'a' + 1", "f('a')", "'\\x4'", "1.5", "r", ""] {
            assert_eq!(argument(text), None, "{text}");
        }
        assert_eq!(argument(&("[".repeat(99) + &"]".repeat(99))), None, "too deep");
    }

    #[test]
    fn calls_are_told_from_what_only_looks_like_one() {
        let text = b"load('a')\n# f(1)\nx = 'g(2)'\ndef h(y):\n    k(y)\nif (x):\n  (3)\nm (4)\n";
        let found: Vec<_> =
            calls(text, |_| false).into_iter().map(|(start, end)| &text[start..end]).collect();
        assert_eq!(found, [b"load('a')" as &[u8], b"k(y)", b"m (4)"]);
    }

    #[test]
    fn a_call_that_is_never_closed_ends_where_the_next_begins() {
        let text = b"f(pattern = ['a'\n\nf(pattern = ['b'])\nf(a = 'never\n";
        let found: Vec<_> =
            calls(text, |word| word == b"f").into_iter().map(|(start, end)| &text[start..end]).collect();
        assert_eq!(found, [b"f(pattern = ['a'" as &[u8], b"f(pattern = ['b'])", b"f(a = 'never"]);
        assert_eq!(RuleCall::parse(found[0]), None);
        assert_eq!(RuleCall::parse(found[2]), None);
    }

    #[test]
    fn arguments_are_named_or_counted() {
        let call = RuleCall::parse(b"f('a', c = 'd')").expect("literals");
        let declared = ["a", "b", "c"];
        assert_eq!(call.argument(&declared, "a"), Some(&json!("a")));
        assert_eq!(call.argument(&declared, "b"), None);
        assert_eq!(call.argument(&declared, "c"), Some(&json!("d")));
        assert!(call.fits(&declared));
        for wrong in ["f('a', a = 'b')", "f('a', 'b', 'c', 'd')", "f(z = 'a')"] {
            assert!(!RuleCall::parse(wrong.as_bytes()).expect("literals").fits(&declared), "{wrong}");
        }
        assert_eq!(RuleCall::parse(b"f(a = 'b', 'c')"), None);
        assert_eq!(RuleCall::parse(b"f(a = 'b', a = 'c')"), None);
        assert_eq!(RuleCall::parse(b"f(a == 'b')"), None);
        assert_eq!(RuleCall::parse(b"f() + 1"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (start, end) in calls(&bytes, |word| word == b"f") {
                prop_assert!(start < end && end <= bytes.len());
                let _ = RuleCall::parse(&bytes[start..end]);
            }
        }

        #[test]
        fn any_tokens_are_taken(tokens in proptest::collection::vec(
            proptest::sample::select(vec!["f", "(", ")", "[", "]", "'", "\"", "\"\"\"", "\\", "#", "\n", ",", "=", "+", "a", "1", "-", "r"]), 0..40,
        )) {
            let text = tokens.concat();
            for (start, end) in calls(text.as_bytes(), |word| word == b"f") {
                let _ = RuleCall::parse(&text.as_bytes()[start..end]);
            }
            let _ = RuleCall::parse(text.as_bytes());
        }
    }
}
