//! Access over HTTP: tokens, members, hosts and origins, and how everything else is refused.

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::server::{Reply, Server};

/// RFC 9457, whatever went wrong.
#[track_caller]
pub fn assert_refused(reply: &Reply, status: u16, what: &str) {
    assert_eq!(reply.status, status, "{what}: {}", reply.text());
    assert_eq!(reply.header("content-type"), "application/problem+json", "{what}");
    let document = reply.json();
    assert_eq!(document["status"], status, "{what}");
    for field in ["type", "title", "detail"] {
        assert!(document[field].as_str().is_some_and(|text| !text.is_empty()), "{what}: {document}");
    }
    assert_eq!(reply.header("x-content-type-options"), "nosniff", "{what}");
    if status == 401 {
        assert!(reply.header("www-authenticate").starts_with("Bearer"), "{what}");
    }
}

fn one_session() -> (Bench, Server) {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    bench.sync();
    let server = Server::without_refresh(&bench);
    (bench, server)
}

/// Addresses that require a token, one of each kind.
fn closed() -> Vec<String> {
    let session = format!("/api/v1/codex/sessions/{ID}");
    let mut addresses = vec![format!("{session}/messages"), session];
    addresses.extend(
        [
            "agent-sessions/sources",
            "codex/sessions",
            "agent-sessions/codex_cli/sessions",
            "codex/analytics/tools",
            "usage",
        ]
        .map(|path| format!("/api/v1/{path}")),
    );
    addresses.extend(
        [
            "usage/responses",
            "sources/codex_cli/manifest",
            "sources/codex_cli/streams/messages/records",
            "audit",
            "gaps",
            "status",
            "sessions",
            "activity",
            "usage/days",
            "library",
            "secrets",
        ]
        .map(|path| format!("/api/v1/{path}")),
    );
    let pages = ["sessions", "search", "tools", "usage", "library", "audit", "secrets"];
    addresses.extend(pages.map(|page| format!("/{page}")));
    addresses
}

#[test]
fn without_a_valid_token_nothing_is_revealed() {
    let (_bench, server) = one_session();
    let wrong = format!("Bearer annals_{}", "0".repeat(64));
    let short = format!("Bearer {}", &server.token[..server.token.len() - 1]);
    let other_scheme = format!("Basic {}", server.token);
    let cookie = format!("{}x", server.cookie_of(&server.token));
    let name = format!("{}=", cookie.split('=').next().unwrap());
    for path in closed() {
        assert_eq!(server.get(&path).status, 200, "{path}");
        for headers in [
            &[][..],
            &[("Authorization", wrong.as_str())],
            &[("Authorization", short.as_str())],
            &[("Authorization", other_scheme.as_str())],
            &[("Authorization", "Bearer ")],
            &[("Authorization", "Bearer")],
            &[("Authorization", "Bearer \u{e9}")],
            &[("Cookie", cookie.as_str())],
            &[("Cookie", name.as_str())],
        ] {
            assert_refused(&server.get_with(&path, headers), 401, &format!("{path} {headers:?}"));
        }
        assert_refused(
            &server.get_with(&format!("{path}?token={}", server.token), &[]),
            401,
            "in the address",
        );
        assert_eq!(server.request("HEAD", &path, &[]).status, 401);
        assert_refused(&server.request("POST", &path, &[]), 401, "another method");
    }
    // Without a token, missing items look like existing ones.
    assert_refused(&server.get_with("/api/v1/nothing", &[]), 401, "no route");
    for path in ["/healthz", "/openapi.json", "/docs"] {
        let reply = server.get_with(path, &[]);
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.full_text().contains(&server.token) && !reply.text().contains("gears"), "{path}");
    }
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let (_bench, server) = one_session();
    let bearer = format!("Bearer {}", server.token);
    let get_with_header = |name: &str, value: &str, path: &str| {
        server.get_with(path, &[("Authorization", &bearer), (name, value)])
    };
    let port = server.with_host("");
    for path in ["/api/v1/codex/sessions", "/healthz", "/openapi.json", "/docs", "/", "/api/v1/nothing"] {
        for host in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "192.0.2.1", "[::2]"]
        {
            for host in [host.to_owned(), format!("{host}{port}")] {
                assert_refused(&get_with_header("Host", &host, path), 403, &format!("{path} by {host}"));
            }
        }
        for origin in ["https://evil.example", "http://evil.example:4848", "null", "", "file://", "http://"] {
            assert_refused(&get_with_header("Origin", origin, path), 403, &format!("{path} from {origin}"));
        }
        let near = format!("http://{}.evil.example", server.address);
        assert_refused(&get_with_header("Origin", &near, path), 403, &near);
    }
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        assert_eq!(
            get_with_header("Host", &server.with_host(name), "/api/v1/codex/sessions").status,
            200,
            "{name}"
        );
        let origin = format!("http://{}", server.with_host(name));
        assert_eq!(get_with_header("Origin", &origin, "/api/v1/codex/sessions").status, 200, "{origin}");
    }
}

#[test]
fn allowed_host_names_are_accepted() {
    let bench = Bench::new();
    let server = Server::of(bench.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--host",
        "annals.example",
    ]));
    let status_for = |host: &str| server.get_with("/healthz", &[("Host", host)]).status;
    assert_eq!(status_for(&server.with_host("annals.example")), 200);
    assert_eq!(status_for(&server.with_host("Annals.Example")), 200);
    assert_eq!(status_for("not-annals.example"), 403);
    assert_eq!(status_for(&server.with_host("localhost")), 200);
}

#[test]
fn odd_ids_are_not_found_and_never_an_error() {
    let (_bench, server) = one_session();
    let bearer = format!("Bearer {}", server.token);
    let long = "a".repeat(6_000);
    let ids: Vec<Vec<u8>> = [
        "..",
        "%2e%2e",
        "%2e%2e%2f",
        "..%2f..%2fetc%2fpasswd",
        "%2Fetc%2Fpasswd",
        "%00",
        "a%00b",
        "%ff%fe",
        "%C3%28",
        "%",
        "%zz",
        "%25",
        "'",
        "%27%20or%201=1--",
        "%22",
        "*",
        "%25%25",
        "null",
        "-1",
        "0",
        "%0d%0aX-Injected:%201",
        "%F0%9F%A6%80",
        "%E2%80%AE",
        ";",
        "a;b",
        ".",
        "~",
        "{}",
        "+",
        long.as_str(),
    ]
    .map(|id| id.as_bytes().to_vec())
    .into_iter()
    .chain([b"\xff\xfe".to_vec(), b"\xc3\x28".to_vec()])
    .collect();
    let shapes = [
        "/api/v1/codex/sessions/ID",
        "/api/v1/codex/sessions/ID/messages",
        "/api/v1/agent-sessions/ID/sessions",
        "/api/v1/agent-sessions/codex_cli/sessions/ID",
        "/api/v1/agent-sessions/ID/sessions/ID/messages",
        "/api/v1/agent-sessions/ID/analytics/tools",
        "/api/v1/sources/ID/manifest",
        "/api/v1/sources/codex_cli/streams/ID/records",
        "/api/v1/sources/codex_cli/streams/messages/records/ID",
        "/api/v1/sources/codex_cli/streams/sessions/records/ID",
        "/api/v1/sources/codex_cli/streams/function_calls/records/ID",
        "/api/v1/sources/codex_cli/streams/skills/records/ID",
        "/api/v1/ID",
        "/ID",
    ];
    for shape in shapes {
        for id in &ids {
            let path: Vec<u8> = shape.split("ID").map(str::as_bytes).collect::<Vec<_>>().join(&id[..]);
            let what = String::from_utf8_lossy(&path).into_owned();
            let reply = server.try_request("GET", &path, &[("Authorization", &bearer)]);
            let reply = reply.unwrap_or_else(|| panic!("no answer to {what}"));
            assert!([400, 404].contains(&reply.status), "{what}: {} {}", reply.status, reply.text());
            assert!(!reply.headers.contains_key("x-injected"), "{what}");
            // What is not even a request is refused without an explanation.
            if reply.headers.contains_key("content-type") {
                assert_refused(&reply, reply.status, &what);
            }
        }
    }
    let too_long = server.try_request(
        "GET",
        format!("/api/v1/codex/sessions/{}", "a".repeat(1_000_000)).as_bytes(),
        &[],
    );
    assert!(too_long.is_none_or(|reply| [400, 401, 404, 414, 431].contains(&reply.status)));
    assert_eq!(server.get("/api/v1/codex/sessions").status, 200, "it is still well");
}

#[test]
fn absurd_parameters_are_refused_with_the_reason() {
    let (_bench, server) = one_session();
    let lists = [
        "/api/v1/codex/sessions".to_owned(),
        format!("/api/v1/codex/sessions/{ID}/messages"),
        "/api/v1/usage".to_owned(),
        "/api/v1/usage/responses".to_owned(),
        "/api/v1/gaps".to_owned(),
        "/api/v1/sources/codex_cli/streams/messages/records".to_owned(),
        "/api/v1/sources/codex_cli/streams/sessions/records".to_owned(),
        "/api/v1/sources/codex_cli/streams/skills/records".to_owned(),
    ];
    for path in &lists {
        for limit in ["0", "-1", "501", "99999999999999999999", "abc", "", "1.5", "1e2", "%00", "5%20"] {
            assert_refused(&server.get(&format!("{path}?limit={limit}")), 400, &format!("{path} {limit}"));
        }
        for cursor in ["x", "", "..", "0.0.0.0.0", "zz.zz", "-1", "%00", "%F0%9F%A6%80", &"f".repeat(5_000)] {
            assert_refused(&server.get(&format!("{path}?cursor={cursor}")), 400, &format!("{path} {cursor}"));
        }
        assert_refused(&server.get(&format!("{path}?limit=1&limit=2")), 400, &format!("{path} twice"));
        assert_eq!(server.get(&format!("{path}?limit=500")).status, 200, "{path}");
        assert_eq!(server.get(&format!("{path}?limit=1")).status, 200, "{path}");
    }
    for path in closed() {
        for parameter in ["nothing=1", "Limit=1", "limit[]=1", "reveal=true", "x", "%00=1"] {
            assert_refused(&server.get(&format!("{path}?{parameter}")), 400, &format!("{path} {parameter}"));
        }
    }
    for path in [
        "codex/analytics/tools?days=0",
        "codex/analytics/tools?days=-1",
        "codex/analytics/tools?days=x",
        "codex/analytics/tools?days=100000",
        "codex/analytics/tools?days=",
        "usage?days=0",
        "usage?by=planet",
        "usage?source=nobody",
        "usage?session_id=x",
        "gaps?status=lost",
        "gaps?source=nobody",
        "codex/sessions?since=yestermorn",
        "codex/sessions?until=2026-13-01",
        "codex/sessions?include_subagents=perhaps",
    ] {
        assert_refused(&server.get(&format!("/api/v1/{path}")), 400, path);
    }
}

#[test]
fn missing_routes_are_not_found_and_nothing_can_be_changed() {
    let (_bench, server) = one_session();
    for path in [
        "/api/v1/agent-sessions/nobody/sessions",
        "/api/v1/agent-sessions/nobody/sessions/x",
        "/api/v1/agent-sessions/nobody/sessions/x/messages",
        "/api/v1/agent-sessions/nobody/analytics/tools",
        "/api/v1/nobody/sessions",
        "/api/v1/sources/nobody/manifest",
        "/api/v1/sources/nobody/streams/messages/records",
        "/api/v1/sources/codex_cli/streams/nothing/records",
        "/api/v1/sources/codex_cli/streams/nothing/records/x",
        "/api/v1/sources/codex_cli/streams/messages/records/x",
        "/api/v1/codex/sessions/",
        "/api/v1/codex/sessions/x",
        "/api/v1/codex",
        "/api/v1",
        "/api/v2/codex/sessions",
        "/index.html",
        "/favicon.ico",
        "/api/v1/codex/sessions/x/y",
    ] {
        assert_refused(&server.get(path), 404, path);
    }
    let bearer = format!("Bearer {}", server.token);
    let headers = [("Authorization", bearer.as_str()), ("Content-Length", "0")];
    for path in closed().iter().map(String::as_str).chain(["/healthz", "/openapi.json", "/docs", "/"]) {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            // A form on that page saves a search.
            let takes_forms = path == "/search";
            if takes_forms && method == "POST" {
                continue;
            }
            let reply = server.request(method, path, &headers);
            assert_refused(&reply, 405, &format!("{method} {path}"));
            let allowed: Vec<&str> = reply.header("allow").split(',').map(str::trim).collect();
            let own: &[&str] = if takes_forms { &["GET", "HEAD", "POST"] } else { &["GET", "HEAD"] };
            assert_eq!(allowed, own, "{method} {path}");
        }
    }
}

#[test]
fn a_link_becomes_a_cookie_and_the_token_leaves_the_address() {
    let (_bench, server) = one_session();
    let reply = server.get_with(&format!("/?token={}", server.token), &[]);
    assert_eq!(reply.status, 303, "{}", reply.text());
    assert!(!reply.header("location").contains(&server.token) && !reply.text().contains(&server.token));
    let (cookie, attributes) = reply.header("set-cookie").split_once(';').unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(attributes.split(';').any(|found| found.trim() == attribute), "{attributes}");
    }
    assert_eq!(server.get_with(reply.header("location"), &[("Cookie", cookie)]).status, 200);
    let list =
        server.get_with("/api/v1/codex/sessions", &[("Cookie", &format!("theme=dark; {cookie}; a=b"))]);
    assert_eq!((list.status, list.json()["total"].as_i64()), (200, Some(1)));
    let foreign = [("Cookie", cookie), ("Origin", "https://evil.example")];
    assert_refused(&server.get_with("/api/v1/codex/sessions", &foreign), 403, "a foreign page");
    for path in ["/?token=", "/?token=wrong", "/?token=annals_00", "/?token=%00"] {
        let reply = server.get_with(path, &[]);
        assert_refused(&reply, 401, path);
        assert!(!reply.headers.contains_key("set-cookie"), "{path}");
    }
    assert_refused(&server.get_with("/?other=1", &[]), 401, "another parameter is not a token");
    assert_refused(&server.get_with("/?other=1", &[("Cookie", cookie)]), 400, "another parameter");
}

#[test]
fn other_machines_have_access_only_once_there_are_members() {
    let bench = Bench::new();
    let ran = bench.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: ") && ran.stderr.contains("members add"), "{}", ran.stderr);
    bench.json(&["members", "add", "ada"]);
    let proxy = ["serve", "--listen", "0.0.0.0:0", "--trust-proxy", "10.1.2.3", "--json"];
    let server = Server::of(bench.command(&proxy));
    let host = server.with_host("127.0.0.1");
    assert_eq!(server.get_with("/healthz", &[("Host", &host)]).status, 200);
    drop(server);
    assert_eq!(bench.run(&["members", "remove", "ada"]).code, 0);
    assert_eq!(bench.run(&["serve", "--listen", "0.0.0.0:0"]).code, 2);
    for listen in ["nowhere", "127.0.0.1", "127.0.0.1:99999"] {
        let ran = bench.run(&["serve", "--listen", listen]);
        assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{listen}: {}", ran.stderr);
    }
}
