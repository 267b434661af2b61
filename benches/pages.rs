//! The pages table: how long a person waits in a real browser until something is visible, and how much memory a tab
//! keeps while it scrolls.

use serde_json::json;

use super::http::Server;
use super::table::Row;
use super::{CODEX, Corpus, MEGABYTE, Outcome, SEED, Scratch, Settings};
use annals_testkit::browser::Browser;
use annals_testkit::corpora::codex::{Step, write_long_session, write_session_of};

/// Milliseconds from the start of the navigation to the first contentful paint.
const FIRST_PAINT: f64 = 300.0;
/// Megabytes that a tab may gain between its second and fifth sweep through a long session.
const GROWTH: f64 = 2.0;
/// The best of this many: the machine may be busy, and no page gets faster by chance.
const TIMES: usize = 7;

pub fn rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let (messages, megabytes) = if settings.smoke { (500, 1) } else { (10_000, 20) };
    let corpus = Corpus::write(scratch, &CODEX, "whole", settings.bytes, settings.files)?;
    let failed = |error: std::io::Error| format!("writing a session: {error}");
    let long = write_long_session(&corpus.home, SEED, messages).map_err(failed)?;
    let printed = "the engine turns, and every turn is written down\n".repeat(megabytes * 1_000_000 / 49 + 1);
    let steps = [
        Step::User("Print everything."),
        Step::Ran("cat all.log", &printed),
        Step::Assistant("That was all."),
    ];
    let large = write_session_of(&corpus.home, SEED, &steps, 0).map_err(failed)?;
    corpus.sync()?;
    let server = Server::start(&corpus)?;
    let browser = Browser::open(&server.target.address, &server.target.token);
    let session = |id: &str| format!("/sessions/codex_cli/{id}");
    let pages = [
        (format!("first paint, session of {messages} messages"), session(&long)),
        ("first paint, its middle".to_owned(), format!("{}?from={}", session(&long), messages / 2)),
        (format!("first paint, output of {megabytes} MB"), session(&large)),
        ("first paint, home".to_owned(), "/".to_owned()),
        ("first paint, sessions".to_owned(), "/sessions".to_owned()),
        ("first paint, search".to_owned(), "/search?q=timeout".to_owned()),
    ];
    let limit = |limit: f64| (!settings.smoke).then_some(limit);
    let mut rows = Vec::new();
    for (what, page) in &pages {
        let (best, worst) = first_paint(&browser, page);
        rows.push(Row::new(what, "ms", best, limit(FIRST_PAINT), format!("worst {worst:.0} ms")));
    }
    let (growth, entries) = sweeps(&browser, &session(&long));
    rows.push(Row::new(
        "tab, growth over three sweeps",
        "MB",
        growth,
        limit(GROWTH),
        format!("{entries} entries at most"),
    ));
    browser.close();
    Ok(rows)
}

/// The best and the worst of several loads.
fn first_paint(browser: &Browser, page: &str) -> (f64, f64) {
    let paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
    let times: Vec<f64> = (0..TIMES)
        .map(|_| {
            browser.go(page);
            browser.wait("the first paint", paint).as_f64().unwrap_or(f64::NAN)
        })
        .collect();
    (times.iter().copied().fold(f64::INFINITY, f64::min), times.iter().copied().fold(0.0, f64::max))
}

/// Scrolls through a session from top to end, and measures the tab's memory after each sweep.
fn sweeps(browser: &Browser, page: &str) -> (f64, u64) {
    let sweep = "const chunks = Array.from(document.querySelectorAll('.chunk'));
        let most = 0;
        return (async () => {
          for (let at = 0; at < chunks.length; at += 9) {
            chunks[at].scrollIntoView();
            for (let tries = 0; tries < 1000 && !chunks[at].querySelector('.entry'); tries += 1) {
              await new Promise((resolve) => setTimeout(resolve, 5));
            }
            most = Math.max(most, document.querySelectorAll('.entry').length);
          }
          scrollTo(0, 0);
          return most;
        })();";
    browser.go(page);
    let (mut heaps, mut most) = (Vec::new(), 0);
    for _ in 0..5 {
        most = most.max(browser.run(sweep).as_u64().unwrap_or(u64::MAX));
        browser.wait("the top", "document.querySelector('.chunk .entry')");
        browser.command("HeapProfiler.collectGarbage", &json!({}));
        let used = browser.run("return performance.memory.usedJSHeapSize;");
        heaps.push(used.as_f64().unwrap_or(f64::NAN) / MEGABYTE);
    }
    (heaps[4] - heaps[1], most)
}
