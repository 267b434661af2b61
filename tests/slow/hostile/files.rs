//! Homes that break readers: odd names, links, pipes, damaged files, refused access.
#![cfg(unix)]

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::hostile::{
    MEGABYTE, MEMORY, assert_sound, bench, blake3_text, line, noise, raw_transcript, run, session, show,
    sync_within,
};
use annals_testkit::Bench;
use annals_testkit::checks::assert_accounts_add_up;
use annals_testkit::codex::{ID, answer, conversation, rollout};
use annals_testkit::files::files_below;

#[test]
fn links_out_of_the_home_are_not_followed() {
    let bench = bench();
    let outside = bench.folder.path().join("outside");
    std::fs::create_dir_all(outside.join("2026")).unwrap();
    let foreign = "0199a1b2-0000-7000-8000-0000000000f1";
    let text = conversation(foreign, "foreign words").join("\n");
    for path in [rollout(foreign), format!("2026/{}", rollout(foreign)), "AGENTS.md".into()] {
        std::fs::write(outside.join(path), &text).unwrap();
    }
    let day = bench.codex().join("sessions/2026/11/15");
    symlink(outside.join(rollout(foreign)), day.join(rollout(foreign))).unwrap();
    symlink(Path::new("../../../../../../outside"), day.join("linked")).unwrap();
    symlink(&outside, bench.codex().join("archived_sessions")).unwrap();
    symlink(outside.join("AGENTS.md"), bench.codex().join("AGENTS.md")).unwrap();
    // Loops: to itself, to each other, to a parent directory.
    symlink(day.join("self"), day.join("self")).unwrap();
    symlink(day.join("pong"), day.join("ping")).unwrap();
    symlink(day.join("ping"), day.join("pong")).unwrap();
    symlink(bench.codex(), day.join("home")).unwrap();
    symlink(bench.codex().join("sessions"), bench.codex().join("rules")).unwrap();
    let report = sync_within(&bench, MEMORY);
    let warnings: Vec<&str> =
        report["problems"].as_array().unwrap().iter().map(|warnings| warnings.as_str().unwrap()).collect();
    for path in ["AGENTS.md", "archived_sessions", "sessions/2026/11/15/linked"] {
        assert!(
            warnings.contains(&&*format!("{path}: link to outside of the home not followed")),
            "{warnings:?}"
        );
    }
    assert!(
        warnings
            .iter()
            .any(|warnings| warnings.contains(&rollout(foreign)) && warnings.contains("not followed")),
        "{warnings:?}"
    );
    assert!(
        warnings.iter().any(|warnings| warnings.starts_with("sessions/2026/11/15/self: ")),
        "{warnings:?}"
    );
    assert_eq!(bench.sessions().len(), 1, "only the healthy one");
    assert_eq!(bench.accounts().len(), 1);
    assert!(!bench.run(&["records", "codex_cli/messages"]).stdout.contains("foreign words"));
    assert_sound(&bench);
}

#[test]
fn unreadable_files_are_reported_and_not_gone() {
    let bench = bench();
    let (hidden, closed) = ("0199a1b2-0000-7000-8000-0000000000f2", "0199a1b2-0000-7000-8000-0000000000f3");
    let late = "0199a1b2-0000-7000-8000-0000000000f4";
    let folder = bench.codex().join("sessions/2026/11/16");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(rollout(hidden)), conversation(hidden, "hidden").join("\n")).unwrap();
    let file = bench.transcript(&rollout(closed), &conversation(closed, "closed"));
    let program = somebody_elses(&bench);
    let sync = || {
        let ran = run(as_somebody(&bench, &program, &["sync", "--json"]));
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        (report["sources"][0].clone(), ran.stderr)
    };
    let gaps = || bench.json(&["sources"])["sources"][0]["gaps_open"].clone();
    assert_eq!(sync().0["problems"], Value::Array(Vec::new()));
    let unseen = bench.transcript(&rollout(late), &conversation(late, "late"));
    for path in [&folder, &file, &unseen] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    for _ in 0..2 {
        let (report, warnings) = sync();
        assert_eq!((&report["gone_files"], &report["failed_files"]), (&0.into(), &2.into()));
        for name in ["sessions/2026/11/16", &rollout(closed), &rollout(late)] {
            assert!(
                warnings.lines().any(|line| line.starts_with("warning: ") && line.contains(name)),
                "{warnings}"
            );
            assert!(report["problems"].to_string().contains(name), "{report}");
        }
        assert_eq!(gaps(), 3);
        assert!(bench.sessions().iter().all(|session| session["source_gone"] == false));
        assert_eq!(bench.sessions().len(), 3);
    }
    for path in [&folder, &file, &unseen] {
        let mode = if path.extension().is_none() { 0o755 } else { 0o644 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let (report, warnings) = sync();
    assert_eq!(report["problems"], Value::Array(Vec::new()));
    assert!(!warnings.contains("warning"), "{warnings}");
    assert_eq!(gaps(), 0, "no gap is left");
    assert_eq!(bench.sessions().len(), 4);
    // A home that cannot be read at all.
    std::fs::set_permissions(bench.codex(), std::fs::Permissions::from_mode(0o000)).unwrap();
    let (report, _) = sync();
    assert_eq!((&report["homes"][0]["source_status"], &report["gone_files"]), (&"error".into(), &0.into()));
    std::fs::set_permissions(bench.codex(), std::fs::Permissions::from_mode(0o755)).unwrap();
    sync();
    assert_eq!(gaps(), 0);
    assert_sound(&bench);
}

#[test]
fn damaged_compressed_transcripts_give_what_they_have() {
    let bench = bench();
    let (cut, garbled) = ("0199a1b2-0000-7000-8000-0000000000f5", "0199a1b2-0000-7000-8000-0000000000f6");
    let mut lines = conversation(cut, "before the damage");
    for number in 0..40 {
        lines.extend(answer(&blake3_text(number, 20_000)));
    }
    let text = lines.iter().map(|text| format!("{text}\n")).collect::<String>();
    let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let place = raw_transcript(&bench, &format!("{}.zst", rollout(cut)), &packed[..packed.len() / 2]);
    raw_transcript(&bench, &format!("{}.zst", rollout(garbled)), &noise(9, 50_000));
    raw_transcript(&bench, &format!("{}.zst", rollout("empty")), b"");
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text.replace(cut, ID).as_bytes()).unwrap();
    let mut flipped = encoder.finish().unwrap();
    let middle = flipped.len() / 2;
    flipped[middle..middle + 40].fill(0xff);
    raw_transcript(&bench, &format!("{}.zst", rollout(ID)), &flipped);
    let report = sync_within(&bench, MEMORY);
    for id in [cut, garbled, ID] {
        assert!(
            report["problems"].to_string().contains(&format!("{}.zst: cannot be decompressed", rollout(id))),
            "{report}"
        );
    }
    let found = session(&bench, cut);
    assert_eq!(found["user_message_count"], 1);
    assert!((2..41).contains(&found["assistant_message_count"].as_i64().unwrap()), "{found}");
    assert!(show(&bench, cut).contains("before the damage"));
    let gaps = || bench.json(&["sources"])["sources"][0]["gaps_open"].clone();
    assert_eq!(gaps(), 4);
    run(bench.command(&["sync", "--full"]));
    assert_eq!(gaps(), 4, "still damaged");
    assert_sound(&bench);
    std::fs::write(&place, &packed).unwrap();
    assert_eq!(sync_within(&bench, MEMORY)["problems"], Value::Array(Vec::new()));
    assert_eq!(session(&bench, cut)["assistant_message_count"], 41);
    assert_eq!(gaps(), 3);
    std::fs::write(&place, &packed[..packed.len() / 3]).unwrap();
    sync_within(&bench, MEMORY);
    assert_eq!(gaps(), 4, "damaged again");
    assert_sound(&bench);
}

#[test]
fn a_decompression_bomb_is_abandoned() {
    let bench = bench();
    let (spaces, newlines) = ("0199a1b2-0000-7000-8000-0000000000f7", "0199a1b2-0000-7000-8000-0000000000f8");
    for (id, byte) in [(spaces, b' '), (newlines, b'\n')] {
        let start =
            conversation(id, "before the bomb").iter().flat_map(|text| line(text)).collect::<Vec<u8>>();
        let mut bomb = zstd::encode_all(start.as_slice(), 3).unwrap();
        // 3 GB in total.
        let frame = zstd::encode_all(vec![byte; 64 * MEGABYTE].as_slice(), 1).unwrap();
        bomb.extend(frame.repeat(48));
        raw_transcript(&bench, &format!("{}.zst", rollout(id)), &bomb);
    }
    let report = sync_within(&bench, MEMORY);
    for id in [spaces, newlines] {
        assert!(
            report["problems"].to_string().contains(&format!("{}.zst: decompresses to ", rollout(id))),
            "{report}"
        );
        assert_eq!(session(&bench, id)["message_count"], 2);
        assert!(show(&bench, id).contains("before the bomb"));
    }
    assert_sound(&bench);
}

#[test]
fn damaged_databases_are_reported_and_sessions_stay_readable() {
    let bench = bench();
    bench.transcript(&rollout(ID), &conversation(ID, "engines"));
    let path = bench.codex().join("state_5.sqlite");
    let make = |columns: &str, rows: u32| {
        let _ = std::fs::remove_file(&path);
        let database = rusqlite::Connection::open(&path).unwrap();
        database.execute_batch(&format!("create table threads ({columns})")).unwrap();
        for number in 0..rows {
            let sql = format!("insert into threads values ('thread-{number}', '{}')", "t".repeat(3_000));
            database.execute_batch(&sql).unwrap();
        }
        drop(database);
        std::fs::read(&path).unwrap()
    };
    let whole = make("id text, title text", 200);
    let keyless = make("name text, title text", 3);
    let mut patched = whole.clone();
    patched[whole.len() / 2..].fill(0xa5);
    for (what, bytes) in [
        ("garbage", noise(1, 40_000)),
        ("empty", Vec::new()),
        ("no key", keyless),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("patched", patched),
        ("a header and no more", whole[..100].to_vec()),
    ] {
        std::fs::write(&path, &bytes).unwrap();
        let ran = run(bench.command(&["sync", "--json"]));
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(report["sources"][0]["problems"].to_string().contains("state_5.sqlite"), "{what}: {report}");
        assert!(ran.stderr.contains("warning: codex_cli: state_5.sqlite"), "{what}: {}", ran.stderr);
        assert_eq!(session(&bench, ID)["message_count"], 2, "{what}");
        assert_eq!(bench.json(&["sources"])["sources"][0]["gaps_open"], 1, "{what}");
    }
    std::fs::write(&path, &whole).unwrap();
    let report = sync_within(&bench, MEMORY);
    assert_eq!((&report["problems"], &report["new_documents"]), (&Value::Array(Vec::new()), &200.into()));
    assert_eq!(bench.json(&["sources"])["sources"][0]["gaps_open"], 0);
    // Later damage takes nothing back.
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    sync_within(&bench, MEMORY);
    assert_eq!(run(bench.command(&["records", "codex_cli/threads"])).stdout.lines().count(), 200);
    // Keys that are no keys.
    let _ = make("id, title text", 2);
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "insert into threads values ('thread-0', 'again'), (null, ''), (x'00ff', ''), (1e999, '')",
        )
        .unwrap();
    drop(database);
    sync_within(&bench, MEMORY);
    assert_sound(&bench);
}

#[test]
fn odd_names_are_names() {
    let bench = bench();
    let day = bench.codex().join("sessions/2026/11/15");
    let longest = format!("rollout-{}.jsonl", "n".repeat(255 - "rollout-.jsonl".len()));
    let names: &[&[u8]] = &[
        b"rollout-new\nline.jsonl",
        b"rollout-quo\"te'`$(x)\\.jsonl",
        b"rollout-...jsonl",
        b"rollout-..\\..\\x.jsonl",
        b"rollout-\x1b[31m\r.jsonl",
        b"rollout-%00 *?[a]{b}.jsonl",
        b"rollout-\xff.jsonl",
        b"rollout-\xfe.jsonl",
        b"rollout-\xc3.jsonl",
        b"rollout-\xef\xbf\xbd.jsonl",
        b"rollout-\xef\xbf\xbdff.jsonl",
        "rollout-\u{202e}\u{e9}\u{1f600}.jsonl".as_bytes(),
        longest.as_bytes(),
    ];
    let folders: &[&[u8]] = &[b"...", b"..x", b" ", b"new\nline", b"b\xffd"];
    let mut ids = Vec::new();
    let mut put = |path: PathBuf| {
        let id = format!("0199a1b2-0000-7000-8000-{:012}", ids.len());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, conversation(&id, &format!("odd {}", ids.len())).join("\n") + "\n").unwrap();
        ids.push(id);
    };
    for name in names {
        put(day.join(OsStr::from_bytes(name)));
    }
    for (number, name) in folders.iter().enumerate() {
        put(day.join(OsStr::from_bytes(name)).join(format!("rollout-in-{number}.jsonl")));
    }
    for round in 0..2 {
        let report = sync_within(&bench, MEMORY);
        assert_eq!(report["problems"], Value::Array(Vec::new()));
        let (new, changed) = (&report["new_files"], &report["changed_files"]);
        let expected = if round == 0 { ids.len() + 1 } else { 0 };
        assert_eq!((new, changed), (&expected.into(), &0.into()), "round {round}");
    }
    for id in &ids {
        assert_eq!(session(&bench, id)["message_count"], 2);
    }
    assert_sound(&bench);
    let target = bench.folder.path().join("names");
    run(bench.command(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap()]));
    let below = |root: &Path| -> Vec<PathBuf> {
        files_below(root).iter().map(|path| path.strip_prefix(root).unwrap().to_owned()).collect()
    };
    assert_eq!(below(&target), below(&bench.codex()));
}

#[test]
fn pipes_and_sockets_are_not_waited_for() {
    let bench = bench();
    let day = bench.codex().join("sessions/2026/11/15");
    let database = rusqlite::Connection::open(bench.codex().join("state_5.sqlite")).unwrap();
    database
        .execute_batch("create table threads (id text, title text); insert into threads values ('a', 'b')")
        .unwrap();
    drop(database);
    for path in [
        day.join(rollout(ID)),
        day.join(format!("{}.zst", rollout(ID))),
        bench.codex().join("history.jsonl"),
        bench.codex().join("state_9.sqlite"),
        bench.codex().join("state_5.sqlite-wal"),
        bench.codex().join("state_5.sqlite-shm"),
        bench.codex().join("config.toml"),
        bench.codex().join("auth.json"),
    ] {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    let _socket = std::os::unix::net::UnixListener::bind(day.join("rollout-s.jsonl")).unwrap();
    symlink("/dev/zero", day.join("rollout-zero.jsonl")).unwrap();
    let report = sync_within(&bench, MEMORY);
    assert_eq!((&report["new_files"], &report["new_documents"]), (&1.into(), &1.into()), "{report}");
    run(bench.command(&["sync", "--full"]));
    run(bench.command(&["up", "--no-serve"]));
    assert_sound(&bench);
}

#[test]
fn a_file_becomes_a_folder_and_a_folder_a_file() {
    let bench = bench();
    let file = bench.transcript(&rollout(ID), &conversation(ID, "was a file"));
    let inner = "0199a1b2-0000-7000-8000-0000000000f9";
    let folder = bench.codex().join("sessions/2026/11/15/rollout-folder.jsonl");
    std::fs::create_dir_all(&folder).unwrap();
    let text = |id: &str, words: &str| conversation(id, words).join("\n") + "\n";
    std::fs::write(folder.join(rollout(inner)), text(inner, "was in a folder")).unwrap();
    std::fs::create_dir_all(bench.codex().join("rules")).unwrap();
    std::fs::write(bench.codex().join("rules/one"), "rule one").unwrap();
    sync_within(&bench, MEMORY);
    assert_sound(&bench);
    let later = "0199a1b2-0000-7000-8000-0000000000fa";
    let now_file = "0199a1b2-0000-7000-8000-0000000000fb";
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    std::fs::write(file.join(rollout(later)), text(later, "is in a folder")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, text(now_file, "is a file")).unwrap();
    std::fs::remove_dir_all(bench.codex().join("rules")).unwrap();
    std::fs::write(bench.codex().join("rules"), "no longer a folder").unwrap();
    let report = sync_within(&bench, MEMORY);
    // The rules that are a file now are kept as a text of unknown kind.
    assert_eq!((&report["gone_files"], &report["new_files"]), (&3.into(), &3.into()), "{report}");
    for (id, words, gone) in [
        (ID, "was a file", true),
        (inner, "was in a folder", true),
        (later, "is in a folder", false),
        (now_file, "is a file", false),
    ] {
        assert!(show(&bench, id).contains(words));
        assert_eq!(session(&bench, id)["source_gone"], gone, "{words}");
    }
    // Both cannot be at one path: the current one is, the old one is next to it.
    let target = bench.folder.path().join("both");
    run(bench.command(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap()]));
    let restored: Vec<String> =
        files_below(&target).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for (id, words) in
        [(ID, "was a file"), (inner, "was in a folder"), (later, "is in a folder"), (now_file, "is a file")]
    {
        let expected = text(id, words);
        assert!(restored.iter().any(|restored| **restored == expected), "{words}");
    }
    assert!(restored.iter().any(|restored| restored == "rule one"));
    let place = |path: &Path| target.join(path.strip_prefix(bench.codex()).unwrap());
    assert_eq!(std::fs::read_to_string(place(&folder)).unwrap(), text(now_file, "is a file"));
    assert_eq!(
        std::fs::read_to_string(place(&file).join(rollout(later))).unwrap(),
        text(later, "is in a folder")
    );
    run(bench.command(&["restore", "--source", "codex_cli", "--to", target.to_str().unwrap()]));
    assert_accounts_add_up(&bench, &bench.codex());
}

/// The uid that a test run by root uses, since permissions do not apply to root.
const SOMEBODY: u32 = 65_534;

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// A copy of the program that an unprivileged user can run on this bench.
fn somebody_elses(bench: &Bench) -> PathBuf {
    let program = bench.folder.path().join("annals");
    std::fs::copy(annals_testkit::program(), &program).unwrap();
    if is_root() {
        for path in [bench.folder.path(), &program] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::create_dir_all(bench.archive()).unwrap();
        chown(bench.archive(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    program
}

fn as_somebody(bench: &Bench, program: &Path, arguments: &[&str]) -> Command {
    let like = bench.command(arguments);
    let mut command = Command::new(program);
    command.env_clear().args(like.get_args()).current_dir(bench.folder.path());
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if is_root() {
        command.uid(SOMEBODY).gid(SOMEBODY);
    }
    command
}
