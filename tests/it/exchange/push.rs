//! `annals push` and `annals pull`, with a hub that is a server with members.

use serde_json::{Value, json};

use super::{Machine, assert_same_archives};
use annals_testkit::codex::{ID, conversation, prompt, rollout, text_of};
use annals_testkit::files::{append, files_below};
use annals_testkit::server::Server;
use annals_testkit::{Bench, Ran, checks};

const OTHER: &str = "0199a1b2-0000-7000-8000-0000000000ff";

/// A hub and the tokens of its members.
pub struct Hub {
    pub bench: Bench,
    pub server: Server,
}

impl Hub {
    pub fn with(members: &[&str]) -> (Hub, Vec<String>) {
        let bench = Bench::new();
        let token = |name: &&str| bench.json(&["members", "add", name])["token"].as_str().unwrap().to_owned();
        let tokens = members.iter().map(token).collect();
        let server = Server::without_refresh(&bench);
        (Hub { bench, server }, tokens)
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Answers one step with its status.
    fn step(&self, token: &str, step: &str, body: &[u8]) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent
            .post(format!("{}/api/v1/exchange/{step}", self.url()))
            .header("Authorization", format!("Bearer {token}"))
            .send(body)
            .unwrap();
        let body = response.body_mut().read_to_vec().unwrap();
        (response.status().as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }

    fn ask(&self, token: &str, step: &str, body: &Value) -> (u16, Value) {
        self.step(token, step, body.to_string().as_bytes())
    }

    /// The number of a home that this token pushes.
    fn home(&self, token: &str, machine: &str) -> i64 {
        let (status, answer) = self.ask(token, "hello", &greeting(1, machine));
        assert_eq!(status, 200, "{answer}");
        answer["homes"][0]["id"].as_i64().unwrap()
    }
}

fn greeting(protocol: u32, machine: &str) -> Value {
    let home = json!({"source": "codex_cli", "machine": machine, "root": "/home/ada/.codex"});
    json!({"protocol": protocol, "archive": "00112233445566778899aabbccddeeff", "machine": machine, "homes": [home]})
}

impl Machine {
    fn hub(&self, verb: &str, hub: &Hub, token: &str, more: &[&str]) -> Ran {
        let url = hub.url();
        let mut command = self.bench.command(&[&[verb, &url], more].concat());
        command.env("ANNALS_MACHINE", self.name).env("ANNALS_PUSH_TOKEN", token);
        Ran::of(command.output().unwrap())
    }

    #[track_caller]
    fn push(&self, hub: &Hub, token: &str) -> Value {
        self.answer("push", hub, token, &["--yes", "--json"])
    }

    #[track_caller]
    fn pull(&self, hub: &Hub, token: &str) -> Value {
        self.answer("pull", hub, token, &["--json"])
    }

    #[track_caller]
    fn answer(&self, verb: &str, hub: &Hub, token: &str, more: &[&str]) -> Value {
        let ran = self.hub(verb, hub, token, more);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// The bytes of a file as frames of blobs.
fn frame(hash: [u8; 32], length: u32, packing: u8, data: &[u8]) -> Vec<u8> {
    let size = data.len() as u32;
    [&hash[..], &[packing], &length.to_le_bytes(), &size.to_le_bytes(), data].concat()
}

fn pushed(home: i64, path: &str, bytes: &[u8]) -> Value {
    let hash = blake3::hash(bytes).to_hex();
    json!({"home": home, "files": [{
        "path": path, "logical_path": path, "store": "transcripts", "reader": "rollout", "framing": "lines",
        "encoding": "plain", "document": false, "mutable": false, "owner": "this", "rows_version": 1,
        "first_seen": 1, "gone_at": null, "mode": null,
        "versions": [{"version": 1, "size": bytes.len(), "modified": 1, "captured_at": 1, "gone_at": null,
                      "segments": [hash.as_str()]}],
    }]})
}

#[test]
fn a_hub_is_like_an_archive_that_synced_all_homes() {
    let (hub, tokens) = Hub::with(&["ada"]);
    let token = &tokens[0];
    let synced = Bench::new();
    let machines = ["laptop", "desktop", "container"].map(Machine::new);
    for machine in &machines {
        let words = format!("gears of the {}", machine.name);
        machine.bench.transcript(&rollout(ID), &conversation(ID, &words));
        std::fs::write(machine.bench.codex().join("config.toml"), "model = \"one\"\n").unwrap();
    }
    for round in 0..3 {
        for machine in &machines {
            let path = machine.bench.codex().join("sessions/2026/11/15").join(rollout(ID));
            append(&path, &text_of(&prompt(&format!("question {round} about {}", machine.name))));
            machine.sync();
            machine.sync_into(&synced);
            let report = machine.push(&hub, token);
            assert_eq!((&report["member"], &report["policy"]), (&json!("ada"), &json!("exact")), "{report}");
            assert!(report["files"].as_u64() > Some(0), "{report}");
            let again = machine.push(&hub, token);
            assert_eq!((&again["files"], &again["requests"]), (&json!(0), &json!(1)), "{again}");
        }
        assert_same_archives(&hub.bench, &synced);
    }
    checks::assert_rebuilds(&hub.bench);
    assert_eq!(hub.bench.run(&["doctor", "--deep"]).code, 0);
    let seen = hub.server.json_as(token, "/api/v1/sessions")["sessions"].as_array().unwrap().len();
    assert_eq!(seen, 3, "the member sees them");

    let ada = hub.bench.json(&["members", "list"])["members"][0].clone();
    assert_eq!(
        (&ada["machines"], &ada["sessions"], &ada["homes"]),
        (&json!(3), &json!(3), &json!(3)),
        "{ada}"
    );
    assert!(ada["last_push_at"].is_string() && ada["bytes"].as_u64() > Some(1_000), "{ada}");

    // A new machine gets everything back, byte for byte.
    let new = Machine::new("new");
    assert!(new.pull(&hub, token)["new_files"].as_u64() >= Some(6));
    assert_same_archives(&new.bench, &synced);
    let again = new.pull(&hub, token);
    assert_eq!((&again["new_files"], &again["changed_files"]), (&json!(0), &json!(0)), "{again}");
    let restored = new.bench.folder.path().join("restored");
    new.bench.json(&["restore", "--to", restored.to_str().unwrap()]);
    let contents: Vec<Vec<u8>> =
        files_below(&restored).iter().map(|path| std::fs::read(path).unwrap()).collect();
    for machine in &machines {
        for path in files_below(&machine.bench.codex()) {
            assert!(contents.contains(&std::fs::read(&path).unwrap()), "{}", path.display());
        }
    }
    // What was fetched from the hub is not sent back, and a machine that fetched continues to send its own.
    assert_eq!(new.push(&hub, token)["files"], 0);
    machines[0].pull(&hub, token);
    let path = machines[0].bench.codex().join("sessions/2026/11/15").join(rollout(ID));
    append(&path, &text_of(&prompt("after a pull")));
    machines[0].sync();
    assert_eq!(machines[0].push(&hub, token)["files"], 1);
    machines[0].sync_into(&synced);
    assert_same_archives(&hub.bench, &synced);
    assert_same_archives(&machines[0].bench, &synced);
}

#[test]
fn homes_of_all_sources_arrive_complete() {
    let (hub, tokens) = Hub::with(&["ada"]);
    let machine = Machine::with_fixtures("laptop");
    machine.sync();
    machine.push(&hub, &tokens[0]);
    assert_same_archives(&hub.bench, &machine.bench);
}

#[test]
fn arrangements_travel_and_what_was_forgotten_does_not_come_back() {
    let (hub, tokens) = Hub::with(&["ada", "mary"]);
    let (laptop, desktop) = (Machine::new("laptop"), Machine::new("desktop"));
    laptop.bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let path = laptop.bench.transcript(&rollout(OTHER), &conversation(OTHER, "wheels"));
    laptop.sync();
    laptop.run(&["name", ID, "Named on the laptop"]);
    assert_eq!(laptop.push(&hub, &tokens[0])["arrangements"], 1);
    assert_eq!(desktop.pull(&hub, &tokens[0])["arrangements"], 1);
    let names: Vec<Value> = desktop.bench.sessions().iter().map(|session| session["name"].clone()).collect();
    assert!(names.contains(&json!("Named on the laptop")), "{names:?}");
    // On the hub they are the member's.
    let name = |token: &str| {
        let found = hub.server.json_as(token, "/api/v1/sessions");
        found["sessions"].as_array().unwrap().iter().any(|session| session["name"] == "Named on the laptop")
    };
    assert!(name(&tokens[0]) && !name(&hub.server.token));
    assert_eq!(Machine::new("other").pull(&hub, &tokens[1])["homes"], 0);

    assert_eq!(desktop.bench.run(&["forget", ID, "--yes"]).code, 0);
    assert_eq!(hub.bench.run(&["forget", OTHER, "--yes"]).code, 0);
    append(&path, &text_of(&prompt("more wheels")));
    laptop.sync();
    laptop.push(&hub, &tokens[0]);
    desktop.pull(&hub, &tokens[0]);
    let ids = |bench: &Bench| -> Vec<Value> {
        bench.sessions().iter().map(|session| session["session_id"].clone()).collect()
    };
    assert_eq!(ids(&desktop.bench), [OTHER]);
    assert_eq!(ids(&laptop.bench).len(), 2);
    assert!(!hub.bench.run(&["show", OTHER]).stdout.contains("gears and wheels"));
    assert_eq!(hub.bench.run(&["forget", "--verify"]).code, 0);
}

#[test]
fn what_is_shared_is_chosen() {
    let (hub, tokens) = Hub::with(&["ada"]);
    let machine = Machine::new("laptop");
    let at = |folder: &str, id: &str, words: &str| {
        let mut lines = conversation(id, words);
        lines[0] = lines[0].replace("/home/ada/engine", folder);
        machine.bench.transcript(&rollout(id), &lines);
    };
    at("/w/tax", ID, "my taxes");
    at("/w/engine", OTHER, "gears");
    std::fs::write(machine.bench.codex().join("history.jsonl"), "{\"text\":\"my taxes\",\"ts\":1}\n")
        .unwrap();
    machine.sync();
    let listed =
        machine.answer("push", &hub, &tokens[0], &["--dry-run", "--exclude-project", "/w/tax", "--json"]);
    assert_eq!((&listed["files"], &listed["dry_run"]), (&json!(1), &json!(true)), "{listed}");
    assert_eq!(hub.bench.sessions().len(), 0, "a dry run sends nothing");
    machine.answer("push", &hub, &tokens[0], &["--yes", "--exclude-project", "/w/tax", "--json"]);
    let sessions = hub.bench.sessions();
    assert_eq!((sessions.len(), &sessions[0]["session_id"]), (1, &json!(OTHER)));
    assert_eq!(hub.bench.run(&["search", "taxes"]).code, 1);
    let none =
        machine.answer("push", &hub, &tokens[0], &["--yes", "--exclude-source", "codex_cli", "--json"]);
    assert_eq!(none["files"], 0);
    machine.push(&hub, &tokens[0]);
    assert_eq!(hub.bench.sessions().len(), 2);
}

#[test]
fn nothing_is_sent_before_the_policy_is_agreed_to_and_nowhere_without_encryption() {
    let (hub, tokens) = Hub::with(&["ada"]);
    let machine = Machine::new("laptop");
    machine.bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    machine.sync();
    let ran = machine.hub("push", &hub, &tokens[0], &[]);
    assert!(ran.code == 2 && ran.stderr.contains("--yes"), "{}", ran.stderr);
    assert!(ran.stderr.contains("its policy is exact"), "{}", ran.stderr);
    assert_eq!(hub.bench.sessions().len(), 0);
    machine.push(&hub, &tokens[0]);
    assert_eq!(machine.hub("push", &hub, &tokens[0], &[]).code, 0, "agreed once");
    let ran = machine.bench.run(&["push", "http://hub.example.org", "--token-file", "/nowhere"]);
    assert!(ran.code == 2, "{}", ran.stderr);
    let file = machine.bench.folder.path().join("token");
    std::fs::write(&file, format!("{}\n", tokens[0])).unwrap();
    let ran = machine.bench.run(&["push", "http://hub.example.org", "--token-file", file.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.stderr.contains("without encryption"), "{}", ran.stderr);
    let ran = machine.bench.run(&["push", &hub.url(), "--token-file", file.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = machine.bench.run(&["push", &hub.url()]);
    assert!(ran.code == 2 && ran.stderr.contains("no token"), "{}", ran.stderr);
    hub.bench.json(&["members", "token", "ada", "--revoke"]);
    let ran = machine.hub("push", &hub, &tokens[0], &[]);
    assert!(ran.code == 2 && ran.stderr.contains("revoked"), "{}", ran.stderr);
}

#[test]
fn nobody_writes_or_reads_what_is_not_theirs() {
    let (hub, tokens) = Hub::with(&["ada", "eve"]);
    let (ada, eve) = (&tokens[0], &tokens[1]);
    let text = text_of(&conversation(ID, "the gears of ada"));
    let (home, evil) = (hub.home(ada, "laptop"), hub.home(eve, "laptop"));
    assert_ne!(home, evil, "homes of one name are two homes");
    let hash = *blake3::hash(text.as_bytes()).as_bytes();
    let blob = frame(hash, text.len() as u32, 0, text.as_bytes());
    assert_eq!(hub.step(ada, "blobs", &blob).0, 200);
    let path = format!("sessions/2026/11/15/{}", rollout(ID));
    let (status, answer) = hub.ask(ada, "files", &pushed(home, &path, text.as_bytes()));
    assert_eq!((status, &answer["new_files"]), (200, &json!(1)), "{answer}");
    // A commit that is sent again changes nothing.
    let (status, answer) = hub.ask(ada, "files", &pushed(home, &path, text.as_bytes()));
    assert_eq!((status, &answer["unchanged_files"]), (200, &json!(1)), "{answer}");

    let (status, answer) = hub.ask(eve, "files", &pushed(home, &path, text.as_bytes()));
    assert_eq!((status, &answer["detail"]), (403, &json!("this home is not yours")));
    // Who knows a hash has not its content.
    let (status, answer) = hub.ask(eve, "files", &pushed(evil, &path, text.as_bytes()));
    assert_eq!((status, answer["missing"].as_array().map(Vec::len)), (200, Some(1)), "{answer}");
    let wanted = json!({"hashes": [blake3::hash(text.as_bytes()).to_hex().as_str()]});
    assert_eq!(hub.ask(eve, "content", &wanted).0, 400);
    assert_eq!(hub.ask(ada, "content", &wanted).0, 200);
    assert_eq!(hub.ask(eve, "offers", &json!({"home": home, "after": ""})).0, 403);
    for token in [&hub.server.token, ada] {
        let (status, answer) = hub.ask(token, "offers", &json!({"home": home, "after": ""}));
        assert_eq!(status, if token == ada { 200 } else { 403 }, "{answer}");
    }
    let sees =
        |token: &str| hub.server.json_as(token, "/api/v1/sessions")["sessions"].as_array().unwrap().len();
    assert_eq!((sees(ada), sees(eve)), (1, 0));
    let hello = hub
        .ask(
            eve,
            "hello",
            &json!({"protocol": 1, "archive": "00112233445566778899aabbccddeeff",
        "machine": "x", "pulls": true}),
        )
        .1;
    assert_eq!(hello["homes"].as_array().unwrap().iter().filter(|offered| offered["id"] == home).count(), 0);
    hub.bench.json(&["members", "remove", "eve"]);
    for step in ["hello", "files", "blobs", "offers", "content", "arrangements", "arranged"] {
        for token in [eve.as_str(), "annals_0", ""] {
            assert_eq!(hub.step(token, step, b"{}").0, 401, "{step}");
        }
    }
}

/// A limit on file size simulates a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_of_the_hub_refuses_a_push_that_is_complete_once_there_is_room() {
    let (hub, tokens) = Hub::with(&["ada"]);
    let machine = Machine::new("laptop");
    machine.bench.transcript(&rollout(OTHER), &conversation(OTHER, "wheels"));
    machine.sync();
    machine.push(&hub, &tokens[0]);
    let Hub { bench, server } = hub;
    assert_eq!(server.stop().code, 0);
    // Letters that do not compress well.
    let mut state = 20_261_116_u64;
    let words: String = (0..3_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 59) as u8 % 26)
        })
        .collect();
    machine.bench.transcript(&rollout(ID), &conversation(ID, &words));
    machine.sync();

    let size = std::fs::metadata(bench.archive().join("annals.db")).unwrap().len() / 1_024;
    let serve = ["serve", "--listen", "127.0.0.1:0", "--json", "--no-sync"];
    let limited = annals_testkit::disk::with_file_limit(size + 400, &bench.command(&serve));
    let hub = Hub { server: Server::of(limited), bench };
    let ran = machine.hub("push", &hub, &tokens[0], &["--yes"]);
    assert!(ran.code == 2 && ran.stderr.contains("full") && ran.stderr.contains("hint: "), "{}", ran.stderr);
    assert_eq!(hub.bench.sessions().len(), 1, "nothing of the new file");
    assert_eq!(hub.server.json_as(&tokens[0], "/api/v1/sessions")["sessions"].as_array().unwrap().len(), 1);
    let Hub { bench, server } = hub;
    server.stop();
    assert_eq!(bench.run(&["doctor", "--deep"]).code, 0);

    let hub = Hub { server: Server::without_refresh(&bench), bench };
    machine.push(&hub, &tokens[0]);
    assert_same_archives(&hub.bench, &machine.bench);
}

#[test]
fn hostile_requests_are_refused_and_nothing_of_them_stays() {
    let (hub, tokens) = Hub::with(&["ada"]);
    let token = &tokens[0];
    let home = hub.home(token, "laptop");
    let text = text_of(&conversation(ID, "gears"));
    let hash = *blake3::hash(text.as_bytes()).as_bytes();
    let bomb = zstd::bulk::compress(&vec![0; 200 << 20], 1).unwrap();
    let length = text.len() as u32;
    let refused = |step: &str, body: &[u8], words: &str| {
        let (status, answer) = hub.step(token, step, body);
        let detail = answer["detail"].as_str().unwrap_or_default();
        assert!((400..500).contains(&status) && detail.contains(words), "{step}: {status} {answer}");
    };
    refused("blobs", &frame([7; 32], length, 0, text.as_bytes()), "wrong hash");
    refused("blobs", &frame(hash, 1 << 18, 1, &bomb), "does not decompress");
    refused("blobs", &frame(hash, u32::MAX, 1, &bomb), "impossible");
    refused("blobs", &frame(hash, length + 1, 0, text.as_bytes()), "instead of");
    refused("blobs", &frame(hash, length, 0, text.as_bytes())[..60], "cut off");
    refused("nothing", b"{}", "no such step");
    refused("files", b"[", "not a request");
    refused("hello", greeting(0, "laptop").to_string().as_bytes(), "protocol 0");
    refused("hello", greeting(2, "laptop").to_string().as_bytes(), "protocol 2");
    let mut odd = pushed(home, "a.jsonl", text.as_bytes());
    for (field, value) in [
        ("path", json!("forgotten/00")),
        ("path", json!("")),
        ("logical_path", json!("another.jsonl")),
        ("framing", json!("pieces")),
        ("encoding", json!("gzip")),
        ("rows_version", json!(2)),
        ("captures", json!(["x"])),
    ] {
        let before = odd["files"][0][field].clone();
        odd["files"][0][field] = value;
        assert_eq!(hub.ask(token, "files", &odd).0, 400, "{field}");
        odd["files"][0][field] = before;
        if field == "captures" {
            odd["files"][0].as_object_mut().unwrap().remove(field);
        }
    }
    odd["files"][0]["versions"][0]["size"] = json!(1 << 30);
    refused("files", odd.to_string().as_bytes(), "segments of its size");
    refused("files", &vec![b' '; 13 << 20], "");
    // A hash is not enough.
    let (_, answer) = hub.ask(token, "files", &pushed(home, "a.jsonl", text.as_bytes()));
    assert_eq!(answer["missing"].as_array().unwrap().len(), 1);
    assert_eq!(hub.bench.accounts().len(), 0);
    let database = rusqlite::Connection::open(hub.bench.archive().join("annals.db")).unwrap();
    for table in ["blob", "staged_blob", "file", "version"] {
        let count: i64 =
            database.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }
}
