//! Follows every link of every page, and no page shows a secret.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regex::Regex;
use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::server::{Server, escaped};
use annals_testkit::worlds::planted;

/// Addresses followed per route: enough to include every kind of item and secret.
const EACH: usize = 260;

/// The routes of pages as the program has them, with the parts that vary as `{name}`.
fn routes() -> Vec<String> {
    let text = include_str!("../../../crates/annals/src/serve/pages/mod.rs");
    let route = Regex::new(r#"\.route\("([^"]+)""#).unwrap();
    let routes: Vec<String> = route.captures_iter(text).map(|found| found[1].to_owned()).collect();
    assert!(routes.len() > 15, "{routes:?}");
    routes
}

/// The route that answers an address.
fn route_of<'r>(routes: &'r [(String, Regex)], address: &str) -> Option<&'r str> {
    let path = address.split('?').next().unwrap();
    routes.iter().find(|(_, shape)| shape.is_match(path)).map(|(route, _)| route.as_str())
}

/// Everything that a page or its script would request from this server.
fn links(page: &str, at: &str) -> Vec<String> {
    let link = Regex::new(r#"(?:href|src|data-from|data-steps|data-copy-from)="([^"]*)""#).unwrap();
    let whole = |found: &str| {
        let address = found.replace("&amp;", "&").replace("&#38;", "&").replace("&#39;", "'");
        let address = address.split('#').next().unwrap().to_owned();
        match address.as_bytes().first() {
            Some(b'/') => address,
            Some(b'?') => format!("{}{address}", at.split('?').next().unwrap()),
            _ => String::new(),
        }
    };
    link.captures_iter(page).map(|found| whole(&found[1])).filter(|address| !address.is_empty()).collect()
}

/// What the form for selected sessions exports.
fn export_selected(server: &Server, sessions: &[Value]) -> String {
    let cookie = server.cookie_of(&server.token);
    let headers = [("Cookie", cookie.as_str()), ("Accept", "text/html"), ("Sec-Fetch-Site", "same-origin")];
    let text = |session: &Value, name: &str| session[name].as_str().unwrap().to_owned();
    let mut fields = vec!["do=export".to_owned()];
    fields.extend(sessions.iter().map(|session| {
        let selected = format!("{}:{}", text(session, "source"), text(session, "session_id"));
        format!("session={}", escaped(&selected))
    }));
    let reply = server.send_form("/sessions/selected", &headers, &fields.join("&"));
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.full_text()
}

#[test]
fn no_page_shows_a_secret() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    super::arrange_secrets(&bench);
    let server = Server::without_refresh(&bench);
    server.wait_for_secrets();
    let secrets = planted::secrets();
    let variable = Regex::new(r"\\\{[a-z_]+\\\}").unwrap();
    let shape =
        |route: &str| Regex::new(&format!("^{}$", variable.replace_all(&regex::escape(route), "[^/]+")));
    let routes: Vec<(String, Regex)> =
        routes().into_iter().map(|route| (route.clone(), shape(&route).unwrap())).collect();
    let mut waiting: VecDeque<String> = [
        "/",
        "/search?q=token",
        "/search?q=password+OR+secret",
        "/search?q=x",
        "/palette?q=",
        "/files?view=latest",
        "/week?calendar=month&date=2026-01-15",
        "/compare?of=models",
        "/tools/calls?days=all",
        "/palette?q=use",
    ]
    .map(str::to_owned)
    .into();
    let (mut known, mut leaks) = (BTreeSet::new(), Vec::new());
    let (mut visits, mut marks) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    while let Some(address) = waiting.pop_front() {
        let Some(route) = route_of(&routes, &address) else { continue };
        let visited = visits.entry(route.to_owned()).or_default();
        if *visited == EACH || !known.insert(address.clone()) {
            continue;
        }
        *visited += 1;
        let reply = server.page(&address);
        // A name that is masked in the list leads nowhere; not every step has an output, nor every file a known text.
        let nothing = ["secret%3A", "/output/", "/lineage"].iter().any(|part| address.contains(part));
        assert!(
            reply.status == 200 || nothing && reply.status == 404,
            "{address}: {} {}",
            reply.status,
            reply.text()
        );
        let whole = reply.full_text();
        *marks.entry(route.to_owned()).or_default() += whole.matches("[secret:").count();
        leaks.extend(planted::leaks(&secrets, &whole, &address));
        waiting.extend(links(&reply.text(), &address));
        if route.ends_with("{session_id}") {
            // Addresses that the script requests.
            waiting.push_back(format!("{address}/find?q=token"));
            waiting.push_back(format!("{}/steps?from=0", address.split('?').next().unwrap()));
        }
        if address.contains("/raw/") {
            waiting.push_back(format!("{}/0", address.replace("/raw/", "/output/")));
        }
    }
    leaks.extend(planted::leaks(&secrets, &server.first_event(), "/events"));
    for some in server.list("/api/v1/sessions?include_subagents=true&limit=500", "sessions").chunks(20) {
        let text = export_selected(&server, some);
        *visits.entry("/sessions/selected".to_owned()).or_default() += 1;
        *marks.entry("/sessions/selected".to_owned()).or_default() += text.matches("[secret:").count();
        leaks.extend(planted::leaks(&secrets, &text, "/sessions/selected"));
    }
    assert!(leaks.is_empty(), "{} leaks\n{}", leaks.len(), leaks[..leaks.len().min(40)].join("\n"));
    for (route, _) in &routes {
        // There is no image among the planted data.
        assert!(
            visits.contains_key(route) || route.contains("/picture/"),
            "{route} was never asked: {visits:?}"
        );
    }
    for route in [
        "/",
        "/sessions",
        "/sessions/selected",
        "/sessions/{source}/{session_id}",
        "/sessions/{source}/{session_id}/steps",
        "/sessions/{source}/{session_id}/outline",
        "/sessions/{source}/{session_id}/markdown",
        "/sessions/{source}/{session_id}/raw/{key}",
        "/sessions/{source}/{session_id}/output/{key}/{number}",
        "/search",
        "/tools",
        "/library",
        "/library/item",
        "/secrets",
    ] {
        assert!(marks[route] >= 3, "only {} marks on pages of {route}", marks[route]);
    }
}
