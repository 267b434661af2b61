//! Captures that failed as a whole: what was not captured, and since when, remembered for everyone who asks later.

use super::home::plan::{Compared, plan};
use super::home::walk::{Detail, HomeState, Rules, survey};
use super::options::Environment;
use super::sync::survey_homes;
use annals_core::{Error, InstanceId, Result};
use annals_sources::{REPOSITORIES, registry};
use annals_store::{CaptureFailure, Store, forget_failure, remember_failure, remembered_failure};

/// Files listed by name; all are counted.
const LISTED: usize = 20;

/// Remembers that nothing could be captured. A failure continues the one before it.
pub fn note_failure(environment: &Environment<'_>, error: &Error) -> CaptureFailure {
    let before = remembered_failure(environment.data_dir);
    let since = before.as_ref().map_or_else(environment.now, |before| before.since);
    // What cannot even be listed is not captured either.
    let mut files = uncaptured_files(environment).unwrap_or_default();
    let file_count = files.len() as u64;
    files.truncate(LISTED);
    let what = error.what_of_archive(&environment.data_dir.join("annals.db"));
    let failure = CaptureFailure { since, what, hint: error.hint.clone(), files, file_count };
    // Where nothing can be written at all, the server that reports it has it in memory.
    if before.as_ref() != Some(&failure)
        && let Err(error) = remember_failure(environment.data_dir, &failure)
    {
        tracing::debug!("cannot remember the failure: {error}");
    }
    failure
}

/// A capture succeeded: whatever failed before is over.
pub fn note_success(environment: &Environment<'_>) {
    match forget_failure(environment.data_dir) {
        Ok(_) => {}
        Err(error) => tracing::warn!("cannot forget the failure before: {error}"),
    }
}

/// Files that are on disk and are not in the archive as they are now, in the order of their paths.
fn uncaptured_files(environment: &Environment<'_>) -> Result<Vec<String>> {
    // An archive that cannot be read has nothing.
    let store = Store::open_to_read(environment.data_dir).ok().flatten();
    let mut files = Vec::new();
    for source in registry() {
        let homes = survey_homes(*source, environment.settings);
        for (home, _) in homes.into_iter().filter(|(_, state)| *state == HomeState::Available) {
            let mut survey = survey(&home, &Rules::of(source.manifest()), Detail::Names)?;
            let root = home.root.canonicalize().unwrap_or_else(|_| home.root.clone());
            let mut captured = Vec::new();
            if let Some(store) = &store {
                let name = root.to_string_lossy();
                let known = store.known_instance(source.manifest().source, &environment.machine, &name)?;
                captured =
                    known.map(|instance| store.captured_files(instance)).transpose()?.unwrap_or_default();
            }
            captured.retain(|file| !file.path.starts_with(REPOSITORIES));
            let names = store.as_ref().map(Store::forgotten_names).transpose()?.unwrap_or_default();
            let compared = Compared { captured, names };
            let plan = plan(InstanceId::default(), *source, &mut survey, compared, None, false);
            files.extend(
                plan.jobs.iter().map(|job| root.join(&job.found.path).to_string_lossy().into_owned()),
            );
        }
    }
    files.sort();
    Ok(files)
}
