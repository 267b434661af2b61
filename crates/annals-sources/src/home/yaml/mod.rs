//! The YAML of front matter: maps, lists, quoted and block scalars, in block and flow style. Invalid YAML is common and
//! stays as text: an unquoted `argument-hint: [name] [mode]`, a colon within a sentence.

use serde_json::{Map, Number, Value};

/// Deeper values are kept as text.
const DEEPEST: usize = 24;

/// The fields of a map. Never fails.
pub fn fields(text: &str) -> Map<String, Value> {
    let mut lines: Vec<Line<'_>> = text.lines().map(Line::of).collect();
    let mut parser = Parser { lines: &mut lines, at: 0 };
    let mut fields = Map::new();
    // A line that is not a field, at the start or less indented than the others, does not hide the fields after it.
    while let Some(line) = parser.next_line() {
        match parser.map(line.indent, 0) {
            found if found.is_empty() => parser.at += 1,
            found => fields.extend(found),
        }
    }
    fields
}

#[derive(Clone, Copy)]
struct Line<'t> {
    indent: usize,
    /// Without indent and trailing blanks.
    text: &'t str,
    /// The unchanged line, for block scalars.
    whole: &'t str,
}

impl<'t> Line<'t> {
    fn of(whole: &'t str) -> Line<'t> {
        let text = whole.trim_start_matches([' ', '\t']);
        Line { indent: whole.len() - text.len(), text: text.trim_end(), whole }
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    fn is_item(&self) -> bool {
        self.text == "-" || self.text.starts_with("- ")
    }
}

struct Parser<'p, 't> {
    lines: &'p mut Vec<Line<'t>>,
    at: usize,
}

impl<'t> Parser<'_, 't> {
    /// The next line that is not blank.
    fn next_line(&mut self) -> Option<Line<'t>> {
        while let Some(line) = self.lines.get(self.at) {
            if !line.is_blank() && !line.text.starts_with('#') {
                return Some(*line);
            }
            self.at += 1;
        }
        None
    }

    fn map(&mut self, indent: usize, depth: usize) -> Map<String, Value> {
        let mut fields: Map<String, Value> = Map::new();
        let mut last: Option<String> = None;
        while let Some(line) = self.next_line().filter(|line| line.indent >= indent) {
            let Some((name, value)) = key_of(line.text).filter(|_| line.indent == indent && !line.is_item())
            else {
                // A sentence that continues without an indent.
                let Some(Value::String(text)) = last.as_deref().and_then(|last| fields.get_mut(last)) else {
                    break;
                };
                text.push(' ');
                text.push_str(line.text);
                self.at += 1;
                continue;
            };
            self.at += 1;
            let value = self.value(value, indent, depth, true);
            last = Some(name.clone());
            fields.insert(name, value);
        }
        fields
    }

    fn list(&mut self, indent: usize, depth: usize) -> Value {
        let mut items = Vec::new();
        while let Some(line) = self.next_line().filter(|line| line.indent == indent && line.is_item()) {
            let rest = line.text[1..].trim_start();
            let inner = indent + line.text.len() - rest.len();
            let nested = rest.starts_with("- ") || key_of(rest).is_some();
            if nested && depth < DEEPEST {
                // The text after the dash is the first line of a block.
                self.lines[self.at] = Line { indent: inner, text: rest, whole: line.whole };
                items.push(self.block(inner, depth + 1));
            } else {
                self.at += 1;
                items.push(self.value(rest, indent, depth, false));
            }
        }
        Value::Array(items)
    }

    /// The map or list that starts at the next line.
    fn block(&mut self, indent: usize, depth: usize) -> Value {
        let Some(line) = self.next_line() else { return Value::Null };
        if line.is_item() {
            return self.list(indent, depth);
        }
        match key_of(line.text) {
            Some(_) => Value::Object(self.map(indent, depth)),
            None => {
                self.at += 1;
                self.value(line.text, indent.saturating_sub(1), depth, false)
            }
        }
    }

    /// A value whose text starts after a name or a dash at `indent`.
    fn value(&mut self, text: &'t str, indent: usize, depth: usize, of_map: bool) -> Value {
        let text = if text.starts_with('#') { "" } else { text };
        if text.is_empty() {
            let Some(next) = self.next_line() else { return Value::Null };
            // A list may have the same indent as its name.
            let is_below = next.indent > indent || of_map && next.indent == indent && next.is_item();
            return match (is_below, depth < DEEPEST) {
                (false, _) => Value::Null,
                (true, true) => self.block(next.indent, depth + 1),
                (true, false) => Value::from(self.below(indent).join("\n")),
            };
        }
        if text.starts_with(['|', '>'])
            && let Some(style) = Style::of(text)
        {
            return Value::from(self.block_scalar(style, indent));
        }
        let start = self.at;
        let below = self.below(indent);
        let whole = || folded(text, &below);
        match text.as_bytes()[0] {
            b'"' | b'\'' => quoted(&whole()).map_or_else(|| Value::from(whole()), Value::from),
            b'[' | b'{' => {
                let whole = whole();
                let read = |whole: &str| {
                    let mut flow = Flow { text: whole, at: 0 };
                    flow.value(depth).filter(|_| is_nothing(flow.rest()))
                };
                // The closing bracket may have the same indent as the name.
                let closing = self.lines.get(self.at).filter(|line| line.text.starts_with([']', '}']));
                let closed = closing.map(|line| format!("{whole} {}", line.text));
                match (read(&whole), closed.as_deref().and_then(read)) {
                    (Some(value), _) => value,
                    (None, Some(value)) => {
                        self.at += 1;
                        value
                    }
                    (None, None) => Value::from(whole.as_str()),
                }
            }
            _ if below.iter().any(|line| !line.is_empty()) => Value::from(folded(
                without_comment(text),
                &below.iter().map(|line| without_comment(line)).collect::<Vec<_>>(),
            )),
            _ => {
                self.at = start;
                plain(without_comment(text))
            }
        }
    }

    /// All lines that are indented further, including blank ones.
    fn below(&mut self, indent: usize) -> Vec<&'t str> {
        let mut below = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            if !line.is_blank() && line.indent <= indent {
                break;
            }
            below.push(line.text);
            self.at += 1;
        }
        below
    }

    fn block_scalar(&mut self, style: Style, indent: usize) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut left = style.indent.map(|more| indent + more);
        while let Some(line) = self.lines.get(self.at) {
            if !line.is_blank() && line.indent <= indent {
                break;
            }
            let from = *left.get_or_insert(if line.is_blank() { usize::MAX } else { line.indent });
            if from == usize::MAX {
                left = None;
            }
            let kept = line.whole.get(from.min(line.indent)..).unwrap_or_default();
            lines.push(if line.is_blank() { "" } else { kept.trim_end() });
            self.at += 1;
        }
        let blank = lines.iter().rev().take_while(|line| line.is_empty()).count();
        let (text, blank) = lines.split_at(lines.len() - blank);
        let joined = if style.folded { fold(text) } else { text.join("\n") };
        match style.keeps_end {
            true => joined + &"\n".repeat(blank.len() + 1),
            false => joined,
        }
    }
}

/// `|`, `>-`, `|2+`: how a block scalar is joined.
#[derive(Clone, Copy)]
struct Style {
    folded: bool,
    keeps_end: bool,
    indent: Option<usize>,
}

impl Style {
    fn of(text: &str) -> Option<Style> {
        let (head, behind) = text.split_once(' ').unwrap_or((text, ""));
        let mut style = Style { folded: head.starts_with('>'), keeps_end: false, indent: None };
        for mark in head[1..].chars() {
            match mark {
                '+' => style.keeps_end = true,
                '-' => {}
                '1'..='9' => style.indent = mark.to_digit(10).map(|digit| digit as usize),
                _ => return None,
            }
        }
        is_nothing(behind).then_some(style)
    }
}

fn is_nothing(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with('#')
}

/// Joins lines into one. A blank line becomes a line break, and lines that are indented further stay separate.
fn fold(lines: &[&str]) -> String {
    let mut text = String::new();
    let mut before: Option<&str> = None;
    for line in lines {
        let further = |line: &str| line.starts_with([' ', '\t']);
        match before {
            None => {}
            Some(before) if line.is_empty() || further(line) || further(before) => text.push('\n'),
            Some("") => {}
            Some(_) => text.push(' '),
        }
        text.push_str(line);
        before = Some(line);
    }
    text
}

fn folded(first: &str, below: &[&str]) -> String {
    let blank = below.iter().rev().take_while(|line| line.is_empty()).count();
    let lines: Vec<&str> =
        std::iter::once(first).chain(below[..below.len() - blank].iter().copied()).collect();
    fold(&lines)
}

/// Splits at `: ` into name and rest.
fn key_of(text: &str) -> Option<(String, &str)> {
    if text.starts_with(['"', '\'']) {
        let end = end_of_quoted(text)?;
        let behind = text[end..].trim_start().strip_prefix(':')?;
        let name = quoted(&text[..end])?;
        return (behind.is_empty() || behind.starts_with(' ')).then(|| (name, behind.trim_start()));
    }
    if text.starts_with(['[', '{', '#', '|', '>', '`', '@', '%']) {
        return None;
    }
    let mut from = 0;
    while let Some(colon) = text[from..].find(':').map(|at| from + at) {
        let behind = &text[colon + 1..];
        if behind.is_empty() || behind.starts_with([' ', '\t']) {
            let name = text[..colon].trim_end();
            return (!name.is_empty()).then(|| (name.to_owned(), behind.trim_start()));
        }
        from = colon + 1;
    }
    None
}

fn without_comment(text: &str) -> &str {
    if text.starts_with('#') {
        return "";
    }
    let comment = text.find(" #").or_else(|| text.find("\t#"));
    comment.map_or(text, |at| text[..at].trim_end())
}

/// A number counts as one only in its canonical form: `1.10` is a version.
fn plain(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        "" | "null" | "Null" | "NULL" | "~" => return Value::Null,
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return Value::from(text);
    }
    let integer = text.parse::<i64>().ok().map(Number::from);
    let number = integer.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64));
    number.filter(|number| number.to_string() == text).map_or_else(|| Value::from(text), Value::Number)
}

/// The offset after the closing quote.
fn end_of_quoted(text: &str) -> Option<usize> {
    let quote = text.as_bytes()[0];
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 1,
            byte if byte == quote && quote == b'\'' && bytes.get(at + 1) == Some(&quote) => at += 1,
            byte if byte == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The text within quotes, if only a comment follows.
fn quoted(text: &str) -> Option<String> {
    let end = end_of_quoted(text)?;
    let inner = &text[1..end - 1];
    if !is_nothing(&text[end..]) {
        return None;
    }
    if text.starts_with('\'') {
        return Some(inner.replace("''", "'"));
    }
    let mut unescaped = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            unescaped.push(letter);
            continue;
        }
        let kind = letters.next()?;
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let letter = match kind {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            '"' | '\\' | '/' | ' ' => kind,
            'x' | 'u' | 'U' => {
                let code: String = letters.by_ref().take(digits).collect();
                char::from_u32(u32::from_str_radix(&code, 16).ok()?)?
            }
            // Not an escape: keep both characters.
            _ => {
                unescaped.push('\\');
                kind
            }
        };
        unescaped.push(letter);
    }
    Some(unescaped)
}

/// Lists and maps within brackets.
struct Flow<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Flow<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blank(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn accept(&mut self, expected: char) -> bool {
        self.skip_blank();
        let found = self.rest().starts_with(expected);
        self.at += if found { expected.len_utf8() } else { 0 };
        found
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        if self.accept('[') {
            let mut items = Vec::new();
            while !self.accept(']') {
                items.push(self.value(depth + 1)?);
                if !self.accept(',') && !self.rest().starts_with(']') {
                    return None;
                }
            }
            return Some(Value::Array(items));
        }
        if self.accept('{') {
            let mut fields = Map::new();
            while !self.accept('}') {
                let name = match self.scalar()? {
                    Value::String(name) => name,
                    other => other.to_string(),
                };
                let value = if self.accept(':') { self.value(depth + 1)? } else { Value::Null };
                fields.insert(name, value);
                if !self.accept(',') && !self.rest().starts_with('}') {
                    return None;
                }
            }
            return Some(Value::Object(fields));
        }
        self.scalar()
    }

    fn scalar(&mut self) -> Option<Value> {
        self.skip_blank();
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            let end = end_of_quoted(rest)?;
            self.at += end;
            return quoted(&rest[..end]).map(Value::from);
        }
        let ends = |at: usize, letter: char| {
            matches!(letter, ',' | '[' | ']' | '{' | '}')
                || letter == ':' && !rest[at + 1..].starts_with(|next: char| !next.is_whitespace())
        };
        let end = rest.char_indices().find(|(at, letter)| ends(*at, *letter)).map(|(at, _)| at)?;
        self.at += end;
        let text = rest[..end].trim();
        (!text.is_empty()).then(|| plain(text))
    }
}

#[cfg(test)]
mod tests;
