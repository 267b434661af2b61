//! `annals serve`: answers over HTTP, and captures what is new before it answers.

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
use annals_core::{Error, Result, Scope};
use annals_sources::registry;

#[derive(Args, Default)]
// `up` has these options among its own.
#[group(skip)]
pub struct ServeArguments {
    /// Where to listen [default: 127.0.0.1:4848; env: ANNALS_LISTEN]; other machines only once there are members
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// A name beside this machine's own by which people reach it (may be given again)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Answer from the archive as it is, and never look for what is new
    #[arg(long)]
    no_sync: bool,
    /// Open the page in the browser of this machine
    #[arg(long)]
    open: bool,
}

pub fn run(context: &mut Context, options: &ServeArguments) -> Result<Outcome> {
    let logs = !context.quiet;
    start(context, options, Opening { logs, document: Map::new() })?;
    Ok(Outcome::Done)
}

/// How it begins.
pub struct Opening {
    /// Each request gets a line.
    pub logs: bool,
    /// Fields of the JSON document that tells where it listens.
    pub document: Map<String, Value>,
}

/// Serves until it is told to stop.
pub fn start(context: &mut Context, options: &ServeArguments, opening: Opening) -> Result<()> {
    let listen = options.listen.as_deref().unwrap_or(context.config.listen());
    let setup = Setup {
        home: context.config.home.clone(),
        listen: address(listen)?,
        hosts: options.host.clone(),
        look: (!options.no_sync).then(|| look(context.config.clone())),
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

/// The browser gets a link that opens once: others on this machine see its command line.
fn open_page(context: &mut Context, address: &Address) {
    let link = format!("{}/?once={}", address.url, address.once);
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = std::process::Command::new(opener)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        context.output.note(format!("hint: no {opener} here to open a browser with; open the link yourself"));
    }
}

fn announce(context: &mut Context, address: &Address, mut document: Map<String, Value>) -> Result<()> {
    let link = format!("{}/?token={}", address.url, address.token);
    if context.json {
        let fields = [("url", &address.url), ("token", &address.token), ("link", &link)];
        document.extend(fields.map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))));
        context.output.json(&document)?;
    } else {
        context.output.line(format!("annals answers at {link}"))?;
    }
    context.output.flush()?;
    if !context.quiet && !context.json {
        context
            .output
            .note("open the link once: it sets a cookie. Programs send `Authorization: Bearer TOKEN`.");
        context.output.note("Control-C stops it.");
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr> {
    let unclear = || {
        Error::new(format!("not an address to listen on: {text:?}"))
            .hint("for example 127.0.0.1:4848, or 127.0.0.1:0 for any free port")
    };
    text.to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(unclear)
}

fn homes(config: &Config) -> Vec<PathBuf> {
    let sources = registry().iter();
    sources.flat_map(|source| source.homes(&Declared(config))).map(|home| home.root).collect()
}

/// A sync in passing. Somebody else who writes does the same work: then this one has nothing to do.
fn look(config: Arc<Config>) -> Refresh {
    Arc::new(move |tell| {
        let ask = SyncOptions {
            sources: registry().to_vec(),
            since: None,
            verify: false,
            repositories: config.reads_projects(),
            gaps_only: false,
            opportunistic: true,
            member: None,
        };
        let settings = Declared(&config);
        let environment = settings.environment(1);
        let mut news = false;
        if let Ok(_lock) = Lock::take(&config.home, "serve") {
            // What can not be read is a gap in the archive, and the next look tries again.
            let reports =
                sync(&ask, &environment, &Scope::owner(), &mut ServeProgress { tell, work: Work::default() })
                    .unwrap_or_default();
            news = reports.iter().any(|report| report.totals.captured_bytes > 0);
        }
        Refreshed { disk: sources::on_disk(&config), news }
    })
}

/// Tells open pages how far a look has come.
struct ServeProgress<'t> {
    tell: &'t dyn Fn(Work),
    work: Work,
}

impl Progress for ServeProgress<'_> {
    fn begin(&mut self, files: u64, bytes: u64) {
        self.work = Work { files, bytes, ..Work::default() };
        (self.tell)(self.work);
    }

    fn advance(&mut self, files: u64, bytes: u64) {
        self.work.files_done += files;
        self.work.bytes_done += bytes;
        (self.tell)(self.work);
    }

    fn end(&mut self) {}
}
