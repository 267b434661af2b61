//! The shape of responses: every promised field with its type, the same for every source.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::claude;
use annals_sources::{of_programs, registry};
use annals_testkit::Bench;
use annals_testkit::codex::{ID, meta, rollout};
use annals_testkit::files::copy_folder;
use annals_testkit::server::Server;

/// Promised fields; `?` may be null, `[]` is a list, `{}` an object.
const CARD: &str = "source:string provider_label:string source_status:string reason:string setup_hint:string
    source_path:string? session_count:number message_count:number last_activity_at:time? last_scanned_at:time?
    files:number bytes:number gaps_open:number";
const LIST: &str =
    "source:string source_status:string setup_hint:string source_path:string? last_scanned_at:time?
    sessions:[] next_cursor:string? total:number";
const SESSION: &str = "session_id:string source:string provider_label:string project_dir:string? cwd:string?
    title:string? models:[] tokens:{} cost_usd:number? billing_source:string message_count:number
    started_at:time? first_message_at:time? last_message_at:time? is_active:boolean entrypoints:[] git_branch:string?
    parent_session_id:string? tool_call_count:number archived:boolean source_gone:boolean client_version:string?";
const TOKENS: &str =
    "input:number output:number cache_read:number cache_write:number reasoning:number total:number";
const MESSAGE: &str =
    "id:string seq:number role:string at:time? model:string? parent_id:string? blocks:[] usage:{}?";
const CALL: &str = "type:string call_id:string name:string input:any files:[]";
const RESULT: &str =
    "type:string call_id:string ok:boolean exit_code:number? output:string truncated:boolean";
const ANALYTICS: &str = "source:string source_status:string setup_hint:string date_range_days:number?
    session_count:number tool_counts:{} top_files_read:[] top_files_written:[] top_commands:[]";

#[track_caller]
fn assert_shape(value: &Value, shape: &str) {
    for field in shape.split_whitespace() {
        let (name, kind) = field.split_once(':').unwrap();
        let (kind, may_be_null) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
        let found = value.get(name).unwrap_or_else(|| panic!("no {name} in {value}"));
        let fits = match kind {
            "string" => found.is_string(),
            "number" => found.is_number(),
            "boolean" => found.is_boolean(),
            "[]" => found.is_array(),
            "{}" => found.is_object(),
            // An object, or the text that the tool was given.
            "any" => !found.is_null(),
            "time" => found
                .as_str()
                .is_some_and(|text| text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()),
            other => panic!("no kind {other}"),
        };
        assert!(fits || may_be_null && found.is_null(), "{name} is no {kind} in {value}");
    }
}

/// Names of fields at every depth, without client-specific ones.
fn keys(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    gather(value, "", &mut found);
    found
}

fn gather(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(format!("{path}/{name}"));
                if !["native", "input", "tool_counts"].contains(&name.as_str()) {
                    gather(value, &format!("{path}/{name}"), found);
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                let kind = value["type"].as_str().unwrap_or_default();
                gather(value, &format!("{path}/{kind}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn now() -> String {
    format!("{:.3}", annals_testkit::clock::now())
}

/// A current Codex session: a prompt, a command with a long result, a patch, an answer, and their usage.
fn codex_lines() -> Vec<String> {
    let line = |kind: &str, payload: Value| {
        json!({"timestamp": now(), "type": kind, "payload": payload}).to_string()
    };
    let item = |payload: Value| line("response_item", payload);
    let message = |role: &str, kind: &str, text: &str| {
        item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
    };
    let arguments = json!({"command": ["bash", "-lc", "cat gears.txt"]}).to_string();
    let output = json!({"output": long(), "metadata": {"exit_code": 0, "duration_seconds": 0.2}}).to_string();
    let patch = "*** Begin Patch\n*** Add File: notes.txt\n+oiled\n*** End Patch";
    let done = json!({"output": "Done!", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}).to_string();
    let used = json!({"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 20,
        "reasoning_output_tokens": 5, "total_tokens": 120});
    vec![
        meta(ID).replace("2026-11-15T10:00:00.000Z", &now()),
        line("turn_context", json!({"cwd": "/home/ada/engine", "model": "gpt-5-codex"})),
        message("user", "input_text", "Oil the gears."),
        line("event_msg", json!({"type": "user_message", "message": "Oil the gears."})),
        item(json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": "call_1"})),
        item(json!({"type": "function_call_output", "call_id": "call_1", "output": output})),
        item(
            json!({"type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": "apply_patch",
            "input": patch}),
        ),
        item(json!({"type": "custom_tool_call_output", "call_id": "call_2", "output": done})),
        line("event_msg", json!({"type": "agent_message", "message": "All gears are oiled."})),
        message("assistant", "output_text", "All gears are oiled."),
        line(
            "event_msg",
            json!({"type": "token_count",
            "info": {"total_token_usage": used, "last_token_usage": used}}),
        ),
    ]
}

/// A Claude Code session of the same kind.
fn claude_lines() -> Vec<String> {
    let timed = |line: String| {
        let mut line: Value = serde_json::from_str(&line).unwrap();
        line["timestamp"] = now().into();
        line.to_string()
    };
    let file = json!({"type": "tool_use", "id": "toolu_2", "name": "Write",
        "input": {"file_path": "/home/ada/engine/notes.txt", "content": "oiled"}});
    let lines = [
        claude::prompt_row(claude::ONE, 1, "Oil the gears."),
        claude::answer_row(claude::ONE, 2, "msg_1", claude::call("toolu_1", "cat gears.txt"), 25),
        claude::result(claude::ONE, 3, "toolu_1", &long()),
        claude::answer_row(claude::ONE, 4, "msg_2", file, 12),
        claude::result(claude::ONE, 5, "toolu_2", "File created"),
        claude::answer_row(claude::ONE, 6, "msg_3", claude::text("All gears are oiled."), 7),
    ];
    lines.into_iter().map(timed).collect()
}

/// Longer than a preview.
fn long() -> String {
    "a gear with twelve teeth\n".repeat(1_000)
}

/// Both clients' transcript directories, without a home around them.
fn served() -> (Bench, Server) {
    let bench = Bench::new();
    let (codex, projects) = (bench.folder.path().join("transcripts"), bench.folder.path().join("projects"));
    bench.transcript(&rollout(ID), &codex_lines());
    copy_folder(&bench.codex().join("sessions"), &codex);
    claude::write(&bench, claude::FOLDER, claude::ONE, &annals_testkit::codex::text_of(&claude_lines()));
    copy_folder(&bench.claude().join("projects"), &projects);
    for home in [bench.codex(), bench.claude()] {
        std::fs::remove_dir_all(home).unwrap();
    }
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.env("CODEX_SESSIONS_PATH", &codex).env("CLAUDE_CODE_PROJECTS_DIR", &projects);
    (bench, Server::of(command))
}

/// Source, label, route, id and model of its session.
const FAMILIES: [[&str; 5]; 2] = [
    ["codex_cli", "Codex CLI", "/api/v1/codex", ID, "gpt-5-codex"],
    ["claude_code", "Claude Code", "/api/v1/claude-code", claude::ONE, "claude-sonnet-4-5"],
];

#[test]
fn sessions_of_both_clients_have_all_promised_fields_and_the_same_shape() {
    let (_bench, server) = served();
    let mut shapes = Vec::new();
    for [source, label, own, id, model] in FAMILIES {
        let list = server.json(&format!("{own}/sessions"));
        assert_shape(&list, LIST);
        assert_eq!((&list["source"], &list["source_status"]), (&source.into(), &"available".into()));
        assert_eq!((&list["total"], &list["next_cursor"]), (&1.into(), &Value::Null));
        assert!(
            list["source_path"]
                .as_str()
                .is_some_and(|path| path.contains("transcripts") || path.contains("projects"))
        );
        let session = &list["sessions"][0];
        assert_shape(session, SESSION);
        assert_shape(&session["tokens"], TOKENS);
        assert_eq!((&session["session_id"], &session["source"]), (&id.into(), &source.into()));
        assert_eq!((&session["provider_label"], &session["models"]), (&label.into(), &json!([model])));
        assert_eq!(
            (&session["title"], &session["cwd"]),
            (&"Oil the gears.".into(), &"/home/ada/engine".into())
        );
        assert!(session["message_count"].as_i64() >= Some(2) && session["tool_call_count"] == 2, "{session}");
        assert!(session["cost_usd"].as_f64().unwrap() > 0.0 && session["is_active"] == true, "{session}");
        assert!(session["tokens"]["total"].as_i64().unwrap() > 0, "{session}");
        // A single session also has the client-specific facts.
        let detail = |address: &str| {
            let mut detail = server.json(&format!("{address}/sessions/{id}"));
            assert!(
                detail.as_object_mut().unwrap().remove("native").is_some_and(|native| native.is_object())
            );
            detail
        };
        assert_eq!(detail(own), *session);
        let shared = format!("/api/v1/agent-sessions/{source}");
        assert_eq!(server.json(&format!("{shared}/sessions")), list);
        assert_eq!(detail(&shared), *session);
        shapes.push(keys(&list));
    }
    assert_eq!(shapes[0], shapes[1]);
}

#[test]
fn messages_of_both_clients_have_turns_calls_and_results_in_the_same_shape() {
    let (_bench, server) = served();
    let mut shapes = Vec::new();
    for [source, _, own, id, model] in FAMILIES {
        let path = format!("{own}/sessions/{id}/messages");
        let answer = server.json(&path);
        assert_eq!((&answer["source"], &answer["session_id"]), (&source.into(), &id.into()));
        assert_eq!(answer["next_cursor"], Value::Null);
        let messages = answer["messages"].as_array().unwrap();
        messages.iter().for_each(|message| assert_shape(message, MESSAGE));
        let seqs: Vec<&Value> = messages.iter().map(|message| &message["seq"]).collect();
        assert_eq!(seqs, (0..messages.len()).collect::<Vec<_>>());
        let roles: BTreeSet<&str> =
            messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, BTreeSet::from(["assistant", "user"]));
        assert_eq!(messages[0]["blocks"][0]["text"], "Oil the gears.");
        let last = messages.last().unwrap();
        assert_eq!((&last["role"], &last["model"]), (&"assistant".into(), &model.into()));
        assert_eq!(last["blocks"][0]["text"], "All gears are oiled.");
        let usages: Vec<&Value> =
            messages.iter().map(|message| &message["usage"]).filter(|usage| !usage.is_null()).collect();
        usages.iter().for_each(|usage| assert_shape(usage, TOKENS));
        let total: i64 = usages.iter().map(|usage| usage["total"].as_i64().unwrap()).sum();
        assert_eq!(server.json(&format!("{own}/sessions/{id}"))["tokens"]["total"], total);

        let blocks = || messages.iter().flat_map(|message| message["blocks"].as_array().unwrap());
        let of_type = |kind: &str| blocks().filter(|block| block["type"] == kind).collect::<Vec<_>>();
        let (calls, results) = (of_type("tool_call"), of_type("tool_result"));
        calls.iter().for_each(|call| assert_shape(call, CALL));
        results.iter().for_each(|result| assert_shape(result, RESULT));
        let ids = |blocks: &[&Value]| blocks.iter().map(|block| block["call_id"].clone()).collect::<Vec<_>>();
        assert_eq!((calls.len(), ids(&calls)), (2, ids(&results)), "{answer:#}");
        assert!(calls[0]["input"].to_string().contains("cat gears.txt"), "{}", calls[0]);
        let [file] = calls[1]["files"].as_array().unwrap().as_slice() else { panic!("{}", calls[1]) };
        assert_eq!(file["path"], "/home/ada/engine/notes.txt");
        assert_eq!((&results[0]["ok"], &results[0]["truncated"]), (&true.into(), &true.into()));
        let (output, whole) =
            (results[0]["output"].as_str().unwrap(), results[0]["full_bytes"].as_u64().unwrap());
        assert!(output.len() < 6_000 && whole >= long().len() as u64, "{whole}");
        assert_eq!(results[1]["truncated"], false);

        let full = server.json(&format!("{path}?full=true"));
        let full: Vec<&Value> = full["messages"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|step| step["blocks"].as_array().unwrap())
            .collect();
        let result = full
            .iter()
            .find(|block| block["call_id"] == results[0]["call_id"] && block["type"] == "tool_result");
        assert_eq!(result.unwrap()["truncated"], false);
        assert!(result.unwrap()["output"].as_str().unwrap().matches("twelve teeth").count() == 1_000);
        assert_eq!(server.json(&format!("/api/v1/agent-sessions/{source}/sessions/{id}/messages")), answer);
        shapes.push(keys(&answer));
    }
    // Only one of the clients reports where in a file it wrote.
    for shape in &mut shapes {
        shape.retain(|key| !key.ends_with("/before") && !key.ends_with("/after"));
    }
    assert_eq!(shapes[0], shapes[1]);
}

#[test]
fn tool_analytics_of_both_clients_have_the_same_shape() {
    let (_bench, server) = served();
    let mut shapes = Vec::new();
    for [source, _, own, _, _] in FAMILIES {
        let answer = server.json(&format!("{own}/analytics/tools?days=30"));
        assert_shape(&answer, ANALYTICS);
        assert_eq!((&answer["source"], &answer["date_range_days"]), (&source.into(), &30.into()));
        assert_eq!(answer["session_count"], 1);
        let counts = answer["tool_counts"].as_object().unwrap();
        assert_eq!(counts.values().filter_map(Value::as_i64).sum::<i64>(), 2, "{answer}");
        assert_eq!(answer["top_commands"], json!([{"command": "cat gears.txt", "count": 1}]));
        assert_eq!(answer["top_files_written"], json!([{"path": "/home/ada/engine/notes.txt", "count": 1}]));
        assert_eq!(server.json(&format!("/api/v1/agent-sessions/{source}/analytics/tools?days=30")), answer);
        assert_eq!(server.json(&format!("{own}/analytics/tools?days=all"))["date_range_days"], Value::Null);
        for days in [7, 90] {
            assert_eq!(server.json(&format!("{own}/analytics/tools?days={days}"))["date_range_days"], days);
        }
        shapes.push(keys(&answer));
    }
    for shape in &mut shapes {
        shape.retain(|key| !key.starts_with("/top_files_read/"));
    }
    assert_eq!(shapes[0], shapes[1]);
}

#[test]
fn a_client_without_history_is_an_answer_with_a_hint() {
    let bench = Bench::new();
    let nothing = bench.folder.path().join("nothing");
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.env("CODEX_SESSIONS_PATH", &nothing);
    let server = Server::of(command);
    for [source, _, own, id, _] in FAMILIES {
        for address in [own.to_owned(), format!("/api/v1/agent-sessions/{source}")] {
            let list = server.json(&format!("{address}/sessions"));
            assert_shape(&list, LIST);
            assert_eq!((&list["sessions"], &list["total"]), (&json!([]), &0.into()));
            let tools = server.json(&format!("{address}/analytics/tools?days=30"));
            assert_shape(&tools, ANALYTICS);
            for answer in [&list, &tools] {
                assert_eq!(answer["source_status"], "unavailable", "{answer}");
                assert!(!answer["setup_hint"].as_str().unwrap().is_empty(), "{answer}");
            }
            for path in [format!("{address}/sessions/{id}"), format!("{address}/sessions/{id}/messages")] {
                assert_eq!(server.get(&path).status, 404);
            }
        }
    }
}

#[test]
fn an_empty_folder_of_transcripts_is_no_error() {
    let bench = Bench::new();
    let empty = bench.folder.path().join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.env("CODEX_SESSIONS_PATH", &empty);
    let list = Server::of(command).json("/api/v1/codex/sessions");
    assert_shape(&list, LIST);
    assert!(["empty", "unavailable"].contains(&list["source_status"].as_str().unwrap()), "{list}");
    assert_eq!(list["total"], 0);
}

#[test]
fn every_source_has_a_card() {
    let (_bench, server) = served();
    let answer = server.json("/api/v1/agent-sessions/sources");
    let cards = answer["sources"].as_array().unwrap();
    let mut names = Vec::new();
    for card in cards {
        assert_shape(card, CARD);
        assert_eq!(keys(card), keys(&cards[0]));
        assert!(!card["setup_hint"].as_str().unwrap().is_empty(), "{card}");
        names.push(card["source"].as_str().unwrap());
        let status = card["source_status"].as_str().unwrap();
        match names[names.len() - 1] {
            "codex_cli" | "claude_code" => {
                assert_eq!((status, &card["session_count"]), ("available", &1.into()), "{card}");
                assert!(
                    card["message_count"].as_i64() >= Some(2) && card["bytes"].as_i64().unwrap() > 0,
                    "{card}"
                );
                assert!(
                    card["last_activity_at"].is_string() && card["last_scanned_at"].is_string(),
                    "{card}"
                );
            }
            _ => assert_eq!((status, &card["session_count"]), ("unavailable", &0.into()), "{card}"),
        }
    }
    names.sort_unstable();
    let sources = registry().iter().map(|source| source.manifest().source);
    let mut sources: Vec<&str> = sources.filter(|name| *name != of_programs().manifest().source).collect();
    sources.sort_unstable();
    assert_eq!(names, sources);
}
