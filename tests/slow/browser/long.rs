//! Very long sessions: the page holds only the visible part, and memory stays flat.

use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::browser::Browser;
use annals_testkit::codex::{ID, answer, meta, prompt, rollout};
use annals_testkit::corpora::codex as corpus;
use annals_testkit::server::Server;

const MESSAGES: usize = 10_000;
/// Most entries in the page at once, wherever the user is.
const MOST: u64 = 800;
/// How much more memory the script may hold after five sweeps than after two.
const GROWTH: f64 = 2e6;

/// Scrolls each of these chunks into view and waits until it is filled. Returns the most entries present at once.
const SWEEP: &str = "
const [from, to, step] = arguments;
const chunks = Array.from(document.querySelectorAll('.chunk'));
let most = 0;
const shown = (chunk) => new Promise((resolve, reject) => {
  const started = performance.now();
  const look = () => {
    most = Math.max(most, document.querySelectorAll('.entry').length);
    if (chunk.querySelector('.entry')) resolve();
    else if (performance.now() - started > 10000) reject(new Error(`the steps from ${chunk.dataset.from} never come`));
    else setTimeout(look, 5);
  };
  look();
});
return (async () => {
  for (let at = from; at < Math.min(to, chunks.length); at += step) {
    chunks[at].scrollIntoView();
    await shown(chunks[at]);
  }
  return most;
})();";

fn heap(browser: &Browser) -> f64 {
    browser.command("HeapProfiler.collectGarbage", &json!({}));
    browser.command("Performance.enable", &json!({}));
    let metrics = browser.command("Performance.getMetrics", &json!({}));
    let named = |name: &str| {
        metrics["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap()["value"]
            .as_f64()
            .unwrap()
    };
    named("JSHeapUsedSize")
}

#[test]
fn ten_thousand_messages_are_scrolled_through_in_flat_memory() {
    let bench = Bench::new();
    let id = corpus::write_long_session(&bench.codex(), 7, MESSAGES).unwrap();
    bench.sync();
    let server = Server::without_refresh(&bench);
    let browser = Browser::open(&server.address, &server.token);
    browser.go(&format!("/sessions/codex_cli/{id}"));
    let total: u64 = browser
        .run("return document.querySelector('#conversation').dataset.total;")
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(total >= MESSAGES as u64, "{total}");
    let chunks = browser.count(".chunk");
    let first = browser.count(".entry");
    assert!(first > 0 && first < MOST, "{first}");
    // All of it once, from the top to the end.
    let mut most = 0;
    for from in (0..chunks).step_by(50) {
        let seen = browser.run_with(SWEEP, &[json!(from), json!(from + 50), json!(1)]);
        most = most.max(seen.as_u64().unwrap());
    }
    assert!(most > first && most < MOST, "{most} entries at once");
    let last = browser.run("return Math.max(...Array.from(document.querySelectorAll('.entry'), (entry) => Number(entry.dataset.seq)));");
    assert_eq!(last.as_u64().unwrap() + 1, total, "the end is there");
    let mut heaps = Vec::new();
    for _ in 0..5 {
        browser.run("window.scrollTo(0, 0);");
        browser.run_with(SWEEP, &[json!(0), json!(chunks), json!(9)]);
        browser.run("window.scrollTo(0, 0);");
        browser.wait("the top", "document.querySelector('.chunk .entry')");
        browser.wait("little", &format!("document.querySelectorAll('.entry').length < {}", MOST / 2));
        heaps.push(heap(&browser));
    }
    assert!(heaps[4] - heaps[1] < GROWTH, "bytes after each sweep: {heaps:?}");
    // A link to any message leads there at once.
    let messages = server.json(&format!("/api/v1/codex/sessions/{id}/messages?limit=500"));
    let step = messages["messages"][431]["id"].as_str().unwrap().to_owned();
    browser.go(&format!("/sessions/codex_cli/{id}?at={step}#m-{step}"));
    browser.wait("the step", "document.querySelector('.entry.target')");
    assert_eq!(browser.run("return document.querySelector('.entry.target').id;"), format!("m-{step}"));
    assert!(browser.count(".entry") < MOST);
    browser.close();
}

#[test]
fn an_output_of_twenty_megabytes_is_shown_by_its_start() {
    let bench = Bench::new();
    let line = "the engine turns, and every turn is written down here\n";
    let output = line.repeat(20_000_000 / line.len() + 1);
    let item = |payload: Value| {
        json!({ "timestamp": "2026-11-15T10:00:03.000Z", "type": "response_item", "payload": payload })
            .to_string()
    };
    let mut lines = vec![meta(ID)];
    lines.extend(prompt("Print everything"));
    lines.push(item(json!({ "type": "function_call", "name": "exec_command", "call_id": "call_1",
        "arguments": json!({ "cmd": "cat everything.log" }).to_string() })));
    lines.push(item(json!({ "type": "function_call_output", "call_id": "call_1",
        "output": format!("Process exited with code 0\nOutput:\n{output}") })));
    lines.extend(answer("That was all of it."));
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let server = Server::without_refresh(&bench);
    let page = server.page(&format!("/sessions/codex_cli/{ID}"));
    assert!(page.body.len() < 100_000, "a page of {} bytes", page.body.len());
    let browser = Browser::open(&server.address, &server.token);
    browser.go(&format!("/sessions/codex_cli/{ID}"));
    browser.click("details.call > summary");
    let shown = browser.text("details.call .io:last-of-type pre");
    assert!(shown.contains("the engine turns") && shown.len() < 20_000, "{} bytes", shown.len());
    assert!(browser.text("details.call .io:last-of-type").contains("truncated"));
    let whole = browser.run(
        "return fetch(document.querySelector('details.call .io a').href)
        .then(async (answer) => [answer.headers.get('content-type'), (await answer.text()).length]);",
    );
    assert_eq!(whole[0], "text/plain; charset=utf-8");
    assert!(whole[1].as_u64().unwrap() >= 20_000_000, "{whole}");
    browser.close();
}
