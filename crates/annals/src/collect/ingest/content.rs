//! The content of a file in chunks, decoded where the client compressed it.

use std::io::{self, BufRead, BufReader, Read};

use super::parse::Parse;
use annals_core::{BLANK, Encoding, Result};
use annals_store::{ReadRows, SEGMENT};

/// Raw bytes of a batch: whole segments, so that rows never point at bytes that are not stored yet.
pub const CHUNK: usize = 4 * SEGMENT;
/// Content that decompresses to more than this is treated as a zip bomb.
const LARGEST_CONTENT: u64 = 8 << 30;
/// So is content beyond this that is more than `LARGEST_RATIO` times its compressed size.
const USUAL_CONTENT: u64 = 128 << 20;
const LARGEST_RATIO: u64 = 1_000;

pub fn decoder<'r>(bytes: impl Read + 'r, encoding: Encoding) -> io::Result<Box<dyn Read + 'r>> {
    let mut bytes = BufReader::new(bytes);
    Ok(match encoding {
        // A compressed file that was forgotten as a whole is blank.
        Encoding::Zstd if bytes.fill_buf()?.first() != Some(&BLANK) => {
            Box::new(zstd::stream::read::Decoder::with_buffer(bytes)?)
        }
        Encoding::Plain | Encoding::Zstd => Box::new(bytes),
    })
}

/// A chunk of content.
pub struct ReadChunk {
    pub rows: ReadRows,
    pub bytes: u64,
    /// Why the content ends early.
    pub broken: Option<String>,
    pub is_last: bool,
}

/// Feeds content to its reader, chunk by chunk. `stored` is its size before decoding.
pub fn read_content(
    mut parse: Parse,
    bytes: impl Read,
    encoding: Encoding,
    stored: u64,
    buffer: &mut Vec<u8>,
    emit: &mut dyn FnMut(ReadChunk) -> Result<()>,
) -> Result<()> {
    let mut content = decoder(bytes, encoding)?;
    let mut total = 0;
    loop {
        buffer.clear();
        let read = content.by_ref().take(CHUNK as u64).read_to_end(buffer);
        total += buffer.len() as u64;
        parse.feed(buffer);
        let broken = match read {
            Ok(_) if encoding == Encoding::Zstd => bomb_reason(stored, total),
            Ok(_) => None,
            Err(error) => Some(cannot_decode(&error)),
        };
        if let Some(reason) = &broken {
            parse.end_malformed(reason);
        }
        let is_last = broken.is_some() || buffer.len() < CHUNK;
        if is_last {
            parse.finish();
        }
        emit(ReadChunk { rows: parse.take(), bytes: buffer.len() as u64, broken, is_last })?;
        if is_last {
            return Ok(());
        }
    }
}

pub fn cannot_decode(error: &io::Error) -> String {
    format!("cannot be decompressed further: {error}")
}

/// Why decompression stops after this many bytes, if it should.
pub fn bomb_reason(stored: u64, decoded: u64) -> Option<String> {
    if decoded > LARGEST_CONTENT {
        return Some("decompresses to more than 8 GiB".to_owned());
    }
    let swollen = decoded > USUAL_CONTENT && decoded / LARGEST_RATIO > stored;
    swollen.then(|| format!("decompresses to more than {LARGEST_RATIO} times its size"))
}

pub fn same_bytes(mut ours: impl Read, mut theirs: impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let read = fill(&mut ours, &mut left)?;
        let other = fill(&mut theirs, &mut right)?;
        if left[..read] != right[..other] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
