//! Whatever the program prints, it contains no secret of the homes.

use annals_testkit::worlds::planted;
use annals_testkit::{Bench, sources};

/// How each verb is run: `annals --help` lists the verbs, and none may be missing here.
fn runs_of(bench: &Bench, verb: &str) -> Vec<Vec<String>> {
    let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let with = |text: &str, last: &str| [split(text), vec![last.to_owned()]].concat();
    let each_source = |text: &str| -> Vec<Vec<String>> {
        sources::all().iter().map(|source| split(&text.replace("SOURCE", source))).collect()
    };
    match verb {
        "rebuild" => vec![vec![verb.to_owned()]],
        "doctor" => vec![split("doctor"), split("doctor --deep")],
        "repair" => vec![split("repair --dry-run"), split("repair")],
        "up" => vec![split("up --no-serve")],
        // Its responses are tested elsewhere; this one is refused.
        "serve" => vec![split("serve --listen 0.0.0.0:0")],
        "tools" => vec![split("tools --days all")],
        "usage" => {
            let by = ["day", "model", "project", "session", "source"];
            let sums = by.map(|by| split(&format!("usage --days all --by {by}")));
            sums.into_iter().chain([split("usage --days all --explain")]).collect()
        }
        "search" => {
            let queries = [
                "token",
                "password OR secret",
                "curl key",
                "\"Authorization: Bearer\"",
                "kind:library the",
                "bellpull",
            ];
            // Asking for the start of a secret finds nothing of it; the answer repeats only the question.
            let guesses = planted::secrets().into_iter().step_by(7).map(|secret| {
                let start = secret.value[..secret.value.len() / 2].to_owned() + "*";
                with("search --limit 500", &start)
            });
            queries.map(|query| with("search --limit 500", query)).into_iter().chain(guesses).collect()
        }
        "gaps" => vec![split("gaps --all"), split("gaps retry"), split("gaps retry --all")],
        "members" => {
            vec![split("members list"), split("members browsers"), split("members browsers --logout-all")]
        }
        "secrets" => vec![split("secrets"), split("secrets --reveal")],
        // Nothing is requested here: the output of a run is searched where there is a browser.
        "connect" => vec![split("connect chatgpt --remove")],
        "sync" => {
            let script = std::path::Path::new(annals_testkit::ROOT).join("tests/connector.py");
            let file = bench.folder.path().join("said.txt");
            let places: Vec<String> = planted::secrets().iter().map(|secret| secret.places()).collect();
            std::fs::write(&file, serde_json::to_string(&places).unwrap()).unwrap();
            // Words after the program are its own arguments, so the options come before it.
            let connector = |form: &str, scenario: &str| {
                let before = format!(
                    "sync --gaps-only {form} --connector-name planted --connector /usr/bin/env python3"
                );
                let arguments =
                    [script.to_str().unwrap(), scenario, file.to_str().unwrap()].map(str::to_owned);
                [before.split_whitespace().map(str::to_owned).collect(), arguments.to_vec()].concat()
            };
            vec![
                split("sync"),
                split("sync --full"),
                split("sync --verbose"),
                split("sync --gaps-only"),
                connector("--verbose", "says_file"),
                connector("--json", "says_file"),
                connector("", "gives_up_with_file"),
            ]
        }
        "import" => {
            let export = planted::export_of(bench);
            let export = export.to_str().unwrap();
            let with_files = with("import --with-files", export);
            vec![
                with("import", export),
                with("import --verbose", export),
                with_files,
                split("import /nowhere"),
                split("import --git /nowhere"),
            ]
        }
        "config" => vec![split("config"), split("config path")],
        "sources" => vec![split("sources"), split("sources --files")],
        "sessions" => {
            vec![
                split("sessions"),
                split("sessions --all"),
                split("sessions --all --include-subagents --verbose"),
            ]
        }
        "resume" => vec![split("resume"), split("resume engine"), split("resume nothing like it")],
        "show" => {
            let ids = bench
                .sessions()
                .into_iter()
                .map(|session| session["session_id"].as_str().unwrap().to_owned());
            let one = |id: String| {
                [
                    with("show --lineage", &id),
                    with("show --view edits", &id),
                    with("show --full --copies --context --branch all", &id),
                ]
            };
            ids.flat_map(one).chain([split("show nothing-like-it")]).collect()
        }
        "tape" => {
            let ids = bench
                .sessions()
                .into_iter()
                .map(|session| session["session_id"].as_str().unwrap().to_owned());
            ids.flat_map(|id| [with("tape --resolve", &id), with("tape --format agent-trace", &id)]).collect()
        }
        "blame" => {
            let file = bench.folder.path().join("planted.txt");
            let text: String = planted::secrets().iter().map(|secret| secret.places() + "\n").collect();
            std::fs::write(&file, text).unwrap();
            let path = file.to_str().unwrap();
            let folder = bench.folder.path().join("nothing");
            std::fs::create_dir_all(&folder).unwrap();
            vec![
                with("blame --no-git", path),
                with("blame --no-git --porcelain", path),
                with("blame --no-git --stat", folder.to_str().unwrap()),
                with("blame --text", "nothing like it"),
            ]
        }
        "record" => sources::with_tape()
            .iter()
            .flat_map(|(source, format)| {
                let files = annals_testkit::files::files_below(&bench.home_of(source)).into_iter();
                let lines = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
                lines
                    .map(|path| with(&format!("record --format {format}"), path.to_str().unwrap()))
                    .collect::<Vec<_>>()
            })
            .collect(),
        "records" => {
            let streams = bench.streams().into_iter();
            streams.flat_map(|stream| [with("records", &stream), with("records --full", &stream)]).collect()
        }
        "export" => vec![split("export --format records")],
        "library" => {
            let items = bench.json(&["library"]);
            let items = items["items"].as_array().unwrap().iter().take(400);
            let names = items.filter_map(|item| item["name"].as_str().map(str::to_owned));
            let mut names: Vec<String> = names.filter(|name| !name.contains("[secret:")).collect();
            names.sort();
            names.dedup();
            // Every kind of item has one of these numbers: the rest repeats.
            names.retain(|name| !name.contains(|letter: char| letter.is_ascii_digit()) || name.contains('1'));
            names.iter().map(|name| with("library --history", name)).chain([split("library")]).collect()
        }
        "audit" => vec![split("audit"), split("audit --verbose"), split("audit --fail-under 100")],
        "manifest" => each_source("manifest SOURCE"),
        "restore" => {
            let folder = |source: &str| bench.folder.path().join(format!("restored-{source}"));
            let run = |source: &str| {
                with(&format!("restore --source {source} --to"), folder(source).to_str().unwrap())
            };
            sources::with_home().into_iter().map(run).collect()
        }
        other => panic!("say here how `{other}` is asked, so that its answers are searched for secrets"),
    }
}

#[test]
fn no_output_shows_a_secret() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    let secrets = planted::secrets();
    assert!(secrets.len() >= 40);
    let mut leaks = Vec::new();
    let mut marks = 0;
    let help = bench.run(&["--help"]).stdout;
    for verb in verbs(&help) {
        for question in runs_of(&bench, verb) {
            for form in [&[][..], &["--json"]] {
                let arguments: Vec<&str> =
                    question.iter().map(String::as_str).chain(form.iter().copied()).collect();
                let ran = bench.run(&arguments);
                let what = arguments.join(" ");
                assert!(!ran.stderr.contains("Usage:"), "{what}: {}", ran.stderr);
                leaks.extend(planted::leaks(&secrets, &ran.stdout, &what));
                leaks.extend(planted::leaks(&secrets, &ran.stderr, &format!("{what} (stderr)")));
                marks += ran.stdout.matches("[secret:").count();
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks\n{}", leaks.len(), leaks.join("\n"));
    assert!(marks > secrets.len() * 100, "only {marks} marks");
}

/// Without masks all of them are there, so the checks above do find something.
#[test]
fn revealed_output_contains_the_secrets() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    let mut shown = String::new();
    for stream in bench.streams() {
        shown += &bench.run(&["records", &stream, "--full", "--reveal"]).stdout;
    }
    for secret in planted::secrets() {
        assert!(shown.contains(&secret.value), "{}", secret.name);
    }
    planted::assert_none(&bench.run(&["sessions", "--all"]).stdout, "sessions");
}

/// The verbs that a help text lists.
fn verbs(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Daily:"));
    let verbs: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Global options:"))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.len() > 5, "{help}");
    verbs
}
