//! `annals serve`: the web UI and the HTTP API, with a refresh before requests.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use serde_json::{Map, Value};

use super::push::push_in_background;
use super::sources;
use crate::cli::settings::Declared;
use crate::cli::{Context, Outcome, now};
use crate::collect::{
    Exchanger, HubPolicy, Lock, Progress, SourceReport, SyncOptions, answer_step, note_failure, note_success,
    sync,
};
use crate::config::Config;
use crate::serve::{
    Address, Exchange, Log, Refresh, RefreshOutcome, Refreshed, Setup, TlsFiles, UnreadableFiles, Work,
    serve, server_url,
};
use crate::view::{Door, Editor, FailureView, Preferences, View, parse_budget};
use annals_core::{Error, Result, Scope, Time};
use annals_sources::registry;
use annals_store::Store;

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
    /// Encrypt connections with this certificate chain, a PEM file; it is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Answer plain HTTP of the reverse proxy at this address or network (repeatable)
    #[arg(long, value_name = "ADDR")]
    trust_proxy: Vec<String>,
    /// Let the trusted proxies name the member who asks, in this header
    #[arg(long, value_name = "NAME")]
    user_header: Option<String>,
    /// Let members push exact copies of their files, or copies in which secrets are replaced before they are sent [default: exact]
    #[arg(long, value_name = "POLICY", value_parser = ["exact", "masked"])]
    policy: Option<String>,
    /// Serve the archive as it is, without refreshing it
    #[arg(long)]
    pub no_sync: bool,
    /// Open the web UI in the default browser
    #[arg(long)]
    open: bool,
}

pub fn run(context: &mut Context, options: &ServeArguments) -> Result<Outcome> {
    let logs = !context.quiet;
    start(context, options, Opening { logs, document: Map::new(), first: None })?;
    Ok(Outcome::Done)
}

/// What is printed at the start.
pub struct Opening {
    /// Log every request.
    pub logs: bool,
    /// Further fields of the JSON document that has the address.
    pub document: Map<String, Value>,
    /// Captures once the server listens, instead of a refresh.
    pub first: Option<FirstCapture>,
}

/// A capture that reports to open pages, and to the terminal as it likes.
pub type FirstCapture = Box<dyn FnOnce(&mut dyn Progress) -> Result<Vec<SourceReport>> + Send>;

/// Serves until it is stopped.
pub fn start(context: &mut Context, options: &ServeArguments, opening: Opening) -> Result<()> {
    let Opening { logs, document, first } = opening;
    let listen = options.listen.as_deref().unwrap_or(context.config.listen());
    let config = &context.config;
    let or_set =
        |given: &[String], set: &[String]| if given.is_empty() { set.to_vec() } else { given.to_vec() };
    let setup = Setup {
        data_dir: config.data_dir.clone(),
        listen: address(listen)?,
        hosts: or_set(&options.host, config.server_hosts()),
        tls: tls_files(options, config)?,
        proxies: or_set(&options.trust_proxy, config.trusted_proxies()),
        user_header: options.user_header.clone().or_else(|| config.user_header().map(str::to_owned)),
        refresh: (!options.no_sync).then(|| refresh(context.config.clone(), first)),
        disk: sources::on_disk(&context.config),
        watch: if options.no_sync { Vec::new() } else { homes(&context.config) },
        exchange: Some(exchange(context.config.clone(), policy(options, config)?)),
        preferences: preferences(&context.config)?,
        log: logs.then_some(crate::cli::ui::output::log_line as Log),
        now,
    };
    let config = Arc::clone(config);
    serve(setup, |address| {
        push_in_background(config);
        announce(context, address, document)?;
        if options.open {
            open_page(context, address);
        }
        Ok(())
    })
}

/// What pages need of the settings.
fn preferences(config: &Config) -> Result<Preferences> {
    Ok(Preferences { editor: Editor::parse(config.editor())?, budget_usd: parse_budget(config.budget())? })
}

fn tls_files(options: &ServeArguments, config: &Config) -> Result<Option<TlsFiles>> {
    if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
        return Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }));
    }
    match config.tls() {
        (Some(certificate), Some(key)) => {
            Ok(Some(TlsFiles { certificate: certificate.into(), key: key.into() }))
        }
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => {
            Err(Error::new("a certificate needs its key, and a key its certificate")
                .hint("set server.tls_cert and server.tls_key, or use --tls-cert FILE --tls-key FILE"))
        }
    }
}

fn policy(options: &ServeArguments, config: &Config) -> Result<HubPolicy> {
    let name = options.policy.as_deref().or(config.hub_policy()).unwrap_or(HubPolicy::Exact.name());
    HubPolicy::from_name(name).ok_or_else(|| {
        Error::new(format!("unknown hub policy: {name:?}")).hint("set server.policy to exact or masked")
    })
}

/// Where a server with the settings of this machine answers.
pub fn configured_url(config: &Config) -> String {
    let is_encrypted = config.tls().0.is_some();
    match address(config.listen()) {
        Ok(address) => server_url(is_encrypted, config.server_hosts(), address),
        Err(_) => format!("http://{}", config.listen()),
    }
}

/// Answers archives that push and pull.
fn exchange(config: Arc<Config>, policy: HubPolicy) -> Exchange {
    Arc::new(move |call| {
        let settings = Declared(&config);
        let caller = Exchanger { member: call.member, scope: call.scope, policy };
        let answered = answer_step(call.step, caller, call.body, &settings.environment());
        answered.map_err(|refused| refused.into_status())
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

pub fn homes(config: &Config) -> Vec<PathBuf> {
    let sources = registry().iter();
    sources.flat_map(|source| source.homes(&Declared(config))).map(|home| home.root).collect()
}

/// An opportunistic sync. If another process is writing, it does the same work and this one does nothing.
pub fn refresh(config: Arc<Config>, first: Option<FirstCapture>) -> Refresh {
    let (wait, first) = (LockWait::default(), Mutex::new(first));
    Arc::new(move |report| {
        let sync_options = SyncOptions {
            sources: registry().to_vec(),
            repositories: config.reads_projects(),
            opportunistic: true,
            ..SyncOptions::default()
        };
        let settings = Declared(&config);
        let environment = settings.environment();
        let mut progress = ServeProgress { report, work: Work::default() };
        let mut news = false;
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let captured = match first {
            Some(capture) => capture(&mut progress),
            None => Lock::take(&config.data_dir, "serve")
                .and_then(|_lock| sync(&sync_options, &environment, &mut progress)),
        };
        let captured = match captured {
            Ok(reports) => Ok(reports),
            Err(error) if Lock::is_held(&config.data_dir) && !wait.is_too_long(now()) => {
                tracing::debug!("nothing captured: {}", error.what);
                let outcome = RefreshOutcome::Waiting(error.what);
                return Refreshed { disk: sources::on_disk(&config), news, outcome };
            }
            Err(error) => Err(error),
        };
        if !Lock::is_held(&config.data_dir) {
            wait.ended();
        }
        let outcome = match captured {
            Ok(reports) => {
                news = reports.iter().any(|report| report.totals.captured_bytes > 0);
                note_success(&environment);
                // What cannot be read is a gap in the archive; the next refresh retries it.
                let has_gaps = reports.iter().any(|report| report.totals.unreadable > 0);
                let unreadable = if has_gaps { unreadable_files(&config) } else { None };
                RefreshOutcome::Captured { unreadable }
            }
            Err(error) => {
                tracing::debug!("cannot capture: {}", error.chain());
                RefreshOutcome::Failed(note_failure(&environment, &error))
            }
        };
        Refreshed { disk: sources::on_disk(&config), news, outcome }
    })
}

/// What the archive knows about files that cannot be read.
fn unreadable_files(config: &Config) -> Option<UnreadableFiles> {
    let store = Store::open_reader(&config.data_dir).ok()?;
    let door = Door::masking(&store).ok()?;
    let failures = View::new(store.scoped(Scope::Owner), &door, now()).failures(None).ok()?;
    let since = failures.iter().map(|failure| failure.since.clone()).min()?;
    let sentences: Vec<String> = failures.iter().map(FailureView::sentence).collect();
    Some(UnreadableFiles { since, what: sentences.join("; ") })
}

/// How long another process has been writing.
#[derive(Default)]
struct LockWait(Mutex<Option<Time>>);

impl LockWait {
    /// A first sync may take this long; a process that holds the lock longer hangs or is stopped.
    const PATIENCE: i64 = 600 * 1_000_000;

    fn is_too_long(&self, now: Time) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
        now.micros().saturating_sub(since.micros()) >= LockWait::PATIENCE
    }

    fn ended(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_never_released_is_a_failure() {
        let (wait, start) = (LockWait::default(), Time::from_seconds(1_000));
        let later = |seconds: i64| Time::from_seconds(1_000 + seconds);
        assert!(!wait.is_too_long(start) && !wait.is_too_long(later(599)));
        assert!(wait.is_too_long(later(600)));
        wait.ended();
        assert!(!wait.is_too_long(later(700)), "another process");
    }
}
