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
    // Two calls in two sessions: the whole file, and one line of it.
    let row = listed.split("<tr data-entry>").nth(1).unwrap();
    let numbers: Vec<&str> = row.split("class=\"number\">").skip(1).take(5).map(|part| &part[..1]).collect();
    assert_eq!(numbers, ["4", "1", "2", "0", "2"], "{row}");
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

/// Writes config.toml where the program looks for it.
fn configure(bench: &Bench, text: &str) {
    let path = bench.user().join(".config/annals/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
}

#[test]
fn a_file_opens_in_the_editor_that_is_set() {
    let (bench, server, file) = served();
    let pages = |server: &Server| {
        let lines = server.page(&format!("/lineage?file={}", escaped(&file))).text();
        let session = server.page(&format!("/sessions/claude_code/{SESSION}")).text();
        (lines, session)
    };
    let link = |start: &str| format!("href=\"{start}{file}");
    let (lines, session) = pages(&server);
    assert!(lines.contains(&link("vscode://file")), "{lines}");
    assert!(session.contains(&link("vscode://file")), "{session}");
    drop(server);
    configure(&bench, "editor = \"zed://file{path}:{line}\"\n");
    let (lines, session) = pages(&Server::without_refresh(&bench));
    assert!(lines.contains(&link("zed://file")) && session.contains(&link("zed://file")), "{lines}{session}");
    let settings = Server::without_refresh(&bench).page("/settings").text();
    assert!(settings.contains("zed://file{path}:{line}"), "{settings}");
    configure(&bench, "editor = \"none\"\n");
    let (lines, session) = pages(&Server::without_refresh(&bench));
    assert!(!lines.contains("class=\"editor\"") && !session.contains("class=\"editor\""), "{lines}{session}");
    // What is exported has no links into this machine.
    let exported = bench.run(&["export", SESSION, "--format", "html"]);
    assert!(exported.code == 0 && !exported.stdout.contains("vscode:"), "{}", exported.stderr);
    for (text, what) in [
        ("editor = \"javascript://{path}\"", "the scheme javascript is no editor's"),
        ("editor = \"vscode://file\"", "it has no {path}"),
        ("budget = \"much\"", "invalid budget \"much\""),
    ] {
        configure(&bench, text);
        let ran = bench.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(
            ran.code == 2 && ran.stderr.contains(what) && ran.stderr.contains("hint: "),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_budget_is_a_line_in_the_charts_of_everything() {
    let bench = Bench::new();
    let cost = |number: u32| {
        let id = format!("5e551011-0000-4000-8000-0000000000{number}");
        let usage = json!({"input_tokens": 1_000, "output_tokens": 1_000});
        let line = json!({"type": "assistant", "uuid": id, "sessionId": id, "cwd": "/home/ada/engine",
            "timestamp": annals_testkit::clock::now().to_string(), "requestId": "r",
            "message": {"id": "m", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage,
                "content": [{"type": "text", "text": "So it is."}]}});
        (id, format!("{line}\n"))
    };
    let (id, text) = cost(11);
    crate::claude::write(&bench, crate::claude::FOLDER, &id, &text);
    bench.sync();
    let chart = |query: &str| Server::without_refresh(&bench).page(&format!("/usage?{query}")).text();
    assert!(!chart("days=30").contains("budget"));
    configure(&bench, "budget = \"$365\"\n");
    let line = "budget of $365.00 a month: $12.00 a day";
    assert!(chart("days=30").contains(line), "{}", chart("days=30"));
    assert!(!chart("days=30&source=claude_code").contains("budget"), "it is for all assistants");
    let home = Server::without_refresh(&bench).page("/").text();
    assert!(home.contains("of the budget of $365.00") && home.contains(line), "{home}");
}
