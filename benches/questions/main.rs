//! How well questions find their sessions: made-up sessions, and questions about them in other words, ranked by the
//! program itself and by plain BM25 over whole sessions.
//!
//! `cargo bench --bench questions --features test-clock` prints both, for each domain, and cross-checks the weights: those
//! learned from one half of the questions are measured on the other. `--quick` leaves the learning out, and `--misses`
//! prints the questions whose session is not the first. docs/search.md has the results.

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

mod bm25;
mod learn;
mod talks;
mod world;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use annals::{Experiment, Weights};
use annals_testkit::Bench;
use bm25::Bm25;
use world::{Asked, World};

/// Sessions that are considered.
const DEPTH: usize = 10;
/// Points that the first result must be ahead of plain BM25.
const AHEAD: f64 = 15.0;

/// Places of the right session among the results, 0 for the first.
pub type Places = Vec<Option<usize>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    // `cargo test --all-targets` also runs benches, unoptimised.
    let quick = has("--quick") || cfg!(debug_assertions) && !has("--learn");
    let bench = Bench::new();
    let world = World::write(&bench.codex());
    bench.sync();
    let now = annals_testkit::clock::since_1970().as_secs() as i64;
    let archive = Experiment::open(&bench.archive(), now).unwrap();
    let asked: Vec<&Asked> = world.questions.iter().collect();
    println!(
        "{} sessions, {} questions; {} more repeat too much of their answer and are left out",
        world.sessions.len(),
        asked.len(),
        world.left_out
    );
    let plain = Bm25::of(&world.sessions);
    let by_bm25: Places = asked.iter().map(|asked| plain.place(&asked.text, asked.session)).collect();
    let started = Instant::now();
    let ours = places(&archive, &world, &asked, &Weights::default());
    let each = started.elapsed().as_secs_f64() * 1e3 / asked.len() as f64;
    print_places("facts", &asked, &ours, &by_bm25);
    let talks: Vec<&Asked> = world.talks.iter().collect();
    let talks_by_bm25: Places = talks.iter().map(|asked| plain.place(&asked.text, asked.session)).collect();
    let of_talks = places(&archive, &world, &talks, &Weights::default());
    print_places("talks", &talks, &of_talks, &talks_by_bm25);
    println!("{each:.2} ms a question");
    if has("--misses") {
        print_misses(&world, &asked, &ours, &by_bm25);
        print_misses(&world, &talks, &of_talks, &talks_by_bm25);
    }
    if !quick {
        learn::cross_check(&archive, &world, &by_bm25);
    }
    let [ours, theirs] = [&ours, &by_bm25].map(|places| Figures::of(places).first * 100.0);
    if asked.len() < 500 || ours - theirs < AHEAD {
        println!("FAILED: {} questions, first result {ours:.1} % and {theirs:.1} %", asked.len());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// A line for each domain, and one for all.
fn print_places(name: &str, asked: &[&Asked], ours: &Places, by_bm25: &Places) {
    let mut domains: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, asked) in asked.iter().enumerate() {
        domains.entry(asked.domain).or_default().push(number);
    }
    println!(
        "{name:<12}{:>6}  {:<34}{:<34}",
        "n", "annals  @1    @5    @10   MRR", "BM25    @1    @5    @10   MRR"
    );
    domains.insert("~all", (0..asked.len()).collect());
    for (domain, numbers) in &domains {
        let of = |places: &Places| Figures::of(&numbers.iter().map(|number| places[*number]).collect());
        let domain = domain.trim_start_matches('~');
        println!("{domain:<12}{:>6}  {:<34}{:<34}", numbers.len(), of(ours), of(by_bm25));
    }
}

pub fn places(archive: &Experiment, world: &World, asked: &[&Asked], weights: &Weights) -> Places {
    let place = |asked: &&Asked| {
        let found = archive.ask(&asked.text, weights, DEPTH as i64).unwrap();
        found.iter().position(|id| *id == world.sessions[asked.session].id)
    };
    asked.iter().map(place).collect()
}

fn print_misses(world: &World, asked: &[&Asked], ours: &Places, by_bm25: &Places) {
    for ((asked, our), their) in asked.iter().zip(ours).zip(by_bm25) {
        if *our != Some(0) {
            let of = world.sessions[asked.session].parts.join(" / ");
            println!("{our:?} {their:?} {}: {}", asked.text, of.chars().take(300).collect::<String>());
        }
    }
}

/// Shares of questions whose session is among the first results, and the mean reciprocal rank.
pub struct Figures {
    pub first: f64,
    pub five: f64,
    pub ten: f64,
    pub rank: f64,
}

impl Figures {
    pub fn of(places: &Places) -> Figures {
        let total = places.len().max(1) as f64;
        let within = |most: usize| {
            places.iter().filter(|place| place.is_some_and(|place| place < most)).count() as f64 / total
        };
        let rank = places.iter().flatten().map(|place| 1.0 / (*place as f64 + 1.0)).sum::<f64>() / total;
        Figures { first: within(1), five: within(5), ten: within(10), rank }
    }

    /// What is learned for: mostly the first result.
    pub fn worth(&self) -> f64 {
        self.first + 0.5 * self.five + 0.5 * self.rank
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:>12.3} {:.3} {:.3} {:.3}", self.first, self.five, self.ten, self.rank);
        to.pad(&text)
    }
}
