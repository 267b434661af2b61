//! The command line: parses arguments, runs a verb, turns its outcome into an exit code.

mod commands;
mod evidence;
mod follow;
mod git;
mod help;
mod live;
mod log;
mod settings;
mod ui;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use std::convert::Infallible;

use crate::config::Config;
pub use crate::config::now;
use crate::view::{Door, View};
use annals_core::{Error, Result, Scope};
use annals_store::Store;
use ui::output::Output;

/// The name of a source from any name that people use for it; other names stay as they are.
fn source_name(name: &str) -> std::result::Result<String, Infallible> {
    Ok(annals_sources::by_common_name(name).map_or(name, |source| source.manifest().source).to_owned())
}

/// Keep your whole history with AI assistants in one file that you own, and search it.
#[derive(Parser)]
#[command(name = "annals", version, about, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Your data stays on this machine: no telemetry, and no network access unless you run `annals connect` \
                  or let members in. Secrets are masked in all output; the archive keeps the original bytes.\n\n\
                  Run `annals VERB --help` for the options and examples of a verb."
)]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Args)]
#[command(next_help_heading = "Global options")]
struct Common {
    /// Use the archive in this directory [default: the platform's data directory; env: ANNALS_HOME]
    #[arg(long, value_name = "DIR", global = true)]
    home: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, global = true)]
    json: bool,
    /// Suppress progress and hints
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Print more to stderr: every warning, time and memory used
    #[arg(long, short, global = true)]
    verbose: bool,
    /// Show secrets instead of masking them
    #[arg(long, global = true)]
    reveal: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Sync, list the sources, and serve the web UI
    Up(commands::up::UpArguments),
    /// Serve the web UI and the HTTP API, and keep the archive up to date
    Serve(commands::serve::ServeArguments),
    /// Capture new and changed files from all sources
    Sync(commands::sync::SyncArguments),
    /// Import exports and traces: files, directories or zip archives
    Import(commands::import::ImportArguments),
    /// Log in to a provider once so that `sync` can fetch new conversations
    Connect(commands::connect::ConnectArguments),
    /// List sources and their status
    Sources(commands::sources::SourcesArguments),
    /// List sessions, newest first
    Sessions(commands::sessions::SessionsArguments),
    /// Show the conversation of a session
    Show(commands::show::ShowArguments),
    /// Continue a session in its client
    Resume(commands::resume::ResumeArguments),
    /// Search prompts, answers, tool calls, outputs and files
    Search(commands::search::SearchArguments),
    /// Convert a transcript to a tape, from a file or standard input
    Record(commands::record::RecordArguments),
    /// Export sessions as tapes: which code was read and changed, and when
    Tape(commands::tape::TapeArguments),
    /// Show which session, prompt and tool call wrote each line of a file
    Blame(commands::blame::BlameArguments),
    /// Export records for other programs, all of them or what changed
    Export(commands::export::ExportArguments),
    /// Print the records of a stream
    Records(commands::records::RecordsArguments),
    /// Count tool calls, files and commands
    Tools(commands::tools::ToolsArguments),
    /// Show tokens and estimated cost
    Usage(commands::usage::UsageArguments),
    /// List skills, prompts, rules, instructions and memory, with their history
    Library(commands::library::LibraryArguments),
    /// Account for every file, byte and line that was found
    Audit(commands::audit::AuditArguments),
    /// List the secrets that appear in sessions, without their values
    Secrets(commands::secrets::SecretsArguments),
    /// List what could not be fetched and when it is retried
    Gaps(commands::gaps::GapsArguments),
    /// Manage members and access tokens
    Members(commands::members::MembersArguments),
    /// Check the archive, the sources and the disk
    Doctor(commands::doctor::DoctorArguments),
    /// List settings, their values and where each comes from
    Config(commands::config::ConfigArguments),
    /// Print which files a source reads, keeps and never opens
    Manifest(commands::manifest::ManifestArguments),
    /// Write captured files back to a directory, byte for byte
    Restore(commands::restore::RestoreArguments),
    /// Heal damaged files of the archive from the client's files and other versions
    Repair(commands::repair::RepairArguments),
    /// Rebuild all derived data from the archived files
    Rebuild(commands::rebuild::RebuildArguments),
}

/// How a verb ended if it did not fail.
pub enum Outcome {
    Done,
    /// Nothing matched: exit code 1.
    Nothing,
    /// The user has to act first: exit code 2, after the output.
    Stopped,
}

/// What every verb needs.
pub struct Context {
    pub config: Arc<Config>,
    pub output: Output,
    pub json: bool,
    pub quiet: bool,
    pub verbose: bool,
    reveal: bool,
}

impl Context {
    /// The archive to read, or none if nothing was captured yet. Nothing is written to it, unless it is of an older
    /// version.
    pub fn archive(&self) -> Result<Option<Store>> {
        if !self.config.home.join("annals.db").is_file() {
            return Ok(None);
        }
        match Store::open_to_read(&self.config.home)? {
            Some(store) => Ok(Some(store)),
            None => self.archive_or_new().map(Some).map_err(|error| {
                Error::new(format!(
                    "the archive is of an older version and cannot be migrated: {}",
                    error.what
                ))
                .hint("copy it to a writable directory and use --home DIR")
            }),
        }
    }

    /// The archive to read; created if it does not exist.
    pub fn archive_or_empty(&self) -> Result<Store> {
        self.archive()?.map_or_else(|| self.archive_or_new(), Ok)
    }

    /// The archive to write; created if it does not exist.
    pub fn archive_or_new(&self) -> Result<Store> {
        let mut bar = ui::progress::StepBar::new(self.quiet, "Migrating the archive");
        Ok(Store::open_watched(&self.config.home, &mut |done, all| bar.set(done, all))?)
    }

    pub fn door(&self, store: &Store) -> Result<Door> {
        if self.reveal { Ok(Door::revealing()) } else { Door::masking(store) }
    }

    /// Whoever runs a verb is the owner of the archive.
    pub fn view<'a>(&self, store: &'a Store, door: &'a Door) -> View<'a> {
        View::new(store.scoped(Scope::Owner), door, now())
    }
}

/// The whole program: `main` only calls this.
pub fn run() -> ExitCode {
    let matches = help::with_help(Arguments::command()).get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let mut output = Output::new();
    let common = arguments.common;
    if let Verb::Config(options) = &arguments.verb
        && options.is_path()
    {
        let answer = commands::config::print_path(&mut output, common.json);
        return exit(answer, &mut output, common.json);
    }
    let config = match Config::load(common.home, &settings::declared()) {
        Ok(config) => config,
        Err(error) => {
            output.error(&error, common.json);
            return ExitCode::from(2);
        }
    };
    output.colour(config.colour);
    if let Err(error) = log::start(config.log.as_deref(), common.verbose) {
        output.error(&error, common.json);
        return ExitCode::from(2);
    }
    let mut context = Context {
        config: Arc::new(config),
        output,
        json: common.json,
        quiet: common.quiet,
        verbose: common.verbose,
        reveal: common.reveal,
    };
    let outcome = match arguments.verb {
        Verb::Up(options) => commands::up::run(&mut context, &options),
        Verb::Serve(options) => commands::serve::run(&mut context, &options),
        Verb::Sync(options) => commands::sync::run(&mut context, &options),
        Verb::Import(options) => commands::import::run(&mut context, &options),
        Verb::Connect(options) => commands::connect::run(&mut context, &options),
        Verb::Sources(options) => commands::sources::run(&mut context, &options),
        Verb::Sessions(options) => commands::sessions::run(&mut context, &options),
        Verb::Show(options) => commands::show::run(&mut context, &options),
        Verb::Resume(options) => commands::resume::run(&mut context, &options),
        Verb::Search(options) => commands::search::run(&mut context, &options),
        Verb::Record(options) => commands::record::run(&mut context, &options),
        Verb::Tape(options) => commands::tape::run(&mut context, &options),
        Verb::Blame(options) => commands::blame::run(&mut context, &options),
        Verb::Export(options) => commands::export::run(&mut context, &options),
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
        Verb::Repair(options) => commands::repair::run(&mut context, &options),
        Verb::Rebuild(options) => commands::rebuild::run(&mut context, &options),
    };
    if context.verbose {
        ui::measure::report(&mut context.output);
    }
    let outcome = outcome.map_err(|error| describe(error, &context.config));
    exit(outcome, &mut context.output, context.json)
}

/// Names the archive, and masks secrets: paths may contain anything.
fn describe(mut error: Error, config: &Config) -> Error {
    let what = error.what_of_archive(&config.home.join("annals.db"));
    error.what = Door::masking_alone().show(&what).to_string();
    error
}

fn exit(outcome: Result<Outcome>, output: &mut Output, json: bool) -> ExitCode {
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(1),
        Ok(Outcome::Stopped) => ExitCode::from(2),
        // A reader that closed the pipe, as `head` does, has read all it wanted.
        Err(_) if output.is_closed() => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error, json);
            ExitCode::from(2)
        }
    }
}
