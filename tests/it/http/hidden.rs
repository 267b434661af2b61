//! Characters that change what a reader sees reach nobody as they are: JSON escapes them on every route.

use serde_json::{Value, json};

use crate::claude;
use annals_testkit::Bench;
use annals_testkit::codex::{line, meta, prompt, rollout, text_of};
use annals_testkit::server::{Server, escaped};

/// DEL, a C1 control, and what reverses the direction of text.
const HIDDEN: &str = "\u{7f}\u{9b}31m\u{202e}gpj.\u{2066}\u{200f}";

const ID: &str = annals_testkit::codex::ID;

fn bench() -> Bench {
    let bench = Bench::new();
    let mut lines = vec![meta(ID).replace("/home/ada/engine", &format!("/home/ada/{HIDDEN}"))];
    lines.extend(prompt(&format!("gears {HIDDEN} turn")));
    let arguments = json!({"command": ["ls", HIDDEN], HIDDEN: 1}).to_string();
    let call = json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": "c"});
    let result = json!({"type": "function_call_output", "call_id": "c", "output": format!("gears {HIDDEN}")});
    lines
        .extend([line(3, "response_item", &call.to_string()), line(4, "response_item", &result.to_string())]);
    lines.push(line(5, "brand_new", &json!({ HIDDEN: HIDDEN }).to_string()));
    bench.transcript(&rollout(ID), &lines);
    let rows =
        claude::talk(claude::ONE).into_iter().map(|row| row.replace("gears", &format!("gears {HIDDEN}")));
    claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&rows.collect::<Vec<_>>()));
    let skill = bench.codex().join(format!("skills/s{HIDDEN}"));
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), format!("---\nname: n{HIDDEN}\n---\ngears {HIDDEN}")).unwrap();
    bench.sync();
    bench
}

/// Every route of the document, with the values that this archive has.
fn addresses(server: &Server) -> Vec<String> {
    let document = server.json("/openapi.json");
    let mut addresses = vec![format!("/api/v1/search?q={}", escaped("gears")), "/api/v1/library".to_owned()];
    let sources = [("codex_cli", "codex", ID), ("claude_code", "claude-code", claude::ONE)];
    for template in document["paths"].as_object().unwrap().keys() {
        for (source, _, session) in sources {
            let address = template.replace("{source}", source).replace("{session_id}", session);
            if address.contains("{stream}") {
                let manifest = server.json(&format!("/api/v1/sources/{source}/manifest"));
                let streams = manifest["streams"].as_array().unwrap().iter();
                let names = streams.map(|stream| stream["name"].as_str().unwrap());
                addresses.extend(names.map(|name| address.replace("{stream}", name)));
            } else {
                addresses.push(address);
            }
        }
    }
    addresses.retain(|address| !address.contains('{'));
    addresses.sort();
    addresses.dedup();
    addresses
}

#[test]
fn json_escapes_what_readers_cannot_see() {
    let bench = bench();
    let server = Server::without_refresh(&bench);
    let (mut escapes, mut answered) = (0, 0);
    for address in addresses(&server) {
        for variant in ["", "full=true"] {
            let path = annals_testkit::server::with(&address, variant);
            let reply = server.get(&path);
            let text = reply.full_text();
            let hidden = text.chars().find(|letter| HIDDEN.contains(*letter) && !letter.is_ascii_graphic());
            assert_eq!(hidden, None, "{path}");
            escapes += text.matches("\\u202e").count();
            answered += usize::from(reply.status == 200);
            assert!(serde_json::from_str::<Value>(&reply.text()).is_ok() || reply.status == 200, "{path}");
        }
    }
    assert!(answered > 60 && escapes > 40, "{answered} answers with {escapes} escapes");
    let messages = server.json(&format!("/api/v1/codex/sessions/{ID}/messages"));
    assert!(messages.to_string().contains(HIDDEN), "parsers read them back: {messages}");
    let refused = server.get(&format!("/api/v1/search?q={}", escaped(&format!("role:{HIDDEN}"))));
    assert_eq!(refused.status, 400);
    assert!(!refused.full_text().contains('\u{202e}'), "{}", refused.text());
    let log = server.stop().stderr;
    assert!(!log.contains('\u{202e}') && !log.contains('\u{9b}'), "{log}");
}

#[test]
fn long_queries_are_refused() {
    let bench = bench();
    let server = Server::without_refresh(&bench);
    let words = vec!["gear"; 5_000].join("+");
    let either = vec!["gear"; 2_500].join("+OR+");
    let short = ["gear"; 300].join("+");
    for path in ["/api/v1/search", "/api/v1/sessions", "/api/v1/codex/sessions"] {
        for query in [&words, &either] {
            assert_eq!(server.get(&format!("{path}?q={query}")).status, 400, "{path}");
        }
        assert_eq!(server.get(&format!("{path}?q={short}")).status, 200, "{path}");
    }
    for path in ["/search", "/sessions"] {
        assert!(server.page(&format!("{path}?q={words}")).status < 500, "{path}");
    }
}
