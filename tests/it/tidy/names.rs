//! One public name is one type, and names that were replaced do not come back.

use std::collections::BTreeMap;
use std::io;

use super::{File, check, offending_lines};

/// `Result` is an alias with each crate's error, as everywhere in Rust.
const ALIASES: [&str; 1] = ["Result"];

/// Names that say nothing, and what took their place.
const REPLACED: &[(&str, &str)] = &[
    ("Desk", "`Context` or `View`"),
    ("Teller", "`EntryBuilder`"),
    ("OriginTeller", "`OriginBuilder`"),
    ("Problem", "`Error` or `Warning`"),
    ("Tried", "`Attempts`"),
    ("Wanted", "what is wanted"),
    ("Why", "`FailureKind`"),
    ("Wish", "`…Query` or `…Options`"),
    ("begun", "`started`"),
    ("in_passing", "`opportunistic`"),
    ("is_weather", "`is_transient`"),
    ("kin", "`siblings`"),
    ("line_print", "`line_fingerprint`"),
    ("look_before_answer", "`refresh`"),
    ("rival", "`siblings`"),
    ("telling", "`is_distinctive`"),
    ("twin_of", "`rows_owner`"),
];

/// What a function does is a verb; these were participles and nouns.
const NO_VERBS: [&str; 7] = ["asked", "due", "said", "settled", "surrounded", "told", "conversations"];

/// Files that were named after nothing in them.
const NO_SUBJECTS: [&str; 9] =
    ["book", "desk", "fresh", "housekeeping", "judging", "side", "survivors", "whole", "words"];

#[test]
fn public_types_have_one_name() -> io::Result<()> {
    let planted = [
        ("crates/a/src/one.rs", "pub struct Gear;\npub(super) struct Wheel;\nstruct Oil;"),
        (
            "crates/b/src/two.rs",
            "pub enum Gear {}\npub struct Wheel;\npub type Result = ();\npub trait Oil {}",
        ),
        ("crates/b/src/three.rs", "pub type Result = ();"),
        ("tests/it/four.rs", "pub struct Gear;"),
    ];
    check(repeated_types, &planted, &["crates/b/src/two.rs:1:"])
}

#[test]
fn replaced_names_stay_away() -> io::Result<()> {
    let planted = [
        ("src/a.rs", "// Desk\nstruct DeskLamp;\nfn f() { \"Desk\" }"),
        ("src/b.rs", "struct Desk;\nfn is_weather() {}"),
        ("src/c.rs", "fn f(query: SessionsAsk) {}"),
        ("src/d.rs", "fn told() {}\nfn tell() { told }\nfn settle_rows() {}"),
        ("crates/e/src/words.rs", ""),
        ("crates/e/src/ask_rows.rs", ""),
        ("tests/it/words.rs", ""),
    ];
    let places = [
        "src/b.rs:1:",
        "src/b.rs:2:",
        "src/c.rs:1:",
        "src/d.rs:1:",
        "src/d.rs:3:",
        "crates/e/src/words.rs:1:",
        "crates/e/src/ask_rows.rs:1:",
    ];
    check(replaced_names, &planted, &places)
}

fn repeated_types(files: &[File]) -> Vec<String> {
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    let mut offences = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with("crates/")) {
        for (line, number) in text.lines().zip(1..) {
            let Some(name) = public_type(line).filter(|name| !ALIASES.contains(name)) else { continue };
            let place = format!("{path}:{number}");
            match known.get(name) {
                Some(first) => {
                    offences.push(format!("{place}: `{name}` is also the name of a type in {first}"))
                }
                None => drop(known.insert(name, place)),
            }
        }
    }
    offences
}

/// The type that a line makes public without restriction.
fn public_type(line: &str) -> Option<&str> {
    let (kind, rest) = line.strip_prefix("pub ")?.split_once(' ')?;
    let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    ["struct", "enum", "trait", "type", "union"].contains(&kind).then_some(name)
}

fn replaced_names(files: &[File]) -> Vec<String> {
    // This file lists them.
    let others = files.iter().filter(|(path, _)| !path.ends_with("tidy/names.rs"));
    let found = others.flat_map(|(path, text)| {
        let lines = offending_lines(path, text, |line| {
            let code = line.split("//").next().unwrap_or_default();
            let code: String = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
            let words: Vec<&str> =
                code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
            words.iter().find_map(|word| better_name(word)).or_else(|| function_without_verb(&words))
        });
        lines.into_iter().chain(file_without_subject(path))
    });
    found.collect()
}

fn better_name(word: &str) -> Option<String> {
    let replaced = REPLACED.iter().find(|(name, _)| *name == word);
    let query = (word.len() > 3 && word.ends_with("Ask")).then_some(("", "`…Query`"));
    let (_, better) = replaced.copied().or(query)?;
    Some(format!("`{word}` is {better} now"))
}

fn function_without_verb(words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| *word == "fn")?;
    let name = words.get(at + 1)?;
    let has_none = NO_VERBS.contains(name) || name.starts_with("settle");
    has_none.then(|| format!("`{name}` does not say what it does"))
}

fn file_without_subject(path: &str) -> Option<String> {
    let name = path.strip_suffix(".rs")?.rsplit('/').next()?;
    let has_none = path.starts_with("crates/") && (NO_SUBJECTS.contains(&name) || name.starts_with("ask_"));
    has_none.then(|| format!("{path}:1: a file is named after its subject"))
}
