//! What the fuzzer in `fuzz/` calls: tables and blocks of the text index from any bytes.

use super::format::{BlockReader, read_docs, write_docs};

/// Reads bytes as a table of passages and as a block of terms; a table that was read is written and read the same.
pub fn fuzz_index(bytes: &[u8]) {
    let docs: Vec<_> = read_docs(bytes).collect();
    let again: Vec<_> = read_docs(&write_docs(&docs)).collect();
    assert_eq!(docs, again);
    let mut block = BlockReader::new(bytes);
    let mut passages = Vec::new();
    while block.advance() {
        assert!(block.term().len() <= bytes.len() * 2);
        passages.clear();
        block.passages(&mut passages);
    }
}
