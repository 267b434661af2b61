//! Shares of lines by month, and how long lines of sessions survive, from the history of a repository.

use serde_json::Value;

use super::{CODE, SESSION, session_that_writes};
use annals_testkit::git::Repository;
use annals_testkit::{Bench, Ran};

#[test]
fn lines_have_months_and_survive_or_not() {
    let bench = Bench::new();
    let top = bench.folder.path().canonicalize().unwrap();
    let repository = Repository::create(&top.join("engine"));
    let file = repository.folder.join("gears.py");
    let code = format!("{CODE}def oil_every_gear(engine, amount_of_oil):\n");
    session_that_writes(&bench, SESSION, "2024-03-02T09:00", &file, &code);
    bench.sync();
    repository.commit("gears.py", &code, "2024-03-02T09:30:00Z");
    // By hand: a line goes after 18 days, another comes in the next month.
    let without = code.replace("    total = len(engine.gears)\n", "");
    repository.commit("gears.py", &without, "2024-03-20T12:00:00Z");
    let later = format!("{without}# measured by hand in the workshop\n");
    repository.commit("gears.py", &later, "2024-04-05T12:00:00Z");
    let run = |extra: &[&str]| {
        let folder = repository.folder.to_str().unwrap();
        let mut command = bench.command(&[&["blame", "--stat", folder, "--over-time"], extra].concat());
        Ran::of(command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap())
    };
    let ran = run(&["--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let months: Vec<(&str, i64, i64)> = answer["months"]
        .as_array()
        .unwrap()
        .iter()
        .map(|month| {
            let count = |name: &str| month[name].as_i64().unwrap();
            (month["month"].as_str().unwrap(), count("lines"), count("written_by_sessions"))
        })
        .collect();
    assert_eq!(months, [("2024-03", 3, 3), ("2024-04", 1, 0)], "{answer}");
    let march = &answer["months"][0];
    assert_eq!(
        (&march["sessions"][0]["name"], &march["models"][0]["name"]),
        (&SESSION.into(), &"made-up-1".into())
    );
    assert_eq!((&march["people"][0]["name"], &march["people"][0]["lines"]), (&"ada".into(), &3.into()));
    let survival: Vec<[i64; 3]> = answer["survival"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sum| ["days", "committed", "standing"].map(|name| sum[name].as_i64().unwrap()))
        .collect();
    let written = survival[0][1];
    assert!(written >= 3, "{answer}");
    assert_eq!(
        survival,
        [
            [1, written, written],
            [7, written, written],
            [30, written, written - 1],
            [90, written, written - 1]
        ]
    );
    assert_eq!((&answer["followed_files"], &answer["left_out_files"]), (&1.into(), &0.into()));
    let table = run(&[]).stdout;
    for words in ["2024-03", "made-up-1", "ada", "30"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    // Without a repository there is no history.
    let outside = bench.run(&["blame", "--stat", bench.user().to_str().unwrap(), "--over-time"]);
    assert_eq!(outside.code, 2);
    assert!(outside.stderr.contains("--over-time needs git"), "{}", outside.stderr);
}
