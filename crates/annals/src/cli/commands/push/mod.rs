//! `annals push` and `annals pull`: send sessions to a hub, and fetch one's own from it.

mod background;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

pub use background::push_in_background;

use super::sessions::absolute;
use crate::cli::settings::Declared;
use crate::cli::ui::confirm::confirm;
use crate::cli::ui::progress::Bar;
use crate::cli::{Context, Outcome, now};
use crate::collect::{
    FirstPush, HubAddress, Lock, PullReport, PushChoice, PushOptions, PushReport, pull, push,
};
use crate::config::Config;
use crate::view::format::{counted, number, size};
use crate::view::{Door, source_named, time_named};
use annals_core::{Error, Result};
use annals_store::Store;

/// How often `--watch` looks for something new.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Args, Default)]
pub struct HubArguments {
    /// Address of the hub, a server started with `annals serve` [default: the setting push.url]
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// Read the token from this file; without it, from ANNALS_PUSH_TOKEN or the setting push.token_file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust the certificate authority in this PEM file, and no other
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

impl HubArguments {
    pub fn names_hub(&self) -> bool {
        self.url.is_some()
    }
}

#[derive(Args)]
#[command(
    after_help = "The hub gets the bytes of the clients' files, and reads them itself. Nothing is sent twice, and a push that \
                  was cut off continues where it stopped. With --project, --exclude-project or --since only files of \
                  the chosen sessions are sent: no histories and no settings. With the setting push.url, `serve`, `watch` and \
                  the service send what is new, once you agreed to the policy of the hub here."
)]
pub struct PushArguments {
    #[command(flatten)]
    hub: HubArguments,
    /// List what would be sent and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Agree to the policy of the hub without being asked
    #[arg(long)]
    yes: bool,
    /// Send only this source (repeatable)
    #[arg(long, value_name = "SOURCE")]
    source: Vec<String>,
    /// Send nothing of this source (repeatable)
    #[arg(long, value_name = "SOURCE")]
    exclude_source: Vec<String>,
    /// Send only sessions that ran in this directory or below it (repeatable)
    #[arg(long, value_name = "DIR")]
    project: Vec<String>,
    /// Send no sessions that ran in this directory or below it (repeatable)
    #[arg(long, value_name = "DIR")]
    exclude_project: Vec<String>,
    /// Send only sessions with messages after this time, such as 30d or 2026-03-01
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Keep sending as the archive grows
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
}

#[derive(Args)]
#[command(
    after_help = "Only your own homes are fetched, those that belong to the token. `annals restore` writes them back as files."
)]
pub struct PullArguments {
    #[command(flatten)]
    hub: HubArguments,
}

pub fn run_push(context: &mut Context, options: &PushArguments) -> Result<Outcome> {
    let address = address_of(&context.config, &options.hub)?;
    let choice = choice_of(context, options)?;
    drop(context.archive_or_new()?);
    let mut sent_commit = None;
    loop {
        let commit = Store::open_reader(&context.config.data_dir)?.last_commit()?;
        if sent_commit == Some(commit) {
            std::thread::sleep(PAUSE);
            continue;
        }
        let report = push_once(context, options, &address, choice.clone());
        match report {
            Ok(report) => {
                print_push(context, options, &report)?;
                context.output.flush()?;
                sent_commit = Some(commit);
                if !options.watch {
                    let nothing = report.homes.iter().all(|home| home.files == 0) && options.dry_run;
                    return Ok(if nothing { Outcome::Nothing } else { Outcome::Done });
                }
            }
            // The hub may be away for a while.
            Err(error) if options.watch && sent_commit.is_some() => {
                context.output.note(format!("warning: {}", error.what));
            }
            Err(error) => return Err(error),
        }
        std::thread::sleep(PAUSE);
    }
}

fn push_once(
    context: &mut Context,
    options: &PushArguments,
    address: &HubAddress,
    choice: PushChoice,
) -> Result<PushReport> {
    let config = std::sync::Arc::clone(&context.config);
    let settings = Declared(&config);
    let environment = settings.environment();
    let mut bar = Bar::new(context.quiet);
    let mut agree = |first: &FirstPush<'_>| {
        let whose = first.member.unwrap_or("its owner");
        let what = match first.policy {
            "masked" => "secrets are replaced before anything is sent",
            _ => "files are sent exactly as they are, secrets included",
        };
        context.output.note(format!(
            "{} keeps what you send as data of {whose}; its policy is {}: {what}. Admins of {whose}'s organisation can \
             read the sessions there.",
            first.url, first.policy
        ));
        confirm(context, "Send?", options.yes)
    };
    let mut push_options =
        PushOptions { address, choice, dry_run: options.dry_run, unattended: false, confirm: &mut agree };
    push(&mut push_options, &environment, &mut bar)
}

pub fn run_pull(context: &mut Context, options: &PullArguments) -> Result<Outcome> {
    let address = address_of(&context.config, &options.hub)?;
    let _lock = Lock::take(&context.config.data_dir, "pull")?;
    let config = std::sync::Arc::clone(&context.config);
    let settings = Declared(&config);
    let mut bar = Bar::new(context.quiet);
    let report = pull(&address, &settings.environment(), &mut bar)?;
    print_pull(context, &report)?;
    Ok(Outcome::Done)
}

/// The options, or the settings if there is none of a kind.
fn choice_of(context: &Context, options: &PushArguments) -> Result<PushChoice> {
    let [sources, excluded_sources, projects, excluded_projects] = context.config.push_choice();
    let or_set =
        |given: &[String], set: &[String]| if given.is_empty() { set.to_vec() } else { given.to_vec() };
    let mut choice = named_choice([
        &or_set(&options.source, sources),
        &or_set(&options.exclude_source, excluded_sources),
        &or_set(&options.project, projects),
        &or_set(&options.exclude_project, excluded_projects),
    ])?;
    choice.since = options.since.as_deref().map(|since| time_named(since, now())).transpose()?;
    Ok(choice)
}

/// Sources, excluded sources, directories of projects, excluded ones.
fn named_choice(
    [sources, excluded_sources, projects, excluded_projects]: [&[String]; 4],
) -> Result<PushChoice> {
    let source = |name: &String| Ok(source_named(name)?.manifest().source.to_owned());
    Ok(PushChoice {
        sources: sources.iter().map(source).collect::<Result<_>>()?,
        excluded_sources: excluded_sources.iter().map(source).collect::<Result<_>>()?,
        projects: projects.iter().map(|project| absolute(project)).collect(),
        excluded_projects: excluded_projects.iter().map(|project| absolute(project)).collect(),
        since: None,
    })
}

/// The settings about a hub hold for that hub only: its token goes nowhere else.
pub fn address_of(config: &Config, options: &HubArguments) -> Result<HubAddress> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))
    };
    let trimmed = |url: &str| url.trim_end_matches('/').to_owned();
    let set = config.push_url().map(trimmed);
    let url = options.url.as_deref().map(trimmed).or_else(|| set.clone()).ok_or_else(|| {
        Error::new("no address of a hub").hint("annals push https://hub.example.org --token-file FILE")
    })?;
    let (token_file, authority) = if set.as_ref() == Some(&url) { config.push_files() } else { (None, None) };
    let token = match (&options.token_file, &config.push_token, token_file) {
        (Some(path), _, _) => String::from_utf8_lossy(&read(path)?).into_owned(),
        (None, Some(token), _) => token.clone(),
        (None, None, Some(path)) => String::from_utf8_lossy(&read(Path::new(path))?).into_owned(),
        (None, None, None) => String::new(),
    };
    let token = token.trim().to_owned();
    if token.is_empty() || token.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Error::new("no token for the hub").hint(
            "write the token that `annals members add NAME` printed there into a file, and use --token-file FILE",
        ));
    }
    let authority = options.ca.as_deref().or(authority.map(Path::new)).map(read).transpose()?;
    Ok(HubAddress { url, token, authority })
}

fn print_push(context: &mut Context, options: &PushArguments, report: &PushReport) -> Result<()> {
    let door = Door::masking_alone();
    let files: u64 = report.homes.iter().map(|home| home.files).sum();
    if context.json {
        let homes: Vec<Value> = report
            .homes
            .iter()
            .map(|home| {
                json!({
                    "source": home.name.source,
                    "machine": door.show(&home.name.machine),
                    "root": door.show(&home.name.root),
                    "files": home.files,
                    "bytes": home.bytes,
                    "not_chosen_files": home.left_out,
                })
            })
            .collect();
        return context.output.json(&json!({
            "url": door.show(&report.url),
            "member": report.member,
            "policy": report.policy,
            "dry_run": options.dry_run,
            "homes": homes,
            "files": files,
            "arrangements": report.arrangements,
            "forgotten_files": report.forgotten_files,
            "damaged_files": report.left_out.len(),
            "unmasked_files": report.unmasked.len(),
            "requests": report.requests,
            "sent_bytes": report.sent_bytes,
        }));
    }
    for home in report.homes.iter().filter(|home| home.files > 0 || home.left_out > 0) {
        let (machine, root) = (door.show(&home.name.machine), door.show(&home.name.root));
        let left_out = match home.left_out {
            0 => String::new(),
            count => format!(", {} not chosen", number(count)),
        };
        let sum = format!("{}, {}", counted(home.files, "file"), size(home.bytes));
        context.output.line(format!("{} {machine}:{root}: {sum}{left_out}", home.name.source))?;
    }
    let line = match (options.dry_run, files) {
        (true, _) => format!("{} would be sent to {}", counted(files, "file"), door.show(&report.url)),
        (false, 0) => "nothing new".to_owned(),
        (false, _) => format!(
            "sent {} to {} ({} on the wire, {})",
            counted(files, "file"),
            door.show(&report.url),
            size(report.sent_bytes),
            counted(report.requests, "request")
        ),
    };
    context.output.line(line)?;
    if context.quiet {
        return Ok(());
    }
    if report.forgotten_files > 0 {
        let files = counted(report.forgotten_files, "file");
        context.output.note(format!("{files} not taken: they were forgotten on the hub"));
    }
    for path in report.unmasked.iter().take(10) {
        context.output.note(format!(
            "warning: {}: no text in which secrets can be replaced, not sent",
            door.show(path)
        ));
    }
    for path in report.left_out.iter().take(10) {
        context.output.note(format!("warning: {}: damaged here, not sent", door.show(path)));
    }
    if !report.left_out.is_empty() {
        context.output.note("hint: annals repair");
    }
    Ok(())
}

fn print_pull(context: &mut Context, report: &PullReport) -> Result<()> {
    let door = Door::masking_alone();
    let received = &report.received;
    if context.json {
        return context.output.json(&json!({
            "url": door.show(&report.url),
            "member": report.member,
            "policy": report.policy,
            "homes": report.homes,
            "new_files": received.new_files,
            "changed_files": received.changed_files,
            "unchanged_files": received.unchanged_files,
            "forgotten_files": received.forgotten_files,
            "arrangements": report.arrangements,
            "requests": report.requests,
            "received_bytes": report.received_bytes,
        }));
    }
    let line = match received.new_files + received.changed_files {
        0 => "nothing new".to_owned(),
        _ => format!(
            "fetched {} new and {} changed files from {} ({} on the wire)",
            number(received.new_files),
            number(received.changed_files),
            door.show(&report.url),
            size(report.received_bytes)
        ),
    };
    context.output.line(line)?;
    if report.policy == "masked" && !context.quiet {
        context.output.note("The hub has copies in which secrets are replaced.");
    }
    if received.forgotten_files > 0 && !context.quiet {
        let files = counted(received.forgotten_files, "file");
        context.output.note(format!("{files} not fetched: they were forgotten here"));
    }
    Ok(())
}
