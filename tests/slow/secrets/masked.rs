//! A hub with the policy `masked`: no secret of the homes is in its database, its log or the traffic to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use annals_testkit::server::Server;
use annals_testkit::worlds::planted;
use annals_testkit::{Bench, Ran};

/// Passes connections on and keeps the bytes of both directions.
struct Relay {
    address: String,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    /// It ends with the process.
    fn to(server: String) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&server).unwrap();
                for (mut from, mut to) in
                    [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
                {
                    let kept = kept.clone();
                    std::thread::spawn(move || {
                        let mut buffer = vec![0; 1 << 16];
                        while let Ok(count @ 1..) = from.read(&mut buffer) {
                            kept.lock().unwrap().extend_from_slice(&buffer[..count]);
                            if to.write_all(&buffer[..count]).is_err() {
                                break;
                            }
                        }
                        drop(to.shutdown(std::net::Shutdown::Write));
                    });
                }
            }
        });
        Relay { address, seen }
    }
}

/// The bytes as text, with everything in them that is compressed.
fn opened(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    let magic = [0x28, 0xB5, 0x2F, 0xFD];
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(4).position(|window| window == magic) {
        at += found + 4;
        let mut content = Vec::new();
        let decoder = zstd::stream::read::Decoder::new(&bytes[at - 4..]).unwrap();
        // What follows is something else.
        drop(decoder.single_frame().read_to_end(&mut content));
        if content.starts_with(&magic) {
            text += &opened(&content);
        }
        text += &String::from_utf8_lossy(&content);
    }
    text
}

/// Every blob of an archive, and its file and journal as they are.
fn database_of(bench: &Bench) -> String {
    let folder = bench.archive();
    let database = rusqlite::Connection::open(folder.join("annals.db")).unwrap();
    let mut statement = database.prepare("select packing, data from blob").unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut text = String::new();
    while let Some(row) = rows.next().unwrap() {
        let (packing, data): (i64, Vec<u8>) = (row.get(0).unwrap(), row.get(1).unwrap());
        assert!(packing < 2, "a difference cannot be read alone");
        text += &opened(&data);
    }
    for name in ["annals.db", "annals.db-wal"] {
        let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
        text += &String::from_utf8_lossy(&bytes);
    }
    text
}

struct Pushed {
    hub: Bench,
    report: serde_json::Value,
    traffic: String,
    log: String,
}

fn push(laptop: &Bench, policy: &str) -> Pushed {
    let hub = Bench::new();
    let token = hub.json(&["members", "add", "ada"])["token"].as_str().unwrap().to_owned();
    let arguments = ["serve", "--no-sync", "--json", "--listen", "127.0.0.1:0", "--policy", policy];
    let server = Server::of(hub.command(&arguments));
    let relay = Relay::to(server.address.clone());
    let run = |more: &[&str]| {
        let url = format!("http://{}", relay.address);
        let mut command = laptop.command(&[&["push", &url][..], more].concat());
        Ran::of(command.env("ANNALS_PUSH_TOKEN", &token).output().unwrap())
    };
    let ran = run(&[]);
    assert!(ran.code == 2 && ran.stderr.contains(&format!("its policy is {policy}")), "{}", ran.stderr);
    assert_eq!(hub.sessions().len(), 0, "nothing before a yes");
    let ran = run(&["--yes", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let again = run(&["--json"]);
    assert!(again.stdout.contains("\"files\":0"), "{} {}", again.stdout, again.stderr);
    let log = server.stop().stderr;
    let traffic = opened(&relay.seen.lock().unwrap());
    Pushed { hub, report: serde_json::from_str(&ran.stdout).unwrap(), traffic, log }
}

fn texts_below(folder: &Path) -> String {
    let files = annals_testkit::files::files_below(folder);
    files
        .iter()
        .map(|path| format!("{}\n{}", path.display(), opened(&std::fs::read(path).unwrap())))
        .collect()
}

#[test]
fn no_secret_leaves_the_machine_for_a_hub_that_masks() {
    let laptop = Bench::new();
    planted::write(&laptop);
    laptop.sync();
    let secrets = planted::secrets();

    // The same checks find them where copies are exact.
    let exact = push(&laptop, "exact");
    assert!(planted::leaks(&secrets, &exact.traffic, "traffic").len() > secrets.len() / 2);
    assert!(planted::leaks(&secrets, &database_of(&exact.hub), "database").len() > secrets.len() / 2);

    let masked = push(&laptop, "masked");
    assert_eq!(masked.report["policy"], "masked");
    println!("{}", masked.report);
    let restored = masked.hub.folder.path().join("restored");
    masked.hub.json(&["restore", "--to", restored.to_str().unwrap()]);
    let found: Vec<String> = [
        ("traffic", &masked.traffic),
        ("database", &database_of(&masked.hub)),
        ("log", &masked.log),
        ("restored files", &texts_below(&restored)),
    ]
    .iter()
    .flat_map(|(what, text)| planted::leaks(&secrets, text, what))
    .collect();
    assert!(found.is_empty(), "{} leaks\n{found:#?}", found.len());
    assert!(masked.traffic.contains("[secret:"), "masks");
    // The copies are known as such.
    assert!(masked.hub.json(&["members", "list"])["members"][0]["masked_homes"].as_i64() > Some(2));
    assert!(exact.hub.json(&["members", "list"])["members"][0]["masked_homes"] == 0);
    let sessions = |bench: &Bench| bench.sessions().len();
    assert_eq!(sessions(&masked.hub), sessions(&laptop));
    assert_eq!(sessions(&masked.hub), sessions(&exact.hub));
    assert_eq!(masked.hub.run(&["doctor", "--deep"]).code, 0);
}
