//! The HTTP server: web pages and API over the archive, every request with a scope, on loopback by default.

mod access;
mod access_log;
mod answer;
mod api;
mod browsers;
mod connections;
mod events;
mod mcp;
mod network;
mod pages;
mod refresh;
mod tls;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::routing::{get, put};
use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_http::compression::CompressionLayer;

pub use api::exchange::Exchange;
pub use events::Work;
pub use mcp::{AgentSetup, serve_agent};
pub use pages::{IndexLine, SessionDocument, write_index, write_session};
pub use refresh::{Refresh, RefreshOutcome, Refreshed, UnreadableFiles, WatchSetup, watch};
pub use tls::TlsFiles;

use crate::view::{DiskState, Door, Preferences, TokenKey, View, local_token, new_link_with, source_routes};
use access_log::AccessLog;
use annals_core::{Error, Result, Scope, Time};
use annals_store::{BrowserSession, NewBrowser, Store};
use events::Events;
use network::Network;
use refresh::{Freshness, HomeWatch};
use tls::Tls;

/// Requests handled at the same time; further ones wait.
const ANSWERERS: usize = 8;
/// How long pending requests may take once the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Logs one line.
pub type Log = fn(&str);

/// Settings of the server.
pub struct Setup {
    /// The archive's folder.
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// Further allowed host names.
    pub hosts: Vec<String>,
    pub tls: Option<TlsFiles>,
    /// Addresses of reverse proxies, and the header in which they name a member.
    pub proxies: Vec<String>,
    pub user_header: Option<String>,
    pub refresh: Option<Refresh>,
    /// The homes as they are at the start.
    pub disk: Vec<DiskState>,
    /// Directories in which a change triggers a refresh.
    pub watch: Vec<PathBuf>,
    /// Answers archives that push and pull.
    pub exchange: Option<Exchange>,
    pub preferences: Preferences,
    /// Logs each request, without content.
    pub log: Option<Log>,
    pub now: fn() -> Time,
}

/// Where the server listens, and the tokens that give access.
pub struct Address {
    pub url: String,
    pub token: String,
    /// Links that log a browser in, each of them once: one to print, one for the command line of a browser, which others
    /// can see.
    pub links: [String; 2],
}

/// Reads the archive for one request at a time on each handle.
struct Reading {
    data_dir: PathBuf,
    readers: Mutex<Vec<Store>>,
    door: Door,
    freshness: Arc<Freshness>,
    turns: Semaphore,
    preferences: Preferences,
    access_log: AccessLog,
    now: fn() -> Time,
}

impl Reading {
    fn new(
        data_dir: PathBuf,
        archive: Store,
        freshness: Arc<Freshness>,
        now: fn() -> Time,
    ) -> Result<Reading> {
        let turns = (std::thread::available_parallelism().map_or(1, usize::from) + 1).min(ANSWERERS);
        Ok(Reading {
            data_dir,
            door: Door::masking(&archive)?,
            readers: Mutex::new(vec![archive]),
            freshness,
            turns: Semaphore::new(turns),
            preferences: Preferences::default(),
            access_log: AccessLog::default(),
            now,
        })
    }

    fn with_preferences(self, preferences: Preferences) -> Reading {
        Reading { preferences, ..self }
    }

    /// For a program that only reads. The archive is created, and migrated, if it can be.
    fn of_archive(data_dir: &Path, refresh: Option<Refresh>, now: fn() -> Time) -> Result<Reading> {
        let archive = match Store::open(data_dir) {
            Ok(_) => Store::open_reader(data_dir)?,
            // On a read-only or full disk.
            Err(error) => Store::open_to_read(data_dir)?.ok_or(error)?,
        };
        let freshness = Freshness::new(refresh, Vec::new(), Arc::new(Events::new()), now);
        Reading::new(data_dir.to_owned(), archive, Arc::new(freshness), now)
    }

    /// A handle for one request; returned with `give_back`.
    fn reader(&self) -> Result<Store> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Ok(idle.map_or_else(|| Store::open_reader(&self.data_dir), Ok)?)
    }

    /// The archive as visible to a scope.
    fn view<'a>(&'a self, store: &'a Store, scope: Scope, disk: &'a [DiskState]) -> View<'a> {
        let percent = self.freshness.captured_percent();
        let view = View::new(store.scoped(scope), &self.door, (self.now)());
        view.with_disk(disk).while_capturing(percent).with_preferences(&self.preferences)
    }

    fn give_back(&self, reader: Store) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }
}

/// State shared by all requests.
struct App {
    reading: Arc<Reading>,
    /// The only handle that writes: the last use of tokens, and sessions of browsers.
    writer: Mutex<Store>,
    /// Sessions of browsers that could not be written, on a disk that is full.
    memory: Mutex<Option<Store>>,
    /// Links that were opened then.
    used_links: Mutex<HashSet<[u8; 32]>>,
    /// The archive cannot be written, and the writer is in memory.
    in_memory: bool,
    /// The owner's token then, if the archive has none.
    passing_token: Option<String>,
    port: OnceLock<u16>,
    token_key: TokenKey,
    hosts: Vec<String>,
    network: Network,
    freshness: Arc<Freshness>,
    events: Arc<Events>,
    secrets: api::secrets::Secrets,
    exchange: Option<api::exchange::Exchanging>,
    started: Time,
    /// Becomes true when the server stops.
    stop: tokio::sync::watch::Sender<bool>,
    log: Option<Log>,
    now: fn() -> Time,
}

impl App {
    /// The port that the server listens on.
    fn port(&self) -> u16 {
        self.port.get().copied().unwrap_or_default()
    }

    /// The session of a browser, and whether the archive has it.
    fn find_browser(&self, hash: &[u8; 32], port: u16, now: Time) -> Option<(BrowserSession, bool)> {
        if !self.in_memory {
            let store = self.reading.reader().ok()?;
            let session = store.browser_session(hash, port, now);
            self.reading.give_back(store);
            if let Some(session) = session.ok()? {
                return Some((session, true));
            }
        }
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let session = memory.as_ref()?.browser_session(hash, port, now).ok()??;
        Some((session, false))
    }

    /// Renews the session of a browser, where it is. The response does not depend on it.
    fn renew_browser(&self, id: i64, is_kept: bool, now: Time, expires_at: Time) {
        if is_kept {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            drop(writer.renew_browser(id, now, expires_at));
        } else if let Some(memory) = &*self.memory.lock().unwrap_or_else(PoisonError::into_inner) {
            drop(memory.renew_browser(id, now, expires_at));
        }
    }

    /// Starts the session of a browser: in the archive, or in memory if that cannot be written.
    fn keep_browser(&self, browser: &NewBrowser<'_>, now: Time) -> Result<()> {
        if !self.in_memory {
            let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            match writer.start_browser(browser, now) {
                Ok(()) => return Ok(()),
                Err(error) => tracing::warn!("cannot keep a browser session in the archive: {error}"),
            }
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match memory.take() {
            Some(kept) => kept,
            None => Store::in_memory()?,
        };
        let started = kept.start_browser(browser, now);
        *memory = Some(kept);
        Ok(started?)
    }
}

/// Who may enter: in the archive, or in memory where that cannot be written.
struct Doors {
    /// Has the sessions of browsers.
    store: Store,
    /// The sessions of browsers end with the server.
    in_memory: bool,
    token: String,
    token_key: TokenKey,
    links: [String; 2],
}

impl Doors {
    fn open(data_dir: &Path, now: Time) -> Result<Doors> {
        let written = Store::open(data_dir).map_err(Error::from).and_then(|store| {
            let token_key = TokenKey::of(&store)?;
            Doors::of(store, local_token, token_key, now)
        });
        written.or_else(|error| {
            // On a read-only or full disk.
            let Ok(Some(archive)) = Store::open_to_read(data_dir) else { return Err(error) };
            let token = local_token(&archive)?;
            let token_key = TokenKey::of(&archive)?;
            let doors = Doors::of(Store::in_memory()?, |_| Ok(token), token_key, now)?;
            Ok(Doors { in_memory: true, ..doors })
        })
    }

    fn of(
        store: Store,
        token: impl FnOnce(&Store) -> Result<String>,
        token_key: TokenKey,
        now: Time,
    ) -> Result<Doors> {
        let token = token(&store)?;
        let links = [new_link_with(&token_key, &store, now)?, new_link_with(&token_key, &store, now)?];
        Ok(Doors { store, in_memory: false, token, token_key, links })
    }
}

/// Serves until the process is stopped. Calls `ready` with the address once it listens.
pub fn serve(setup: Setup, ready: impl FnOnce(&Address) -> Result<()>) -> Result<()> {
    let network = Network::new(&setup.proxies, setup.user_header.as_deref())?;
    let tls = setup.tls.map(Tls::load).transpose()?;
    let Doors { store, in_memory, token, token_key, links } = Doors::open(&setup.data_dir, (setup.now)())?;
    let archive = Store::open_reader(&setup.data_dir)?;
    if !setup.listen.ip().is_loopback() && !archive.has_members()? {
        return Err(Error::new(format!(
            "refusing to listen on {}: other machines can reach it and there are no members",
            setup.listen
        ))
        .hint("add members with `annals members add NAME`, or use --listen 127.0.0.1:4848"));
    }
    if !setup.listen.ip().is_loopback() && tls.is_none() && !network.has_proxies() {
        return Err(Error::new(format!(
            "refusing to listen on {} without encryption: others could read tokens and sessions",
            setup.listen
        ))
        .hint(
            "use --tls-cert FILE --tls-key FILE, or name the reverse proxy that encrypts: --trust-proxy ADDR",
        ));
    }
    let events = Arc::new(Events::new());
    let freshness = Arc::new(Freshness::new(setup.refresh, setup.disk, events.clone(), setup.now));
    let reading = Reading::new(setup.data_dir, archive, freshness.clone(), setup.now)?;
    let app = Arc::new(App {
        reading: Arc::new(reading.with_preferences(setup.preferences)),
        port: OnceLock::new(),
        token_key,
        writer: Mutex::new(store),
        memory: Mutex::default(),
        used_links: Mutex::default(),
        in_memory,
        passing_token: in_memory.then(|| token.clone()),
        hosts: setup.hosts,
        network,
        freshness,
        events,
        secrets: api::secrets::Secrets::default(),
        exchange: setup.exchange.map(api::exchange::Exchanging::new),
        started: (setup.now)(),
        stop: tokio::sync::watch::Sender::new(false),
        log: setup.log,
        now: setup.now,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(ANSWERERS + 1)
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(setup.listen).await.map_err(|error| {
            Error::new(format!("cannot listen on {}: {error}", setup.listen))
                .hint("use another port with --listen ADDR:PORT (port 0 picks a free one)")
        })?;
        let address = listener.local_addr()?;
        // Listen for signals first: whoever reads the address may stop us at once.
        let mut stop = Stop::listen()?;
        let mut stop_receiver = app.stop.subscribe();
        let stopping = app.clone();
        tokio::spawn(async move {
            stop.received().await;
            stopping.stop.send_replace(true);
        });
        app.port.get_or_init(|| address.port());
        let url = server_url(tls.is_some(), &app.hosts, address);
        let links = links.map(|link| format!("{url}/?once={link}"));
        ready(&Address { url, token, links })?;
        let routes = routes(app.clone());
        let watch = HomeWatch::start(&setup.watch, &app.freshness);
        tokio::spawn(refresh::keep_current(app.freshness.clone(), watch));
        let mut grace_receiver = stop_receiver.clone();
        let stopped = async move { drop(stop_receiver.wait_for(|stop| *stop).await) };
        // A client that sends half a request, or never reads the response, must not keep the server from stopping.
        let grace_is_over = async move {
            drop(grace_receiver.wait_for(|stop| *stop).await);
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = connections::serve(listener, tls, routes, stopped) => {}
            () = grace_is_over => {}
        }
        Ok(())
    });
    runtime.shutdown_timeout(GRACE);
    served
}

/// Where the server answers. A certificate is for a name, so that comes first with TLS.
pub fn server_url(is_encrypted: bool, hosts: &[String], address: SocketAddr) -> String {
    match hosts.first().filter(|_| is_encrypted) {
        None => format!("{}://{address}", if is_encrypted { "https" } else { "http" }),
        Some(host) if address.port() == 443 => format!("https://{host}"),
        Some(host) => format!("https://{host}:{}", address.port()),
    }
}

fn routes(app: Arc<App>) -> Router {
    let mut router = pages::routes()
        .route("/healthz", get(api::status::health))
        .route("/openapi.json", get(api::openapi::document))
        .route("/docs", get(api::docs::page))
        .route("/api/v1/agent-sessions/sources", get(api::archive::sources))
        .nest("/api/v1/agent-sessions/{source}", api::sessions::routes())
        .route("/api/v1/search", get(api::search::found))
        .route("/api/v1/lineage", get(api::lineage::of_file))
        .route("/api/v1/usage", get(api::usage::sums))
        .route("/api/v1/usage/responses", get(api::usage::responses))
        .route("/api/v1/sources/{source}/manifest", get(api::archive::manifest))
        .route("/api/v1/sources/{source}/streams/{stream}/records", get(api::archive::records))
        .route("/api/v1/sources/{source}/streams/{stream}/records/{key}", get(api::archive::record))
        .route("/api/v1/status", get(api::status::status))
        .route("/api/v1/audit", get(api::archive::audit))
        .route("/api/v1/gaps", get(api::archive::gaps))
        .route("/api/v1/sessions", get(api::activity::all_sessions))
        .route(
            "/api/v1/projects/arrangement",
            get(api::arrangement::of_project)
                .patch(api::arrangement::patch_project)
                .delete(api::arrangement::delete_project),
        )
        .route("/api/v1/searches", get(api::arrangement::searches))
        .route(
            "/api/v1/searches/{name}",
            put(api::arrangement::save_search).delete(api::arrangement::remove_search),
        )
        .route("/api/v1/activity", get(api::activity::year))
        .route("/api/v1/usage/days", get(api::activity::days))
        .route("/api/v1/library", get(api::library::items))
        .route("/api/v1/library/item", get(api::library::item))
        .route("/api/v1/secrets", get(api::secrets::list))
        .route("/api/v1/members", get(api::members::list))
        .route("/api/v1/access", get(api::members::access))
        .route("/events", get(events::stream))
        .merge(api::exchange::routes())
        .merge(mcp::routes(&app));
    for (source, route) in source_routes() {
        let family = api::sessions::routes().layer(axum::Extension(api::parameters::OfSource(source)));
        router = router.nest(&format!("/api/v1/{route}"), family);
    }
    router
        .fallback(answer::no_route)
        .method_not_allowed_fallback(answer::no_method)
        .layer(middleware::from_fn_with_state(app.clone(), access::guard))
        .layer(DefaultBodyLimit::max(api::arrangement::LONGEST_BODY))
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn_with_state(app.clone(), answer::write_log))
        .with_state(app)
}

/// The signals that stop the server.
struct Stop {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    #[cfg(unix)]
    fn listen() -> Result<Stop> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stop { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(unix)]
    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn listen() -> Result<Stop> {
        Ok(Stop {})
    }

    #[cfg(not(unix))]
    async fn received(&mut self) {
        drop(tokio::signal::ctrl_c().await);
    }
}
