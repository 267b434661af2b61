//! Many machines, one archive: archives are merged by the bytes they have, and rows are read where they arrive.

mod merge;

use annals_testkit::checks::{assert_same, timeless};
use annals_testkit::files::copy_folder;
use annals_testkit::{Bench, Ran, fixtures};

/// A machine with a name of its own.
pub struct Machine {
    pub bench: Bench,
    pub name: &'static str,
}

impl Machine {
    pub fn new(name: &'static str) -> Machine {
        Machine { bench: Bench::new(), name }
    }

    /// A machine with the homes of all fixtures, those of one client in one home.
    pub fn with_fixtures(name: &'static str) -> Machine {
        let machine = Machine::new(name);
        for (source, case) in fixtures::with_home() {
            copy_folder(&case.join("home"), &machine.bench.home_of(source));
        }
        machine
    }

    /// Runs a command here, with an archive that may be another machine's.
    pub fn run_in(&self, archive: &Bench, arguments: &[&str]) -> Ran {
        let mut command = archive.command(arguments);
        command.env("HOME", self.bench.user()).env("ANNALS_MACHINE", self.name);
        Ran::of(command.output().unwrap())
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let ran = self.run_in(&self.bench, arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }

    #[track_caller]
    pub fn sync(&self) {
        self.sync_into(&self.bench);
    }

    #[track_caller]
    pub fn sync_into(&self, archive: &Bench) {
        let ran = self.run_in(archive, &["sync"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }

    pub fn archive(&self) -> String {
        self.bench.archive().join("annals.db").to_str().unwrap().to_owned()
    }
}

/// Sessions, messages, records, usage, accounts of files and search answers of two archives are the same.
#[track_caller]
pub fn assert_same_archives(one: &Bench, other: &Bench) {
    assert_same(&contents(one), &contents(other));
}

fn contents(bench: &Bench) -> String {
    let mut text = bench.everything();
    let run = |arguments: &[&str]| bench.run(arguments).stdout;
    text += &run(&["usage", "--days", "all", "--by", "model", "--json"]);
    for words in ["the", "error", "gears", "file"] {
        let found: serde_json::Value =
            serde_json::from_str(&run(&["search", words, "--json"])).unwrap_or_default();
        let mut hits: Vec<String> =
            found["results"].as_array().into_iter().flatten().map(ToString::to_string).collect();
        hits.sort();
        text += &format!("{words}: {}\n", hits.join("\n"));
    }
    // Sums of fractions depend on their order.
    let score = regex::Regex::new(r#""score":[0-9.e-]+"#).unwrap();
    score.replace_all(&timeless(&text), "\"score\"").into_owned()
}
