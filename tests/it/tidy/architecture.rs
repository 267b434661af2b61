//! ARCHITECTURE.md is short, and the directories, files and tests that it names exist.

use std::fs;
use std::path::Path;

const MOST_LINES: usize = 200;

#[test]
fn the_architecture_is_short_and_its_directories_exist() {
    let root = Path::new(annals_testkit::ROOT);
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() <= MOST_LINES, "{} lines, more than {MOST_LINES}", text.lines().count());
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `annals")?.split_once("/` | "));
    let mut directories = 0;
    // The table of modules has two names in this column.
    for (directory, _) in rows.filter(|(directory, _)| !directory.contains('`')) {
        for directory in alternatives(&format!("crates/annals{directory}")) {
            // `<provider>` is any of the sources.
            let directory = directory.replace("<provider>", "codex_cli");
            assert!(root.join(&directory).is_dir(), "{directory} does not exist");
            directories += 1;
        }
    }
    assert!(directories > 20, "only {directories} directories");
}

#[test]
fn the_files_that_the_architecture_names_exist() {
    let root = Path::new(annals_testkit::ROOT);
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let mut files = 0;
    for (directory, names) in text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("/` | ")) {
        if !directory.contains("/src") {
            continue;
        }
        // `<provider>` is any of the sources.
        let directory = directory.strip_suffix("/<provider>").unwrap_or(directory);
        let below: Vec<String> = alternatives(&format!("crates/{directory}"))
            .iter()
            .flat_map(|directory| annals_testkit::files::files_below(&root.join(directory)))
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        // Types are capitalised, and examples have other signs.
        let is_name =
            |name: &&str| name.chars().all(|letter| "_/.".contains(letter) || letter.is_ascii_lowercase());
        for name in names.split('`').skip(1).step_by(2).filter(is_name).filter(|name| !name.starts_with('.'))
        {
            let inner = format!("/{}", name.trim_end_matches('/'));
            let is_there = |path: &String| {
                path.contains(&format!("{inner}/"))
                    || path.contains(&format!("{inner}."))
                    || path.ends_with(&inner)
            };
            assert!(below.iter().any(is_there), "{directory} has no {name}");
            files += 1;
        }
    }
    assert!(files > 200, "only {files} files");
}

#[test]
fn the_tests_that_the_architecture_names_exist() {
    let root = Path::new(annals_testkit::ROOT);
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, invariants) = text.split_once("| invariant | tests |").unwrap();
    let folders =
        ["tests", "benches", "crates"].map(|folder| annals_testkit::files::files_below(&root.join(folder)));
    let paths: Vec<String> =
        folders.iter().flatten().map(|path| path.to_string_lossy().into_owned()).collect();
    let mut tests = 0;
    for row in invariants.lines().filter(|line| line.starts_with("| ")) {
        let names = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        for name in names.split('`').skip(1).step_by(2) {
            let inner = format!("/{}", name.trim_end_matches(['*', '/']));
            let is_there = |path: &String| {
                let after = path.split_once(&inner).map(|(_, after)| after);
                after.is_some_and(|after| {
                    after.is_empty() || name.ends_with('*') || after.starts_with(['.', '/'])
                })
            };
            assert!(paths.iter().any(is_there), "no {name}: {row}");
            tests += 1;
        }
    }
    assert!(tests > 40, "only {tests} tests");
}

/// `a/{b,c}` is `a/b` and `a/c`.
fn alternatives(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?))) {
        Some((start, (names, end))) => names.split(',').map(|name| format!("{start}{name}{end}")).collect(),
        None => vec![path.to_owned()],
    }
}
