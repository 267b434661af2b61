//! Repositories whose configuration names programs: none of them runs.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{CODE, SESSION, session_that_writes};
use annals_testkit::Bench;
use annals_testkit::git::Repository;

#[test]
fn nothing_that_a_repository_names_is_run() {
    let bench = Bench::new();
    let top = bench.folder.path().canonicalize().unwrap();
    let repository = Repository::create(&top.join("engine"));
    let file = repository.folder.join("gears.py");
    session_that_writes(&bench, SESSION, "2024-03-02T09:00", &file, CODE);
    bench.sync();
    let at = "2024-03-02T09:30:00Z";
    let message =
        "Count gears\n\nEntire-Checkpoint: abcdef012345\nCo-authored-by: Cursor <cursoragent@cursor.com>";
    repository.commit_files(&[("gears.py", CODE), ("ab/cdef012345/0/full.jsonl", "{}\n")], message, (at, at));
    repository.git(&["notes", "--ref=ai", "add", "--message", "gears.py\n---\n{}", "HEAD"]);
    repository.git(&["update-ref", "refs/heads/entire/checkpoints/v1", "HEAD"]);
    let (marker, script) = (top.join("was-run"), top.join("program"));
    std::fs::write(&script, format!("#!/bin/sh\necho \"$0 $@\" >> '{}'\ncat\n", marker.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = script.to_str().unwrap();
    for name in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "core.fsmonitor",
        "core.pager",
        "pager.blame",
        "core.editor",
        "core.sshCommand",
        "core.gitProxy",
        "core.askPass",
        "core.alternateRefsCommand",
        "credential.helper",
        "gpg.program",
        "remote.origin.uploadpack",
        "uploadpack.packObjectsHook",
    ] {
        repository.git(&["config", name, program]);
    }
    for name in [
        "alias.blame",
        "alias.rev-parse",
        "alias.ls-files",
        "alias.cat-file",
        "alias.ls-tree",
        "alias.rev-list",
        "alias.for-each-ref",
    ] {
        repository.git(&["config", name, &format!("!{program}")]);
    }
    repository.git(&["config", "filter.evil.required", "true"]);
    repository.git(&["config", "core.hooksPath", top.to_str().unwrap()]);
    repository.git(&["config", "extensions.partialClone", "origin"]);
    repository.git(&["config", "remote.origin.promisor", "true"]);
    repository.git(&["config", "remote.origin.url", &format!("ext::{program}")]);
    repository.git(&["config", "protocol.ext.allow", "always"]);
    for place in [".gitattributes", ".git/info/attributes"] {
        std::fs::write(repository.folder.join(place), "* filter=evil diff=evil text\n").unwrap();
    }
    for hook in ["post-index-change", "fsmonitor-watchman", "post-checkout"] {
        std::fs::copy(&script, top.join(hook)).unwrap();
        std::fs::copy(&script, repository.folder.join(".git/hooks").join(hook)).unwrap();
    }
    // The test itself must be able to notice: plain git runs the filter.
    std::fs::write(&file, format!("{CODE}later = True\n")).unwrap();
    let plain = ["blame", "gears.py"];
    let _ = std::process::Command::new("git").arg("-C").arg(&repository.folder).args(plain).output();
    assert!(marker.exists(), "git no longer runs what a repository names");
    std::fs::remove_file(&marker).unwrap();

    let folder = repository.folder.to_str().unwrap();
    let path = file.to_str().unwrap();
    for words in [
        vec![path],
        vec!["--porcelain", path],
        vec!["--at", "HEAD", path],
        vec!["--stat", folder],
        vec!["--stat", folder, "--at", "HEAD"],
    ] {
        let mut command = bench.command(&[&["blame"], words.as_slice()].concat());
        let output = command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        let ran = std::fs::read_to_string(&marker).unwrap_or_default();
        assert_eq!(ran, "", "{words:?}");
    }
    let import =
        bench.command(&["import", "--git", folder]).env("PATH", std::env::var_os("PATH").unwrap()).output();
    assert_eq!(import.unwrap().status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&marker).unwrap_or_default(), "");
    // Commits are known nevertheless, and an object that is missing is not fetched.
    let blame = |at: &str| {
        let mut command = bench.command(&["blame", "--json", "--at", at, path]);
        command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    };
    let known: Value = serde_json::from_slice(&blame("HEAD").stdout).unwrap();
    assert_eq!((&known["lines"]["exact"], known["commits"][0].is_string()), (&Value::from(3), true));
    let blob = std::process::Command::new("git")
        .arg("-C")
        .arg(&repository.folder)
        .args(["ls-tree", "--object-only", "HEAD", "gears.py"])
        .output()
        .unwrap();
    let blob = String::from_utf8(blob.stdout).unwrap();
    let object = repository.folder.join(".git/objects").join(&blob[..2]).join(blob[2..].trim());
    std::fs::remove_file(object).unwrap();
    assert_eq!(blame("HEAD").status.code(), Some(2));
    assert!(!marker.exists(), "{}", std::fs::read_to_string(&marker).unwrap());
}
