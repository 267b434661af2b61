//! A session that is written while its page is open: it grows, follows whoever is at its end, and marks what is unread.

use annals_testkit::Bench;
use annals_testkit::browser::Browser;
use annals_testkit::codex::{ID, answer, conversation, prompt, rollout, text_of};
use annals_testkit::files::append;
use annals_testkit::server::Server;

#[test]
fn a_session_grows_while_it_is_read() {
    let bench = Bench::new();
    let mut lines = conversation(ID, "gears");
    for number in 0..30 {
        lines.extend(prompt(&format!("and wheel {number}?")));
        lines.extend(answer(&format!("wheel {number} turns")));
    }
    let file = bench.transcript(&rollout(ID), &lines);
    bench.sync();
    let server = Server::start(&bench);
    let browser = Browser::open(&server.address, &server.token);
    browser.go(&format!("/sessions/codex_cli/{ID}"));
    browser.run("scrollTo(0, document.documentElement.scrollHeight);");
    browser.wait("the end", "document.body.innerText.includes('wheel 29 turns')");
    // Heights are known once the end was shown.
    browser.run("scrollTo(0, document.documentElement.scrollHeight);");
    append(&file, &text_of(&answer("the newest wheel")));
    browser.wait("the new step", "document.body.innerText.includes('the newest wheel')");
    let at_end = "innerHeight + scrollY > document.documentElement.scrollHeight - 160";
    browser.wait("the page that follows", at_end);
    assert_eq!(browser.run("return document.querySelector('[data-action=latest]').hidden;"), true);
    // Whoever reads elsewhere stays there, and is told.
    browser.run("scrollTo(0, document.documentElement.scrollHeight - innerHeight - 600);");
    browser.wait("another place", &format!("!({at_end})"));
    append(&file, &text_of(&answer("one more wheel")));
    browser.wait("the mark", "!document.querySelector('[data-action=latest]').hidden");
    assert_eq!(browser.run(&format!("return {at_end};")), false);
    browser.click("[data-action=latest]");
    browser.wait("the end", &format!("{at_end} && document.body.innerText.includes('one more wheel')"));
    browser.close();
}
