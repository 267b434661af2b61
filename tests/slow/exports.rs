//! Exports in other programs: DuckDB answers the documented queries with annals' own numbers, and a parser that browsers
//! share accepts every page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use annals_testkit::files::files_below;
use annals_testkit::homes::fixtures;
use annals_testkit::worlds::story;
use annals_testkit::{Bench, ROOT};

/// Runs a script of `tests/exports`; returns what it printed.
fn python(script: &str, arguments: &[&str]) -> String {
    let folder = Path::new(ROOT).join("tests/exports");
    let ran = Command::new(folder.join("python")).arg(folder.join(script)).args(arguments).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{script}: {out}\n{err}");
    out.into_owned()
}

fn export(bench: &Bench, format: &str) -> PathBuf {
    let folder = bench.folder.path().join(format!("exported-{format}"));
    let ran = bench.run(&["export", "--all", "--format", format, "--to", folder.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{format}: {}", ran.stderr);
    folder
}

#[test]
fn duckdb_answers_the_documented_queries() {
    let bench = Bench::new();
    story::write(&bench.user(), annals_testkit::clock::since_1970(), 3, || ()).unwrap();
    bench.sync();
    let folder = bench.folder.path().join("tables");
    let ran = bench.run(&["export", "--all", "--format", "parquet", "--to", folder.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document = Path::new(ROOT).join("docs/analytics.md");
    let own = [
        "select count(*), sum(message_count), sum(tool_call_count), sum(total_tokens) from sessions",
        "select count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), \
         sum(reasoning_tokens), round(sum(cost_usd), 6)::double from usage",
        "select (select count(*) from messages where is_counted), (select count(*) from tool_calls where is_counted)",
        "select distinct typeof(occurred_at) from usage",
        "select count(distinct (source, month)) from usage",
    ];
    let answers = python(
        "query.py",
        &[&[document.to_str().unwrap(), bench.folder.path().to_str().unwrap()], &own[..]].concat(),
    );
    let answers: Vec<Value> = serde_json::from_str(&answers).unwrap();
    let (documented, own) = answers.split_at(answers.len() - own.len());
    let queries: Vec<&Value> =
        documented.iter().filter(|answer| !answer["sql"].as_str().unwrap().contains("create view")).collect();
    assert_eq!(queries.len(), 10, "ten queries are documented");
    for answer in queries {
        assert!(!answer["rows"].as_array().unwrap().is_empty(), "no rows: {}", answer["sql"]);
    }
    let row = |number: usize| -> Vec<f64> {
        let cells = own[number]["rows"][0].as_array().unwrap().iter();
        cells.map(|cell| cell.as_str().unwrap().parse().unwrap()).collect()
    };
    let sessions = bench.sessions();
    let sum = |name: &str| sessions.iter().map(|session| session[name].as_f64().unwrap()).sum::<f64>();
    let tokens = sessions.iter().map(|session| session["tokens"]["total"].as_f64().unwrap()).sum::<f64>();
    let (messages, calls) = (sum("message_count"), sum("tool_call_count"));
    assert_eq!(row(0), [sessions.len() as f64, messages, calls, tokens]);
    let usage = bench.json(&["usage", "--days", "all"]);
    let total = &usage["total"];
    let figures =
        ["input", "output", "cache_read", "cache_write", "reasoning"].map(|name| &total["tokens"][name]);
    let expected: Vec<f64> = std::iter::once(&total["response_count"])
        .chain(figures)
        .chain([&total["cost_usd"]])
        .map(|value| value.as_f64().unwrap())
        .collect();
    assert_eq!(row(1), expected);
    assert_eq!(row(2), [messages, calls]);
    assert_eq!(own[3]["rows"][0][0], "TIMESTAMP WITH TIME ZONE");
    assert!(row(4)[0] >= 3.0, "{own:?}");
}

#[test]
fn pages_of_every_home_are_valid() {
    let mut pages = Vec::new();
    let mut benches = Vec::new();
    for home in fixtures() {
        let bench = Bench::with_home(home.source, &home.path);
        bench.sync_of(home.source);
        if !bench.sessions().is_empty() {
            let folder = export(&bench, "html");
            pages.extend(
                files_below(&folder)
                    .into_iter()
                    .filter(|path| path.extension().is_some_and(|end| end == "html")),
            );
        }
        benches.push(bench);
    }
    assert!(pages.len() > 20, "only {} pages", pages.len());
    let hostile = "</style><script>alert(1)</script>";
    assert!(pages.iter().all(|page| !fs::read_to_string(page).unwrap().contains(hostile)));
    let pages: Vec<&str> = pages.iter().map(|path| path.to_str().unwrap()).collect();
    for some in pages.chunks(200) {
        python("validate.py", some);
    }
}
