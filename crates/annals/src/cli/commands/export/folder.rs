//! A directory of exported files: what was written there before, and new files that appear whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::serve::IndexLine;
use annals_core::{Error, Result};

/// Lists the files that exports wrote, one JSON line each. A line is written before its file appears.
const JOURNAL: &str = ".annals-export.jsonl";
/// Files that are not finished.
const DRAFT: &str = ".annals-export-";

/// A file that an export wrote.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WrittenFile {
    pub path: String,
    /// BLAKE3 of its content.
    hash: String,
    bytes: u64,
    /// Identifies what it was made from.
    stamp: String,
    /// The session that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its line in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<IndexLine>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    removed: bool,
}

/// What a file is about.
#[derive(Debug, Default)]
pub struct About {
    pub session: Option<String>,
    pub line: Option<IndexLine>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Written,
    Unchanged,
    /// Something else is at its place, or somebody edited it.
    LeftAlone,
}

pub struct Folder {
    root: PathBuf,
    files: BTreeMap<String, WrittenFile>,
    /// Every content that an export may have left at a path.
    known: BTreeMap<String, BTreeSet<String>>,
    journal: Option<File>,
    /// Held until the export ends.
    _lock: Option<File>,
    drafts: u64,
}

impl Folder {
    /// Opens a directory to write to it; it is created if it does not exist.
    pub fn open(root: &Path) -> Result<Folder> {
        let cannot = |error: io::Error| Error::new(format!("cannot write to {}: {error}", root.display()));
        fs::create_dir_all(root).map_err(cannot)?;
        let lock = File::open(root).map_err(cannot)?;
        if let Err(fs::TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::new(format!("another export is writing to {}", root.display())));
        }
        let mut folder = Folder::read(root)?;
        for entry in fs::read_dir(root).map_err(cannot)?.filter_map(std::result::Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(DRAFT) && name.ends_with(".tmp") {
                fs::remove_file(entry.path()).map_err(cannot)?;
            }
        }
        let mut journal =
            File::options().create(true).append(true).open(root.join(JOURNAL)).map_err(cannot)?;
        // The last line may be half written: the next one must not become part of it.
        journal.write_all(b"\n").map_err(cannot)?;
        folder.journal = Some(journal);
        folder._lock = Some(lock);
        Ok(folder)
    }

    /// What was exported to a directory, without changing it.
    pub fn read(root: &Path) -> Result<Folder> {
        let mut folder = Folder {
            root: root.to_owned(),
            files: BTreeMap::new(),
            known: BTreeMap::new(),
            journal: None,
            _lock: None,
            drafts: 0,
        };
        let journal = match File::open(root.join(JOURNAL)) {
            Ok(journal) => journal,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(folder),
            Err(error) => {
                return Err(Error::new(format!("cannot read {}: {error}", root.join(JOURNAL).display())));
            }
        };
        for line in BufReader::new(journal).split(b'\n') {
            // The last line may be half written; its file is then not there yet.
            if let Ok(file) = serde_json::from_slice::<WrittenFile>(&line?) {
                folder.remember(file);
            }
        }
        Ok(folder)
    }

    fn remember(&mut self, file: WrittenFile) {
        if file.removed {
            self.files.remove(&file.path);
            return;
        }
        self.known.entry(file.path.clone()).or_default().insert(file.hash.clone());
        self.files.insert(file.path.clone(), file);
    }

    /// Files that exports wrote.
    pub fn files(&self) -> impl Iterator<Item = &WrittenFile> {
        self.files.values()
    }

    /// Files whose paths begin like this.
    pub fn below(&self, start: &str) -> Vec<String> {
        let files = self.files.range(start.to_owned()..).map(|(path, _)| path);
        files.take_while(|path| path.starts_with(start)).cloned().collect()
    }

    /// Whether a file is there as it was written, and made from the same.
    pub fn is_current(&self, path: &str, stamp: &str) -> bool {
        self.files.get(path).is_some_and(|file| file.stamp == stamp) && self.is_whole(path)
    }

    /// Whether a file is there with its length.
    pub fn is_whole(&self, path: &str) -> bool {
        let on_disk = fs::symlink_metadata(self.root.join(path));
        let whole =
            |file: &WrittenFile| on_disk.is_ok_and(|facts| facts.is_file() && facts.len() == file.bytes);
        self.files.get(path).is_some_and(whole)
    }

    /// What would become of a new file.
    pub fn fate_of(&self, path: &str) -> Result<Fate> {
        let is_ours = |hash: &String| self.known.get(path).is_some_and(|known| known.contains(hash));
        Ok(match hash_of(&self.root.join(path))? {
            OnDisk::Nothing => Fate::Written,
            OnDisk::File(hash) if is_ours(&hash) => Fate::Written,
            OnDisk::File(_) | OnDisk::Other => Fate::LeftAlone,
        })
    }

    /// A file that has no name yet.
    pub fn draft(&mut self) -> Result<Draft> {
        self.drafts += 1;
        Draft::new(self.root.join(format!("{DRAFT}{}.tmp", self.drafts)))
    }

    /// Gives a draft its name, unless a file that no export wrote has it.
    pub fn keep(&mut self, draft: Draft, path: &str, stamp: &str, about: About) -> Result<Fate> {
        let (draft, hash, bytes) = draft.finish()?;
        let target = self.root.join(path);
        let before = hash_of(&target)?;
        let is_ours = |hash: &String| self.known.get(path).is_some_and(|known| known.contains(hash));
        let fate = match &before {
            OnDisk::File(before) if *before == hash => Fate::Unchanged,
            OnDisk::File(before) if !is_ours(before) => Fate::LeftAlone,
            OnDisk::Other => Fate::LeftAlone,
            OnDisk::File(_) | OnDisk::Nothing => Fate::Written,
        };
        if fate == Fate::LeftAlone || fate == Fate::Unchanged && !is_ours(&hash) {
            fs::remove_file(draft)?;
            return Ok(fate);
        }
        let file = WrittenFile {
            path: path.to_owned(),
            hash,
            bytes,
            stamp: stamp.to_owned(),
            session: about.session,
            line: about.line,
            removed: false,
        };
        self.note(&file)?;
        self.remember(file);
        if fate == Fate::Unchanged {
            fs::remove_file(draft)?;
            return Ok(fate);
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::rename(&draft, &target).map_err(|error| {
            // The directory is the user's: leave nothing behind.
            let _ = fs::remove_file(&draft);
            Error::new(format!("cannot write {}: {error}", target.display()))
        })?;
        Ok(fate)
    }

    /// Removes a file that an export wrote and nobody edited; returns whether it is gone.
    pub fn remove(&mut self, path: &str) -> Result<bool> {
        let Some(file) = self.files.get(path).cloned() else { return Ok(false) };
        let target = self.root.join(path);
        match hash_of(&target)? {
            OnDisk::File(hash) if self.known.get(path).is_some_and(|known| known.contains(&hash)) => {
                fs::remove_file(&target)?;
                // Directories go with their last file.
                for folder in target.ancestors().skip(1).take_while(|folder| *folder != self.root) {
                    if fs::remove_dir(folder).is_err() {
                        break;
                    }
                }
            }
            OnDisk::Nothing => {}
            OnDisk::File(_) | OnDisk::Other => return Ok(false),
        }
        let removed = WrittenFile { removed: true, ..file };
        self.note(&removed)?;
        self.remember(removed);
        Ok(true)
    }

    fn note(&mut self, file: &WrittenFile) -> Result<()> {
        let mut line = serde_json::to_vec(file)?;
        line.push(b'\n');
        if let Some(journal) = &mut self.journal {
            journal.write_all(&line)?;
        }
        Ok(())
    }

    /// Leaves one line for each file.
    pub fn finish(mut self) -> Result<()> {
        let mut draft = self.draft()?;
        for file in self.files.values() {
            serde_json::to_writer(&mut draft, file)?;
            draft.write_all(b"\n")?;
        }
        let (draft, _, _) = draft.finish()?;
        fs::rename(draft, self.root.join(JOURNAL))?;
        Ok(())
    }
}

enum OnDisk {
    Nothing,
    /// A regular file with this content.
    File(String),
    Other,
}

fn hash_of(path: &Path) -> Result<OnDisk> {
    match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(OnDisk::Nothing)
        }
        Err(error) => Err(Error::new(format!("cannot read {}: {error}", path.display()))),
        Ok(facts) if !facts.is_file() => Ok(OnDisk::Other),
        Ok(_) => {
            let mut hasher = blake3::Hasher::new();
            let mut file = File::open(path)?;
            let mut buffer = vec![0; 64 << 10];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(OnDisk::File(hasher.finalize().to_hex().to_string())),
                    count => hasher.update(&buffer[..count]),
                };
            }
        }
    }
}

/// A file that is being written.
pub struct Draft {
    path: PathBuf,
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
    kept: bool,
}

impl Draft {
    pub fn new(path: PathBuf) -> Result<Draft> {
        let cannot = |error: io::Error| Error::new(format!("cannot write {}: {error}", path.display()));
        let file = File::options().write(true).create_new(true).open(&path).map_err(cannot)?;
        Ok(Draft {
            out: BufWriter::with_capacity(256 << 10, file),
            hasher: blake3::Hasher::new(),
            bytes: 0,
            kept: false,
            path,
        })
    }

    /// The path, hash and length of the finished file.
    pub fn finish(mut self) -> Result<(PathBuf, String, u64)> {
        self.out.flush()?;
        self.kept = true;
        Ok((self.path.clone(), self.hasher.finalize().to_hex().to_string(), self.bytes))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // Whatever failed is reported; a rest of the draft would only be in the way.
            let _ = fs::remove_file(&self.path);
        }
    }
}
