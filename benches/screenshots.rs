//! Takes a screenshot of every page with a made-up archive: `make screenshots` writes those of the README into
//! `docs/`, and all of them, in light, dark and on a phone, into `target/pictures`.
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
const BYTES: usize = 300_000;

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

/// What the README shows, of the wide pictures in the light.
const IN_README: [&str; 5] = ["home", "sessions", "session", "search", "usage"];

/// Takes every page in light, dark and on a phone below `target`, and those of the README into the folder.
fn take_all(folder: &Path, address: &str, token: &str) {
    let pictures = Path::new(ROOT).join("target/pictures");
    std::fs::create_dir_all(&pictures).expect("the folder can be made");
    let browser = Browser::open(address, token);
    browser.resize(WIDE);
    browser.command("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
    let pages = pages(&browser);
    for how in ["light", "dark", "phone"] {
        browser.prefer(if how == "dark" { "dark" } else { "light" });
        browser.resize(if how == "phone" { PHONE } else { WIDE });
        for (name, page, script) in &pages {
            browser.go(page);
            browser.run(script);
            let picture = take(&browser, &pictures.join(format!("{name}-{how}.png")));
            if how == "light" && IN_README.contains(name) {
                assert!(picture.len() < BYTES, "{name} has {} bytes, and may have {BYTES}", picture.len());
                std::fs::write(folder.join(format!("{name}.png")), &picture).unwrap();
            }
        }
    }
    // The page that is not there is meant to be refused.
    browser.close_checked();
}

/// Every page: its name, its address, and a script that opens what is worth seeing.
fn pages(browser: &Browser) -> Vec<(&'static str, String, &'static str)> {
    browser.prefer("light");
    browser.go("/sessions?q=low+tide");
    let session = browser.run("return new URL(document.querySelector('.row .title').href).pathname;");
    let session = session.as_str().unwrap().to_owned();
    browser.go("/sessions?source=codex_cli");
    let other = browser.run("return new URL(document.querySelector('.row .title').href).pathname;");
    let other = other.as_str().unwrap().to_owned();
    let id_of = |path: &str| path.replace("/sessions/", "").replacen('/', ":", 1);
    browser.go("/library");
    let item = browser.run(
        "const links = Array.from(document.querySelectorAll('.lines a'));
         const address = new URL(links.find((link) => link.innerText.includes('review')).href);
         return address.pathname + address.search;",
    );
    browser.go("/files?view=latest");
    let file = browser.run(
        "const address = new URL(document.querySelector('#rows a').href); return address.pathname + address.search;",
    );
    // The page scans everything first.
    browser.go("/secrets");
    browser.wait("the secrets", "document.querySelector('mark.secret')");
    let open = "for (const call of document.querySelectorAll('details.call.shell.failed, details.call.edit')) call.open = true;";
    let text = |value: Value| value.as_str().unwrap().to_owned();
    vec![
        ("home", "/".to_owned(), ""),
        ("sessions", "/sessions".to_owned(), ""),
        ("session", session.clone(), open),
        ("session-edits", format!("{session}?view=edits"), ""),
        ("search", "/search?q=tide".to_owned(), ""),
        ("files", "/files".to_owned(), ""),
        ("folder", "/files?folder=/home/mira/code/tidewatch".to_owned(), ""),
        ("file", text(file.clone()), ""),
        ("file-history", format!("{}&view=history", text(file)), ""),
        ("usage", "/usage?days=90&compare=true".to_owned(), ""),
        ("tools", "/tools?days=90".to_owned(), ""),
        ("calls", "/tools/calls?days=90&order=slowest".to_owned(), ""),
        ("insights", "/insights?days=90".to_owned(), ""),
        ("repeated", "/insights/moments?days=90&what=repeated".to_owned(), ""),
        ("week", "/week?date=last+week".to_owned(), ""),
        ("compare", format!("/compare?one={}&other={}", id_of(&session), id_of(&other)), ""),
        ("nothing-found", "/search?q=%22tide+alarm+zzyzx%22+sonnet".to_owned(), ""),
        ("library", "/library".to_owned(), ""),
        ("versions", text(item), ""),
        ("audit", "/audit".to_owned(), ""),
        ("secrets", "/secrets".to_owned(), ""),
        ("secrets-by-session", "/secrets?by=session".to_owned(), ""),
        ("selected", "/sessions".to_owned(), "document.querySelectorAll('.pick')[1].click();"),
        ("gaps", "/gaps".to_owned(), ""),
        ("settings", "/settings".to_owned(), ""),
        ("refused", "/nothing".to_owned(), ""),
    ]
}

fn take(browser: &Browser, path: &Path) -> Vec<u8> {
    // Wait for lists that the script fills, and for fonts.
    browser.wait("the page", "document.readyState === 'complete' && document.fonts.status === 'loaded'");
    std::thread::sleep(std::time::Duration::from_millis(400));
    let picture = browser.picture();
    std::fs::write(path, &picture).unwrap();
    println!("{} ({} KB)", path.display(), picture.len() / 1_000);
    picture
}
