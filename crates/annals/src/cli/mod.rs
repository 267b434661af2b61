//! The command line: parses arguments, runs a verb, turns its outcome into an exit code.

mod clients;
mod commands;
mod evidence;
#[cfg(feature = "test-clock")]
mod experiment;
mod follow;
mod git;
mod help;
mod live;
mod log;
mod settings;
mod ui;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use std::convert::Infallible;

use crate::config::Config;
pub use crate::config::now;
use crate::view::{Door, ShortIds, View};
use annals_core::{Calendar, Error, Result, Scope};
use annals_store::Store;
#[cfg(feature = "test-clock")]
pub use experiment::Experiment;
use ui::output::Output;

/// The name of a source from any name that people use for it; other names stay as they are.
fn source_name(name: &str) -> std::result::Result<String, Infallible> {
    Ok(annals_sources::by_common_name(name).map_or(name, |source| source.manifest().source).to_owned())
}

/// The version, and where it is known the commit and its date.
const VERSION: &str = env!("ANNALS_VERSION");

/// Keep your whole history with AI assistants in one file that you own, and search it.
#[derive(Parser)]
#[command(name = "annals", version = VERSION, about, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Your data stays on this machine: no telemetry, and no network access unless you run `connect`, \
                  `push` or `pull`, or let members in. Secrets are masked in all output; the archive keeps the original bytes.\n\n\
                  Run `annals VERB --help` for the options and examples of a verb."
)]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    verb: Option<Verb>,
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
    /// Use days and hours of UTC instead of this machine's time zone
    #[arg(long, global = true)]
    utc: bool,
    /// Print long answers to the terminal instead of a pager [env: ANNALS_PAGER, PAGER]
    #[arg(long, global = true)]
    no_pager: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve the web UI, capture in the background, and list the sources
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
    /// Export sessions as Markdown, HTML, JSON or Parquet, and records for other programs
    Export(commands::export::ExportArguments),
    /// Print the records of a stream
    Records(commands::records::RecordsArguments),
    /// Count tool calls, files and commands
    Tools(commands::tools::ToolsArguments),
    /// Show tokens and estimated cost
    Usage(commands::usage::UsageArguments),
    /// Show what was done on a day, by project, as Markdown
    Day(commands::period::PeriodArguments),
    /// Show what was done in a week, by project, as Markdown
    Week(commands::period::PeriodArguments),
    /// Show what was done in a month, by project, as Markdown
    Month(commands::period::PeriodArguments),
    /// Print what today and this session cost, for a status line or a prompt
    Statusline(commands::statusline::StatuslineArguments),
    /// Star a session, a message or a project
    Star(commands::arrange::StarArguments),
    /// Tag a session, a message or a project
    Tag(commands::arrange::TagArguments),
    /// Name a session, a message or a project
    Name(commands::arrange::NameArguments),
    /// Write a note on a session, a message or a project
    Note(commands::arrange::NoteArguments),
    /// Hide a session or a project from lists and searches
    Hide(commands::arrange::HideArguments),
    /// List saved searches
    Searches(commands::searches::SearchesArguments),
    /// List skills, prompts, rules, instructions and memory, with their history
    Library(commands::library::LibraryArguments),
    /// Account for every file, byte and line that was found
    Audit(commands::audit::AuditArguments),
    /// Forget sessions, texts and secrets, for good or after a time in the trash
    Forget(commands::forget::ForgetArguments),
    /// Forget what your retention rules say is old enough
    Retain(commands::retain::RetainArguments),
    /// List what is in the trash, or bring it back
    Trash(commands::trash::TrashArguments),
    /// List the secrets that appear in sessions, without their values
    Secrets(commands::secrets::SecretsArguments),
    /// List what could not be fetched and when it is retried
    Gaps(commands::gaps::GapsArguments),
    /// Answer agents over the Model Context Protocol (MCP)
    Mcp(commands::mcp::McpArguments),
    /// Teach agents when to ask the archive, with a skill
    Skill(commands::skill::SkillArguments),
    /// Capture what clients write as they write it, without a server
    Watch(commands::watch::WatchArguments),
    /// Run annals in the background, starting at login
    Service(commands::service::ServiceArguments),
    /// Send what is new to a hub: an annals server with members
    Push(commands::push::PushArguments),
    /// Fetch your own sessions from a hub
    Pull(commands::push::PullArguments),
    /// Manage members and access tokens
    Members(commands::members::MembersArguments),
    /// Show who sees the sessions of members, and who read them
    Access(commands::access::AccessArguments),
    /// Check the archive, the sources and the disk
    Doctor(commands::doctor::DoctorArguments),
    /// List settings, their values and where each comes from
    Config(commands::config::ConfigArguments),
    /// Print which files a source reads, keeps and never opens
    Manifest(commands::manifest::ManifestArguments),
    /// Write captured files back to a directory, byte for byte
    Restore(commands::restore::RestoreArguments),
    /// Repair damaged files in the archive from the clients' files and other versions
    Repair(commands::repair::RepairArguments),
    /// Rebuild all derived data from the archived files
    Rebuild(commands::rebuild::RebuildArguments),
    /// Print a script that completes verbs and options in a shell
    Completions(commands::completions::CompletionsArguments),
    /// Print manual pages
    Man(commands::man::ManArguments),
    /// Explain a verb, or list all verbs
    Help(commands::help::HelpArguments),
    /// Print the version
    Version(commands::help::VersionArguments),
}

impl Verb {
    /// Whether its answers may be longer than a screen.
    fn is_paged(&self) -> bool {
        match self {
            Verb::Show(options) => !options.is_followed(),
            Verb::Sessions(_)
            | Verb::Search(_)
            | Verb::Sources(_)
            | Verb::Blame(_)
            | Verb::Tools(_)
            | Verb::Usage(_)
            | Verb::Day(_)
            | Verb::Week(_)
            | Verb::Month(_)
            | Verb::Library(_)
            | Verb::Audit(_)
            | Verb::Secrets(_)
            | Verb::Gaps(_)
            | Verb::Searches(_)
            | Verb::Manifest(_)
            | Verb::Config(_)
            | Verb::Help(_) => true,
            Verb::Up(_)
            | Verb::Serve(_)
            | Verb::Sync(_)
            | Verb::Import(_)
            | Verb::Connect(_)
            | Verb::Resume(_)
            | Verb::Record(_)
            | Verb::Tape(_)
            | Verb::Export(_)
            | Verb::Records(_)
            | Verb::Statusline(_)
            | Verb::Star(_)
            | Verb::Tag(_)
            | Verb::Name(_)
            | Verb::Note(_)
            | Verb::Hide(_)
            | Verb::Push(_)
            | Verb::Pull(_)
            | Verb::Members(_)
            | Verb::Access(_)
            | Verb::Doctor(_)
            | Verb::Restore(_)
            | Verb::Forget(_)
            | Verb::Retain(_)
            | Verb::Trash(_)
            | Verb::Repair(_)
            | Verb::Rebuild(_)
            | Verb::Completions(_)
            | Verb::Man(_)
            | Verb::Version(_)
            | Verb::Mcp(_)
            | Verb::Skill(_)
            | Verb::Watch(_)
            | Verb::Service(_) => false,
        }
    }
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
        if !self.config.data_dir.join("annals.db").is_file() {
            return Ok(None);
        }
        match Store::open_to_read(&self.config.data_dir)? {
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
        Ok(Store::open_watched(&self.config.data_dir, &mut |done, all| bar.set(done, all))?)
    }

    /// Whether secrets are shown as they are.
    pub fn reveals(&self) -> bool {
        self.reveal
    }

    /// Ids that are shortened for people; programs get them complete.
    pub fn short_ids(&self, view: &View<'_>) -> Result<ShortIds> {
        if self.json || self.output.width().is_none() { Ok(ShortIds::default()) } else { view.short_ids() }
    }

    pub fn door(&self, store: &Store) -> Result<Door> {
        if self.reveal { Ok(Door::revealing()) } else { Door::masking(store) }
    }

    /// The same settings for a thread that prints while the verb runs; each flushes what it printed.
    pub fn for_thread(&self) -> Context {
        let mut output = Output::new();
        output.configure(self.config.colour, self.config.columns);
        let Context { json, quiet, verbose, reveal, .. } = *self;
        Context { config: Arc::clone(&self.config), output, json, quiet, verbose, reveal }
    }

    /// Whoever runs a verb is the owner of the archive.
    pub fn view<'a>(&self, store: &'a Store, door: &'a Door) -> View<'a> {
        View::new(store.scoped(Scope::Owner), door, now())
    }
}

/// The whole program: `main` only calls this.
pub fn run() -> ExitCode {
    let mut command = help::with_help(Arguments::command());
    // On a terminal the program alone says what there is.
    if !std::io::stdout().is_terminal() {
        command = command.subcommand_required(true).arg_required_else_help(true);
    }
    let matches = command.get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let mut output = Output::new();
    let common = arguments.common;
    if common.utc {
        annals_core::use_utc();
    }
    if let Some(Verb::Config(options)) = &arguments.verb
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
    output.configure(config.colour, config.columns);
    if !common.no_pager && arguments.verb.as_ref().is_some_and(Verb::is_paged) {
        output.page(config.pager.clone());
    }
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
    let Some(verb) = arguments.verb else {
        let outcome = commands::overview::run(&mut context);
        return end(outcome, &mut context);
    };
    let outcome = match verb {
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
        Verb::Day(options) => commands::period::run(&mut context, &options, Calendar::Day),
        Verb::Week(options) => commands::period::run(&mut context, &options, Calendar::Week),
        Verb::Month(options) => commands::period::run(&mut context, &options, Calendar::Month),
        Verb::Statusline(options) => commands::statusline::run(&mut context, &options),
        Verb::Star(options) => commands::arrange::star(&mut context, &options),
        Verb::Tag(options) => commands::arrange::tag(&mut context, &options),
        Verb::Name(options) => commands::arrange::name(&mut context, &options),
        Verb::Note(options) => commands::arrange::note(&mut context, &options),
        Verb::Hide(options) => commands::arrange::hide(&mut context, &options),
        Verb::Searches(options) => commands::searches::run(&mut context, &options),
        Verb::Library(options) => commands::library::run(&mut context, &options),
        Verb::Audit(options) => commands::audit::run(&mut context, &options),
        Verb::Forget(options) => commands::forget::run(&mut context, &options),
        Verb::Retain(options) => commands::retain::run(&mut context, &options),
        Verb::Trash(options) => commands::trash::run(&mut context, &options),
        Verb::Secrets(options) => commands::secrets::run(&mut context, &options),
        Verb::Gaps(options) => commands::gaps::run(&mut context, &options),
        Verb::Mcp(options) => commands::mcp::run(&mut context, &options),
        Verb::Skill(options) => commands::skill::run(&mut context, &options),
        Verb::Watch(options) => commands::watch::run(&mut context, &options),
        Verb::Service(options) => commands::service::run(&mut context, &options),
        Verb::Push(options) => commands::push::run_push(&mut context, &options),
        Verb::Access(options) => commands::access::run(&mut context, &options),
        Verb::Pull(options) => commands::push::run_pull(&mut context, &options),
        Verb::Members(options) => commands::members::run(&mut context, &options),
        Verb::Doctor(options) => commands::doctor::run(&mut context, &options),
        Verb::Config(options) => commands::config::run(&mut context, &options),
        Verb::Manifest(options) => commands::manifest::run(&mut context, &options),
        Verb::Restore(options) => commands::restore::run(&mut context, &options),
        Verb::Repair(options) => commands::repair::run(&mut context, &options),
        Verb::Rebuild(options) => commands::rebuild::run(&mut context, &options),
        Verb::Completions(options) => commands::completions::run(&mut context, &options),
        Verb::Man(options) => commands::man::run(&mut context, &options),
        Verb::Help(options) => commands::help::run(&mut context, &options),
        Verb::Version(options) => commands::help::version(&mut context, &options),
    };
    end(outcome, &mut context)
}

/// Reports how a verb ended.
fn end(outcome: Result<Outcome>, context: &mut Context) -> ExitCode {
    if context.verbose {
        ui::measure::report(&mut context.output);
    }
    let outcome = outcome.map_err(|error| describe(error, &context.config));
    exit(outcome, &mut context.output, context.json)
}

/// Names the archive, and masks secrets: paths may contain anything.
fn describe(mut error: Error, config: &Config) -> Error {
    let what = error.what_of_archive(&config.data_dir.join("annals.db"));
    error.what = Door::masking_alone().show(&what).to_string();
    error
}

fn exit(outcome: Result<Outcome>, output: &mut Output, json: bool) -> ExitCode {
    output.finish();
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
