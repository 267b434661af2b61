//! Projects that are excluded in the settings, and everything of theirs elsewhere in the home.

use std::collections::HashSet;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::walk::{LeftOut, Survey, WalkedFile, join};
use crate::collect::ingest::blank::each_line;
use crate::collect::ingest::capture::open;
use annals_core::{Error, Result};
use annals_sources::{Choice, SharedEntry};

/// The store and the reason of what the settings exclude.
pub const EXCLUDED: (&str, &str) = ("settings", "excluded in the settings");
const EXCLUDED_LINES: &str = "lines of projects that are excluded in the settings";
const UNREFERENCED: &str = "no prompt of a project that is included in the settings refers to it";

/// The compiled patterns of a choice of folders.
#[derive(Debug)]
pub struct Chosen {
    choice: Choice,
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Chosen {
    pub fn of(choice: &Choice) -> Result<Chosen> {
        let set = |patterns: &[String]| -> Result<GlobSet> {
            let mut builder = GlobSetBuilder::new();
            for pattern in patterns {
                let glob = GlobBuilder::new(&(choice.folder_pattern)(pattern)).build().map_err(|error| {
                    Error::new(format!("invalid pattern {pattern:?}: {error}"))
                        .hint("use a pattern such as *-work or api-*")
                })?;
                builder.add(glob);
            }
            builder.build().map_err(|error| Error::new(error.to_string()))
        };
        let include = if choice.include.is_empty() { None } else { Some(set(&choice.include)?) };
        Ok(Chosen { include, exclude: set(&choice.exclude)?, choice: choice.clone() })
    }

    /// Equal while the settings stay the same.
    pub fn fingerprint(choice: Option<&Choice>) -> String {
        choice.map_or_else(String::new, |choice| format!("{:?} {:?}", choice.include, choice.exclude))
    }

    /// False for a folder that is excluded in the settings.
    pub fn includes(&self, path: &str) -> bool {
        let name = path.strip_prefix(self.choice.below).and_then(|rest| rest.strip_prefix('/'));
        name.filter(|name| !name.contains('/')).is_none_or(|name| self.includes_folder(name))
    }

    fn includes_folder(&self, name: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(name)) && !self.exclude.is_match(name)
    }

    /// True for a file with lines of every project.
    pub fn shares(&self, path: &str) -> bool {
        path == self.choice.shared.path
    }

    /// Whether a line of the shared file may be archived: none of its entries is of an excluded project.
    pub fn includes_line(&self, line: &[u8]) -> bool {
        let entries = (self.choice.shared.entries)(line);
        entries.iter().all(|entry| self.includes_folder(&entry.folder))
    }

    pub fn unmatched_patterns(&self, survey: &Survey) -> Vec<String> {
        let choice = &self.choice;
        let below = |path: &str| path.strip_prefix(choice.below)?.strip_prefix('/').map(str::to_owned);
        let found = survey.found.iter().map(|found| found.path.as_str());
        let paths = found.chain(survey.left_out.iter().map(|left| left.path.as_str()));
        let mut names: Vec<String> = paths.filter_map(below).collect();
        names.iter_mut().for_each(|name| name.truncate(name.find('/').unwrap_or(name.len())));
        names.sort();
        names.dedup();
        let matches = |pattern: &String| {
            let glob = GlobBuilder::new(&(choice.folder_pattern)(pattern)).build();
            glob.is_ok_and(|glob| {
                let glob = glob.compile_matcher();
                names.iter().any(|name| glob.is_match(name))
            })
        };
        choice.include.iter().chain(&choice.exclude).filter(|pattern| !matches(pattern)).cloned().collect()
    }

    /// Also leaves out files elsewhere in the home that belong to excluded projects.
    pub fn leave_excluded(&self, prefix: &str, root: &Path, survey: &mut Survey) {
        let (below, session_of) = (self.choice.below, self.choice.session_of);
        let is_below = |path: &str| path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
        let (mut excluded, mut transcripts) = (HashSet::new(), Vec::new());
        for left in survey.left_out.iter().filter(|left| !self.includes(&left.path)) {
            let within_root = left.path.strip_prefix(prefix).unwrap_or(&left.path).trim_start_matches('/');
            for entry in std::fs::read_dir(root.join(within_root)).into_iter().flatten().flatten() {
                let path = join(&left.path, &entry.file_name());
                let Some(session) = session_of(&path) else { continue };
                excluded.insert(session.to_owned());
                if path.ends_with(".jsonl") {
                    transcripts.push((session.to_owned(), entry.path()));
                }
            }
        }
        let shared = survey.found.iter().find(|found| self.shares(&found.path));
        // A file that cannot be read now becomes a gap when it is captured.
        let shared = shared.and_then(|found| self.survey_shared(found).ok()).unwrap_or_default();
        excluded.extend(shared.excluded);
        // A session that continued in another project is also that project's.
        for found in survey.found.iter().filter(|found| is_below(&found.path)) {
            session_of(&found.path).map(|session| excluded.remove(session));
        }
        for session in &shared.included {
            excluded.remove(session);
        }
        transcripts.retain(|(session, _)| excluded.contains(session));
        let names = self.survey_names(survey, &transcripts);
        let left_out = &mut survey.left_out;
        if shared.has_excluded {
            // Its bytes are counted with the file, as blank lines.
            let (path, store) = (self.choice.shared.path.to_owned(), EXCLUDED.0);
            left_out.push(LeftOut { path, store, why: EXCLUDED_LINES, files: 0, bytes: 0 });
        }
        survey.found.retain(|found| {
            let session = session_of(&found.path).filter(|_| !is_below(&found.path));
            let name = (self.choice.named.in_path)(&found.path);
            let is_excluded = session.is_some_and(|session| excluded.contains(session))
                || name.is_some_and(|name| names.contains(name));
            let is_content = found.path.strip_prefix(self.choice.shared.content);
            let is_unreferenced =
                is_content.is_some_and(|rest| rest.starts_with('/')) && !shared.content.contains(&found.path);
            let stays = !is_excluded && !is_unreferenced;
            if !stays {
                let (store, why) = (EXCLUDED.0, if is_unreferenced { UNREFERENCED } else { EXCLUDED.1 });
                left_out.push(LeftOut { path: found.path.clone(), store, why, files: 1, bytes: found.size });
            }
            stays
        });
    }

    /// The names of files that these transcripts have. They are read only where there are such files.
    fn survey_names(&self, survey: &Survey, transcripts: &[(String, PathBuf)]) -> HashSet<String> {
        let (mut names, named) = (HashSet::new(), self.choice.named);
        if !survey.found.iter().any(|found| (named.in_path)(&found.path).is_some()) {
            return names;
        }
        for (_, path) in transcripts {
            // What cannot be read is not there for anybody else either.
            let Ok(file) = open(path) else { continue };
            let _ = each_line(&mut BufReader::new(file), |_, line| {
                names.extend(line.and_then(named.in_line));
            });
        }
        names
    }

    fn survey_shared(&self, found: &WalkedFile) -> io::Result<SharedSurvey> {
        let mut survey = SharedSurvey::default();
        each_line(&mut BufReader::new(open(&found.disk)?), |_, line| {
            let entries = line.map(self.choice.shared.entries).unwrap_or_default();
            let is_included = |entry: &SharedEntry| self.includes_folder(&entry.folder);
            survey.has_excluded |= line.is_none() || !entries.iter().all(is_included);
            for entry in entries {
                if is_included(&entry) {
                    survey.included.extend(entry.session);
                    survey.content.extend(entry.content);
                } else {
                    survey.excluded.extend(entry.session);
                }
            }
        })?;
        Ok(survey)
    }
}

/// What the lines of a shared file say about the rest of the home.
#[derive(Default)]
struct SharedSurvey {
    /// Sessions of included and of excluded projects.
    included: HashSet<String>,
    excluded: HashSet<String>,
    /// Files that lines of included projects refer to.
    content: HashSet<String>,
    /// Some lines are of excluded projects.
    has_excluded: bool,
}
