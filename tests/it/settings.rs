//! Settings: config.toml is checked key by key, precedence, and what `annals config` prints.

use std::path::PathBuf;

use serde_json::{Value, json};

use annals_testkit::codex::{ID, conversation, meta, rollout};
use annals_testkit::server::Server;
use annals_testkit::{Bench, Ran};

/// Writes config.toml where the program looks for it.
fn configure(bench: &Bench, text: &str) -> PathBuf {
    let path = bench.user().join(".config/annals/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn setting(document: &Value, key: &str) -> Value {
    let settings = document["settings"].as_array().unwrap();
    settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
}

#[test]
fn a_mistake_in_the_file_is_an_error_with_its_position() {
    let bench = Bench::new();
    for (text, what, hint) in [
        ("# mine\n\nhoome = \"/data\"", "3:1: unknown key \"hoome\"", "did you mean \"home\"?"),
        ("home = 5", "1:8: \"home\" must be a string, not an integer", "home = "),
        (
            "[claude_code]\nprojects_includes = [\"x\"]",
            "2:1: unknown key \"projects_includes\" in [claude_code]",
            "did you mean \"projects_include\"?",
        ),
        (
            "[claude_code]\nprojects_include = [\"x\", 2]",
            "2:26: \"claude_code.projects_include\" must be a string or an array of strings",
            "projects_include = [",
        ),
        ("[claude]\nhome = \"x\"", "1:2: unknown table [claude]", "did you mean [claude_code]?"),
        ("[codex_cli]\nhome = [\"x\"]", "2:8: \"codex_cli.home\" must be a string, not an array", ""),
        ("projects = 1", "1:12: \"projects\" must be true or false, not an integer", "projects = true"),
        ("headless = true", "1:1: unknown key \"headless\"", "did you mean \"headless\" in [browser]?"),
        ("listen = \"a", "1:", ""),
    ] {
        let path = configure(&bench, text);
        for verb in ["sessions", "config", "sync"] {
            let ran = bench.run(&[verb]);
            assert_eq!(ran.code, 2, "{text}");
            let start = format!("error: {}:{what}", path.display());
            assert!(ran.stderr.starts_with(&start), "{start}\n{}", ran.stderr);
            assert!(ran.stderr.contains(hint), "{hint}\n{}", ran.stderr);
            assert!(ran.stdout.is_empty() && !bench.archive().exists());
        }
        let ran = bench.run(&["config", "path"]);
        assert_eq!((ran.code, ran.stdout), (0, format!("{}\n", path.display())), "found even when broken");
    }
}

/// An array of patterns was once ignored.
#[test]
fn a_list_may_be_an_array_or_a_string() {
    let bench = Bench::new();
    let patterns = |text: &str| {
        configure(&bench, &format!("[claude_code]\nprojects_include = {text}\n"));
        setting(&bench.json(&["config"]), "claude_code.projects_include")["value"].clone()
    };
    assert_eq!(patterns("[\"a*\", \"b,c\"]"), json!(["a*", "b,c"]));
    assert_eq!(patterns("\"a*, b\""), json!(["a*", "b"]));

    for project in ["-work-kept", "-work-other"] {
        let folder = bench.claude().join("projects").join(project);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{ID}.jsonl")), "{}\n").unwrap();
    }
    configure(&bench, "[claude_code]\nprojects_include = [\"*-kept\"]\n");
    bench.sync();
    let paths: Vec<String> = bench.accounts().iter().map(|file| file["path"].to_string()).collect();
    assert!(paths.len() == 1 && paths[0].contains("-work-kept"), "{paths:?}");
}

#[test]
fn every_declared_key_is_accepted_and_listed() {
    let bench = Bench::new();
    let mut keys = Vec::new();
    for source in annals_testkit::sources::all() {
        let manifest = bench.json(&["manifest", source]);
        for variable in manifest["variables"].as_array().unwrap() {
            let (key, name) = (variable["config_key"].as_str().unwrap(), variable["name"].as_str().unwrap());
            let (table, last) = key.split_once('.').unwrap();
            assert_eq!(table, source, "{key}");
            let values = match variable["kind"].as_str().unwrap() {
                "text" => vec![("\"~/x\"", json!(bench.user().join("x")))],
                "list" => vec![("\"a, b\"", json!(["a", "b"])), ("[\"a\", \"b\"]", json!(["a", "b"]))],
                "boolean" => vec![("true", json!(true)), ("\"yes\"", json!(true))],
                kind => panic!("{key}: write a value of kind {kind} here"),
            };
            for (written, value) in values {
                let path = configure(&bench, &format!("[{table}]\n{last} = {written}\n"));
                let document = bench.json(&["config"]);
                assert_eq!(document["file"], json!(path));
                let listed = setting(&document, key);
                assert_eq!(listed["value"], value, "{listed}");
                assert_eq!((&listed["origin"], &listed["line"]), (&json!("file"), &json!(2)), "{listed}");
                assert_eq!((&listed["variable"], &listed["description"]), (&json!(name), &variable["what"]));
            }
            keys.push(key.to_owned());
        }
    }
    assert!(keys.len() > 10, "{keys:?}");
    let own = [
        "home",
        "listen",
        "projects",
        "log",
        "machine",
        "pager",
        "editor",
        "budget",
        "browser.program",
        "browser.arguments",
        "browser.headless",
        "retention.rules",
        "retention.automatic",
        "server.hosts",
        "server.tls_cert",
        "server.tls_key",
        "server.trust_proxy",
        "server.user_header",
        "server.policy",
        "push.url",
        "push.token_file",
        "push.ca",
        "push.sources",
        "push.exclude_sources",
        "push.projects",
        "push.exclude_projects",
    ];
    keys.extend(own.map(str::to_owned));
    let document = bench.json(&["config"]);
    let listed = document["settings"].as_array().unwrap().iter();
    let mut listed: Vec<&str> = listed.map(|setting| setting["key"].as_str().unwrap()).collect();
    listed.sort_unstable();
    keys.sort_unstable();
    assert_eq!(listed, keys);
}

/// A default is not an explicit value: setting a directory does not add the client's default home.
#[test]
fn a_folder_alone_replaces_the_usual_home() {
    let bench = Bench::new();
    let folder = bench.folder.path().join("elsewhere");
    for (source, key) in [("codex_cli", "sessions_path"), ("claude_code", "projects_dir")] {
        configure(&bench, &format!("[{source}]\n{key} = {:?}\n", folder.to_str().unwrap()));
        let homes = bench.sync_of(source)["homes"].clone();
        let paths: Vec<&str> =
            homes.as_array().unwrap().iter().map(|home| home["path"].as_str().unwrap()).collect();
        assert_eq!(paths, [folder.to_str().unwrap()], "{source}");
    }
}

#[test]
fn flags_win_over_the_environment_the_environment_over_the_file() {
    let bench = Bench::new();
    let home = |flag: bool, variable: bool| {
        let mut command = bench.command(&["config", "--json"]);
        if !flag {
            command = std::process::Command::new(command.get_program());
            command.args(["config", "--json"]).env_clear().env("HOME", bench.user());
        }
        if variable {
            command.env("ANNALS_HOME", "/from/variable");
        }
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let home = setting(&serde_json::from_str(&ran.stdout).unwrap(), "home");
        (home["value"].as_str().unwrap().to_owned(), home["origin"].as_str().unwrap().to_owned())
    };
    let named = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    let default = bench.user().join(".local/share/annals");
    assert_eq!(home(false, false), named(default.to_str().unwrap(), "default"));
    configure(&bench, "home = \"~/kept\"\n");
    assert_eq!(home(false, false), named(bench.user().join("kept").to_str().unwrap(), "file"));
    assert_eq!(home(false, true), named("/from/variable", "environment"));
    assert_eq!(home(true, true), named(bench.archive().to_str().unwrap(), "flag"));
}

#[test]
fn the_table_shows_the_origin_of_each_value() {
    let bench = Bench::new();
    let path = configure(&bench, "[browser]\narguments = [\"--lang=en\", \"--size=1,2\"]\n");
    let ran = Ran::of(bench.command(&["config"]).env("ANNALS_BROWSER_HEADLESS", "1").output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let rows: Vec<Vec<&str>> =
        ran.stdout.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
    let row = |key: &str| {
        let row = rows.iter().find(|row| row[0] == key).unwrap();
        row.iter().filter(|cell| !cell.is_empty()).map(|cell| cell.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(row("setting"), ["setting", "value", "from"]);
    assert_eq!(row("home"), ["home", bench.archive().to_str().unwrap(), "--home"]);
    assert_eq!(row("listen"), ["listen", "127.0.0.1:4848", "default"]);
    assert_eq!(row("browser.headless"), ["browser.headless", "true", "ANNALS_BROWSER_HEADLESS"]);
    let place = format!("{}:2", path.display());
    assert_eq!(row("browser.arguments"), ["browser.arguments", "--lang=en, --size=1,2", &place]);
    assert_eq!(row("codex_cli.sessions_path"), ["codex_cli.sessions_path", "-", "default"]);
}

/// The log, the pager and the machine's name are settings like all others.
#[test]
fn the_file_sets_what_variables_set() {
    let bench = Bench::new();
    let run = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = bench.command(arguments);
        command.env_remove("ANNALS_MACHINE").envs(environment.iter().copied());
        Ran::of(command.output().unwrap())
    };
    let value = |key: &str, environment: &[(&str, &str)]| {
        let listed =
            setting(&serde_json::from_str(&run(&["config", "--json"], environment).stdout).unwrap(), key);
        (
            listed["value"].as_str().unwrap_or_default().to_owned(),
            listed["origin"].as_str().unwrap().to_owned(),
        )
    };
    let named = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(value("log", &[]), named("", "default"));
    assert!(!value("machine", &[]).0.is_empty());
    configure(&bench, "log = \"debug\"\nmachine = \"workbench\"\npager = \"more -x\"\n");
    assert_eq!(value("log", &[]), named("debug", "file"));
    assert_eq!(value("log", &[("ANNALS_LOG", "warn")]), named("warn", "environment"));
    assert_eq!(value("pager", &[("PAGER", "most")]), named("more -x", "file"));
    assert_eq!(value("pager", &[("ANNALS_PAGER", "most")]), named("most", "environment"));
    bench.transcript(&rollout(ID), &conversation(ID, "on a machine"));
    run(&["sync"], &[]);
    let archive = rusqlite::Connection::open(bench.archive().join("annals.db")).unwrap();
    let machine = archive.query_row("select machine from instance", [], |row| row.get::<_, String>(0));
    assert_eq!(machine.unwrap(), "workbench");
    configure(&bench, "log = \"annals=loud\"\n");
    let ran = run(&["sources"], &[]);
    assert!(ran.code == 2 && ran.stderr.starts_with("error: cannot log \"annals=loud\": "), "{}", ran.stderr);
}

#[test]
fn variables_are_checked_too() {
    let bench = Bench::new();
    for (variable, value, what) in [
        (
            "ANNALS_BROWSER_HEADLESS",
            "maybe",
            "error: ANNALS_BROWSER_HEADLESS must be yes or no, not \"maybe\"\n",
        ),
        ("ANNALS_CONFIG", "/nowhere/config.toml", "error: cannot read /nowhere/config.toml: "),
    ] {
        let ran = Ran::of(bench.command(&["sessions"]).env(variable, value).output().unwrap());
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.starts_with(what) && ran.stderr.contains("\nhint: "), "{}", ran.stderr);
    }
}

#[test]
fn without_projects_no_command_reads_repositories() {
    let ways: [fn(&Bench); 3] = [
        |bench| drop(bench.sync()),
        |bench| assert_eq!(bench.run(&["up", "--no-serve"]).code, 0),
        |bench| {
            let reply = Server::start(bench).get("/api/v1/codex/sessions");
            assert_eq!(reply.status, 200);
        },
    ];
    for collect in ways {
        for (text, read) in [("projects = false\n", false), ("projects = true\n", true)] {
            let bench = Bench::new();
            let repository = bench.folder.path().canonicalize().unwrap().join("gauge");
            std::fs::create_dir_all(&repository).unwrap();
            std::fs::write(repository.join("AGENTS.md"), "Be brief.\n").unwrap();
            let mut lines = conversation(ID, "in a repository");
            lines[0] = meta(ID).replace("/home/ada/engine", repository.to_str().unwrap());
            bench.transcript(&rollout(ID), &lines);
            configure(&bench, text);
            collect(&bench);
            assert_eq!(bench.sessions().len(), 1);
            assert_eq!(bench.run(&["library", "--json"]).stdout.contains("AGENTS.md"), read, "{text}");
        }
    }
}
