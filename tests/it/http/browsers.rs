//! Browsers have sessions of their own: started by a link that works once, listed, renewed and ended.

use serde_json::Value;

use crate::http::access::assert_refused;
use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::server::{Reply, Server};
use annals_testkit::{Bench, clock};

const LIST: &str = "/api/v1/codex/sessions";

fn served() -> (Bench, Server) {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    bench.sync();
    let server = Server::without_refresh(&bench);
    (bench, server)
}

/// Name, value and attributes of the cookie that a reply sets.
fn cookie(reply: &Reply) -> (String, String, Vec<String>) {
    let mut parts = reply.header("set-cookie").split(';').map(|part| part.trim().to_owned());
    let (name, value) =
        parts.next().unwrap().split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    (name, value, parts.collect())
}

fn browsers(bench: &Bench) -> Vec<Value> {
    bench.json(&["members", "browsers"])["browsers"].as_array().unwrap().clone()
}

fn status(server: &Server, cookie: &str) -> u16 {
    server.get_with(LIST, &[("Cookie", cookie)]).status
}

#[test]
fn a_link_works_once_and_starts_a_session() {
    let (bench, server) = served();
    assert_eq!(browsers(&bench), Vec::<Value>::new());
    let reply = server.get_with(&server.link, &[("User-Agent", "Kestrel/1.0")]);
    assert_eq!((reply.status, reply.header("location")), (303, "/"), "{}", reply.text());
    let (name, value, attributes) = cookie(&reply);
    let port = server.address.rsplit_once(':').unwrap().1;
    assert_eq!(name, format!("annals_{port}"));
    assert_ne!(value, server.token);
    assert!(!server.link.contains(&value), "the link is not the cookie");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
        assert!(attributes.iter().any(|found| found == attribute), "{attributes:?}");
    }
    assert_eq!(status(&server, &format!("{name}={value}")), 200);
    let again = server.get_with(&server.link, &[]);
    assert_refused(&again, 401, "the same link");
    assert!(!again.headers.contains_key("set-cookie"));
    // It is a cookie of this port and nothing else.
    assert_eq!(server.get_as(&value, LIST).status, 401, "not a token");
    assert_eq!(status(&server, &format!("annals={value}")), 401);
    let other = Server::without_refresh(&bench);
    let other_port = other.address.rsplit_once(':').unwrap().1;
    assert_eq!(status(&other, &format!("{name}={value}")), 401);
    assert_eq!(status(&other, &format!("annals_{other_port}={value}")), 401, "another port");
    let listed = browsers(&bench);
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["browser"], &listed[0]["member"]), (&"Kestrel/1.0".into(), &Value::Null));
    let text = bench.run(&["members", "browsers"]).stdout;
    assert!(text.contains("Kestrel/1.0") && text.contains("you") && !text.contains(&value), "{text}");
}

#[test]
fn over_tls_the_cookie_is_bound_to_the_host() {
    let (_bench, server) = served();
    let encrypted = ("X-Forwarded-Proto", "https");
    let reply = server.get_with(&server.link, &[encrypted]);
    let (name, value, attributes) = cookie(&reply);
    assert!(name.starts_with("__Host-annals_") && attributes.contains(&"Secure".to_owned()), "{name}");
    let sent = format!("{name}={value}");
    assert_eq!(server.get_with(LIST, &[encrypted, ("Cookie", &sent)]).status, 200);
    assert_eq!(status(&server, &sent), 401, "not without TLS");
}

#[test]
fn browsers_are_logged_out_one_by_one_or_all() {
    let (bench, server) = served();
    let log_in = || {
        let link = bench.json(&["members", "link"])["link"].as_str().unwrap().to_owned();
        let (name, value, _) = cookie(&server.get_with(&link[link.find("/?").unwrap()..], &[]));
        format!("{name}={value}")
    };
    let cookies = [log_in(), log_in(), log_in()];
    assert!(cookies.iter().all(|cookie| status(&server, cookie) == 200));
    let oldest = browsers(&bench).iter().map(|browser| browser["number"].as_i64().unwrap()).min().unwrap();
    assert_eq!(bench.run(&["members", "browsers", "--logout", &oldest.to_string()]).code, 0);
    assert_eq!(cookies.each_ref().map(|cookie| status(&server, cookie)), [401, 200, 200]);
    let ran = bench.run(&["members", "browsers", "--logout", "999"]);
    assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{}", ran.stderr);
    assert_eq!(bench.json(&["members", "browsers", "--logout-all"])["logged_out"], 2);
    assert!(cookies.iter().all(|cookie| status(&server, cookie) == 401));
    assert_refused(&server.get_with(&server.link, &[]), 401, "unused links end too");
}

#[test]
fn a_new_token_replaces_the_old_one_while_the_server_runs() {
    let (bench, server) = served();
    let owner = server.cookie_of(&server.token);
    let ada = bench.json(&["members", "add", "ada"])["token"].as_str().unwrap().to_owned();
    let member = server.cookie_of(&ada);
    assert_eq!((status(&server, &owner), status(&server, &member)), (200, 200));
    let token = bench.json(&["members", "rotate"])["token"].as_str().unwrap().to_owned();
    assert_eq!((server.get(LIST).status, server.get_as(&token, LIST).status), (401, 200));
    assert_eq!((status(&server, &owner), status(&server, &member)), (401, 200), "others stay");
    assert_eq!(bench.run(&["members", "token", "ada", "--revoke"]).code, 0);
    assert_eq!(status(&server, &member), 401);
    let served = Server::without_refresh(&bench);
    assert_eq!(served.token, token);
}

/// The same archive and port, some days later.
fn later(bench: &Bench, address: &str, days: i64) -> Server {
    let mut command = bench.command(&["serve", "--listen", address, "--json", "--no-sync"]);
    clock::set_days_later(&mut command, days);
    Server::of(command)
}

#[test]
fn sessions_last_a_week_and_are_renewed_by_use() {
    let (bench, server) = served();
    let (address, cookie) = (server.address.clone(), server.cookie_of(&server.token));
    assert!(!server.get_with(LIST, &[("Cookie", &cookie)]).headers.contains_key("set-cookie"));
    drop(server);
    let server = later(&bench, &address, 6);
    let reply = server.get_with(LIST, &[("Cookie", &cookie)]);
    assert_eq!(reply.status, 200);
    assert!(reply.header("set-cookie").starts_with(&cookie), "renewed: {}", reply.header("set-cookie"));
    drop(server);
    assert_eq!(status(&later(&bench, &address, 12), &cookie), 200, "a week after the renewal");
    assert_eq!(status(&later(&bench, &address, 20), &cookie), 401);
}
