//! The command line: reads arguments, calls a verb, turns its answer into an exit code.

mod git;
mod live;
mod measure;
mod moments;
mod output;
mod progress;
mod settings;
mod tables;

mod audit;
mod blame;
mod connect;
mod connector;
mod doctor;
mod gaps;
mod import;
mod library;
mod manifest;
mod members;
mod rebuild;
mod record;
mod records;
mod restore;
mod search;
mod secrets;
mod serve;
mod sessions;
mod show;
mod sources;
mod sync;
mod tape;
mod tools;
mod up;
mod usage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};

use crate::config::Config;
pub use crate::config::now;
use crate::model::{Result, Scope};
use crate::store::Store;
use crate::view::Door;
use output::Output;

/// Keeps your whole history with AI assistants in one file you own, and answers questions about it.
#[derive(Parser)]
#[command(name = "annals", version, about, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Everything stays on this machine: no telemetry, no network unless you call `connect`, and nobody else \
                  may ask unless you say so. \
                        Secrets are masked in every answer; the archive keeps the bytes as they are."
)]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Args)]
struct Common {
    /// Folder of the archive [default: the platform's data folder; env: ANNALS_HOME]
    #[arg(long, value_name = "DIR", global = true)]
    home: Option<PathBuf>,
    /// Answer with one JSON document
    #[arg(long, global = true)]
    json: bool,
    /// No progress, no hints
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Say more on stderr: time, memory, every problem
    #[arg(long, short, global = true)]
    verbose: bool,
    /// Show secrets instead of masks (for the owner, at this machine)
    #[arg(long, global = true)]
    reveal: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Bring the archive up to date, show what it has, and serve it: the main job
    Up(up::Options),
    /// Answer over HTTP, and keep the archive current while it runs
    Serve(serve::Options),
    /// Capture what is new in the clients' homes
    Sync(sync::Options),
    /// Read exports and traces that you have: files, folders, zips
    Import(import::Options),
    /// Log in once in a browser of annals' own, so that `sync` can ask a provider for what is new
    Connect(connect::Options),
    /// Show each source: available, empty, or how to set it up
    Sources(sources::Options),
    /// List sessions, newest first
    Sessions(sessions::Options),
    /// Show one session's conversation
    Show(show::Options),
    /// Find words in everything that was said and done
    Search(search::Options),
    /// Tell one session's native lines as a tape, from a file or standard input
    Record(record::Options),
    /// Tell sessions of the archive as tapes: who read and changed which code when
    Tape(tape::Options),
    /// Say for each line of a file which session, prompt and call wrote it
    Blame(blame::Options),
    /// Print native records of a stream
    Records(records::Options),
    /// Count tools, files and commands
    Tools(tools::Options),
    /// Sum up tokens and cost, each response once
    Usage(usage::Options),
    /// List skills, prompts, rules, instructions and memory, with their versions
    Library(library::Options),
    /// Account for every file, byte and line: kept, left out, unknown, and why
    Audit(audit::Options),
    /// List where secrets appear, by their marks
    Secrets(secrets::Options),
    /// List what could not be had, why, and when it is tried again; `retry` tries now
    Gaps(gaps::Options),
    /// Say who else may ask, and give them tokens
    Members(members::Options),
    /// Check the archive, the homes and the disk, and say what to do
    Doctor(doctor::Options),
    /// Print what a source reads, keeps and never opens
    Manifest(manifest::Options),
    /// Write captured files back out, byte for byte
    Restore(restore::Options),
    /// Read all rows anew from the archived bytes
    Rebuild(rebuild::Options),
}

/// How a verb ended, when it did not fail.
pub enum Answer {
    Done,
    /// Nothing matched: exit code 1.
    Nothing,
    /// The owner has to do something first: exit code 2, after the answer.
    Stopped,
}

/// What every verb works with.
pub struct Desk {
    pub config: Arc<Config>,
    pub output: Output,
    pub scope: Scope,
    pub json: bool,
    pub quiet: bool,
    pub verbose: bool,
    reveal: bool,
}

impl Desk {
    /// The archive, or none when nothing was ever captured.
    pub fn archive(&self) -> Result<Option<Store>> {
        Store::open_existing(&self.config.home)
    }

    /// The archive, also one that has nothing in it yet.
    pub fn archive_or_new(&self) -> Result<Store> {
        Store::open(&self.config.home)
    }

    pub fn door(&self, store: &Store) -> Result<Door> {
        if self.reveal { Ok(Door::revealing(&self.scope)) } else { Door::masking(&self.scope, store) }
    }
}

/// The program: everything that `main` does.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let mut output = Output::new();
    let common = arguments.common;
    let config = match Config::load(common.home) {
        Ok(config) => config,
        Err(problem) => {
            output.problem(&problem, common.json);
            return ExitCode::from(2);
        }
    };
    output.colour(config.colour);
    let mut desk = Desk {
        config: Arc::new(config),
        output,
        scope: Scope::owner(),
        json: common.json,
        quiet: common.quiet,
        verbose: common.verbose,
        reveal: common.reveal,
    };
    let answer = match arguments.verb {
        Verb::Up(options) => up::run(&mut desk, &options),
        Verb::Serve(options) => serve::run(&mut desk, &options),
        Verb::Sync(options) => sync::run(&mut desk, &options),
        Verb::Import(options) => import::run(&mut desk, &options),
        Verb::Connect(options) => connect::run(&mut desk, &options),
        Verb::Sources(options) => sources::run(&mut desk, &options),
        Verb::Sessions(options) => sessions::run(&mut desk, &options),
        Verb::Show(options) => show::run(&mut desk, &options),
        Verb::Search(options) => search::run(&mut desk, &options),
        Verb::Record(options) => record::run(&mut desk, &options),
        Verb::Tape(options) => tape::run(&mut desk, &options),
        Verb::Blame(options) => blame::run(&mut desk, &options),
        Verb::Records(options) => records::run(&mut desk, &options),
        Verb::Tools(options) => tools::run(&mut desk, &options),
        Verb::Usage(options) => usage::run(&mut desk, &options),
        Verb::Library(options) => library::run(&mut desk, &options),
        Verb::Audit(options) => audit::run(&mut desk, &options),
        Verb::Secrets(options) => secrets::run(&mut desk, &options),
        Verb::Gaps(options) => gaps::run(&mut desk, &options),
        Verb::Members(options) => members::run(&mut desk, &options),
        Verb::Doctor(options) => doctor::run(&mut desk, &options),
        Verb::Manifest(options) => manifest::run(&mut desk, &options),
        Verb::Restore(options) => restore::run(&mut desk, &options),
        Verb::Rebuild(options) => rebuild::run(&mut desk, &options),
    };
    if desk.verbose {
        measure::report(&mut desk.output);
    }
    match answer {
        Ok(Answer::Done) => ExitCode::SUCCESS,
        Ok(Answer::Nothing) => ExitCode::from(1),
        Ok(Answer::Stopped) => ExitCode::from(2),
        // A reader that went away, as `head` does, has all it wanted.
        Err(_) if desk.output.is_closed() => ExitCode::SUCCESS,
        Err(problem) => {
            desk.output.problem(&problem, desk.json);
            ExitCode::from(2)
        }
    }
}
