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
    assert_eq!(server.get("/api/v1/lineage").status, 400);
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
        "gears.py".to_owned(),
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
}
