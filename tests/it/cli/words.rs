//! Words that people type: verbs, shells, manual pages, and names of things that are nearly right.

use std::process::{Command, Stdio};

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, meta, prompt, rollout, text_of, tokens};

#[test]
fn help_and_version_are_verbs() {
    let bench = Bench::new();
    let help = bench.run(&["help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    for group in ["Daily", "Understand", "Export", "Trust", "Admin"] {
        assert!(help.stdout.contains(group), "{group}: {}", help.stdout);
    }
    assert_eq!(bench.run(&["help", "show"]).stdout, bench.run(&["show", "--help"]).stdout);
    let wrong = bench.run(&["help", "shwo"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("hint: did you mean show"), "{}", wrong.stderr);
    let version = bench.run(&["version"]).stdout;
    assert!(version.starts_with(concat!("annals ", env!("CARGO_PKG_VERSION"))), "{version}");
    assert_eq!(bench.json(&["version"])["version"], env!("CARGO_PKG_VERSION"));
}

/// The scripts know every verb, and the shell that is always there accepts its own and completes with it.
#[test]
fn completions_know_every_verb() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = bench.run(&["completions", shell]).stdout;
        for verb in ["sessions", "statusline", "blame"] {
            assert!(script.contains(verb), "{shell} does not complete {verb}");
        }
    }
    let script = bench.folder.path().join("annals.bash");
    std::fs::write(&script, bench.run(&["completions", "bash"]).stdout).unwrap();
    let completed = |words: &[&str]| -> String {
        let line = format!(
            "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; COMP_LINE=\"${{COMP_WORDS[*]}}\"; COMP_POINT=${{#COMP_LINE}}; \
             _annals annals '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output =
            Command::new("bash").args(["--norc", "-c", &line]).stderr(Stdio::inherit()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(completed(&["annals", "sess"]).trim(), "sessions");
    let sources = completed(&["annals", "sessions", "--source", "co"]);
    assert!(sources.lines().any(|source| source == "codex_cli"), "{sources}");
}

#[test]
fn every_verb_has_a_manual_page() {
    let bench = Bench::new();
    let folder = bench.folder.path().join("man");
    assert_eq!(bench.run(&["man", "--to", folder.to_str().unwrap()]).code, 0);
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(page("annals.1").contains(".TH annals 1"));
    assert!(page("annals-show.1").contains("view"));
    assert_eq!(bench.run(&["man", "show"]).stdout, page("annals-show.1"));
    assert!(std::fs::read_dir(&folder).unwrap().count() > 30);
}

#[test]
fn filters_take_what_people_type() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "Count the gears"));
    bench.sync();
    let found = |arguments: &[&str]| {
        let ran = bench.run(&[&["sessions", "--json"], arguments].concat());
        (ran.code, ran.stdout.contains(ID))
    };
    for filter in [
        &["--source", "codex"][..],
        &["--project", "engine"],
        &["--project", "ENGINE"],
        &["--since", "yesterday"],
        &["--since", "last week"],
        &["--since", "3d"],
        &["--since", "november"],
        &["--since", "2026-11-15", "--until", "2026-11-16"],
    ] {
        assert_eq!(found(filter), (0, true), "{filter:?}");
    }
    for filter in [&["--until", "yesterday"][..], &["--source", "claude"], &["--until", "october"]] {
        assert_eq!(found(filter), (1, false), "{filter:?}");
    }
    for (filter, hint) in [
        (&["--source", "codx"][..], "codex"),
        (&["--project", "engnie"], "engine"),
        (&["--since", "mnday"], "monday"),
    ] {
        let ran = bench.run(&[&["sessions"], filter].concat());
        assert_eq!(ran.code, 2, "{filter:?}");
        assert!(ran.stderr.contains("hint:") && ran.stderr.contains(hint), "{filter:?}: {}", ran.stderr);
    }
}

/// The session of a day is found under the day of the person's clock.
#[test]
fn days_are_those_of_the_time_zone() {
    let bench = Bench::new();
    let lines = [vec![meta(ID)], prompt("Count the gears").to_vec(), vec![tokens(5, 100, 100)]].concat();
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let days = |zone: &str, options: &[&str]| {
        let mut command =
            bench.command(&[&["usage", "--by", "day", "--days", "all", "--json"], options].concat());
        let answer: serde_json::Value =
            serde_json::from_slice(&command.env("TZ", zone).output().unwrap().stdout).unwrap();
        answer["rows"].as_array().unwrap().iter().map(|row| row["key"].to_string()).collect::<String>()
    };
    assert!(days("UTC", &[]).contains("2026-11-15"));
    assert!(days("Etc/GMT-14", &[]).contains("2026-11-16"), "{}", days("Etc/GMT-14", &[]));
    assert!(days("Etc/GMT-14", &["--utc"]).contains("2026-11-15"));
}

#[test]
fn the_status_line_adds_what_the_client_says() {
    let bench = Bench::new();
    let mut lines = conversation(ID, "Count the gears");
    lines.insert(1, annals_testkit::codex::line(0, "turn_context", r#"{"model":"gpt-5-codex"}"#));
    lines.push(tokens(5, 1_000_000, 1_000_000));
    std::fs::create_dir_all(bench.codex()).unwrap();
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let line = |input: &str| {
        let file = bench.folder.path().join("given.json");
        std::fs::write(&file, input).unwrap();
        let mut command = bench.command(&["statusline"]);
        let output = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let archived = line("");
    assert!(archived.starts_with("$1.25") && archived.ends_with("today\n"), "{archived}");
    // The client knows more of its session than what was captured so far.
    let more = line(&format!(r#"{{"session_id":"{ID}","cost":{{"total_cost_usd":2.0}}}}"#));
    assert!(more.contains("$2.00 today") && more.contains("$2.00 session"), "{more}");
    let other = line(r#"{"session_id":"other","cost":{"total_cost_usd":0.5}}"#);
    assert!(other.contains("$1.75 today") && other.contains("$0.50 session"), "{other}");
    assert_eq!(line("not JSON"), archived);
    assert!(!text_of(&lines).is_empty());
}
