//! Exporting again: only what changed is written, and nothing that an export did not write is touched.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use annals_testkit::Bench;
use annals_testkit::codex::{ID, answer, conversation, prompt, rollout, text_of};
use annals_testkit::files::{append, files_below};

const OTHER: &str = "0199a1b2-0000-7000-8000-00000000000b";

fn bench() -> (Bench, PathBuf) {
    let bench = Bench::new();
    let path = bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    bench.transcript(&rollout(OTHER), &conversation(OTHER, "springs"));
    bench.sync();
    (bench, path)
}

/// The report of an export of everything.
fn export(bench: &Bench, folder: &Path, format: &str, more: &[&str]) -> (i32, Value) {
    let to = folder.to_str().unwrap();
    let ran = bench.run(&[&["export", "--all", "--json", "--format", format, "--to", to], more].concat());
    (ran.code, serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{format}: {}", ran.stderr)))
}

fn written(report: &(i32, Value)) -> Vec<&str> {
    report.1["written"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect()
}

#[test]
fn only_what_changed_is_written() {
    let (bench, transcript) = bench();
    for format in ["md", "html", "json", "jsonl", "parquet"] {
        let folder = bench.folder.path().join(format);
        let planned = export(&bench, &folder, format, &["--dry-run"]);
        assert!(!folder.exists() && !written(&planned).is_empty(), "{format}: {planned:?}");
        let first = export(&bench, &folder, format, &[]);
        let files = files_below(&folder);
        assert_eq!(written(&first).len(), files.len() - 1, "all but the journal: {format}: {first:?}");
        let again = export(&bench, &folder, format, &[]);
        assert_eq!(written(&again), Vec::<&str>::new(), "{format}");
        assert_eq!(again.1["unchanged"], first.1["written"].as_array().unwrap().len(), "{format}");
        // A deleted file comes back.
        let deleted = folder.join(written(&first)[0]);
        let before = fs::read(&deleted).unwrap();
        fs::remove_file(&deleted).unwrap();
        let again = export(&bench, &folder, format, &[]);
        assert_eq!(written(&again), [written(&first)[0]], "{format}");
        assert_eq!(fs::read(&deleted).unwrap(), before, "{format}");
    }
    append(&transcript, &text_of(&[prompt("more gears"), answer("more of them")].concat()));
    bench.sync();
    for format in ["md", "html", "json", "jsonl", "parquet"] {
        let folder = bench.folder.path().join(format);
        let report = export(&bench, &folder, format, &[]);
        let mut changed = written(&report);
        changed.retain(|path| *path != "index.html");
        match format {
            "parquet" => assert!(
                changed.contains(&"messages/source=codex_cli/month=2026-11/part-0.parquet"),
                "{report:?}"
            ),
            _ => assert!(changed.len() == 1 && changed[0].contains(ID), "{format}: {report:?}"),
        }
        // It is what a fresh export writes.
        let fresh = bench.folder.path().join(format!("fresh-{format}"));
        export(&bench, &fresh, format, &[]);
        let content = |folder: &Path| -> Vec<(PathBuf, Vec<u8>)> {
            let files = files_below(folder).into_iter();
            files
                .map(|path| (path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()))
                .collect()
        };
        assert!(content(&folder) == content(&fresh), "{format}: {:?}", files_below(&folder));
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let (bench, transcript) = bench();
    let folder = bench.folder.path().join("pages");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::write(folder.join("index.html"), "mine too").unwrap();
    let report = export(&bench, &folder, "html", &[]);
    assert_eq!((report.0, &report.1["left_alone"]), (2, &serde_json::json!(["index.html"])));
    let page = written(&report).into_iter().find(|path| path.contains(ID)).unwrap().to_owned();
    // An edited page is not overwritten, whatever happens to its session.
    append(&folder.join(&page), "<!-- edited -->");
    append(&transcript, &text_of(&answer("changed")));
    bench.sync();
    let report = export(&bench, &folder, "html", &[]);
    assert_eq!(report.0, 2, "{report:?}");
    assert!(report.1["left_alone"].as_array().unwrap().contains(&page.as_str().into()), "{report:?}");
    assert!(fs::read_to_string(folder.join(&page)).unwrap().ends_with("<!-- edited -->"));
    for (name, text) in [("notes.txt", "mine"), ("index.html", "mine too")] {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), text);
    }
    // Once it is moved away, the page is written again.
    fs::remove_file(folder.join(&page)).unwrap();
    fs::remove_file(folder.join("index.html")).unwrap();
    let report = export(&bench, &folder, "html", &[]);
    assert_eq!((report.0, written(&report).len()), (0, 2), "{report:?}");
}

/// A kill leaves drafts, and a journal that is ahead of the files or half a line long.
#[test]
fn a_killed_export_is_finished_by_the_next_one() {
    let (bench, _) = bench();
    let folder = bench.folder.path().join("pages");
    let whole = export(&bench, &folder, "html", &[]);
    let page = folder.join(written(&whole).into_iter().find(|path| path.contains(ID)).unwrap());
    let content = fs::read(&page).unwrap();
    fs::remove_file(&page).unwrap();
    fs::write(folder.join(".annals-export-7.tmp"), &content[..content.len() / 2]).unwrap();
    append(&folder.join(".annals-export.jsonl"), "{\"path\":\"codex_cli/half");
    let report = export(&bench, &folder, "html", &[]);
    assert_eq!((report.0, written(&report).len()), (0, 1), "{report:?}");
    assert!(fs::read(&page).unwrap() == content);
    assert!(!folder.join(".annals-export-7.tmp").exists());
    // Half a line does not hide the lines after it.
    assert_eq!(written(&export(&bench, &folder, "html", &[])), Vec::<&str>::new());
}
