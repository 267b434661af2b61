//! Many machines, one archive: archives are merged by the bytes they have, and rows are read where they arrive.

mod background;
mod masked;
mod merge;
mod push;

use annals_testkit::checks::{assert_same, timeless};
use annals_testkit::files::copy_folder;
use annals_testkit::{Bench, Ran, fixtures};

/// A machine with a distinct name.
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
        let ids = |hits: &serde_json::Value, name: &str| -> Vec<String> {
            hits.as_array().into_iter().flatten().map(|hit| hit[name].to_string()).collect()
        };
        // Those of one score are in any order.
        let hits = found["results"].as_array().into_iter().flatten().map(|hit| {
            let mut passages = ids(&hit["passages"], "message_id");
            passages.sort();
            format!("{} {} {}", hit["session_id"], hit["source"], passages.join(" "))
        });
        let mut hits: Vec<String> = hits.collect();
        hits.sort();
        text += &format!("{words}: {}\n", hits.join("\n"));
    }
    timeless(&text)
}
