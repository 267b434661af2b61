//! The search table: whether what people remember is found, how long it takes and what it costs, compared with
//! ripgrep.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::http::{Server, latency_row};
use super::http_client::{Latencies, load};
use super::search_set::{Kind, NEEDLES, Needle};
use super::table::Row;
use super::{
    CODEX, Corpus, GIGABYTE, MEGABYTE, Outcome, SEED, Scratch, Settings, cpu_of_children, first_sync, median,
};
use annals_testkit::corpora::codex::{Step, write_session_of};
use annals_testkit::corpora::generator::Random;

/// A million lines are about three gigabytes.
const SIZE: u64 = 3;
const RUNS: usize = 20;
/// Appears in a third of all messages and outputs of generated homes, or more.
const COMMON: &str = "request";
const KINDS: [(Kind, &str, f64); 6] = [
    (Kind::Exact, "words as they stand", 0.9),
    (Kind::Order, "words in another order", 0.9),
    (Kind::Code, "names, paths, hashes", 0.9),
    (Kind::Cjk, "scripts without spaces", 0.9),
    (Kind::Phrase, "phrases", 0.9),
    (Kind::Question, "questions as typed", 0.6),
];

pub fn rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let files = settings.files * SIZE as usize;
    let mut corpus = Corpus::write(scratch, &CODEX, "search", settings.bytes * SIZE, files)?;
    let planted = plant(&corpus, (files / 4).clamp(200, 2_000))?;
    corpus.count()?;
    let cold = first_sync(&corpus)?;
    let gigabytes = corpus.bytes as f64 / GIGABYTE;
    let share = |bytes: f64| bytes / corpus.bytes as f64 * 100.0;
    let index = share(index_bytes(&corpus)?);
    let whole = share(corpus.database_bytes() as f64);
    let cold_cpu = cold.cpu_milliseconds / 1e3 / gigabytes;
    let dash = || "-".to_owned();
    let mut rows = vec![
        Row::new("cold sync with the index, CPU a GB", "s", cold_cpu, Some(14.0), dash()),
        Row::new("peak memory", "MB", cold.peak_bytes / MEGABYTE, Some(300.0), dash()),
        Row::new("database with the index, share of raw", "%", whole, Some(35.0), dash()),
        Row::new("index, share of raw", "%", index, None, dash()),
    ];
    rows.extend(recall_rows(&corpus, &planted)?);
    rows.extend(command_rows(&corpus)?);
    rows.extend(server_rows(&corpus, settings)?);
    let queries: Vec<&str> =
        NEEDLES.iter().flat_map(|needle| needle.queries).map(|(_, query)| *query).collect();
    rows.extend(super::agents::rows(&corpus, &queries)?);
    Ok(rows)
}

/// A needle and its session.
struct Planted {
    needle: &'static Needle,
    session: String,
}

/// Writes the needles, every other one into a longer session, and many sessions that share single words with them.
fn plant(corpus: &Corpus<'_>, distractors: usize) -> Outcome<Vec<Planted>> {
    let failed = |error: std::io::Error| format!("planting: {error}");
    let mut random = Random(SEED);
    let mut planted = Vec::new();
    for (number, needle) in NEEDLES.iter().enumerate() {
        let around = if number % 2 == 0 { 0 } else { 40_000 };
        let session = write_session_of(&corpus.home, random.next(), needle.steps, around).map_err(failed)?;
        planted.push(Planted { needle, session });
    }
    let words = shared_words();
    for _ in 0..distractors {
        let mut text = || sentence(&mut random, &words);
        let (prompt, command, printed, answer) = (text(), text(), text(), text());
        let steps = [Step::User(&prompt), Step::Ran(&command, &printed), Step::Assistant(&answer)];
        write_session_of(&corpus.home, random.next(), &steps, 0).map_err(failed)?;
    }
    Ok(planted)
}

/// The words of all needles, with repetitions, except those that are searched for alone: a single word that is in
/// many sessions has no single answer.
fn shared_words() -> Vec<&'static str> {
    let questions = NEEDLES.iter().flat_map(|needle| needle.queries).map(|(_, question)| *question);
    let alone: HashSet<String> = questions
        .filter(|question| question.split_whitespace().count() == 1 && words_of(question).count() == 1)
        .flat_map(|question| words_of(question).map(str::to_lowercase))
        .collect();
    let texts = NEEDLES.iter().flat_map(|needle| needle.steps).flat_map(|step| match step {
        Step::User(text) | Step::Assistant(text) => vec![*text],
        Step::Ran(command, printed) => vec![*command, *printed],
    });
    texts
        .flat_map(words_of)
        .filter(|word| {
            let small = word.to_lowercase();
            !alone.iter().any(|alone| small.contains(alone))
        })
        .collect()
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

fn sentence(random: &mut Random, words: &[&str]) -> String {
    let length = 10 + random.below(30);
    let any = |random: &mut Random| words[random.below(words.len() as u64) as usize];
    let words: Vec<&str> = (0..length).map(|_| any(random)).collect();
    words.join(" ") + "."
}

fn index_bytes(corpus: &Corpus<'_>) -> Outcome<f64> {
    let size = || {
        let database = rusqlite::Connection::open(corpus.archive.join("annals.db"))?;
        database.query_row(
            "select (select total(length(data)) from search_block)
                    + (select total(length(table_data)) from search_segment)",
            [],
            |row| row.get(0),
        )
    };
    size().map_err(|error: rusqlite::Error| format!("the size of the index: {error}"))
}

/// Ranks of the right session among the first fifty results, by kind of query.
fn recall_rows(corpus: &Corpus<'_>, planted: &[Planted]) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (kind, name, least) in KINDS {
        let (mut total, mut within) = (0.0, [0.0; 3]);
        for one in planted {
            for (_, question) in one.needle.queries.iter().filter(|(of, _)| *of == kind) {
                total += 1.0;
                let place = place_of(corpus, question, &one.session)?;
                for (count, most) in within.iter_mut().zip([1, 5, 50]) {
                    *count += f64::from(u8::from(place.is_some_and(|place| place < most)));
                }
                if place.is_none_or(|place| place >= 5) {
                    let place =
                        place.map_or_else(|| "not found".to_owned(), |place| format!("{}", place + 1));
                    println!("missed among the first five: {question} ({place})");
                }
            }
        }
        let [first, five, fifty] = within.map(|count| count / total);
        let what = format!("recall of {name}, n {total}, @1 {first:.2}, @50 {fifty:.2}, @5");
        rows.push(Row::at_least(&what, five, least));
    }
    Ok(rows)
}

fn place_of(corpus: &Corpus<'_>, question: &str, session: &str) -> Outcome<Option<usize>> {
    let output = corpus
        .annals(&["search", "--json", "--limit", "50", "--", question])
        .output()
        .map_err(|error| format!("starting annals: {error}"))?;
    // Exit code 1 is a result too: nothing was found.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("search {question}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("search {question}: {error}"))?;
    let results = answer["results"].as_array().ok_or("no results in an answer")?;
    Ok(results.iter().position(|result| result["session_id"] == session))
}

/// Common searches: a label, the query, and the pattern for ripgrep.
const SEARCHES: [(&str, &str, &str); 4] = [
    ("a rare word", "goleak", "goleak"),
    ("two words", "hydration dashboard OR form", "hydration.*(dashboard|form)"),
    ("a phrase", "\"composite index on\"", "composite index on"),
    ("a common word", COMMON, COMMON),
];

fn command_rows(corpus: &Corpus<'_>) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, typed, pattern) in SEARCHES {
        let (mut walls, mut memory, before) = (Vec::new(), 0.0f64, cpu_of_children());
        for _ in 0..RUNS {
            let started = Instant::now();
            let output = corpus
                .annals(&["search", "-v", "--", typed])
                .output()
                .map_err(|error| format!("starting annals: {error}"))?;
            walls.push(started.elapsed().as_secs_f64() * 1e3);
            let report = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                return Err(format!("search {typed}: {report}"));
            }
            memory = memory.max(parse_memory(&report).ok_or_else(|| format!("no memory in {report:?}"))?);
        }
        let spent = before.zip(cpu_of_children()).map(|(before, after)| after - before).unwrap_or_default();
        let cpu = spent.as_secs_f64() * 1e3 / RUNS as f64;
        let walls = Latencies::of(walls);
        let what = format!("annals search, {name}, p99 (p50 {:.1}, CPU {cpu:.1})", walls.percentile(50));
        rows.push(Row::new(&what, "ms", walls.percentile(99), Some(60.0), ripgrep(corpus, pattern)));
        let what = format!("annals search, {name}, peak memory");
        rows.push(Row::new(&what, "MB", memory, Some(60.0), "-".to_owned()));
    }
    Ok(rows)
}

/// Megabytes, parsed from `peak memory 12 MiB`.
fn parse_memory(text: &str) -> Option<f64> {
    let number = text.split("peak memory ").nth(1)?.split_whitespace().next()?;
    Some(number.parse::<f64>().ok()? * f64::from(1 << 20) / MEGABYTE)
}

/// How long ripgrep takes for the same in the raw files, the best of three.
fn ripgrep(corpus: &Corpus<'_>, pattern: &str) -> String {
    let mut walls = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        let status = Command::new("rg")
            .args(["--no-config", "--ignore-case", "--no-ignore", "--count", "--", pattern])
            .arg(&corpus.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match status {
            Ok(_) => walls.push(started.elapsed().as_secs_f64() * 1e3),
            Err(_) => return "ripgrep is not installed".to_owned(),
        }
    }
    format!("ripgrep {:.0} ms", median(walls))
}

fn server_rows(corpus: &Corpus<'_>, settings: &Settings) -> Outcome<Vec<Row>> {
    let duration = Duration::from_millis(if settings.smoke { 300 } else { 5_000 });
    let server = Server::start(corpus)?;
    let of_kind = |kind: Kind| {
        let all = NEEDLES.iter().flat_map(|needle| needle.queries);
        all.filter(move |(of, _)| *of == kind).map(|(_, question)| *question)
    };
    let single = |question: &&str| words_of(question).count() == 1;
    let ten = |question: &str| path_of(question, 10);
    let rare: Vec<String> = of_kind(Kind::Code).filter(single).map(ten).collect();
    let several: Vec<String> = of_kind(Kind::Exact).map(ten).collect();
    let questions: Vec<String> = of_kind(Kind::Question).map(ten).collect();
    let [common, many] = [10, 50].map(|results| vec![path_of(COMMON, results)]);
    let mut rows = Vec::new();
    for clients in [1, 8] {
        let floor =
            load(&server.target, clients, duration / 4, &["/healthz".to_owned()], |waited| waited.whole)?;
        for (name, paths, limit) in [
            ("search, rare words", &rare, Some(20.0)),
            ("search, several words", &several, None),
            ("search, questions", &questions, None),
            ("search, a word in a third of all messages", &common, Some(50.0)),
            ("the same, 50 results", &many, None),
        ] {
            let found = load(&server.target, clients, duration, paths, |waited| waited.whole)?;
            rows.push(latency_row(name, clients, &found, limit, floor.percentile(99)));
        }
    }
    Ok(rows)
}

fn path_of(question: &str, results: usize) -> String {
    let escaped: String = question.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("/api/v1/search?q={escaped}&limit={results}")
}
