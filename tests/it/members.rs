//! Members on the command line: added, listed, given tokens and removed, and no token is stored in plain text.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::files::files_below;
use annals_testkit::{Bench, Ran};

fn is_token(text: &str) -> bool {
    let digits = text.strip_prefix("annals_").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn members(bench: &Bench) -> Vec<Value> {
    bench.json(&["members", "list"])["members"].as_array().unwrap().clone()
}

fn member(bench: &Bench, name: &str) -> Value {
    let members = members(bench);
    members.into_iter().find(|member| member["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The only line of stdout.
fn shown_token(ran: &Ran) -> String {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let token = ran.stdout.trim_end().to_owned();
    assert!(is_token(&token), "{}", ran.stdout);
    assert!(!ran.stderr.contains(&token), "shown twice");
    token
}

/// Fails with a message and a hint, as text and as JSON, and prints nothing.
#[track_caller]
fn assert_refused(bench: &Bench, arguments: &[&str], words: &str) {
    let ran = bench.run(arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {}", ran.stderr);
    assert!(ran.stderr.contains(words) && ran.stderr.contains("hint: "), "{arguments:?}: {}", ran.stderr);
    let ran = bench.run(&[arguments, &["--json"]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert!(document["error"]["message"].as_str().unwrap().contains(words), "{document}");
    assert!(!document["error"]["hint"].as_str().unwrap().is_empty(), "{document}");
}

#[test]
fn a_new_member_gets_a_token_that_is_shown_once() {
    let bench = Bench::new();
    assert_eq!(bench.json(&["members", "list"]), json!({"members": [], "next_cursor": null}));
    assert!(bench.run(&["members", "list"]).stdout.contains("no members"));
    let ran = bench.run(&["members", "add", "ada"]);
    let token = shown_token(&ran);
    assert_eq!(ran.stdout, format!("{token}\n"));
    assert!(ran.stderr.contains("shown only once"), "{}", ran.stderr);
    let quiet = bench.run(&["members", "add", "charles", "--quiet"]);
    shown_token(&quiet);
    assert_eq!(quiet.stderr, "");
    let answer = bench.json(&["members", "add", "mary", "--role", "admin", "--organisation", "engines"]);
    assert_eq!(answer["member"], "mary");
    assert!(is_token(answer["token"].as_str().unwrap()), "{answer}");
    let names: Vec<Value> = members(&bench).iter().map(|member| member["name"].clone()).collect();
    assert_eq!(names, ["mary", "ada", "charles"], "by organisation, then by name");
}

#[test]
fn a_list_shows_roles_and_organisations_and_no_tokens() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let mut tokens = vec![shown_token(&bench.run(&["members", "add", "ada"]))];
    for role in ["owner", "admin", "member"] {
        let name = format!("{role} one");
        let added = bench.run(&["members", "add", &name, "--role", role, "--organisation", "engines"]);
        tokens.push(shown_token(&added));
        let member = member(&bench, &name);
        assert_eq!((&member["role"], &member["organisation"]), (&role.into(), &"engines".into()));
        assert_eq!((&member["tokens"], &member["homes"]), (&1.into(), &0.into()));
        assert_eq!(member["last_used_at"], Value::Null);
    }
    let ada = member(&bench, "ada");
    assert_eq!((&ada["role"], &ada["organisation"]), (&"member".into(), &"home".into()));
    let known = [
        "name",
        "organisation",
        "role",
        "homes",
        "machines",
        "sessions",
        "bytes",
        "last_push_at",
        "tokens",
        "added_at",
        "last_used_at",
        "token_expires_at",
        "cost_usd",
        "masked_homes",
    ];
    let fields: Vec<&String> = ada.as_object().unwrap().keys().collect();
    assert_eq!(fields, known);
    let listed = bench.run(&["members", "list"]).stdout;
    for words in ["ada", "home", "member", "owner one", "engines", "admin", "never"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let secret = regex::Regex::new("annals_|[0-9a-f]{32}").unwrap();
    let as_json = bench.run(&["members", "list", "--json", "--reveal"]).stdout;
    for answer in [listed, as_json, bench.run(&["members", "list", "--verbose"]).stdout] {
        assert!(!secret.is_match(&answer), "{answer}");
    }
    assert_eq!(tokens.iter().collect::<BTreeSet<_>>().len(), tokens.len(), "each has another");
}

#[test]
fn tokens_are_added_and_ended() {
    let bench = Bench::new();
    let first = shown_token(&bench.run(&["members", "add", "ada"]));
    let second = shown_token(&bench.run(&["members", "token", "ada"]));
    let third = bench.json(&["members", "token", "ada"]);
    assert_eq!(third["member"], "ada");
    let third = third["token"].as_str().unwrap();
    assert!(is_token(third) && first != second && second != third && first != third);
    assert_eq!(member(&bench, "ada")["tokens"], 3);
    shown_token(&bench.run(&["members", "add", "mary"]));

    let ran = bench.run(&["members", "token", "ada", "--revoke"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "revoked 3 tokens of ada\n"), "{}", ran.stderr);
    assert_eq!(member(&bench, "ada")["tokens"], 0);
    assert_eq!(member(&bench, "mary")["tokens"], 1, "another's stay");
    let again = bench.json(&["members", "token", "ada", "--revoke"]);
    assert_eq!(again, json!({"member": "ada", "done": "revoked"}));
    shown_token(&bench.run(&["members", "token", "ada"]));
    assert_eq!(member(&bench, "ada")["tokens"], 1);
}

#[test]
fn a_member_who_is_removed_may_come_back_with_other_tokens() {
    let bench = Bench::new();
    let first = shown_token(&bench.run(&["members", "add", "ada", "--role", "admin"]));
    assert_eq!(bench.run(&["members", "remove", "ada"]).code, 0);
    assert_eq!(members(&bench), Vec::<Value>::new());
    assert_refused(&bench, &["members", "token", "ada"], "no member named");
    assert_refused(&bench, &["members", "remove", "ada"], "no member named");

    let second = shown_token(&bench.run(&["members", "add", "ada", "--organisation", "engines"]));
    assert_ne!(first, second);
    let ada = member(&bench, "ada");
    assert_eq!((&ada["role"], &ada["organisation"]), (&"member".into(), &"engines".into()));
    assert_eq!(ada["tokens"], 1, "the old ones stay ended");
    let removed = bench.json(&["members", "remove", "ada"]);
    assert_eq!(removed, json!({"member": "ada", "done": "removed"}));
}

#[test]
fn wrong_names_are_refused_with_a_way_out() {
    let bench = Bench::new();
    let token = shown_token(&bench.run(&["members", "add", "ada"]));
    assert_refused(&bench, &["members", "add", "ada"], "is already a member");
    assert_refused(&bench, &["members", "add", "ada", "--role", "owner"], "is already a member");
    assert_eq!(member(&bench, "ada")["role"], "member", "a refused call changes nothing");
    assert_eq!(member(&bench, "ada")["tokens"], 1);

    let long = "a".repeat(81);
    for name in ["", " ", " ada", "ada ", "a/b", "a\nb", "a\u{1b}[31mb", "a'b", "<b>", &long] {
        assert_refused(&bench, &["members", "add", name], "invalid name");
        assert_refused(&bench, &["members", "add", "mary", "--organisation", name], "invalid name");
    }
    for name in ["Ada Lovelace", "ada@example.com", "Zoë-Ünal_2.0", &"é".repeat(80)] {
        shown_token(&bench.run(&["members", "add", name]));
        assert_eq!(member(&bench, name)["tokens"], 1);
    }
    for arguments in [&["token", "nobody"][..], &["token", "nobody", "--revoke"], &["remove", "nobody"]] {
        assert_refused(&bench, &[&["members"], arguments].concat(), "no member named");
    }
    // Names are case-sensitive.
    assert_refused(&bench, &["members", "remove", "ADA"], "no member named");
    assert_refused(&bench, &["members", "remove", &token], "no member named");
    let ran = bench.run(&["members", "add", "mary", "--role", "king"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("owner, admin, member"), "{}", ran.stderr);
}

#[test]
fn no_file_of_the_archive_contains_a_token() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let mut tokens = vec![
        shown_token(&bench.run(&["members", "add", "ada"])),
        shown_token(&bench.run(&["members", "token", "ada"])),
        shown_token(&bench.run(&["members", "add", "mary", "--role", "owner"])),
    ];
    bench.sync();
    assert_no_token(&bench, &tokens);
    bench.run(&["members", "token", "ada", "--revoke"]);
    bench.run(&["members", "remove", "mary"]);
    tokens.push(shown_token(&bench.run(&["members", "add", "mary"])));
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_no_token(&bench, &tokens);
}

/// Neither as text nor as the bytes that it encodes.
fn assert_no_token(bench: &Bench, tokens: &[String]) {
    let files = files_below(&bench.archive());
    assert!(files.iter().any(|path| path.file_name().unwrap() == "annals.db"), "{files:?}");
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        for token in tokens {
            let digits = token.strip_prefix("annals_").unwrap();
            let spelt: Vec<u8> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
                .collect();
            for needle in [digits.as_bytes(), &spelt] {
                let found = bytes.windows(needle.len()).any(|window| window == needle);
                assert!(!found, "{} holds {token}", path.display());
            }
        }
    }
}
