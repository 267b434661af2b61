//! Sessions selected in a list are arranged and exported by one form.

use annals_testkit::Bench;
use annals_testkit::codex::{conversation, rollout};
use annals_testkit::server::{Reply, Server, escaped};

use super::numbered;

fn three() -> (Bench, Server) {
    let bench = Bench::new();
    for (number, what) in ["gears", "pears", "bears"].into_iter().enumerate() {
        let id = numbered(number);
        bench.transcript(&rollout(&id), &conversation(&id, what));
    }
    bench.sync();
    let server = Server::without_refresh(&bench);
    (bench, server)
}

/// Posts the form as a page of this server does.
fn send(server: &Server, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Reply {
    let cookie = server.cookie_of(&server.token);
    let own = [("Cookie", cookie.as_str()), ("Accept", "text/html")];
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    server.send_form("/sessions/selected", &[headers, &own].concat(), &body.join("&"))
}

const OWN: [(&str, &str); 1] = [("Sec-Fetch-Site", "same-origin")];

fn ids(server: &Server, query: &str) -> Vec<String> {
    let list = server.json(&format!("/api/v1/sessions?{query}"));
    let sessions = list["sessions"].as_array().unwrap().iter();
    let mut ids: Vec<String> =
        sessions.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn selected_sessions_are_tagged_starred_and_hidden_together() {
    let (_bench, server) = three();
    let [one, other] = [0, 1].map(|number| format!("codex_cli:{}", numbered(number)));
    let both = [("session", one.as_str()), ("session", other.as_str())];
    let with = |more: &[(&'static str, &'static str)]| [&both[..], more].concat();
    let reply =
        send(&server, &with(&[("do", "tag"), ("tags", "fruit, tools"), ("list", "/sessions?q=ears")]), &OWN);
    assert_eq!((reply.status, reply.header("location")), (303, "/sessions?q=ears"), "{}", reply.text());
    let two = vec![numbered(0), numbered(1)];
    assert_eq!(ids(&server, "tag=fruit"), two);
    assert_eq!(ids(&server, "tag=tools"), two);
    assert_eq!(send(&server, &with(&[("do", "untag"), ("tags", "tools")]), &OWN).status, 303);
    assert_eq!(ids(&server, "tag=tools"), Vec::<String>::new());
    assert_eq!(send(&server, &with(&[("do", "star")]), &OWN).status, 303);
    assert_eq!(ids(&server, "starred=true"), two);
    assert_eq!(send(&server, &with(&[("do", "hide")]), &OWN).status, 303);
    assert_eq!(ids(&server, ""), [numbered(2)]);
    assert_eq!(send(&server, &with(&[("do", "show")]), &OWN).status, 303);
    assert_eq!(ids(&server, "").len(), 3);
}

#[test]
fn selected_sessions_are_one_document() {
    let (_bench, server) = three();
    let [one, other] = [2, 0].map(|number| format!("codex_cli:{}", numbered(number)));
    let reply = send(&server, &[("session", &one), ("session", &other), ("do", "export")], &OWN);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-disposition"), "attachment; filename=sessions.md");
    let text = reply.text();
    let (bears, gears) = (text.find("bears").unwrap(), text.find("gears").unwrap());
    assert!(bears < gears && !text.contains("pears") && text.contains("\n---\n"), "{text}");
    // Each is there as its own page has it.
    for number in [2, 0] {
        let alone = server.page(&format!("/sessions/codex_cli/{}/markdown", numbered(number)));
        assert!(text.contains(&alone.text()), "{text}");
    }
}

#[test]
fn nothing_changes_unless_all_of_it_can_and_the_page_is_ours() {
    let (_bench, server) = three();
    let known = format!("codex_cli:{}", numbered(0));
    let missing = [("session", known.as_str()), ("session", "codex_cli:nobody"), ("do", "hide")];
    assert_eq!(send(&server, &missing, &OWN).status, 404);
    for refused in [
        &[("do", "hide")][..],
        &[("session", &known), ("do", "burn")],
        &[("session", &known), ("do", "tag"), ("tags", "")],
        &[("session", &known), ("do", "hide"), ("list", "https://elsewhere.example/")],
    ] {
        assert_eq!(send(&server, refused, &OWN).status, 400, "{refused:?}");
    }
    let hides = [("session", known.as_str()), ("do", "hide")];
    for foreign in [("Sec-Fetch-Site", "cross-site"), ("Origin", "http://evil.example")] {
        assert_eq!(send(&server, &hides, &[foreign]).status, 403, "{foreign:?}");
    }
    assert_eq!(ids(&server, "").len(), 3);
}
