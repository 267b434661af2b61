//! The command line as a newcomer meets it: empty machine, statuses, exit codes, hints, pipes, the lock.

use std::io::Read;
use std::process::Stdio;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, rollout};

#[test]
fn up_on_an_empty_machine_ends_well_with_a_hint() {
    let bench = Bench::new();
    let ran = bench.run(&["up", "--no-serve"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Codex CLI") && ran.stdout.contains("unavailable"), "{}", ran.stdout);
    assert!(ran.stdout.contains("hint:") && ran.stdout.contains("CODEX_HOME"), "{}", ran.stdout);
}

#[test]
fn nothing_found_is_exit_one_and_an_empty_list() {
    let bench = Bench::new();
    let ran = bench.run(&["sessions", "--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stdout.trim(), r#"{"sessions":[],"next_cursor":null,"total":0}"#);
    assert!(!bench.archive().exists(), "asking makes no archive");
}

#[test]
fn errors_say_what_failed_and_the_next_step() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "engines"));
    bench.sync();
    for (arguments, word) in [
        (&["show", "nowhere"][..], "no session found with id \"nowhere\""),
        (&["sync", "nobody"], "unknown source \"nobody\""),
        (&["records", "messages"], "not a stream"),
        (&["records", "codex_cli/dreams"], "unknown stream \"dreams\""),
        (&["sessions", "--since", "soon"], "not a time"),
        (&["sessions", "--cursor", "x"], "not a cursor"),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(
            ran.stderr.contains(word) && ran.stderr.contains("\nhint: "),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(ran.stdout.is_empty());
    }
}

#[test]
fn sessions_have_every_promised_field() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "engines"));
    bench.sync();
    let session = &bench.sessions()[0];
    for field in [
        "session_id",
        "source",
        "provider_label",
        "project_dir",
        "cwd",
        "title",
        "models",
        "tokens",
        "cost_usd",
        "billing_source",
        "message_count",
        "started_at",
        "first_message_at",
        "last_message_at",
        "is_active",
        "entrypoints",
        "git_branch",
        "parent_session_id",
        "tool_call_count",
        "archived",
        "source_gone",
        "client_version",
        "user_message_count",
        "assistant_message_count",
    ] {
        assert!(session.get(field).is_some(), "{field}");
    }
    for token in ["input", "output", "cache_read", "cache_write", "reasoning", "total"] {
        assert!(session["tokens"][token].is_i64(), "{token}");
    }
    assert_eq!(session["title"], "engines");
    assert_eq!(session["message_count"], 2);
}

#[test]
fn filters_and_pages_narrow_the_list() {
    let bench = Bench::new();
    for number in 0..7 {
        let id = format!("0199a1b2-0000-7000-8000-{number:012}");
        let mut lines = conversation(&id, &format!("talk {number}"));
        if number == 3 {
            lines[0] = lines[0].replace("/home/ada/engine", "/home/ada/engineering/sub");
        }
        bench.transcript(&rollout(&id), &lines);
    }
    bench.sync();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let mut arguments = vec!["sessions", "--limit", "3"];
        if !cursor.is_empty() {
            arguments.extend(["--cursor", &cursor]);
        }
        let page = bench.json(&arguments);
        assert_eq!(page["total"], 7);
        seen.extend(page["sessions"].as_array().unwrap().iter().map(|s| s["session_id"].to_string()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7, "each once");
    let count = |arguments: &[&str]| {
        let ran = bench.run(&[&["sessions", "--json"], arguments].concat());
        serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap()["sessions"].as_array().unwrap().len()
    };
    assert_eq!(count(&["--project", "/home/ada/engine"]), 6, "a folder is not the start of another's name");
    assert_eq!(count(&["--project", "/home/ada/engineering"]), 1);
    assert_eq!(count(&["--since", "2026-11-15T11:00:00Z"]), 0);
    assert_eq!(count(&["--until", "2026-11-15T11:00:00Z"]), 7);
    assert_eq!(count(&["--source", "codex_cli"]), 7);
}

#[test]
fn a_bare_sessions_folder_is_enough() {
    let bench = Bench::new();
    let folder = bench.folder.path().join("bare");
    std::fs::create_dir_all(folder.join("2026/11/15")).unwrap();
    let text = conversation(ID, "bare").join("\n") + "\n";
    std::fs::write(folder.join("2026/11/15").join(rollout(ID)), text).unwrap();
    for variable in ["CODEX_SESSIONS_PATH", "CODEX_SESSIONS_DIR"] {
        let archive = bench.folder.path().join(variable);
        let mut command = bench.command(&["sync", "--json"]);
        command.env(variable, &folder).env("ANNALS_HOME", &archive);
        let output = command.output().unwrap();
        assert!(output.status.success());
    }
    let sessions = bench.sessions();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["title"], "bare");
}

#[test]
fn strange_folders_are_a_status_with_a_hint() {
    let bench = Bench::new();
    let (empty, file) = (bench.folder.path().join("empty"), bench.folder.path().join("file"));
    std::fs::create_dir(&empty).unwrap();
    std::fs::write(&file, "not a folder").unwrap();
    let foreign = bench.folder.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("photo.jpg"), "x").unwrap();
    for (path, status) in [
        (&empty, "empty"),
        (&foreign, "empty"),
        (&file, "error"),
        (&bench.folder.path().join("missing"), "unavailable"),
    ] {
        for variable in ["CODEX_SESSIONS_PATH", "CODEX_HOME"] {
            let output = bench.command(&["sync", "--json"]).env(variable, path).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", path.display());
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let home = &report["sources"][0]["homes"][0];
            assert_eq!(home["source_status"], status, "{variable}={}", path.display());
            assert!(report["sources"][0]["setup_hint"].as_str().unwrap().contains("CODEX"));
        }
    }
}

#[test]
fn a_closed_pipe_is_fine() {
    let bench = Bench::new();
    let many: Vec<String> =
        (0..3_000).flat_map(|number| annals_testkit::codex::prompt(&format!("line {number}"))).collect();
    let lines = [vec![annals_testkit::codex::meta(ID)], many].concat();
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let mut child = bench
        .command(&["records", "codex_cli/messages"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_second_collector_is_refused_and_readers_do_not_wait() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "locked"));
    bench.sync();
    let lock =
        std::fs::File::options().read(true).write(true).open(bench.archive().join("annals.lock")).unwrap();
    lock.lock().unwrap();
    let ran = bench.run(&["sync"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("being written by `annals sync` (process "), "{}", ran.stderr);
    assert_eq!(bench.sessions().len(), 1);
}

#[test]
fn the_archive_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "private"));
    bench.sync();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bench.archive()), 0o700);
    assert_eq!(mode(&bench.archive().join("annals.db")), 0o600);
}

#[test]
fn the_manifest_declares_what_is_read_and_what_never_is() {
    let bench = Bench::new();
    let manifest = bench.json(&["manifest", "codex_cli"]);
    let rules = manifest["footprint"]["rules"].as_array().unwrap();
    for pattern in ["**/auth.json", "logs_*.sqlite*", "shell_snapshots"] {
        let rule = rules.iter().find(|rule| rule["pattern"] == pattern).unwrap();
        assert_eq!(rule["treatment"], "never");
        assert!(!rule["why"].as_str().unwrap().is_empty());
    }
    for stream in manifest["streams"].as_array().unwrap() {
        assert_eq!(stream["schema"]["type"], "object", "{}", stream["name"]);
        assert!(stream["family"].is_string() && stream["semantics"].is_string());
    }
}
