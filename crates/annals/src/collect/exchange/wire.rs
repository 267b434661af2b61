//! The protocol between archives over HTTP, version 1: JSON, and frames of blobs. docs/push.md describes it.

use std::io::Read;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::receive::ReceivedFiles;
use annals_core::{Arrangement, Error, Result};
use annals_store::{ContentHash, ExchangeFile, HomeName, PackedBlob, SEGMENT};

pub const PROTOCOL: u32 = 1;
/// The steps are routes below this one.
pub const ROUTE: &str = "/api/v1/exchange/";
/// Bytes of a request or an answer, at most; those of blobs and files stay below.
pub const LONGEST_BODY: usize = 12 << 20;
/// Bytes of blobs, and of JSON about files, that are sent at once.
pub const PART: usize = 8 << 20;

#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    /// Who asks, in hexadecimal digits.
    pub archive: String,
    pub machine: String,
    /// Homes that are about to be pushed.
    #[serde(default)]
    pub homes: Vec<HomeName>,
    /// Whether to list the homes that can be pulled.
    #[serde(default)]
    pub pulls: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct HelloAnswer {
    pub protocol: u32,
    pub archive: String,
    /// Whose token it is; nobody's name for the owner's.
    pub member: Option<String>,
    pub policy: String,
    /// Grows with every change of the archive.
    pub commit: i64,
    pub homes: Vec<NumberedHome>,
}

/// A home and the number that later requests name it by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NumberedHome {
    pub id: i64,
    #[serde(flatten)]
    pub name: HomeName,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PushedFiles {
    pub home: i64,
    pub files: Vec<ExchangeFile>,
}

/// What is missing, and nothing was taken; or what became of the files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PushedAnswer {
    #[serde(default)]
    pub missing: Vec<ContentHash>,
    #[serde(default)]
    pub new_files: u64,
    #[serde(default)]
    pub changed_files: u64,
    #[serde(default)]
    pub unchanged_files: u64,
    #[serde(default)]
    pub forgotten_files: u64,
}

impl PushedAnswer {
    pub fn of(received: &ReceivedFiles) -> PushedAnswer {
        PushedAnswer {
            missing: Vec::new(),
            new_files: received.new_files,
            changed_files: received.changed_files,
            unchanged_files: received.unchanged_files,
            forgotten_files: received.forgotten_files,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PulledFiles {
    pub home: i64,
    /// The path of the last file that is known.
    pub after: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PulledAnswer {
    pub files: Vec<ExchangeFile>,
    /// Where to go on; none at the end.
    pub after: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PulledBlobs {
    pub hashes: Vec<ContentHash>,
}

/// Versions of arrangements, as records.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Arrangements {
    #[serde(default)]
    pub versions: Vec<Value>,
    /// Where to go on, in an answer.
    #[serde(default)]
    pub after: Option<i64>,
    #[serde(default)]
    pub new: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ArrangementsAfter {
    pub commit: i64,
    pub after: i64,
}

/// A version of an arrangement as a record has it.
pub fn arrangement_record(version: &Arrangement) -> Value {
    json!({
        "kind": version.of.kind.name(),
        "source": version.of.source,
        "target": version.of.target,
        "message_id": version.of.message,
        "field": version.field.name(),
        "tag": version.item,
        "value": version.value,
        "at": version.at.rfc3339(),
    })
}

/// Writes a blob: hash, packing, length, base of a difference, length of the data, data. Numbers are little-endian.
pub fn write_frame(blob: &PackedBlob, out: &mut Vec<u8>) {
    out.extend(blob.hash.0);
    out.push(blob.packing);
    out.extend(blob.length.to_le_bytes());
    if let Some(base) = &blob.base {
        out.extend(base.0);
    }
    out.extend((blob.data.len() as u32).to_le_bytes());
    out.extend(&blob.data);
}

/// Reads the next blob; none at the end.
pub fn read_frame(input: &mut &[u8]) -> Result<Option<PackedBlob>> {
    if input.is_empty() {
        return Ok(None);
    }
    let cut = |_| Error::bad_request("a frame is cut off");
    let hash = array::<32>(input).map_err(cut)?;
    let [packing] = array::<1>(input).map_err(cut)?;
    let length = u32::from_le_bytes(array(input).map_err(cut)?);
    let base = if packing == 2 { Some(ContentHash(array(input).map_err(cut)?)) } else { None };
    let size = u32::from_le_bytes(array(input).map_err(cut)?) as usize;
    // Nothing that was packed is longer than its bytes.
    if size > SEGMENT || size > input.len() {
        return Err(Error::bad_request(format!("a frame of {size} bytes is too long or cut off")));
    }
    let (data, rest) = input.split_at(size);
    *input = rest;
    Ok(Some(PackedBlob { hash: ContentHash(hash), length, packing, base, data: data.to_vec() }))
}

fn array<const N: usize>(input: &mut &[u8]) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_cut_ones_are_refused() {
        let hash = ContentHash([3; 32]);
        let plain = PackedBlob { hash, length: 4, packing: 0, base: None, data: b"abcd".to_vec() };
        let difference = PackedBlob { packing: 2, base: Some(ContentHash([4; 32])), ..plain.clone() };
        let mut bytes = Vec::new();
        write_frame(&plain, &mut bytes);
        let one = bytes.len();
        write_frame(&difference, &mut bytes);
        let mut input = bytes.as_slice();
        assert_eq!(read_frame(&mut input).unwrap(), Some(plain));
        assert_eq!(read_frame(&mut input).unwrap(), Some(difference));
        assert_eq!(read_frame(&mut input).unwrap(), None);
        for end in 1..one {
            assert!(read_frame(&mut &bytes[..end]).unwrap_err().is_bad_request(), "{end}");
        }
    }
}
