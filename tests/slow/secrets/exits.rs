//! Whatever the program prints, it contains no secret of the homes.

use std::path::Path;
use std::process::{Command, Stdio};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};

use annals_testkit::agent::{Agent, call_server};
#[cfg(target_os = "linux")]
use annals_testkit::memory;
use annals_testkit::server::{Server, escaped};
use annals_testkit::worlds::planted;
use annals_testkit::{Bench, Ran, sources};

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
        "star" => {
            let star =
                |id: String| [with("star", &id), [with("star", &id), vec!["--remove".into()]].concat()];
            session_ids(bench).into_iter().flat_map(star).collect()
        }
        "tag" => {
            let value = planted::secrets()[0].value.clone();
            let tag = |id: String| {
                [
                    [with("tag", &id), vec!["x".into()]].concat(),
                    [with("tag", &id), vec![value.clone()]].concat(),
                    with("tag", &id),
                ]
            };
            session_ids(bench).into_iter().take(3).flat_map(tag).collect()
        }
        "name" => {
            let names = planted::secrets().into_iter().map(|secret| secret.line());
            let name = |(id, name): (String, String)| {
                [[with("name", &id), vec!["--".into(), name]].concat(), with("name", &id)]
            };
            session_ids(bench).into_iter().zip(names).flat_map(name).collect()
        }
        "note" => {
            let file = super::note_of_secrets(bench);
            let note = |id: String| {
                [[with("note", &id), vec!["--file".into(), file.clone()]].concat(), with("note", &id)]
            };
            session_ids(bench).into_iter().flat_map(note).collect()
        }
        "hide" => {
            let hide =
                |id: String| [with("hide", &id), [with("hide", &id), vec!["--remove".into()]].concat()];
            session_ids(bench).into_iter().take(3).flat_map(hide).collect()
        }
        "searches" => {
            super::arrange_secrets(bench);
            vec![split("searches"), split("searches --remove nothing"), split("search --saved mine")]
        }
        "gaps" => vec![split("gaps --all"), split("gaps retry"), split("gaps retry --all")],
        "members" => {
            vec![split("members list"), split("members browsers"), split("members browsers --logout-all")]
        }
        "secrets" => vec![split("secrets"), split("secrets --reveal")],
        // What agents are answered is tested below: this one has nobody to answer.
        "mcp" => {
            plant_in_settings(bench);
            let clients = ["claude", "codex", "gemini"].into_iter();
            let runs = |client: &str| {
                ["mcp install CLIENT --dry-run", "mcp install CLIENT --yes", "mcp remove CLIENT --yes"]
                    .map(|run| split(&run.replace("CLIENT", client)))
            };
            clients.flat_map(runs).chain([split("mcp install pi")]).collect()
        }
        "skill" => vec![split("skill print"), split("skill install --yes"), split("skill remove --yes")],
        // It ends when it is told to; what it captures is what `sync` captures.
        "watch" => Vec::new(),
        "service" => vec![
            split("service install --print"),
            split("service install --print --manager launchd"),
            split("service status"),
            split("service logs"),
            split("service remove"),
        ],
        // Nothing is requested here: the output of a run is searched where there is a browser.
        "connect" => vec![split("connect chatgpt --remove")],
        "sync" => {
            let script = Path::new(annals_testkit::ROOT).join("tests/connector.py");
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
        // There is no hub: errors are all they print.
        "access" => vec![
            split("access"),
            split("access http://ada:hunter22-is-secret@127.0.0.1:1 --token-file /etc/hostname"),
        ],
        "push" | "pull" => {
            let url = "http://ada:hunter22-is-secret@127.0.0.1:1";
            let token = "--token-file /etc/hostname";
            vec![split(&format!("{verb} {url}")), split(&format!("{verb} ftp://{url} {token}"))]
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
        "day" | "week" | "month" => ["2026-03-02", "2025-11-15", "2026-11-15", "today"]
            .iter()
            .map(|date| vec![verb.to_owned(), "--all".to_owned(), (*date).to_owned()])
            .collect(),
        "statusline" | "version" => vec![vec![verb.to_owned()]],
        "forget" => {
            let ids = bench.sessions().into_iter();
            let ids = ids.map(|session| session["session_id"].as_str().unwrap().to_owned());
            let dry = ids.map(|id| [with("forget", &id), vec!["--dry-run".to_owned()]].concat());
            dry.chain([
                split("forget --before 1d --dry-run"),
                split("forget --verify"),
                split("forget nothing-like-it"),
            ])
            .collect()
        }
        "trash" => vec![split("trash"), split("trash restore 99"), split("trash empty --yes")],
        "retain" => vec![split("retain"), split("retain --apply")],
        "completions" => vec![split("completions bash"), split("completions powershell")],
        "man" => vec![split("man"), split("man gaps retry")],
        "help" => vec![split("help"), split("help show")],
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
        "export" => {
            let ids = bench.sessions().into_iter().map(|session| {
                format!("{}:{}", session["source"].as_str().unwrap(), session["session_id"].as_str().unwrap())
            });
            let formats = ["md", "html", "json", "jsonl"];
            let one =
                |id: String| formats.map(|format| with(&format!("export --copies --format {format}"), &id));
            let folder = bench.folder.path().join("exported");
            let all = formats.into_iter().chain(["parquet"]).flat_map(|format| {
                let to = folder.join(format);
                let to = to.to_str().unwrap();
                [
                    with(&format!("export --all --dry-run --format {format} --to"), to),
                    with(&format!("export --all --format {format} --to"), to),
                ]
            });
            let lists = [
                split("export --format records"),
                split("export --all --format json"),
                split("export nothing-like-it"),
            ];
            ids.flat_map(one).chain(all).chain(lists).collect()
        }
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

fn session_ids(bench: &Bench) -> Vec<String> {
    let sessions = bench.sessions().into_iter();
    sessions.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect()
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

/// Secrets in the files of clients that `mcp install` changes.
fn plant_in_settings(bench: &Bench) {
    let secrets: Vec<String> = planted::secrets().iter().map(|secret| secret.value.clone()).collect();
    let servers =
        serde_json::json!({"mcpServers": {"other": {"command": "x", "args": secrets}}, "keys": secrets});
    for file in [".claude.json", ".gemini/settings.json"] {
        let file = bench.user().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, servers.to_string()).unwrap();
    }
}

/// No tool, resource or prompt tells an agent a secret, in either form, over either way in.
#[test]
fn no_agent_is_told_a_secret() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    super::arrange_secrets(&bench);
    let secrets = planted::secrets();
    let server = Server::without_refresh(&bench);
    let mut agent = Agent::of(bench.command(&["mcp", "--no-sync"]));
    let (mut leaks, mut marks) = (Vec::new(), 0);
    let mut search = |text: &str, what: &str| {
        leaks.extend(planted::leaks(&secrets, text, what));
        marks += text.matches("[secret:").count();
    };
    let sessions = bench.sessions();
    let mut calls: Vec<(&str, Value)> = vec![
        ("list_sessions", json!({"include_subagents": true})),
        ("recent_work", json!({})),
        ("usage", json!({"by": "project", "days": 0})),
        ("library", json!({})),
    ];
    for words in ["token", "password OR secret", "curl key", "\"Authorization: Bearer\"", "bellpull"] {
        calls.push(("search_history", json!({"query": words})));
    }
    for session in &sessions {
        let id = session["session_id"].as_str().unwrap();
        for view in ["all", "prompts", "edits", "failures"] {
            calls.push(("read_session", json!({"session": id, "view": view, "full": view == "all"})));
        }
    }
    for file in server.list("/api/v1/lineage", "files").iter().take(60) {
        calls.push(("blame", json!({"file": file["file"]})));
        calls.push(("file_history", json!({"file": file["file"]})));
    }
    let items = bench.json(&["library"]);
    for item in items["items"].as_array().unwrap().iter().step_by(9) {
        calls.push(("library", json!({"name": item["id"]})));
    }
    for (number, (tool, arguments)) in calls.into_iter().enumerate() {
        for format in ["markdown", "json"] {
            let mut arguments = arguments.clone();
            arguments["format"] = format.into();
            arguments["max_bytes"] = 200_000.into();
            if tool != "usage" && arguments.get("session").is_none() && arguments.get("file").is_none() {
                arguments["project"] = "*".into();
            }
            let (text, _) = agent.try_call(tool, arguments.clone());
            search(&text, &format!("{tool} {arguments}"));
            // The same handler answers there: a sample shows that it does.
            if number % 10 == 0 {
                let (text, _) = call_server(&server, &server.token, tool, arguments.clone());
                search(&text, &format!("{tool} {arguments} over HTTP"));
            }
        }
    }
    for session in &sessions {
        let uri = format!("annals://session/{}", escaped(session["session_id"].as_str().unwrap()));
        search(&agent.ask("resources/read", json!({"uri": uri})).to_string(), &uri);
    }
    search(&agent.ask("resources/list", json!({})).to_string(), "resources/list");
    for (name, what) in [("resume_work", "x"), ("how_did_we", "token"), ("how_did_we", "password")] {
        let prompt =
            agent.ask("prompts/get", json!({"name": name, "arguments": {"what": what, "project": "*"}}));
        search(&prompt.to_string(), name);
    }
    assert!(leaks.is_empty(), "{} leaks\n{}", leaks.len(), leaks.join("\n"));
    assert!(marks > secrets.len() * 20, "only {marks} marks");
}

/// A thousand questions leave nothing behind.
#[cfg(target_os = "linux")]
#[test]
fn a_thousand_calls_need_no_more_memory_than_a_hundred() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    let mut agent = Agent::of(bench.command(&["mcp"]));
    let sessions = bench.sessions();
    let mut ask = |count: usize, first: usize| {
        for number in first..first + count {
            let id = &sessions[number % sessions.len()]["session_id"];
            let (tool, arguments) = match number % 4 {
                0 => ("search_history", json!({"query": "the token", "project": "*"})),
                1 => ("read_session", json!({"session": id})),
                2 => ("recent_work", json!({"project": "*"})),
                _ => ("list_sessions", json!({"project": "*", "format": "json"})),
            };
            agent.call(tool, arguments);
        }
        memory::allocated(agent.process())
    };
    let before = ask(200, 0);
    let after = ask(1_000, 200);
    assert!(after < before + 16_000, "{before} kB, then {after} kB");
}

/// Every file of every format is searched, tables cell by cell.
#[test]
fn no_exported_file_shows_a_secret() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    let secrets = planted::secrets();
    let (mut leaks, mut revealed) = (Vec::new(), String::new());
    for format in ["md", "html", "json", "jsonl", "parquet"] {
        let folder = bench.folder.path().join(format);
        let export = ["export", "--all", "--copies", "--format", format, "--to", folder.to_str().unwrap()];
        let ran = bench.run(&export);
        assert_eq!(ran.code, 0, "{format}: {}", ran.stderr);
        let text = exported_text(&folder);
        leaks.extend(planted::leaks(&secrets, &text, format));
        let marks = text.matches("[secret:").count();
        assert!(marks > secrets.len(), "{format}: only {marks} marks");
        // The owner sees them at a terminal, so the checks above do find something.
        let ran = at_a_terminal(&bench, &[&export[..], &["--reveal"]].concat());
        assert_eq!(ran.code, 0, "{format}: {}{}", ran.stdout, ran.stderr);
        if format == "json" || format == "parquet" {
            revealed += &exported_text(&folder);
        }
    }
    assert!(leaks.is_empty(), "{} leaks\n{}", leaks.len(), leaks.join("\n"));
    let hidden: Vec<&str> =
        secrets.iter().filter(|secret| !revealed.contains(&secret.value)).map(|secret| secret.name).collect();
    assert!(hidden.len() * 4 < secrets.len(), "not exported at all: {hidden:?}");
}

/// Everything in the files of a directory as text, without images.
fn exported_text(folder: &Path) -> String {
    let mut text = String::new();
    for path in annals_testkit::files::files_below(folder) {
        text.push_str(&path.to_string_lossy());
        match path.extension().and_then(|end| end.to_str()) {
            Some("parquet") => {
                let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
                for row in reader.get_row_iter(None).unwrap() {
                    for (_, field) in row.unwrap().into_columns() {
                        if let Field::Str(cell) = field {
                            text.push_str(&cell);
                            text.push('\n');
                        }
                    }
                }
            }
            _ => text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap())),
        }
    }
    text
}

/// Runs the program on a terminal of its own.
fn at_a_terminal(bench: &Bench, arguments: &[&str]) -> Ran {
    let program = bench.command(arguments);
    let script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    Ran::of(command.stdin(Stdio::null()).output().unwrap())
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
