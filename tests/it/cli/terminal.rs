//! What people see on a terminal: lines that fit, colours that add nothing, tables in any script, a pager, and a picker.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::{expect, expect_file};
use unicode_width::UnicodeWidthStr as _;

use annals_testkit::codex::{ID, answer, conversation, meta, prompt, rollout};
use annals_testkit::terminal::{Terminal, without_colour};
use annals_testkit::{Bench, fixtures};

const OTHER: &str = "0199b2c3-0000-7000-8000-00000000000b";
const NARROW: usize = 80;
const WIDE: usize = 200;

/// All conversations of a case, as `show` prints them.
fn shown(bench: &Bench, columns: usize, coloured: bool) -> String {
    let mut ids: Vec<String> =
        bench.sessions().iter().map(|session| session["session_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    let show = |id: &String| {
        let mut command = bench.command(&["show", id]);
        command.env("COLUMNS", columns.to_string());
        command.env(if coloured { "CLICOLOR_FORCE" } else { "NO_COLOR" }, "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{id}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    ids.iter().map(show).collect()
}

/// Goldens are `show.txt` and `show-wide.txt` beside the other expected results of a case.
#[test]
fn conversations_fit_the_terminal_with_and_without_colour() {
    let homes =
        fixtures::with_home().into_iter().map(|(source, case)| (fixtures::synced(source, &case), case));
    let exports = fixtures::with_exports().into_iter().map(|(_, case)| (fixtures::imported(&case), case));
    for (bench, case) in homes.chain(exports) {
        for (columns, name) in [(NARROW, "show.txt"), (WIDE, "show-wide.txt")] {
            let plain = shown(&bench, columns, false);
            let coloured = shown(&bench, columns, true);
            assert!(!plain.contains('\u{1b}'), "{}: colour without being asked", case.display());
            assert!(coloured.contains('\u{1b}') || plain.is_empty(), "{}: no colour", case.display());
            assert_eq!(without_colour(&coloured), plain, "{}: colour changes the text", case.display());
            // A command that people paste stays on one line.
            let lines = plain.lines().filter(|line| !line.starts_with("resume: "));
            let widest = lines.max_by_key(|line| line.width()).unwrap_or_default();
            assert!(widest.width() <= columns, "{}, {columns} columns: {widest}", case.display());
            // Folders of the test have other names each time.
            let folder = bench.folder.path().to_str().unwrap();
            expect_file![case.join(name)].assert_eq(&plain.replace(folder, "FOLDER"));
        }
    }
}

fn on_terminal(bench: &Bench, arguments: &[&str], columns: u16) -> (i32, String) {
    let mut command = bench.command(arguments);
    command.env("ANNALS_PAGER", "cat").env("NO_COLOR", "1");
    Terminal::start(command, columns).finish()
}

fn write_session(bench: &Bench, id: &str, cwd: &Path, words: &str) {
    let lines: Vec<String> = conversation(id, words)
        .iter()
        .map(|line| line.replace("/home/ada/engine", cwd.to_str().unwrap()))
        .collect();
    bench.transcript(&rollout(id), &lines);
}

#[test]
fn tables_fit_the_terminal_and_align_in_every_script() {
    let bench = Bench::new();
    let long = Path::new("/home/ada/a/very/long/path/to/the/place/where/the/work/is/done/engine");
    write_session(
        &bench,
        ID,
        long,
        "歯車の回転数を数えて、結果を表にまとめてから報告してください。よろしくお願いします",
    );
    write_session(
        &bench,
        OTHER,
        Path::new("/home/ada/mill"),
        "Count the gears of the mill, and then write a table of them, please",
    );
    bench.sync();
    for columns in [40, 80, 120, 200] {
        let (code, text) = on_terminal(&bench, &["sessions"], columns);
        assert_eq!(code, 0, "{text}");
        let widest = text.lines().max_by_key(|line| line.width()).unwrap_or_default();
        assert!(widest.width() <= columns.into(), "{columns} columns: {widest}");
    }
    let (_, text) = on_terminal(&bench, &["sessions"], 80);
    expect![[r#"
        when              project  title                        messages  cost  id
        2026-11-15 10:00  mill     Count the gears of the mil…         2     ?  0199b2c3
        2026-11-15 10:00  engine   歯車の回転数を数えて、結果…         2     ?  0199a1b2
    "#]]
    .assert_eq(&text);
    // In a pipe nothing is shortened.
    let piped = bench.run(&["sessions"]).stdout;
    assert!(piped.contains("よろしくお願いします") && piped.contains("table of them, please"), "{piped}");
}

/// A program that tests start by its name.
fn write_program(folder: &Path, name: &str, script: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn path_with(folder: &Path) -> String {
    format!("{}:/usr/bin:/bin", folder.display())
}

#[test]
fn long_answers_open_in_a_pager_on_a_terminal_only() {
    let bench = Bench::new();
    write_session(&bench, ID, Path::new("/home/ada/engine"), "Count the gears");
    bench.sync();
    let read = bench.folder.path().join("read");
    let pager = write_program(
        &bench.folder.path().join("programs"),
        "reader",
        &format!("cat > '{}'", read.display()),
    );
    let with_pager = |arguments: &[&str]| -> Command {
        let mut command = bench.command(arguments);
        command.env("PAGER", &pager);
        command
    };
    let (code, text) = Terminal::start(with_pager(&["show", ID]), 80).finish();
    assert_eq!((code, text.as_str()), (0, ""));
    assert!(fs::read_to_string(&read).unwrap().contains("Count the gears"));
    fs::remove_file(&read).unwrap();
    let (_, text) = Terminal::start(with_pager(&["--no-pager", "show", ID]), 80).finish();
    assert!(text.contains("Count the gears") && !read.exists(), "{text}");
    let piped = with_pager(&["show", ID]).output().unwrap();
    assert!(String::from_utf8_lossy(&piped.stdout).contains("Count the gears") && !read.exists());
}

#[test]
fn a_session_is_picked_while_typing_and_its_client_starts_in_its_directory() {
    let bench = Bench::new();
    let [mill, engine] = ["mill", "engine"].map(|name| bench.folder.path().join("work").join(name));
    for (folder, id, words) in [(&mill, OTHER, "Grind the grain"), (&engine, ID, "Count the gears")] {
        fs::create_dir_all(folder).unwrap();
        write_session(&bench, id, folder, words);
    }
    bench.sync();
    let programs = bench.folder.path().join("programs");
    write_program(&programs, "codex", "echo \"started in $(pwd) with $*\"");
    let mut command = bench.command(&["resume"]);
    command.env("PATH", path_with(&programs)).env("TERM", "xterm");
    let mut terminal = Terminal::start(command, 100);
    terminal.wait_for("Resume which?");
    terminal.type_keys("grain");
    terminal.wait_for("> Grind the grain");
    terminal.type_keys("\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, 0, "{text}");
    let started = format!("started in {} with resume {OTHER}", fs::canonicalize(&mill).unwrap().display());
    assert!(text.contains(&started), "{text}");
    // Without a terminal nothing starts, and what is printed can be pasted.
    let printed = bench.run(&["resume", "gears"]).stdout;
    assert_eq!(printed.trim_end(), format!("cd {} && codex resume {ID}", engine.display()));
}

#[test]
fn giving_up_picks_nothing() {
    let bench = Bench::new();
    write_session(&bench, ID, Path::new("/home/ada/engine"), "Count the gears");
    write_session(&bench, OTHER, Path::new("/home/ada/mill"), "Grind the grain");
    bench.sync();
    let mut command = bench.command(&["resume"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command, 80);
    terminal.wait_for("Resume which?");
    terminal.type_keys("\u{3}");
    let (code, text) = terminal.finish();
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains("codex resume"), "{text}");
}

#[test]
fn the_program_alone_says_what_there_is_and_what_is_next() {
    let bench = Bench::new();
    let (code, text) = on_terminal(&bench, &[], 80);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("No archive yet.") && text.contains("annals up"), "{text}");
    write_session(&bench, ID, Path::new("/home/ada/engine"), "Count the gears");
    bench.sync();
    let (code, text) = on_terminal(&bench, &[], 80);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("1 session: Codex CLI 1"), "{text}");
    assert_eq!(text.lines().filter(|line| line.trim_start().starts_with("annals ")).count(), 3, "{text}");
    // In a pipe there is nobody to advise.
    let piped = bench.run(&[]);
    assert!(piped.code == 2 || piped.stdout.contains("Usage"), "{} {}", piped.code, piped.stdout);
}

#[test]
fn a_live_terminal_shows_what_is_appended() {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &[vec![meta(ID)], prompt("Count the gears").to_vec()].concat());
    bench.sync();
    let mut command = bench.command(&["show", ID, "--follow"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command, 80);
    terminal.wait_for("Count the gears");
    let mut text = fs::read_to_string(&path).unwrap();
    text += &annals_testkit::codex::text_of(&answer("There are twelve gears."));
    fs::write(&path, text).unwrap();
    terminal.wait_for("There are twelve gears.");
    terminal.type_keys("\u{3}");
}
