//! Live collection through a real browser, against a stand-in for the provider's page.

mod gaps;
mod hostile;
mod wild;

use serde_json::{Value, json};

use annals_testkit::Ran;
use annals_testkit::files::files_below;
use annals_testkit::standin::{Stage, Standin, command_lines, id_of};

#[test]
fn nothing_is_requested_before_connect() {
    let stage = Stage::new();
    let ran = stage.run(&["sync", "chatgpt", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["live"], json!([]));
    assert_eq!(stage.standin.counts()["by_path"], json!({}));
    // Errors that are reported before anything opens.
    let ran = stage.run(&["connect", "codex_cli"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (2, "error: cannot connect Codex CLI: it is read from files\nhint: annals connect chatgpt\n")
    );
    let ran = Ran::of(
        stage.command(&["connect", "chatgpt"]).env("ANNALS_BROWSER", "/nowhere/browser").output().unwrap(),
    );
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("hint: install Chromium or Chrome, or set ANNALS_BROWSER"), "{}", ran.stderr);
    // Nobody logs in: the user is told, and nothing is connected.
    stage.standin.control(json!({"login": "manual"}));
    let ran = stage.run(&["connect", "chatgpt", "--wait", "0", "--json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["interaction"]["kind"], "manual_action");
    assert!(answer["interaction"]["link"].as_str().unwrap().starts_with(&stage.url));
    assert_eq!(stage.sync_with(&[]).1, Value::Null);
}

#[test]
fn everything_of_the_account_is_collected_once_and_then_what_is_new() {
    let stage = Stage::connected(json!({"conversations": 120, "drop": [3, 70], "truncate": [5, 90]}));
    let first = stage.sync();
    assert_eq!((&first["fetched"], &first["gaps_open"]), (&json!(124), &json!(0)), "{first}");
    let expected: Vec<String> = (0..124).map(id_of).collect();
    assert_eq!(stage.conversation_ids(), expected);
    // What the batch dropped or truncated was requested individually, and nothing else was.
    let details = stage.standin.counts()["details"].as_object().unwrap().clone();
    let mut singly: Vec<&String> = details.keys().collect();
    singly.sort();
    assert_eq!(singly, [&id_of(3), &id_of(5), &id_of(70), &id_of(90)]);
    let sessions = stage.bench.sessions();
    let session =
        |number: usize| sessions.iter().find(|session| session["session_id"] == id_of(number)).unwrap();
    assert_eq!(session(90)["native"]["node_count"], 3);
    assert_eq!((&session(120)["archived"], &session(121)["archived"]), (&json!(true), &json!(true)));
    assert_eq!(session(122)["native"]["project_id"], "g-p-aurora");
    for (stream, keys) in [
        ("memories", vec!["mem-1", "mem-2"]),
        ("custom_gpts", vec!["g-keeper"]),
        ("custom_instructions", vec!["custom_instructions"]),
        ("projects", vec!["g-p-aurora"]),
        ("shared_conversations", vec!["share-1"]),
        ("account", vec!["user-ada"]),
        ("models", vec!["gpt-5"]),
        ("settings", vec!["beta_features", "data_controls", "settings"]),
    ] {
        let mut found: Vec<String> =
            stage.records(stream).iter().map(|record| record["key"].as_str().unwrap().to_owned()).collect();
        found.sort();
        assert_eq!(found, keys, "{stream}");
    }
    let keeper = &stage.records("custom_gpts")[0]["data"];
    assert_eq!((&keeper["instructions"], &keeper["name"]), (&json!("You keep the light."), &json!("Keeper")));
    assert_eq!(
        (&keeper["author"], &keeper["tools"][0]["type"]),
        (&json!("Ada"), &json!("browser")),
        "{keeper}"
    );
    assert_eq!(stage.records("projects")[0]["data"]["files"][0]["name"], "chart.pdf");
    let instructions = &stage.records("custom_instructions")[0]["data"];
    assert_eq!((&instructions["about_user"], &instructions["enabled"]), (&json!("I sail."), &json!(true)));
    let data = |stream: &str| stage.records(stream)[0]["data"].clone();
    assert_eq!(
        (&keeper["access"], &keeper["created_at"]),
        (&json!("shared_link"), &data("memories")["created_at"])
    );
    assert_eq!(data("memories")["created_at"], "2026-02-02T02:40:00.000Z");
    let model = data("models");
    assert_eq!(
        [&model["name"], &model["type"], &model["available_to_tier"], &model["context_window"]],
        [&json!("GPT-5"), &json!("auto"), &json!("plus"), &json!(196_608)]
    );
    let account = data("account");
    assert_eq!(
        [&account["email"], &account["plan"], &account["workspaces"][0]["id"]],
        ["ada@example.com", "plus", "account-1"]
    );
    let controls = stage.records("settings");
    let controls = &controls.iter().find(|record| record["key"] == "data_controls").unwrap()["data"];
    assert_eq!((&controls["training_allowed"], &controls["retention"]), (&json!(false), &json!(30)));
    let share = data("shared_conversations");
    let messages = stage.records("messages");
    let shared = messages.iter().find(|record| record["data"]["node_id"] == share["highlighted_message_id"]);
    assert_eq!(shared.unwrap()["data"]["conversation_id"], share["conversation_id"]);
    // What was fetched is no longer partial.
    for line in stage.audit()["surface"].as_array().unwrap() {
        let is_live = [
            "memories",
            "custom GPTs",
            "projects",
            "available models",
            "data controls",
            "custom instructions",
        ]
        .contains(&line["item"].as_str().unwrap());
        assert!(!is_live || line["state"] == "collected" && line["reason"] == "", "{line}");
    }
    // Records match their declaration.
    for stream in stage.audit()["streams"].as_array().unwrap() {
        let odd = [&stream["undeclared"], &stream["other_type"]];
        assert!(odd.iter().all(|odd| **odd == json!([])), "{stream}");
    }
    let files = stage.records("files");
    let names: Vec<&Value> = files.iter().map(|file| &file["key"]).collect();
    // One of them belongs to a custom GPT.
    assert_eq!(files.len(), 32, "{names:?}");
    // Nothing changed: the first page of each list, nothing fetched, and nothing that is requested once a day.
    stage.standin.control(json!({"forget_counts": true}));
    let second = stage.sync();
    assert_eq!((&second["fetched"], &second["captured_bytes"]), (&json!(0), &json!(0)), "{second}");
    assert_eq!((stage.standin.count("GET conversations"), stage.standin.count("GET models")), (2, 0));
    // Two that changed at the same time, and one that is archived.
    stage
        .standin
        .control(json!({"changed": {"7": 1, "121": 2}, "forget_counts": true, "drop": [], "truncate": []}));
    let third = stage.sync();
    assert_eq!(third["fetched"], 2, "{third}");
    let served = stage.standin.counts()["served"].clone();
    assert_eq!(served, json!({id_of(7): 1, id_of(121): 1}));
    assert_eq!(stage.bench.run(&["rebuild"]).code, 0);
    assert_eq!(stage.conversation_ids(), expected);
    assert!(stage.browsers().is_empty(), "a browser is left behind");
    // And it can be disconnected.
    assert_eq!(stage.run(&["connect", "chatgpt", "--remove"]).code, 0);
    assert!(!stage.bench.archive().join("browser/chatgpt").exists());
    stage.standin.control(json!({"forget_counts": true}));
    stage.run(&["sync", "chatgpt"]);
    assert_eq!(stage.standin.counts()["by_path"], json!({}));
}

#[test]
fn projects_are_found_in_the_older_list() {
    let stage = Stage::connected(json!({"conversations": 2, "archived": 0, "project_list": "older"}));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(4), &json!(0)), "{live}");
    assert_eq!(stage.records("projects")[0]["key"], "g-p-aurora");
    assert_eq!(stage.records("projects")[0]["data"]["name"], "Aurora");
}

/// A cursor may be a number. One of an unknown kind is no end: what it hides is a gap, and nothing that lives ends.
#[test]
fn unknown_cursors_end_no_list() {
    let world =
        json!({"conversations": 1, "archived": 0, "projects": {"g-p-aurora": 5}, "cursors": "number"});
    let stage = Stage::connected(world);
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(6), &json!(0)), "{live}");
    stage.standin.control(json!({"cursors": "object", "projects": {"g-p-aurora": 7}}));
    stage.sync();
    let gaps = stage.gaps();
    assert_eq!((gaps.len(), &gaps[0]["why"]), (1, &json!("shape_changed")), "{gaps:?}");
    assert_eq!(stage.conversation_ids().len(), 6);
    assert!(stage.records("projects")[0]["deleted_at"].is_null());
    stage.standin.control(json!({"cursors": "text"}));
    stage.sync();
    assert_eq!((stage.gaps().len(), stage.conversation_ids().len()), (0, 8));
}

#[test]
fn lists_of_messages_are_read_page_by_page_and_merge_with_the_tree() {
    let stage = Stage::connected(json!({"conversations": 6, "regenerated": [2]}));
    assert_eq!(stage.sync()["fetched"], 10);
    let before = stage.bench.json(&["show", &id_of(2), "--branch", "all"]);
    // The account is migrated: trees are gone, and there is one branch, in pages.
    stage.standin.control(json!({"shape": "pages", "changed": {"2": 1, "4": 60}, "forget_counts": true}));
    let moved = stage.sync();
    assert_eq!((&moved["fetched"], &moved["gaps_open"]), (&json!(2), &json!(0)), "{moved}");
    let sessions = stage.bench.sessions();
    let session =
        |number: usize| sessions.iter().find(|session| session["session_id"] == id_of(number)).unwrap();
    assert_eq!(session(4)["message_count"], 122);
    assert_eq!(session(4)["native"]["branch_count"], 1);
    // The branch that the list does not contain is still there.
    assert_eq!(session(2)["native"]["branch_count"], 2);
    assert_eq!(session(2)["message_count"], 4);
    let after = stage.bench.json(&["show", &id_of(2), "--branch", "all"]);
    let count = |shown: &Value| shown["messages"].as_array().unwrap().len();
    assert_eq!(count(&after), count(&before) + 2);
}

#[test]
fn a_regenerated_answer_moves_the_branch_and_a_deleted_memory_ends() {
    let stage = Stage::connected(json!({"conversations": 3, "archived": 0, "projects": {}}));
    stage.sync();
    let flags = || {
        let mut flags: Vec<(String, bool)> = stage
            .records("messages")
            .iter()
            .filter(|record| record["session_id"] == id_of(1))
            .filter_map(|record| {
                let node = record["data"]["node_id"].as_str()?.to_owned();
                Some((node, record["data"]["on_current_branch"] == true))
            })
            .collect();
        flags.sort();
        flags
    };
    let flag = |name: &str, on: bool| (name.to_owned(), on);
    assert_eq!(flags(), [flag("1-a", true), flag("1-q", true), flag("root", true)]);
    stage.standin.control(json!({"regenerated": [1], "changed": {"1": 1}}));
    assert_eq!(stage.sync()["fetched"], 1);
    assert_eq!(
        flags(),
        [
            flag("1-a", false),
            flag("1-q", true),
            flag("1-r0", true),
            flag("1-s0", true),
            flag("1-z", true),
            flag("root", true)
        ]
    );
    let ended = || -> Vec<(String, bool)> {
        let records = stage.records("memories").into_iter();
        let ended = records
            .map(|record| (record["key"].as_str().unwrap().to_owned(), !record["deleted_at"].is_null()));
        ended.collect()
    };
    // A listing that fails, is truncated or looks strange ends nothing.
    for fails in [json!(500), json!("partial"), json!("drift")] {
        stage.standin.control(
            json!({"memories_fail": fails, "memories": [{"id": "mem-1", "content": "Prefers tea."}]}),
        );
        let (code, live) = stage.sync_with(&[]);
        assert_eq!(code, 0);
        assert!(live["problems"][0].as_str().unwrap().starts_with("memories:"), "{live}");
        assert_eq!(ended(), [("mem-1".to_owned(), false), ("mem-2".to_owned(), false)], "{fails}");
    }
    assert_eq!(stage.gaps().len(), 1);
    stage.standin.control(json!({"memories_fail": null}));
    stage.sync();
    assert_eq!(ended(), [("mem-1".to_owned(), false), ("mem-2".to_owned(), true)]);
    assert!(stage.gaps().is_empty());
    stage.standin.control(json!({"memories": [
        {"id": "mem-1", "content": "Prefers coffee."}, {"id": "mem-2", "content": "Has a dog called Rex."}]}));
    stage.sync();
    let history = stage.bench.json(&["library", "--history", "mem-1"]);
    assert!(history.to_string().contains("coffee") && history.to_string().contains("tea"));
    let back = stage.records("memories");
    let rex = back.iter().rfind(|record| record["key"] == "mem-2").unwrap();
    assert!(rex["deleted_at"].is_null(), "{back:?}");
}

#[test]
fn credentials_stay_in_the_browser() {
    let stage = Stage::connected(json!({"conversations": 40, "batch": false, "delay_ms": 20}));
    let secrets = stage.standin.counts()["secrets"].clone();
    let mut secrets: Vec<String> =
        ["session", "device"].iter().map(|name| secrets[*name].as_str().unwrap().to_owned()).collect();
    let sync = stage.spawn(&["sync", "chatgpt", "--verbose", "--with-files"]);
    let mut lines = Vec::new();
    for _ in 0..20 {
        lines.extend(command_lines().into_iter().map(|(_, line)| line));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let ran = annals_testkit::standin::wait(sync);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let token = stage.standin.counts()["secrets"]["token"].as_str().unwrap().to_owned();
    // The parts of a token are as secret as the whole.
    secrets.extend(token.split('.').skip(1).map(str::to_owned));
    let output = ran.stdout + &ran.stderr + &lines.join("\n");
    for secret in &secrets {
        assert!(!output.contains(secret.as_str()), "told: {secret}");
    }
    let mut searched = 0;
    for path in files_below(&stage.bench.archive()) {
        // The browser's own profile is where the session is stored.
        if path.starts_with(stage.bench.archive().join("browser")) {
            continue;
        }
        searched += 1;
        let bytes = std::fs::read(&path).unwrap();
        for secret in &secrets {
            assert!(
                memchr::memmem::find(&bytes, secret.as_bytes()).is_none(),
                "{}: {secret}",
                path.display()
            );
        }
    }
    assert!(searched > 0);
    // Compressed bytes are searched decompressed.
    let restored = stage.bench.folder.path().join("restored");
    let ran = stage.bench.run(&["restore", "--source", "chatgpt", "--to", restored.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let files = files_below(&restored);
    assert!(files.len() > 50, "{}", files.len());
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(secrets.iter().all(|secret| !text.contains(secret.as_str())), "{}", path.display());
    }
    let kept =
        files.iter().any(|path| std::fs::read(path).unwrap() == b"bytes of file-000000000000000000000013");
    assert!(kept, "the bytes of files were asked for");
    // All requests came from the page; others are refused.
    assert_eq!(stage.standin.count("outside"), 0);
    assert_eq!(stage.standin.request("GET", "/backend-api/me", "").0, 403);
    assert_eq!(stage.standin.count("outside"), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let profile = std::fs::metadata(stage.bench.archive().join("browser/chatgpt")).unwrap();
        assert_eq!(profile.permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn the_real_address_leads_to_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path("certificate.pem"), path("key.pem"));
    let sh = |command: &str| {
        let output = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    sh(&format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=chatgpt.com \
         -addext subjectAltName=DNS:chatgpt.com -keyout {key} -out {certificate}"
    ));
    let print = sh(&format!(
        "openssl x509 -in {certificate} -pubkey -noout | openssl pkey -pubin -outform der \
         | openssl dgst -sha256 -binary | openssl base64"
    ));
    let mut stage = Stage::new();
    stage.standin = Standin::start(&["--certificate", &certificate, "--key", &key]);
    let port = stage.standin.secure_port.unwrap();
    stage.url = "https://chatgpt.com".to_owned();
    stage.arguments += &format!(
        "\n--host-resolver-rules=MAP chatgpt.com 127.0.0.1:{port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1\
         \n--ignore-certificate-errors-spki-list={print}"
    );
    let ran = stage.run(&["connect", "chatgpt", "--wait", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(16), &json!(0)), "{live}");
    assert_eq!(stage.standin.count("outside"), 0);
}
