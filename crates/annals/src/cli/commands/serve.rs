//! `annals serve`: the web UI and the HTTP API, with a refresh before requests.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value};

use super::sources;
use crate::cli::settings::Declared;
use crate::cli::{Context, Outcome, now};
use crate::collect::{Lock, Progress, SyncOptions, sync};
use crate::config::Config;
use crate::serve::{Address, Log, Refresh, Refreshed, Setup, Work, serve};
use annals_core::{Error, Result};
use annals_sources::registry;

#[derive(Args, Default)]
// `up` has the same options.
#[group(skip)]
pub struct ServeArguments {
    /// Listen on this address [default: 127.0.0.1:4848; env: ANNALS_LISTEN]; addresses other than loopback require members
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Allow this host name in requests, besides the loopback names (repeatable)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Serve the archive as it is, without refreshing it
    #[arg(long)]
    no_sync: bool,
    /// Open the web UI in the default browser
    #[arg(long)]
    open: bool,
}

pub fn run(context: &mut Context, options: &ServeArguments) -> Result<Outcome> {
    let logs = !context.quiet;
    start(context, options, Opening { logs, document: Map::new() })?;
    Ok(Outcome::Done)
}

/// What is printed at the start.
pub struct Opening {
    /// Log every request.
    pub logs: bool,
    /// Further fields of the JSON document that has the address.
    pub document: Map<String, Value>,
}

/// Serves until it is stopped.
pub fn start(context: &mut Context, options: &ServeArguments, opening: Opening) -> Result<()> {
    let listen = options.listen.as_deref().unwrap_or(context.config.listen());
    let setup = Setup {
        home: context.config.home.clone(),
        listen: address(listen)?,
        hosts: options.host.clone(),
        refresh: (!options.no_sync).then(|| refresh(context.config.clone())),
        watch: if options.no_sync { Vec::new() } else { homes(&context.config) },
        log: opening.logs.then_some(crate::cli::ui::output::log_line as Log),
        now,
    };
    serve(setup, |address| {
        announce(context, address, opening.document)?;
        if options.open {
            open_page(context, address);
        }
        Ok(())
    })
}

/// The browser gets a single-use link: other users of this machine can see its command line.
fn open_page(context: &mut Context, address: &Address) {
    let [_, link] = &address.links;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = std::process::Command::new(opener)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        context.output.note(format!("hint: {opener} not found; open the link in a browser"));
    }
}

fn announce(context: &mut Context, address: &Address, mut document: Map<String, Value>) -> Result<()> {
    let [link, _] = &address.links;
    if context.json {
        let fields = [("url", &address.url), ("token", &address.token), ("link", link)];
        document.extend(fields.map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))));
        context.output.json(&document)?;
    } else {
        context.output.line(format!("Web UI: {link}"))?;
    }
    context.output.flush()?;
    if !context.quiet && !context.json {
        context.output.note("The link logs one browser in, once; `annals members link` prints another.");
        context.output.note("Programs send `Authorization: Bearer TOKEN`; `--json` prints the token.");
        context.output.note("Press Ctrl-C to stop.");
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr> {
    let unclear = || {
        Error::new(format!("cannot listen on {text:?}: not an address"))
            .hint("annals serve --listen 127.0.0.1:4848 (port 0 picks a free port)")
    };
    text.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(unclear)
}

fn homes(config: &Config) -> Vec<PathBuf> {
    let sources = registry().iter();
    sources.flat_map(|source| source.homes(&Declared(config))).map(|home| home.root).collect()
}

/// An opportunistic sync. If another process is writing, it does the same work and this one does nothing.
fn refresh(config: Arc<Config>) -> Refresh {
    Arc::new(move |report| {
        let sync_options = SyncOptions {
            sources: registry().to_vec(),
            since: None,
            verify: false,
            repositories: config.reads_projects(),
            gaps_only: false,
            opportunistic: true,
            damaged: None,
            member: None,
        };
        let settings = Declared(&config);
        let environment = settings.environment(1);
        let mut progress = ServeProgress { report, work: Work::default() };
        let (mut news, mut failure) = (false, None);
        match Lock::take(&config.home, "serve") {
            // What cannot be read is a gap in the archive; the next refresh retries it.
            Ok(_lock) => match sync(&sync_options, &environment, &mut progress) {
                Ok(reports) => news = reports.iter().any(|report| report.totals.captured_bytes > 0),
                Err(error) => failure = Some(error),
            },
            Err(error) if Lock::is_held(&config.home) => {
                tracing::debug!("nothing captured: {}", error.what);
            }
            Err(error) => failure = Some(error),
        }
        Refreshed { disk: sources::on_disk(&config), news, failure }
    })
}

/// Reports the progress of a refresh to open pages.
struct ServeProgress<'t> {
    report: &'t dyn Fn(Work),
    work: Work,
}

impl Progress for ServeProgress<'_> {
    fn begin(&mut self, files: u64, bytes: u64) {
        self.work = Work { files, bytes, ..Work::default() };
        (self.report)(self.work);
    }

    fn advance(&mut self, files: u64, bytes: u64) {
        self.work.files_done += files;
        self.work.bytes_done += bytes;
        (self.report)(self.work);
    }

    fn end(&mut self) {}
}
