//! The audit adds up for every home and names what it does not know, and the doctor finds damage.

use std::collections::BTreeSet;

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::homes::ClientHome;

fn audit_of(bench: &Bench, source: &str) -> Value {
    let audit = bench.json(&["audit"]);
    audit["sources"].as_array().unwrap().iter().find(|audit| audit["source"] == source).unwrap().clone()
}

annals_testkit::over_homes! { totals_reconcile_and_records_agree_with_their_manifest }

fn totals_reconcile_and_records_agree_with_their_manifest(homes: &[ClientHome]) {
    for ClientHome { source, path: home } in homes {
        let bench = Bench::with_home(source, home);
        bench.sync();
        let audit = audit_of(&bench, source);
        for unit in ["files", "bytes"] {
            let sum: u64 = ["kept", "forgotten", "left_out", "unaccounted", "gaps"]
                .iter()
                .map(|part| audit[unit][part].as_u64().unwrap())
                .sum();
            assert_eq!(audit[unit]["found"].as_u64().unwrap(), sum, "{} {unit}", home.display());
        }
        if !home.join("newthing.db").exists() {
            assert_eq!(audit["unaccounted"], serde_json::json!([]), "{}", home.display());
        }
        // What is on disk, counted independently here.
        let on_disk = annals_testkit::files::files_below(&bench.home_of(source)).len() as u64;
        let seen = audit["files"]["found"].as_u64().unwrap();
        assert!(seen <= on_disk && audit["files"]["gaps"] == 0, "{}: {seen} of {on_disk}", home.display());
        let lines: i64 = ["kept", "unknown", "malformed", "skipped", "forgotten"]
            .iter()
            .map(|status| audit["lines"][status]["lines"].as_i64().unwrap())
            .sum();
        assert_eq!(audit["lines"]["found"].as_i64().unwrap(), lines);
        for stream in audit["streams"].as_array().unwrap() {
            let undeclared =
                stream["undeclared"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
            let undeclared: BTreeSet<String> = undeclared.map(str::to_owned).collect();
            let name = stream["stream"].as_str().unwrap();
            let allowed = fields_of_unknown_rows(&bench, &format!("{source}/{name}"), &audit);
            assert!(undeclared.is_subset(&allowed), "{} {name}: {undeclared:?}", home.display());
            assert_eq!(
                stream["other_type"],
                serde_json::json!([]),
                "{} {}",
                home.display(),
                stream["stream"]
            );
        }
    }
}

/// Rows of an unknown type have fields that nobody can declare.
fn fields_of_unknown_rows(bench: &Bench, stream: &str, audit: &Value) -> BTreeSet<String> {
    let Some(unknown) = audit["types"]["unknown"].as_object() else { return BTreeSet::new() };
    let printed = bench.run(&["records", stream]).stdout;
    let records = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let unknown = records.filter(|record| {
        record["data"]["type"].as_str().is_some_and(|kind| unknown.keys().any(|name| name.contains(kind)))
    });
    unknown
        .flat_map(|record| record["data"].as_object().unwrap().keys().cloned().collect::<Vec<_>>())
        .collect()
}

#[test]
fn sources_of_which_nothing_was_found_are_named_in_one_line() {
    let bench = Bench::new();
    let absent = "Claude Code  nothing found";
    assert!(bench.run(&["audit"]).stdout.contains(absent), "without any source all are shown");
    bench.transcript(&rollout(ID), &conversation(ID, "whole"));
    bench.sync();
    let audit = bench.run(&["audit"]).stdout;
    assert!(audit.contains("Codex CLI  100 % accounted for\n"), "{audit}");
    let folded = audit.lines().find(|line| line.starts_with("Not found: ")).unwrap();
    assert!(folded.contains("Claude Code, Gemini CLI") && !folded.contains("Codex"), "{folded}");
    assert!(!audit.contains(absent), "{audit}");
    let all = bench.run(&["audit", "--all"]).stdout;
    assert!(all.contains(absent) && !all.contains("Not found:"), "{all}");
}

#[test]
fn imports_reconcile_and_their_records_agree_with_the_manifest() {
    for (source, case) in annals_testkit::fixtures::with_exports() {
        let bench = annals_testkit::fixtures::imported(&case);
        let audit = audit_of(&bench, source);
        for unit in ["files", "bytes"] {
            let sum: u64 = ["kept", "left_out", "unaccounted", "gaps"]
                .iter()
                .map(|part| audit[unit][part].as_u64().unwrap())
                .sum();
            assert_eq!(audit[unit]["found"].as_u64().unwrap(), sum, "{} {unit}", case.display());
        }
        // What is in the exports, counted independently here.
        let files = annals_testkit::files::files_below(&case.join("exports"));
        let bytes: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
        assert_eq!(audit["files"]["found"], files.len(), "{}", case.display());
        assert_eq!(audit["bytes"]["found"], bytes, "{}", case.display());
        for stream in audit["streams"].as_array().unwrap() {
            let (none, name) = (serde_json::json!([]), &stream["stream"]);
            assert_eq!(
                (&stream["undeclared"], &stream["other_type"]),
                (&none, &none),
                "{} {name}",
                case.display()
            );
        }
    }
}

#[test]
fn a_new_kind_of_file_shows_up_by_itself() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "whole"));
    bench.sync();
    assert_eq!(audit_of(&bench, "codex_cli")["percent"], 100.0);
    assert_eq!(bench.run(&["audit", "--fail-under", "100"]).code, 0);
    std::fs::write(bench.codex().join("newthing.db"), "?").unwrap();
    let audit = audit_of(&bench, "codex_cli");
    assert_eq!(audit["unaccounted"][0]["path"], "newthing.db");
    assert!(audit["percent"].as_f64().unwrap() < 100.0);
    assert_eq!(bench.run(&["audit", "--fail-under", "100"]).code, 1);
}

#[test]
fn unknown_lines_raise_the_counters_and_lose_nothing() {
    let bench = Bench::new();
    let mut lines = conversation(ID, "unknown");
    lines.push(r#"{"timestamp":"2026-11-15T10:00:03.000Z","type":"hologram","payload":{"cube":1}}"#.into());
    lines.push("not json".into());
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let audit = audit_of(&bench, "codex_cli");
    assert_eq!(audit["unknown"][0]["kind"], "hologram");
    assert_eq!(audit["unknown"][0]["client_version"], "0.80.0");
    assert_eq!(audit["types"]["unknown"]["hologram"]["lines"], 1);
    assert_eq!(audit["malformed"][0]["what"], "not JSON");
    assert!(audit["malformed"][0]["offset"].as_u64().unwrap() > 0);
    assert_eq!(bench.run(&["audit", "--fail-under", "100"]).code, 1);
    annals_testkit::checks::assert_restores(&bench, &bench.codex());
}

#[test]
fn an_unsynced_file_is_a_gap_until_the_next_sync() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gap"));
    assert_eq!(audit_of(&bench, "codex_cli")["files"]["gaps"], 1);
    bench.sync();
    assert_eq!(audit_of(&bench, "codex_cli")["files"]["gaps"], 0);
}

/// Lines without files would not add up.
#[test]
fn files_of_a_removed_home_are_counted_as_kept() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gauges"));
    bench.sync();
    let before = audit_of(&bench, "codex_cli");
    assert_eq!(before["files"]["archived_only"], 0);
    let home = bench.home_of("codex_cli");
    std::fs::rename(&home, home.with_extension("elsewhere")).unwrap();
    for sync in [false, true] {
        if sync {
            bench.sync();
        }
        let after = audit_of(&bench, "codex_cli");
        assert_eq!(after["lines"]["found"], before["lines"]["found"]);
        for unit in ["files", "bytes"] {
            assert_eq!(after[unit]["found"], before[unit]["kept"], "{unit} {after:#}");
            assert_eq!(after[unit]["archived_only"], before[unit]["kept"], "{unit}");
        }
    }
}

#[test]
fn the_doctor_names_the_file_with_a_flipped_byte() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "health"));
    bench.sync();
    let well = bench.run(&["doctor"]);
    assert_eq!(well.code, 0, "{}", well.stdout);
    let database = bench.archive().join("annals.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    let data: Vec<u8> = connection.query_row("select data from blob limit 1", [], |row| row.get(0)).unwrap();
    let mut flipped = data.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    connection.execute("update blob set data = ?1 where data = ?2", (flipped, data)).unwrap();
    drop(connection);
    let ill = bench.run(&["doctor"]);
    assert_eq!(ill.code, 1);
    assert!(ill.stdout.contains(&rollout(ID)) && ill.stdout.contains("hint:"), "{}", ill.stdout);
}

#[test]
fn an_unknown_field_is_named_and_kept() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "fields"));
    let line =
        format!("{{\"session_id\":\"{ID}\",\"ts\":1772442000,\"text\":\"fields\",\"mood\":\"calm\"}}\n");
    std::fs::write(bench.codex().join("history.jsonl"), line).unwrap();
    bench.sync();
    let audit = audit_of(&bench, "codex_cli");
    let streams = audit["streams"].as_array().unwrap();
    let history = streams.iter().find(|stream| stream["stream"] == "history").unwrap();
    assert_eq!(history["undeclared"], serde_json::json!(["mood"]));
    assert!(bench.run(&["records", "codex_cli/history"]).stdout.contains("\"mood\":\"calm\""));
    assert!(bench.run(&["audit"]).stdout.contains("undeclared mood"));
}

/// What a home contains decides its status, not that it is there.
#[test]
fn a_home_is_empty_unsupported_or_available() {
    let bench = Bench::new();
    let status = || {
        let sources = bench.json(&["sources"])["sources"].as_array().unwrap().clone();
        let card = sources.iter().find(|card| card["source"] == "codex_cli").unwrap().clone();
        (card["source_status"].as_str().unwrap().to_owned(), card["session_count"].as_i64().unwrap())
    };
    std::fs::create_dir_all(bench.codex()).unwrap();
    std::fs::write(bench.codex().join("config.toml"), "model = \"gpt-5\"\n").unwrap();
    bench.sync();
    assert_eq!(status(), ("empty".into(), 0));
    assert_eq!(
        audit_of(&bench, "claude_code")["percent"],
        Value::Null,
        "an absent source accounts for nothing"
    );
    let garbage = bench.transcript(&rollout(ID), &["not JSON".into(), "\u{1}\u{2}".into()]);
    bench.sync();
    assert_eq!(status(), ("unsupported".into(), 0), "garbage is no session");
    std::fs::write(&garbage, annals_testkit::codex::text_of(&conversation(ID, "gears"))).unwrap();
    bench.sync();
    assert_eq!(status(), ("available".into(), 1));
}
