//! The cost of forgetting a third of an archive, compared with that of capturing it, and the space that it gives back.

use super::table::Row;
use super::{CODEX, Corpus, Outcome, Scratch, Settings, first_sync};

/// Of the CPU of capturing all of it.
const CPU_PERCENT: f64 = 100.0;
/// Of the archive: a little less than the third that is forgotten.
const REMAINING_PERCENT: f64 = 75.0;

pub fn rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let corpus = Corpus::write(scratch, &CODEX, "forget", settings.bytes, settings.files)?;
    let captured = first_sync(&corpus)?;
    let before = corpus.database_bytes() as f64;
    let listed = corpus
        .annals(&["sessions", "--all", "--json"])
        .output()
        .map_err(|error| format!("starting annals: {error}"))?;
    let listed: serde_json::Value =
        serde_json::from_slice(&listed.stdout).map_err(|error| format!("the sessions: {error}"))?;
    let sessions = listed["sessions"].as_array().ok_or("no sessions")?;
    let ids: Vec<&str> = sessions.iter().filter_map(|session| session["session_id"].as_str()).collect();
    // Every third one: of all ages, projects and formats.
    let third: Vec<&str> = ids.iter().step_by(3).copied().collect();
    let forgotten = corpus.run_measured(&[&["forget", "--yes", "--json"], third.as_slice()].concat())?;
    let after = corpus.database_bytes() as f64;
    let seconds = |milliseconds: f64| format!("{:.2} s", milliseconds / 1e3);
    let figures =
        format!("{} of {}", seconds(forgotten.cpu_milliseconds), seconds(captured.cpu_milliseconds));
    let sizes = format!("{:.0} of {:.0} MB", after / 1e6, before / 1e6);
    Ok(vec![
        Row::new(
            &format!("forgetting {} of {} sessions, CPU of capturing all", third.len(), ids.len()),
            "%",
            forgotten.cpu_milliseconds / captured.cpu_milliseconds * 100.0,
            Some(CPU_PERCENT),
            figures,
        ),
        Row::new("archive afterwards", "%", after / before * 100.0, Some(REMAINING_PERCENT), sizes),
        Row::new(
            "peak memory",
            "MB",
            forgotten.peak_bytes / 1e6,
            Some(super::PEAK_MEGABYTES),
            "-".to_owned(),
        ),
    ])
}
