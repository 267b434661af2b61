//! Accessibility: axe-core finds no serious violation on any page, in light, dark and phone layouts.

use std::path::Path;

use crate::browser::walk::{Months, every_page};
use annals_testkit::browser::{Browser, DESKTOP, PHONE};

/// The checker, which `tests/browser/setup` installs.
fn axe() -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let path = target.join("browser/node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; `tests/browser/setup` installs it", path.display()))
}

const RUN: &str = "return axe.run(document, { resultTypes: ['violations'], preload: false }).then(({ violations }) =>
    violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).flatMap(({ id, nodes }) =>
        nodes.slice(0, 3).map((node) => `${id}: ${node.target.join(' ')}: ${node.failureSummary}: ${node.html.slice(0, 160)}`)));";

/// The violations on the current page.
fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.run("for (const folded of document.querySelectorAll('details')) folded.open = true;");
    browser.run(axe);
    let found = browser.run(RUN);
    found.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

fn check_all(browser: &Browser, pages: &[String], how: &str) {
    let axe = axe();
    let mut all = Vec::new();
    for page in pages {
        browser.go(page);
        all.extend(violations(browser, &axe).into_iter().map(|line| format!("{page} ({how}): {line}")));
    }
    assert!(all.is_empty(), "{} faults\n{}", all.len(), all.join("\n"));
}

#[test]
fn every_page_is_accessible_in_the_light() {
    let (server, browser) = Months::get().open();
    browser.prefer("light");
    check_all(&browser, &every_page(&server), "light");
    browser.close();
}

#[test]
fn every_page_is_accessible_in_the_dark() {
    let (server, browser) = Months::get().open();
    browser.prefer("dark");
    check_all(&browser, &every_page(&server), "dark");
    browser.close();
}

#[test]
fn every_page_is_accessible_on_a_phone() {
    let (server, browser) = Months::get().open();
    browser.resize(PHONE);
    check_all(&browser, &every_page(&server), "phone");
    browser.resize(DESKTOP);
    browser.close();
}

#[test]
fn a_refusal_is_accessible_too() {
    let (_server, browser) = Months::get().open();
    let axe = axe();
    for page in ["/nothing", "/sessions?colour=red"] {
        for scheme in ["light", "dark"] {
            browser.prefer(scheme);
            browser.go(page);
            assert_eq!(violations(&browser, &axe), Vec::<String>::new(), "{page}");
        }
    }
    browser.command("Network.clearBrowserCookies", &serde_json::json!({}));
    browser.go("/");
    assert!(browser.text("main").contains("annals up"));
    assert_eq!(violations(&browser, &axe), Vec::<String>::new(), "without a token");
    // The browser reports only the statuses themselves.
    let others =
        browser.faults().into_iter().filter(|fault| !fault.contains("responded with a status of 40"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<String>::new());
    browser.close_checked();
}

/// The checker runs in a page whose policy forbids scripts, and finds violations.
#[test]
fn the_checker_finds_violations() {
    let (_server, browser) = Months::get().open();
    browser.run("const picture = document.createElement('img'); picture.src = '/assets/annals.svg'; document.querySelector('main').append(picture);");
    let found = violations(&browser, &axe()).join("\n");
    assert!(found.contains("image-alt"), "{found}");
    browser.close();
}
