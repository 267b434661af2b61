//! Measures the release binary on generated corpora. Each figure is printed with its limit and a floor: the least
//! that the same machine needs for the same bytes in the same run.
//!
//! `cargo bench` measures 1 GB of each client and fails if a limit is exceeded. `cargo bench -- --smoke`, or
//! ANNALS_BENCH_SMOKE=1, uses 20 MB and fails only if a run fails or its figures are absurd. `--bytes N` sets another
//! size, `--only NAME` selects one of the tables (codex, http, pages, claude, opencode, gemini, forget, lineage, chatgpt,
//! search, growth), and
//! ANNALS_BENCH_KEEP=1 keeps the corpora. Search is measured on three times the size, growth at 1 and 3 GB:
//! `--sizes 1,3,12` sets other sizes, and `--document FILE` writes its figures as Markdown.

// A bench is a separate program: it prints its table and reads its own switches.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

mod agents;
mod chatgpt;
mod forget;
mod growth;
mod http;
mod http_client;
mod lineage;
mod pages;
mod search;
mod search_set;
mod settings;
mod table;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use annals_testkit::clock;
use annals_testkit::corpora::claude::{append_rows, write_claude_home};
use annals_testkit::corpora::codex::{append_turns, write_codex_home};
use annals_testkit::corpora::gemini::{append_messages, write_gemini_home};
use annals_testkit::corpora::generator::{Plan, Written};
use annals_testkit::corpora::opencode::{append_conversation, write_opencode_home};
use settings::Settings;
use table::{Row, print_table};

const GIGABYTE: f64 = 1e9;
const MEGABYTE: f64 = 1e6;
const BLOCK: usize = 256 << 10;
const SEED: u64 = 20_260_301;

/// Limits of every home, whatever its size.
const COLD_SECONDS: f64 = 14.0;
const PEAK_MEGABYTES: f64 = 256.0;
const SHARE_PERCENT: f64 = 35.0;
const UNCHANGED_MILLISECONDS: f64 = 100.0;
const APPEND_MILLISECONDS: f64 = 60.0;

type Outcome<T> = Result<T, String>;

/// A client whose homes can be generated.
struct Client {
    name: &'static str,
    variable: &'static str,
    folders: &'static [&'static str], // what is archived of a home, apart from some small files
    write: fn(&Path, &Plan) -> io::Result<Written>,
    append: fn(&Path, u64, u64) -> io::Result<u64>,
}

const CODEX: Client = Client {
    name: "codex",
    variable: "CODEX_HOME",
    folders: &["sessions"],
    write: write_codex_home,
    append: append_turns,
};
const CLAUDE: Client = Client {
    name: "claude",
    variable: "CLAUDE_CONFIG_DIR",
    folders: &["projects", "file-history", "todos"],
    write: write_claude_home,
    append: append_rows,
};

/// One database with a conversation for each transcript of the others.
const OPENCODE: Client = Client {
    name: "opencode",
    variable: "XDG_DATA_HOME",
    folders: &["opencode"],
    write: write_opencode_home,
    append: append_conversation,
};
/// A third of the chats are documents that the client rewrote at each turn.
const GEMINI: Client = Client {
    name: "gemini",
    variable: "GEMINI_CLI_HOME",
    folders: &[".gemini/tmp"],
    write: write_gemini_home,
    append: append_messages,
};

/// What is measured, by name. `http` queries the archive that `codex` created, or creates it.
type Measure = fn(&Scratch, &Settings) -> Outcome<Vec<Row>>;
const TABLES: [(&str, Measure); 11] = [
    ("codex", codex_rows),
    ("http", http::rows),
    ("pages", pages::rows),
    ("claude", claude_rows),
    ("opencode", opencode_rows),
    ("gemini", gemini_rows),
    ("forget", forget::rows),
    ("lineage", lineage::rows),
    ("chatgpt", chatgpt::rows),
    ("search", search::rows),
    ("growth", growth::rows),
];

/// The directory of one run, deleted at its end, even after a failure.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Outcome<Self> {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-archive-{}", std::process::id()));
        for name in ["empty", "nothing"] {
            fs::create_dir_all(folder.join(name))
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::env::var_os("ANNALS_BENCH_KEEP").is_some_and(|value| value == "1") {
            println!("kept: {}", self.0.display());
        } else if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} is left behind: {error}", self.0.display());
        }
    }
}

/// A generated home and its archive.
struct Corpus<'a> {
    client: &'static Client,
    scratch: &'a Path,
    home: PathBuf,
    archive: PathBuf,
    bytes: u64,
}

/// What the binary reports about its own run.
struct Sync {
    cpu_milliseconds: f64,
    wall_milliseconds: f64,
    peak_bytes: f64,
}

impl<'a> Corpus<'a> {
    /// Reuses a home that an earlier table of the same run wrote.
    fn write(
        scratch: &'a Scratch,
        client: &'static Client,
        name: &str,
        bytes: u64,
        files: usize,
    ) -> Outcome<Self> {
        let name = format!("{}-{name}", client.name);
        let (home, archive) = (scratch.0.join(&name), scratch.0.join(format!("{name}-archive")));
        if home.is_dir() {
            let mut corpus = Self { client, scratch: &scratch.0, home, archive, bytes: 0 };
            corpus.count()?;
            return Ok(corpus);
        }
        let started = Instant::now();
        let written = (client.write)(&home, &Plan { seed: SEED, bytes, files })
            .map_err(|error| format!("writing the corpus: {error}"))?;
        let megabytes = written.bytes as f64 / MEGABYTE;
        println!(
            "{name} corpus: {megabytes:.0} MB, {} files, {} lines, written at {:.0} MB/s",
            written.files,
            written.lines,
            megabytes / started.elapsed().as_secs_f64()
        );
        let mut corpus = Self { client, scratch: &scratch.0, home, archive, bytes: 0 };
        corpus.count()?;
        Ok(corpus)
    }

    fn count(&mut self) -> Outcome<()> {
        self.bytes = self.files()?.iter().map(|path| file_size(path)).sum::<Outcome<u64>>()?;
        Ok(())
    }

    fn append(&self, file: &Path, seed: u64, bytes: u64) -> Outcome<u64> {
        (self.client.append)(file, seed, bytes).map_err(|error| format!("appending: {error}"))
    }

    /// With a clean environment, so that no other source on the machine is found.
    fn annals(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(annals_testkit::program());
        command
            .arg("--home")
            .arg(&self.archive)
            .args(arguments)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.scratch.join("empty"))
            .envs(
                [&CODEX, &CLAUDE, &OPENCODE, &GEMINI]
                    .map(|other| (other.variable, self.scratch.join("nothing"))),
            )
            .env(self.client.variable, &self.home);
        clock::set(&mut command);
        command
    }

    fn sync(&self) -> Outcome<Sync> {
        self.run_measured(&["sync", "--json"])
    }

    /// A run that reports its cost.
    fn run_measured(&self, arguments: &[&str]) -> Outcome<Sync> {
        let before = cpu_of_children();
        let output = self.annals(arguments).output().map_err(|error| format!("starting annals: {error}"))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{arguments:?} failed with {}: {complaint}", output.status));
        }
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("the answer: {error}"))?;
        let number = |key: &str| {
            answer
                .get(key)
                .and_then(serde_json::Value::as_f64)
                .ok_or_else(|| format!("no number {key} in {answer}"))
        };
        let sync = Sync {
            cpu_milliseconds: number("cpu_ms")?,
            wall_milliseconds: number("wall_ms").unwrap_or_default(),
            peak_bytes: number("peak_memory_bytes")?,
        };
        // The figures are the binary's own; the kernel's accounting shows whether they are plausible.
        if let (Some(before), Some(after)) = (before, cpu_of_children()) {
            let counted = (after - before).as_secs_f64() * 1e3;
            if counted > sync.cpu_milliseconds * 1.25 + 50.0 {
                eprintln!("warning: cpu_ms is {:.0}, the kernel counted {counted:.0}", sync.cpu_milliseconds);
            }
        }
        Ok(sync)
    }

    fn database_bytes(&self) -> u64 {
        let size = |name| fs::metadata(self.archive.join(name)).map_or(0, |metadata| metadata.len());
        size("annals.db") + size("annals.db-wal")
    }

    /// All archived files, by name; names of Codex transcripts begin with their times.
    fn files(&self) -> Outcome<Vec<PathBuf>> {
        let folders = self.client.folders.iter().map(|folder| self.home.join(folder));
        let (mut found, mut folders): (_, Vec<PathBuf>) = (Vec::new(), folders.collect());
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            for path in entries.flatten().map(|entry| entry.path()) {
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// User and system time from `/proc/PROCESS/stat`, given the index of the first field after the name.
fn ticks(process: &str, first_field: usize) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    let ticks = number(first_field)? + number(first_field + 1)?;
    Some(Duration::from_millis(ticks * 10)) // Linux shows hundredths of a second, whatever its own clock does
}

fn cpu_of_children() -> Option<Duration> {
    ticks("self", 13)
}

/// CPU time of this thread in nanoseconds if the kernel counts them, else in ticks, else wall-clock time.
fn cpu_now(since: Instant) -> Duration {
    let counted = fs::read_to_string("/proc/self/schedstat").ok();
    let counted =
        counted.and_then(|text| text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos));
    counted.or_else(|| ticks("self", 11)).unwrap_or_else(|| since.elapsed())
}

/// CPU milliseconds of one round of work, repeated until a tick of the kernel's clock is negligible.
fn cpu_milliseconds(mut work: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let started = Instant::now();
    let (before, mut rounds) = (cpu_now(started), 0.0);
    while started.elapsed() < Duration::from_millis(300) {
        work()?;
        rounds += 1.0;
    }
    Ok((cpu_now(started) - before).as_secs_f64() * 1e3 / rounds)
}

fn compressed_bytes(bytes: &[u8]) -> Outcome<usize> {
    let pack =
        |block| zstd::bulk::compress(block, 1).map(|packed| packed.len()).map_err(|error| error.to_string());
    bytes.chunks(BLOCK).map(pack).sum()
}

/// The least that a corpus costs, in CPU milliseconds: reading it, finding its lines, compressing its blocks.
struct Floor {
    read: f64,
    scan: f64,
    compress: f64,
    compressed_share: f64,
}

impl Floor {
    fn of(files: &[PathBuf]) -> Outcome<Self> {
        let mut buffer = Vec::new();
        let mut for_each = |use_bytes: &mut dyn FnMut(&[u8]) -> Outcome<()>| {
            cpu_milliseconds(|| {
                for path in files {
                    buffer.clear();
                    let read = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut buffer));
                    read.map_err(|error| format!("{}: {error}", path.display()))?;
                    use_bytes(&buffer)?;
                }
                Ok(())
            })
        };
        let (mut lines, mut raw, mut packed) = (0, 0, 0);
        let read = for_each(&mut |_| Ok(()))?;
        let scan = for_each(&mut |bytes| {
            lines += memchr::memchr_iter(b'\n', bytes).count();
            Ok(())
        })?;
        let compress = for_each(&mut |bytes| {
            (raw, packed) = (raw + bytes.len(), packed + compressed_bytes(bytes)?);
            Ok(())
        })?;
        if lines == 0 || raw == 0 {
            return Err("the corpus is empty".to_owned());
        }
        let (scan, compress) = ((scan - read).max(0.0), (compress - read).max(0.0));
        Ok(Self { read, scan, compress, compressed_share: packed as f64 / raw as f64 })
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// A first sync that captured nothing would look like a very fast one; no archive is smaller than a tenth.
fn first_sync(corpus: &Corpus<'_>) -> Outcome<Sync> {
    let sync = corpus.sync()?;
    let share = corpus.database_bytes() as f64 / corpus.bytes as f64;
    if share < 0.1 || sync.cpu_milliseconds <= 0.0 || sync.peak_bytes <= 0.0 {
        let (cpu, peak) = (sync.cpu_milliseconds, sync.peak_bytes);
        return Err(format!("absurd: database {share:.4} of raw, {cpu} ms of CPU, {peak} bytes of memory"));
    }
    Ok(sync)
}

/// The cost of a repeated sync after `before` was called.
fn repeated_sync(corpus: &Corpus<'_>, times: u64, before: impl Fn(u64) -> Outcome<()>) -> Outcome<f64> {
    let once = |round| before(round).and_then(|()| corpus.sync()).map(|sync| sync.cpu_milliseconds);
    Ok(median((0..times).map(once).collect::<Outcome<Vec<f64>>>()?))
}

fn codex_rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let quarter = Corpus::write(scratch, &CODEX, "quarter", settings.bytes / 4, settings.files.div_ceil(4))?;
    let corpus = Corpus::write(scratch, &CODEX, "whole", settings.bytes, settings.files)?;
    // The later half uses the current format of transcripts, the one that is still appended to.
    let later = corpus.files()?.split_off(settings.files / 2);
    let largest = later.iter().max_by_key(|path| file_size(path).ok()).ok_or("no transcript")?;
    rows(&quarter, &corpus, largest)
}

fn opencode_rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let files = settings.files;
    let quarter = Corpus::write(scratch, &OPENCODE, "quarter", settings.bytes / 4, files.div_ceil(4))?;
    let corpus = Corpus::write(scratch, &OPENCODE, "whole", settings.bytes, files)?;
    rows(&quarter, &corpus, &corpus.home.join("opencode/opencode.db"))
}

fn gemini_rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let files = settings.files;
    let quarter = Corpus::write(scratch, &GEMINI, "quarter", settings.bytes / 4, files.div_ceil(4))?;
    let corpus = Corpus::write(scratch, &GEMINI, "whole", settings.bytes, files)?;
    let lines = corpus.files()?.into_iter().filter(|path| path.extension() == Some("jsonl".as_ref()));
    let largest = lines.max_by_key(|path| file_size(path).ok()).ok_or("no chat")?;
    rows(&quarter, &corpus, &largest)
}

/// A fifth of the corpus is one session: many people never start a new one.
fn claude_rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let quarter = Corpus::write(scratch, &CLAUDE, "quarter", settings.bytes / 4, settings.files.div_ceil(4))?;
    let (corpus, newest) = claude_home(scratch, settings)?;
    rows(&quarter, &corpus, &newest)
}

/// The home, and its one long session.
fn claude_home<'a>(scratch: &'a Scratch, settings: &Settings) -> Outcome<(Corpus<'a>, PathBuf)> {
    let mut corpus = Corpus::write(scratch, &CLAUDE, "whole", settings.bytes / 5 * 4, settings.files)?;
    let modified = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let transcripts = corpus.files()?.into_iter().filter(|path| path.extension() == Some("jsonl".as_ref()));
    let newest = transcripts.max_by_key(modified).ok_or("no transcript")?;
    let mut size = file_size(&newest)?;
    while size < settings.bytes / 5 {
        size += corpus.append(&newest, size, (settings.bytes / 5 - size).min(20_000_000))?;
    }
    corpus.count()?;
    Ok((corpus, newest))
}

fn rows(quarter: &Corpus<'_>, corpus: &Corpus<'_>, grown: &Path) -> Outcome<Vec<Row>> {
    let small = first_sync(quarter)?;
    let cold = first_sync(corpus)?;
    let gigabytes = corpus.bytes as f64 / GIGABYTE;
    let database_share = corpus.database_bytes() as f64 / corpus.bytes as f64 * 100.0;
    let files = corpus.files()?;
    let floor = Floor::of(&files)?;
    let per_gigabyte = |milliseconds: f64| milliseconds / 1e3 / gigabytes;
    let parts = [floor.read, floor.scan, floor.compress].map(per_gigabyte);
    let cold_floor = format!("read {:.2} + newlines {:.2} + zstd -1 {:.2}", parts[0], parts[1], parts[2]);

    let unchanged = repeated_sync(corpus, 5, |_| Ok(()))?;
    let stat = cpu_milliseconds(|| corpus.files()?.iter().try_for_each(|path| file_size(path).map(|_| ())))?;

    let size = file_size(grown)?;
    let append = |round| corpus.append(grown, SEED + round, 1_000_000).map(|_| ());
    let appended = repeated_sync(corpus, 3, append)?;
    let grown = fs::read(grown).map_err(|error| error.to_string())?;
    let tail = &grown[grown.len() - 1_000_000..];
    let append_floor = cpu_milliseconds(|| {
        std::hint::black_box(memchr::memchr_iter(b'\n', tail).count());
        compressed_bytes(tail).map(|_| ())
    })?;

    let peaks = [cold.peak_bytes / MEGABYTE, small.peak_bytes / MEGABYTE];
    let against_quarter = format!("a quarter of it: {:.0} MB", peaks[1]);
    let append_name = format!("append of 1 MB to {:.0} MB", size as f64 / MEGABYTE);
    let wall = per_gigabyte(cold.wall_milliseconds);
    Ok(vec![
        Row::new(
            "cold sync, CPU a GB",
            "s",
            per_gigabyte(cold.cpu_milliseconds),
            Some(COLD_SECONDS),
            cold_floor,
        ),
        Row::new("cold sync, wall clock a GB", "s", wall, None, "-".to_owned()),
        Row::new("peak memory", "MB", peaks[0], Some(PEAK_MEGABYTES), against_quarter),
        Row::new("peak memory, quarter corpus", "MB", peaks[1], Some(PEAK_MEGABYTES), "-".to_owned()),
        Row::new(
            &format!("no-change sync of {} files, CPU", files.len()),
            "ms",
            unchanged,
            Some(UNCHANGED_MILLISECONDS),
            format!("list and stat {stat:.1}"),
        ),
        Row::new(
            &append_name,
            "ms",
            appended,
            Some(APPEND_MILLISECONDS),
            format!("newlines + zstd -1 {append_floor:.1}"),
        ),
        Row::new(
            "database, share of raw",
            "%",
            database_share,
            Some(SHARE_PERCENT),
            format!("zstd -1 {:.1}", floor.compressed_share * 100.0),
        ),
    ])
}

fn file_size(path: &Path) -> Outcome<u64> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| format!("{}: {error}", path.display()))
}

fn run() -> Outcome<ExitCode> {
    let settings = Settings::read(std::env::args().skip(1))?;
    let scratch = Scratch::new()?;
    let (mut over, mut limits) = (0, 0);
    for (name, measure) in TABLES {
        if settings.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let rows = measure(&scratch, &settings).map_err(|complaint| format!("{name}: {complaint}"))?;
        println!("\n{name}");
        print_table(&rows);
        over += rows.iter().filter(|row| row.is_over()).count();
        limits += rows.iter().filter(|row| row.limit.is_some()).count();
    }
    if settings.smoke {
        println!("\nsmoke run: the limits are for the full corpus and are not enforced");
        return Ok(ExitCode::SUCCESS);
    }
    println!("\n{over} of {limits} limits exceeded");
    Ok(if over == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn main() -> ExitCode {
    run().unwrap_or_else(|complaint| {
        eprintln!("bench failed: {complaint}");
        ExitCode::FAILURE
    })
}
