//! Splits input into lines of bounded length.

use std::io::Read;

use annals_core::{Framing, Result};
use annals_sources::json::Scan;

/// The limit for captured lines applies here too.
const LONGEST_LINE: usize = 160 << 20;
const LONGEST_DOCUMENT: usize = 64 << 20;
const CHUNK: usize = 256 << 10;

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Line,
    /// The input ended in the middle of it.
    CutOff,
    /// The line exceeded the limit and was dropped.
    TooLong,
}

type Visit<'s> = dyn FnMut(u64, &[u8], Ending) -> Result<()> + 's;

/// Calls `visit` with each line and its offset, including blank lines so that line numbers are right.
pub fn each_line(input: &mut dyn Read, framing: Framing, visit: &mut Visit<'_>) -> Result<()> {
    match framing {
        Framing::Whole => {
            let mut bytes = Vec::new();
            input.take(LONGEST_DOCUMENT as u64 + 1).read_to_end(&mut bytes)?;
            match bytes.len() > LONGEST_DOCUMENT {
                true => visit(0, &[], Ending::TooLong),
                false => visit(0, &bytes, Ending::Line),
            }
        }
        Framing::Lines => lines(input, visit),
        // Imports are not lines of a client and have no tape.
        Framing::Sequence => Ok(()),
    }
}

fn lines(input: &mut dyn Read, visit: &mut Visit<'_>) -> Result<()> {
    let mut carry: Vec<u8> = Vec::new();
    let mut too_long = false;
    let (mut start, mut position) = (0_u64, 0_u64);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let mut rest = &chunk[..read];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            position += end as u64 + 1;
            if too_long {
                visit(start, &[], Ending::TooLong)?;
            } else if carry.is_empty() {
                visit(start, trim_carriage_return(&rest[..end]), Ending::Line)?;
            } else {
                carry.extend_from_slice(&rest[..end]);
                visit(start, trim_carriage_return(&carry), Ending::Line)?;
            }
            // Release the memory of a long line.
            carry = if carry.capacity() > 4 * CHUNK { Vec::new() } else { carry };
            carry.clear();
            too_long = false;
            start = position;
            rest = &rest[end + 1..];
        }
        position += rest.len() as u64;
        if too_long || carry.len() + rest.len() > LONGEST_LINE {
            (too_long, carry) = (true, Vec::new());
        } else {
            carry.extend_from_slice(rest);
        }
    }
    if too_long {
        return visit(start, &[], Ending::TooLong);
    }
    let last = trim_carriage_return(&carry);
    if last.is_empty() {
        return Ok(());
    }
    let scan = Scan::new(last);
    let complete = scan.line().objects().all(|object| object.is_ok());
    visit(start, last, if complete { Ending::Line } else { Ending::CutOff })
}

/// A carriage return is part of the line ending.
fn trim_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::{Ending, each_line};
    use annals_core::Framing;

    fn split(mut text: &[u8]) -> Vec<(u64, String, Ending)> {
        let mut lines = Vec::new();
        each_line(&mut text, Framing::Lines, &mut |offset, line, ending| {
            lines.push((offset, String::from_utf8_lossy(line).into_owned(), ending));
            Ok(())
        })
        .unwrap();
        lines
    }

    #[test]
    fn lines_have_their_offsets_and_ends() {
        let lines = split(b"{}\r\n\n{\"a\":1}\n{\"b\":");
        let actual: Vec<_> =
            lines.iter().map(|(offset, line, ending)| (*offset, line.as_str(), *ending)).collect();
        assert_eq!(
            actual,
            [
                (0, "{}", Ending::Line),
                (4, "", Ending::Line),
                (5, "{\"a\":1}", Ending::Line),
                (13, "{\"b\":", Ending::CutOff)
            ]
        );
        assert_eq!(split(b"{}").last().unwrap().2, Ending::Line);
    }
}
