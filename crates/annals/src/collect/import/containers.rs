//! Opens files, directories, zips and nested zips. Names are data; nothing is extracted by name.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use zip::ZipArchive;

use crate::collect::home::walk::stat_of;
use crate::collect::ingest::content::bomb_reason;
use crate::collect::names::text_of;
use annals_core::{Error, Result, Time};

/// First bytes of a member, by which it is recognised.
const HEAD: u64 = 64 << 10;
/// Limit on the decompressed size of all members of a container together.
const LARGEST_TOTAL: u64 = 256 << 30;
const MOST_MEMBERS: usize = 1_000_000;
/// No export nests zips deeper than this.
const DEEPEST: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Zip,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Folder => "folder",
            Kind::Zip => "zip",
        }
    }
}

pub struct Container {
    pub path: PathBuf,
    pub kind: Kind,
    /// Equal for equal content, whatever the name.
    pub hash: String,
    pub members: Vec<ContainerEntry>,
    pub warnings: Vec<String>,
    zips: Vec<ZipArchive<File>>,
    scratch: PathBuf,
    unpacked: u64,
}

pub struct ContainerEntry {
    pub name: String,
    pub size: u64,
    pub modified: Option<Time>,
    /// Why it is skipped.
    pub refused: Option<&'static str>,
    packed: u64,
    depth: usize,
    place: Place,
}

enum Place {
    Disk(PathBuf),
    Zip { zip: usize, index: usize },
}

impl Container {
    pub fn open(path: &Path, scratch: &Path) -> Result<Container> {
        let failed = |error: io::Error| {
            Error::new(format!("cannot read {}: {error}", path.display()))
                .hint("check that the path exists and is readable")
        };
        let metadata = std::fs::metadata(path).map_err(failed)?;
        let mut container = Container {
            path: path.to_owned(),
            kind: Kind::File,
            hash: String::new(),
            members: Vec::new(),
            warnings: Vec::new(),
            zips: Vec::new(),
            scratch: scratch.to_owned(),
            unpacked: 0,
        };
        if metadata.is_dir() {
            container.kind = Kind::Folder;
            container.list_folder();
            container.hash = hash_of_names(&container.members);
            return Ok(container);
        }
        if !metadata.is_file() {
            return Err(failed(io::Error::other("neither a file nor a directory")));
        }
        let mut file = File::open(path).map_err(failed)?;
        container.hash = hash_of_edges(&mut file, metadata.len()).map_err(failed)?;
        if is_zip(&mut file).map_err(failed)? {
            container.kind = Kind::Zip;
            let stated = Stated { prefix: String::new(), depth: 1 };
            container.list_zip(file, &stated).map_err(|why| {
                Error::new(format!("cannot read {}: {why}", path.display()))
                    .hint("download it again: the zip archive may be incomplete")
            })?;
        } else {
            let name = path.file_name().map(text_of).unwrap_or_default();
            container.members.push(ContainerEntry {
                name,
                size: metadata.len(),
                modified: Some(stat_of(&metadata).modified),
                refused: None,
                packed: metadata.len(),
                depth: 0,
                place: Place::Disk(path.to_owned()),
            });
        }
        Ok(container)
    }

    /// The first bytes of a member.
    pub fn head(&mut self, at: usize) -> io::Result<Vec<u8>> {
        self.read(at, |input| {
            let mut head = Vec::new();
            input.take(HEAD).read_to_end(&mut head)?;
            Ok(head)
        })?
    }

    /// Reads a member, unless it is a decompression bomb_reason.
    pub fn read<T>(&mut self, at: usize, read: impl FnOnce(&mut dyn Read) -> T) -> io::Result<T> {
        let Some(entry) = self.members.get(at) else { return Err(io::Error::other("no such member")) };
        let packed = entry.packed;
        let guard = |input: &mut dyn Read, total: &mut u64| {
            let mut guarded = Guarded { input, packed, unpacked: 0, total };
            read(&mut guarded)
        };
        match &entry.place {
            Place::Disk(path) => {
                let mut file = crate::collect::ingest::capture::open(path)?;
                Ok(guard(&mut file, &mut self.unpacked))
            }
            Place::Zip { zip, index } => {
                let Some(zip) = self.zips.get_mut(*zip) else { return Err(io::Error::other("no such zip")) };
                let mut file = zip.by_index(*index).map_err(io::Error::other)?;
                Ok(guard(&mut file, &mut self.unpacked))
            }
        }
    }

    pub fn is_zip(&mut self, at: usize) -> bool {
        self.head(at).is_ok_and(|head| starts_as_zip(&head))
    }

    /// Adds the members of a nested zip.
    pub fn open_nested(&mut self, at: usize) -> std::result::Result<(), String> {
        let Some(entry) = self.members.get(at) else { return Ok(()) };
        if entry.depth >= DEEPEST {
            return Err("zip archives nested too deeply".to_owned());
        }
        let stated = Stated { prefix: format!("{}/", entry.name), depth: entry.depth + 1 };
        let on_disk = match &entry.place {
            Place::Disk(path) => Some(path.clone()),
            Place::Zip { .. } => None,
        };
        let file = match on_disk {
            Some(path) => crate::collect::ingest::capture::open(&path).map_err(|error| error.to_string())?,
            // The directory of a zip is at its end: it has to be on disk in full.
            None => {
                let scratch = self.scratch.clone();
                let copied = self.read(at, |input| {
                    let mut file = private_file(&scratch)?;
                    io::copy(input, &mut file)?;
                    file.flush()?;
                    file.seek(SeekFrom::Start(0))?;
                    Ok::<File, io::Error>(file)
                });
                copied.and_then(|copied| copied).map_err(|error| error.to_string())?
            }
        };
        self.list_zip(file, &stated)
    }

    fn list_zip(&mut self, file: File, stated: &Stated) -> std::result::Result<(), String> {
        let zip = ZipArchive::new(file).map_err(|error| format!("not a readable zip archive: {error}"))?;
        if self.members.len() + zip.len() > MOST_MEMBERS {
            return Err(format!("more than {MOST_MEMBERS} members"));
        }
        if zip.has_duplicate_names() {
            self.warnings.push("several members have the same name; the last one is read".to_owned());
        }
        let number = self.zips.len();
        for index in 0..zip.len() {
            let Ok(entry) = zip.by_index_data(index) else { continue };
            if entry.is_dir() {
                continue;
            }
            let raw = String::from_utf8_lossy(entry.name_raw()).replace('\\', "/");
            let refused = match unsafe_name(&raw) {
                Some(why) => Some(why),
                None if entry.is_symlink() => Some("a link"),
                None if entry.encrypted() => Some("encrypted"),
                None => junk(&raw),
            };
            let modified = entry.last_modified().and_then(|at| {
                let (year, month, day) = (at.year(), at.month(), at.day());
                let (hour, minute, second) = (at.hour(), at.minute(), at.second());
                // Programs without a clock write the earliest time that zips can represent.
                (year > 1980).then(|| {
                    Time::parse(&format!(
                        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z"
                    ))
                })?
            });
            self.members.push(ContainerEntry {
                name: format!("{}{raw}", stated.prefix),
                size: entry.size(),
                modified,
                refused,
                packed: entry.compressed_size(),
                depth: stated.depth,
                place: Place::Zip { zip: number, index },
            });
        }
        self.zips.push(zip);
        Ok(())
    }

    /// Lists files sorted by name, without following links.
    fn list_folder(&mut self) {
        let mut folders = vec![(self.path.clone(), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.warnings.push(format!("{prefix}: {error}"));
                    continue;
                }
            };
            for entry in entries.flatten() {
                let name = format!("{prefix}{}", text_of(&entry.file_name()));
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    folders.push((entry.path(), format!("{name}/")));
                    continue;
                }
                let refused = match metadata.is_file() {
                    true => junk(&name),
                    false if metadata.is_symlink() => Some("a link"),
                    false => Some("not a file"),
                };
                if self.members.len() >= MOST_MEMBERS {
                    self.warnings.push(format!("only the first {MOST_MEMBERS} files were read"));
                    return;
                }
                self.members.push(ContainerEntry {
                    name,
                    size: metadata.len(),
                    modified: Some(stat_of(&metadata).modified),
                    refused,
                    packed: metadata.len(),
                    depth: 0,
                    place: Place::Disk(entry.path()),
                });
            }
        }
        self.members.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

/// Where the members of a zip are in the container.
struct Stated {
    prefix: String,
    depth: usize,
}

/// Stops when a member yields more than its limit.
struct Guarded<'r> {
    input: &'r mut dyn Read,
    packed: u64,
    unpacked: u64,
    total: &'r mut u64,
}

impl Read for Guarded<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.unpacked += read as u64;
        *self.total += read as u64;
        if let Some(why) = bomb_reason(self.packed, self.unpacked) {
            return Err(io::Error::other(why));
        }
        if *self.total > LARGEST_TOTAL {
            return Err(io::Error::other("decompresses to more than 256 GiB in total"));
        }
        Ok(read)
    }
}

/// Nothing is written under these names, but a forged name is reason enough not to read the member.
fn unsafe_name(name: &str) -> Option<&'static str> {
    let drive = name.as_bytes().get(1) == Some(&b':');
    if name.starts_with('/') || drive {
        Some("its name is an absolute path")
    } else if name.split('/').any(|part| part == "..") {
        Some("its name leads out of the archive: `..`")
    } else if name.contains('\0') || name.is_empty() {
        Some("its name is invalid")
    } else {
        None
    }
}

fn junk(name: &str) -> Option<&'static str> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let system = name.split('/').any(|part| part == "__MACOSX") || base.starts_with("._");
    let known = ["desktop.ini", "Thumbs.db", ".DS_Store"].contains(&base);
    (system || known).then_some("operating system file")
}

fn starts_as_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

fn is_zip(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    Read::by_ref(file).take(4).read_to_end(&mut start)?;
    Ok(starts_as_zip(&start))
}

/// Hashes the size and both ends: the directory of a zip, with checksums, is at its end.
fn hash_of_edges(file: &mut File, size: u64) -> io::Result<String> {
    const EDGE: u64 = 1 << 20;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_le_bytes());
    for start in [0, size.saturating_sub(EDGE)] {
        let mut edge = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        Read::by_ref(file).take(EDGE).read_to_end(&mut edge)?;
        hasher.update(&edge);
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}

fn hash_of_names(members: &[ContainerEntry]) -> String {
    let mut hasher = blake3::Hasher::new();
    for member in members {
        hasher.update(member.name.as_bytes());
        hasher.update(&member.size.to_le_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// A private file that is deleted with its handle, if the system allows it.
pub fn private_file(scratch: &Path) -> io::Result<File> {
    std::fs::create_dir_all(scratch)?;
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = scratch.join(format!("import-{}-{number}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(&path)?;
    #[cfg(unix)]
    std::fs::remove_file(&path)?;
    Ok(file)
}
