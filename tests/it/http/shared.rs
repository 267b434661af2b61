//! A transcript that two members have: each sees all of it, and those who see both count it once.

use serde_json::Value;

use crate::claude;
use annals_testkit::Bench;
use annals_testkit::codex::text_of;
use annals_testkit::server::Server;

/// Members of one organisation with the same transcript, synced in this order, and their tokens.
fn company(names: [&str; 2]) -> (Bench, Vec<(String, String)>) {
    let bench = Bench::new();
    let mut tokens = Vec::new();
    let mut add = |name: &str, role: &str| {
        let added = bench.json(&["members", "add", name, "--role", role, "--organisation", "engines"]);
        tokens.push((name.to_owned(), added["token"].as_str().unwrap().to_owned()));
    };
    add("luigi", "admin");
    for name in names {
        add(name, "member");
        sync_for(&bench, name);
    }
    (bench, tokens)
}

fn sync_for(bench: &Bench, name: &str) {
    let home = bench.folder.path().join(format!("{name}-claude"));
    let file = home.join(format!("projects/-home-ada/{}.jsonl", claude::ONE));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text_of(&claude::talk(claude::ONE))).unwrap();
    let mut command = bench.command(&["sync", "--member", name]);
    command.env("CLAUDE_CONFIG_DIR", &home);
    let ran = annals_testkit::Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// What somebody sees of the transcript, without what differs between homes.
fn seen(server: &Server, token: &str) -> Vec<Value> {
    let sessions = server.json_as(token, "/api/v1/claude-code/sessions");
    let sessions = sessions["sessions"].as_array().unwrap().clone();
    let id = claude::ONE;
    let messages = server.json_as(token, &format!("/api/v1/claude-code/sessions/{id}/messages"));
    let ids = messages["messages"].as_array().unwrap().iter().map(|message| message["id"].clone());
    let names =
        ["message_count", "user_message_count", "assistant_message_count", "tool_call_count", "tokens"];
    let totals = sessions.iter().flat_map(|session| names.map(|name| session[name].clone()));
    let usage = server.json_as(token, "/api/v1/usage?days=all&by=day");
    let responses = server.json_as(token, "/api/v1/usage/responses?days=all");
    let responses = responses["responses"].as_array().unwrap().iter();
    let counted = responses.filter(|response| response["copied"] == false).count();
    let tools = server.json_as(token, "/api/v1/claude-code/analytics/tools?days=all");
    let found = server.json_as(token, "/api/v1/search?q=oiled");
    let mut seen: Vec<Value> = totals.chain(ids).collect();
    seen.extend([usage["total"].clone(), counted.into(), tools["tool_call_count"].clone()]);
    seen.extend([found["total"].clone(), found["results"][0]["passages"].as_array().unwrap().len().into()]);
    seen
}

#[test]
fn one_member_takes_nothing_away_from_another() {
    let single = Bench::new();
    let token = single.json(&["members", "add", "ada"])["token"].as_str().unwrap().to_owned();
    sync_for(&single, "ada");
    let expected = seen(&Server::without_refresh(&single), &token);
    assert!(expected[0].as_i64() > Some(0), "{expected:?}");
    for names in [["ada", "mary"], ["mary", "ada"]] {
        let (bench, tokens) = company(names);
        for round in 0..2 {
            let server = Server::without_refresh(&bench);
            for (name, token) in &tokens[1..] {
                assert_eq!(seen(&server, token), expected, "{name} of {names:?}, round {round}");
            }
            drop(server);
            assert_eq!(bench.run(&["rebuild"]).code, 0);
        }
    }
}

/// A number, or the sum of an object of numbers.
fn sum(value: &Value) -> i64 {
    let parts = value.as_object().into_iter().flat_map(|parts| parts.values());
    value.as_i64().unwrap_or_else(|| parts.filter_map(Value::as_i64).sum())
}

#[test]
fn those_who_see_both_count_it_once() {
    for names in [["ada", "mary"], ["mary", "ada"]] {
        let (bench, tokens) = company(names);
        let server = Server::without_refresh(&bench);
        let own = |path: &str| server.json_as(&tokens[1].1, path);
        for path in ["/api/v1/usage?days=all&by=day", "/api/v1/usage?days=all&by=model"] {
            let expected = own(path)["total"].clone();
            assert!(expected.is_object(), "{path}");
            assert_eq!(server.json_as(&tokens[0].1, path)["total"], expected, "the admin: {path}");
            assert_eq!(server.json(path)["total"], expected, "the owner: {path}");
        }
        let tools = "/api/v1/claude-code/analytics/tools?days=all";
        assert_eq!(server.json(tools)["tool_call_count"], own(tools)["tool_call_count"]);
        let names =
            ["message_count", "user_message_count", "assistant_message_count", "tool_call_count", "tokens"];
        let totals = |token: &str| {
            let sessions = server.json_as(token, "/api/v1/claude-code/sessions")["sessions"].clone();
            let sessions = sessions.as_array().unwrap().clone();
            names.map(|name| sessions.iter().map(|session| sum(&session[name])).sum::<i64>())
        };
        let once = totals(&tokens[1].1);
        assert!(once.iter().all(|total| *total > 0), "{once:?}");
        assert_eq!(totals(&tokens[2].1), once, "each member has all of it");
        assert_eq!(totals(&tokens[0].1), once, "the admin counts it once");
        assert_eq!(totals(&server.token), once, "and so does the owner");
        let records = bench.run(&["records", "claude_code/sessions"]).stdout;
        let counted = records.lines().map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            record["data"]["message_count"].as_i64().unwrap_or_else(|| panic!("{record}"))
        });
        assert_eq!(counted.sum::<i64>(), once[0]);
        let responses = server.json("/api/v1/usage/responses?days=all");
        let responses = responses["responses"].as_array().unwrap();
        let counted = responses.iter().filter(|response| response["copied"] == false).count();
        assert_eq!(2 * counted, responses.len(), "{responses:#?}");
    }
}

/// A home that changes hands is compared with the others of its new member.
#[test]
fn a_home_that_changes_hands_is_counted_again() {
    let (bench, tokens) = company(["ada", "mary"]);
    let home = bench.folder.path().join("mary-claude");
    for _ in 0..2 {
        let mut command = bench.command(&["sync", "--member", "ada"]);
        let ran = annals_testkit::Ran::of(command.env("CLAUDE_CONFIG_DIR", &home).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let server = Server::without_refresh(&bench);
    let sessions = server.json_as(&tokens[1].1, "/api/v1/claude-code/sessions");
    let counts: Vec<i64> = sessions["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["message_count"].as_i64().unwrap())
        .collect();
    assert_eq!(counts.len(), 2, "{sessions:#}");
    assert!(counts.contains(&0), "one is a copy now: {counts:?}");
}
