//! The growth table: what homes of several sizes cost, and how long answers take in them, as Markdown with a plot.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::http::Server;
use super::http_client::{Connection, Latencies, load};
use super::table::Row;
use super::{
    APPEND_MILLISECONDS, CODEX, COLD_SECONDS, Corpus, Floor, GIGABYTE, MEGABYTE, Outcome, PEAK_MEGABYTES,
    SEED, SHARE_PERCENT, Scratch, Settings, UNCHANGED_MILLISECONDS, cpu_of_children, file_size, first_sync,
    repeated_sync,
};

const APPENDED: u64 = 1_000_000;
const CLIENTS: usize = 8;
/// The width of the longest bar.
const WIDTH: f64 = 40.0;
const SESSIONS: &str = "/api/v1/codex/sessions";
const PAGE: &str = "messages of a session";
const RARE: &str = "search: a rare word";
/// Until a newcomer sees a page, and the sessions of the newest day, in milliseconds.
const FIRST_PAGE: f64 = 1_000.0;
const NEWEST_DAY: f64 = 3_000.0;
/// What is asked over HTTP: a name, the path, and the limit of the slowest of a hundred answers in milliseconds.
const QUESTIONS: [(&str, &str, f64); 7] = [
    ("list of sessions", SESSIONS, 5.0),
    (PAGE, "", 50.0),
    (RARE, "", 20.0),
    ("search: a common word", "/api/v1/search?q=request", 50.0),
    ("search: three words", "/api/v1/search?q=request%20index%20buffer", 50.0),
    ("search: a question", "/api/v1/search?q=where%20did%20the%20request%20of%20the%20ledger%20fail", 80.0),
    ("usage of all days", "/api/v1/usage?by=day&days=all", 50.0),
];

/// A figure at every size.
struct Series {
    what: String,
    unit: &'static str,
    limit: Option<f64>,
    values: Vec<f64>,
}

pub fn rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let mut all: Vec<Series> = Vec::new();
    let (mut sizes, mut floors) = (Vec::new(), Vec::new());
    for bytes in settings.sizes() {
        let (size, floor, figures) = measure(scratch, settings, bytes)?;
        sizes.push(size);
        floors.push(floor);
        for (number, (what, unit, limit, value)) in figures.into_iter().enumerate() {
            if all.len() == number {
                all.push(Series { what, unit, limit, values: Vec::new() });
            }
            all[number].values.push(value);
        }
    }
    if let Some(path) = &settings.document {
        fs::write(path, document(&sizes, &floors, &all)).map_err(|error| format!("{path}: {error}"))?;
        println!("written: {path}");
    }
    let rows = all.iter().flat_map(|series| {
        series.values.iter().zip(&sizes).map(|(value, size)| {
            let what = format!("{}, {size}", series.what);
            Row::new(&what, series.unit, *value, series.limit, "-".to_owned())
        })
    });
    Ok(rows.collect())
}

type FigureOfSize = (String, &'static str, Option<f64>, f64);

/// The figures of one size, its name and what the same bytes need at least.
fn measure(
    scratch: &Scratch,
    settings: &Settings,
    bytes: u64,
) -> Outcome<(String, String, Vec<FigureOfSize>)> {
    let files = usize::try_from(bytes / 345_000).unwrap_or(usize::MAX).max(8);
    let corpus = Corpus::write(scratch, &CODEX, &format!("growth-{bytes}"), bytes, files)?;
    let gigabytes = corpus.bytes as f64 / GIGABYTE;
    let [page, newest] = first_answers(scratch, &corpus)?;
    let cold = first_sync(&corpus)?;
    let share = corpus.database_bytes() as f64 / corpus.bytes as f64 * 100.0;
    let mut figures: Vec<FigureOfSize> = vec![
        ("first `up`, until the first page".into(), "ms", Some(FIRST_PAGE), page),
        ("first `up`, until the newest day's sessions".into(), "ms", Some(NEWEST_DAY), newest),
        ("first sync, CPU a GB".into(), "s", Some(COLD_SECONDS), cold.cpu_milliseconds / 1e3 / gigabytes),
        ("peak memory".into(), "MB", Some(PEAK_MEGABYTES), cold.peak_bytes / MEGABYTE),
        ("archive, share of raw".into(), "%", Some(SHARE_PERCENT), share),
    ];
    let listed = corpus.files()?;
    let parts = Floor::of(&listed)?;
    let unchanged = repeated_sync(&corpus, 5, |_| Ok(()))?;
    figures.push(("sync without changes, CPU".into(), "ms", Some(UNCHANGED_MILLISECONDS), unchanged));
    let grown = listed.iter().max_by_key(|path| file_size(path).ok()).ok_or("no transcript")?;
    let append = |round| corpus.append(grown, SEED + round, APPENDED).map(|_| ());
    let appended = repeated_sync(&corpus, 3, append)?;
    figures.push(("sync after an append of 1 MB, CPU".into(), "ms", Some(APPEND_MILLISECONDS), appended));
    figures.extend(answers(&corpus, settings)?);
    let before = cpu_of_children();
    let rebuilt =
        corpus.annals(&["rebuild"]).output().map_err(|error| format!("starting annals: {error}"))?;
    if !rebuilt.status.success() {
        return Err(format!("rebuild: {}", String::from_utf8_lossy(&rebuilt.stderr)));
    }
    let spent = before.zip(cpu_of_children()).map(|(before, after)| after - before).unwrap_or_default();
    figures.push(("rebuild, CPU a GB".into(), "s", Some(COLD_SECONDS), spent.as_secs_f64() / gigabytes));
    let per_gigabyte = |milliseconds: f64| milliseconds / 1e3 / gigabytes;
    let [read, scan, compress] = [parts.read, parts.scan, parts.compress].map(per_gigabyte);
    let floor = format!("read {read:.2} s, newlines {scan:.2} s, `zstd -1` {compress:.2} s");
    Ok((format!("{gigabytes:.2} GB, {} files", listed.len()), floor, figures))
}

/// How long a newcomer waits for a page and for the sessions of the newest day, with an archive that does not exist yet.
fn first_answers(scratch: &Scratch, corpus: &Corpus<'_>) -> Outcome<[f64; 2]> {
    let fresh = Corpus {
        client: corpus.client,
        scratch: corpus.scratch,
        home: corpus.home.clone(),
        archive: scratch.0.join("newcomer"),
        bytes: corpus.bytes,
    };
    let (files, waits) = (corpus.files()?, |started: Instant| started.elapsed().as_secs_f64() * 1e3);
    let newest = files.last().and_then(|file| file.parent()).ok_or("no transcript")?;
    let names = files.iter().filter(|file| file.parent() == Some(newest));
    let names: Vec<String> =
        names.filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect();
    let started = Instant::now();
    let server = Server::start_with(&fresh, "up")?;
    let mut connection = Connection::open(&server.target)?;
    connection.get("/")?;
    let page = waits(started);
    loop {
        let listed = connection.get_json(&format!("{SESSIONS}?limit={}", names.len().min(200)))?;
        let ids = listed["sessions"].as_array().into_iter().flatten();
        let ids: Vec<&str> = ids.filter_map(|session| session["session_id"].as_str()).collect();
        if names.iter().all(|name| ids.iter().any(|id| name.ends_with(id))) {
            break;
        }
        if started.elapsed() > Duration::from_secs(600) {
            return Err("the sessions of the newest day are not listed".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let newest = waits(started);
    drop(server);
    fs::remove_dir_all(&fresh.archive).map_err(|error| format!("{}: {error}", fresh.archive.display()))?;
    Ok([page, newest])
}

/// How long the slowest of a hundred answers takes with eight clients.
fn answers(corpus: &Corpus<'_>, settings: &Settings) -> Outcome<Vec<FigureOfSize>> {
    let duration = Duration::from_millis(if settings.smoke { 200 } else { 3_000 });
    let server = Server::start(corpus)?;
    let listed = Connection::open(&server.target)?.get_json(SESSIONS)?;
    let ids =
        listed["sessions"].as_array().into_iter().flatten().filter_map(|one| one["session_id"].as_str());
    let pages: Vec<String> = ids.map(|id| format!("{SESSIONS}/{id}/messages")).collect();
    let rare = rare_words(&server, &pages)?;
    let mut figures = Vec::new();
    for (name, path, limit) in QUESTIONS {
        let paths = match name {
            PAGE => pages.clone(),
            RARE => rare.iter().map(|word| format!("/api/v1/search?q={word}")).collect(),
            _ => vec![path.to_owned()],
        };
        let found: Latencies = load(&server.target, CLIENTS, duration, &paths, |waited| waited.whole)?;
        for (part, percent, limit) in [("p50", 50, None), ("p99", 99, Some(limit))] {
            figures.push((format!("{name}, {part}"), "ms", limit, found.percentile(percent)));
        }
    }
    Ok(figures)
}

/// Ids of requests in printed logs: each is in one line of one output.
fn rare_words(server: &Server, pages: &[String]) -> Outcome<Vec<String>> {
    let mut connection = Connection::open(&server.target)?;
    let mut words = Vec::new();
    for page in pages {
        let text = connection.get_json(page)?.to_string();
        let ids = text.split("finished request=").skip(1).take(2);
        let ids = ids.map(|rest| rest.chars().take_while(char::is_ascii_hexdigit).collect::<String>());
        words.extend(ids.filter(|id| id.len() >= 7));
    }
    if words.is_empty() { Err("no id of a request in any session".to_owned()) } else { Ok(words) }
}

fn document(sizes: &[String], floors: &[String], all: &[Series]) -> String {
    let mut out = String::from(
        "# Performance\n\nWritten by `make bench` (`benches/growth.rs`); nothing here was typed by hand. The homes are made-up Codex \
         transcripts\n(`annals-testkit/src/corpora/codex.rs`).\n\n",
    );
    let _ = writeln!(out, "Machine: {}.\n", machine());
    let _ = writeln!(out, "| figure | {} | limit |", sizes.join(" | "));
    let _ = writeln!(out, "|---|{}---:|", "---:|".repeat(sizes.len()));
    for series in all {
        let values: Vec<String> = series.values.iter().map(|value| figure(*value, series.unit)).collect();
        let limit = series.limit.map_or_else(|| "–".to_owned(), |limit| format!("{limit} {}", series.unit));
        let _ = writeln!(out, "| {} | {} | {limit} |", series.what, values.join(" | "));
    }
    let _ = writeln!(
        out,
        "\nCPU is user and system time of all threads. Answers are requested over HTTP by {CLIENTS} clients at once on \
         the machine that serves\nthem; p99 is the slowest of a hundred. The least that the same machine needs for the \
         same bytes, a GB:\n"
    );
    for (size, floor) in sizes.iter().zip(floors) {
        let _ = writeln!(out, "* {size}: {floor}");
    }
    out.push_str("\n## Growth\n\nBars are scaled to the largest value of each figure.\n\n```\n");
    for series in all {
        let most = series.values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let _ = writeln!(out, "{}", series.what);
        for (value, size) in series.values.iter().zip(sizes) {
            let size = size.split(',').next().unwrap_or(size);
            let bar = "█".repeat((value / most * WIDTH).round() as usize);
            let _ = writeln!(out, "  {size:>9} {bar} {}", figure(*value, series.unit));
        }
    }
    out.push_str("```\n");
    out
}

fn figure(value: f64, unit: &str) -> String {
    format!("{value:.*} {unit}", usize::from(value < 100.0))
}

/// What the kernel says about the machine, and how busy it was: figures of a busy machine are higher.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(Path::new(path)).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let models = || info.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = models().next().map_or("unknown processor", |(_, model)| model);
    let kilobytes = read("/proc/meminfo").split_whitespace().nth(1).and_then(|text| text.parse::<f64>().ok());
    let memory =
        kilobytes.map_or_else(String::new, |kilobytes| format!(", {:.0} GB of memory", kilobytes / 1e6));
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().next().unwrap_or("unknown");
    format!("{model}, {} cores{memory}, load average at the end {load}", models().count())
}
