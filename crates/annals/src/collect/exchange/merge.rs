//! Two lists of versions of one file become one: nothing twice, nothing lost, in the order in which they were captured.

use annals_core::Result;
use annals_store::{ContentHash, ExchangeFile, ExchangeVersion, SEGMENT, Store};

/// What a file is after it was merged with the same file from elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    pub file: ExchangeFile,
    pub change: VersionChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionChange {
    /// Nothing is new.
    Same,
    /// Only what is said about versions from this one on.
    Metadata { from: i64 },
    /// The newest version has more at its end.
    Grown { version: i64 },
    /// Versions from this one on are new or longer.
    Versions { from: i64 },
    /// Both have versions that the other does not have: they have other numbers now.
    Interleaved,
}

/// Bytes of blobs, where hashes do not decide.
pub trait Bytes {
    fn of(&self, hash: &ContentHash) -> Result<Vec<u8>>;
}

impl Bytes for Store {
    fn of(&self, hash: &ContentHash) -> Result<Vec<u8>> {
        Ok(self.blob_bytes(hash)?)
    }
}

pub fn merge(ours: &ExchangeFile, theirs: &ExchangeFile, bytes: &dyn Bytes) -> Result<Merged> {
    if let Some(change) = continues(ours, theirs, bytes)? {
        let mut file = theirs.clone();
        file.captures = both(&ours.captures, &theirs.captures);
        file.first_seen = ours.first_seen.min(theirs.first_seen);
        file.path.clone_from(&ours.path);
        return Ok(Merged { file, change });
    }
    if continues(theirs, ours, bytes)?.is_some() {
        return Ok(Merged { file: ours.clone(), change: VersionChange::Same });
    }
    interleave(ours, theirs, bytes)
}

/// How `later` differs from `earlier`, if it only continues where that ends.
fn continues(
    earlier: &ExchangeFile,
    later: &ExchangeFile,
    bytes: &dyn Bytes,
) -> Result<Option<VersionChange>> {
    let count = earlier.versions.len();
    if count > later.versions.len() {
        return Ok(None);
    }
    let mut from = None;
    let mut is_longer = false;
    for (number, (before, after)) in earlier.versions.iter().zip(&later.versions).enumerate() {
        let is_same = before.segments == after.segments;
        is_longer |= !is_same;
        if before.version != after.version
            || !is_same && (number + 1 < count || !is_prefix(before, after, bytes)?)
        {
            return Ok(None);
        }
        if from.is_none() && before != after {
            from = Some(after.version);
        }
    }
    let added = later.versions.get(count).map(|version| version.version);
    Ok(Some(match (from, added) {
        (Some(version), None) if is_longer => VersionChange::Grown { version },
        (Some(from), Some(_)) => VersionChange::Versions { from },
        (None, Some(from)) => VersionChange::Versions { from },
        (Some(from), None) => VersionChange::Metadata { from },
        (None, None) if is_described_alike(earlier, later) => VersionChange::Same,
        (None, None) => VersionChange::Metadata { from: i64::MAX },
    }))
}

fn is_described_alike(one: &ExchangeFile, other: &ExchangeFile) -> bool {
    (&one.owner, one.rows_version, one.gone_at, one.mode, &one.captures)
        == (&other.owner, other.rows_version, other.gone_at, other.mode, &other.captures)
}

fn interleave(ours: &ExchangeFile, theirs: &ExchangeFile, bytes: &dyn Bytes) -> Result<Merged> {
    let mut versions = ours.versions.clone();
    let mut changed = false;
    for version in &theirs.versions {
        let mut place = Some(versions.len());
        for (at, known) in versions.iter().enumerate() {
            if is_prefix(version, known, bytes)? {
                place = None;
                break;
            }
            if known.size > 0 && is_prefix(known, version, bytes)? {
                place = Some(at);
            }
        }
        match place {
            None => continue,
            Some(at) if at < versions.len() => versions[at] = version.clone(),
            Some(_) => versions.push(version.clone()),
        }
        changed = true;
    }
    let mut file = ours.clone();
    file.captures = both(&ours.captures, &theirs.captures);
    if !changed {
        let change = if file.captures == ours.captures {
            VersionChange::Same
        } else {
            VersionChange::Metadata { from: i64::MAX }
        };
        return Ok(Merged { file, change });
    }
    versions.sort_by_key(|version| version.captured_at);
    if versions.last().is_some_and(|newest| theirs.versions.last().is_some_and(|theirs| theirs == newest)) {
        (file.gone_at, file.mode) = (theirs.gone_at, theirs.mode.or(ours.mode));
    }
    for (number, version) in versions.iter_mut().enumerate() {
        version.version = number as i64 + 1;
    }
    file.rows_version = versions.len() as i64;
    file.first_seen = ours.first_seen.min(theirs.first_seen);
    file.versions = versions;
    Ok(Merged { file, change: VersionChange::Interleaved })
}

/// Whether a version starts with all bytes of another one.
fn is_prefix(short: &ExchangeVersion, long: &ExchangeVersion, bytes: &dyn Bytes) -> Result<bool> {
    if short.size > long.size {
        return Ok(false);
    }
    let Some(last) = short.segments.len().checked_sub(1) else { return Ok(true) };
    if short.segments[..last] != long.segments[..last] {
        return Ok(false);
    }
    let length = short.size - (last * SEGMENT) as u64;
    let (mine, theirs) = (short.segments[last], long.segments[last]);
    if mine == theirs {
        return Ok(true);
    }
    if length == SEGMENT as u64 || length == long.size - (last * SEGMENT) as u64 {
        return Ok(false);
    }
    let there = bytes.of(&theirs)?;
    Ok(there.get(..length as usize).is_some_and(|start| ContentHash::of(start) == mine))
}

fn both(ours: &[String], theirs: &[String]) -> Vec<String> {
    let mut all = [ours, theirs].concat();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_store::OwnerName;
    use std::cell::RefCell;
    use std::collections::HashMap;

    #[derive(Default)]
    struct Contents(RefCell<HashMap<ContentHash, Vec<u8>>>);

    impl Bytes for Contents {
        fn of(&self, hash: &ContentHash) -> Result<Vec<u8>> {
            Ok(self.0.borrow()[hash].clone())
        }
    }

    impl Contents {
        fn file(&self, versions: &[(&str, i64)]) -> ExchangeFile {
            let versions = versions.iter().enumerate().map(|(number, (text, at))| {
                let hash = ContentHash::of(text.as_bytes());
                self.0.borrow_mut().insert(hash, text.as_bytes().to_vec());
                ExchangeVersion {
                    version: number as i64 + 1,
                    size: text.len() as u64,
                    modified: None,
                    captured_at: *at,
                    gone_at: None,
                    segments: if text.is_empty() { Vec::new() } else { vec![hash] },
                }
            });
            let versions: Vec<_> = versions.collect();
            ExchangeFile {
                path: "a".into(),
                logical_path: "a".into(),
                store: "s".into(),
                reader: "r".into(),
                framing: "lines".into(),
                encoding: "plain".into(),
                document: false,
                mutable: false,
                owner: OwnerName::This,
                rows_version: versions.len() as i64,
                first_seen: 0,
                gone_at: None,
                mode: None,
                captures: Vec::new(),
                versions,
            }
        }

        fn text(&self, file: &ExchangeFile) -> Vec<String> {
            let text = |version: &ExchangeVersion| {
                let bytes = version.segments.first().map(|hash| self.0.borrow()[hash].clone());
                String::from_utf8(bytes.unwrap_or_default()).unwrap()
            };
            file.versions.iter().map(text).collect()
        }
    }

    type Versions<'a> = &'a [(&'a str, i64)];

    #[test]
    fn nothing_is_lost_and_nothing_is_there_twice() {
        let cases: &[(Versions<'_>, Versions<'_>, VersionChange, &[&str])] = &[
            (&[("ab", 1)], &[("ab", 1)], VersionChange::Same, &["ab"]),
            (&[("ab", 1)], &[("abc", 1)], VersionChange::Grown { version: 1 }, &["abc"]),
            (&[("abc", 1)], &[("ab", 1)], VersionChange::Same, &["abc"]),
            (&[("ab", 1)], &[("ab", 1), ("x", 2)], VersionChange::Versions { from: 2 }, &["ab", "x"]),
            (&[("ab", 1)], &[("abc", 1), ("x", 2)], VersionChange::Versions { from: 1 }, &["abc", "x"]),
            // A file that was truncated stays truncated.
            (&[("ab", 1)], &[("ab", 1), ("a", 2)], VersionChange::Versions { from: 2 }, &["ab", "a"]),
            (&[("ab", 1), ("x", 2)], &[("ab", 1)], VersionChange::Same, &["ab", "x"]),
            // Two archives that captured one home at different times.
            (&[("ab", 1), ("x", 3)], &[("abc", 1), ("y", 2)], VersionChange::Interleaved, &["abc", "y", "x"]),
            (&[("x", 3)], &[("ab", 1), ("xy", 4)], VersionChange::Interleaved, &["ab", "xy"]),
            (&[("ab", 1), ("x", 3)], &[("x", 3)], VersionChange::Same, &["ab", "x"]),
            (&[("", 1)], &[("ab", 2)], VersionChange::Grown { version: 1 }, &["ab"]),
        ];
        for (ours, theirs, change, expected) in cases {
            let contents = Contents::default();
            let (ours, theirs) = (contents.file(ours), contents.file(theirs));
            let merged = merge(&ours, &theirs, &contents).unwrap();
            assert_eq!(
                (merged.change, contents.text(&merged.file)),
                (*change, expected.iter().map(|text| (*text).to_owned()).collect()),
                "{ours:?} {theirs:?}"
            );
            let again = merge(&merged.file, &theirs, &contents).unwrap();
            assert_eq!(contents.text(&again.file), *expected, "again");
        }
    }
}
