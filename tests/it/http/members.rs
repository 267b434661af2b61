//! Members over HTTP: each sees their own data, admins their organisation's, and nobody sees anything once a token is
//! revoked.

use std::path::PathBuf;

use serde_json::Value;

use crate::claude;
use crate::http::access::assert_refused;
use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, rollout, text_of};
use annals_testkit::files::append;
use annals_testkit::server::{Server, escaped};

/// Two organisations: ada and mary in one, charles in the other, each with separate homes.
pub struct Company {
    pub bench: Bench,
    pub server: Server,
    tokens: Vec<(&'static str, String)>,
}

/// Name, role, organisation and the id of their session.
pub const PEOPLE: [[&str; 4]; 5] = [
    ["ada", "member", "engines", "0199a1b2-0000-7000-8000-0000000000a1"],
    ["mary", "member", "engines", "0199a1b2-0000-7000-8000-0000000000a2"],
    ["charles", "member", "looms", "0199a1b2-0000-7000-8000-0000000000a3"],
    ["luigi", "admin", "engines", ""],
    ["sophia", "owner", "engines", ""],
];

impl Company {
    pub fn new() -> Company {
        let bench = Bench::new();
        let mut tokens = Vec::new();
        for [name, role, organisation, id] in PEOPLE {
            let added = bench.json(&["members", "add", name, "--role", role, "--organisation", organisation]);
            tokens.push((name, added["token"].as_str().unwrap().to_owned()));
            if !id.is_empty() {
                Company::write_homes(&bench, name, id);
            }
        }
        bench.transcript(&rollout(ID), &conversation(ID, "the words of owner"));
        bench.sync();
        let server = Server::without_refresh(&bench);
        Company { bench, server, tokens }
    }

    /// A Codex home and a Claude Code home, with an unreadable file.
    fn write_homes(bench: &Bench, name: &str, id: &str) {
        let home = |client: &str| bench.folder.path().join(format!("{name}-{client}"));
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let folder = home("codex").join("sessions/2026/11/15");
        let (call, output) =
            (annals_testkit::codex::call(3, "call_1"), annals_testkit::codex::output(4, "call_1"));
        let mut lines = conversation(id, &format!("the words of {name}"));
        lines.extend([call, output, annals_testkit::codex::tokens(5, 100, 100)]);
        lines[0] = lines[0].replace("/home/ada/engine", &format!("/home/{name}/work"));
        write(folder.join(rollout(id)), &text_of(&lines));
        write(folder.join(format!("rollout-2026-11-15T11-00-00-{name}.jsonl.zst")), "no archive of any kind");
        write(home("codex").join(format!("prompts/{name}.md")), &format!("the words of {name}"));
        let talk = text_of(&claude::talk(id)).replace("Oil the gears.", &format!("the words of {name}"));
        write(home("claude").join(format!("projects/-home-{name}/{id}.jsonl")), &talk);
        let mut command = bench.command(&["sync", "--member", name]);
        command.env("CODEX_HOME", home("codex")).env("CLAUDE_CONFIG_DIR", home("claude"));
        let ran = annals_testkit::Ran::of(command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }

    pub fn token(&self, name: &str) -> &str {
        &self.tokens.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// Every list and sum that a member can request, in one text.
    fn everything_for(&self, name: &str) -> String {
        let token = self.token(name);
        let mut text = String::new();
        let mut get = |path: &str| {
            let answer = self.server.json_as(token, path);
            text += &format!("{path}\n{answer:#}\n");
            answer
        };
        for path in [
            "agent-sessions/sources",
            "audit",
            "status",
            "gaps",
            "usage/responses?days=all",
            "usage/days?days=all",
            "activity",
            "sessions?include_subagents=true",
            "library",
            "secrets",
        ] {
            get(&format!("/api/v1/{path}"));
        }
        for by in ["day", "model", "project", "session", "source"] {
            get(&format!("/api/v1/usage?days=all&by={by}"));
        }
        for (source, own) in [("codex_cli", "codex"), ("claude_code", "claude-code")] {
            get(&format!("/api/v1/{own}/sessions?include_subagents=true"));
            get(&format!("/api/v1/{own}/analytics/tools?days=all"));
            let manifest = get(&format!("/api/v1/sources/{source}/manifest"));
            for stream in manifest["streams"].as_array().unwrap() {
                get(&format!(
                    "/api/v1/sources/{source}/streams/{}/records",
                    stream["name"].as_str().unwrap()
                ));
            }
        }
        text
    }
}

/// Whose sessions a member sees.
pub fn seen_by(name: &'static str) -> Vec<&'static str> {
    match name {
        "luigi" => vec!["ada", "mary"],
        "sophia" => vec!["ada", "mary", "charles", "owner"],
        own => vec![own],
    }
}

#[test]
fn members_see_their_own_data_admins_their_organisations_and_owners_all() {
    let company = Company::new();
    for [member, ..] in PEOPLE {
        let (text, token, seen) = (company.everything_for(member), company.token(member), seen_by(member));
        for [name, _, _, id] in PEOPLE.into_iter().filter(|person| !person[3].is_empty()) {
            let visible = seen.contains(&name);
            for mark in [id.to_owned(), format!("the words of {name}"), format!("/home/{name}/work")] {
                assert_eq!(text.contains(&mark), visible, "{member} and {mark} of {name}\n{text}");
            }
            // A card shows one of several homes.
            assert!(
                visible || !text.contains(&format!("/{name}-c")),
                "{member} and the homes of {name}\n{text}"
            );
            assert_eq!(text.contains(&format!("-{name}.jsonl.zst")), visible, "gaps: {member} and {name}");
            for own in ["codex", "claude-code", "agent-sessions/codex_cli", "agent-sessions/claude_code"] {
                for end in ["", "/messages", "/messages?copies=true&full=true", "/outline"] {
                    let reply = company.server.get_as(token, &format!("/api/v1/{own}/sessions/{id}{end}"));
                    assert_eq!(
                        reply.status,
                        if visible { 200 } else { 404 },
                        "{member} asks {name}'s {own}{end}"
                    );
                }
            }
            for (stream, key) in [("sessions", id), ("prompts", name)] {
                let path = format!("/api/v1/sources/codex_cli/streams/{stream}/records/{key}");
                let status = company.server.get_as(token, &path).status;
                assert_eq!(status, if visible { 200 } else { 404 }, "{member} asks for {path}");
            }
            let usage = format!("/api/v1/usage?source=codex_cli&session_id={id}");
            assert_eq!(
                company.server.get_as(token, &usage).status,
                if visible { 200 } else { 404 },
                "{member} {usage}"
            );
            let project =
                format!("/api/v1/codex/sessions?project={}", escaped(&format!("/home/{name}/work")));
            assert_eq!(
                company.server.json_as(token, &project)["total"],
                i64::from(visible),
                "{member} {project}"
            );
        }
        let owner = i64::from(seen.contains(&"owner"));
        assert_eq!(text.contains("the words of owner"), owner == 1, "{member}");
        let members = seen.len() as i64 - owner;
        // A transcript that cannot be decompressed is a session too, without messages.
        let sessions = 2 * members + owner;
        assert_eq!(company.server.json_as(token, "/api/v1/codex/sessions")["total"], sessions, "{member}");
        let cards = company.server.json_as(token, "/api/v1/agent-sessions/sources");
        assert_eq!(cards["sources"][0]["session_count"], sessions, "{member} {cards}");
        assert_eq!(cards["sources"][0]["gaps_open"], members, "{member} {cards}");
        let tools = company.server.json_as(token, "/api/v1/codex/analytics/tools?days=all");
        assert_eq!(tools["tool_call_count"], members, "{member} {tools}");
        let usage = company.server.json_as(token, "/api/v1/usage?days=all&by=session&source=codex_cli");
        assert_eq!(usage["rows"].as_array().unwrap().len() as i64, members, "{member} {usage}");
    }
}

#[test]
fn the_same_holds_while_the_server_refreshes() {
    let mut company = Company::new();
    company.server = Server::start(&company.bench);
    company.server.json("/api/v1/codex/sessions");
    let path = company.bench.codex().join("sessions/2026/11/15").join(rollout(ID));
    append(&path, &text_of(&annals_testkit::codex::prompt("more words of owner")));
    for [member, ..] in PEOPLE {
        let text = company.everything_for(member);
        assert_eq!(text.contains("words of owner"), member == "sophia", "{member}");
        assert_eq!(text.contains(company.bench.codex().to_str().unwrap()), member == "sophia", "{member}");
    }
}

#[test]
fn tokens_end_when_they_are_revoked_and_members_when_they_are_removed() {
    let company = Company::new();
    let status = |name: &str| company.server.get_as(company.token(name), "/api/v1/codex/sessions").status;
    let last_used = |name: &str| {
        let members = company.bench.json(&["members", "list"])["members"].clone();
        members.as_array().unwrap().iter().find(|member| member["name"] == name).unwrap()["last_used_at"]
            .clone()
    };
    assert_eq!(last_used("ada"), Value::Null);
    assert_eq!((status("ada"), status("mary"), status("charles")), (200, 200, 200));
    let used: jiff::Timestamp = last_used("ada").as_str().unwrap().parse().unwrap();
    assert!(used.duration_until(annals_testkit::clock::now()).as_hours() < 1);
    assert_eq!(last_used("luigi"), Value::Null);

    assert_eq!(company.bench.run(&["members", "token", "ada", "--revoke"]).code, 0);
    assert_eq!(company.bench.run(&["members", "remove", "mary"]).code, 0);
    for name in ["ada", "mary"] {
        let reply = company.server.get_as(company.token(name), "/api/v1/codex/sessions");
        assert_refused(&reply, 401, name);
    }
    assert_eq!((status("charles"), status("luigi")), (200, 200), "others stay");
    let token = company.bench.json(&["members", "token", "ada"])["token"].as_str().unwrap().to_owned();
    assert_eq!(company.server.json_as(&token, "/api/v1/codex/sessions")["total"], 2);
    let link = company.server.get_with(&format!("/?token={token}"), &[]);
    assert_eq!(link.status, 303, "a member's link works too");
}
