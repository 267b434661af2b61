//! Reads a file of a home with excluded lines blanked: every other byte keeps its offset, so that appends, readers and
//! rebuilds work as on any other file, and the archive never has what was excluded.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use super::forgotten::{Shape, WithoutForgotten};
use crate::collect::home::choice::Chosen;
use annals_core::Forgotten;
use annals_sources::json::Scan;

/// Nobody knows whose a longer line is; it is left out.
const LONGEST: usize = 16 << 20;

/// A file as the archive may have it.
pub struct Allowed {
    file: WithoutForgotten,
    metadata: Metadata,
    position: u64,
    /// Excluded lines without their line ends, in order.
    blanks: Vec<Range<u64>>,
    /// Where the complete lines end; `None` if everything is allowed.
    end: Option<u64>,
}

impl Allowed {
    pub fn new(
        file: File,
        chosen: Option<&Chosen>,
        forgotten: &Forgotten,
        shape: Shape<'_>,
    ) -> io::Result<Allowed> {
        let metadata = file.metadata()?;
        let mut file = WithoutForgotten::of(file, forgotten, shape)?;
        let (mut blanks, mut end) = (Vec::new(), None);
        if let Some(chosen) = chosen {
            end = Some(each_line(&mut BufReader::new(&mut file), |span, line| {
                if !line.is_some_and(|line| chosen.includes_line(line)) {
                    blanks.push(span);
                }
            })?);
            file.rewind()?;
        }
        Ok(Allowed { file, metadata, position: 0, blanks, end })
    }

    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The allowed length of a file of this size.
    pub fn size(&self, on_disk: u64) -> u64 {
        self.end.unwrap_or(on_disk).min(on_disk)
    }
}

impl Read for Allowed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.position));
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read(&mut buffer[..most])?;
        let (start, end) = (self.position, self.position + read as u64);
        let first = self.blanks.partition_point(|blank| blank.end <= start);
        for blank in self.blanks[first..].iter().take_while(|blank| blank.start < end) {
            let (from, to) = (blank.start.max(start) - start, blank.end.min(end) - start);
            buffer[from as usize..to as usize].fill(b' ');
        }
        self.position = end;
        Ok(read)
    }
}

impl Seek for Allowed {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.file.seek(to)?;
        Ok(self.position)
    }
}

/// Visits every line with its span, `None` for one that is too long; returns where the last one ended. An unfinished
/// last line is not visited.
pub fn each_line(
    reader: &mut impl BufRead,
    mut visit: impl FnMut(Range<u64>, Option<&[u8]>),
) -> io::Result<u64> {
    let (mut start, mut position, mut line, mut too_long) = (0, 0, Vec::new(), false);
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let newline = memchr::memchr(b'\n', buffer);
        let part = &buffer[..newline.unwrap_or(buffer.len())];
        too_long |= line.len() + part.len() > LONGEST;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        position += part.len() as u64;
        let used = part.len() + usize::from(newline.is_some());
        reader.consume(used);
        if newline.is_some() {
            visit(start..position, Some(line.as_slice()).filter(|_| !too_long));
            position += 1;
            start = position;
            line.clear();
            too_long = false;
        }
    }
    // A client that was killed may leave a whole line without its end.
    if !too_long && Scan::new(&line).line().is_complete() {
        visit(start..position, Some(&line));
        start = position;
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::each_line;

    #[test]
    fn lines_have_spans_and_unfinished_ones_wait() {
        let lines = |text: &str| {
            let mut lines = Vec::new();
            let end = each_line(&mut text.as_bytes(), |span, line| {
                lines.push((span, line.map(|line| String::from_utf8_lossy(line).into_owned())));
            });
            (lines, end.unwrap())
        };
        let two = vec![(0..2, Some("{}".into())), (3..3, Some(String::new()))];
        assert_eq!(lines("{}\n\n{\"a"), (two.clone(), 4));
        let three = [two, vec![(4..6, Some("{}".into()))]].concat();
        assert_eq!(lines("{}\n\n{}"), (three, 6));
    }
}
