//! Library items: versions, ends, what was in effect when, and no values of environments.

use std::path::Path;

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, meta, rollout};

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Gives a file a separate time, so that versions have an order.
fn dated(path: &Path, seconds: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    file.set_times(std::fs::FileTimes::new().set_modified(time)).unwrap();
}

fn names(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    let ran = bench.run(&[&["library", "--json"], arguments].concat());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let items = answer["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| {
            format!(
                "{} {} v{}",
                item["kind"].as_str().unwrap(),
                item["id"].as_str().unwrap(),
                item["version"]
            )
        })
        .collect()
}

#[test]
fn edits_removals_and_rules_leave_versions_and_ends() {
    let bench = Bench::new();
    let (skill, note) =
        (bench.claude().join("skills/shout/SKILL.md"), bench.claude().join("projects/-p/memory/tabs.md"));
    let rules = bench.codex().join("rules/default.rules");
    write(&skill, "---\nname: shout\ndescription: loud\n---\nLOUD\n");
    write(&note, "Tabs, not spaces.\n");
    write(&rules, "prefix_rule(pattern=[\"ls\"])\nprefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\n");
    for path in [&skill, &note, &rules] {
        dated(path, 1_772_000_000);
    }
    bench.sync();
    let before = names(&bench, &[]);
    assert!(before.contains(&"skills shout v1".into()), "{before:?}");
    assert!(before.contains(&"memory_notes -p/tabs.md v1".into()), "{before:?}");
    assert!(before.contains(&"approval_rules default:[\"rm\"] v1".into()), "{before:?}");

    write(&skill, "---\nname: shout\ndescription: loud\n---\nLOUDER\n");
    dated(&skill, 1_772_100_000);
    std::fs::remove_file(&note).unwrap();
    write(&rules, "prefix_rule(pattern=[\"ls\"], decision=\"prompt\")\n");
    dated(&rules, 1_772_100_000);
    bench.sync();
    let after = names(&bench, &[]);
    assert!(after.contains(&"skills shout v2".into()), "{after:?}");
    assert!(!after.iter().any(|item| item.contains("tabs.md")), "{after:?}");
    assert!(after.contains(&"approval_rules default:[\"ls\"] v2".into()), "{after:?}");
    assert!(
        !after.iter().any(|item| item.contains("\"rm\"")),
        "a rule that is gone from its file has ended: {after:?}"
    );

    let then = names(&bench, &["--as-of", "2026-02-25T12:00:00Z"]);
    assert!(then.contains(&"skills shout v1".into()), "{then:?}");
    assert!(then.contains(&"memory_notes -p/tabs.md v1".into()), "{then:?}");
    assert!(then.contains(&"approval_rules default:[\"rm\"] v1".into()), "{then:?}");
    assert!(names(&bench, &["--as-of", "2026-01-01T00:00:00Z"]).is_empty());

    let history = bench.run(&["library", "--history", "shout"]).stdout;
    assert!(history.contains("-LOUD\n") && history.contains("+LOUDER"), "{history}");
    let removed = bench.run(&["library", "--history", "tabs.md"]).stdout;
    assert!(removed.contains("Tabs, not spaces.") && removed.contains("deleted"), "{removed}");

    let everything = bench.everything();
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert!(bench.everything() == everything, "rebuild changed records");
    assert_eq!(names(&bench, &["--as-of", "2026-02-25T12:00:00Z"]), then);
}

#[test]
fn repositories_give_their_declared_files_and_nothing_else() {
    let bench = Bench::new();
    let repository = bench.folder.path().canonicalize().unwrap().join("gauge");
    write(&repository.join("AGENTS.md"), "Be brief.\n");
    write(&repository.join(".codex/skills/dial/SKILL.md"), "Dial.\n");
    write(&repository.join("secret.txt"), "not yours\n");
    write(&bench.folder.path().join("outside.md"), "elsewhere\n");
    std::os::unix::fs::symlink(bench.folder.path().join("outside.md"), repository.join("AGENTS.override.md"))
        .unwrap();
    let mut lines = conversation(ID, "in a repository");
    lines[0] = meta(ID).replace("/home/ada/engine", repository.to_str().unwrap());
    bench.transcript(&rollout(ID), &lines);
    let without = bench.run(&["sync", "--no-projects", "--json"]);
    assert_eq!(without.code, 0);
    assert!(names(&bench, &[]).is_empty());
    let report = bench.sync();
    assert!(report["problems"].to_string().contains("AGENTS.override.md"), "{report}");
    let root = repository.to_str().unwrap();
    let found = names(&bench, &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&format!("project_instructions {root}#AGENTS.md v1")), "{found:?}");
    assert!(found.contains(&format!("skills {root}#dial v1")), "{found:?}");
    assert_eq!(bench.sync()["captured_bytes"], 0);
    std::fs::remove_file(repository.join("AGENTS.md")).unwrap();
    bench.run(&["sync", "--no-projects"]);
    assert_eq!(names(&bench, &[]).len(), 2, "what is not looked at is not gone");
    bench.sync();
    assert_eq!(names(&bench, &[]).len(), 1);
    std::fs::remove_dir_all(&repository).unwrap();
    bench.sync();
    assert_eq!(names(&bench, &[]).len(), 1, "a repository that is away says nothing");
}

#[test]
fn a_session_lists_what_was_in_effect() {
    let bench = Bench::new();
    let agents = bench.codex().join("AGENTS.md");
    write(&agents, "First.\n");
    dated(&agents, 1_772_000_000);
    bench.transcript(&rollout(ID), &conversation(ID, "then"));
    bench.sync();
    write(&agents, "Second.\n");
    dated(&agents, 1_795_000_000);
    bench.sync();
    let shown = bench.json(&["show", ID]);
    let in_force = shown["in_force"].as_array().unwrap();
    assert_eq!(in_force.len(), 1);
    assert_eq!((in_force[0]["name"].as_str(), in_force[0]["version"].as_i64()), (Some("AGENTS.md"), Some(1)));
    assert!(bench.run(&["show", ID]).stdout.contains("in effect: project_instructions AGENTS.md v1"));
}

#[test]
fn values_of_environments_do_not_leave_the_program() {
    let bench = Bench::new();
    let value = "quiet-harbour-lantern";
    write(
        &bench.claude().join("settings.json"),
        &format!("{{\"env\":{{\"ANY_NAME\":\"{value}\"}},\"model\":\"m\"}}"),
    );
    write(
        &bench.codex().join("config.toml"),
        &format!(
            "model = \"m\"\n[mcp_servers.bell]\ncommand = \"bell\"\nenv = {{ ANY_NAME = \"{value}\" }}\n"
        ),
    );
    bench.sync();
    let mut outputs = vec![bench.everything(), bench.run(&["library"]).stdout, bench.run(&["audit"]).stdout];
    for name in ["settings.json", "config.toml"] {
        outputs.push(bench.run(&["library", "--history", name]).stdout);
        outputs.push(bench.run(&["library", "--history", name, "--json"]).stdout);
    }
    for output in outputs {
        assert!(!output.contains(value), "{output}");
    }
    let shown = bench.run(&["records", "claude_code/settings"]).stdout;
    assert!(shown.contains("ANY_NAME") && shown.contains("[masked]"), "{shown}");
}

#[test]
fn every_authored_stream_has_content_in_the_fixtures() {
    let empty_by_nature = ["agent_jobs", "spawn_edges", "goals", "queued_prompts", "memory_drafts"];
    for (source, case) in annals_testkit::fixtures::with_home() {
        if !case.ends_with("authored") {
            continue;
        }
        let bench = Bench::with_home(source, &case.join("home"));
        bench.sync();
        let manifest = bench.json(&["manifest", source]);
        let streams = manifest["streams"].as_array().unwrap().iter();
        for stream in streams.filter(|stream| stream["family"] != "transcript") {
            let name = stream["name"].as_str().unwrap();
            if empty_by_nature.contains(&name) {
                continue;
            }
            assert_eq!(
                bench.run(&["records", &format!("{source}/{name}"), "--json"]).code,
                0,
                "{source}/{name}"
            );
        }
        assert!(!bench.everything().contains("c-sharp-minor"), "a value of an environment");
    }
}

#[test]
fn rows_of_the_clients_databases_are_records() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "jobs"));
    let tables = [
        (
            "state_5.sqlite",
            "create table threads (id text, title text); insert into threads values ('t', 'x');
          create table agent_jobs (id text, name text); insert into agent_jobs values ('job-1', 'count');
          create table thread_spawn_edges (parent_thread_id text, child_thread_id text, status text);
          insert into thread_spawn_edges values ('a', 'b', 'open')",
        ),
        (
            "goals_1.sqlite",
            "create table thread_goals (thread_id text, objective text);
          insert into thread_goals values ('t', 'finish')",
        ),
        (
            "queue_1.sqlite",
            "create table queued_items (id text, thread_id text, payload_json text);
          insert into queued_items values ('q', 't', '{}')",
        ),
        (
            "memories_1.sqlite",
            "create table stage1_outputs (thread_id text, raw_memory text);
          insert into stage1_outputs values ('t', 'marks are twelve')",
        ),
    ];
    for (name, text) in tables {
        rusqlite::Connection::open(bench.codex().join(name)).unwrap().execute_batch(text).unwrap();
    }
    bench.sync();
    for (stream, word) in [
        ("agent_jobs", "count"),
        ("spawn_edges", "open"),
        ("goals", "finish"),
        ("queued_prompts", "payload_json"),
        ("memory_drafts", "marks are twelve"),
    ] {
        let shown = bench.run(&["records", &format!("codex_cli/{stream}")]).stdout;
        assert!(shown.contains(word), "{stream}: {shown}");
    }
}

#[test]
fn a_link_out_of_the_home_is_recorded_and_followed_only_on_request() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "dotfiles"));
    let dotfile = bench.folder.path().join("dotfiles.md");
    std::fs::write(&dotfile, "From my dotfiles.\n").unwrap();
    std::os::unix::fs::symlink(&dotfile, bench.codex().join("AGENTS.md")).unwrap();
    let report = bench.sync();
    assert!(report["problems"].to_string().contains("AGENTS.md"), "{report}");
    assert!(names(&bench, &[]).is_empty());
    let output = bench.command(&["sync"]).env("ANNALS_CODEX_FOLLOW_LINKS", "yes").output().unwrap();
    assert!(output.status.success());
    assert_eq!(names(&bench, &[]), ["project_instructions AGENTS.md v1"]);
    // A link to a file that is never opened is not followed either way.
    let keys = bench.folder.path().join("auth.json");
    std::fs::write(&keys, "keys of nobody").unwrap();
    std::os::unix::fs::symlink(&keys, bench.codex().join("prompts.md")).unwrap();
    std::fs::create_dir_all(bench.codex().join("prompts")).unwrap();
    std::os::unix::fs::symlink(&keys, bench.codex().join("prompts/keys.md")).unwrap();
    bench.command(&["sync"]).env("ANNALS_CODEX_FOLLOW_LINKS", "yes").output().unwrap();
    assert!(!bench.everything().contains("keys of nobody"));
}
