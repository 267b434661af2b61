//! Every source, from the registry: files in halves, damaged bytes, damaged databases, databases that are being written,
//! and links out of the home.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::hostile::{MEMORY, noise, run, sync_within};
use annals_testkit::checks::{assert_accounts_add_up, assert_rebuilds};
use annals_testkit::files::{copy_folder, files_below};
use annals_testkit::{Bench, fixtures};

/// Random places, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Sessions and all that they contain, without what depends on the times of files.
fn answers(bench: &Bench) -> String {
    let mut sessions = bench.sessions();
    sessions.sort_by_key(|session| session["session_id"].to_string());
    let mut text = String::new();
    for session in &mut sessions {
        let id = session["session_id"].as_str().unwrap().to_owned();
        let fields = session.as_object_mut().unwrap();
        fields.retain(|name, _| {
            !["is_active", "source_gone"].contains(&name.as_str()) && !name.ends_with("_at")
        });
        let shown = bench.json(&["show", &id, "--full"]);
        text += &format!("{session}\n{}\n", shown["messages"]);
    }
    text
}

/// Files and their bytes.
type Files = Vec<(PathBuf, Vec<u8>)>;

fn is_database(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SQLite format 3\0")
}

/// Each fixture's home as a bench that was not synced, with its files and their bytes.
fn homes() -> Vec<(&'static str, Bench, Files)> {
    let cases = fixtures::with_home().into_iter();
    let homes = cases.map(|(source, case)| {
        let bench = Bench::with_home(source, &case.join("home"));
        let files = files_below(&bench.home_of(source)).into_iter();
        let files = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        (source, bench, files)
    });
    homes.collect()
}

fn write_back(files: &[(PathBuf, Vec<u8>)]) {
    files.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

/// What an archive answers that saw only the whole files.
fn whole_answers(source: &str, bench: &Bench) -> String {
    let fresh = Bench::with_home(source, &bench.home_of(source));
    sync_within(&fresh, MEMORY);
    answers(&fresh)
}

#[test]
fn files_that_come_in_halves_give_what_whole_ones_give() {
    let mut random = Random(1);
    for (source, bench, files) in homes() {
        let whole = whole_answers(source, &bench);
        for _ in 0..3 {
            for (path, bytes) in files.iter().filter(|(_, bytes)| !is_database(bytes)) {
                std::fs::write(path, &bytes[..random.below(bytes.len() + 1)]).unwrap();
            }
            // Of a file that became shorter, the longer version stays.
            sync_within(&bench, MEMORY);
        }
        write_back(&files);
        sync_within(&bench, MEMORY);
        assert_accounts_add_up(&bench, &bench.home_of(source));
        assert_eq!(answers(&bench), whole, "{source}");
        assert_rebuilds(&bench);
    }
}

#[test]
fn damaged_bytes_cost_what_they_damage() {
    let mut random = Random(2);
    for (source, bench, files) in homes() {
        let whole = whole_answers(source, &bench);
        for _ in 0..3 {
            for (path, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty() && !is_database(bytes)) {
                let mut damaged = bytes.clone();
                for _ in 0..5 {
                    let at = random.below(damaged.len());
                    damaged[at] = random.below(256) as u8;
                }
                std::fs::write(path, damaged).unwrap();
            }
            sync_within(&bench, MEMORY);
            assert_accounts_add_up(&bench, &bench.home_of(source));
            assert_rebuilds(&bench);
        }
        write_back(&files);
        sync_within(&bench, MEMORY);
        let healed = answers(&bench);
        for line in whole.lines() {
            assert!(healed.contains(line), "{source}: {}", line.chars().take(300).collect::<String>());
        }
    }
}

#[test]
fn damaged_databases_take_nothing_away() {
    let mut checked = 0;
    for (source, bench, files) in homes() {
        let databases: Vec<_> = files.iter().filter(|(_, bytes)| is_database(bytes)).collect();
        if databases.is_empty() {
            continue;
        }
        sync_within(&bench, MEMORY);
        let whole = answers(&bench);
        for (path, bytes) in &databases {
            let mut patched = bytes.clone();
            let half = patched.len() / 2;
            patched[half..].fill(0xa5);
            let damages =
                [noise(1, 40_000), Vec::new(), bytes[..half].to_vec(), patched, bytes[..100].to_vec()];
            for damaged in damages {
                std::fs::write(path, &damaged).unwrap();
                let report = run(bench.command(&["sync", "--json"]));
                assert!(report.code < 2, "{source}: {}", report.stderr);
                assert_eq!(answers(&bench), whole, "{source}: {}", report.stderr);
            }
            std::fs::write(path, bytes).unwrap();
            sync_within(&bench, MEMORY);
            assert_eq!(answers(&bench), whole, "{source}");
            checked += 1;
        }
        assert_rebuilds(&bench);
    }
    assert!(checked >= 3, "only {checked} databases");
}

#[test]
fn databases_that_are_being_written_are_read_as_they_were_before() {
    let mut checked = 0;
    for (source, bench, files) in homes() {
        let databases: Vec<_> = files.iter().filter(|(_, bytes)| is_database(bytes)).collect();
        if databases.is_empty() {
            continue;
        }
        let whole = whole_answers(source, &bench);
        let writers: Vec<rusqlite::Connection> = databases
            .iter()
            .map(|(path, _)| {
                let writer = rusqlite::Connection::open(path).unwrap();
                writer.execute_batch("begin immediate").unwrap();
                let mut tables = writer
                    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite@_%' escape '@'")
                    .unwrap();
                let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
                let names: Vec<String> = names.map(Result::unwrap).collect();
                drop(tables);
                names.iter().for_each(|name| {
                    // What refers to rows of another table may stay.
                    let _ = writer.execute_batch(&format!("delete from \"{name}\""));
                });
                writer
            })
            .collect();
        sync_within(&bench, MEMORY);
        assert_eq!(answers(&bench), whole, "{source}");
        writers.iter().for_each(|writer| writer.execute_batch("rollback").unwrap());
        drop(writers);
        sync_within(&bench, MEMORY);
        assert_eq!(answers(&bench), whole, "{source}");
        checked += 1;
    }
    assert!(checked >= 3, "only {checked} homes with databases");
}

#[test]
fn no_file_outside_of_a_home_is_read() {
    for (source, bench, files) in homes() {
        let home = bench.home_of(source);
        let outside = bench.folder.path().join("outside");
        copy_folder(&home, &outside);
        for (path, _) in &files {
            let name = path.strip_prefix(&home).unwrap();
            std::fs::remove_file(path).unwrap();
            symlink(outside.join(name), path).unwrap();
        }
        sync_within(&bench, MEMORY);
        assert_nothing_of(&bench, source);
        // The same with links to directories.
        let folders: Vec<PathBuf> =
            std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).collect();
        for folder in folders.iter().filter(|folder| folder.is_dir() && !folder.is_symlink()) {
            std::fs::remove_dir_all(folder).unwrap();
            symlink(outside.join(folder.strip_prefix(&home).unwrap()), folder).unwrap();
        }
        sync_within(&bench, MEMORY);
        assert_nothing_of(&bench, source);
    }
}

#[track_caller]
fn assert_nothing_of(bench: &Bench, source: &str) {
    assert!(bench.sessions().is_empty(), "{source}: {:?}", bench.sessions());
    let accounts = bench.accounts();
    let with_bytes = accounts.iter().filter(|file| file["content_bytes"].as_i64() > Some(0));
    assert_eq!(with_bytes.count(), 0, "{source}: {accounts:?}");
    assert!(Path::new(&bench.archive()).join("annals.db").is_file());
}
