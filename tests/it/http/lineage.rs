//! The lineage route answers from the archive: no file on disk is read, and only files of sessions are found.

use serde_json::{Value, json};

use crate::lineage::{CODE, SESSION, session_with_call, small, small_elsewhere};
use annals_testkit::Bench;
use annals_testkit::server::{Server, escaped};

fn address(file: &str) -> String {
    format!("/api/v1/lineage?file={}", escaped(file))
}

#[test]
fn lines_come_from_the_archive_and_not_from_the_disk() {
    let (bench, file) = small(CODE);
    let server = Server::without_refresh(&bench);
    let path = file.to_str().unwrap();
    let lineage = server.json(&address(path));
    assert_eq!((&lineage["lines"]["total"], &lineage["lines"]["exact"]), (&Value::from(3), &Value::from(3)));
    assert_eq!(
        (&lineage["complete"], &lineage["seen_at"]),
        (&Value::from(true), &"2024-03-02T09:00:02.000Z".into())
    );
    assert_eq!(lineage["origins"][0]["session_id"], SESSION);
    let part = server.json(&format!("{}&start=2&end=2", address(path)));
    let span = &part["spans"][0];
    assert_eq!((&span["start"], &span["end"], &span["written_at_line"]), (&2.into(), &2.into(), &2.into()));
    // Whatever happens to the file, the answer is what sessions wrote.
    std::fs::write(&file, "something else\n".repeat(10)).unwrap();
    assert_eq!(server.json(&address(path)), lineage);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(server.json(&address(path)), lineage);
    for wrong in ["&start=0", "&start=3&end=2", "&start=x", "&lines=3"] {
        assert_eq!(server.get(&format!("{}{wrong}", address(path))).status, 400, "{wrong}");
    }
    assert_eq!(server.get("/api/v1/lineage?start=1").status, 400);
}

#[test]
fn other_files_are_not_found() {
    let (bench, file) = small(CODE);
    let folder = file.parent().unwrap();
    std::fs::write(folder.join("untouched.py"), "nobody ever looked at this\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link.py")).unwrap();
    let server = Server::without_refresh(&bench);
    let folder = folder.to_str().unwrap();
    let name = folder.rsplit('/').next().unwrap();
    for path in [
        "/etc/passwd".to_owned(),
        "etc/passwd".to_owned(),
        "../../etc/passwd".to_owned(),
        "ears.py".to_owned(),
        "other/gears.py".to_owned(),
        "./gears.py".to_owned(),
        "/other/machine/pears.py".to_owned(),
        format!("{folder}/../../../../../etc/passwd"),
        format!("{folder}/../{name}/gears.py"),
        format!("{folder}/./gears.py"),
        format!("{folder}//gears.py"),
        format!("file://{folder}/gears.py"),
        format!("{folder}/link.py"),
        format!("{folder}/untouched.py"),
        format!("{folder}/gears.py\0"),
        folder.to_owned(),
        String::new(),
    ] {
        let reply = server.get(&address(&path).replace('\0', "%00"));
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
        assert!(!reply.full_text().contains("root:"), "{path}");
    }
}

#[test]
fn files_outside_the_sessions_folder_are_not_found() {
    let (bench, file) = small_elsewhere(CODE);
    let server = Server::without_refresh(&bench);
    assert_eq!(server.get(&address(file.to_str().unwrap())).status, 404);
    // It is traced locally.
    assert_eq!(crate::lineage::blamed(&bench, &file)["lines"]["exact"], 3);
}

#[test]
fn members_get_no_lineage() {
    let (bench, file) = small(CODE);
    let added = bench.json(&["members", "add", "mary", "--role", "admin", "--organisation", "engines"]);
    let server = Server::without_refresh(&bench);
    let reply = server.get_as(added["token"].as_str().unwrap(), &address(file.to_str().unwrap()));
    assert_eq!(reply.status, 404, "{}", reply.text());
}

/// A session edited a line of a file that none wrote or read as a whole: the client's record has the rest.
#[test]
fn a_file_is_complete_when_an_edit_reports_it() {
    let bench = Bench::new();
    let file = bench.folder.path().canonicalize().unwrap().join("engine/gears.py");
    let (old, new) =
        ("    total = len(engine.gears)", "    total = sum(gear.teeth for gear in engine.gears)");
    let input = json!({"file_path": file, "old_string": old, "new_string": new});
    let detail = json!({"filePath": file, "oldString": old, "newString": new, "originalFile": CODE,
        "replaceAll": false, "structuredPatch": [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [
            " def count_gears(engine):", format!("-{old}"), format!("+{new}"), "     return total"]}]});
    session_with_call(&bench, SESSION, "2024-03-02T09:00", ("Edit", input), detail);
    bench.sync();
    let server = Server::without_refresh(&bench);
    let lineage = server.json(&address(file.to_str().unwrap()));
    assert_eq!(lineage["complete"], true, "{lineage}");
    assert_eq!((&lineage["lines"]["total"], &lineage["lines"]["exact"]), (&Value::from(3), &Value::from(1)));
    let span = &lineage["spans"][1];
    assert_eq!((&span["start"], &span["end"]), (&Value::from(2), &Value::from(2)), "{lineage}");
    // What sessions wrote is plotted by month and model.
    let files = server.get("/lineage").text();
    assert!(
        files.contains("class=\"bars\"") && files.contains("2024-03") && files.contains("made-up-1"),
        "{files}"
    );
}

/// Files of sessions in two worktrees.
fn two_worktrees() -> Bench {
    let bench = Bench::new();
    let engine = bench.folder.path().canonicalize().unwrap().join("engine");
    for (number, folder) in ["one", "two"].into_iter().enumerate() {
        let session = format!("{}{number}", &SESSION[..SESSION.len() - 1]);
        let file = engine.join(folder).join("src/gears.py");
        let input = json!({"file_path": file, "content": CODE});
        let detail = json!({"type": "create", "filePath": file, "content": CODE, "structuredPatch": []});
        session_with_call(
            &bench,
            &session,
            &format!("2024-03-0{}T09:00", number + 2),
            ("Write", input),
            detail,
        );
    }
    bench.sync();
    bench
}

#[test]
fn files_are_found_by_the_end_of_their_path() {
    let bench = two_worktrees();
    let server = Server::without_refresh(&bench);
    for path in ["gears.py", "src/gears.py", "two/src/gears.py"] {
        let lineage = server.json(&address(path));
        let file = lineage["file"].as_str().unwrap();
        assert!(file.ends_with("/two/src/gears.py"), "{path}: {file}");
        let others = lineage["others"].as_array().unwrap();
        assert_eq!(others.len(), usize::from(!path.starts_with("two")), "{path}");
        assert_eq!(lineage["lines"]["exact"], 3, "{path}");
    }
    let one = server.json(&address("one/src/gears.py"));
    assert!(one["file"].as_str().unwrap().ends_with("/one/src/gears.py"));
    // A path of another machine: below the directory of a session, it is the same file.
    let inside = one["file"].as_str().unwrap().rsplit_once("/engine/").unwrap().1;
    let there = server.json(&address(&format!("/Users/mary/work/engine/{inside}")));
    assert_eq!(there["file"], one["file"]);
    assert_eq!(server.get("/lineage?file=gears.py").status, 200);
}

#[test]
fn files_are_listed_in_pages() {
    let bench = two_worktrees();
    let server = Server::without_refresh(&bench);
    let all = server.json("/api/v1/lineage");
    let names = |list: &Value| -> Vec<String> {
        list["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["file"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&all).len(), 2);
    assert!(names(&all)[0].ends_with("/two/src/gears.py"), "{all}");
    let file = &all["files"][0];
    assert_eq!((&file["edits"], &file["reads"], &file["sessions"]), (&1.into(), &0.into(), &1.into()));
    assert_eq!(all["next_cursor"], Value::Null);
    let mut paged = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.json(&format!("/api/v1/lineage?limit=1{cursor}"));
        paged.extend(names(&page));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(paged, names(&all));
    assert_eq!(server.get("/api/v1/lineage?cursor=x").status, 400);
    for (address, part) in [("/lineage", "folder="), ("/files?view=latest", "src/gears.py")] {
        let page = server.get(address);
        assert_eq!(page.status, 200);
        assert!(page.text().contains(part), "{}", page.text());
    }
}

/// Only edits, and no record of the rest of the file.
#[test]
fn a_file_that_was_never_seen_whole_shows_its_edits() {
    let bench = Bench::new();
    let file = bench.folder.path().canonicalize().unwrap().join("engine/gears.py");
    let (old, new) = ("    total = len(engine.gears)", "    total = engine.count()");
    let input = json!({"file_path": file, "old_string": old, "new_string": new});
    let detail = json!({"filePath": file, "oldString": old, "newString": new, "structuredPatch": []});
    session_with_call(&bench, SESSION, "2024-03-02T09:00", ("Edit", input), detail);
    bench.sync();
    let server = Server::without_refresh(&bench);
    let reply = server.get(&address(file.to_str().unwrap()));
    assert_eq!(reply.status, 404, "{}", reply.text());
    let refusal: Value = serde_json::from_str(&reply.text()).unwrap();
    assert_eq!(refusal["detail"], "edited once, never seen whole");
    let edit = &refusal["edits"][0];
    assert_eq!((&edit["before"], &edit["after"]), (&old.into(), &new.into()), "{refusal}");
    assert_eq!((&edit["session_id"], &edit["tool"]), (&SESSION.into(), &"Edit".into()));
    let page = server.get(&format!("/lineage?file={}", escaped(file.to_str().unwrap())));
    assert_eq!(page.status, 404);
    // What changed within a line is marked.
    let text = regex::Regex::new("<[^>]*>").unwrap().replace_all(&page.text(), "").into_owned();
    assert!(text.contains("edited once, never seen whole") && text.contains("engine.count()"), "{text}");
}
