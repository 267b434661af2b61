//! `annals import OTHER/annals.db`.

use annals_testkit::codex::{ID, conversation, prompt, rollout, text_of};
use annals_testkit::files::append;
use annals_testkit::{Bench, checks};

use super::{Machine, assert_same_archives};

const OTHER: &str = "0199a1b2-0000-7000-8000-0000000000ff";

#[test]
fn merged_archives_are_like_one_that_synced_all_homes() {
    let (laptop, desktop) = (Machine::with_fixtures("laptop"), Machine::with_fixtures("desktop"));
    desktop.bench.transcript(&rollout(OTHER), &conversation(OTHER, "gears of the desktop"));
    laptop.bench.transcript(&rollout(ID), &conversation(ID, "gears of the laptop"));
    let (merged, synced) = (Bench::new(), Bench::new());
    for machine in [&laptop, &desktop] {
        machine.sync();
        machine.sync_into(&synced);
        let account = merged.json(&["import", &machine.archive()])["imports"][0].clone();
        assert_eq!(
            (&account["kind"], &account["changed_files"]),
            (&"archive".into(), &0.into()),
            "{account}"
        );
        assert!(account["new_files"].as_u64().unwrap() > 50, "{account}");
    }
    assert_same_archives(&merged, &synced);
    // Again, nothing is new.
    for machine in [&laptop, &desktop] {
        let account = merged.json(&["import", &machine.archive()])["imports"][0].clone();
        let counts = ["new_files", "changed_files", "captured_bytes"].map(|name| account[name].clone());
        assert_eq!(serde_json::json!(counts), serde_json::json!([0, 0, 0]), "{account}");
    }
    assert_same_archives(&merged, &synced);
    checks::assert_rebuilds(&merged);
    assert_eq!(merged.run(&["doctor", "--deep"]).code, 0);
}

#[test]
fn what_is_appended_rewritten_and_deleted_arrives_too() {
    let machine = Machine::new("laptop");
    let (merged, synced) = (Bench::new(), Bench::new());
    let first = machine.bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let second = machine.bench.transcript(&rollout(OTHER), &conversation(OTHER, "wheels"));
    let settings = machine.bench.codex().join("config.toml");
    let steps: [&dyn Fn(); 6] = [
        &|| std::fs::write(&settings, "model = \"one\"\n").unwrap(),
        &|| append(&first, &text_of(&prompt("more about gears"))),
        // Half a line, and then the rest of it.
        &|| append(&first, &prompt("a line in two parts")[0][..40]),
        &|| append(&first, &format!("{}\n", &prompt("a line in two parts")[0][40..])),
        &|| {
            std::fs::write(&second, text_of(&conversation(OTHER, "other wheels"))).unwrap();
            std::fs::write(&settings, "model = \"two\"\n").unwrap();
        },
        &|| {
            std::fs::remove_file(&second).unwrap();
            std::fs::remove_file(&settings).unwrap();
        },
    ];
    for (number, step) in steps.iter().enumerate() {
        step();
        machine.sync();
        machine.sync_into(&synced);
        merged.json(&["import", &machine.archive()]);
        println!("step {number}");
        assert_same_archives(&merged, &synced);
    }
    checks::assert_rebuilds(&merged);
    let (ours, theirs) = (merged.folder.path().join("ours"), merged.folder.path().join("theirs"));
    merged.json(&["restore", "--to", ours.to_str().unwrap()]);
    synced.json(&["restore", "--to", theirs.to_str().unwrap()]);
    let files = annals_testkit::files::files_below(&theirs);
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let there = ours.join(file.strip_prefix(&theirs).unwrap());
        assert_eq!(std::fs::read(&there).unwrap(), std::fs::read(&file).unwrap(), "{}", there.display());
    }
}

#[test]
fn two_archives_of_one_home_have_its_sessions_once() {
    let machine = Machine::new("laptop");
    let (early, late) = (Bench::new(), Bench::new());
    let path = machine.bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    machine.sync_into(&early);
    append(&path, &text_of(&prompt("more about gears")));
    machine.bench.transcript(&rollout(OTHER), &conversation(OTHER, "wheels"));
    machine.sync_into(&late);
    for (into, from) in [(&early, &late), (&late, &early)] {
        into.json(&["import", from.archive().to_str().unwrap()]);
        assert_eq!(into.sessions().len(), 2);
        assert!(into.run(&["show", ID]).stdout.contains("more about gears"));
    }
    assert_same_archives(&early, &late);
    // From now on the machine uses the archive that received.
    append(&path, &text_of(&prompt("and even more")));
    machine.sync_into(&early);
    assert!(early.run(&["show", ID]).stdout.contains("and even more"));
    assert_eq!(early.sessions().len(), 2);
}

#[test]
fn a_forgotten_session_is_not_brought_back() {
    let machine = Machine::new("laptop");
    machine.bench.transcript(&rollout(ID), &conversation(ID, "secret gears"));
    let path = machine.bench.transcript(&rollout(OTHER), &conversation(OTHER, "wheels"));
    machine.sync();
    let merged = Bench::new();
    merged.json(&["import", &machine.archive()]);
    assert_eq!(merged.run(&["forget", ID, "--yes"]).code, 0);
    append(&path, &text_of(&prompt("more about wheels")));
    machine.sync();
    merged.json(&["import", &machine.archive()]);
    let ids: Vec<_> = merged.sessions().iter().map(|session| session["session_id"].clone()).collect();
    assert_eq!(ids, [OTHER]);
    assert!(merged.run(&["show", OTHER]).stdout.contains("more about wheels"));
    assert_eq!(merged.run(&["forget", "--verify", "--text", "secret gears"]).code, 0);
    // Nor from an archive with the same session in another home.
    let other = Machine::new("desktop");
    other.bench.transcript(&rollout(ID), &conversation(ID, "secret gears"));
    other.sync();
    merged.json(&["import", &other.archive()]);
    assert_eq!(merged.sessions().len(), 1);
    // What is forgotten as a text stays masked.
    assert_eq!(merged.run(&["forget", "--text", "wheels", "--yes"]).code, 0);
    append(&path, &text_of(&prompt("once more about wheels")));
    machine.sync();
    merged.json(&["import", &machine.archive()]);
    let shown = merged.run(&["show", OTHER]).stdout;
    assert!(shown.contains("once more about ******") && !shown.contains("wheels"), "{shown}");
}

#[test]
fn arrangements_come_along_and_the_latest_counts() {
    let machine = Machine::new("laptop");
    machine.bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    machine.sync();
    machine.run(&["star", ID]);
    machine.run(&["name", ID, "Gears", "of", "the", "laptop"]);
    let merged = Bench::new();
    let account = merged.json(&["import", &machine.archive()])["imports"][0].clone();
    assert_eq!((&account["arrangements"], &account["new_arrangements"]), (&2.into(), &2.into()));
    let session = &merged.sessions()[0];
    assert_eq!((&session["name"], &session["starred"]), (&"Gears of the laptop".into(), &true.into()));
    assert_eq!(merged.run(&["name", ID, "Merged"]).code, 0);
    let again = merged.json(&["import", &machine.archive()])["imports"][0].clone();
    assert_eq!(again["new_arrangements"], 0);
    assert_eq!(merged.sessions()[0]["name"], "Merged");
}

#[test]
fn imported_homes_are_a_members_if_one_is_named() {
    let machine = Machine::new("laptop");
    machine.bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    machine.sync();
    let merged = Bench::new();
    for name in ["ada", "mary"] {
        merged.json(&["members", "add", name]);
        merged.json(&["import", &machine.archive(), "--member", name]);
    }
    let members = merged.json(&["members", "list"])["members"].as_array().unwrap().clone();
    let homes: Vec<_> = members.iter().map(|member| member["homes"].as_i64().unwrap() > 0).collect();
    assert_eq!(homes, [true, true], "one home of a name is not another one's");
    assert_eq!(merged.sessions().len(), 2);
    assert_eq!(merged.run(&["import", &machine.archive(), "--member", "nobody"]).code, 2);
}

#[test]
fn what_is_no_other_archive_is_refused() {
    let machine = Machine::new("laptop");
    machine.sync();
    let ran = machine.run_in(&machine.bench, &["import", &machine.archive()]);
    assert!(ran.code == 2 && ran.stderr.contains("is this archive"), "{}", ran.stderr);
    let folder = machine.bench.folder.path().join("other");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("annals.db"), b"SQLite format 3\0 and no more").unwrap();
    let path = folder.join("annals.db");
    let ran = machine.run_in(&machine.bench, &["import", path.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.stderr.contains("error"), "{}", ran.stderr);
}
