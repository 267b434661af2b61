//! Phrases, flags, paths and names that are in an archive are found, or the answer says that it is not complete and its
//! cursor leads to them. Runs on the fixtures and on generated homes, and with `make test-real` on homes of real clients.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

use super::real::{HomeText, NOTE, read};
use super::{id, names};
use annals_testkit::Bench;
use annals_testkit::codex::{answer, meta, prompt, rollout};
use annals_testkit::corpora::generator::Random;
use annals_testkit::corpora::write_long_sessions;
use annals_testkit::homes::{ClientHome, of};
use annals_testkit::server::{Server, escaped};

annals_testkit::over_homes! { sampled_phrases_and_names_are_found }

/// What is searched for, over all homes.
const SAMPLED: usize = 2_000;

const SEED: u64 = 20_261_116;

/// Sources whose texts can be read without the program.
const SOURCES: [&str; 2] = ["codex_cli", "claude_code"];

/// What people search for besides words: a name for each kind, and its shape. Phrases are made of words.
const SHAPES: &[(&str, &str)] = &[
    ("flag", r"(?:^|\s)(--[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:\s|$)"),
    ("colon", r"(?:^|\s)([A-Za-z_]{2,20}::?[A-Za-z_][A-Za-z_0-9]{1,20})(?:\s|$)"),
    ("path", r"(?:^|\s)([A-Za-z_][\w-]*/[A-Za-z_][\w-]*\.[a-z]{1,5})(?:\s|$)"),
    ("kebab", r"(?:^|\s)([a-z]{2,}(?:-[a-z]{2,}){1,3})(?:\s|$)"),
    ("identifier", r"(?:^|\W)([a-z]+(?:_[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+)(?:\W|$)"),
    ("phrase", r"(?:^|\s)([A-Za-z]{2,}(?: [A-Za-z]{2,}){1,4})(?:\s|$)"),
];

/// Words with a colon that narrow a search.
const FILTERS: &[&str] = &[
    "after", "before", "branch", "file", "kind", "model", "project", "role", "since", "source", "tool",
    "until",
];

/// A query, and the sessions that contain what it asks for.
type Sample = (String, BTreeSet<String>);

/// A fixed choice from the texts of a home, the same number of each kind as far as there are any.
fn samples(texts: &[HomeText], most: usize, random: &mut Random) -> BTreeMap<&'static str, Vec<Sample>> {
    let mut samples = BTreeMap::new();
    for (name, shape) in SHAPES {
        let shape = Regex::new(shape).unwrap();
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        // Notes say where an output is, and the output is shown instead; items of the library have no session.
        for text in texts.iter().filter(|text| text.filter != NOTE) {
            let Some(session) = &text.session else { continue };
            for line in text.text.lines().filter(|line| line.len() < 1_000) {
                for words in shape.captures_iter(line) {
                    found.entry(words[1].to_owned()).or_default().insert(session.clone());
                }
            }
        }
        found.retain(|words, _| !FILTERS.iter().any(|filter| words.starts_with(&format!("{filter}:"))));
        let mut all: Vec<Sample> = found.into_iter().collect();
        let mut chosen = Vec::new();
        while chosen.len() < most.div_ceil(SHAPES.len()) && !all.is_empty() {
            let at = random.below(all.len() as u64) as usize;
            chosen.push(all.swap_remove(at));
        }
        samples.insert(*name, chosen);
    }
    samples
}

fn sampled_phrases_and_names_are_found(homes: &[ClientHome]) {
    let searched = search_samples(homes, SAMPLED);
    assert!(searched.values().sum::<usize>() >= 100, "too few: {searched:?}");
}

/// How many of each kind were found; fails if one was not.
fn search_samples(homes: &[ClientHome], most: usize) -> BTreeMap<&'static str, usize> {
    let mut random = Random(SEED);
    let homes: Vec<(&str, _)> =
        SOURCES.iter().flat_map(|source| of(homes, source).map(move |home| (*source, home))).collect();
    let mut searched: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (number, (source, home)) in homes.iter().enumerate() {
        // What one home does not have, the others may.
        let left = most.saturating_sub(searched.values().sum::<usize>());
        let share = left.div_ceil(homes.len() - number);
        let samples = samples(&read(source, home), share, &mut random);
        let bench = Bench::with_home(source, home);
        bench.sync();
        let server = Server::without_refresh(&bench);
        for (kind, samples) in samples {
            *searched.entry(kind).or_default() += samples.len();
            for (words, sessions) in samples {
                let query = if kind == "phrase" { format!("\"{words}\"") } else { words };
                wrong.extend(
                    check(&server, &query, &sessions)
                        .map(|what| format!("{}: {kind} {what}", home.display())),
                );
            }
        }
    }
    println!("{searched:?}");
    assert!(wrong.is_empty(), "{} of {searched:?} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    searched
}

/// Follows the cursor until one of the sessions is found. Only a complete answer may be without it.
fn check(server: &Server, query: &str, sessions: &BTreeSet<String>) -> Option<String> {
    let mut cursor = String::new();
    let mut found = BTreeSet::new();
    for _ in 0..1_000 {
        let answer: Value = server.json(&format!("/api/v1/search?q={}&limit=50{cursor}", escaped(query)));
        if answer["mode"] != "all" {
            return Some(format!("{query} is not found, in {sessions:?}"));
        }
        found.extend(names(&answer));
        if !found.is_disjoint(sessions) {
            return None;
        }
        match answer["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={}", escaped(next)),
            None => break,
        }
    }
    Some(format!("{query} is in {sessions:?}, found in {found:?}"))
}

/// The corpora of the benches have sessions of hundreds of steps, with the same words again and again. Names made of these
/// words are rare, and their parts are everywhere.
#[test]
fn sampled_phrases_and_names_of_generated_homes_are_found() {
    let bench = Bench::new();
    write_long_sessions(&bench.user()).unwrap();
    let mut random = Random(SEED);
    for session in 0..8 {
        let mut lines = vec![meta(&id(session))];
        lines.extend(prompt("Which names are there?"));
        lines.extend((0..50).flat_map(|_| answer(&rare_names(&mut random))));
        bench.transcript(&rollout(&id(session)), &lines);
    }
    let homes = SOURCES.map(|source| ClientHome { source, path: bench.home_of(source) });
    let searched = search_samples(&homes, SAMPLED * 3 / 2);
    assert!(searched.values().sum::<usize>() >= SAMPLED, "too few: {searched:?}");
    for (kind, _) in SHAPES {
        assert!(searched[kind] >= SAMPLED / 10, "too few of {kind}: {searched:?}");
    }
}

/// A flag, a name with a colon, a path and a kebab-case name of words that are frequent in the corpora.
fn rare_names(random: &mut Random) -> String {
    const WORDS: [&str; 12] = [
        "file", "test", "value", "state", "request", "index", "buffer", "reader", "cache", "page", "queue",
        "worker",
    ];
    let mut name = |mark: &str| [(); 3].map(|()| *random.pick(&WORDS)).join(mark);
    let (flag, kebab) = (name("-"), name("-"));
    let (scope, item, folder, file) = (name("_"), name("_"), name("_"), name("_"));
    format!("use --{flag} with {scope}:{item} in {folder}/{file}.rs and {kebab} too")
}
