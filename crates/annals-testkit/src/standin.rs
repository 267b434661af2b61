//! The stand-in for ChatGPT's page as a separate process, and annals with a real browser in front of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Bench, Ran, clock};

/// Nothing here may take longer.
const LIMIT: Duration = Duration::from_secs(240);

pub struct Standin {
    child: Child,
    pub port: u16,
    pub secure_port: Option<u16>,
}

impl Standin {
    pub fn start(arguments: &[&str]) -> Standin {
        Standin::run("standin.py", arguments)
    }

    fn run(script: &str, arguments: &[&str]) -> Standin {
        let script = PathBuf::from(crate::ROOT).join("tests/browser").join(script);
        let mut command = Command::new("python3");
        clock::set(&mut command);
        let mut child = command
            .arg(script)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs the stand-in");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut ports = line.split_whitespace().map(|port| port.parse().unwrap());
        Standin { child, port: ports.next().unwrap(), secure_port: ports.next() }
    }

    pub fn control(&self, world: Value) {
        self.request("POST", "/__control", &world.to_string());
    }

    pub fn counts(&self) -> Value {
        serde_json::from_str(&self.request("GET", "/__counts", "").1).unwrap()
    }

    /// Number of requests of a kind since the counts were reset.
    pub fn count(&self, what: &str) -> u64 {
        self.counts()["by_path"][what].as_u64().unwrap_or(0)
    }

    /// A request that does not come from a page.
    pub fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: standin\r\nConnection: close\r\n");
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An archive, a stand-in, and the browser between them.
pub struct Stage {
    pub bench: Bench,
    pub standin: Standin,
    pub url: String,
    pub arguments: String,
    /// Duration of a second of waiting, in milliseconds.
    pub second: &'static str,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::before(Standin::start(&[]))
    }

    fn before(standin: Standin) -> Stage {
        let flags = "--no-sandbox\n--disable-gpu\n--disable-quic\n--disable-background-networking\n\
                     --disable-component-update\n--disable-sync\n--disable-dev-shm-usage";
        let url = format!("http://127.0.0.1:{}", standin.port);
        Stage { bench: Bench::new(), standin, url, arguments: flags.to_owned(), second: "5" }
    }

    /// With the given world, and connected.
    pub fn connected(world: Value) -> Stage {
        Stage::connect(Stage::new(), world)
    }

    /// In front of the second stand-in, whose answers have the shapes that other programs describe.
    pub fn wild(shapes: Value) -> Stage {
        let stage = Stage::before(Standin::run("standin_wild.py", &[]));
        Stage::connect(stage, serde_json::json!({"shapes": shapes, "token_life": 30 * 24 * 60 * 60}))
    }

    fn connect(stage: Stage, world: Value) -> Stage {
        stage.standin.control(world);
        let ran = stage.run(&["connect", "chatgpt", "--headless", "--wait", "1"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        stage
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.command(arguments);
        command
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("ANNALS_CHATGPT_URL", &self.url)
            .env("ANNALS_BROWSER_ARGUMENTS", &self.arguments)
            .env("ANNALS_BROWSER_HEADLESS", "1")
            .env("ANNALS_SECOND_MS", self.second);
        if let Ok(browser) = std::env::var("ANNALS_BROWSER") {
            command.env("ANNALS_BROWSER", browser);
        }
        command
    }

    pub fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        wait(self.spawn(arguments))
    }

    /// The live part of a sync that must succeed.
    pub fn sync(&self) -> Value {
        let (code, live) = self.sync_with(&[]);
        assert_eq!(code, 0, "{live}");
        live
    }

    /// The same some days later, with everything that is fetched once a day.
    pub fn sync_days_later(&self, days: i64) -> Value {
        let mut command = self.command(&["sync", "chatgpt", "--json"]);
        clock::set_days_later(&mut command, days);
        let ran =
            wait(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["live"][0].clone()
    }

    pub fn sync_with(&self, more: &[&str]) -> (i32, Value) {
        let ran = self.run(&[&["sync", "chatgpt", "--json"], more].concat());
        let answer: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
        (ran.code, answer["live"][0].clone())
    }

    /// Retries all gaps now.
    pub fn retry_gaps(&self) -> Value {
        let ran = self.run(&["gaps", "retry", "--all", "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Makes all gaps due, as if time had passed.
    pub fn make_gaps_due(&self) {
        let archive = rusqlite::Connection::open(self.bench.archive().join("annals.db")).unwrap();
        archive.execute("update gap set next_try = null", []).unwrap();
    }

    pub fn gaps(&self) -> Vec<Value> {
        let ran = self.run(&["gaps", "--json"]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        answer["gaps"].as_array().cloned().unwrap_or_default()
    }

    pub fn gaps_open(&self) -> usize {
        self.gaps().len()
    }

    /// The account of what was requested.
    pub fn audit(&self) -> Value {
        let audit = self.bench.json(&["audit"]);
        let sources = audit["sources"].as_array().unwrap();
        sources.iter().find(|audit| audit["source"] == "chatgpt").unwrap().clone()
    }

    pub fn records(&self, stream: &str) -> Vec<Value> {
        let ran = self.bench.run(&["records", &format!("chatgpt/{stream}")]);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Ids of all conversations, sorted.
    pub fn conversation_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self
            .bench
            .sessions()
            .iter()
            .map(|session| session["session_id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    }

    /// Processes of this stage's browser.
    pub fn browsers(&self) -> Vec<u32> {
        let profile = self.bench.archive().join("browser");
        let profile = profile.to_str().unwrap().to_owned();
        let mut found = Vec::new();
        for (process, line) in command_lines() {
            if line.contains(&profile) && line.contains("--user-data-dir") {
                found.push(process);
            }
        }
        found
    }

    pub fn kill_browsers(&self) {
        for process in self.browsers() {
            let _ = Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill_browsers();
    }
}

/// Every process with its command line.
pub fn command_lines() -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let lines = processes.filter_map(|process: u32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
        Some((process, String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    lines.collect()
}

pub fn wait(mut child: Child) -> Ran {
    let deadline = Instant::now() + LIMIT;
    // Read the pipes meanwhile, so that the process does not block on them.
    let (mut out, mut error) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = out.read_to_string(&mut text);
        text
    });
    let error = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = error.read_to_string(&mut text);
        text
    });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            child.kill().unwrap();
            panic!("annals did not end in time");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Ran { code: status.code().unwrap_or(-1), stdout: out.join().unwrap(), stderr: error.join().unwrap() }
}

pub fn id_of(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}
