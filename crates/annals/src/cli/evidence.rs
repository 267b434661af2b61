//! What a repository itself says about who wrote the lines of a file: notes and trailers of their commits.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use super::git::{self, LineCommit};
use crate::view::{EvidenceKind, Statement};
use annals_sources::git::{
    AUTHORSHIP_NOTES, Attribution, Trailer, metadata_place, read_metadata, read_note, read_trailers,
};

/// Commits of one file whose notes and messages are read; those of most lines come first.
const MOST_COMMITS: usize = 500;
/// Sessions of one checkpoint.
const MOST_SESSIONS: usize = 16;

/// The statements about the lines of a file, and the one that each line refers to.
pub fn statements(top: &Path, commits: &[Option<LineCommit>]) -> (Vec<Statement>, Vec<Option<usize>>) {
    let mut lines_of: HashMap<&str, usize> = HashMap::new();
    let mut files: HashMap<&str, &str> = HashMap::new();
    for commit in commits.iter().flatten() {
        *lines_of.entry(&commit.hash).or_default() += 1;
        files.insert(&commit.hash, &commit.file);
    }
    let mut hashes: Vec<&str> = lines_of.keys().copied().collect();
    hashes.sort_unstable_by_key(|hash| (std::cmp::Reverse(lines_of[hash]), *hash));
    hashes.truncate(MOST_COMMITS);
    let listed = git::notes_of(top, AUTHORSHIP_NOTES);
    let notes: HashMap<&str, _> = hashes
        .iter()
        .filter_map(|hash| {
            let text = git::blob_text(top, listed.get(*hash)?)?;
            Some((*hash, read_note(&text)?))
        })
        .collect();
    let mut checkpoints = Checkpoints { top, refs: None };
    let trailers: HashMap<String, Vec<Attribution>> = git::messages_of(top, &hashes)
        .into_iter()
        .map(|(hash, message)| {
            let file = files.get(hash.as_str()).copied().unwrap_or_default();
            let authors = checkpoints.authors(read_trailers(&message), file);
            (hash, authors)
        })
        .collect();
    let mut numbers: HashMap<Statement, usize> = HashMap::new();
    let mut statements = Vec::new();
    let of_lines = commits.iter().map(|commit| {
        let commit = commit.as_ref()?;
        // A note names lines, a trailer only the commit.
        let (kind, who) = match notes.get(commit.hash.as_str()) {
            Some(note) => (EvidenceKind::Note, note.line(&commit.file, commit.line)?.clone()),
            None => (EvidenceKind::Trailer, trailers.get(&commit.hash)?.first()?.clone()),
        };
        let statement = Statement { kind, commit: commit.hash.clone(), who };
        let next = numbers.len();
        let number = *numbers.entry(statement.clone()).or_insert(next);
        if number == next {
            statements.push(statement);
        }
        Some(number)
    });
    let of_lines = of_lines.collect();
    (statements, of_lines)
}

/// Looks up the sessions of a checkpoint that a trailer names.
struct Checkpoints<'r> {
    top: &'r Path,
    refs: Option<Vec<String>>,
}

impl Checkpoints<'_> {
    /// Those who name a session come first, and among these those who changed the file.
    fn authors(&mut self, trailers: Vec<Trailer>, file: &str) -> Vec<Attribution> {
        let mut authors: Vec<(u8, Attribution)> = Vec::new();
        for trailer in trailers {
            match trailer {
                Trailer::Author(author) => {
                    authors.push((if author.session.is_some() { 1 } else { 3 }, author))
                }
                Trailer::Checkpoint(id) => authors.extend(self.sessions(&id, file)),
            }
        }
        authors.sort_by_key(|(rank, _)| *rank);
        authors.into_iter().map(|(_, author)| author).collect()
    }

    fn sessions(&mut self, checkpoint: &str, file: &str) -> Vec<(u8, Attribution)> {
        let top = self.top;
        let refs = self.refs.get_or_insert_with(|| git::checkpoint_refs(top));
        let mut sessions: BTreeSet<(u8, String)> = BTreeSet::new();
        for reference in refs {
            for number in 0..MOST_SESSIONS {
                let place = metadata_place(reference, checkpoint, number);
                let Some(text) = place.and_then(|place| git::blob_text(top, &place)) else { break };
                let read = read_metadata(&text, file);
                sessions.extend(read.map(|(session, touched)| (if touched { 0 } else { 2 }, session)));
            }
        }
        let author = |session| Attribution { session: Some(session), ..Attribution::default() };
        sessions.into_iter().map(|(rank, session)| (rank, author(session))).collect()
    }
}
