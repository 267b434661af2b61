//! A made-up repository with its commits, and sessions that quote its lines later.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::Value;

use super::transcripts::{Transcript, moment};
use super::{Author, LineagePlan, Making, Random, Score};
use crate::git::Repository;

/// How long after its last edit a session's work is committed, in minutes.
const UNTIL_COMMIT: i64 = 30;

/// The repository at a commit.
pub struct State {
    pub commit: String,
    pub at: String,
    pub files: BTreeMap<String, Vec<Author>>,
}

/// Writes the clients' homes and the repository, committed after each session; the states to check are every fifth
/// commit and the last. At the end come sessions that write notes full of lines from all over the repository.
pub fn write_dated_world(folder: &Path, plan: &LineagePlan) -> io::Result<(Repository, Vec<State>)> {
    fs::create_dir_all(folder.join("repo"))?;
    let repository = Repository::create(&folder.join("repo").canonicalize()?);
    let mut world = Making {
        random: Random(plan.seed | 1),
        repository: repository.folder.clone(),
        files: BTreeMap::new(),
        minute: 0,
        number: 0,
    };
    let mut states = Vec::new();
    for session in 0..plan.sessions {
        let mut transcript = Transcript::new(session, &repository.folder);
        for _ in 0..plan.edits {
            world.agent_edit(&mut transcript);
        }
        transcript.write(folder)?;
        for _ in 0..plan.edits / 2 {
            world.human_edit();
        }
        let last = session + 1 == plan.sessions;
        let state = world.commit(&repository)?;
        if last || session % 5 == 4 {
            states.push(state);
        }
    }
    for session in plan.sessions..plan.sessions + plan.sessions / 2 {
        let mut transcript = Transcript::new(session, &repository.folder);
        for _ in 0..plan.edits / 2 {
            world.quote(&mut transcript);
        }
        transcript.write(folder)?;
    }
    Ok((repository, states))
}

impl Making {
    fn commit(&mut self, repository: &Repository) -> io::Result<State> {
        self.minute += UNTIL_COMMIT;
        for entry in fs::read_dir(&repository.folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with(".git") {
                fs::remove_dir_all(path)?;
            }
        }
        self.write_files()?;
        let at = moment(self.minute);
        let commit = repository.commit("README", &format!("{}\n", self.minute), &at);
        self.minute += UNTIL_COMMIT;
        Ok(State { commit, at, files: self.authors() })
    }

    /// A session writes a note with lines of a file, or the same file once more without a change.
    fn quote(&mut self, transcript: &mut Transcript) {
        self.minute += 1;
        self.number += 1;
        let Some(path) = self.some_file() else { return };
        let lines: Vec<String> = self.files[&path].iter().map(|line| line.text.clone()).collect();
        let call = format!("call_{:05}", self.number);
        if self.random.chance(30) {
            transcript.create(&self.repository.join(&path), &lines, &call, self.minute);
            return;
        }
        let start = self.random.below(lines.len());
        let end = (start + 3 + self.random.below(25)).min(lines.len());
        let note = self.repository.join(format!("notes/{}.md", self.number));
        transcript.create(&note, &lines[start..end], &call, self.minute);
    }
}

impl State {
    /// Adds what `annals blame --json` says about a file of this state.
    pub fn score(&self, path: &str, blame: &Value, score: &mut Score) {
        score.add(&self.files[path], blame);
        for span in blame["spans"].as_array().into_iter().flatten() {
            let origin = span["origin"].as_u64().map(|origin| &blame["origins"][origin as usize]);
            let at = origin.filter(|_| span["grade"] != "read").and_then(|origin| origin["at"].as_str());
            if at.is_some_and(|at| at > self.at.as_str()) {
                let (start, end) = (span["start"].as_u64().unwrap_or(1), span["end"].as_u64().unwrap_or(0));
                score.late += (end + 1 - start) as usize;
            }
        }
    }
}
