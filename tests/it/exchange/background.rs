//! A hub that the settings name: `watch` and `serve` send to it what is new, once the person agreed.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Machine;
use super::push::Hub;
use annals_testkit::Ran;
use annals_testkit::codex::{ID, conversation, prompt, rollout, text_of};
use annals_testkit::files::append;

/// A process that is stopped when the test ends.
struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    fn start(machine: &Machine, arguments: &[&str]) -> Running {
        let log = machine.bench.folder.path().join("log");
        let mut command = command(machine, arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        Running { child: command.spawn().unwrap(), log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn command(machine: &Machine, arguments: &[&str]) -> Command {
    let mut command = machine.bench.command(arguments);
    command.env("ANNALS_MACHINE", machine.name);
    command
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_is_new_is_sent_in_the_background_once_the_policy_was_agreed_to() {
    let (hub, tokens) = Hub::with(&["ada"]);
    let machine = Machine::new("laptop");
    let path = machine.bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let token = machine.bench.folder.path().join("token");
    std::fs::write(&token, &tokens[0]).unwrap();
    let settings = machine.bench.user().join(".config/annals/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let url = format!("http://{}", hub.server.address);
    let configure = |more: &str| {
        let text = format!("[push]\nurl = {url:?}\ntoken_file = {:?}\n{more}", token.to_str().unwrap());
        std::fs::write(&settings, text).unwrap();
    };
    configure("");
    machine.sync();
    let watching = Running::start(&machine, &["watch"]);
    wait_until("a warning", || watching.log().contains("agreed to the policy"));
    assert_eq!(hub.bench.sessions().len(), 0);
    drop(watching);

    // Without an address, the hub of the settings.
    let ran = Ran::of(command(&machine, &["push", "--yes"]).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let is_there = |words: &str| hub.bench.run(&["show", ID]).stdout.contains(words);
    for (verb, words) in
        [(&["watch"][..], "more gears"), (&["serve", "--listen", "127.0.0.1:0"], "more wheels")]
    {
        let running = Running::start(&machine, verb);
        append(&path, &text_of(&prompt(words)));
        // Whichever of the two captures it.
        command(&machine, &["sync"]).output().unwrap();
        wait_until(words, || is_there(words));
        assert!(!running.log().contains("warning"), "{}", running.log());
    }

    // A choice that was made by hand is not widened by a service.
    let excluded = ["push", "--exclude-source", "codex_cli"];
    assert_eq!(command(&machine, &excluded).output().unwrap().status.code(), Some(0));
    append(&path, &text_of(&prompt("a secret plan")));
    machine.sync();
    let watching = Running::start(&machine, &["watch"]);
    wait_until("a warning", || watching.log().contains("something else than the last push"));
    assert!(!is_there("a secret plan") && machine.bench.run(&["show", ID]).stdout.contains("a secret plan"));
    drop(watching);
    configure("exclude_sources = [\"codex_cli\"]\n");
    let ran = Ran::of(command(&machine, &["push", "--json"]).output().unwrap());
    assert!(ran.code == 0 && ran.stdout.contains("\"files\":0"), "{} {}", ran.stdout, ran.stderr);

    // The token of the settings is for the hub of the settings.
    let ran = Ran::of(command(&machine, &["push", "http://127.0.0.1:9", "--yes"]).output().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("no token"), "{}", ran.stderr);
}
