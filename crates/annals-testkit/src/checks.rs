//! Invariants of every archive: accounts add up, files are restored exactly, a rebuild and a fresh archive have the
//! same rows.

use std::path::Path;

use rusqlite::Connection;

use crate::Bench;
use crate::files::files_below;

/// `discovered = kept + unknown + malformed + skipped`, in bytes and in lines, counted independently here.
pub fn assert_accounts_add_up(bench: &Bench, home: &Path) {
    for file in bench.accounts() {
        let sum = |what: &str| {
            ["kept", "unknown", "malformed", "skipped"]
                .iter()
                .map(|status| file[status][what].as_i64().unwrap())
                .sum::<i64>()
        };
        if file["twin"] == true {
            continue;
        }
        assert_eq!(sum("bytes"), file["content_bytes"].as_i64().unwrap(), "{file}");
        let path = home.join(file["path"].as_str().unwrap());
        if path.extension().is_some_and(|extension| extension == "jsonl") && path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let newlines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let unended = usize::from(!bytes.is_empty() && bytes.last() != Some(&b'\n'));
            assert_eq!(sum("lines"), (newlines + unended) as i64, "{file}");
        }
    }
}

/// Restores into a new directory and compares every restored file with the one in `home`.
pub fn assert_restores(bench: &Bench, home: &Path) {
    assert_restores_of(bench, "codex_cli", home);
}

pub fn assert_restores_of(bench: &Bench, source: &str, home: &Path) {
    let target = bench.folder.path().join("restored");
    let ran = bench.run(&["restore", "--source", source, "--to", target.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let restored = files_below(&target);
    assert!(!restored.is_empty());
    for path in &restored {
        let relative = path.strip_prefix(&target).unwrap();
        if is_database(path) {
            assert_same_rows(path, &home.join(relative));
            continue;
        }
        let (ours, theirs) = (std::fs::read(path).unwrap(), std::fs::read(home.join(relative)).unwrap());
        assert!(ours == theirs, "{} differs", relative.display());
    }
    std::fs::remove_dir_all(&target).unwrap();
}

fn is_database(path: &Path) -> bool {
    std::fs::read(path).unwrap().starts_with(b"SQLite format 3\0")
}

/// Every table with rows has those of the client's, and the schema is the same.
pub fn assert_same_rows(ours: &Path, theirs: &Path) {
    // Opening the client's own file would merge its log.
    let copy = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", theirs.display());
        if Path::new(&from).is_file() {
            std::fs::copy(from, copy.path().join(format!("copy.sqlite{suffix}"))).unwrap();
        }
    }
    let ours = Connection::open(ours).unwrap();
    let theirs = Connection::open(copy.path().join("copy.sqlite")).unwrap();
    let check: String = ours.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let dump = |connection: &Connection, sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            Ok((0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect::<Vec<_>>().join("|"))
        });
        let mut rows: Vec<String> = rows.unwrap().map(Result::unwrap).collect();
        rows.sort();
        rows
    };
    let schema =
        "select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite@_%' escape '@'";
    assert_eq!(dump(&ours, schema), dump(&theirs, schema));
    let mut statement = ours.prepare(
        "select name from sqlite_schema where type = 'table' and name not like 'sqlite@_%' escape '@'",
    );
    let tables = statement.as_mut().unwrap().query_map([], |row| row.get::<_, String>(0)).unwrap();
    for table in tables.map(Result::unwrap) {
        let rows = format!("select * from \"{table}\"");
        let (restored, expected) = (dump(&ours, &rows), dump(&theirs, &rows));
        let keys = "select count(*) from pragma_table_info(?1) where pk > 0";
        let has_keys = ours.query_row(keys, [&table], |row| row.get::<_, i64>(0)).unwrap() > 0;
        // Rows without a key of their own may be one record: those that are there must be the client's.
        if has_keys && !restored.is_empty() {
            assert_eq!(restored, expected, "{table}");
        } else {
            assert!(restored.iter().all(|row| expected.contains(row)), "{table}: {restored:?}");
        }
    }
}

/// Rebuilds and compares: rows depend only on the archived bytes.
pub fn assert_rebuilds(bench: &Bench) {
    let before = bench.everything();
    let ran = bench.run(&["rebuild"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_same(&before, &bench.everything());
}

/// An archive that only saw the current state of the home has the same rows.
pub fn assert_like_fresh(bench: &Bench) {
    assert_like_fresh_of(bench, "codex_cli");
}

pub fn assert_like_fresh_of(bench: &Bench, source: &str) {
    let fresh = Bench::with_home(source, &bench.home_of(source));
    fresh.sync();
    assert_same(&without_versions(&bench.everything()), &without_versions(&fresh.everything()));
}

/// A sync finds nothing to do.
pub fn assert_up_to_date(bench: &Bench) {
    assert_up_to_date_of(bench, "codex_cli");
}

pub fn assert_up_to_date_of(bench: &Bench, source: &str) {
    let report = bench.sync_of(source);
    assert_eq!(report["captured_bytes"], 0, "{report}");
    for count in ["new_files", "changed_files", "gone_files", "failed_files", "new_documents"] {
        assert_eq!(report[count], 0, "{report}");
    }
}

/// Compares two texts and reports the first line that differs.
pub fn assert_same(left: &str, right: &str) {
    if blake3::hash(left.as_bytes()) == blake3::hash(right.as_bytes()) {
        return;
    }
    for (number, (one, other)) in left.lines().zip(right.lines()).enumerate() {
        if one != other {
            let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
            let part = |line: &str| {
                String::from_utf8_lossy(line.as_bytes().get(at.saturating_sub(300)..).unwrap_or_default())
                    .chars()
                    .take(600)
                    .collect::<String>()
            };
            panic!("line {number} differs at byte {at}:\n  {}\n  {}", part(one), part(other));
        }
    }
    panic!("one text is longer: {} and {} bytes", left.len(), right.len());
}

pub fn without_versions(text: &str) -> String {
    regex::Regex::new(r#""versions":\d+,"#).unwrap().replace_all(text, "").into_owned()
}

/// Replaces times of these days, which depend on when the test ran.
pub fn timeless(text: &str) -> String {
    let moment = regex::Regex::new(r#""20(2[6-9]|[3-9]\d)-\d\d-\d\dT[0-9:.]+Z""#).unwrap();
    moment.replace_all(text, "\"now\"").into_owned()
}
