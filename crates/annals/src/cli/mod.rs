//! The command line: reads arguments, calls a verb, turns its answer into an exit code.

mod commands;
mod git;
mod live;
mod settings;
mod ui;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};

use crate::config::Config;
pub use crate::config::now;
use crate::view::Door;
use annals_core::{Result, Scope};
use annals_store::Store;
use ui::output::Output;

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
    Up(commands::up::UpArguments),
    /// Answer over HTTP, and keep the archive current while it runs
    Serve(commands::serve::ServeArguments),
    /// Capture what is new in the clients' homes
    Sync(commands::sync::SyncArguments),
    /// Read exports and traces that you have: files, folders, zips
    Import(commands::import::ImportArguments),
    /// Log in once in a browser of annals' own, so that `sync` can ask a provider for what is new
    Connect(commands::connect::ConnectArguments),
    /// Show each source: available, empty, or how to set it up
    Sources(commands::sources::SourcesArguments),
    /// List sessions, newest first
    Sessions(commands::sessions::SessionsArguments),
    /// Show one session's conversation
    Show(commands::show::ShowArguments),
    /// Find words in everything that was said and done
    Search(commands::search::SearchArguments),
    /// Tell one session's native lines as a tape, from a file or standard input
    Record(commands::record::RecordArguments),
    /// Tell sessions of the archive as tapes: who read and changed which code when
    Tape(commands::tape::TapeArguments),
    /// Say for each line of a file which session, prompt and call wrote it
    Blame(commands::blame::BlameArguments),
    /// Print native records of a stream
    Records(commands::records::RecordsArguments),
    /// Count tools, files and commands
    Tools(commands::tools::ToolsArguments),
    /// Sum up tokens and cost, each response once
    Usage(commands::usage::UsageArguments),
    /// List skills, prompts, rules, instructions and memory, with their versions
    Library(commands::library::LibraryArguments),
    /// Account for every file, byte and line: kept, left out, unknown, and why
    Audit(commands::audit::AuditArguments),
    /// List where secrets appear, by their marks
    Secrets(commands::secrets::SecretsArguments),
    /// List what could not be had, why, and when it is tried again; `retry` tries now
    Gaps(commands::gaps::GapsArguments),
    /// Say who else may ask, and give them tokens
    Members(commands::members::MembersArguments),
    /// Check the archive, the homes and the disk, and say what to do
    Doctor(commands::doctor::DoctorArguments),
    /// List settings, their values and where each comes from
    Config(commands::config::ConfigArguments),
    /// Print what a source reads, keeps and never opens
    Manifest(commands::manifest::ManifestArguments),
    /// Write captured files back out, byte for byte
    Restore(commands::restore::RestoreArguments),
    /// Read all rows anew from the archived bytes
    Rebuild(commands::rebuild::RebuildArguments),
}

/// How a verb ended, when it did not fail.
pub enum Outcome {
    Done,
    /// Nothing matched: exit code 1.
    Nothing,
    /// The owner has to do something first: exit code 2, after the answer.
    Stopped,
}

/// What every verb works with.
pub struct Context {
    pub config: Arc<Config>,
    pub output: Output,
    pub scope: Scope,
    pub json: bool,
    pub quiet: bool,
    pub verbose: bool,
    reveal: bool,
}

impl Context {
    /// The archive, or none when nothing was ever captured.
    pub fn archive(&self) -> Result<Option<Store>> {
        let exists = self.config.home.join("annals.db").is_file();
        if exists { self.archive_or_new().map(Some) } else { Ok(None) }
    }

    /// The archive, also one that has nothing in it yet.
    pub fn archive_or_new(&self) -> Result<Store> {
        let mut bar = ui::progress::StepBar::new(self.quiet, "Migrating the archive");
        Ok(Store::open_watched(&self.config.home, &mut |done, all| bar.set(done, all))?)
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
    if let Verb::Config(options) = &arguments.verb
        && options.asks_for_path()
    {
        let answer = commands::config::print_path(&mut output, common.json);
        return exit(answer, &mut output, common.json);
    }
    let config = match Config::load(common.home, &settings::declared()) {
        Ok(config) => config,
        Err(problem) => {
            output.problem(&problem, common.json);
            return ExitCode::from(2);
        }
    };
    output.colour(config.colour);
    let mut context = Context {
        config: Arc::new(config),
        output,
        scope: Scope::owner(),
        json: common.json,
        quiet: common.quiet,
        verbose: common.verbose,
        reveal: common.reveal,
    };
    let answer = match arguments.verb {
        Verb::Up(options) => commands::up::run(&mut context, &options),
        Verb::Serve(options) => commands::serve::run(&mut context, &options),
        Verb::Sync(options) => commands::sync::run(&mut context, &options),
        Verb::Import(options) => commands::import::run(&mut context, &options),
        Verb::Connect(options) => commands::connect::run(&mut context, &options),
        Verb::Sources(options) => commands::sources::run(&mut context, &options),
        Verb::Sessions(options) => commands::sessions::run(&mut context, &options),
        Verb::Show(options) => commands::show::run(&mut context, &options),
        Verb::Search(options) => commands::search::run(&mut context, &options),
        Verb::Record(options) => commands::record::run(&mut context, &options),
        Verb::Tape(options) => commands::tape::run(&mut context, &options),
        Verb::Blame(options) => commands::blame::run(&mut context, &options),
        Verb::Records(options) => commands::records::run(&mut context, &options),
        Verb::Tools(options) => commands::tools::run(&mut context, &options),
        Verb::Usage(options) => commands::usage::run(&mut context, &options),
        Verb::Library(options) => commands::library::run(&mut context, &options),
        Verb::Audit(options) => commands::audit::run(&mut context, &options),
        Verb::Secrets(options) => commands::secrets::run(&mut context, &options),
        Verb::Gaps(options) => commands::gaps::run(&mut context, &options),
        Verb::Members(options) => commands::members::run(&mut context, &options),
        Verb::Doctor(options) => commands::doctor::run(&mut context, &options),
        Verb::Config(options) => commands::config::run(&mut context, &options),
        Verb::Manifest(options) => commands::manifest::run(&mut context, &options),
        Verb::Restore(options) => commands::restore::run(&mut context, &options),
        Verb::Rebuild(options) => commands::rebuild::run(&mut context, &options),
    };
    if context.verbose {
        ui::measure::report(&mut context.output);
    }
    exit(answer, &mut context.output, context.json)
}

fn exit(answer: Result<Outcome>, output: &mut Output, json: bool) -> ExitCode {
    match answer {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(1),
        Ok(Outcome::Stopped) => ExitCode::from(2),
        // A reader that went away, as `head` does, has all it wanted.
        Err(_) if output.is_closed() => ExitCode::SUCCESS,
        Err(problem) => {
            output.problem(&problem, json);
            ExitCode::from(2)
        }
    }
}
