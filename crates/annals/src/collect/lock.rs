//! The collector lock: names its holder and ends with its process, even after `kill -9`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use annals_core::{Error, Result};
use annals_store::{make_private_folder, reserve_failure};

/// Held until dropped. Readers of the archive never take it.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Whether another process holds it now.
    pub fn is_held(data_dir: &Path) -> bool {
        let file = File::open(data_dir.join("annals.lock"));
        file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    pub fn take(data_dir: &Path, command: &str) -> Result<Lock> {
        make_private_folder(data_dir)?;
        let path = data_dir.join("annals.lock");
        let cannot_write = |error: std::io::Error| {
            Error::new(format!("cannot write {}: {error}", path.display()))
                .hint("free up space, or use an archive in a writable directory with --home DIR; reading works as it is")
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(cannot_write)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder)?;
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                return Err(Error::new(format!("the archive is being written by {}", holder.trim()))
                    .hint("wait until it is done; `sessions`, `show` and `search` work meanwhile"));
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // Overwritten before it is truncated: that needs no room on a full disk.
        let holder = format!("`annals {command}` (process {})\n", std::process::id());
        file.rewind()?;
        file.write_all(holder.as_bytes()).map_err(cannot_write)?;
        file.set_len(holder.len() as u64).map_err(cannot_write)?;
        if let Err(error) = reserve_failure(data_dir) {
            tracing::debug!("no room to remember a failure: {error}");
        }
        Ok(Lock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::Lock;

    #[test]
    fn the_second_collector_learns_who_holds_the_lock() {
        let data_dir = tempfile::tempdir().unwrap();
        let first = Lock::take(data_dir.path(), "sync").unwrap();
        let Err(refused) = Lock::take(data_dir.path(), "sync") else { panic!("two locks") };
        assert!(
            refused.what.contains("annals sync") && refused.what.contains(&std::process::id().to_string())
        );
        drop(first);
        assert!(Lock::take(data_dir.path(), "sync").is_ok());
    }
}
