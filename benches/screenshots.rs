//! Takes a screenshot of every page with a made-up archive: `make screenshots` writes them into `docs/`.
//!
//! The dates are those of the day they are taken; the work shown is always the same.

// A separate program: it prints what it does, and stops at the first failure.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use annals_testkit::browser::{Browser, PHONE};
use annals_testkit::worlds::story;
use annals_testkit::{ROOT, clock};
use serde_json::{Value, json};

const MONTHS: u64 = 7;
/// Wide enough for every page's full layout, and small enough for a README.
const WIDE: (u32, u32) = (1280, 860);
/// Largest size of a picture.
const BYTES: usize = 200_000;

fn main() {
    // `cargo test --all-targets` also runs benches, and needs no pictures.
    let Some(folder) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        println!("screenshots: name a folder");
        return;
    };
    let folder = Path::new(ROOT).join(folder);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let scratch = tempfile::tempdir().unwrap();
    let count =
        story::write(&scratch.path().join("user"), clock::since_1970(), MONTHS, || sync(scratch.path()))
            .unwrap();
    sync(scratch.path());
    println!("{count} sessions of made-up work");
    let (server, address, token) = serve(scratch.path());
    take_all(&folder, &address, &token);
    drop(server);
}

/// Terminated with the program, even if a picture fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn annals(scratch: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(annals_testkit::program());
    command.env_clear().env("HOME", scratch.join("user")).env("ANNALS_MACHINE", "laptop");
    clock::set(&mut command);
    command.arg("--home").arg(scratch.join("archive")).args(arguments);
    command
}

fn sync(scratch: &Path) {
    assert!(
        annals(scratch, &["sync", "--quiet"]).stdout(Stdio::null()).status().unwrap().success(),
        "sync failed"
    );
}

fn serve(scratch: &Path) -> (Server, String, String) {
    let mut command = annals(scratch, &["serve", "--listen", "127.0.0.1:0", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let announced: Value = serde_json::from_str(&line).expect("serve says where it is");
    let field = |name: &str| announced[name].as_str().unwrap().trim_start_matches("http://").to_owned();
    (Server(child), field("url"), field("token"))
}

fn take_all(folder: &Path, address: &str, token: &str) {
    let browser = Browser::open(address, token);
    browser.resize(WIDE);
    browser.command("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
    browser.prefer("light");
    browser.go("/sessions?q=low+tide");
    let session = browser.run("return new URL(document.querySelector('.row .title').href).pathname;");
    let session = session.as_str().unwrap().to_owned();
    browser.go("/library");
    let item = "return new URL(Array.from(document.querySelectorAll('.lines a')).find((link) => link.innerText.includes('review')).href)";
    let item = browser.run(&format!(
        "const address = ({}); return address.pathname + address.search;",
        item.trim_start_matches("return ")
    ));
    let item = item.as_str().unwrap().to_owned();
    // The page scans everything first.
    browser.go("/secrets");
    browser.wait("the secrets", "document.querySelector('mark.secret')");
    let open = "for (const call of document.querySelectorAll('details.call.shell.failed, details.call.edit')) call.open = true;";
    let pages: [(&str, &str, &str); 10] = [
        ("home", "/", ""),
        ("sessions", "/sessions", ""),
        ("session", &session, open),
        ("search", "/search?q=tide", ""),
        ("tools", "/tools?days=90", ""),
        ("usage", "/usage?days=30", ""),
        ("library", "/library", ""),
        ("versions", &item, ""),
        ("audit", "/audit", ""),
        ("secrets", "/secrets", ""),
    ];
    for (name, page, script) in pages {
        browser.go(page);
        browser.run(script);
        take(&browser, folder, name);
    }
    browser.prefer("dark");
    browser.go(&session);
    browser.run(open);
    // Where something failed and was fixed.
    browser.run("document.querySelector('details.call.failed').scrollIntoView(); scrollBy(0, -90);");
    take(&browser, folder, "session-dark");
    browser.go("/");
    take(&browser, folder, "home-dark");
    browser.prefer("light");
    browser.resize(PHONE);
    for (name, page) in [("phone-home", "/"), ("phone-session", &session)] {
        browser.go(page);
        take(&browser, folder, name);
    }
    browser.close();
}

fn take(browser: &Browser, folder: &Path, name: &str) {
    // Wait for lists that the script fills, and for fonts.
    browser.wait("the page", "document.readyState === 'complete' && document.fonts.status === 'loaded'");
    std::thread::sleep(std::time::Duration::from_millis(400));
    let picture = browser.picture();
    let path = folder.join(format!("{name}.png"));
    std::fs::write(&path, &picture).unwrap();
    println!("{} ({} KB)", path.display(), picture.len() / 1_000);
    assert!(picture.len() < BYTES, "{name} has {} bytes, and may have {BYTES}", picture.len());
}
