//! Whatever is typed into a search, the result is an answer or a clear refusal.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::search::talk;
use annals_testkit::server::{Server, escaped};
use annals_testkit::{Bench, Ran};

/// Database terms that must never appear in an answer.
const INNARDS: [&str; 7] =
    ["SQL", "sqlite", "syntax error", "no such column", "LIKE or GLOB", "panicked", "unrecognized token"];

/// Queries that have broken searches elsewhere.
const ODD: &[&str] = &[
    "'; drop table message; --",
    "\"",
    "\"\"",
    "\"\"\"",
    "\" \"",
    "\"unclosed phrase",
    "a\" b\"c \"d",
    "'",
    "`",
    "\\",
    "\\\\",
    "%",
    "_",
    "%gears%",
    "*",
    "**",
    "*gears",
    "gears**",
    "g*s",
    "OR",
    "OR OR",
    "OR gears",
    "gears OR",
    "gears OR OR oil",
    "AND",
    "NOT gears",
    "NEAR(gears oil)",
    "gears NEAR/3 oil",
    "-",
    "--",
    "---",
    "-gears",
    "--gears",
    "- gears",
    "gears -",
    "-\"",
    "-\"oil",
    ":",
    "::",
    ":gears",
    "gears:",
    "title:gears",
    "rowid:1",
    "source:",
    "source:\"",
    "role:",
    "role:\"user\"",
    "-role:user",
    "tool:",
    "file:/",
    "file:\\",
    "since:",
    "since:-1d",
    "since:99999999999999999999d",
    "since:9999-12-31",
    "until:0000-00-00",
    "until:-9223372036854775808",
    "since:1d since:2d",
    "kind:message kind:message",
    "(gears",
    "gears)",
    "(gears OR oil) AND",
    "{gears}",
    "^gears",
    "gears ~ oil",
    "+gears",
    "\u{0}",
    "gears\u{0}oil",
    "\u{1}tshell",
    "\u{feff}gears",
    "\u{202e}sraeg",
    "e\u{301}",
    "👩‍💻",
    "🦀*",
    "İ",
    "ß",
    "ﬁ",
    "Ǆ",
    "\u{10ffff}",
    "\u{fffd}\u{fffd}",
    "\r\n\t",
    "!!!???...",
    "$1",
    "?1",
    ":name",
    "@x",
    "<script>",
    "gears' OR '1'='1",
];

#[track_caller]
fn assert_civil(text: &str, query: &str) {
    // The query itself may contain such words.
    if INNARDS.iter().any(|word| query.to_lowercase().contains(&word.to_lowercase())) {
        return;
    }
    for word in INNARDS {
        assert!(!text.contains(word), "{query:?} gives {word:?}: {text}");
    }
}

#[track_caller]
fn assert_over_http(server: &Server, query: &str) {
    let reply = server.get(&format!("/api/v1/search?limit=3&q={}", escaped(query)));
    let text = reply.text();
    assert!([200, 400].contains(&reply.status), "{query:?}: {} {text}", reply.status);
    assert_civil(&text, query);
    let answer = reply.json();
    if reply.status == 400 {
        assert!(answer["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{query:?}: {text}");
    } else {
        assert_eq!(answer["query"], query);
    }
}

fn home() -> Bench {
    let bench = Bench::new();
    talk(&bench, 1, &["oil the gears with 100% care", "gears OR oil: it's a \"phrase\" of C:\\path_x"]);
    talk(&bench, 2, &["drop table gears; 歯車に油 größer"]);
    bench.sync();
    bench
}

#[test]
fn odd_queries_are_answered_or_refused_on_the_command_line() {
    let bench = home();
    let long = ["gears ".repeat(17_000), "g".repeat(100_000), "\"".repeat(100_000)];
    for query in
        ODD.iter().copied().filter(|query| !query.contains('\0')).chain(long.iter().map(String::as_str))
    {
        for json in [false, true] {
            let options: &[&str] = if json { &["search", "--json", "--"] } else { &["search", "--"] };
            let ran = bench.run(&[options, &[query]].concat());
            let start: String = query.chars().take(60).collect();
            assert!([0, 1, 2].contains(&ran.code), "{start:?}: {} {}", ran.code, ran.stderr);
            let hint = if json { "\"hint\"" } else { "hint: " };
            assert!(ran.code != 2 || ran.stderr.contains(hint), "{start:?}: {}", ran.stderr);
            assert_civil(&ran.stderr, query);
            assert!(!ran.stdout.contains("panicked"), "{start:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn bytes_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let bench = home();
    for bytes in [&b"gears\xff"[..], b"\xed\xa0\x80", b"\xc3("] {
        let ran = Ran::of(
            bench.command(&["search", "--"]).arg(std::ffi::OsStr::from_bytes(bytes)).output().unwrap(),
        );
        assert!(ran.code == 2 && !ran.stderr.contains("panicked"), "{}: {}", ran.code, ran.stderr);
    }
    let server = Server::without_refresh(&bench);
    for part in ["%ff", "%ed%a0%80", "gears%00%ff", "%", "%zz", "%u0000"] {
        let reply = server.get(&format!("/api/v1/search?q={part}"));
        assert!([200, 400].contains(&reply.status), "{part}: {} {}", reply.status, reply.text());
    }
}

#[test]
fn any_query_is_answered_or_refused_over_http() {
    let bench = home();
    let server = Server::without_refresh(&bench);
    ODD.iter().for_each(|query| assert_over_http(&server, query));
    for long in ["gears ".repeat(3_000), "\"gears ".repeat(2_000), "g".repeat(20_000), "a.".repeat(9_000)] {
        assert_over_http(&server, &long);
    }
    let odd = proptest::sample::select(ODD);
    let word = prop_oneof![
        3 => odd.prop_map(str::to_owned),
        2 => "\\PC{0,12}",
        1 => any::<String>(),
        2 => "(source|project|role|tool|file|model|branch|since|until|kind):[ -~]{0,8}",
        2 => "[-\"*]{0,2}(gears|oil|größer|歯車)[\"*:]{0,2}",
    ];
    let query = proptest::collection::vec(word, 0..6).prop_map(|words| words.join(" "));
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&query, |query| {
            assert_over_http(&server, &query);
            Ok(())
        })
        .unwrap();
    // The server is still healthy.
    assert_eq!(server.json("/api/v1/search?q=gears")["total"], 2);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn odd_parameters_are_refused() {
    let bench = home();
    let server = Server::without_refresh(&bench);
    for parameters in [
        "q=gears&limit=0",
        "q=gears&limit=-1",
        "q=gears&limit=501",
        "q=gears&limit=x",
        "q=gears&cursor=zz",
        "q=gears&cursor=1",
        "q=gears&cursor=1.1.1",
        "q=gears&sort=worst",
        "q=gears&role=king",
        "q=gears&kind=word",
        "q=gears&since=soon",
        "q=gears&source=nobody",
        "q=gears&unknown=1",
        "q=",
        "",
    ] {
        let reply = server.get(&format!("/api/v1/search?{parameters}"));
        assert_eq!(reply.status, 400, "{parameters}: {}", reply.text());
        assert_civil(&reply.text(), parameters);
    }
    for cursor in ["0.0", "1.0", "7fffffff.7fffffff"] {
        assert_eq!(server.get(&format!("/api/v1/search?q=gears&cursor={cursor}")).status, 200, "{cursor}");
    }
}
