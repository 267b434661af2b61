//! Each form of trace file becomes sessions with messages, calls and usage.

mod files;
mod joins;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use annals_testkit::Bench;

pub fn fixture(case: &str) -> PathBuf {
    let folder = Path::new(annals_testkit::ROOT).join("crates/annals-sources/src/openai_api/fixtures");
    folder.join(case).join("exports/1")
}

/// Imports paths that must be recognised, and returns the report.
pub fn import(bench: &Bench, paths: &[&Path]) -> Value {
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    bench.json(&[&["import"][..], &paths.collect::<Vec<_>>()].concat())
}

pub fn session(bench: &Bench, id: &str) -> Value {
    let found = bench.sessions().into_iter().find(|session| session["session_id"] == id);
    found.unwrap_or_else(|| panic!("no session {id} in {:?}", ids(bench)))
}

pub fn ids(bench: &Bench) -> Vec<String> {
    let mut ids: Vec<String> =
        bench.sessions().iter().map(|session| session["session_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// Messages and tool results, one line each.
pub fn steps(bench: &Bench, id: &str) -> Vec<String> {
    let shown = bench.json(&["show", id]);
    let mut steps = Vec::new();
    for message in shown["messages"].as_array().unwrap() {
        for block in message["blocks"].as_array().unwrap() {
            let text = |name: &str| block[name].as_str().unwrap_or_default().trim().to_owned();
            steps.push(match block["type"].as_str().unwrap() {
                "text" | "thinking" => format!("{}: {}", message["kind"].as_str().unwrap(), text("text")),
                "tool_call" => format!("call {}: {}", text("name"), text("title")),
                "tool_result" => format!("result: {}", text("output")),
                "event" => format!("event {}: {}", text("name"), text("text")),
                other => format!("{other} {}{}{}", text("name"), text("media_type"), text("path")),
            });
        }
    }
    steps
}

#[test]
fn stored_completions_find_the_messages_that_were_sent() {
    let bench = Bench::new();
    import(&bench, &[&fixture("chat_completions")]);
    assert_eq!(
        steps(&bench, "chatcmpl-Stored1"),
        [
            "injected: You know the sea.",
            "prompt: When does the ebb start here?",
            "image https://example.org/quay.png",
            "answer: Ebb starts at nine.",
        ]
    );
    assert_eq!(steps(&bench, "chatcmpl-Stored2"), ["call tide_table: tides/husum.csv"]);
    assert_eq!(steps(&bench, "chatcmpl-Refused"), ["answer: I can not help with that."]);
    assert_eq!(steps(&bench, "chatcmpl-Two"), ["answer: First choice.", "answer: Second choice."]);
    let stored = session(&bench, "chatcmpl-Stored2");
    assert_eq!(
        stored["tokens"],
        json!({"input": 10, "output": 8, "cache_read": 10, "cache_write": 0, "reasoning": 0, "total": 28})
    );
    assert_eq!(stored["billing_source"], "estimated");
}

#[test]
fn responses_contain_every_kind_of_item() {
    let bench = Bench::new();
    import(&bench, &[&fixture("responses")]);
    let chain = steps(&bench, "resp_0001");
    for step in [
        "injected: Answer in one line.",
        "thinking: The archive may know.",
        "call search_archive: lighthouse keepers",
        "answer: Three keepers served here.",
        "call web_search: keepers of the old light",
        "result: https://example.org/keepers",
        "call file_search: keeper",
        "result: log.txt\nKeeper of 1901",
        "call code_interpreter: print(1+2)",
        "result: 3",
        "call tides.today: {}",
        "result: no such port",
        "call image_generation: a lamp",
        "result: [image of 12 bytes]",
        "call note: write this down",
        "call shell: ls lamps",
        "event error: max_output_tokens",
        "answer: It was cut",
    ] {
        assert!(chain.iter().any(|found| found == step), "{step} is not in {chain:#?}");
    }
    assert_eq!(chain.iter().filter(|step| step.starts_with("injected")).count(), 1);
    assert_eq!(
        steps(&bench, "conv_lamp"),
        [
            "prompt: What oil did the lamp burn?",
            "attachment ledger.pdf",
            "answer: Rapeseed oil.",
            "call stock: {}",
            "result: two barrels",
        ]
    );
    let tokens = &session(&bench, "resp_0001")["tokens"];
    assert_eq!(
        (&tokens["input"], &tokens["cache_read"], &tokens["reasoning"]),
        (&json!(216), &json!(64), &json!(16))
    );
    let failed = bench.run(&["records", "openai_api/tool_calls"]).stdout;
    let failed = failed.lines().find(|line| line.contains("tides.today")).unwrap();
    assert!(failed.contains("\"ok\":false"), "{failed}");
}

#[test]
fn logs_of_litellm_give_a_session_once() {
    let bench = Bench::new();
    import(&bench, &[&fixture("litellm")]);
    assert_eq!(
        steps(&bench, "harbour-watch"),
        [
            "injected: You watch the weather.",
            "prompt: How is the wind?",
            "call wind: wind --now",
            "result: 7 knots from the west",
            "answer: Seven knots, from the west.",
            "prompt: And tomorrow?",
            "answer: Calm.",
        ]
    );
    let watch = session(&bench, "harbour-watch");
    assert_eq!((&watch["message_count"], &watch["tool_call_count"]), (&json!(4), &json!(1)));
    assert_eq!(watch["tokens"]["total"], 84);
    assert_eq!(watch["billing_source"], "reported");
    assert!((watch["cost_usd"].as_f64().unwrap() - 0.00375).abs() < 1e-9, "{watch}");
    // The messages are not in the log: usage alone is a session too.
    let quiet = session(&bench, "chatcmpl-Quiet1");
    assert_eq!((&quiet["message_count"], &quiet["tokens"]["total"]), (&json!(0), &json!(110)));
    assert_eq!(quiet["first_message_at"], "2025-09-02T11:20:00.500Z");
    let night = steps(&bench, "harbour-night");
    assert!(night.iter().any(|step| step == "event error: RateLimitError slow down"), "{night:?}");
}

#[test]
fn har_streams_are_put_together() {
    let bench = Bench::new();
    import(&bench, &[&fixture("har")]);
    assert_eq!(
        steps(&bench, "chatcmpl-H1"),
        [
            "prompt: Is the quay dry?",
            "answer: The quay is “dry”.",
            "call look: quay/1",
            "result: puddles",
            "call listen: {}",
            "result: dripping",
            "answer: Not dry: puddles and dripping.",
        ]
    );
    assert_eq!(
        steps(&bench, "resp_h1"),
        [
            "injected: Be brief.",
            "prompt: When is high water?",
            "image image/png",
            "answer: High water at noon.",
            "prompt: And low water?",
            "answer: Low wat",
        ]
    );
    assert_eq!(session(&bench, "resp_h1")["tokens"]["total"], 79);
    assert_eq!(session(&bench, "chatcmpl-H1")["tokens"]["cache_read"], 32);
    // The provider refused: the request stays, with the reason.
    let azure = ids(&bench).into_iter().find(|id| id.starts_with("trace-")).unwrap();
    assert_eq!(
        steps(&bench, &azure),
        ["prompt: Hello from Azure.", "event error: 429 Rate limit is exceeded."]
    );
    assert_eq!(session(&bench, &azure)["models"], json!(["tide-4o"]));
}

#[test]
fn calls_through_a_configured_gateway_are_read() {
    let bench = Bench::new();
    let mut command = bench.command(&["import", fixture("har").to_str().unwrap()]);
    assert!(
        command.env("OPENAI_TRACES_HOSTS", "other.example, gateway.example.net").status().unwrap().success()
    );
    assert_eq!(steps(&bench, "chatcmpl-G1"), ["prompt: Through the gateway.", "answer: Passed on."]);
}

#[test]
fn traces_are_searched_counted_and_analysed_like_other_sources() {
    let bench = Bench::new();
    import(&bench, &[&fixture("har"), &fixture("responses"), &fixture("litellm")]);
    let found = bench.json(&["search", "puddles"]).to_string();
    assert!(found.contains("chatcmpl-H1"), "{found}");
    let found = bench.json(&["search", "dry quay source:openai_api"]).to_string();
    assert!(found.contains("chatcmpl-H1"), "{found}");
    let tools = bench.json(&["tools", "--source", "openai_api", "--days", "90000"]).to_string();
    assert!(tools.contains("\"look\":1") && tools.contains("\"tides.today\":1"), "{tools}");
    let usage = bench.json(&["usage", "--by", "source", "--days", "all"]).to_string();
    assert!(usage.contains("openai_api"), "{usage}");
    let card = bench.json(&["sources"]).to_string();
    assert!(card.contains("\"OpenAI API\""), "{card}");
}
