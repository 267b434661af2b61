//! A hub with the policy `masked`, and files that grow: what was sent is sent once, and comes back as a copy.

use serde_json::{Value, json};

use super::Machine;
use annals_testkit::codex::{ID, conversation, prompt, rollout, text_of};
use annals_testkit::files::append;
use annals_testkit::server::Server;
use annals_testkit::{Bench, Ran};

const OTHER: &str = "0199a1b2-0000-7000-8000-0000000000ff";

/// Assembled at run time, so that no scanner takes this file for a leak.
fn secret() -> String {
    format!("ghp_{}", "aB3dE6gH9".repeat(4))
}

fn run(machine: &Machine, verb: &str, server: &Server, token: &str, more: &[&str]) -> Ran {
    let url = format!("http://{}", server.address);
    let mut command = machine.bench.command(&[&[verb, &url], more].concat());
    Ran::of(command.env("ANNALS_MACHINE", machine.name).env("ANNALS_PUSH_TOKEN", token).output().unwrap())
}

#[track_caller]
fn answer(machine: &Machine, verb: &str, server: &Server, token: &str, more: &[&str]) -> Value {
    let ran = run(machine, verb, server, token, &[more, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn serve(bench: &Bench, policy: &str) -> Server {
    Server::of(bench.command(&[
        "serve",
        "--no-sync",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--policy",
        policy,
    ]))
}

#[test]
fn masked_copies_grow_with_their_files_and_never_replace_them() {
    let hub = Bench::new();
    let token = hub.json(&["members", "add", "ada"])["token"].as_str().unwrap().to_owned();
    let laptop = Machine::new("laptop");
    let path = laptop.bench.transcript(&rollout(ID), &conversation(ID, &format!("the key {}", secret())));
    let folder = path.parent().unwrap();
    let lines = text_of(&conversation(OTHER, &format!("compressed {}", secret())));
    let packed = zstd::bulk::compress(lines.as_bytes(), 3).unwrap();
    std::fs::write(folder.join(format!("{}.zst", rollout(OTHER))), &packed).unwrap();
    let cut = format!("{}.zst", rollout("0199a1b2-0000-7000-8000-0000000000cc"));
    std::fs::write(folder.join(cut), &packed[..packed.len() / 2]).unwrap();
    laptop.sync();
    laptop.run(&["note", ID, &format!("revoke {}", secret())]);
    let server = serve(&hub, "exact");
    assert_eq!(answer(&laptop, "push", &server, &token, &["--dry-run"])["policy"], "exact");
    drop(server);

    let server = serve(&hub, "masked");
    let ran = run(&laptop, "push", &server, &token, &[]);
    assert!(ran.code == 2 && ran.stderr.contains("its policy is masked"), "{}", ran.stderr);
    let first = answer(&laptop, "push", &server, &token, &["--yes"]);
    assert_eq!((&first["policy"], &first["arrangements"]), (&json!("masked"), &json!(1)), "{first}");
    assert_eq!(first["unmasked_files"], 1, "the one that is cut off: {first}");
    let compressed = hub.run(&["show", OTHER, "--reveal"]).stdout;
    assert!(compressed.contains("compressed [secret:github:"), "{compressed}");
    append(&path, &text_of(&prompt(&format!("again {}", secret()))));
    laptop.sync();
    let second = answer(&laptop, "push", &server, &token, &[]);
    assert_eq!(second["files"], 1, "{second}");
    let versions: Vec<Value> = hub.accounts().iter().map(|file| file["versions"].clone()).collect();
    assert!(versions.iter().all(|count| count.is_null() || *count == 1), "the copy grows: {versions:?}");
    let shown = hub.run(&["show", ID, "--reveal"]).stdout;
    assert!(shown.contains("again [secret:github:") && !shown.contains("aB3dE6"), "{shown}");
    assert_eq!(answer(&laptop, "push", &server, &token, &[])["requests"], 1);

    // Elsewhere it is a copy, and where it was captured it stays as it is.
    let desktop = Machine::new("desktop");
    assert_eq!(answer(&desktop, "pull", &server, &token, &[])["policy"], "masked");
    assert!(desktop.run(&["show", ID, "--reveal"]).contains("the key [secret:github:"));
    let pulled = answer(&laptop, "pull", &server, &token, &[]);
    assert_eq!((&pulled["new_files"], &pulled["changed_files"]), (&json!(0), &json!(0)), "{pulled}");
    let own = laptop.run(&["show", ID, "--reveal"]);
    assert!(own.contains(&secret()) && !own.contains("[secret:"), "{own}");
    drop(server);

    // A hub that asks for more than was agreed to gets nothing.
    let server = serve(&hub, "exact");
    append(&path, &text_of(&prompt("more")));
    laptop.sync();
    let ran = run(&laptop, "push", &server, &token, &[]);
    assert!(ran.code == 2 && ran.stderr.contains("its policy is exact"), "{}", ran.stderr);
    assert!(!hub.run(&["show", ID, "--reveal"]).stdout.contains("aB3dE6"));
}
