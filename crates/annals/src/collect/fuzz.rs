//! Entry points for the fuzzers in `fuzz/`.

use std::io::{self, Read};

use super::connector::wire;
use super::import::containers::Container;
use super::import::elements::{Piece, split};
use annals_sources::Shape;

/// Splits a JSON file into elements, reading pieces of this size.
pub fn fuzz_elements(bytes: &[u8], piece: usize) -> Vec<String> {
    let mut found = Vec::new();
    for shape in [Shape::Elements, Shape::Within(&["data", "items"]), Shape::Whole] {
        let mut input = Pieces { bytes, piece };
        let end: io::Result<()> = split(&mut input, &shape, &mut |piece: Piece<'_>| {
            found.push(format!("{piece:?}"));
            Ok(())
        });
        found.push(format!("{:?}", end.map_err(|error| error.kind())));
    }
    found
}

/// Whether a line of a connector is a message.
pub fn fuzz_wire(line: &[u8]) -> bool {
    wire::read(line).is_ok()
}

/// Opens bytes as an imported file, including nested zips, and reads all members.
pub fn fuzz_containers(bytes: &[u8]) -> io::Result<u64> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("export.zip");
    std::fs::write(&path, bytes)?;
    let Ok(mut container) = Container::open(&path, folder.path()) else { return Ok(0) };
    let (mut at, mut read) = (0, 0);
    while at < container.members.len() {
        if container.is_zip(at) {
            drop(container.open_nested(at));
        }
        // Reporting unreadable members is up to the caller.
        if let Ok(Ok(count)) = container.read(at, |input| io::copy(&mut input.take(1 << 20), &mut io::sink()))
        {
            read += count;
        }
        at += 1;
    }
    Ok(read)
}

/// Returns this many bytes at a time, like a pipe.
struct Pieces<'b> {
    bytes: &'b [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.len().min(self.piece).min(into.len());
        let (now, rest) = self.bytes.split_at(count);
        into[..count].copy_from_slice(now);
        self.bytes = rest;
        Ok(count)
    }
}
