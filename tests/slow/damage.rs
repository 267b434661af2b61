//! Flipped bits and lost pages of the archive file: each is found, none is restored, and what the client has is healed.
//!
//! `ANNALS_TEST_DAMAGE=N` multiplies the number of cases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use annals_testkit::codex::{ID, busy_transcript, rollout};
use annals_testkit::corpora::codex::{Plan, write_codex_home};
use annals_testkit::files::files_below;
use annals_testkit::{Bench, Ran};

/// Columns of run times and numbers, of which no answer is made.
const NOT_CONTENT: [&str; 6] = ["changed", "seen_at", "seen_version", "gone_at", "postings", "captured_at"];

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn cases(count: usize) -> usize {
    let times = std::env::var("ANNALS_TEST_DAMAGE").ok().and_then(|text| text.parse().ok());
    count * times.unwrap_or(1)
}

/// An archive, its file as it was when it was intact, and what is in it.
struct Patient {
    bench: Bench,
    intact: Vec<u8>,
    content: BTreeSet<Vec<u8>>,
    /// Restored files of the intact archive.
    files: usize,
}

impl Patient {
    fn new() -> Patient {
        let bench = Bench::new();
        write_codex_home(&bench.codex(), &Plan { seed: 7, bytes: 250_000, files: 4 }).unwrap();
        let path = bench.transcript(&rollout(ID), &[]);
        std::fs::write(path, busy_transcript(ID)).unwrap();
        bench.sync();
        assert_eq!(bench.run(&["doctor", "--deep"]).code, 0);
        let intact = std::fs::read(bench.archive().join("annals.db")).unwrap();
        let content = content(&bench.archive().join("annals.db")).unwrap();
        let target = bench.folder.path().join("whole");
        let ran = bench.run(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let files = files_below(&target).len();
        Patient { bench, intact, content, files }
    }

    fn database(&self) -> PathBuf {
        self.bench.archive().join("annals.db")
    }

    /// Puts these bytes in place of the archive file; false if they have the same content.
    fn infect(&self, bytes: &[u8]) -> bool {
        for file in files_below(&self.bench.archive()) {
            std::fs::remove_file(file).unwrap();
        }
        std::fs::write(self.database(), bytes).unwrap();
        let is_harmless = content(&self.database()).is_ok_and(|content| content == self.content);
        // Reading may have left an index of the log.
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(self.bench.archive().join(format!("annals.db{end}")));
        }
        !is_harmless
    }

    fn restore(&self, what: &str) -> Ran {
        let target = self.bench.folder.path().join("restored");
        let ran = self.bench.run(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap()]);
        let restored = if target.exists() { files_below(&target) } else { Vec::new() };
        for path in &restored {
            let there = self.bench.codex().join(path.strip_prefix(&target).unwrap());
            let same = std::fs::read(path).unwrap() == std::fs::read(&there).unwrap_or_default();
            assert!(same, "{what}: {} was restored wrong", path.display());
        }
        if ran.code == 0 {
            assert_eq!(restored.len(), self.files, "{what}: files are missing, and it says nothing");
        } else {
            assert_eq!(ran.code, 2, "{what}: {}", ran.stdout);
            assert!(ran.stderr.contains("hint:"), "{what}: {}", ran.stderr);
        }
        if target.exists() {
            std::fs::remove_dir_all(&target).unwrap();
        }
        ran
    }

    /// Found, not restored wrong, healed.
    fn examine(&self, what: &str) {
        let doctor = self.bench.run(&["doctor", "--deep"]);
        assert_eq!(doctor.code, 1, "{what}: not found: {} {}", doctor.stdout, doctor.stderr);
        assert!(
            doctor.stdout.contains("FAILED") && doctor.stdout.contains("hint:"),
            "{what}: {}",
            doctor.stdout
        );
        self.restore(what);
        let repair = self.bench.run(&["repair"]);
        assert_eq!(repair.code, 0, "{what}: {} {}", repair.stdout, repair.stderr);
        let doctor = self.bench.run(&["doctor", "--deep"]);
        assert_eq!(doctor.code, 0, "{what}: not healed: {}", doctor.stdout);
        assert_eq!(self.restore(what).code, 0, "{what}: not healed");
    }
}

/// Every value of every table, if SQLite finds nothing wrong.
fn content(database: &Path) -> rusqlite::Result<BTreeSet<Vec<u8>>> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let check: String = connection.query_row("pragma integrity_check(1)", [], |row| row.get(0))?;
    if check != "ok" {
        return Err(rusqlite::Error::InvalidQuery);
    }
    let mut statement =
        connection.prepare("select name from sqlite_schema where type = 'table' order by name")?;
    let tables: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut content = BTreeSet::new();
    for table in tables.iter().filter(|table| *table != "run" && *table != "setting" && *table != "removed") {
        let mut statement = connection.prepare(&format!("select * from \"{table}\""))?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut text = table.clone().into_bytes();
            for (at, column) in
                columns.iter().enumerate().filter(|(_, name)| !NOT_CONTENT.contains(&name.as_str()))
            {
                text.extend(format!("\n{column} {:?}", row.get::<_, Value>(at)?).into_bytes());
            }
            content.insert(blake3::hash(&text).as_bytes().to_vec());
        }
    }
    Ok(content)
}

/// The pages of tables and indexes whose name is chosen: name, offset, size.
fn pages(database: &Path, is_chosen: &dyn Fn(&str) -> bool) -> Vec<(String, u64, u64)> {
    let connection = Connection::open(database).unwrap();
    let mut statement =
        connection.prepare("select name, pgoffset, pgsize from dbstat order by pgoffset").unwrap();
    let pages = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
        .unwrap();
    let pages = pages.map(|page| page.unwrap()).filter(|(name, _, _)| is_chosen(name));
    pages.map(|(name, offset, size)| (name, offset as u64, size as u64)).collect()
}

fn flip_bits(patient: &Patient, seed: u64, count: usize, is_chosen: &dyn Fn(&str) -> bool) {
    let mut random = Random(seed);
    patient.infect(&patient.intact);
    let pages = pages(&patient.database(), is_chosen);
    assert!(!pages.is_empty());
    let (mut done, mut drawn) = (0, 0);
    while done < count {
        drawn += 1;
        assert!(drawn < count * 20, "only {done} of {drawn} flips did any harm");
        let (name, offset, size) = &pages[random.below(pages.len() as u64) as usize];
        let (at, bit) = (offset + random.below(*size), random.below(8));
        let mut bytes = patient.intact.clone();
        bytes[at as usize] ^= 1 << bit;
        if patient.infect(&bytes) {
            done += 1;
            patient.examine(&format!("bit {bit} of byte {at} in {name}"));
        }
    }
}

#[test]
fn flipped_bits_of_content_are_found_and_healed() {
    let patient = Patient::new();
    let is_content = |name: &str| name == "blob" || name == "segment";
    flip_bits(&patient, 20_261_116, cases(100), &is_content);
}

#[test]
fn flipped_bits_of_rows_and_indexes_are_found_and_healed() {
    let patient = Patient::new();
    let rows = [
        "message",
        "message_line",
        "tool_call",
        "usage",
        "usage_sum",
        "session",
        "session_part",
        "record",
        "coverage",
        "file_touch",
        "link",
        "search_block",
        "search_segment",
        "reader_state",
        "spoken",
    ];
    let is_row =
        |name: &str| rows.contains(&name) || name.contains("_by_") || name.starts_with("sqlite_autoindex");
    flip_bits(&patient, 20_261_117, cases(100), &is_row);
}

#[test]
fn truncated_archives_are_found_and_healed() {
    let patient = Patient::new();
    let mut random = Random(20_261_118);
    let mut done = 0;
    while done < cases(20) {
        let length = random.below(patient.intact.len() as u64) as usize;
        if patient.infect(&patient.intact[..length]) {
            done += 1;
            patient.examine(&format!("truncated to {length} bytes"));
        }
    }
}

/// Tables that are neither content nor rows: what a flip does there may go unnoticed, but it ends no verb with a panic and
/// restores nothing wrong.
#[test]
fn flipped_bits_of_other_tables_do_no_further_harm() {
    let patient = Patient::new();
    let others = [
        "instance",
        "file",
        "version",
        "gap",
        "run",
        "cursor",
        "setting",
        "name",
        "capture",
        "sqlite_schema",
    ];
    let mut random = Random(20_261_119);
    patient.infect(&patient.intact);
    let pages = pages(&patient.database(), &|name| others.contains(&name));
    assert!(!pages.is_empty());
    for _ in 0..cases(60) {
        let (name, offset, size) = &pages[random.below(pages.len() as u64) as usize];
        let (at, bit) = (offset + random.below(*size), random.below(8));
        let mut bytes = patient.intact.clone();
        bytes[at as usize] ^= 1 << bit;
        let what = format!("bit {bit} of byte {at} in {name}");
        if !patient.infect(&bytes) {
            continue;
        }
        for verb in [&["doctor"][..], &["sessions", "--all"], &["usage"], &["sources"], &["audit"], &["gaps"]]
        {
            let ran = patient.bench.run(verb);
            assert!([0, 1, 2].contains(&ran.code), "{what}: {verb:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{what}: {verb:?}: {}", ran.stderr);
        }
        patient.restore(&what);
        let ran = patient.bench.run(&["sync"]);
        assert!([0, 2].contains(&ran.code) && !ran.stderr.contains("panicked"), "{what}: {}", ran.stderr);
    }
}
