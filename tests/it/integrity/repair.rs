//! What is damaged is healed from the client's file or from another version.

use annals_testkit::checks::assert_restores;
use annals_testkit::codex::{ID, rollout};

use super::{bench, connect, flip, noise, restore_to};

/// Damage that the client's unchanged file heals.
const DAMAGES: [&str; 9] = [
    "update blob set data = zeroblob(length(data)) where length = 262144",
    "update blob set hash = randomblob(32) where length = 262144",
    "update blob set packing = 7 where length = 262144",
    "delete from blob where length = 262144",
    "delete from segment where byte_offset = 262144",
    "update segment set length = 200000 where byte_offset = 262144",
    "update version set size = 262144 where size = 600000",
    "delete from version where size = 600000",
    "update file set size = 262144 where size = 600000",
];

#[test]
fn a_full_sync_heals_what_the_client_still_has() {
    for damage in DAMAGES {
        let bench = bench();
        assert!(connect(&bench).execute(damage, []).unwrap() > 0, "{damage}");
        assert_eq!(bench.run(&["doctor"]).code, 1, "{damage}");
        let report = bench.json(&["sync", "--full"]);
        let sources = report["sources"].as_array().unwrap();
        let codex = sources.iter().find(|report| report["source"] == "codex_cli").unwrap();
        assert_eq!(
            (&codex["healed_files"], &codex["changed_files"]),
            (&1.into(), &0.into()),
            "{damage}: {codex}"
        );
        let doctor = bench.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{damage}: {}", doctor.stdout);
        assert_restores(&bench, &bench.codex());
    }
}

#[test]
fn repair_says_what_it_can_heal_and_heals_it() {
    for damage in DAMAGES {
        let bench = bench();
        assert!(connect(&bench).execute(damage, []).unwrap() > 0, "{damage}");
        let dry = bench.run(&["repair", "--dry-run"]);
        assert_eq!(dry.code, 0, "{damage}: {} {}", dry.stdout, dry.stderr);
        assert!(
            dry.stdout.contains("can be healed from the client's file: attachments/large.txt"),
            "{}",
            dry.stdout
        );
        assert_eq!(bench.run(&["doctor"]).code, 1, "nothing was changed");
        let healed = bench.run(&["repair"]);
        assert_eq!(healed.code, 0, "{damage}: {} {}", healed.stdout, healed.stderr);
        assert!(healed.stdout.contains("healed from the client's file"), "{}", healed.stdout);
        let doctor = bench.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{damage}: {}", doctor.stdout);
        assert_restores(&bench, &bench.codex());
        assert!(bench.run(&["repair"]).stdout.contains("no damage"));
    }
}

#[test]
fn what_nobody_has_is_listed_and_stays() {
    let bench = bench();
    flip(&bench, &rollout(ID));
    std::fs::remove_file(bench.codex().join("sessions/2026/11/15").join(rollout(ID))).unwrap();
    for arguments in [&["repair", "--dry-run"][..], &["repair"]] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(
            ran.stdout.contains("cannot be healed") && ran.stdout.contains(&rollout(ID)),
            "{}",
            ran.stdout
        );
        assert!(ran.stderr.contains("hint:"), "{}", ran.stderr);
    }
    assert_eq!(restore_to(&bench, "restored").1.code, 2);
}

/// The first version is the start of the second, and neither is stored as the difference from the other.
#[test]
fn an_old_version_is_healed_from_a_newer_one() {
    let bench = bench();
    let path = bench.codex().join("attachments/small.txt");
    for more in ["", "and more"] {
        std::fs::write(&path, [noise(3_000), more.into()].concat()).unwrap();
        bench.sync();
    }
    let damage = "update blob set data = zeroblob(9) where length = 3000";
    assert_eq!(connect(&bench).execute(damage, []).unwrap(), 1);
    std::fs::remove_file(&path).unwrap();
    let healed = bench.run(&["repair"]);
    assert_eq!(healed.code, 0, "{} {}", healed.stdout, healed.stderr);
    let line = "healed from another version: attachments/small.txt version 1";
    assert!(healed.stdout.contains(line), "{}", healed.stdout);
    assert_eq!(bench.run(&["doctor"]).code, 0);
}

/// A file that grew is healed and continued in one run.
#[test]
fn a_full_sync_heals_a_file_that_grew() {
    let bench = bench();
    let path = bench.codex().join("sessions/2026/11/15").join(rollout(ID));
    flip(&bench, &rollout(ID));
    let line = annals_testkit::codex::prompt("and another gear").join("\n") + "\n";
    annals_testkit::files::append(&path, &line);
    assert_eq!(bench.run(&["sync", "--full"]).code, 0);
    let doctor = bench.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    assert_restores(&bench, &bench.codex());
    annals_testkit::checks::assert_rebuilds(&bench);
    annals_testkit::checks::assert_like_fresh(&bench);
}

/// Equal bytes are stored once: a new file must not rely on a damaged copy of them.
#[test]
fn a_new_file_with_the_same_bytes_heals_a_damaged_blob() {
    let bench = bench();
    flip(&bench, "large.txt");
    std::fs::write(bench.codex().join("attachments/copy.txt"), noise(600_000)).unwrap();
    bench.sync();
    assert_eq!(bench.run(&["doctor"]).code, 0);
    assert_restores(&bench, &bench.codex());
}

#[test]
fn damaged_content_is_an_error_wherever_it_is_read() {
    let bench = bench();
    flip(&bench, &rollout(ID));
    for arguments in [
        &["show", ID][..],
        &["tape", ID],
        &["records", "codex_cli/messages", "--full"],
        &["export", "--format", "records"],
    ] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(&rollout(ID)), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("annals repair"), "{arguments:?}: {}", ran.stderr);
    }
}

/// A change in the middle and an append in one run: what is stored is what was there.
#[test]
fn a_change_in_the_middle_before_an_append_is_a_new_version() {
    let bench = bench();
    let path = bench.codex().join("sessions/2026/11/15").join(rollout(ID));
    for _ in 0..6 {
        let words = "wheels ".repeat(30_000);
        annals_testkit::files::append(&path, &(annals_testkit::codex::prompt(&words).join("\n") + "\n"));
    }
    bench.sync();
    let mut text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() > 4 * 262_144);
    let middle = text.len() / 2 + text[text.len() / 2..].find("wheels").unwrap();
    text.replace_range(middle..middle + 6, "levers");
    text += &(annals_testkit::codex::prompt("the end").join("\n") + "\n");
    std::fs::write(&path, &text).unwrap();
    bench.sync();
    assert_restores(&bench, &bench.codex());
    annals_testkit::checks::assert_like_fresh(&bench);
}
