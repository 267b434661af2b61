//! Why new data could not be captured, remembered where a full disk allows it: in one block beside the database that is
//! reserved while there is room and overwritten in place. Appending to the database needs room that a full disk lacks.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use annals_core::Time;

/// The size of the block. File systems allocate at least this much.
const BLOCK: usize = 4_096;

/// Consecutive captures that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureFailure {
    /// When the first of them failed.
    pub since: Time,
    pub what: String,
    pub hint: Option<String>,
    /// The first of the files that were not captured.
    pub files: Vec<String>,
    /// How many files were not captured, those that are not listed included.
    pub file_count: u64,
}

/// The content of the block.
#[derive(Serialize, Deserialize)]
struct Remembered {
    since: i64,
    what: String,
    hint: Option<String>,
    files: Vec<String>,
    file_count: u64,
}

fn path_of(data_dir: &Path) -> PathBuf {
    data_dir.join("annals.failure")
}

/// Reserves the block, so that a failure can be remembered once the disk is full.
pub fn reserve_failure(data_dir: &Path) -> std::io::Result<()> {
    let path = path_of(data_dir);
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() == BLOCK as u64) {
        return Ok(());
    }
    write(&path, "")
}

/// Remembers a failure in place of an earlier one.
pub fn remember_failure(data_dir: &Path, failure: &CaptureFailure) -> std::io::Result<()> {
    let mut remembered = Remembered {
        since: failure.since.micros(),
        what: failure.what.clone(),
        hint: failure.hint.clone(),
        files: failure.files.clone(),
        file_count: failure.file_count,
    };
    loop {
        let text = serde_json::to_string(&remembered)?;
        if text.len() <= BLOCK {
            return write(&path_of(data_dir), &text);
        }
        // Paths and messages may be of any length.
        if remembered.files.pop().is_none() {
            let shorter: String = remembered.what.chars().take(remembered.what.chars().count() / 2).collect();
            (remembered.what, remembered.hint) = (shorter, None);
        }
    }
}

/// Something was captured: forgets what failed before. Returns whether there was anything to forget.
pub fn forget_failure(data_dir: &Path) -> std::io::Result<bool> {
    let is_remembered = remembered_failure(data_dir).is_some();
    if is_remembered {
        write(&path_of(data_dir), "")?;
    }
    Ok(is_remembered)
}

/// Why the last captures failed; `None` if the last one succeeded.
pub fn remembered_failure(data_dir: &Path) -> Option<CaptureFailure> {
    let mut text = String::new();
    File::open(path_of(data_dir)).ok()?.take(BLOCK as u64).read_to_string(&mut text).ok()?;
    let found: Remembered = serde_json::from_str(text.trim_end()).ok()?;
    Some(CaptureFailure {
        since: Time::from_micros(found.since),
        what: found.what,
        hint: found.hint,
        files: found.files,
        file_count: found.file_count,
    })
}

/// Overwrites the block without truncating it: that would give its room away.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.rewind()?;
    let mut block = text.as_bytes().to_vec();
    block.resize(BLOCK, b' ');
    file.write_all(&block)?;
    file.set_len(BLOCK as u64)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(files: usize, what: &str) -> CaptureFailure {
        CaptureFailure {
            since: Time::from_seconds(7),
            what: what.to_owned(),
            hint: Some("free up space".to_owned()),
            files: (0..files).map(|at| format!("/home/ä/{at}.jsonl")).collect(),
            file_count: 1_000,
        }
    }

    #[test]
    fn a_failure_is_remembered_until_it_is_forgotten() {
        let data_dir = tempfile::tempdir().unwrap();
        assert_eq!(remembered_failure(data_dir.path()), None);
        reserve_failure(data_dir.path()).unwrap();
        assert_eq!(remembered_failure(data_dir.path()), None);
        for what in ["no space left", "read-only file system"] {
            remember_failure(data_dir.path(), &failure(3, what)).unwrap();
            assert_eq!(remembered_failure(data_dir.path()), Some(failure(3, what)));
        }
        assert!(forget_failure(data_dir.path()).unwrap());
        assert!(!forget_failure(data_dir.path()).unwrap());
        assert_eq!(remembered_failure(data_dir.path()), None);
    }

    #[test]
    fn the_block_never_grows() {
        let data_dir = tempfile::tempdir().unwrap();
        reserve_failure(data_dir.path()).unwrap();
        let path = path_of(data_dir.path());
        for (files, what) in [(0, "x"), (500, "x"), (500, &*"ü\n".repeat(9_000))] {
            remember_failure(data_dir.path(), &failure(files, what)).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), BLOCK as u64);
            let found = remembered_failure(data_dir.path()).unwrap();
            assert!(found.file_count == 1_000 && what.starts_with(&found.what) && !found.what.is_empty());
        }
    }
}
