//! Reads which files and lines a patch of Codex CLI changes, and finds the patch in whatever text carries it.

use std::borrow::Cow;

/// What a patch does to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Add,
    Update,
    Delete,
}

/// Lines of a file, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: u32,
    pub end: u32,
}

/// One changed place; a side is `None` where the file has no line there, as before a pure insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hunk {
    pub before: Option<Range>,
    pub after: Option<Range>,
}

/// One file section of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    pub path: String,
    pub moved_to: Option<String>,
    pub change: Change,
    pub hunks: Vec<Hunk>,
}

/// All file sections of an `apply_patch` body, in order, several for the same file kept apart.
///
/// The format has no line numbers, so only an added file has a hunk: all of its lines.
pub fn parse_patch(text: &str) -> Vec<PatchedFile> {
    let mut files: Vec<PatchedFile> = Vec::new();
    let mut indentation = None;
    let mut inside = true;
    let mut section = None;
    for line in text.lines() {
        let line = unindented(line, indentation.unwrap_or_default());
        // In an update a leading space makes a context line, even of a text that looks like a marker.
        let marker = if section == Some(Change::Update) { line } else { line.trim_start() };
        if marker.starts_with(BEGIN) {
            inside = true;
            section = None;
        } else if !inside {
            continue;
        } else if marker.starts_with(END) {
            inside = false;
            section = None;
        } else if let Some((change, path)) = file_header(marker) {
            indentation.get_or_insert(&line[..line.len() - marker.len()]);
            section = (!path.is_empty()).then_some(change);
            if section.is_some() {
                files.push(PatchedFile { path: path.to_owned(), moved_to: None, change, hunks: Vec::new() });
            }
        } else if let (Some(change), Some(file)) = (section, files.last_mut()) {
            match change {
                Change::Add if marker.starts_with('+') => count_added_line(file),
                Change::Update if file.moved_to.is_none() => {
                    file.moved_to = marker
                        .strip_prefix(MOVE_TO)
                        .map(str::trim)
                        .filter(|path| !path.is_empty())
                        .map(str::to_owned);
                }
                _ => {}
            }
        }
    }
    files
}

/// The first patch body that [`find_patches`] finds.
pub fn find_patch(text: &str) -> Option<Cow<'_, str>> {
    Finder::new(text).next()
}

/// Every patch body in a text that carries some: the body itself, a heredoc or quoted argument of a shell
/// command, JSON, or a script that calls `tools.apply_patch`.
///
/// A body that stands verbatim is a slice from `*** Begin Patch` through `*** End Patch`; one written as a
/// string literal is unescaped first.
pub fn find_patches(text: &str) -> Vec<Cow<'_, str>> {
    Finder::new(text).collect()
}

/// The hunks of a unified diff, each narrowed from its context to the lines removed and added.
pub fn unified_diff_hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks = Vec::new();
    let mut open: Option<OpenHunk> = None;
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.extend(open.take().and_then(OpenHunk::finish));
            open = OpenHunk::from_header(line);
        } else if let Some(hunk) = &mut open {
            hunk.take_line(line);
        }
    }
    hunks.extend(open.and_then(OpenHunk::finish));
    hunks
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const MOVE_TO: &str = "*** Move to:";
const FILE_HEADERS: [(&str, Change); 3] = [
    ("*** Add File:", Change::Add),
    ("*** Update File:", Change::Update),
    ("*** Delete File:", Change::Delete),
];

/// Functions of code mode that can be given a patch; their presence tells a script from a shell command.
const SCRIPT_CALLS: [&str; 3] = ["tools.apply_patch", "tools.exec_command", "tools.shell_command"];

fn file_header(line: &str) -> Option<(Change, &str)> {
    FILE_HEADERS.iter().find_map(|(marker, change)| Some((*change, line.strip_prefix(marker)?.trim())))
}

fn unindented<'a>(line: &'a str, indentation: &str) -> &'a str {
    line.strip_prefix(indentation).unwrap_or(line)
}

fn count_added_line(file: &mut PatchedFile) {
    match file.hunks.first_mut() {
        Some(Hunk { after: Some(range), .. }) => range.end = range.end.saturating_add(1),
        _ => file.hunks.push(Hunk { before: None, after: Some(Range { start: 1, end: 1 }) }),
    }
}

/// A hunk of a unified diff while its lines are read.
///
/// The counts of the header bound it, so that the `---` of a following file is not taken for a removed line.
struct OpenHunk {
    before: Side,
    after: Side,
}

struct Side {
    line: u32,
    left: u32,
    changed: Option<Range>,
}

impl OpenHunk {
    /// Reads `@@ -a,b +c,d @@`, where a missing count is 1.
    fn from_header(line: &str) -> Option<OpenHunk> {
        let mut words = line.strip_prefix("@@ ")?.split_ascii_whitespace();
        let before = Side::from_header(words.next()?.strip_prefix('-')?)?;
        let after = Side::from_header(words.next()?.strip_prefix('+')?)?;
        Some(OpenHunk { before, after })
    }

    fn take_line(&mut self, line: &str) {
        match line.bytes().next() {
            Some(b'-') => self.before.take_line(true),
            Some(b'+') => self.after.take_line(true),
            // Some tools strip the space of an empty context line.
            Some(b' ') | None => {
                self.before.take_line(false);
                self.after.take_line(false);
            }
            Some(b'\\') => {}
            Some(_) => {
                self.before.left = 0;
                self.after.left = 0;
            }
        }
    }

    fn finish(self) -> Option<Hunk> {
        let hunk = Hunk { before: self.before.changed, after: self.after.changed };
        (hunk.before.is_some() || hunk.after.is_some()).then_some(hunk)
    }
}

impl Side {
    fn from_header(numbers: &str) -> Option<Side> {
        let (line, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
        Some(Side { line: line.parse().ok()?, left: count.parse().ok()?, changed: None })
    }

    fn take_line(&mut self, changed: bool) {
        if self.left == 0 {
            return;
        }
        if changed {
            self.changed.get_or_insert(Range { start: self.line, end: self.line }).end = self.line;
        }
        self.left -= 1;
        self.line = self.line.saturating_add(1);
    }
}

/// Goes through a text from patch to patch.
struct Finder<'a> {
    text: &'a str,
    position: usize,
    lexer: Lexer,
    script: bool,
}

/// How a body is written at the place where it begins.
enum Carrier {
    Verbatim,
    /// A string literal, with its quote where that is known.
    Literal(Option<u8>),
}

/// What came of following one begin marker: the body if it is one, and where to go on searching.
struct Found<'a> {
    body: Option<Cow<'a, str>>,
    resume: usize,
    state: State,
}

impl<'a> Finder<'a> {
    fn new(text: &'a str) -> Finder<'a> {
        Finder {
            text,
            position: 0,
            lexer: Lexer { position: 0, state: State::Code },
            script: SCRIPT_CALLS.iter().any(|call| text.contains(call)),
        }
    }

    fn carrier(&self, begin: usize) -> Option<Carrier> {
        let rest = self.text.get(begin + BEGIN.len()..)?.trim_start_matches([' ', '\t']);
        if rest.starts_with('\n') || rest.starts_with("\r\n") {
            let template = self.in_template(begin);
            return Some(if template { Carrier::Literal(Some(b'`')) } else { Carrier::Verbatim });
        }
        let quote = match self.lexer.state {
            State::Quoted { quote, .. } => Some(quote),
            _ => self.text.as_bytes()[..begin].last().copied().filter(|byte| is_quote(*byte)),
        };
        let escaped = rest.starts_with("\\n") || rest.starts_with("\\r\\n");
        let closing = self.text.len() - rest.len();
        let joined = quote.is_some()
            && rest.bytes().next() == quote
            && Joint::find(self.text, closing + 1, Joining::Undecided).is_some();
        (escaped || joined).then_some(Carrier::Literal(quote))
    }

    /// Whether the marker stands in a template literal whose escapes count.
    ///
    /// Backticks occur in shell commands and prose too, so more evidence is asked for than an open one.
    fn in_template(&self, begin: usize) -> bool {
        let State::Quoted { quote: b'`', opened } = self.lexer.state else {
            return false;
        };
        let (before, literal) = (&self.text[..opened], self.text[..begin].trim_end());
        (self.script || literal.len() == opened + 1) && !before.ends_with("String.raw")
    }
}

impl<'a> Iterator for Finder<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        loop {
            let begin = self.position + self.text.get(self.position..)?.find(BEGIN)?;
            self.position = begin + BEGIN.len();
            self.lexer.advance(self.text.as_bytes(), begin);
            if !may_begin(&self.text[..begin]) {
                continue;
            }
            let found = match self.carrier(begin) {
                None => continue,
                Some(Carrier::Verbatim) => read_verbatim(self.text, begin, self.lexer.state),
                Some(Carrier::Literal(quote)) => read_literal(self.text, begin, quote),
            };
            self.position = self.position.max(found.resume);
            if found.body.is_some() {
                self.lexer = Lexer { position: self.position, state: found.state };
                return found.body;
            }
        }
    }
}

/// Whether what stands before a begin marker allows it to be one; `+` and `-` do not, being lines of a diff.
fn may_begin(before: &str) -> bool {
    match before.as_bytes() {
        [] => true,
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., byte] => byte.is_ascii_whitespace() || is_quote(*byte),
    }
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// The white space that indents the begin marker, empty where other text stands before it.
fn indentation(before: &str) -> &str {
    let rest = before.trim_end_matches([' ', '\t']);
    let starts_line = match rest.as_bytes() {
        [] | [.., b'\n'] | [.., b'\\', b'n'] => true,
        [.., byte] => is_quote(*byte),
    };
    if starts_line { &before[rest.len()..] } else { "" }
}

/// Tells quoted text from code, as far as scripts, JSON and shell commands agree on it.
struct Lexer {
    position: usize,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment,
    Quoted { quote: u8, opened: usize },
}

impl Lexer {
    fn advance(&mut self, bytes: &[u8], until: usize) {
        while self.position < until {
            let (byte, next) = (bytes[self.position], bytes.get(self.position + 1));
            let mut width = 1;
            self.state = match (self.state, byte) {
                (State::Code | State::Quoted { .. }, b'\\') => {
                    width = 2;
                    self.state
                }
                (State::Code, b'/') if next == Some(&b'/') => State::LineComment,
                (State::Code, b'/') if next == Some(&b'*') => State::BlockComment,
                (State::Code, quote) if is_quote(quote) => State::Quoted { quote, opened: self.position },
                (State::BlockComment, b'*') if next == Some(&b'/') => {
                    width = 2;
                    State::Code
                }
                (State::LineComment, b'\n') => State::Code,
                // Only a template goes over several lines, so a stray quote does no harm beyond its own.
                (State::Quoted { quote, .. }, b'\n') if quote != b'`' => State::Code,
                (State::Quoted { quote, .. }, byte) if quote == byte => State::Code,
                (state, _) => state,
            };
            self.position += width;
        }
    }
}

/// Watches the lines of one body for the markers that bound it.
struct Watch<'a> {
    indentation: &'a str,
    first: bool,
    sections: bool,
}

enum Line {
    Inside,
    /// The body ends this far into the line.
    End(usize),
    /// The same, unless a better marker follows, since this one is indented like a context line.
    DoubtfulEnd(usize),
    /// Another patch begins.
    Foreign,
}

impl<'a> Watch<'a> {
    fn new(before: &'a str) -> Watch<'a> {
        Watch { indentation: indentation(before), first: true, sections: false }
    }

    fn line(&mut self, line: &str) -> Line {
        if std::mem::take(&mut self.first) {
            return Line::Inside;
        }
        let (marker, trimmed) = (unindented(line, self.indentation), line.trim_start());
        if marker.starts_with(END) {
            return Line::End(line.len() - marker.len() + END.len());
        }
        // Until a file is named this may be mere talk of the format, which must not hide a patch further on.
        if marker.starts_with(BEGIN) || !self.sections && line.contains(BEGIN) {
            return Line::Foreign;
        }
        if trimmed.starts_with(END) {
            return Line::DoubtfulEnd(line.len() - trimmed.len() + END.len());
        }
        self.sections |= file_header(trimmed).is_some();
        Line::Inside
    }
}

fn read_verbatim(text: &str, begin: usize, state: State) -> Found<'_> {
    let mut watch = Watch::new(&text[..begin]);
    let mut doubtful = None;
    let mut ended = false;
    let mut end = begin;
    for line in text[begin..].split_inclusive('\n') {
        match watch.line(line) {
            Line::Inside => {}
            Line::DoubtfulEnd(width) => doubtful = Some(end + width),
            Line::End(width) => {
                ended = true;
                end += width;
                break;
            }
            Line::Foreign => break,
        }
        end += line.len();
    }
    let accepted = ended || watch.sections;
    let resume = end;
    if let (false, Some(doubtful)) = (ended, doubtful) {
        end = doubtful;
    }
    Found { body: accepted.then(|| Cow::Borrowed(&text[begin..end])), resume, state }
}

fn read_literal(text: &str, begin: usize, mut quote: Option<u8>) -> Found<'_> {
    let bytes = text.as_bytes();
    let mut watch = Watch::new(&text[..begin]);
    let mut joining = Joining::Undecided;
    let mut body = String::new();
    let mut position = begin;
    let (mut line_in_body, mut line_in_text) = (0, begin);
    let mut doubtful = None;
    let mut closed = false;
    let ended = loop {
        let special = |byte: &u8| matches!(byte, b'\\' | b'\n') || quote == Some(*byte);
        let stop = bytes[position..].iter().position(special).map_or(bytes.len(), |width| position + width);
        body.push_str(&text[position..stop]);
        position = stop;
        let mut line_over = false;
        match bytes.get(position) {
            Some(b'\\') => {
                let (character, next) = unescape(text, position);
                position = next;
                line_over = character == Some('\n');
                body.extend(character);
            }
            Some(b'\n') if quote == Some(b'`') => {
                position += 1;
                line_over = true;
                body.push('\n');
            }
            Some(byte) if quote == Some(*byte) => match Joint::find(text, position + 1, joining) {
                Some(joint) => {
                    position = joint.position;
                    quote = Some(joint.quote);
                    joining = joint.joining;
                    if joining == Joining::Listed {
                        line_over = true;
                        body.push('\n');
                    }
                }
                None => {
                    position += 1;
                    closed = true;
                }
            },
            // The text is over, or the literal is broken off by a line end it cannot hold.
            _ => closed = true,
        }
        if !line_over && !closed {
            continue;
        }
        if joining == Joining::Undecided {
            joining = Joining::Concatenated;
        }
        match watch.line(&body[line_in_body..]) {
            Line::Inside => {}
            Line::DoubtfulEnd(width) => doubtful = Some(line_in_body + width),
            Line::End(width) => {
                body.truncate(line_in_body + width);
                break true;
            }
            Line::Foreign => {
                body.truncate(line_in_body);
                position = line_in_text;
                break false;
            }
        }
        if closed {
            break false;
        }
        (line_in_body, line_in_text) = (body.len(), position);
    };
    if let (false, Some(doubtful)) = (ended, doubtful) {
        body.truncate(doubtful);
    }
    let accepted = ended || watch.sections;
    let state = match quote {
        Some(quote) if !closed => State::Quoted { quote, opened: begin },
        _ => State::Code,
    };
    Found { body: accepted.then_some(Cow::Owned(body)), resume: position, state }
}

/// How the literals of one body hang together: by `+`, or as a list of lines to be joined.
#[derive(Clone, Copy, PartialEq)]
enum Joining {
    Undecided,
    Concatenated,
    Listed,
}

/// The beginning of the literal that continues a closed one.
struct Joint {
    position: usize,
    quote: u8,
    joining: Joining,
}

impl Joint {
    fn find(text: &str, closed: usize, joining: Joining) -> Option<Joint> {
        let rest = text.get(closed..)?.trim_start();
        let found = match rest.bytes().next()? {
            b'+' => Joining::Concatenated,
            b',' => Joining::Listed,
            _ => return None,
        };
        let literal = rest[1..].trim_start();
        let quote = literal.bytes().next().filter(|byte| is_quote(*byte))?;
        // After the bare begin marker a concatenation has to bring the line end.
        let fits = match joining {
            Joining::Undecided => found == Joining::Listed || literal[1..].starts_with('\\'),
            _ => found == joining,
        };
        let position = text.len() - literal.len() + 1;
        fits.then_some(Joint { position, quote, joining: found })
    }
}

/// The character that the escape at `position` stands for, if any, and where the text goes on.
fn unescape(text: &str, position: usize) -> (Option<char>, usize) {
    let after = position + 1;
    let Some(letter) = text.get(after..).and_then(|rest| rest.chars().next()) else {
        return (Some('\\'), after);
    };
    let next = after + letter.len_utf8();
    let character = match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '0' => '\0',
        '\n' => return (None, next),
        '\r' if text[next..].starts_with('\n') => return (None, next + 1),
        'x' | 'u' => {
            return match code_point(text, after) {
                Some((code, next)) => {
                    (Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)), next)
                }
                None => (Some('\\'), after),
            };
        }
        other => other,
    };
    (Some(character), next)
}

/// The code point of `xHH`, `uHHHH` (with the other half of a surrogate pair) or `u{H…}`.
fn code_point(text: &str, position: usize) -> Option<(u32, usize)> {
    let rest = text.get(position..)?;
    if rest.starts_with('x') {
        return Some((hexadecimal(rest.get(1..3)?)?, position + 3));
    }
    if let Some(braced) = rest.strip_prefix("u{") {
        let width = braced.bytes().take(7).position(|byte| byte == b'}')?;
        return Some((hexadecimal(&braced[..width])?, position + 2 + width + 1));
    }
    let high = hexadecimal(rest.get(1..5)?)?;
    let low = rest.get(5..).and_then(|rest| rest.strip_prefix("\\u")).and_then(|rest| rest.get(..4));
    match low.and_then(hexadecimal) {
        Some(low @ 0xDC00..=0xDFFF) if (0xD800..=0xDBFF).contains(&high) => {
            Some((0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), position + 11))
        }
        _ => Some((high, position + 5)),
    }
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| valid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const SMALL: &str = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch";

    fn file(path: &str, change: Change, lines: u32) -> PatchedFile {
        let after = Some(Range { start: 1, end: lines });
        let hunks = if lines == 0 { Vec::new() } else { vec![Hunk { before: None, after }] };
        PatchedFile { path: path.to_owned(), moved_to: None, change, hunks }
    }

    fn hunk(before: Option<(u32, u32)>, after: Option<(u32, u32)>) -> Hunk {
        let range = |(start, end)| Range { start, end };
        Hunk { before: before.map(range), after: after.map(range) }
    }

    fn borrowed<'a>(found: &'a Option<Cow<'_, str>>) -> Option<&'a str> {
        match found {
            Some(Cow::Borrowed(body)) => Some(body),
            _ => None,
        }
    }

    fn owned<'a>(found: &'a Option<Cow<'_, str>>) -> Option<&'a str> {
        match found {
            Some(Cow::Owned(body)) => Some(body),
            _ => None,
        }
    }

    #[test]
    fn all_sections_of_a_patch() {
        let patch = "*** Begin Patch\n*** Add File: new dir/n.txt\n+one\n+\n+three\n*** Update File: old.rs\n\
            *** Move to: src/new.rs\n@@ fn main()\n context\n-a\n+b\n*** End of File\n*** Delete File: gone\n\
            *** Update File: old.rs\n@@\n+c\n*** End Patch\n*** Add File: after the end\n+x\n";
        let mut moved = file("old.rs", Change::Update, 0);
        moved.moved_to = Some("src/new.rs".to_owned());
        let expected = vec![
            file("new dir/n.txt", Change::Add, 3),
            moved,
            file("gone", Change::Delete, 0),
            file("old.rs", Change::Update, 0),
        ];
        assert_eq!(parse_patch(patch), expected);
        assert_eq!(parse_patch(&patch.replace('\n', "\r\n")), expected);
    }

    #[test]
    fn tolerated_patches() {
        let missing_end = "*** Begin Patch\n*** Add File: a\n+x";
        assert_eq!(parse_patch(missing_end), vec![file("a", Change::Add, 1)]);
        assert_eq!(parse_patch("*** Delete File: a"), vec![file("a", Change::Delete, 0)]);
        assert_eq!(
            parse_patch("*** Begin Patch\n*** Add File: a\n*** End Patch"),
            vec![file("a", Change::Add, 0)]
        );
        assert_eq!(parse_patch("*** Begin Patch\n*** Add File:  \n+x\n*** End Patch"), vec![]);
        assert_eq!(parse_patch(""), vec![]);
    }

    #[test]
    fn indented_markers() {
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** Update File: b\n@@\n-x\n+y\n\
            *** Delete File: c\n*** End Patch\n";
        let expected = parse_patch(patch);
        assert_eq!(expected.len(), 3);
        for indentation in [" ", "    ", "\t"] {
            let indented: String = patch.lines().map(|line| format!("{indentation}{line}\n")).collect();
            assert_eq!(parse_patch(&indented), expected);
            assert_eq!(parse_patch(indented.trim_start()), expected);
        }
        let uneven = "*** Begin Patch\n  *** Delete File: a\n    *** Add File: b\n +x\n*** End Patch";
        assert_eq!(parse_patch(uneven), vec![file("a", Change::Delete, 0), file("b", Change::Add, 1)]);
    }

    #[test]
    fn markers_in_the_patched_text_are_not_markers() {
        let patch = "*** Begin Patch\n*** Update File: notes\n@@\n *** Add File: x\n+*** Delete File: y\n\
            - *** Move to: z\n *** End Patch\n*** Add File: real\n+*** End Patch\n*** End Patch";
        let files = parse_patch(patch);
        assert_eq!(files, vec![file("notes", Change::Update, 0), file("real", Change::Add, 1)]);
        assert_eq!(borrowed(&find_patch(patch)), Some(patch));
    }

    #[test]
    fn verbatim_bodies_are_slices() {
        assert_eq!(borrowed(&find_patch(SMALL)), Some(SMALL));
        for (before, after) in [
            ("apply_patch <<'EOF'\n", "\nEOF\n"),
            ("cd sub && apply_patch <<\"EOF\"\n", "\nEOF\ngit diff"),
            ("apply_patch '", "'"),
            ("apply_patch ", ""),
            ("bash -lc apply_patch <<EOF\n", "\nEOF"),
            ("echo it's `odd\napply_patch <<'EOF'\n", "\nEOF"),
            ("\u{fffd}\u{1f600} ", "\u{fffd}"),
        ] {
            let text = format!("{before}{SMALL}{after}");
            assert_eq!(borrowed(&find_patch(&text)), Some(SMALL), "{text}");
        }
        let crlf = SMALL.replace('\n', "\r\n");
        assert_eq!(borrowed(&find_patch(&format!("x\r\n{crlf}\r\n"))), Some(crlf.as_str()));
    }

    #[test]
    fn bodies_without_an_end() {
        let open = "*** Begin Patch\n*** Add File: a\n+x\n";
        assert_eq!(borrowed(&find_patch(open)), Some(open));
        let two = format!("{open}{SMALL}");
        assert_eq!(find_patches(&two), [open, SMALL]);
        let call = "tools.apply_patch(\"*** Begin Patch\\n*** Add File: a\\n+x\"); done()";
        assert_eq!(owned(&find_patch(call)), Some("*** Begin Patch\n*** Add File: a\n+x"));
        let indented_end = "*** Begin Patch\n*** Update File: a\n+x\n  *** End Patch\nEOF\n";
        assert!(borrowed(&find_patch(indented_end)).is_some_and(|body| body.ends_with("*** End Patch")));
    }

    #[test]
    fn texts_without_a_patch() {
        for text in [
            "",
            "ls",
            "*** Begin Patch",
            "*** Begin Patch\n",
            "grep -n '*** Begin Patch' notes.md",
            "It starts with *** Begin Patch\nand goes on.",
            "echo \"*** Begin Patch\\n\"",
            "+*** Begin Patch\n+*** Add File: a\n",
            "\"*** Begin Patch\\\\n*** Add File: a\"",
        ] {
            assert_eq!(find_patch(text), None, "{text}");
        }
    }

    #[test]
    fn talk_of_the_format_does_not_hide_a_patch() {
        let text = format!("starts with *** Begin Patch\nthen tools.apply_patch({SMALL:?})");
        assert_eq!(owned(&find_patch(&text)), Some(SMALL));
    }

    #[test]
    fn script_literals_are_unescaped() {
        let body = "*** Begin Patch\n*** Add File: \"q\"\\é\n+\t😀'`${x}\n*** End Patch";
        let double = concat!(
            r#"const r = await tools.apply_patch("*** Begin Patch\n*** Add File: \"q\"\\\u00e9\n"#,
            r#"+\t\ud83d\ude00'`${x}\n*** End Patch"); text(r);"#,
        );
        let single = concat!(
            r#"await tools.apply_patch('*** Begin Patch\n*** Add File: "q"\\\xe9\n"#,
            r#"+\t\u{1F600}\'`${x}\n*** End Patch')"#,
        );
        let literal = body.replace('\\', "\\\\").replace('`', "\\`").replace('$', "\\$");
        let template = &format!("await tools.apply_patch(`{literal}`)");
        let spread = &format!("const p = `\n{literal}\n`;");
        for script in [double, single, template, spread] {
            assert_eq!(owned(&find_patch(script)), Some(body), "{script}");
        }
        let raw = format!("tools.apply_patch(String.raw`{}`)", SMALL.replace('x', r"\n"));
        assert_eq!(borrowed(&find_patch(&raw)), Some(SMALL.replace('x', r"\n").as_str()));
    }

    #[test]
    fn heredocs_inside_literals() {
        let json = format!(
            "{{\"command\":[\"bash\",\"-lc\",{:?}]}}",
            format!("apply_patch <<'EOF'\n{SMALL}\nEOF\n")
        );
        assert_eq!(owned(&find_patch(&json)), Some(SMALL));
        let call = format!("await tools.exec_command({{cmd: {:?}}});", format!("apply_patch '{SMALL}'"));
        assert_eq!(owned(&find_patch(&call)), Some(SMALL));
        let template = format!("tools.exec_command({{cmd: `apply_patch <<'EOF'\n{SMALL}\nEOF`}})");
        assert_eq!(owned(&find_patch(&template)), Some(SMALL));
        let without_end =
            "{\"cmd\":\"apply_patch <<'EOF'\\n*** Begin Patch\\n*** Add File: it's\\n+x\",\"n\":1}";
        assert_eq!(owned(&find_patch(without_end)), Some("*** Begin Patch\n*** Add File: it's\n+x"));
    }

    #[test]
    fn literals_in_pieces() {
        let lines: Vec<&str> = SMALL.lines().collect();
        let listed = format!("const p = {lines:?}.join('\\n'); tools.apply_patch(p)");
        assert_eq!(owned(&find_patch(&listed)), Some(SMALL));
        let added: Vec<String> = lines.iter().map(|line| format!("{:?}", format!("{line}\n"))).collect();
        assert_eq!(owned(&find_patch(&added.join(" +\n  "))), Some(SMALL));
        let late = "\"*** Begin Patch\" + \"\\n*** Delete File: a\\n\" + '*** End Patch'";
        assert_eq!(owned(&find_patch(late)), Some("*** Begin Patch\n*** Delete File: a\n*** End Patch"));
        assert_eq!(find_patch("[\"*** Begin Patch\", x]"), None);
    }

    #[test]
    fn several_patches_in_one_script() {
        let other = SMALL.replace("a.py", "b.py");
        let script = format!(
            "// don't stop\nawait tools.apply_patch({SMALL:?});\nawait tools.apply_patch(`{other}`);\n\
             await tools.exec_command({{cmd: {:?}}});",
            format!("apply_patch <<'EOF'\n{SMALL}\nEOF"),
        );
        assert_eq!(find_patches(&script), [SMALL, other.as_str(), SMALL]);
        assert_eq!(find_patch(&script).as_deref(), Some(SMALL));
        let commands = format!("apply_patch <<'A'\n{SMALL}\nA\napply_patch <<'B'\n{other}\nB\n");
        assert_eq!(find_patches(&commands), [SMALL, other.as_str()]);
    }

    #[test]
    fn indented_bodies() {
        let indented = SMALL.replace('\n', "\n    ");
        let script = format!("  const p = `\n    {indented}\n    `;\n tools.apply_patch(p);");
        let found = find_patch(&script);
        assert_eq!(owned(&found), Some(indented.as_str()));
        assert_eq!(parse_patch(&indented), parse_patch(SMALL));
    }

    #[test]
    fn broken_escapes_are_kept() {
        let script =
            "\"*** Begin Patch\\n*** Add File: \\u12\\xg\\u{110000}\\ud800.\\q\\\n\\u{zz}\\u+123\\n+\\";
        let body = "*** Begin Patch\n*** Add File: \\u12\\xg\u{fffd}\u{fffd}.q\\u{zz}\\u+123\n+\\";
        assert_eq!(owned(&find_patch(script)), Some(body));
    }

    #[test]
    fn every_prefix_of_a_text_can_be_read() {
        let script = "tools.apply_patch('*** Begin Patch\\n*** Add File: é\\ud83d\\ude00\\u{1F600}\\x41\\r\\n\
            +😀\\n*** End Patch' + `x`);\n*** Begin Patch\r\n*** Update File: é\n*** End Patch\nE";
        for (index, _) in script.char_indices() {
            for text in [&script[..index], &script[index..]] {
                for body in find_patches(text) {
                    parse_patch(&body);
                    unified_diff_hunks(&body);
                }
            }
        }
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        let started = Instant::now();
        for unit in [
            "*** Begin Patch\n",
            "*** Begin Patch",
            "\"*** Begin Patch\\n",
            "\"*** Begin Patch\" + ",
            "\"*** Begin Patch\", ",
            "`*** Begin Patch\n",
            "x *** Begin Patch\nx ",
            "\"*** Begin Patch\\nx *** Begin Patch\\n",
            "*** Begin Patch\n*** Add File: a\n+x\n",
            "tools.apply_patch(\"*** Begin Patch\\n*** Add File: a\\n+x\\n*** End Patch\");",
            "*** Begin Patch\n *** End Patch\n",
            "\\",
            "`",
            "\"",
            "/*",
            "+",
            "@@ -1 +1 @@\n",
            "\n",
            " ",
            "@@ ",
        ] {
            let text = unit.repeat(500_000 / unit.len());
            for text in
                [text.clone(), format!("`tools.apply_patch *** Begin Patch\n{text}"), format!("\"{text}")]
            {
                find_patches(&text);
                parse_patch(&text);
                unified_diff_hunks(&text);
            }
        }
        let spaces = " ".repeat(1_000_000);
        find_patches(&format!("tools.apply_patch`{spaces}{}", "*** Begin Patch \n x".repeat(100_000)));
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }

    #[test]
    fn hunks_without_their_context() {
        let diff = "--- a/x\n+++ b/x\n@@ -10,5 +10,6 @@ fn main()\n a\n-b\n+B\n c\n+d\n e\n f\n\
            @@ -30,2 +31 @@\n g\n-h\n";
        assert_eq!(
            unified_diff_hunks(diff),
            [hunk(Some((11, 11)), Some((11, 13))), hunk(Some((31, 31)), None)]
        );
        assert_eq!(unified_diff_hunks(&diff.replace('\n', "\r\n")), unified_diff_hunks(diff));
    }

    #[test]
    fn counts_of_a_hunk() {
        assert_eq!(unified_diff_hunks("@@ -3 +3 @@\n-a\n+b\n"), [hunk(Some((3, 3)), Some((3, 3)))]);
        assert_eq!(unified_diff_hunks("@@ -0,0 +1,2 @@\n+a\n+b\n"), [hunk(None, Some((1, 2)))]);
        assert_eq!(unified_diff_hunks("@@ -1,2 +0,0 @@\n-a\n-b\n"), [hunk(Some((1, 2)), None)]);
        assert_eq!(unified_diff_hunks("@@ -5,2 +5,3 @@\n a\n+x\n\n"), [hunk(None, Some((6, 6)))]);
        let unterminated = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file";
        assert_eq!(unified_diff_hunks(unterminated), [hunk(Some((1, 1)), Some((1, 1)))]);
    }

    #[test]
    fn a_hunk_ends_with_its_counts() {
        let two_files = "@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -7 +7 @@\n-c\n+d\n";
        let expected = [hunk(Some((1, 1)), Some((1, 1))), hunk(Some((7, 7)), Some((7, 7)))];
        assert_eq!(unified_diff_hunks(two_files), expected);
        let cut_short =
            "@@ -1,9 +1,9 @@\n-a\n+b\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -7 +7 @@\n-c\n+d\n";
        assert_eq!(unified_diff_hunks(cut_short), expected);
    }

    #[test]
    fn diffs_without_hunks() {
        for diff in [
            "",
            "@@\n-a\n+b\n",
            "@@ -1 +1 @@\n a\n",
            "@@ -x +1 @@\n-a\n",
            "@@ -99999999999 +1 @@\n-a\n",
            "@@@ -1 -1 +1 @@@\n--a\n",
            "-a\n+b\n",
        ] {
            assert_eq!(unified_diff_hunks(diff), [], "{diff}");
        }
        let last = u32::MAX;
        assert_eq!(
            unified_diff_hunks(&format!("@@ -{last},2 +{last},{last} @@\n-a\n-b\n+c\n")),
            [hunk(Some((last, last)), Some((last, last)))]
        );
    }
}
