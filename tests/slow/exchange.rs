//! Machines that push while they write, pushers and a hub that are killed at any moment: nothing is lost, nothing is there twice.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use annals_testkit::Bench;
use annals_testkit::checks::{assert_same, timeless};
use annals_testkit::codex::{conversation, prompt, rollout, text_of};
use annals_testkit::files::{append, files_below};

/// `ANNALS_TEST_MACHINES` makes it more.
const MACHINES: usize = 3;
const SESSIONS: usize = 10;
const ROUNDS: usize = 12;

struct Machine {
    bench: Bench,
    name: String,
    sessions: Vec<PathBuf>,
}

impl Machine {
    fn new(number: usize) -> Machine {
        let bench = Bench::new();
        let sessions = (0..SESSIONS).map(|session| {
            let id = format!("0199a1b2-{number:04}-7000-8000-{session:012}");
            let words = format!("gears {session} of machine {number}");
            bench.transcript(&rollout(&id), &conversation(&id, &words))
        });
        let sessions = sessions.collect();
        Machine { name: format!("machine-{number}"), sessions, bench }
    }

    fn command(&self, archive: &Bench, arguments: &[&str]) -> Command {
        let mut command = archive.command(arguments);
        command.env("HOME", self.bench.user()).env("ANNALS_MACHINE", &self.name);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn push(&self, url: &str, token: &str) -> Child {
        let mut command = self.command(&self.bench, &["push", url, "--yes"]);
        command.env("ANNALS_PUSH_TOKEN", token).spawn().unwrap()
    }

    #[track_caller]
    fn sync_into(&self, archive: &Bench) {
        assert!(self.command(archive, &["sync"]).status().unwrap().success());
    }
}

/// Starts a server and returns it with its address.
fn serve(bench: &Bench, listen: &str) -> (Child, String) {
    let mut command = bench.command(&["serve", "--no-sync", "--json", "--listen", listen]);
    let start = Instant::now();
    loop {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if let Ok(document) = serde_json::from_str::<serde_json::Value>(&line) {
            return (child, document["url"].as_str().unwrap().to_owned());
        }
        child.wait().unwrap();
        // The port may still be in use.
        assert!(start.elapsed() < Duration::from_secs(60), "{line}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn contents(bench: &Bench) -> String {
    timeless(&(bench.everything() + &bench.run(&["usage", "--days", "all", "--json"]).stdout))
}

#[test]
fn killed_pushers_and_a_killed_hub_lose_and_double_nothing() {
    let count = std::env::var("ANNALS_TEST_MACHINES").ok().and_then(|count| count.parse().ok());
    let machines: Vec<Machine> = (0..count.unwrap_or(MACHINES)).map(Machine::new).collect();
    let hub = Bench::new();
    let token = hub.json(&["members", "add", "ada"])["token"].as_str().unwrap().to_owned();
    let (mut server, url) = serve(&hub, "127.0.0.1:0");
    let listen = url.strip_prefix("http://").unwrap().to_owned();
    let start = Instant::now();
    machines[0].sync_into(&machines[0].bench);
    assert!(machines[0].push(&url, &token).wait().unwrap().success());
    // Kills come while a push of all machines is likely to run.
    let whole = start.elapsed() / 2;
    let (mut killed, mut kills, mut restarts) = (0, 0, 0);
    for round in 0..ROUNDS {
        let mut pushers = Vec::new();
        for (number, machine) in machines.iter().enumerate() {
            let path = &machine.sessions[(round * 7 + number) % SESSIONS];
            let text = format!("question {round} {}", "of gears ".repeat(3_000 * (round % 3)));
            append(path, &text_of(&prompt(&text)));
            machine.sync_into(&machine.bench);
            pushers.push(machine.push(&url, &token));
        }
        for (number, mut pusher) in pushers.into_iter().enumerate() {
            std::thread::sleep(
                whole * ((round * 53 + number * 31) as u32 % 100) / 100 / machines.len() as u32,
            );
            kills += 1;
            killed += usize::from(pusher.try_wait().unwrap().is_none());
            if number == round % machines.len() && round % 2 == 0 {
                restarts += 1;
                end(server);
                server = serve(&hub, &listen).0;
            }
            end(pusher);
        }
    }
    println!("{killed} of {kills} pushers were killed while they ran, the hub {restarts} times");
    assert!(killed >= 3, "only {killed} kills hit");
    let synced = Bench::new();
    for machine in &machines {
        assert!(machine.push(&url, &token).wait().unwrap().success(), "{}", machine.name);
        machine.sync_into(&synced);
    }
    let expected = contents(&synced);
    assert_same(&contents(&hub), &expected);
    assert_eq!(hub.run(&["doctor", "--deep"]).code, 0);

    let new = Bench::new();
    let mut pull = new.command(&["pull", &url]);
    let pulled = pull.env("ANNALS_PUSH_TOKEN", &token).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(pulled.status().unwrap().success());
    assert_same(&contents(&new), &expected);
    let restored = new.folder.path().join("restored");
    new.json(&["restore", "--to", restored.to_str().unwrap()]);
    let files = files_below(&restored);
    let there: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    for path in machines.iter().flat_map(|machine| &machine.sessions) {
        assert!(there.contains(&std::fs::read(path).unwrap()), "{}", path.display());
    }
    println!(
        "{} sessions of {} machines, {} files restored",
        SESSIONS * machines.len(),
        machines.len(),
        files.len()
    );
    end(server);
}
