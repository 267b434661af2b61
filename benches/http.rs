//! The HTTP table: response times under concurrent load, and the memory of the server.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::http_client::{Connection, Figure, Latencies, Target, load};
use super::table::Row;
use super::{CODEX, Corpus, MEGABYTE, Outcome, SEED, Scratch, Settings, ticks};
use annals_testkit::clock;
use annals_testkit::corpora::codex::write_long_session;
use annals_testkit::corpora::generator::{DAY, DAYS, FIRST_DAY};

const CLIENTS: usize = 8;
const SESSIONS: &str = "/api/v1/codex/sessions";

/// How long each figure is measured, and how long memory is watched.
struct Pace {
    route: Duration,
    load: Duration,
    rest: Duration,
    messages: usize, // of the long session
}

/// A server that is stopped at the end of the run.
pub struct Server {
    process: Child,
    pub target: Target,
}

impl Server {
    pub fn start(corpus: &Corpus<'_>) -> Outcome<Self> {
        Self::start_with(corpus, "serve")
    }

    /// With `serve` or `up`.
    pub fn start_with(corpus: &Corpus<'_>, verb: &str) -> Outcome<Self> {
        let mut process = corpus
            .annals(&[verb, "--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null()) // a line for each request, which is part of the work
            .spawn()
            .map_err(|error| format!("starting annals: {error}"))?;
        let mut line = String::new();
        let read = process.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let target = Target { address: String::new(), token: String::new() };
        let mut server = Self { process, target };
        let announced: serde_json::Value = match read {
            Some(Ok(_)) => {
                serde_json::from_str(&line).map_err(|error| format!("{verb} said {line:?}: {error}"))?
            }
            _ => return Err(format!("{verb} said nothing")),
        };
        let field = |name: &str| announced.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        server.target.address = field("url").trim_start_matches("http://").to_owned();
        server.target.token = field("token").to_owned();
        Ok(server)
    }

    /// Megabytes of memory; zero if the kernel does not report it.
    fn memory(&self) -> f64 {
        resident(self.process.id())
    }

    fn cpu(&self) -> Duration {
        ticks(&self.process.id().to_string(), 11).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        if let Err(error) = ended {
            eprintln!("annals serve still runs: {error}");
        }
    }
}

/// The routes that clients request.
struct Paths {
    pages: Vec<String>,
    sessions: Vec<String>,
    messages: Vec<String>,
    long: String,
    analytics: String,
    usage_by_day: String,
    usage_by_session: String,
}

impl Paths {
    /// Walks the complete list of sessions.
    fn of(target: &Target, long: &str) -> Outcome<Self> {
        let mut connection = Connection::open(target)?;
        let (mut pages, mut sessions) = (Vec::new(), Vec::new());
        let mut next = Some(SESSIONS.to_owned());
        while let Some(path) = next {
            let page = connection.get_json(&path)?;
            let listed = page["sessions"].as_array().into_iter().flatten();
            let ids = listed.filter_map(|session| session["session_id"].as_str()).filter(|id| *id != long);
            sessions.extend(ids.map(|id| format!("{SESSIONS}/{id}")));
            next = page["next_cursor"].as_str().map(|cursor| format!("{SESSIONS}?cursor={cursor}"));
            pages.extend(next.clone());
        }
        if pages.is_empty() || sessions.is_empty() {
            return Err("the list of sessions has only one page".to_owned());
        }
        // The corpus always ends on the same day, so that its bytes are always the same: request as many days as
        // needed to include its last ninety.
        let now = clock::since_1970().as_millis() as u64;
        let days = (now.saturating_sub(FIRST_DAY + (DAYS - 90) * DAY) / DAY).max(90);
        Ok(Self {
            messages: sessions.iter().map(|session| format!("{session}/messages")).collect(),
            long: format!("{SESSIONS}/{long}/messages"),
            analytics: format!("/api/v1/codex/analytics/tools?days={days}"),
            usage_by_day: "/api/v1/usage?by=day&days=all".to_owned(),
            usage_by_session: "/api/v1/usage?by=session&days=all".to_owned(),
            pages,
            sessions,
        })
    }

    /// One of each kind, in rotation.
    fn mixed(&self) -> Vec<String> {
        let kinds = self.pages.iter().cycle().zip(&self.sessions).zip(&self.messages).take(500);
        let rare = [&self.long, &self.analytics, &self.usage_by_day, &self.usage_by_session];
        let rare = rare.into_iter().map(String::as_str).chain([SESSIONS]).cycle();
        kinds
            .zip(rare)
            .flat_map(|(((page, session), messages), rare)| {
                [page, session, messages, rare].map(str::to_owned)
            })
            .collect()
    }
}

pub fn rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let pace = if settings.smoke {
        let [route, load, rest] = [200, 2_000, 500].map(Duration::from_millis);
        Pace { route, load, rest, messages: 500 }
    } else {
        let [route, load, rest] = [5, 60, 5].map(Duration::from_secs);
        Pace { route, load, rest, messages: 10_000 }
    };
    let corpus = Corpus::write(scratch, &CODEX, "whole", settings.bytes, settings.files)?;
    let long = write_long_session(&corpus.home, SEED, pace.messages)
        .map_err(|error| format!("writing the long session: {error}"))?;
    corpus.sync()?;
    measure(&Server::start(&corpus)?, &pace, &long)
}

fn measure(server: &Server, pace: &Pace, long: &str) -> Outcome<Vec<Row>> {
    let target = &server.target;
    let paths = Paths::of(target, long)?;
    let at_first = server.memory();
    let session = Connection::open(target)?.get_json(&format!("{SESSIONS}/{long}"))?;
    let messages = session["message_count"].as_u64().unwrap_or_default();
    if (messages as usize) < pace.messages {
        return Err(format!("the long session has {messages} messages"));
    }
    let whole: Figure = |waited| waited.whole;
    let first: Figure = |waited| waited.first_byte;
    let floors =
        [CLIENTS, 1].map(|clients| load(target, clients, pace.route, &["/healthz".to_owned()], whole));
    let [floor_of_many, floor_of_one] = floors.map(|floor| floor.map(|floor| floor.percentile(99)));
    let (floor_of_many, floor_of_one) = (floor_of_many?, floor_of_one?);
    let row = |what: &str, clients: usize, paths: &[String], limit: Option<f64>, figure| {
        let found = load(target, clients, pace.route, paths, figure)?;
        let floor = if clients == 1 { floor_of_one } else { floor_of_many };
        Ok::<Row, String>(latency_row(what, clients, &found, limit, floor))
    };
    let one = |path: &str| [path.to_owned()];
    let first_page = one(SESSIONS);
    let long_session = format!("first byte of a session of {messages} messages");
    let mut rows = vec![
        row("sessions, first page", CLIENTS, &first_page, Some(5.0), whole)?,
        row("sessions, further pages", CLIENTS, &paths.pages, Some(5.0), whole)?,
        row("one session", CLIENTS, &paths.sessions, Some(5.0), whole)?,
        row("messages, first page", CLIENTS, &paths.messages, None, whole)?,
        row("messages, first page", 1, &paths.messages, None, whole)?,
        row(&long_session, 1, &one(&paths.long), Some(20.0), first)?,
        row(
            &format!("{long_session}, 500 a page"),
            1,
            &one(&format!("{}?limit=500", paths.long)),
            Some(20.0),
            first,
        )?,
        row("tools of 90 days", 1, &one(&paths.analytics), Some(50.0), whole)?,
        row("tools of all days", 1, &one("/api/v1/codex/analytics/tools?days=all"), None, whole)?,
        row("usage of all days by day", 1, &one(&paths.usage_by_day), Some(50.0), whole)?,
        row("usage of all days by session", 1, &one(&paths.usage_by_session), Some(50.0), whole)?,
    ];
    rows.push(latency_row(
        "one session after a silence",
        1,
        &after_silences(target, &paths)?,
        None,
        floor_of_one,
    ));
    rows.extend(memory_rows(server, pace, &paths, at_first)?);
    let before = server.cpu();
    std::thread::sleep(pace.rest);
    let spent = (server.cpu() - before).as_secs_f64() * 1e3;
    let at_rest = format!("CPU in {:.1} s without questions", pace.rest.as_secs_f64());
    rows.push(Row::new(&at_rest, "ms", spent, Some(10.0), "one tick of the kernel: 10".to_owned()));
    Ok(rows)
}

/// Clients that return soon do not wait for a long refresh; those that return rarely do.
fn after_silences(target: &Target, paths: &Paths) -> Outcome<Latencies> {
    let mut connection = Connection::open(target)?;
    let mut get_after_silence = |path: &String| {
        std::thread::sleep(Duration::from_millis(1_200));
        connection.get(path).map(|waited| waited.whole.as_secs_f64() * 1e3)
    };
    Ok(Latencies::of(paths.sessions.iter().take(3).map(&mut get_after_silence).collect::<Outcome<_>>()?))
}

pub fn latency_row(what: &str, clients: usize, found: &Latencies, limit: Option<f64>, floor: f64) -> Row {
    let (half, all) = (found.percentile(50), found.percentile(100));
    let clients = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    let what = format!("{what}, {clients}, p99 (p50 {half:.1}, max {all:.1}, n {})", found.count());
    Row::new(&what, "ms", found.percentile(99), limit, format!("/healthz {floor:.2}"))
}

/// Resident memory of a process, in megabytes.
pub fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) * 1_024.0 / MEGABYTE
}

/// Growth is measured after all clients have requested all routes for a while: by then the caches of every reader are
/// full, and nothing else may stay.
fn memory_rows(server: &Server, pace: &Pace, paths: &Paths, at_first: f64) -> Outcome<Vec<Row>> {
    let mixed = paths.mixed();
    load(&server.target, CLIENTS, pace.load / 4, &mixed, |waited| waited.whole)?;
    let before = server.memory();
    let generator = put_under_load(&server.target, pace.load, &mixed)?;
    let growth = server.memory() - before;
    let limit = (before / 10.0 + 5.0).round();
    let load = format!("memory growth in {} s of {generator}", pace.load.as_secs());
    Ok(vec![
        Row::new(
            "memory, every route asked by all",
            "MB",
            before,
            None,
            format!("at the start {at_first:.0}"),
        ),
        Row::new(&load, "MB", growth, Some(limit), "a tenth of it and 5 MB".to_owned()),
    ])
}

/// Uses `wrk` if installed, else our own clients. Returns which.
fn put_under_load(target: &Target, duration: Duration, paths: &[String]) -> Outcome<String> {
    let quoted: Vec<String> = paths.iter().map(|path| format!("{path:?}")).collect();
    let script = format!(
        "local paths = {{ {} }}\nlocal at = 0\n\
         request = function()\n  at = at % #paths + 1\n  return wrk.format(\"GET\", paths[at])\nend\n",
        quoted.join(", ")
    );
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-http-{}.lua", std::process::id()));
    fs::write(&file, script).map_err(|error| format!("{}: {error}", file.display()))?;
    let wrk = Command::new("wrk")
        .args(["--threads", "2", "--connections", &CLIENTS.to_string()])
        .args(["--duration", &format!("{}s", duration.as_secs()), "--timeout", "30s", "--script"])
        .arg(&file)
        .args(["--header", &format!("Authorization: Bearer {}", target.token)])
        .arg(format!("http://{}", target.address))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    drop(fs::remove_file(&file));
    if wrk.is_ok_and(|status| status.success()) {
        return Ok("wrk".to_owned());
    }
    let found = load(target, CLIENTS, duration, paths, |waited| waited.whole)?;
    let each_second = found.count() as f64 / duration.as_secs_f64();
    Ok(format!("{CLIENTS} clients, {each_second:.0} answers a second"))
}
