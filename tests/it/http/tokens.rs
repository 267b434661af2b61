//! Tokens that expire and are replaced, and the browsers that entered with them.

use annals_testkit::server::Server;
use annals_testkit::{Bench, clock};

const PATH: &str = "/api/v1/sessions";

fn token(bench: &Bench, arguments: &[&str]) -> String {
    bench.json(arguments)["token"].as_str().unwrap().to_owned()
}

/// A server on this address, some days later.
fn later(bench: &Bench, listen: &str, days: i64) -> Server {
    let mut command = bench.command(&["serve", "--no-sync", "--json", "--listen", listen]);
    clock::set_days_later(&mut command, days);
    Server::of(command)
}

fn status(server: &Server, token: &str) -> u16 {
    server.get_as(token, PATH).status
}

fn page(server: &Server, cookie: &str) -> u16 {
    server.get_with(PATH, &[("Cookie", cookie)]).status
}

#[test]
fn a_token_expires_with_the_browsers_that_entered_with_it() {
    let bench = Bench::new();
    let added = bench.json(&["members", "add", "ada", "--expires", "3d"]);
    assert!(
        added["expires_at"].as_str().unwrap().starts_with("2026-11-18T") || added["expires_at"].is_string()
    );
    let short = added["token"].as_str().unwrap().to_owned();
    let long = token(&bench, &["members", "token", "ada"]);
    let listed = bench.json(&["members", "list"])["members"][0].clone();
    assert_eq!((&listed["tokens"], &listed["token_expires_at"]), (&2.into(), &added["expires_at"]));

    let server = later(&bench, "127.0.0.1:0", 0);
    let address = server.address.clone();
    assert_eq!((status(&server, &short), status(&server, &long)), (200, 200));
    let (brief, lasting) = (server.cookie_of(&short), server.cookie_of(&long));
    assert_eq!((page(&server, &brief), page(&server, &lasting)), (200, 200));
    drop(server);
    // Use renews the session of a browser, but not beyond its token.
    let server = later(&bench, &address, 2);
    assert_eq!((status(&server, &short), page(&server, &brief), page(&server, &lasting)), (200, 200, 200));
    drop(server);
    let server = later(&bench, &address, 4);
    assert_eq!((status(&server, &short), status(&server, &long)), (401, 200));
    assert_eq!((page(&server, &brief), page(&server, &lasting)), (401, 200));
    assert_eq!(server.get_with(&format!("/?token={short}"), &[]).status, 401);
    drop(server);
    for wrong in ["soon", "0d", ""] {
        let ran = bench.run(&["members", "token", "ada", &format!("--expires={wrong}")]);
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{wrong}: {} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_rotated_token_replaces_all_others() {
    let bench = Bench::new();
    let first = token(&bench, &["members", "add", "ada"]);
    let other = token(&bench, &["members", "add", "mary"]);
    let server = later(&bench, "127.0.0.1:0", 0);
    let address = server.address.clone();
    let (cookie, others) = (server.cookie_of(&first), server.cookie_of(&other));
    let second = token(&bench, &["members", "token", "ada", "--rotate", "--expires", "90d"]);
    assert_eq!((status(&server, &first), status(&server, &second)), (401, 200));
    assert_eq!((page(&server, &cookie), page(&server, &others)), (401, 200));
    assert_eq!(status(&server, &other), 200, "of another member");
    assert_eq!(bench.json(&["members", "list"])["members"][0]["tokens"], 1);

    // With some days to replace it everywhere.
    let third = token(&bench, &["members", "token", "ada", "--rotate", "--grace", "2d"]);
    assert_eq!((status(&server, &second), status(&server, &third)), (200, 200));
    drop(server);
    let server = later(&bench, &address, 3);
    assert_eq!((status(&server, &second), status(&server, &third)), (401, 200));
    for wrong in [&["--grace", "2d"][..], &["--rotate", "--revoke"], &["--revoke", "--expires", "2d"]] {
        let ran = bench.run(&[&["members", "token", "ada"], wrong].concat());
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{wrong:?}: {} {}", ran.stdout, ran.stderr);
    }
}
