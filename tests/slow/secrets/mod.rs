//! No output shows a secret: every verb, every route and every page is tried on homes full of them.

mod exits;
mod groups;
mod http;
mod masked;
mod pages;

use annals_testkit::Bench;
use annals_testkit::worlds::planted;

/// A file with all secrets.
fn note_of_secrets(bench: &Bench) -> String {
    let file = bench.folder.path().join("note.md");
    let places: Vec<String> = planted::secrets().iter().map(|secret| secret.places()).collect();
    std::fs::write(&file, places.join("\n\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Secrets in names and notes of some sessions, and in a saved search.
fn arrange_secrets(bench: &Bench) {
    let file = note_of_secrets(bench);
    let secrets = planted::secrets();
    for (session, secret) in bench.sessions().iter().zip(&secrets).take(9) {
        let id = session["session_id"].as_str().unwrap();
        for arguments in [&["note", id, "--file", &file][..], &["name", id, "--", &secret.line()]] {
            let ran = bench.run(arguments);
            assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        }
    }
    let ran = bench.run(&["search", "--save", "mine", "--", &secrets[0].value]);
    assert!(ran.code < 2, "{}", ran.stderr);
}
