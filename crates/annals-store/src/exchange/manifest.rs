//! What an archive says about a file when it hands it on: names, versions, and the hashes of their segments; no rows.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::SEGMENT;
use annals_core::{Error, Result, from_hex, to_hex};

/// The blake3 hash of a segment's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    pub fn of(bytes: &[u8]) -> ContentHash {
        ContentHash(*blake3::hash(bytes).as_bytes())
    }

    pub fn parse(digits: &str) -> Option<ContentHash> {
        from_hex(digits)?.try_into().ok().map(ContentHash)
    }
}

impl std::fmt::Display for ContentHash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&to_hex(&self.0))
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<ContentHash, D::Error> {
        let digits = String::deserialize(deserializer)?;
        ContentHash::parse(&digits).ok_or_else(|| D::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

/// A home, as the archive that captured it names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HomeName {
    pub source: String,
    pub machine: String,
    pub root: String,
}

/// Which of the files with one logical path has the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerName {
    This,
    /// The file at this path, which has the same content.
    Other(String),
    Nobody,
}

/// A file with all its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeFile {
    pub path: String,
    pub logical_path: String,
    pub store: String,
    pub reader: String,
    pub framing: String,
    pub encoding: String,
    pub document: bool,
    pub mutable: bool,
    pub owner: OwnerName,
    pub rows_version: i64,
    pub first_seen: i64,
    pub gone_at: Option<i64>,
    pub mode: Option<u32>,
    /// Hashes of texts that imports added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<String>,
    pub versions: Vec<ExchangeVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeVersion {
    pub version: i64,
    pub size: u64,
    pub modified: Option<i64>,
    pub captured_at: i64,
    pub gone_at: Option<i64>,
    /// One for each 256 KiB.
    pub segments: Vec<ContentHash>,
}

/// Longer names are no file's.
const LONGEST_NAME: usize = 8 << 10;
const LARGEST_VERSION: u64 = 1 << 40;

impl ExchangeFile {
    /// Equal for equal files.
    pub fn digest(&self) -> Result<[u8; 32]> {
        Ok(*blake3::hash(&serde_json::to_vec(self)?).as_bytes())
    }

    /// Whether it can be a file at all: what comes from elsewhere may contain anything.
    pub fn check(&self) -> Result<()> {
        let refused = |what: &str| Error::bad_request(format!("{:?}: {what}", self.path));
        let names = [&self.path, &self.logical_path, &self.store, &self.reader];
        if names.iter().any(|name| name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0')) {
            return Err(refused("a name is empty or too long"));
        }
        if self.path.starts_with(annals_core::FORGOTTEN_FILES) {
            return Err(refused("forgotten files are not handed on"));
        }
        if !["lines", "sequence", "whole"].contains(&self.framing.as_str()) {
            return Err(refused("unknown framing"));
        }
        if !["plain", "zstd"].contains(&self.encoding.as_str()) {
            return Err(refused("unknown encoding"));
        }
        let hash = |digits: &String| from_hex(digits).is_some_and(|hash| hash.len() == 16);
        if !self.captures.iter().all(hash) {
            return Err(refused("a capture has no hash"));
        }
        let mut last = 0;
        for version in &self.versions {
            if version.version <= last {
                return Err(refused("versions are not in order"));
            }
            last = version.version;
            let expected = version.size.div_ceil(SEGMENT as u64);
            if version.size > LARGEST_VERSION || version.segments.len() as u64 != expected {
                return Err(refused("a version does not have the segments of its size"));
            }
        }
        if !self.versions.iter().any(|version| version.version == self.rows_version) {
            return Err(refused("the version with the rows is missing"));
        }
        Ok(())
    }

    /// The hashes of all segments.
    pub fn hashes(&self) -> impl Iterator<Item = ContentHash> {
        self.versions.iter().flat_map(|version| version.segments.iter().copied())
    }
}

impl ExchangeVersion {
    /// How long its segment at this place is.
    pub fn length_of(&self, number: usize) -> u64 {
        (self.size - (number * SEGMENT) as u64).min(SEGMENT as u64)
    }
}
