//! The entry point of the fuzzer in `fuzz/`, and a test that calls it.

use std::io::{self, Read};

use super::{Recording, TapeFormat, TapeOptions, record};
use crate::view::door::Door;
use annals_core::Framing;
use annals_sources::registry;

/// The tapes and traces that every source produces for these bytes, read in pieces of the given size.
pub fn fuzz_record(bytes: &[u8], piece: usize) -> Vec<String> {
    let door = Door::masking_alone();
    let mut emitted = Vec::new();
    for source in registry().iter().filter(|source| source.recorder().is_some()) {
        for format in [TapeFormat::Tape, TapeFormat::AgentTrace] {
            for (path, framing) in [(None, Framing::Lines), (Some("a/b.json"), Framing::Whole)] {
                let recording = Recording { source: *source, path, framing };
                let options = TapeOptions { format, ..TapeOptions::default() };
                let mut lines = Vec::new();
                let end = record(&door, &recording, options, &mut Pieces { bytes, piece }, &mut |line| {
                    lines.push(line.value().to_string());
                    Ok(())
                });
                emitted.push(format!("{:?}", end.map(|end| (end.first, end.drift_count))));
                emitted.append(&mut lines);
            }
        }
    }
    emitted
}

/// Yields at most `piece` bytes per read, as a pipe does.
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;

    use proptest::prelude::*;

    use super::fuzz_record;
    use annals_sources::registry;

    /// Transcripts as clients write them, for the tests to corrupt.
    fn seeds() -> &'static [Vec<u8>] {
        static SEEDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
        SEEDS.get_or_init(|| {
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../annals-sources/src");
            let mut folders: Vec<PathBuf> = registry()
                .iter()
                .map(|source| sources.join(source.manifest().source).join("fixtures"))
                .collect();
            let mut seeds = Vec::new();
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).into_iter().flatten() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        folders.push(path);
                    } else if path.to_string_lossy().contains("/home/")
                        && path.extension().is_some_and(|extension| extension == "jsonl")
                    {
                        seeds.push(std::fs::read(path).unwrap());
                    }
                }
            }
            seeds.sort();
            seeds
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        #[test]
        fn broken_lines_give_the_same_tape_in_pieces(
            seed in any::<prop::sample::Index>(),
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, ".{0,6}"), 0..12),
            piece in 1..2_000_usize,
        ) {
            let mut bytes = seed.get(seeds()).clone();
            for (at, count, text) in cuts {
                let start = at.index(bytes.len().max(1)).min(bytes.len());
                let end = (start + count).min(bytes.len());
                bytes.splice(start..end, text.bytes());
            }
            prop_assert_eq!(fuzz_record(&bytes, usize::MAX), fuzz_record(&bytes, piece));
        }

        #[test]
        fn anything_at_all_is_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(fuzz_record(&bytes, usize::MAX), fuzz_record(&bytes, 3));
        }
    }
}
