//! Reads our own sources and fails on what the rules for modules, the door and the layout forbid.

mod architecture;
mod names;
mod requirements;
mod syntax;

use std::path::Path;
use std::{fs, io};

use syntax::Syntax;

/// Path from the root with `/`, and text.
type File = (String, String);

/// A module of the program, and the modules and crates it may import besides itself. Between crates the compiler
/// enforces the boundaries.
const ROOMS: &[(&str, &[&str])] = &[
    ("collect", &["annals_core", "annals_redact", "annals_sources", "annals_store"]),
    ("view", &["annals_core", "annals_redact", "annals_sources", "annals_store"]),
    ("serve", &["annals_core", "annals_store", "config", "view"]),
    (
        "cli",
        &[
            "annals_core",
            "annals_redact",
            "annals_sources",
            "annals_store",
            "collect",
            "config",
            "serve",
            "view",
        ],
    ),
    ("config", &["annals_core"]),
];

const CRATES: [&str; 4] = ["annals_core", "annals_redact", "annals_sources", "annals_store"];

/// Names that people use for providers, besides those of their directories.
const LABELS: &[&str] = &["codex", "claude", "chatgpt"];

/// Directories of the sources that are not providers but shared by them.
const SHARED: [&str; 7] = ["gemini_family", "git", "home", "import", "json", "live", "tape"];

/// Files of views and server that access the whole archive: its keys, its health, where requests come in, and the log of who
/// read what.
const UNSCOPED: [&str; 5] = [
    "src/view/access.rs",
    "src/view/door.rs",
    "src/view/audit/doctor.rs",
    "src/serve/mod.rs",
    "src/serve/access_log.rs",
];

/// Files are split at 500 lines; those that are much longer say why at their start.
const LONGEST_FILE: usize = 600;
const REASON: &str = "//! Longer than other files because ";

#[test]
fn modules_import_only_what_they_may() -> io::Result<()> {
    let planted = [
        (
            "crates/annals/src/view/rows.rs",
            "use annals_core::Key;\nuse crate::{door, collect::{self, Page}};",
        ),
        (
            "crates/annals/src/collect.rs",
            "// crate::view\nconst TEXT: &str = \"crate::view\";\nfn f() -> crate::Error {}",
        ),
        ("crates/annals/src/config.rs", "fn f() { annals_redact::f() }"),
        ("crates/annals/src/serve/a.rs", "use annals_sources::registry;"),
        ("crates/annals/src/attic/mod.rs", ""),
        ("crates/annals/src/lib.rs", "use crate::view;"),
        ("crates/annals-store/src/a.rs", "use crate::view;"),
    ];
    let caught = [
        "crates/annals/src/view/rows.rs:2:",
        "crates/annals/src/config.rs:1:",
        "crates/annals/src/serve/a.rs:1:",
        "crates/annals/src/attic/mod.rs:",
    ];
    check(forbidden_imports, &planted, &caught)
}

#[test]
fn providers_do_not_know_each_other() -> io::Result<()> {
    let planted = [
        (
            "crates/annals-sources/src/one/mod.rs",
            "use super::two::Line;\nuse super::json;\nuse crate::one::Line;",
        ),
        ("crates/annals-sources/src/two/mod.rs", "use crate::{json, one as other};"),
        ("crates/annals-sources/src/two/deep.rs", "use super::super::{json,\n one};"),
        ("crates/annals-sources/src/lib.rs", "use self::one;\nuse crate::two;"),
    ];
    let caught = [
        "crates/annals-sources/src/one/mod.rs:1:",
        "crates/annals-sources/src/two/mod.rs:1:",
        "crates/annals-sources/src/two/deep.rs:1:",
    ];
    check(provider_imports, &planted, &caught)
}

#[test]
fn files_start_with_a_sentence() -> io::Result<()> {
    let planted =
        [("src/a.rs", "use b;"), ("src/b.rs", "//!  \n"), ("src/c.rs", ""), ("src/d.rs", "//! Does.")];
    check(missing_openings, &planted, &["src/a.rs:1:", "src/b.rs:1:", "src/c.rs:1:"])
}

#[test]
fn files_are_short() -> io::Result<()> {
    let (most, more) = ("\n".repeat(LONGEST_FILE), "\n".repeat(LONGEST_FILE + 1));
    let tested = format!("{most}#[cfg(test)]\nmod tests {{\n}}\n");
    let explained = format!("{REASON}it is a table.\n{more}");
    let planted =
        [("src/a.rs", &*most), ("src/b.rs", &more), ("src/c.rs", &tested), ("src/d.rs", &explained)];
    check(long_files, &planted, &["src/b.rs:"])
}

#[test]
fn providers_are_named_only_at_home() -> io::Result<()> {
    let planted = [
        ("crates/annals-sources/src/codex_cli/mod.rs", "// Codex, codex_cli\n// Claude"),
        ("crates/annals-sources/src/pi/mod.rs", "struct Pi;"),
        ("crates/annals-sources/src/lib.rs", "mod codex_cli;\nmod pi;"),
        ("crates/annals/src/lib.rs", "//! Codex.\nconst NAME: &str = \"ChatGPT\";"),
        ("crates/annals/src/config.rs", "fn api() {} // spin\nfn read_pi() {}\nstruct CodexHome;"),
    ];
    let caught = [
        "crates/annals-sources/src/codex_cli/mod.rs:2:",
        "crates/annals/src/lib.rs:2:",
        "crates/annals/src/config.rs:2:",
        "crates/annals/src/config.rs:3:",
    ];
    check(provider_names, &planted, &caught)
}

#[test]
fn only_views_expose_content() -> io::Result<()> {
    let call = "// raw.expose()\nfn f() { print!(\"{}\", raw.expose()) }";
    let planted = [
        ("crates/annals/src/view/a.rs", call),
        ("crates/annals-core/src/text.rs", call),
        ("crates/annals/src/cli/a.rs", call),
    ];
    check(exposed_content, &planted, &["crates/annals/src/cli/a.rs:2:"])
}

#[test]
fn answers_come_from_a_scoped_archive() -> io::Result<()> {
    let whole = "use annals_store::{Archive, Store};\n// Store\nfn f(store: &Store) { store.scoped(scope) }";
    let planted = [
        ("crates/annals/src/view/door.rs", whole),
        ("crates/annals/src/view/a.rs", whole),
        ("crates/annals/src/serve/api/a.rs", "fn f() { g(app.reader()?.scoped(Scope::Owner)) }"),
        ("crates/annals/src/collect/a.rs", whole),
    ];
    let caught = [
        "crates/annals/src/view/a.rs:1:",
        "crates/annals/src/view/a.rs:3:",
        "crates/annals/src/serve/api/a.rs:1:",
    ];
    check(unscoped_answers, &planted, &caught)
}

#[test]
fn nothing_is_left_for_later() -> io::Result<()> {
    let later = ["// TO", "DO: later\nfn f() { todo", "!() }\n#[ig", "nore]\nfn todo() {}"].concat();
    check(leftovers, &[("tests/a.rs", &later)], &["tests/a.rs:1:", "tests/a.rs:2:", "tests/a.rs:3:"])
}

/// A rule must find what was planted, each offence starting as expected, and nothing in the crate itself.
fn check(rule: fn(&[File]) -> Vec<String>, planted: &[(&str, &str)], caught: &[&str]) -> io::Result<()> {
    let planted: Vec<File> =
        planted.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    let mut offences = rule(&planted);
    offences.dedup();
    let as_expected = offences.iter().zip(caught).all(|(offence, start)| offence.starts_with(start));
    assert!(as_expected && offences.len() == caught.len(), "planted: {caught:?}, caught: {offences:#?}");
    let mut files = Vec::new();
    for folder in ["crates", "tests", "benches"] {
        read_sources(Path::new(annals_testkit::ROOT), folder, &mut files)?;
    }
    assert!(files.iter().any(|(path, _)| path.starts_with("crates/annals/src/")), "no sources found");
    let offences = rule(&files);
    assert!(offences.is_empty(), "\n{}\n", offences.join("\n"));
    Ok(())
}

/// Fixtures are data, whatever their files are called.
fn read_sources(root: &Path, folder: &str, files: &mut Vec<File>) -> io::Result<()> {
    let mut entries: Vec<_> = match fs::read_dir(root.join(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?.collect::<Result<_, _>>()?,
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.file_type()?.is_dir() && name != "fixtures" {
            read_sources(root, &path, files)?;
        } else if name.ends_with(".rs") {
            files.push((path, fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

fn forbidden_imports(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for (path, text) in files {
        let Some(room) = room(path) else { continue };
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            offences.push(format!("{path}: `{room}` is no room"));
            continue;
        };
        for (line, names) in Syntax::of(path, text).paths {
            let other = match names.as_slice() {
                [first, second, ..] if first == "crate" => second,
                [first, ..] if CRATES.contains(&first.as_str()) => first,
                _ => continue,
            };
            let is_room = ROOMS.iter().any(|(name, _)| name == other) || CRATES.contains(&other.as_str());
            if is_room && other != room && !allowed.contains(&other.as_str()) {
                offences.push(format!("{path}:{line}: `{room}` must not import `{other}`"));
            }
        }
    }
    offences
}

fn provider_imports(files: &[File]) -> Vec<String> {
    let providers = providers(files);
    let mut offences = Vec::new();
    for (path, text) in files {
        let Some(own) = home(path, &providers) else { continue };
        for (line, names) in Syntax::of(path, text).paths {
            let is_relative = |name: &String| name == "crate" || name == "super";
            let name = names.iter().find(|name| !is_relative(name)).filter(|_| is_relative(&names[0]));
            if let Some(name) = name.filter(|name| *name != own && providers.contains(&name.as_str())) {
                offences.push(format!("{path}:{line}: `{own}` must not know `{name}`"));
            }
        }
    }
    offences
}

fn missing_openings(files: &[File]) -> Vec<String> {
    let opens = |text: &str| {
        let sentence = text.lines().next().and_then(|line| line.strip_prefix("//!"));
        sentence.is_some_and(|sentence| !sentence.trim().is_empty())
    };
    let silent = files.iter().filter(|(_, text)| !opens(text));
    silent.map(|(path, _)| format!("{path}:1: does not open with `//!` and what it is for")).collect()
}

fn long_files(files: &[File]) -> Vec<String> {
    let unexplained = files.iter().filter(|(_, text)| !text.contains(REASON));
    let lengths = unexplained.map(|(path, text)| {
        // Unit tests at the end of a file are counted apart.
        (path, text.lines().take_while(|line| *line != "#[cfg(test)]").count())
    });
    let long = lengths.filter(|(_, lines)| *lines > LONGEST_FILE);
    long.map(|(path, lines)| format!("{path}: {lines} lines, more than {LONGEST_FILE}")).collect()
}

fn provider_names(files: &[File]) -> Vec<String> {
    let providers = providers(files);
    // The testkit generates homes of each client.
    let may_name =
        |path: &str| path == "crates/annals-sources/src/lib.rs" || path.starts_with("crates/annals-testkit/");
    let outside = files.iter().filter(|(path, _)| path.starts_with("crates/") && !may_name(path));
    let found = outside.flat_map(|(path, text)| {
        let own = home(path, &providers).unwrap_or("");
        offending_lines(path, text, |line| {
            if path == "crates/annals/src/lib.rs" && line.trim_start().starts_with("//") {
                return None;
            }
            // A variable that is masked everywhere is not a provider, nor are the old names of editors' extensions.
            let others = ["openai_api_key", "claude-dev", "roo-cline"];
            let line = others.iter().fold(line.to_lowercase(), |line, other| line.replace(other, ""));
            let label = LABELS.iter().find(|label| line.contains(**label) && !own.contains(**label));
            let name = || providers.iter().find(|name| **name != own && has_word(&line, name));
            label.or_else(name).map(|word| format!("names the provider `{word}`"))
        })
    });
    found.collect()
}

fn exposed_content(files: &[File]) -> Vec<String> {
    let inside = |path: &str| room(path) == Some("view") || path == "crates/annals-core/src/text.rs";
    let outside = files.iter().filter(|(path, _)| path.starts_with("crates/") && !inside(path));
    let found = outside.flat_map(|(path, text)| {
        let calls = Syntax::of(path, text).calls.into_iter().filter(|(_, name)| name == "expose");
        calls.map(|(line, _)| format!("{path}:{line}: only `view` opens raw content")).collect::<Vec<_>>()
    });
    found.collect()
}

/// Who gets an answer is decided where a request comes in; the types do the rest.
fn unscoped_answers(files: &[File]) -> Vec<String> {
    let mut offences = Vec::new();
    for (path, text) in files {
        if !matches!(room(path), Some("view" | "serve")) || UNSCOPED.iter().any(|end| path.ends_with(end)) {
            continue;
        }
        let syntax = Syntax::of(path, text);
        let paths = syntax.paths.into_iter().filter(|(_, names)| names.iter().any(|name| name == "Store"));
        let calls = syntax.calls.into_iter().filter(|(_, name)| name == "scoped");
        let mut lines: Vec<usize> = paths.map(|(line, _)| line).chain(calls.map(|(line, _)| line)).collect();
        lines.sort_unstable();
        let offence = |line| format!("{path}:{line}: answers are read from the `Archive` of a `View`");
        offences.extend(lines.into_iter().map(offence));
    }
    offences
}

fn leftovers(files: &[File]) -> Vec<String> {
    // Split, or this file would find itself.
    let needles = [["TO", "DO"], ["FIX", "ME"], ["todo", "!("], ["unimple", "mented!("], ["#[ig", "nore]"]];
    let needles = needles.map(|pieces| pieces.concat());
    let find = |line: &str| needles.iter().find(|needle| line.contains(*needle)).cloned();
    files.iter().flat_map(|(path, text)| offending_lines(path, text, find)).collect()
}

fn offending_lines(path: &str, text: &str, find: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let found = text.lines().zip(1..).filter_map(|(line, number)| Some((number, find(line)?)));
    found.map(|(number, offence)| format!("{path}:{number}: {offence}")).collect()
}

/// The module of a file of the program; the crate's two root files may use all modules.
fn room(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("crates/annals/src/")?;
    let first = inside.split('/').next().map(|first| first.strip_suffix(".rs").unwrap_or(first))?;
    (inside != "main.rs" && inside != "lib.rs").then_some(first)
}

fn providers(files: &[File]) -> Vec<&str> {
    let inside = files.iter().filter_map(|(path, _)| path.strip_prefix("crates/annals-sources/src/"));
    let folders = inside.filter_map(|path| path.strip_suffix("/mod.rs"));
    folders.filter(|name| !name.contains('/') && !SHARED.contains(name)).collect()
}

/// The provider whose directory contains a file.
fn home<'p>(path: &str, providers: &[&'p str]) -> Option<&'p str> {
    let (folder, _) = path.strip_prefix("crates/annals-sources/src/")?.split_once('/')?;
    providers.iter().copied().find(|provider| *provider == folder)
}

/// A directory may be named after a syllable, so its name counts only as a separate word.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_letter = |letter: char| letter.is_alphanumeric();
        !line[..at].ends_with(is_letter) && !line[at + word.len()..].starts_with(is_letter)
    })
}
