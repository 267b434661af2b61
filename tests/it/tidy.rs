//! Reads the crate's own sources and fails on what the rooms, the doors and the house rules forbid.

use std::path::Path;
use std::{fs, io};

/// Path from the root with `/`, and text.
type File = (String, String);

/// A room of the program, and the rooms and crates that it may import; itself goes without saying. Between crates the
/// compiler holds the boundaries.
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

/// Words that people call providers by, beside the names of their folders.
const LABELS: &[&str] = &["codex", "claude", "chatgpt"];

/// Folders of the sources that are no provider: what providers share.
const SHARED: [&str; 5] = ["home", "import", "json", "live", "tape"];

const LONGEST_FILE: usize = 800;

#[test]
fn rooms_import_only_what_they_may() -> io::Result<()> {
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
fn files_open_with_a_sentence() -> io::Result<()> {
    let planted =
        [("src/a.rs", "use b;"), ("src/b.rs", "//!  \n"), ("src/c.rs", ""), ("src/d.rs", "//! Does.")];
    check(missing_openings, &planted, &["src/a.rs:1:", "src/b.rs:1:", "src/c.rs:1:"])
}

#[test]
fn files_are_short() -> io::Result<()> {
    let planted = [("src/a.rs", &*"\n".repeat(LONGEST_FILE)), ("src/b.rs", &"\n".repeat(LONGEST_FILE + 1))];
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
    let call = "// raw.expose()\nlet bytes = raw.expose();";
    let planted = [
        ("crates/annals/src/view/a.rs", call),
        ("crates/annals-core/src/text.rs", call),
        ("crates/annals/src/cli/a.rs", call),
    ];
    check(exposed_content, &planted, &["crates/annals/src/cli/a.rs:2:"])
}

#[test]
fn questions_start_with_a_scope() -> io::Result<()> {
    let good = "impl Store {\n pub fn a(&self) {}\n pub(crate) fn b(x: u8) {}\n\
        pub fn c<F: Fn(u8) -> u8>(&'a mut self, scope: &'a Scope, f: F) {}\n\
        // no scope: opens the file\n /// Opens.\n #[must_use]\n pub fn d(path: &Path) {}\n}";
    let bad = "pub fn a(x: u8) {}\nimpl<T> Store {\n pub const fn b(\n &self,\n x: Map<u8, u8>,\n\
        scope: &Scope) {}\n // no scope:\n pub fn c(scope: Scope) {}\n}";
    let planted = [
        ("crates/annals-store/src/a.rs", good),
        ("crates/annals-store/src/b.rs", bad),
        ("crates/annals/src/view/c.rs", bad),
        ("crates/annals/src/cli/d.rs", bad),
    ];
    let in_store = ["crates/annals-store/src/b.rs:3:", "crates/annals-store/src/b.rs:8:"];
    let in_view = [
        "crates/annals/src/view/c.rs:1:",
        "crates/annals/src/view/c.rs:3:",
        "crates/annals/src/view/c.rs:8:",
    ];
    check(missing_scopes, &planted, &[&in_store[..], &in_view].concat())
}

#[test]
fn nothing_is_left_for_later() -> io::Result<()> {
    let later = ["// TO", "DO: later\nfn f() { todo", "!() }\n#[ig", "nore]\nfn todo() {}"].concat();
    check(leftovers, &[("tests/a.rs", &later)], &["tests/a.rs:1:", "tests/a.rs:2:", "tests/a.rs:3:"])
}

#[test]
fn comments_and_literals_become_blank() {
    let table = [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ \" */ d", "a                   d"),
        (r#"f("a\"b", b"c", 'd', '\'', b'"')"#, "f(      ,     ,    ,     ,     )"),
        (r##"r#"a" b"# + br"\" + r#type"##, "          +       + r#type"),
        ("fn f<'a>(x: &'a str) {} // 'b", "fn f<'a>(x: &'a str) {}      "),
        ("crab\"x\" /", "crab    /"),
        ("\"a", "  "),
    ];
    for (text, expected) in table {
        assert_eq!(blank(text, Keep::Nothing), expected);
    }
    assert_eq!(blank("\"a\" // b", Keep::Literals), "\"a\"     ");
}

/// A rule must find what was planted, each offence starting as told, and nothing in the crate itself.
fn check(rule: fn(&[File]) -> Vec<String>, planted: &[(&str, &str)], caught: &[&str]) -> io::Result<()> {
    let planted: Vec<File> =
        planted.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
    let mut offences = rule(&planted);
    offences.dedup();
    let as_told = offences.iter().zip(caught).all(|(offence, start)| offence.starts_with(start));
    assert!(as_told && offences.len() == caught.len(), "planted: {caught:?}, caught: {offences:#?}");
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
        let code = blank(text, Keep::Nothing);
        let within = paths_after(&code, "crate").into_iter().map(|(line, names)| (line, names[0].clone()));
        let crates = CRATES.iter().flat_map(|name| {
            paths_after(&code, name).into_iter().map(|(line, _)| (line, (*name).to_owned()))
        });
        for (line, other) in within.chain(crates) {
            let other = other.as_str();
            let is_room = ROOMS.iter().any(|(name, _)| *name == other) || CRATES.contains(&other);
            if is_room && other != room && !allowed.contains(&other) {
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
        let code = blank(text, Keep::Nothing);
        for (line, names) in paths_after(&code, "crate").into_iter().chain(paths_after(&code, "super")) {
            let name = names.iter().find(|name| *name != "super");
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
    let lengths = files.iter().map(|(path, text)| (path, text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > LONGEST_FILE);
    long.map(|(path, lines)| format!("{path}: {lines} lines, more than {LONGEST_FILE}")).collect()
}

fn provider_names(files: &[File]) -> Vec<String> {
    let providers = providers(files);
    // The testkit makes up homes of each client.
    let may_name =
        |path: &str| path == "crates/annals-sources/src/lib.rs" || path.starts_with("crates/annals-testkit/");
    let outside = files.iter().filter(|(path, _)| path.starts_with("crates/") && !may_name(path));
    let found = outside.flat_map(|(path, text)| {
        let own = home(path, &providers).unwrap_or("");
        let text = if path == "crates/annals/src/lib.rs" { &blank(text, Keep::Literals) } else { text };
        offending_lines(path, text, |line| {
            // A variable that is masked wherever it stands is no provider.
            let line = line.to_lowercase().replace("openai_api_key", "");
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
        offending_lines(path, &blank(text, Keep::Nothing), |line| {
            line.contains(".expose(").then(|| "only `view` opens raw content".to_string())
        })
    });
    found.collect()
}

fn missing_scopes(files: &[File]) -> Vec<String> {
    let exported = files.iter().find(|(path, _)| path == "crates/annals/src/view/mod.rs");
    let exported: Option<std::collections::HashSet<&str>> =
        exported.map(|(_, text)| text.split(|letter| !is_word(letter)).collect());
    let mut offences = Vec::new();
    for (path, text) in files {
        let in_store = path.starts_with("crates/annals-store/");
        if room(path) != Some("view") && !in_store {
            continue;
        }
        let code = blank(text, Keep::Nothing);
        let lines: Vec<&str> = text.lines().collect();
        for (start, signature) in public_functions(&code) {
            let line = line_of(&code, start);
            // What the room does not hand on is its own business.
            let name = signature.split(['(', '<']).next().and_then(|head| head.rsplit(' ').next());
            let is_ours =
                exported.as_ref().is_some_and(|names| !name.is_some_and(|name| names.contains(name)));
            if !in_store && exported.is_some() && (is_ours || in_impl(&code, start)) {
                continue;
            }
            if in_store && !in_impl(&code, start) || has_reason(&lines[..line - 1]) {
                continue;
            }
            let parameters = parameters(signature);
            let mut beyond_self = parameters.iter().filter(|parameter| !is_self(parameter));
            if beyond_self.next().is_some_and(|first| !is_scope(first)) {
                offences.push(format!("{path}:{line}: its first parameter is not `scope: &Scope`"));
            }
        }
    }
    offences
}

fn leftovers(files: &[File]) -> Vec<String> {
    // In pieces, or this file would find itself.
    let needles = [["TO", "DO"], ["FIX", "ME"], ["todo", "!("], ["unimple", "mented!("], ["#[ig", "nore]"]];
    let needles = needles.map(|pieces| pieces.concat());
    let find = |line: &str| needles.iter().find(|needle| line.contains(*needle)).cloned();
    files.iter().flat_map(|(path, text)| offending_lines(path, text, find)).collect()
}

fn offending_lines(path: &str, text: &str, find: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let found = text.lines().zip(1..).filter_map(|(line, number)| Some((number, find(line)?)));
    found.map(|(number, offence)| format!("{path}:{number}: {offence}")).collect()
}

/// The room of a file of the program; the crate's own two files stand above all rooms.
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

/// The provider in whose folder a file lies.
fn home<'p>(path: &str, providers: &[&'p str]) -> Option<&'p str> {
    let (folder, _) = path.strip_prefix("crates/annals-sources/src/")?.split_once('/')?;
    providers.iter().copied().find(|provider| *provider == folder)
}

/// A folder may be called after a syllable, so its name counts only where it stands alone.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_letter = |letter: char| letter.is_alphanumeric();
        !line[..at].ends_with(is_letter) && !line[at + word.len()..].starts_with(is_letter)
    })
}

/// Every path that follows `start::`, with its line; a group in braces gives a path for each of its members.
fn paths_after(code: &str, start: &str) -> Vec<(usize, Vec<String>)> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices(start) {
        let rest = code[at + start.len()..].trim_start();
        let amid_word = code[..at].ends_with(is_word);
        if let Some(tree) = rest.strip_prefix("::").filter(|_| !amid_word) {
            let mut members = Vec::new();
            flatten(tree, &mut Vec::new(), &mut members);
            members.retain(|path| !path.is_empty());
            paths.extend(members.into_iter().map(|path| (line_of(code, at), path)));
        }
    }
    paths
}

/// Reads one path or group, and returns what comes after it.
fn flatten<'c>(tree: &'c str, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'c str {
    let tree = tree.trim_start();
    let depth = before.len();
    let rest = if let Some(mut group) = tree.strip_prefix('{') {
        while !group.is_empty() && !group.starts_with('}') {
            let next = flatten(group, before, paths).trim_start();
            let after_alias = next.find([',', '}']).unwrap_or(next.len());
            group = next[after_alias..].strip_prefix(',').unwrap_or(&next[after_alias..]).trim_start();
        }
        group.strip_prefix('}').unwrap_or(group)
    } else {
        let end = tree.find(|letter| !is_word(letter)).unwrap_or(tree.len());
        before.extend((end > 0).then(|| tree[..end].to_string()));
        match tree[end..].trim_start().strip_prefix("::").filter(|_| end > 0) {
            Some(more) => flatten(more, before, paths),
            None => {
                paths.push(before.clone());
                &tree[end..]
            }
        }
    };
    before.truncate(depth);
    rest
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// Where each `pub fn` starts, and its text from the name on. `pub(…)` is not public.
fn public_functions(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices("pub ").filter_map(|(start, _)| {
        let rest = &code[start + "pub ".len()..];
        let name = rest.find("fn ").map(|at| at + "fn ".len())?;
        let qualifiers = ["const", "async", "unsafe", "extern"];
        let only_qualifiers =
            rest[..name].split_whitespace().all(|word| word == "fn" || qualifiers.contains(&word));
        (only_qualifiers && !code[..start].ends_with(is_word)).then_some((start, &rest[name..]))
    })
}

/// The parameters of a function, given its text from the name on.
fn parameters(signature: &str) -> Vec<String> {
    let mut list = Vec::new();
    let (mut depth, mut last) = (0, ' ');
    for letter in signature.chars() {
        depth -= i32::from(")]}".contains(letter) || letter == '>' && last != '-');
        if depth == 0 && letter == ')' {
            break;
        }
        match list.last_mut() {
            _ if depth == 0 && letter == '(' => list.push(String::new()),
            Some(_) if depth == 1 && letter == ',' => list.push(String::new()),
            Some(parameter) => parameter.push(if letter == '\n' { ' ' } else { letter }),
            None => {}
        }
        depth += i32::from("<([{".contains(letter));
        last = letter;
    }
    let trimmed = list.iter().map(|parameter| parameter.trim().to_string());
    trimmed.filter(|parameter| !parameter.is_empty()).collect()
}

fn is_self(parameter: &str) -> bool {
    let bare = parameter.split(':').next().unwrap_or_default();
    bare.split([' ', '&']).next_back() == Some("self")
}

fn is_scope(parameter: &str) -> bool {
    let (name, kind) = parameter.split_once(':').unwrap_or(("scope", parameter));
    let kind = kind.trim().strip_prefix('&').unwrap_or_default();
    let kind = if kind.starts_with('\'') { kind.split_once(' ').map_or("", |(_, kind)| kind) } else { kind };
    matches!(name.trim(), "scope" | "_scope") && kind.rsplit("::").next() == Some("Scope")
}

/// Whether a function is excused just above, where its attributes and its documentation may stand too.
fn has_reason(above: &[&str]) -> bool {
    let mut lines = above.iter().rev().map(|line| line.trim());
    let above = lines.find(|line| !line.starts_with("#[") && !line.starts_with("///"));
    above.and_then(|line| line.strip_prefix("// no scope:")).is_some_and(|reason| !reason.trim().is_empty())
}

fn in_impl(code: &str, at: usize) -> bool {
    let (mut impls, mut depth, mut pending) = (Vec::new(), 0, false);
    for line in code[..at].split_inclusive('\n') {
        pending |= line.trim_start().strip_prefix("impl").is_some_and(|rest| !rest.starts_with(is_word));
        for letter in line.chars() {
            if letter == '{' {
                depth += 1;
                impls.extend(std::mem::take(&mut pending).then_some(depth));
            } else if letter == '}' {
                impls.retain(|opened| *opened != depth);
                depth -= 1;
            }
        }
    }
    !impls.is_empty()
}

#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Nothing,
    Literals,
}

/// The text with spaces in place of comments, and of literals unless they are kept.
fn blank(text: &str, keep: Keep) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        let amid_word = at > 0 && is_word(letters[at - 1]);
        let (length, is_comment) = match comment_length(&letters[at..]) {
            0 if amid_word && !matches!(letters[at], '"' | '\'') => (0, false),
            0 => (literal_length(&letters[at..]), false),
            length => (length, true),
        };
        let end = at + length.max(1);
        let shown = length == 0 || keep == Keep::Literals && !is_comment;
        let show = |letter: &char| if shown || *letter == '\n' { *letter } else { ' ' };
        code.extend(letters[at..end].iter().map(show));
        at = end;
    }
    code
}

fn comment_length(letters: &[char]) -> usize {
    if letters.starts_with(&['/', '/']) {
        return letters.iter().position(|letter| *letter == '\n').unwrap_or(letters.len());
    }
    if !letters.starts_with(&['/', '*']) {
        return 0;
    }
    let (mut depth, mut at) = (1, 2);
    while at < letters.len() && depth > 0 {
        let (deeper, length) = match letters[at..] {
            ['/', '*', ..] => (1, 2),
            ['*', '/', ..] => (-1, 2),
            _ => (0, 1),
        };
        depth += deeper;
        at += length;
    }
    at
}

/// How long the string, byte string, raw string or character is that starts here; a lifetime is none.
fn literal_length(letters: &[char]) -> usize {
    let prefix = letters.iter().take(2).take_while(|letter| matches!(letter, 'b' | 'c' | 'r')).count();
    let raw = letters[..prefix].contains(&'r');
    let hashes = letters[prefix..].iter().take_while(|letter| **letter == '#').count();
    let open = prefix + hashes;
    match letters.get(open) {
        Some('"') if raw => {
            let body = &letters[open + 1..];
            let closes = |tail: &[char]| tail[0] == '"' && tail[1..].iter().all(|letter| *letter == '#');
            let length = body.windows(hashes + 1).position(closes);
            length.map_or(letters.len(), |length| open + 1 + length + 1 + hashes)
        }
        Some('"') if hashes == 0 => closed_length(letters, open, '"'),
        Some('\'') if hashes == 0 && !raw => match letters[open + 1..] {
            ['\\', ..] | [_, '\'', ..] => closed_length(letters, open, '\''),
            _ => 0,
        },
        _ => 0,
    }
}

fn closed_length(letters: &[char], open: usize, quote: char) -> usize {
    let mut at = open + 1;
    while at < letters.len() && letters[at] != quote {
        at += if letters[at] == '\\' { 2 } else { 1 };
    }
    letters.len().min(at + 1)
}
