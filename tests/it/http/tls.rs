//! Encryption: a certificate of the server's own, which `push` and `pull` verify, or a reverse proxy that is named.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::access::assert_refused;
use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::server::Server;
use annals_testkit::{Bench, Ran};

fn pem(name: &str) -> PathBuf {
    Path::new(annals_testkit::ROOT).join("tests/fixtures/tls").join(name)
}

/// The files that a server is started with, which can be replaced.
fn put_certificate(bench: &Bench, name: &str) -> [String; 2] {
    [("chain.pem", format!("{name}.pem")), ("key.pem", format!("{name}-key.pem"))].map(|(to, from)| {
        let to = bench.folder.path().join(to);
        std::fs::copy(pem(&from), &to).unwrap();
        // Copies made in one tick of the clock differ too.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(name.len() as u64 * 60);
        std::fs::File::options().write(true).open(&to).unwrap().set_modified(later).unwrap();
        to.to_str().unwrap().to_owned()
    })
}

/// A server that is stopped when the test ends.
struct Encrypted {
    child: Child,
    url: String,
}

impl Encrypted {
    fn start(bench: &Bench, files: &[&str]) -> Encrypted {
        let arguments = ["serve", "--no-sync", "--json", "--listen", "127.0.0.1:0"];
        Encrypted::of(&mut bench.command(&[&arguments[..], files].concat()))
    }

    fn of(command: &mut Command) -> Encrypted {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let document: Value = serde_json::from_str(&line).unwrap_or_default();
        let server = Encrypted { child, url: document["url"].as_str().unwrap_or_default().to_owned() };
        assert!(server.url.starts_with("https://"), "{line:?}");
        server
    }

    /// The header of an answer, over a verified connection.
    fn cookie_of(&self, token: &str) -> String {
        let authority = std::fs::read(pem("authority.pem")).unwrap();
        let certificate = ureq::tls::Certificate::from_pem(&authority).unwrap();
        let tls = ureq::tls::TlsConfig::builder()
            .root_certs(ureq::tls::RootCerts::new_with_certs(&[certificate]))
            .build();
        let agent: ureq::Agent =
            ureq::Agent::config_builder().tls_config(tls).max_redirects(0).build().into();
        let answer = agent.get(format!("{}/?token={token}", self.url)).call().unwrap();
        answer.headers()["set-cookie"].to_str().unwrap().to_owned()
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn exchange(bench: &Bench, verb: &str, url: &str, token: &str, authority: Option<&str>) -> Ran {
    let mut command = bench.command(&[verb, url]);
    if verb == "push" {
        command.arg("--yes");
    }
    if let Some(authority) = authority {
        command.arg("--ca").arg(pem(authority));
    }
    Ran::of(command.env("ANNALS_PUSH_TOKEN", token).output().unwrap())
}

fn one_session() -> Bench {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "the gears"));
    bench.sync();
    bench
}

#[test]
fn sessions_are_pushed_and_fetched_over_verified_connections() {
    let (hub, laptop) = (Bench::new(), one_session());
    let token = hub.json(&["members", "add", "ada"])["token"].as_str().unwrap().to_owned();
    let [certificate, key] = put_certificate(&hub, "hub");
    let files = ["--tls-cert", &certificate, "--tls-key", &key];
    let server = Encrypted::start(&hub, &files);
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    for (authority, words) in [(None, "--ca FILE"), (Some("other-authority.pem"), "certificate")] {
        let ran = exchange(&laptop, "push", &server.url, &token, authority);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{authority:?}: {}", ran.stderr);
    }
    assert_eq!(hub.sessions().len(), 0);
    let ran = exchange(&laptop, "push", &server.url, &token, Some("authority.pem"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(hub.sessions().len(), 1);
    let new = Bench::new();
    assert_eq!(exchange(&new, "pull", &server.url, &token, Some("authority.pem")).code, 0);
    assert_eq!(new.sessions().len(), 1);

    // Plain HTTP is not answered there, and does not stop the server.
    let plain = server.url.replace("https://", "http://");
    let ran = exchange(&laptop, "pull", &plain, &token, None);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let cookie = server.cookie_of(&token);
    assert!(cookie.starts_with("__Host-annals_") && cookie.ends_with("; Secure"), "{cookie}");

    // A renewed certificate is used without a restart, and a broken one never.
    std::fs::write(&certificate, "-----BEGIN CERTIFICATE-----").unwrap();
    assert_eq!(exchange(&new, "pull", &server.url, &token, Some("authority.pem")).code, 0);
    put_certificate(&hub, "renewed");
    assert_eq!(exchange(&new, "pull", &server.url, &token, Some("other-authority.pem")).code, 0);
    assert_eq!(exchange(&new, "pull", &server.url, &token, Some("authority.pem")).code, 2);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let (hub, laptop) = (Bench::new(), one_session());
    let token = hub.json(&["members", "add", "ada"])["token"].as_str().unwrap().to_owned();
    let [certificate, key] = put_certificate(&hub, "elsewhere");
    let server = Encrypted::start(&hub, &["--tls-cert", &certificate, "--tls-key", &key]);
    let ran = exchange(&laptop, "push", &server.url, &token, Some("authority.pem"));
    assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{}", ran.stderr);
    assert_eq!(hub.sessions().len(), 0);
}

#[test]
fn files_that_are_no_certificate_are_errors() {
    let bench = Bench::new();
    let [certificate, key] = put_certificate(&bench, "hub");
    let other = pem("renewed-key.pem").to_str().unwrap().to_owned();
    let missing = bench.folder.path().join("missing.pem").to_str().unwrap().to_owned();
    for (certificate, key) in
        [(&key, &key), (&certificate, &certificate), (&certificate, &other), (&certificate, &missing)]
    {
        let ran =
            bench.run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key]);
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{certificate} {key}: {}", ran.stderr);
    }
    assert_eq!(bench.run(&["serve", "--tls-cert", &certificate]).code, 2);
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0"]);
    let ran = Ran::of(command.env("ANNALS_TLS_KEY", &key).output().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("server.tls_cert"), "{}", ran.stderr);
    // The settings say the same as the options.
    let server = Encrypted::of(
        bench
            .command(&["serve", "--no-sync", "--json", "--listen", "127.0.0.1:0"])
            .env("ANNALS_TLS_CERT", &certificate)
            .env("ANNALS_TLS_KEY", &key)
            .env("ANNALS_SERVER_HOSTS", "hub.example.org"),
    );
    assert!(server.url.starts_with("https://hub.example.org:"), "{}", server.url);
}

#[test]
fn other_machines_are_reached_only_with_encryption_or_by_a_proxy() {
    let bench = Bench::new();
    bench.json(&["members", "add", "ada"]);
    let ran = bench.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(ran.code == 2 && ran.stdout.is_empty(), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("without encryption") && ran.stderr.contains("--trust-proxy"),
        "{}",
        ran.stderr
    );
    for wrong in [&["--trust-proxy", "proxy"][..], &["--user-header", "X-User"]] {
        let ran = bench.run(&[&["serve", "--listen", "127.0.0.1:0"], wrong].concat());
        assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{wrong:?}: {}", ran.stderr);
    }
    let [certificate, key] = put_certificate(&bench, "hub");
    let listen = ["--listen", "0.0.0.0:0", "--tls-cert", &certificate, "--tls-key", &key];
    drop(Encrypted::of(&mut bench.command(&[&["serve", "--no-sync", "--json"], &listen[..]].concat())));
}

#[test]
fn a_trusted_proxy_names_the_member_and_nobody_else_does() {
    let bench = one_session();
    for (name, role) in [("ada", "member"), ("sophia", "owner"), ("eve", "member")] {
        bench.json(&["members", "add", name, "--role", role]);
    }
    let serve = |proxy: &str| {
        let arguments = ["serve", "--no-sync", "--json", "--listen", "127.0.0.1:0", "--trust-proxy", proxy];
        Server::of(bench.command(&[&arguments[..], &["--user-header", "X-Forwarded-User"]].concat()))
    };
    let path = "/api/v1/sessions";
    let server = serve("127.0.0.0/8");
    let total = |user: &str| {
        let reply = server.get_with(path, &[("X-Forwarded-User", user)]);
        (reply.status, reply.json()["sessions"].as_array().map(Vec::len))
    };
    assert_eq!((total("ada"), total("sophia")), ((200, Some(0)), (200, Some(1))));
    for unknown in ["nobody", "ADA", "ada,sophia", "1"] {
        assert_refused(&server.get_with(path, &[("X-Forwarded-User", unknown)]), 403, unknown);
    }
    let two = [("X-Forwarded-User", "ada"), ("X-Forwarded-User", "sophia")];
    assert_refused(&server.get_with(path, &two), 403, "two users");
    assert_refused(&server.get_with(path, &[("X-Forwarded-User", "")]), 401, "nobody is named");
    assert_refused(&server.get_with(path, &[]), 401, "nobody is named");
    // Programs behind the proxy have tokens; a wrong one is not repaired by a name.
    let wrong = [("X-Forwarded-User", "ada"), ("Authorization", "Bearer annals_00")];
    assert_refused(&server.get_with(path, &wrong), 401, "a wrong token");
    let own = format!("Bearer {}", server.token);
    let reply = server.get_with(path, &[("X-Forwarded-User", "ada"), ("Authorization", &own)]);
    assert_eq!(reply.json()["sessions"].as_array().map(Vec::len), Some(1), "the token decides");
    // A page of somebody else cannot make the browser of a member change anything.
    let change = |headers: &[(&str, &str)]| {
        let all = [&[("X-Forwarded-User", "ada"), ("Content-Type", "application/json")], headers].concat();
        server.send_json("PUT", "/api/v1/searches/mine", &all, &Value::from("x")).status
    };
    assert_eq!(change(&[]), 403);
    assert_eq!(change(&[("Sec-Fetch-Site", "cross-site")]), 403);
    assert_ne!(change(&[("Sec-Fetch-Site", "same-origin")]), 403);
    assert_eq!(bench.run(&["members", "remove", "eve"]).code, 0);
    assert_refused(&server.get_with(path, &[("X-Forwarded-User", "eve")]), 403, "removed");
    drop(server);

    let server = serve("10.1.2.3");
    for user in ["ada", "sophia", "nobody"] {
        assert_refused(&server.get_with(path, &[("X-Forwarded-User", user)]), 401, "not from the proxy");
    }
    let cookie = server.cookie_of(&server.token);
    let reply = server.get_with(path, &[("X-Forwarded-User", "ada"), ("Cookie", &cookie)]);
    assert_eq!(reply.json()["sessions"].as_array().map(Vec::len), Some(1), "the header is ignored");
}
