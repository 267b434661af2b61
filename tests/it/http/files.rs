//! The pages about files: from folders to files, from a file to the prompts of its edits, and who wrote a pasted text.

use serde_json::json;

use crate::lineage::{CODE, SESSION, session_with_call, small};
use annals_testkit::Bench;
use annals_testkit::server::{Reply, Server, escaped};

/// A second session that edits the file.
const EDITED: &str = "5e551011-0000-4000-8000-0000000000b2";

/// Posts the form for a text as a page of this server does.
fn paste(server: &Server, text: &str) -> Reply {
    paste_with(server, text, &[("Sec-Fetch-Site", "same-origin")])
}

fn paste_with(server: &Server, text: &str, headers: &[(&str, &str)]) -> Reply {
    let cookie = server.cookie_of(&server.token);
    let own = [("Cookie", cookie.as_str()), ("Accept", "text/html")];
    server.send_form("/lineage", &[headers, &own].concat(), &format!("text={}", escaped(text)))
}

fn served() -> (Bench, Server, String) {
    let (bench, file) = small(CODE);
    let server = Server::without_refresh(&bench);
    (bench, server, file.to_str().unwrap().to_owned())
}

#[test]
fn folders_lead_to_files_and_files_to_prompts() {
    let (bench, server, file) = served();
    drop(server);
    let (old, new) = ("    total = len(engine.gears)", "    total = sum(engine.gears)");
    let input = json!({"file_path": file, "old_string": old, "new_string": new});
    let detail = json!({"filePath": file, "oldString": old, "newString": new, "originalFile": CODE,
        "structuredPatch": [{"oldStart": 2, "oldLines": 1, "newStart": 2, "newLines": 1,
            "lines": [format!("-{old}"), format!("+{new}")]}]});
    session_with_call(&bench, EDITED, "2024-03-02T10:00", ("Edit", input), detail);
    bench.sync();
    let server = Server::without_refresh(&bench);
    let (folder, _) = file.rsplit_once('/').unwrap();
    let start = server.page("/files").text();
    let inside = format!("/files?folder={}", escaped(folder));
    assert!(start.contains(&format!("href=\"{inside}\"")) && start.contains("engine/"), "{start}");
    let listed = server.page(&inside).text();
    let lines = format!("/lineage?file={}", escaped(&file));
    assert!(listed.contains(&format!("href=\"{lines}\"")), "{listed}");
    // Two edits in two sessions; the client recorded the line of one of them.
    let row = listed.split("<tr data-entry>").nth(1).unwrap();
    let numbers: Vec<&str> = row.split("class=\"number\">").skip(1).take(5).map(|part| &part[..1]).collect();
    assert_eq!(numbers, ["1", "1", "2", "0", "2"], "{row}");
    assert!(row.contains("Claude Code 100 %"), "{row}");
    // The folder above is reached from here, and shows the same work.
    let (above, _) = folder.rsplit_once('/').unwrap();
    let above = format!("/files?folder={}", escaped(above));
    assert!(listed.contains(&format!("href=\"{above}\"")), "{listed}");
    assert!(server.page(&above).text().contains("engine/"));
    let history = server.page(&format!("{lines}&view=history")).text();
    for part in ["Count the gears", &format!("/sessions/claude_code/{SESSION}"), "def count_gears", "Write"] {
        assert!(history.contains(part), "no {part} in {history}");
    }
    let shown = server.page(&lines).text();
    assert!(
        shown.contains("3 lines: 3 exact")
            && shown.contains("sum(engine.gears)")
            && shown.contains("class=\"gutter a"),
        "{shown}"
    );
}

#[test]
fn files_are_filtered_by_period_and_assistant() {
    let (_bench, server, file) = served();
    let (folder, _) = file.rsplit_once('/').unwrap();
    let folder = escaped(folder);
    let has = |filter: &str| {
        server.page(&format!("/files?folder={folder}&{filter}")).text().contains("/lineage?file=")
    };
    assert!(has("since=2024-03-01&until=2024-03-03") && has("source=claude_code"));
    assert!(!has("since=2024-03-03") && !has("until=2024-03-02") && !has("source=codex_cli"));
    // A preset of the bar stays in the folder.
    let page = server.page(&format!("/files?folder={folder}")).text();
    assert!(page.contains(&format!("/files?days=7&#38;folder={folder}")), "{page}");
    for wrong in ["/files?view=songs", "/files?folder=/x&colour=red", "/lineage?file=x&view=songs"] {
        assert_eq!(server.page(wrong).status, 400, "{wrong}");
    }
}

#[test]
fn a_pasted_text_leads_to_the_prompt_that_wrote_it() {
    let (_bench, server, _) = served();
    let reply = paste(&server, &format!("a line of mine\r\n{}", CODE.replace('\n', "\r\n")));
    let text = reply.text();
    assert_eq!(reply.status, 200, "{text}");
    assert!(text.contains("Count the gears") && text.contains("4 lines:"), "{text}");
    assert!(text.contains("1 unknown") && text.contains("a line of mine"), "{text}");
    assert_eq!(paste(&server, " \r\n").status, 400);
    let nothing = paste(&server, "nobody ever wrote this line here\n").text();
    assert!(nothing.contains("1 line:") && nothing.contains("1 unknown"), "{nothing}");
    // What was pasted is text.
    let markup = paste(&server, "<script>alert(1)</script>\n").text();
    assert!(!markup.contains("<script>alert") && markup.contains("&lt;script&gt;"), "{markup}");
}

#[test]
fn texts_are_traced_only_for_pages_of_this_server() {
    let (_bench, server, _) = served();
    let elsewhere = [("Origin", "http://127.0.0.1:1")];
    for headers in [&[][..], &elsewhere, &[("Sec-Fetch-Site", "cross-site")], &[("Sec-Fetch-Site", "none")]] {
        assert_eq!(paste_with(&server, CODE, headers).status, 403, "{headers:?}");
    }
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let here = format!("http://127.0.0.1:{port}");
    assert_eq!(paste_with(&server, CODE, &[("Origin", &here)]).status, 200);
}

#[test]
fn a_pasted_secret_is_masked() {
    let (_bench, server, _) = served();
    let key = format!("sk-ant-api03-{}", "Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz".repeat(3));
    let text = paste(&server, &format!("key = \"{key}\"\n")).text();
    assert!(!text.contains(&key) && text.contains("[secret:"), "{text}");
}

#[test]
fn members_get_no_files() {
    let (bench, server, file) = served();
    drop(server);
    let added = bench.json(&["members", "add", "mary", "--role", "admin", "--organisation", "engines"]);
    let server = Server::without_refresh(&bench);
    let token = added["token"].as_str().unwrap();
    for page in ["/files", "/files?view=latest", &format!("/lineage?file={}&view=history", escaped(&file))] {
        let reply = server.page_as(token, page);
        assert_eq!(reply.status, 404, "{page}: {}", reply.text());
    }
}
