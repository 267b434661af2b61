//! What people arrange stays theirs: through rebuilds, exports and imports, in every list, and behind the same doors.

use serde_json::{Value, json};

use crate::http::members::Company;
use annals_testkit::codex::{ID, conversation, rollout, tokens};
use annals_testkit::files::copy_folder;
use annals_testkit::server::{Reply, Server, escaped};
use annals_testkit::{Bench, fixtures, sources};

const OTHER: &str = "0199a1b2-0000-7000-8000-0000000000ff";
const SESSION: &str = "/api/v1/codex/sessions/0199a1b2-0000-7000-8000-0000000000ff";

/// Assembled at run time, so that no scanner takes this file for a leak.
fn key() -> String {
    format!("ghp_{}", "aB3dE6gH9".repeat(4))
}

/// The homes of all fixtures, those of one client in one home.
fn all_fixtures() -> Bench {
    let bench = Bench::new();
    for (source, case) in fixtures::with_home() {
        copy_folder(&case.join("home"), &bench.home_of(source));
    }
    bench.sync();
    bench
}

fn two_sessions() -> Bench {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears and axles"));
    let mut other = conversation(OTHER, "gears and levers");
    other.push(tokens(5, 100, 100));
    bench.transcript(&rollout(OTHER), &other);
    bench.sync();
    bench
}

#[track_caller]
fn run(bench: &Bench, arguments: &[&str]) -> String {
    let ran = bench.run(arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

fn ids(answer: &Value) -> Vec<String> {
    let sessions = answer["sessions"].as_array().unwrap().iter();
    let mut ids: Vec<String> =
        sessions.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// What is arranged of every session and message, and the saved searches.
fn arranged(bench: &Bench) -> String {
    let mut text = String::new();
    let mut sessions = bench.sessions();
    sessions.extend(
        bench.json_or_nothing(&["sessions", "--all", "--hidden"])["sessions"].as_array().unwrap().clone(),
    );
    sessions.sort_by_key(|session| session["session_id"].to_string());
    for session in sessions {
        let id = session["session_id"].as_str().unwrap();
        let fields = ["name", "starred", "tags", "has_note", "note", "hidden", "title"];
        text += &fields.map(|field| session[field].to_string()).join(" ");
        let shown = bench.json(&["show", id, "--copies", "--branch", "all"]);
        for message in shown["messages"].as_array().unwrap() {
            text += &message["arrangement"].to_string();
        }
        text += &format!(" {id}\n");
    }
    let records = run(bench, &["records", "annals/arrangement", "--full"]);
    let mut records: Vec<&str> = records.lines().collect();
    records.sort_unstable();
    text + &records.join("\n")
}

#[test]
fn arrangements_survive_rebuilds_exports_and_imports() {
    let bench = all_fixtures();
    let mut seen = std::collections::BTreeSet::new();
    let (mut forks, mut agents, mut messages) = (0, 0, 0);
    for (number, session) in bench.sessions().iter().enumerate() {
        let (source, id) = (session["source"].as_str().unwrap(), session["session_id"].as_str().unwrap());
        let is_fork = !session["copied_from"].is_null();
        let is_agent = session["parent_kind"] == "sub_agent";
        // Enough of every kind.
        if !(seen.insert(source.to_owned()) || is_fork && forks < 2 || is_agent && agents < 2) {
            continue;
        }
        forks += usize::from(is_fork);
        agents += usize::from(is_agent);
        let address = format!("{source}:{id}");
        run(&bench, &["star", &address]);
        run(&bench, &["tag", &address, "Größe", "#to-do"]);
        run(&bench, &["name", &address, "Name", "名前 🚀", &number.to_string()]);
        run(&bench, &["note", &address, "Some *Markdown*\n\n<b>text</b>"]);
        let shown = bench.json(&["show", &address]);
        if let Some(message) = shown["messages"].as_array().unwrap().last() {
            let message = message["id"].as_str().unwrap();
            run(&bench, &["star", &address, "--message", message]);
            run(&bench, &["note", &address, "--message", message, "of a message"]);
            messages += 1;
        }
        if is_agent {
            run(&bench, &["hide", &address]);
        }
    }
    assert!(forks > 0 && agents > 0 && messages >= seen.len(), "{forks} {agents} {messages}");
    assert_eq!(seen.len(), sources::with_home().len(), "{seen:?}");
    run(&bench, &["search", "--save", "mine", "tag:größe"]);
    let before = arranged(&bench);
    assert!(before.contains("名前 🚀") && before.contains("of a message"));
    assert_eq!(before, arranged(&bench), "reopened");
    run(&bench, &["rebuild"]);
    assert_eq!(before, arranged(&bench), "rebuilt");

    // An empty archive gets the arrangements first, and the sessions later.
    let exported = bench.folder.path().join("records.ndjson");
    std::fs::write(&exported, run(&bench, &["export", "--format", "records"])).unwrap();
    let other = Bench::new();
    let report = other.import(&[&exported]);
    assert_eq!((&report["recognised"], &report["kind"]), (&true.into(), &"records".into()));
    assert!(report["sources"][0]["new"].as_u64().unwrap() > 20, "{report}");
    copy_folder(&bench.user(), &other.user());
    other.sync();
    assert_eq!(before, arranged(&other), "imported");
    let again = other.import(&[&exported]);
    assert_eq!(
        (again["sources"][0]["new"].as_u64(), again["sources"][0]["kept_aside"].as_u64()),
        (Some(0), Some(0))
    );
    assert_eq!(before, arranged(&other), "imported twice");
}

#[test]
fn what_is_gone_at_the_source_stays_arranged() {
    let bench = two_sessions();
    run(&bench, &["name", OTHER, "Kept"]);
    std::fs::remove_file(bench.codex().join("sessions/2026/11/15").join(rollout(OTHER))).unwrap();
    bench.sync();
    let list = bench.json(&["sessions"]);
    let session = list["sessions"].as_array().unwrap().iter().find(|session| session["session_id"] == OTHER);
    let session = session.unwrap();
    assert_eq!((&session["name"], &session["source_gone"]), (&"Kept".into(), &true.into()));
    assert_ne!(session["title"], "Kept", "the client's title stays");
}

#[test]
fn the_name_is_shown_wherever_a_title_is() {
    let bench = two_sessions();
    run(&bench, &["name", OTHER, "Levers of the engine"]);
    let folder = bench.folder.path().join("exported");
    let folder = folder.to_str().unwrap();
    for arguments in [
        &["sessions"][..],
        &["show", OTHER],
        &["search", "levers"],
        &["export", OTHER],
        &["export", OTHER, "--format", "html"],
        &["export", OTHER, "--format", "json"],
        &["week", "2026-11-15"],
    ] {
        assert!(run(&bench, arguments).contains("Levers of the engine"), "{arguments:?}");
    }
    assert_eq!(bench.json(&["search", "\"levers of the engine\""])["results"][0]["session_id"], OTHER);
    assert_eq!(bench.json(&["resume", "Levers of"])["session"]["session_id"], OTHER);
    run(&bench, &["export", "--all", "--to", folder]);
    run(&bench, &["name", OTHER, "Another name"]);
    let again = run(&bench, &["export", "--all", "--to", folder, "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!((again["written"].as_array().unwrap().len(), &again["unchanged"]), (1, &1.into()), "{again}");
    run(&bench, &["name", OTHER, "--remove"]);
    assert!(!run(&bench, &["sessions"]).contains("Another name"));
    let server = Server::without_refresh(&bench);
    assert!(server.page(&format!("/sessions/codex_cli/{OTHER}")).text().contains("levers"));
}

#[test]
fn filters_find_what_is_arranged() {
    let bench = two_sessions();
    run(&bench, &["tag", OTHER, "Work", "later"]);
    let message = bench.json(&["show", ID])["messages"][0]["id"].as_str().unwrap().to_owned();
    run(&bench, &["star", ID, "--message", &message]);
    run(&bench, &["note", OTHER, "see the answer"]);
    run(&bench, &["tag", "--project", "/home/ada/engine", "engines"]);
    let server = Server::without_refresh(&bench);
    for (filter, parameter, query, found) in [
        (&["--tag", "work"][..], "tag=work", "tag:WORK", vec![OTHER]),
        (&["--tag", "work", "--tag", "later"], "tag=later", "tag:work tag:#later", vec![OTHER]),
        (&["--tag", "engines"], "tag=engines", "tag:engines gears", vec![ID, OTHER]),
        (&["--starred"], "starred=true", "is:starred gears", vec![ID]),
        (&["--noted"], "has_note=true", "has:note", vec![OTHER]),
        (&["--tag", "nothing"], "tag=nothing", "tag:nothing", vec![]),
    ] {
        let mut found: Vec<String> = found.into_iter().map(str::to_owned).collect();
        found.sort();
        assert_eq!(ids(&bench.json_or_nothing(&[&["sessions"], filter].concat())), found, "{filter:?}");
        for list in ["/api/v1/sessions", "/api/v1/codex/sessions"] {
            assert_eq!(ids(&server.json(&format!("{list}?{parameter}"))), found, "{list}?{parameter}");
        }
        let page = server.page(&format!("/sessions?{parameter}")).text();
        for id in [ID, OTHER] {
            assert_eq!(page.contains(id), found.contains(&id.to_owned()), "{parameter} {id}");
        }
        let answer = server.json(&format!("/api/v1/search?q={}", escaped(query)));
        let mut results: Vec<&str> = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|result| result["session_id"].as_str().unwrap())
            .collect();
        results.sort_unstable();
        assert_eq!(results, found, "{query}");
    }
    run(&bench, &["search", "--save", "mine", "tag:work"]);
    assert_eq!(bench.json(&["search", "--saved", "mine"])["results"][0]["session_id"], OTHER);
    assert_eq!(bench.json(&["searches"])["searches"][0]["query"], "tag:work");
    run(&bench, &["searches", "--remove", "mine"]);
    assert_eq!(bench.run(&["searches"]).code, 1);
    assert_eq!(bench.run(&["search", "--saved", "mine"]).code, 2);
}

#[test]
fn hidden_sessions_are_left_out_everywhere_and_come_back() {
    let bench = two_sessions();
    let server = Server::without_refresh(&bench);
    let texts = || {
        let mut texts: Vec<String> = [
            &["sessions", "--all"][..],
            &["sessions", "--all", "--json"],
            &["search", "gears"],
            &["search", "how did we do the gears"],
            &["week", "2026-11-15"],
            &["resume", "gears"],
            &["export", "--all", "--format", "json"],
        ]
        .iter()
        .map(|arguments| bench.run(arguments).stdout)
        .collect();
        for path in ["/api/v1/sessions", "/api/v1/codex/sessions", "/api/v1/search?q=gears"] {
            texts.push(server.get(path).text());
        }
        for page in ["/", "/sessions", "/search?q=gears"] {
            texts.push(server.page(page).text());
        }
        let (agent, _) =
            annals_testkit::agent::call_server(&server, &server.token, "list_sessions", json!({}));
        texts.push(agent);
        texts
    };
    let total = bench.json(&["usage", "--days", "all"])["total"].clone();
    let is_named = |text: &String| text.contains(OTHER) || text.contains("levers");
    assert!(texts().iter().all(is_named), "{:?}", texts());
    for what in [&["hide", &OTHER[..36]][..], &["hide", "--project", "/home/ada"]] {
        run(&bench, what);
        let left: Vec<String> = texts().into_iter().filter(is_named).collect();
        assert_eq!(left, Vec::<String>::new(), "{what:?}");
        // Who asks for it by its id gets it, and sums count it.
        assert!(run(&bench, &["show", OTHER]).contains("levers"));
        assert_eq!(server.get(SESSION).status, 200);
        assert!(ids(&bench.json(&["sessions", "--hidden"])).contains(&OTHER.to_owned()));
        assert!(server.get("/api/v1/search?q=is:hidden+levers").text().contains(OTHER));
        let usage = bench.json(&["usage", "--days", "all"]);
        assert_eq!(usage["total"], total);
        assert!(usage["hidden_session_count"].as_i64().unwrap() > 0);
        run(&bench, &[what, &["--remove"]].concat());
        assert!(texts().iter().all(is_named), "{what:?}");
    }
    assert_eq!(bench.run(&["hide", "nothing"]).code, 2);
    assert_eq!(bench.run(&["hide", "--project", "/nowhere"]).code, 2);
}

#[test]
fn hostile_notes_are_text_and_secrets_in_them_are_masked() {
    let bench = two_sessions();
    let note = format!("<script>alert(1)</script>\u{1b}[2J\u{202e} [a](javascript:x) {} \u{7}", key());
    let file = bench.folder.path().join("note.md");
    std::fs::write(&file, &note).unwrap();
    run(&bench, &["note", OTHER, "--file", file.to_str().unwrap()]);
    run(&bench, &["name", OTHER, &format!("Named {}", key())]);
    run(&bench, &["search", "--save", "mine", &format!("levers OR {}", key())]);
    let refused = bench.run(&["tag", OTHER, &key()]);
    assert_eq!(refused.code, 2);
    assert!(!refused.stderr.contains(&key()), "{}", refused.stderr);
    let message = bench.json(&["show", OTHER])["messages"][0]["id"].as_str().unwrap().to_owned();
    run(&bench, &["note", OTHER, "--message", &message, "--file", file.to_str().unwrap()]);
    let server = Server::without_refresh(&bench);
    let mut texts: Vec<(String, String)> = Vec::new();
    for arguments in [
        &["note", OTHER][..],
        &["name", OTHER],
        &["star", OTHER],
        &["sessions"],
        &["sessions", "--json"],
        &["show", OTHER],
        &["show", OTHER, "--json"],
        &["search", "levers"],
        &["searches"],
        &["records", "annals/arrangement", "--full"],
        &["export", "--format", "records"],
        &["export", OTHER],
        &["export", OTHER, "--format", "html"],
        &["export", OTHER, "--format", "json"],
    ] {
        texts.push((arguments.join(" "), run(&bench, arguments)));
    }
    for path in [
        SESSION.to_owned(),
        format!("{SESSION}/arrangement"),
        format!("{SESSION}/messages"),
        format!("{SESSION}/messages/{message}/arrangement"),
        "/api/v1/searches".to_owned(),
        "/api/v1/sources/annals/streams/arrangement/records".to_owned(),
    ] {
        let reply = server.get(&path);
        assert_eq!(reply.status, 200, "{path}");
        texts.push((path, reply.text()));
    }
    for path in [format!("/sessions/codex_cli/{OTHER}"), "/search".to_owned(), "/sessions".to_owned()] {
        texts.push((path.clone(), server.page(&path).text()));
    }
    for (what, text) in &texts {
        assert!(!text.contains(&key()), "{what}");
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{what}: {text:?}");
        let is_html = what.starts_with("/s") || what.ends_with("html");
        assert!(!is_html || !text.contains("<script>alert") && !text.contains("href=\"javascript"), "{what}");
    }
    let marks = texts.iter().filter(|(_, text)| text.contains("[secret:")).count();
    assert!(marks > 12, "{marks}");
    // As long as a note may be, and longer.
    std::fs::write(&file, "x".repeat(1 << 20)).unwrap();
    run(&bench, &["note", ID, "--file", file.to_str().unwrap()]);
    assert_eq!(bench.json(&["sessions"])["sessions"].as_array().unwrap().len(), 2);
    std::fs::write(&file, "x".repeat((1 << 20) + 1)).unwrap();
    assert_eq!(bench.run(&["note", ID, "--file", file.to_str().unwrap()]).code, 2);
}

fn change(server: &Server, method: &str, token: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {token}");
    server.send_json(method, path, &[("Authorization", &bearer)], body)
}

#[test]
fn programs_arrange_over_http() {
    let bench = two_sessions();
    let server = Server::without_refresh(&bench);
    let of = format!("{SESSION}/arrangement");
    let own = server.token.clone();
    let patch = |path: &str, body: Value| change(&server, "PATCH", &own, path, &body);
    let set = patch(&of, json!({"starred": true, "tags": ["a", "b"], "name": "N", "note": "text"}));
    let expected = json!({"starred": true, "name": "N", "tags": ["a", "b"], "note": "text", "hidden": false});
    assert_eq!((set.status, set.json()), (200, expected));
    let changed = patch(&of, json!({"add_tags": ["c"], "remove_tags": ["a"], "name": null, "hidden": true}));
    let expected = json!({"starred": true, "name": null, "tags": ["b", "c"], "note": "text", "hidden": true});
    assert_eq!(changed.json(), expected);
    assert_eq!(server.json(&of), expected);
    let session = server.json(SESSION);
    assert_eq!((&session["hidden"], &session["note"]), (&true.into(), &"text".into()));
    let message =
        server.json(&format!("{SESSION}/messages"))["messages"][0]["id"].as_str().unwrap().to_owned();
    let of_message = format!("{SESSION}/messages/{message}/arrangement");
    assert_eq!(patch(&of_message, json!({"starred": true})).status, 200);
    assert_eq!(server.json(&format!("{SESSION}/messages"))["messages"][0]["arrangement"]["starred"], true);
    let project = "/api/v1/projects/arrangement?project=/home/ada/engine";
    assert_eq!(patch(project, json!({"name": "Engine"})).json()["name"], "Engine");
    for (path, body, status) in [
        (&of, json!({"unknown": 1}), 400),
        (&of, json!({"tags": ["two words"]}), 400),
        (&of, json!({"note": "x".repeat((1 << 20) + 1)}), 400),
        (&of, json!([]), 400),
        (&of_message, json!({"hidden": true}), 400),
        (&format!("{SESSION}/messages/ffffffffffffffff/arrangement"), json!({"starred": true}), 404),
        (&"/api/v1/codex/sessions/nothing/arrangement".to_owned(), json!({"starred": true}), 404),
        (&"/api/v1/projects/arrangement?project=/nowhere".to_owned(), json!({"starred": true}), 404),
        (&"/api/v1/projects/arrangement".to_owned(), json!({"starred": true}), 400),
    ] {
        assert_eq!(patch(path, body).status, status, "{path}");
    }
    let text = [("Authorization", "Bearer x"), ("Content-Length", "0")];
    assert_eq!(server.request("PATCH", &of, &text).status, 401);
    let bearer = format!("Bearer {own}");
    let plain = [("Authorization", bearer.as_str()), ("Content-Type", "text/plain"), ("Content-Length", "0")];
    assert_eq!(server.request("PATCH", &of, &plain).status, 415);
    let saved = change(&server, "PUT", &own, "/api/v1/searches/mine", &json!({"query": " tag:b  gears "}));
    assert_eq!((saved.status, &saved.json()["searches"][0]["query"]), (200, &"tag:b gears".into()));
    assert_eq!(change(&server, "DELETE", &own, "/api/v1/searches/mine", &json!({})).status, 200);
    assert_eq!(change(&server, "DELETE", &own, "/api/v1/searches/mine", &json!({})).status, 404);
    let cleared = change(&server, "DELETE", &own, &of, &json!({})).json();
    assert_eq!(cleared, json!({"starred": false, "name": null, "tags": [], "note": null, "hidden": false}));
    let versions = server.json(&format!(
        "/api/v1/sources/annals/streams/arrangement/records/{}",
        escaped(&format!("session/codex_cli/{OTHER}/star"))
    ));
    assert_eq!(versions["records"].as_array().unwrap().len(), 2, "{versions}");
}

#[test]
fn browsers_arrange_only_from_pages_of_this_server() {
    let bench = two_sessions();
    let server = Server::without_refresh(&bench);
    let cookie = server.cookie_of(&server.token);
    let page = format!("/sessions/codex_cli/{OTHER}");
    let here = format!("http://{}", server.address);
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let elsewhere = ["http://127.0.0.1:1".to_owned(), format!("http://localhost:{port}")];
    let form = |headers: &[(&str, &str)], body: &str| {
        let headers = [headers, &[("Cookie", cookie.as_str())]].concat();
        server.send_form(&page, &headers, body)
    };
    let starred = || server.json(SESSION)["starred"] == true;
    for headers in [
        &[][..],
        &[("Origin", elsewhere[0].as_str())],
        &[("Origin", elsewhere[1].as_str())],
        &[("Origin", "null")],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Sec-Fetch-Site", "none")],
        &[("Origin", here.as_str()), ("Sec-Fetch-Site", "same-site")],
    ] {
        assert_eq!(form(headers, "starred=true").status, 403, "{headers:?}");
        let own = [headers, &[("Cookie", cookie.as_str())]].concat();
        let reply =
            server.send_json("PATCH", &format!("{SESSION}/arrangement"), &own, &json!({"starred": true}));
        assert_eq!(reply.status, 403, "{headers:?}");
        assert!(!starred(), "{headers:?}");
    }
    let own = [("Origin", here.as_str()), ("Sec-Fetch-Site", "same-origin")];
    let reply = form(&own, "starred=true");
    assert_eq!((reply.status, reply.header("location")), (303, page.as_str()));
    assert!(starred());
    assert_eq!(form(&own, "name=N+%26+1&tags=a%2C+b&note=%3Cb%3E%0D%0Amore").status, 303);
    let session = server.json(SESSION);
    assert_eq!((&session["name"], &session["tags"]), (&"N & 1".into(), &json!(["a", "b"])));
    assert_eq!(session["note"], "<b>\nmore");
    assert_eq!(form(&own, "hidden=true").status, 303);
    let shown = server.page(&page).text();
    assert!(shown.contains("Show again") && shown.contains("N &#38; 1") && shown.contains("#a"), "{shown}");
    assert!(!server.page("/sessions").text().contains(OTHER));
    assert_eq!(form(&own, "hidden=false").status, 303);
    assert!(server.page("/sessions").text().contains(OTHER));
    assert_eq!(form(&own, "unknown=1").status, 422);
    let headers = [&own[..], &[("Cookie", cookie.as_str())]].concat();
    let saved = server.send_form("/search", &headers, "name=mine&q=tag%3Aa");
    assert_eq!((saved.status, saved.header("location")), (303, "/search?q=tag%3Aa"));
    assert!(server.page("/search").text().contains("mine"));
    assert_eq!(server.send_form("/search", &headers, "name=mine").status, 303);
    assert!(!server.page("/search").text().contains("Saved searches"));
}

#[test]
fn everyone_arranges_what_they_see_for_themselves() {
    let company = Company::new();
    let server = &company.server;
    let [ada, mary, admin, owner] =
        ["ada", "mary", "luigi", "sophia"].map(|name| company.token(name).to_owned());
    let session = format!("/api/v1/codex/sessions/{}", crate::http::members::PEOPLE[0][3]);
    let of = format!("{session}/arrangement");
    let note = json!({"note": "of ada", "starred": true, "hidden": true});
    assert_eq!(change(server, "PATCH", &ada, &of, &note).status, 200);
    assert_eq!(change(server, "PATCH", &mary, &of, &note).status, 404, "it is not visible to her");
    assert_eq!(server.get_as(&mary, &of).status, 404);
    for other in [&admin, &owner] {
        assert_eq!(server.json_as(other, &of)["note"], Value::Null);
        assert_eq!(server.json_as(other, &session)["starred"], false);
        assert!(server.get_as(other, "/api/v1/codex/sessions").text().contains(&session[23..]));
        let records = server.json_as(other, "/api/v1/sources/annals/streams/arrangement/records");
        assert_eq!(records["records"], json!([]));
    }
    assert!(!server.get_as(&ada, "/api/v1/codex/sessions").text().contains(&session[23..]));
    assert_eq!(change(server, "PATCH", &admin, &of, &json!({"note": "of luigi"})).status, 200);
    assert_eq!(server.json_as(&ada, &of)["note"], "of ada");
    assert_eq!(change(server, "PUT", &ada, "/api/v1/searches/mine", &json!({"query": "x"})).status, 200);
    assert_eq!(server.json_as(&owner, "/api/v1/searches")["searches"], json!([]));
}
