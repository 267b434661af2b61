//! Damage is found wherever bytes are read, never restored, and healed where the bytes still are.

mod reading;
mod rebuild;
mod repair;
mod restore;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, conversation, rollout};

const OTHER: &str = "0199a1b2-0000-7000-8000-000000000002";

/// Two transcripts and a file of several segments.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    bench.transcript(&rollout(OTHER), &conversation(OTHER, "levers"));
    let attachments = bench.codex().join("attachments");
    std::fs::create_dir_all(&attachments).unwrap();
    std::fs::write(attachments.join("large.txt"), noise(600_000)).unwrap();
    bench.sync();
    bench
}

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(b"noise").finalize_xof().fill(&mut bytes);
    bytes
}

fn connect(bench: &Bench) -> Connection {
    let connection = Connection::open(bench.archive().join("annals.db")).unwrap();
    // Damage follows no rules.
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection
}

/// Flips a bit of the first blob of the file whose path ends like this.
fn flip(bench: &Bench, path: &str) {
    let connection = connect(bench);
    let (id, mut data): (i64, Vec<u8>) = connection
        .query_row(
            "select blob.id, blob.data from blob join segment on segment.blob = blob.id
             join file on file.id = segment.file where file.path like '%' || ?1 order by byte_offset limit 1",
            [path],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let middle = data.len() / 2;
    data[middle] ^= 1;
    connection.execute("update blob set data = ?1 where id = ?2", (data, id)).unwrap();
}

fn restore_to(bench: &Bench, name: &str) -> (PathBuf, annals_testkit::Ran) {
    let target = bench.folder.path().join(name);
    let ran = bench.run(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap()]);
    (target, ran)
}

fn same(one: &Path, other: &Path) -> bool {
    std::fs::read(one).unwrap() == std::fs::read(other).unwrap()
}
