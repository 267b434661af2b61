//! Splits a JSON file into its elements while streaming: one element in memory at a time.

use std::io::{self, Read};

use memchr::memchr2;

use annals_sources::Shape;

/// Longer elements are not kept in memory; they are counted and skipped.
const LONGEST: usize = 256 << 20;
/// Most bytes kept of what is outside all elements.
const LONGEST_REST: usize = 1 << 20;
const CHUNK: usize = 1 << 20;

/// A piece of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'e> {
    Element(&'e [u8]),
    /// The file ended inside the element.
    Torn(&'e [u8]),
    /// The length of an element that is too long.
    TooLong(u64),
    /// What is between and after the elements, if it is more than punctuation.
    Rest(&'e [u8]),
}

/// Emits every element in order. A read error is returned after what was read before it.
pub fn split<E: From<io::Error>>(
    input: &mut dyn Read,
    shape: &Shape,
    emit: &mut dyn FnMut(Piece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let path: &[&str] = match shape {
        Shape::Elements => &[],
        Shape::Within(path) => path,
        Shape::Whole | Shape::Bytes => return emit_whole(input, emit),
    };
    let mut splitter = Splitter::new(path);
    let mut chunk = vec![0; CHUNK];
    let failed = loop {
        match input.read(&mut chunk) {
            Ok(0) => break None,
            Ok(read) => splitter.feed(&chunk[..read], emit)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(error),
        }
    };
    splitter.finish(emit)?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

fn emit_whole<E: From<io::Error>>(
    input: &mut dyn Read,
    emit: &mut dyn FnMut(Piece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut bytes = Vec::new();
    let read = input.take(LONGEST as u64 + 1).read_to_end(&mut bytes);
    if bytes.len() > LONGEST {
        let rest = io::copy(input, &mut io::sink())?;
        return emit(Piece::TooLong(bytes.len() as u64 + rest));
    }
    match read {
        Ok(_) => emit(Piece::Element(&bytes)),
        Err(error) => {
            emit(Piece::Torn(&bytes))?;
            Err(error.into())
        }
    }
}

struct Splitter<'p> {
    /// Names that lead to the array of elements.
    path: &'p [&'p str],
    /// How many of them have been entered.
    inside: usize,
    state: State,
    element: Vec<u8>,
    too_long: u64,
    depth: u64,
    rest: Vec<u8>,
    /// The array at the path has ended.
    done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the array, or between elements.
    Between,
    /// In an element, or in a value on the way to the elements.
    Structure,
    Text,
    /// After a backslash.
    Escape,
    /// A number or literal.
    Word,
}

impl<'p> Splitter<'p> {
    fn new(path: &'p [&'p str]) -> Splitter<'p> {
        Splitter {
            path,
            inside: 0,
            state: State::Between,
            element: Vec::new(),
            too_long: 0,
            depth: 0,
            rest: Vec::new(),
            done: false,
        }
    }

    fn feed<E>(&mut self, chunk: &[u8], emit: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut at = 0;
        while at < chunk.len() {
            let start = at;
            match self.state {
                State::Between => {
                    self.between(chunk[at]);
                    at += 1;
                    continue;
                }
                State::Structure => {
                    at += self.structure(&chunk[at..]);
                }
                State::Text => match memchr2(b'"', b'\\', &chunk[at..]) {
                    Some(offset) => {
                        at += offset + 1;
                        let quote = chunk[at - 1] == b'"';
                        self.state = if quote { State::Structure } else { State::Escape };
                    }
                    None => at = chunk.len(),
                },
                State::Escape => {
                    at += 1;
                    self.state = State::Text;
                }
                State::Word => {
                    let ends = |byte: &u8| matches!(byte, b',' | b']' | b' ' | b'\n' | b'\r' | b'\t');
                    at += chunk[at..].iter().position(ends).unwrap_or(chunk.len() - at);
                }
            }
            self.hold(&chunk[start..at]);
            let ended = match self.state {
                State::Structure => self.depth == 0,
                State::Word => at < chunk.len(),
                State::Between | State::Text | State::Escape => false,
            };
            if ended {
                self.end(emit)?;
            }
        }
        Ok(())
    }

    /// Handles a byte outside all elements.
    fn between(&mut self, byte: u8) {
        match byte {
            b']' => {
                self.done = self.inside == self.path.len();
                return self.keep_rest(byte);
            }
            b' ' | b'\n' | b'\r' | b'\t' | b',' => return self.keep_rest(byte),
            b'[' if self.inside == self.path.len() && self.nothing_yet() => return self.keep_rest(byte),
            b'{' if self.inside < self.path.len() => return self.keep_rest(byte),
            b'}' if !self.path.is_empty() => return self.keep_rest(byte),
            b':' if !self.path.is_empty() => return self.keep_rest(byte),
            0xEF | 0xBB | 0xBF if self.nothing_yet() => return self.keep_rest(byte),
            _ => {}
        }
        self.hold(&[byte]);
        (self.state, self.depth) = match byte {
            b'{' | b'[' => (State::Structure, 1),
            b'"' => (State::Text, 0),
            _ => (State::Word, 0),
        };
    }

    /// Nothing but a byte order mark or the way to the elements so far.
    fn nothing_yet(&self) -> bool {
        self.path.len() == self.inside && !self.path.is_empty()
            || self.rest.iter().all(|byte| matches!(byte, 0xEF | 0xBB | 0xBF | b' ' | b'\n' | b'\r' | b'\t'))
    }

    /// Scans up to the next string, or to the end of the element.
    fn structure(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => {
                    self.state = State::Text;
                    return at + 1;
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
        bytes.len()
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.too_long > 0 || self.element.len() + bytes.len() > LONGEST {
            self.too_long += (self.element.len() + bytes.len()) as u64;
            self.element = Vec::new();
        } else {
            self.element.extend_from_slice(bytes);
        }
    }

    fn keep_rest(&mut self, byte: u8) {
        if self.rest.len() < LONGEST_REST {
            self.rest.push(byte);
        }
    }

    /// Ends an element; a name on the way to the elements is not one.
    fn end<E>(&mut self, emit: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        self.state = State::Between;
        self.depth = 0;
        if self.too_long > 0 {
            return emit(Piece::TooLong(std::mem::take(&mut self.too_long)));
        }
        let element = std::mem::take(&mut self.element);
        if self.inside < self.path.len() {
            // Values under other names are outside the elements.
            if element.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) == self.next_name() {
                self.inside += 1;
            }
            for byte in &element {
                self.keep_rest(*byte);
            }
        } else if !self.path.is_empty() && (self.done || !element.starts_with(b"{")) {
            for byte in &element {
                self.keep_rest(*byte);
            }
        } else {
            emit(Piece::Element(&element))?;
        }
        self.element = element;
        self.element.clear();
        Ok(())
    }

    fn next_name(&self) -> Option<&'p [u8]> {
        self.path.get(self.inside).map(|name| name.as_bytes())
    }

    fn finish<E>(&mut self, emit: &mut dyn FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.state == State::Word {
            self.end(emit)?;
        }
        if self.too_long > 0 {
            emit(Piece::TooLong(self.too_long))?;
        } else if !self.element.is_empty() {
            emit(Piece::Torn(&self.element))?;
        }
        let plain = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b'[' | b']');
        let mark = self.rest.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&self.rest);
        if mark.iter().all(plain) { Ok(()) } else { emit(Piece::Rest(&self.rest)) }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Piece, split};
    use annals_sources::Shape;

    fn pieces(text: &[u8], shape: &Shape) -> Vec<String> {
        let mut actual = Vec::new();
        let mut emit = |piece: Piece<'_>| -> io::Result<()> {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            actual.push(match piece {
                Piece::Element(bytes) => text(bytes),
                Piece::Torn(bytes) => format!("torn {}", text(bytes)),
                Piece::TooLong(bytes) => format!("too long {bytes}"),
                Piece::Rest(bytes) => format!("rest {}", text(bytes)),
            });
            Ok(())
        };
        // Chunks of any size give the same result.
        split(&mut OneByOne(text), shape, &mut emit).unwrap();
        let slow = std::mem::take(&mut actual);
        let mut emit = |piece: Piece<'_>| -> io::Result<()> {
            if let Piece::Element(bytes) = piece {
                actual.push(String::from_utf8_lossy(bytes).into_owned());
            }
            Ok(())
        };
        split(&mut &*text, shape, &mut emit).unwrap();
        assert!(actual.iter().all(|element| slow.contains(element)));
        slow
    }

    struct OneByOne<'t>(&'t [u8]);

    impl io::Read for OneByOne<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let (Some(first), Some(place)) = (self.0.first(), into.first_mut()) else { return Ok(0) };
            *place = *first;
            self.0 = &self.0[1..];
            Ok(1)
        }
    }

    #[test]
    fn arrays_lines_and_single_objects_have_elements() {
        let array = "\u{feff}[ {\"a\":\"]},\\\"{\"} ,\n{\"b\":[1,{\"c\":{}}]},7, \"x\"]";
        let expected = ["{\"a\":\"]},\\\"{\"}", "{\"b\":[1,{\"c\":{}}]}", "7", "\"x\""];
        assert_eq!(pieces(array.as_bytes(), &Shape::Elements), expected);
        assert_eq!(pieces(b"{\"a\":1}\n{\"b\":2}\n", &Shape::Elements), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(pieces(b"{\"a\":1}", &Shape::Elements), ["{\"a\":1}"]);
        assert_eq!(pieces(b" [] ", &Shape::Elements), Vec::<String>::new());
    }

    #[test]
    fn elements_are_found_behind_names() {
        let wrapped = b"{\"total\":{\"n\":2},\"list\":[{\"a\":1},{\"b\":2}],\"next\":{\"c\":null}}";
        let actual = pieces(wrapped, &Shape::Within(&["list"]));
        assert_eq!(actual[..2], ["{\"a\":1}", "{\"b\":2}"]);
        assert!(
            actual[2].starts_with("rest ") && actual[2].contains("total") && actual.len() == 3,
            "{actual:?}"
        );
        let deep = br#"{"log":{"version":"1.2","pages":[{"p":1}],"entries":[{"e":1},{"e":2}]}}"#;
        assert_eq!(pieces(deep, &Shape::Within(&["log", "entries"]))[..2], [r#"{"e":1}"#, r#"{"e":2}"#]);
    }

    #[test]
    fn a_torn_file_gives_what_it_has() {
        let actual = pieces(br#"[{"a":1},{"b":"#, &Shape::Elements);
        assert_eq!(actual, [r#"{"a":1}"#, r#"torn {"b":"#]);
        let actual = pieces(br#"[{"a":1}] trailing"#, &Shape::Elements);
        assert_eq!(actual, [r#"{"a":1}"#, "trailing"]);
    }
}
