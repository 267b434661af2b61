//! ARCHITECTURE.md is short, and the directories and tests that it names exist.

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

/// `a/{b,c}` is `a/b` and `a/c`.
fn alternatives(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?))) {
        Some((start, (names, end))) => names.split(',').map(|name| format!("{start}{name}{end}")).collect(),
        None => vec![path.to_owned()],
    }
}
