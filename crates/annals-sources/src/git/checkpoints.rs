//! Checkpoints of Entire: a tree with a directory for each checkpoint, `<id[..2]>/<id[2..]>/`, or one ref for each. In
//! it, `<number>/` is a session with `metadata.json` and `full.jsonl`, the client's transcript so far; long ones continue
//! in `full.jsonl.001` and so on. Sub-agents are in `tasks/<call>/agent-<id>.jsonl`.

use std::collections::BTreeMap;

/// The branch with all checkpoints, below `refs/heads/` and below `refs/remotes/<remote>/`.
pub const CHECKPOINT_BRANCH: &str = "entire/checkpoints/v1";
/// Refs of single checkpoints.
pub const CHECKPOINT_REFS: &str = "refs/entire/checkpoints/";

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub blob: String,
    pub size: u64,
    pub path: String,
}

/// A transcript, in one blob or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTranscript {
    /// The path of its first part.
    pub path: String,
    pub blobs: Vec<String>,
    pub size: u64,
    /// The checkpoint that it is part of: the directories above its session.
    pub checkpoint: String,
    /// The blob with what Entire knows about the session.
    pub metadata: Option<String>,
}

/// The transcripts of a tree, in order of their paths.
pub fn transcripts_in(entries: &[TreeEntry]) -> Vec<StoredTranscript> {
    let mut transcripts: BTreeMap<&str, Vec<(&str, &TreeEntry)>> = BTreeMap::new();
    for entry in entries {
        let (folder, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
        let part = match name.strip_prefix("full.jsonl") {
            Some("") => Some((&entry.path[..], "")),
            // Parts are numbered with three digits.
            Some(rest) => rest
                .strip_prefix('.')
                .filter(|number| number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
                .map(|number| (&entry.path[..entry.path.len() - 4], number)),
            None => None,
        };
        let is_agent = folder.contains("tasks/") && name.starts_with("agent-") && name.ends_with(".jsonl");
        let part = part.or_else(|| is_agent.then_some((&entry.path[..], "")));
        if let Some((path, number)) = part {
            transcripts.entry(path).or_default().push((number, entry));
        }
    }
    let metadata = |path: &str| {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path =
            if folder.is_empty() { "metadata.json".to_owned() } else { format!("{folder}/metadata.json") };
        entries.iter().find(|entry| entry.path == path).map(|entry| entry.blob.clone())
    };
    transcripts
        .into_iter()
        .map(|(path, mut parts)| {
            parts.sort_unstable_by_key(|(number, _)| *number);
            StoredTranscript {
                path: path.to_owned(),
                blobs: parts.iter().map(|(_, entry)| entry.blob.clone()).collect(),
                size: parts.iter().map(|(_, entry)| entry.size).sum(),
                checkpoint: checkpoint_of(path),
                metadata: metadata(path),
            }
        })
        .collect()
}

/// Where a ref has the metadata of a session of a checkpoint, as git names it; `None` if it has another checkpoint.
pub fn metadata_place(reference: &str, checkpoint: &str, session: usize) -> Option<String> {
    if checkpoint.len() < 3 || !checkpoint.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    if reference.starts_with(CHECKPOINT_REFS) {
        let own = reference.rsplit('/').next() == Some(checkpoint);
        return own.then(|| format!("{reference}:{session}/metadata.json"));
    }
    Some(format!("{reference}:{}/{}/{session}/metadata.json", &checkpoint[..2], &checkpoint[2..]))
}

/// The session that metadata is about, and whether it changed this file.
pub fn read_metadata(text: &str, file: &str) -> Option<(String, bool)> {
    let metadata: serde_json::Value = serde_json::from_str(text).ok()?;
    let touched = metadata["files_touched"].as_array();
    let touched = touched.is_some_and(|files| files.iter().any(|touched| touched == file));
    Some((metadata["session_id"].as_str()?.to_owned(), touched))
}

/// `ab/cdef0123/0/full.jsonl` is part of `abcdef0123`.
fn checkpoint_of(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(start), Some(rest), Some(_)) if start.len() == 2 => format!("{start}{rest}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> TreeEntry {
        TreeEntry { blob: format!("blob of {path}"), size: 1, path: path.to_owned() }
    }

    #[test]
    fn metadata_is_beside_transcripts() {
        let branch = "refs/heads/entire/checkpoints/v1";
        let place = metadata_place(branch, "abcdef012345", 1);
        assert_eq!(place.as_deref(), Some("refs/heads/entire/checkpoints/v1:ab/cdef012345/1/metadata.json"));
        let own = "refs/entire/checkpoints/ab/abcdef012345";
        let place = metadata_place(own, "abcdef012345", 0).unwrap();
        assert_eq!(place, format!("{own}:0/metadata.json"));
        assert_eq!(metadata_place(own, "ffffff012345", 0), None);
        assert_eq!(metadata_place(branch, "ab/../cd", 0), None);
        let text = r#"{"session_id": "one", "files_touched": ["src/a.rs"]}"#;
        assert_eq!(read_metadata(text, "src/a.rs"), Some(("one".into(), true)));
        assert_eq!(read_metadata(text, "src/b.rs"), Some(("one".into(), false)));
    }

    #[test]
    fn parts_of_a_transcript_belong_together() {
        let entries: Vec<TreeEntry> = [
            "ab/cdef012345/metadata.json",
            "ab/cdef012345/0/full.jsonl.001",
            "ab/cdef012345/0/full.jsonl",
            "ab/cdef012345/0/metadata.json",
            "ab/cdef012345/0/prompt.txt",
            "ab/cdef012345/0/transcript.jsonl",
            "ab/cdef012345/1/full.jsonl",
            "ab/cdef012345/tasks/toolu_1/agent-a1.jsonl",
            "ab/cdef012345/tasks/toolu_1/task.json",
        ]
        .map(entry)
        .to_vec();
        let found = transcripts_in(&entries);
        let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "ab/cdef012345/0/full.jsonl",
                "ab/cdef012345/1/full.jsonl",
                "ab/cdef012345/tasks/toolu_1/agent-a1.jsonl"
            ]
        );
        assert_eq!(found[0].blobs.len(), 2);
        assert!(found[0].blobs[1].ends_with(".001"));
        assert_eq!(found[0].checkpoint, "abcdef012345");
        assert!(found[0].metadata.is_some() && found[1].metadata.is_none());
    }
}
