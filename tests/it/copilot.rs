//! Copilot CLI: sessions counted independently, and sub-agents within their session's file.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::assistants::{Counted, lines_of};
use annals_testkit::files::files_below;
use annals_testkit::{Bench, fixtures};

/// By the events of each file; the sums of processes where responses have no records.
pub fn count(home: &Path) -> Counted {
    let mut counted = Counted::default();
    let files = files_below(home).into_iter().filter(|path| path.ends_with("events.jsonl"));
    for path in files {
        let lines = lines_of(&path);
        let of_kind = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
        let mut speakers = BTreeSet::new();
        for answer in of_kind("assistant.message") {
            counted.answers += 1;
            speakers.insert(answer["agentId"].to_string());
        }
        counted.sessions += speakers.len();
        let requested =
            of_kind("assistant.message").flat_map(|line| line["data"]["toolRequests"].as_array().unwrap());
        let started = of_kind("tool.execution_start").map(|line| &line["data"]);
        let calls: BTreeSet<String> =
            requested.chain(started).map(|call| call["toolCallId"].to_string()).collect();
        counted.calls += calls.len() as i64;
        let mut usage: Vec<&Value> =
            of_kind("session.usage_record").map(|line| &line["data"]["usage"]).collect();
        if usage.is_empty() {
            let metrics = of_kind("session.shutdown")
                .flat_map(|line| line["data"]["modelMetrics"].as_object().unwrap());
            usage.extend(metrics.map(|(_, model)| &model["usage"]));
        }
        usage
            .extend(of_kind("session.compaction_complete").map(|line| &line["data"]["compactionTokensUsed"]));
        for tokens in usage {
            counted.prompt_tokens += tokens["inputTokens"].as_i64().unwrap_or(0);
            counted.output_tokens += tokens["outputTokens"].as_i64().unwrap_or(0);
        }
    }
    counted
}

fn session(bench: &Bench, id: &str) -> Value {
    bench.sessions().into_iter().find(|session| session["session_id"] == id).unwrap()
}

#[test]
fn a_sub_agent_is_a_session_of_its_own() {
    let bench = fixtures::synced("copilot_cli", &fixtures::case("copilot_cli", "lines"));
    let agents = [
        ("a6e00000-0000-4000-8000-000000000007", "5e550000-0000-4000-8000-00000000c001", "Seven gears."),
        (
            "call_1-5e550000-0000-4000-8000-00000000c002",
            "5e550000-0000-4000-8000-00000000c002",
            "It is loud.",
        ),
    ];
    for (agent, parent, answer) in agents {
        let found = session(&bench, agent);
        assert_eq!((&found["parent_session_id"], &found["cwd"]), (&parent.into(), &"/home/ada/gauge".into()));
        assert!(bench.json(&["show", agent]).to_string().contains(answer));
        assert!(
            bench.json(&["show", parent]).to_string().contains(&format!("\"agent_session_id\":\"{agent}\""))
        );
    }
}

#[test]
fn sessions_have_what_the_client_knows_of_them() {
    let bench = fixtures::synced("copilot_cli", &fixtures::case("copilot_cli", "lines"));
    let found = session(&bench, "5e550000-0000-4000-8000-00000000c001");
    assert_eq!((&found["title"], &found["git_branch"]), (&"Dial oil".into(), &"main".into()));
    let shown = bench.json(&["show", "5e550000-0000-4000-8000-00000000c001"]).to_string();
    for text in
        ["A note is enough.", "The request was refused.", "user_abort", "The dial is oiled twice a year."]
    {
        assert!(shown.contains(text), "{text}");
    }
    let calls = bench.run(&["records", "copilot_cli/tool_calls"]).stdout;
    let failed: Vec<Value> = calls
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|call| call["data"]["ok"] == false)
        .collect();
    assert_eq!(failed.len(), 2, "a command and an edit: {failed:?}");
    assert!(failed.iter().any(|call| call["data"]["exit_code"] == 3), "{failed:?}");
}

#[test]
fn assistants_that_no_source_reads_are_named() {
    let bench = Bench::new();
    let ran = bench.run(&["sources", "--discover"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    let chats = bench.user().join(".cursor/chats");
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::write(chats.join("store.db"), "0123456789").unwrap();
    std::fs::create_dir_all(bench.user().join(".copilot/session-state")).unwrap();
    std::os::unix::fs::symlink("/usr", bench.user().join(".factory")).unwrap();
    let found = bench.json(&["sources", "--discover"]);
    let found = found["assistants"].as_array().unwrap();
    assert_eq!(found.len(), 1, "neither sources nor links: {found:?}");
    assert_eq!(
        (&found[0]["label"], &found[0]["files"], &found[0]["bytes"]),
        (&"Cursor".into(), &1.into(), &10.into())
    );
    let shown = bench.run(&["sources", "--discover"]).stdout;
    assert!(shown.starts_with("Cursor") && shown.contains("10 B in 1 file"), "{shown}");
}
