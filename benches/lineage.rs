//! The lineage table: whether lines are traced to their authors, how long it takes, and what the index for it costs.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::table::Row;
use super::{
    CLAUDE, CODEX, Corpus, Outcome, SEED, Scratch, Settings, claude_home, cpu_of_children, first_sync, median,
};
use annals_testkit::clock;
use annals_testkit::corpora::generator::{Project, Random};
use annals_testkit::worlds::lineage::dated::write_dated_world;
use annals_testkit::worlds::lineage::{GRADES, LineagePlan, Score, write_world};

/// Lines of a large file.
const LINES: usize = 5_000;
const MOST_OF_SESSION: usize = 125;
const BY_HAND: &str = "    %n(%w.%n(), %d, %w_by_hand);";
const RUNS: usize = 7;

pub fn rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let mut rows = world_rows(scratch, settings)?;
    rows.extend(speed_rows(scratch, settings)?);
    Ok(rows)
}

/// Repositories whose every line has a known author.
fn world_rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let mut score = Score::default();
    let plan = match settings.smoke {
        true => LineagePlan { seed: 1, sessions: 10, edits: 10 },
        false => LineagePlan { seed: 1, sessions: 60, edits: 25 },
    };
    for seed in 1..=if settings.smoke { 1 } else { 4 } {
        let folder = scratch.0.join(format!("world-{seed}"));
        let world = write_world(&folder, &LineagePlan { seed, ..plan }).map_err(|error| error.to_string())?;
        let archive = folder.join("archive");
        annals(&folder, &archive, &["sync", "--json"])?;
        for (path, truth) in &world.files {
            let file = world.folder.join(path);
            let output = annals(
                &folder,
                &archive,
                &["blame", "--no-git", "--json", file.to_str().unwrap_or_default()],
            )?;
            score.add(truth, &output);
        }
    }
    let mut rows = Vec::new();
    for (grade, count) in GRADES.iter().zip(score.graded) {
        let what = format!("{grade}: precision over {} lines", count.all);
        rows.push(match *grade {
            "changed" => Row::new(&what, "", count.share(), None, "-".to_owned()),
            _ => Row::at_least(&what, count.share(), 0.99),
        });
    }
    let what = format!("exact and moved: recall over {} unmodified lines", score.unmodified.all);
    rows.push(Row::at_least(&what, score.unmodified.share(), 0.95));
    let what = format!("changed: recall over {} lines that people changed", score.tweaked.all);
    rows.push(Row::new(&what, "", score.tweaked.share(), None, "-".to_owned()));
    let given = (1.0 - score.human.share()) * 100.0;
    let what = format!("lines of people given to a session, of {}", score.human.all);
    rows.push(Row::new(&what, "%", given, Some(1.0), "-".to_owned()));
    rows.extend(dated_rows(scratch, plan)?);
    Ok(rows)
}

/// Old checkouts of a repository whose lines were quoted by later sessions.
fn dated_rows(scratch: &Scratch, plan: LineagePlan) -> Outcome<Vec<Row>> {
    let folder = scratch.0.join("dated-world");
    let (repository, states) = write_dated_world(&folder, &plan).map_err(|error| error.to_string())?;
    let archive = folder.join("archive");
    annals(&folder, &archive, &["sync", "--json"])?;
    let mut score = Score::default();
    for state in &states {
        for path in state.files.keys() {
            let file = repository.folder.join(path);
            // Git is asked in the file's directory, which may be gone.
            if file.parent().is_some_and(Path::is_dir) {
                let file = file.to_str().unwrap_or_default();
                let blame = annals(&folder, &archive, &["blame", "--json", "--at", &state.commit, file])?;
                state.score(path, &blame, &mut score);
            }
        }
    }
    let what = format!("old checkouts: exact and moved, recall over {} lines", score.unmodified.all);
    let late = format!("old checkouts: lines credited to a later edit, of {}", score.unmodified.all);
    Ok(vec![
        Row::at_least(&what, score.unmodified.share(), 0.95),
        Row::new(&late, "", score.late as f64, Some(0.0), "-".to_owned()),
    ])
}

/// Traces a file of 5,000 lines, taken from edits all over a full-size archive, and measures what the index adds.
fn speed_rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for client in [&CODEX, &CLAUDE] {
        let corpus = match client.name {
            "codex" => Corpus::write(scratch, client, "whole", settings.bytes, settings.files)?,
            _ => claude_home(scratch, settings)?.0,
        };
        if !corpus.archive.is_dir() {
            first_sync(&corpus)?;
        }
        let file = scratch.0.join(format!("{}-file.txt", client.name));
        let Gathered { lines, sessions } = gather(&corpus, &file)?;
        if lines < LINES && !settings.smoke {
            return Err(format!("all edits together wrote {lines} lines: too few"));
        }
        let path = file.to_str().unwrap_or_default();
        let (mut times, mut traced, cpu_before) = (Vec::new(), 0, cpu_of_children());
        for _ in 0..RUNS {
            let started = Instant::now();
            let output = run_json(corpus.annals(&["blame", "--no-git", "--json", path]))?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            let number = |name: &str| output["lines"][name].as_u64().unwrap_or(0);
            traced = number("exact") + number("moved");
        }
        let cpu =
            cpu_before.zip(cpu_of_children()).map(|(before, after)| (after - before).as_secs_f64() * 1e3);
        let floor = cpu.map_or_else(|| "-".to_owned(), |cpu| format!("CPU {:.0} ms", cpu / RUNS as f64));
        if traced * 10 < lines as u64 {
            return Err(format!("absurd: only {traced} of {lines} lines were traced"));
        }
        let what = format!("{}: blame of {lines} lines of {sessions} sessions, {traced} traced", client.name);
        rows.push(Row::new(&what, "ms", median(times), Some(300.0), floor));
        let audit = run_json(corpus.annals(&["audit", "--json"]))?;
        let bytes = audit["index"]["lineage_bytes"].as_f64().ok_or("no lineage_bytes in the audit")?;
        let what = format!("{}: lineage index, share of raw", client.name);
        rows.push(Row::new(&what, "%", bytes / corpus.bytes as f64 * 100.0, Some(4.0), "-".to_owned()));
    }
    Ok(rows)
}

/// The number of lines in the file, and the number of sessions they come from.
#[derive(Default)]
struct Gathered {
    lines: usize,
    sessions: usize,
}

/// Collects lines that calls wrote, from many sessions all over the archive, and a tenth as many human-written ones.
fn gather(corpus: &Corpus<'_>, file: &Path) -> Outcome<Gathered> {
    let sessions = run_json(corpus.annals(&["sessions", "--all", "--json"]))?;
    let ids: Vec<&str> = sessions["sessions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|session| session["session_id"].as_str())
        .collect();
    let step = (ids.len() / 120).max(1);
    let spread = (0..step).flat_map(|first| ids.iter().skip(first).step_by(step));
    let (person, mut random) = (Project::new(SEED, "/home/pat/code/orchard"), Random(SEED));
    let (mut lines, mut gathered): (Vec<String>, _) = (Vec::new(), Gathered::default());
    for id in spread {
        let output = corpus.annals(&["tape", id]).output().map_err(|error| error.to_string())?;
        let tape = String::from_utf8_lossy(&output.stdout);
        let mut written = Vec::new();
        for line in tape.lines().filter(|line| line.contains("\"code.edit\"")) {
            let event: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            written.extend(event["after_text"].as_str().unwrap_or_default().lines().map(str::to_owned));
        }
        written.truncate(MOST_OF_SESSION);
        gathered.sessions += usize::from(!written.is_empty());
        let by_hand = (0..written.len().div_ceil(10)).map(|_| person.text(&mut random, BY_HAND, 1));
        written.extend(by_hand.collect::<Vec<_>>());
        lines.append(&mut written);
        if lines.len() >= LINES {
            break;
        }
    }
    lines.truncate(LINES);
    gathered.lines = lines.len();
    std::fs::write(file, lines.join("\n") + "\n").map_err(|error| error.to_string())?;
    Ok(gathered)
}

fn annals(folder: &Path, archive: &Path, arguments: &[&str]) -> Outcome<Value> {
    let mut command = Command::new(annals_testkit::program());
    command.arg("--home").arg(archive).args(arguments).env_clear().env("HOME", folder.join("nobody"));
    command.env(CODEX.variable, folder.join("codex")).env(CLAUDE.variable, folder.join("claude"));
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    clock::set(&mut command);
    run_json(command)
}

/// The JSON output of a run; exit code 1, nothing found, is fine too.
fn run_json(mut command: Command) -> Outcome<Value> {
    let output = command.output().map_err(|error| format!("starting annals: {error}"))?;
    if output.status.code() > Some(1) || output.status.code().is_none() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}
