//! Conversations with markup, links, escapes and characters that reverse text: every page shows them as text, and
//! nothing in them runs.

use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::browser::Browser;
use annals_testkit::codex::{ID, answer, meta, prompt, rollout};
use annals_testkit::server::{Server, escaped};

const CLAUDE: &str = "70aa0000-0000-4000-8000-000000000001";

/// What the homes contain, and how a page must show it.
struct Payload {
    written: &'static str,
    shown: &'static str,
    /// What the output of a command shows of it: terminals print no escape sequences.
    printed: &'static str,
}

fn event(payload: &Value) -> String {
    json!({ "timestamp": "2026-11-15T10:00:03.000Z", "type": "response_item", "payload": payload })
        .to_string()
}

/// Writes the payload to every place where a client stores user text.
fn write(bench: &Bench, written: &str) {
    let text = format!("wordbefore {written} wordafter");
    let answered = format!(
        "{text}\n\n`{written}`\n\n- {written}\n\n| a | b |\n|---|---|\n| {} | c |\n\n```sh\n{written}\n```",
        written.replace('|', "")
    );
    let mut lines =
        vec![meta(ID).replace(
            "/home/ada/engine",
            json!(format!("/home/ada/{written}")).to_string().trim_matches('"'),
        )];
    lines.extend(prompt(&text));
    lines.extend(answer(&answered));
    let arguments = json!({ "cmd": format!("echo '{written}'"), "workdir": written }).to_string();
    let patch = format!("*** Begin Patch\n*** Add File: src/{written}.txt\n+{written}\n*** End Patch");
    lines.extend([
        event(&json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": text }] })),
        event(&json!({ "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": "call_1" })),
        event(&json!({ "type": "function_call_output", "call_id": "call_1",
            "output": format!("Process exited with code 1\nOutput:\n{text}\n") })),
        event(&json!({ "type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": "apply_patch",
            "input": patch })),
        event(&json!({ "type": "custom_tool_call_output", "call_id": "call_2", "output": text })),
        event(&json!({ "type": "function_call", "name": written, "arguments": "{}", "call_id": "call_3" })),
        event(&json!({ "type": "function_call", "name": "update_plan", "call_id": "call_4",
            "arguments": json!({ "plan": [{ "step": text, "status": "pending" }] }).to_string() })),
    ]);
    bench.transcript(&rollout(ID), &lines);
    let file = |path: &str, text: &str| {
        let path = bench.user().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let name = json!({ "id": ID, "thread_name": text, "updated_at": "2026-11-15T10:10:00Z" });
    file(".codex/session_index.jsonl", &format!("{name}\n"));
    file(".codex/AGENTS.md", &text);
    let path_part = written.replace(['/', '\0', '\n'], "_");
    file(&format!(".codex/prompts/{path_part}.md"), &text);
    file(
        &format!(".claude/skills/{path_part}/SKILL.md"),
        &format!("---\nname: {path_part}\ndescription: {text}\n---\n{text}\n"),
    );
    file(&format!(".claude/projects/-home-ada/{CLAUDE}.jsonl"), &conversation(&text, written));
}

/// A Claude Code session of the same kind.
fn conversation(text: &str, written: &str) -> String {
    let mut count = 0;
    let mut line = |kind: &str, message: Value| {
        count += 1;
        json!({ "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": format!("/home/ada/{written}"),
            "sessionId": CLAUDE, "version": "2.1.197", "type": kind, "gitBranch": written, "message": message,
            "uuid": format!("d7d70000-0000-4000-8000-{count:012}"), "timestamp": "2026-11-15T10:00:02.000Z" })
    };
    let talk = |role: &str, content: Value| {
        json!({ "id": "msg_1", "type": "message", "role": role, "model": written, "content": content,
            "usage": { "input_tokens": 1, "output_tokens": 1 } })
    };
    let path = format!("/home/ada/{written}.txt");
    let edit = json!({ "file_path": path, "old_string": format!("old {written}"), "new_string": text });
    let lines = [
        line("user", json!({ "role": "user", "content": text })),
        line(
            "assistant",
            talk("assistant", json!([{ "type": "thinking", "thinking": text, "signature": "c2ln" }])),
        ),
        line("assistant", talk("assistant", json!([{ "type": "text", "text": text }]))),
        line(
            "assistant",
            talk(
                "assistant",
                json!([{ "type": "tool_use", "id": "toolu_1", "name": "Edit", "input": edit }]),
            ),
        ),
        line(
            "user",
            json!({ "role": "user", "content": [{ "tool_use_id": "toolu_1", "type": "tool_result", "content": text }] }),
        ),
        line(
            "assistant",
            talk(
                "assistant",
                json!([{ "type": "tool_use", "id": "toolu_2", "name": "Bash", "input": { "command": written } }]),
            ),
        ),
        line(
            "user",
            json!({ "role": "user", "content": [{ "tool_use_id": "toolu_2", "type": "tool_result", "content": text, "is_error": true }] }),
        ),
        json!({ "type": "custom-title", "customTitle": text, "sessionId": CLAUDE }),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Everything in a page that could run, or lead to something that runs, and is not ours.
const DANGERS: &str = r"
const found = [];
for (const part of document.querySelectorAll('*')) {
  for (const { name, value } of part.attributes) {
    if (/^on/i.test(name)) found.push(`${name}=${value}`);
    if (/^\s*(javascript|data|vbscript):/i.test(value)) found.push(`${name}=${value}`);
  }
  if (part.matches('iframe, object, embed, foreignObject, base, meta[http-equiv], svg script, animate, set')) found.push(part.outerHTML);
  if (part.matches('script') && !part.src.startsWith(location.origin + '/assets/')) found.push(part.outerHTML);
  if (part.matches('img') && !part.src.startsWith(location.origin)) found.push(part.outerHTML);
  for (const kind of ['mouseover', 'focus', 'pointerenter', 'error', 'load']) part.dispatchEvent(new Event(kind));
}
if (window.ran !== undefined) found.push('it ran: ' + window.ran);
const odd = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const odds = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
while (odds.nextNode()) {
  if (odd.test(odds.currentNode.data)) found.push('text: ' + JSON.stringify(odds.currentNode.data.slice(0, 80)) + ' in ' + odds.currentNode.parentElement.outerHTML.slice(0, 80));
}
for (const part of document.querySelectorAll('[title], [aria-label], [alt]')) {
  for (const name of ['title', 'aria-label', 'alt']) if (odd.test(part.getAttribute(name) ?? '')) found.push(name + ' of ' + part.outerHTML.slice(0, 80));
}
return found;";

/// Every page with the payload on it shows it as text, and nothing runs.
fn assert_only_text(payload: &Payload) {
    let bench = Bench::new();
    write(&bench, payload.written);
    bench.sync();
    let server = Server::without_refresh(&bench);
    let browser = Browser::open(&server.address, &server.token);
    let visit = |page: &str| {
        browser.go(page);
        browser.run("for (const folded of document.querySelectorAll('details')) folded.open = true;");
        let dangers = browser.run(DANGERS);
        assert_eq!(dangers, json!([]), "{page}");
        browser.run("return document.body.innerText;").as_str().unwrap().to_owned()
    };
    let sessions = [format!("/sessions/codex_cli/{ID}"), format!("/sessions/claude_code/{CLAUDE}")];
    let mut pages =
        vec!["/".to_owned(), "/sessions?include_subagents=true".to_owned(), "/library".to_owned()];
    pages.extend(sessions.clone());
    for page in &pages {
        let text = visit(page);
        // A name that was a path has lost its slashes.
        let shown =
            if page == "/library" { payload.shown.replace('/', "_") } else { payload.shown.to_owned() };
        let first = shown.lines().next().unwrap();
        assert!(text.contains(first), "{page} does not show {first:?}:\n{text}");
    }
    for (source, session) in ["codex_cli", "claude_code"].iter().zip(&sessions) {
        visit(session);
        assert!(browser.text(".entry.prompt .plain").contains(payload.shown), "the prompt of {source}");
        assert!(
            browser.text(".entry.answer .prose").contains(payload.shown.split(['[', '`']).next().unwrap()),
            "the answer of {source}"
        );
        for output in browser.texts(".call.failed pre") {
            let is_whole = output.contains(payload.shown) || output.contains(payload.printed);
            assert!(is_whole, "a call of {source}: {output}");
        }
        assert!(browser.count(".call.failed") > 0, "{source}");
        let id = session.rsplit('/').next().unwrap();
        for message in
            server.list(&format!("/api/v1/agent-sessions/{source}/sessions/{id}/messages"), "messages")
        {
            visit(&format!("{session}/raw/{}", message["id"].as_str().unwrap()));
        }
        // Including what the script inserts.
        visit(&format!("{session}?q={}", escaped("wordbefore")));
        browser.wait("the marks", "document.querySelector('mark.found')");
        assert_eq!(browser.run(DANGERS), json!([]));
    }
    let found = visit("/search?q=wordbefore");
    assert!(browser.count(".passage") >= 4, "{found}");
    let snippets = browser.texts(".passage .snippet");
    let first = payload.shown.split_whitespace().next().unwrap();
    assert!(snippets.iter().any(|snippet| snippet.contains(first)), "{snippets:?}");
    for page in ["/tools?days=all", "/usage?days=all", "/audit", "/secrets"] {
        visit(page);
    }
    for item in server.list("/api/v1/library", "items") {
        let [source, kind, id] = ["source", "kind", "id"].map(|name| escaped(item[name].as_str().unwrap()));
        let text = visit(&format!("/library/item?source={source}&kind={kind}&id={id}"));
        assert!(text.contains("wordbefore"), "{text}");
    }
    visit(&format!("/sessions?q={0}&project={0}&branch={0}", escaped(payload.written)));
    visit(&format!("/search?q={}", escaped(payload.written)));
    browser.close();
}

#[test]
fn a_script_is_text() {
    let script = "<script>window.ran = 'script'</script>";
    assert_only_text(&Payload { written: script, shown: script, printed: script });
}

#[test]
fn an_event_handler_is_text() {
    let handler = "<img src=x onerror=\"window.ran = 'handler'\" onmouseover='window.ran=1'>";
    assert_only_text(&Payload { written: handler, shown: handler, printed: handler });
}

#[test]
fn an_attribute_that_is_broken_out_of_is_text() {
    let quotes = "\"><b onmouseover=\"window.ran=1\">' autofocus onfocus='window.ran=2";
    assert_only_text(&Payload { written: quotes, shown: quotes, printed: quotes });
}

#[test]
fn a_javascript_link_leads_nowhere() {
    let link = "<a href=\"javascript:window.ran='link'\">press</a> [press](javascript:window.ran='link')";
    assert_only_text(&Payload { written: link, shown: link, printed: link });
}

#[test]
fn a_drawing_with_a_script_is_text() {
    let drawing = "<svg onload=\"window.ran='svg'\"><script>window.ran='svg'</script><set onbegin=\"window.ran=1\"/></svg>";
    assert_only_text(&Payload { written: drawing, shown: drawing, printed: drawing });
}

#[test]
fn terminal_escapes_are_shown_as_symbols() {
    assert_only_text(&Payload {
        written: "\u{1b}[31mred\u{1b}[0m\u{7} \u{1b}]8;;http://elsewhere.example\u{7}press\u{9b}2J",
        shown: "␛[31mred␛[0m␇ ␛]8;;http://elsewhere.example␇press⟨U+009B⟩2J",
        printed: "red␇ press⟨U+009B⟩2J",
    });
}

#[test]
fn text_reversing_characters_are_shown_by_name() {
    assert_only_text(&Payload {
        written: "safe\u{202e}gnp.exe\u{2066}x\u{2069}\u{200f}",
        shown: "safe⟨U+202E⟩gnp.exe⟨U+2066⟩x⟨U+2069⟩⟨U+200F⟩",
        printed: "safe⟨U+202E⟩gnp.exe⟨U+2066⟩x⟨U+2069⟩⟨U+200F⟩",
    });
}
