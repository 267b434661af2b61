//! Credential files and stores of process environments are never opened, as the kernel reports.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use inotify::{Inotify, WatchDescriptor, WatchMask};

use crate::claude;
use annals_testkit::codex::{ID, conversation, rollout, text_of};
use annals_testkit::files::files_below;
use annals_testkit::{Bench, fixtures};

/// Content of every file that must not be read; it must never appear anywhere.
const MARKER: &str = "planted-marker-never-to-be-read";

/// A client's files that must not be opened, and the streams to query.
struct Client {
    source: &'static str,
    never: &'static [&'static str],
    streams: [&'static str; 2],
}

const CODEX: Client =
    Client { source: "codex_cli", never: NEVER, streams: ["codex_cli/messages", "codex_cli/threads"] };

const CLAUDE: Client = Client {
    source: "claude_code",
    never: &[
        ".credentials.json",
        "projects/-home-ada-engine/.credentials.json",
        ".claude.json",
        ".config.json",
        "hfi-auth.json",
        "mcp-needs-auth-cache.json",
        "backups/.claude.json.backup.1772445600000",
        "sessions/4242.json",
        "sessions/4242.abcd.key",
        "skills/mine/4242.key",
        "shell-snapshots/snapshot-bash-1.sh",
        "session-env/x/env.sh",
        "debug/0c1a0000-0000-4000-8000-00000000000a.txt",
        "dump-prompts/x.jsonl",
        "tokens.json",
        "my-secrets.md",
        "hooks/.env",
        "notes/.env",
        "notes/id_ed25519",
    ],
    streams: ["claude_code/messages", "claude_code/attachments"],
};

const GEMINI: Client = Client {
    source: "gemini_cli",
    never: &[
        "oauth_creds.json",
        "google_accounts.json",
        "mcp-oauth-tokens.json",
        "mcp-oauth-tokens-v2.json",
        "a2a-oauth-tokens.json",
        "gemini-credentials.json",
        ".env",
        "tmp/gauge/.env",
        "extensions/clock/.env",
        "my-secrets.md",
        "notes/id_ed25519",
    ],
    streams: ["gemini_cli/messages", "gemini_cli/settings"],
};

const QWEN: Client = Client {
    source: "qwen_code",
    never: &[
        "oauth_creds.json",
        "google_accounts.json",
        "mcp-oauth-tokens.json",
        ".env",
        "extensions/clock/.env",
        "my-secrets.md",
        "notes/id_ed25519",
    ],
    streams: ["qwen_code/messages", "qwen_code/settings"],
};

const KIMI: Client = Client {
    source: "kimi_code",
    never: &[
        "credentials/kimi.json",
        "mcp.json",
        "device_id",
        "mcp-oauth.json",
        "plugins/clock/tokens.json",
        ".env",
        "my-secrets.md",
        "notes/id_ed25519",
    ],
    streams: ["kimi_code/messages", "kimi_code/settings"],
};

const CLINE: Client = Client {
    source: "cline",
    never: &[
        "data/secrets.json",
        "data/settings/providers.json",
        "data/settings/mcp-oauth.json",
        ".env",
        "my-secrets.md",
        "notes/id_ed25519",
    ],
    streams: ["cline/messages", "cline/settings"],
};

const OPENCODE: Client = Client {
    source: "opencode",
    never: &[
        "auth.json",
        "mcp-auth.json",
        "account.json",
        "plugin/bell/auth.json",
        ".env",
        "my-secrets.md",
        "notes/id_ed25519",
    ],
    streams: ["opencode/messages", "opencode/settings"],
};

const COPILOT: Client = Client {
    source: "copilot_cli",
    never: &[
        "config.json",
        "config.json.bak",
        "mcp-oauth-tokens.json",
        "mcp-oauth-config/gears.json",
        ".env",
        "my-secrets.md",
        "notes/id_ed25519",
    ],
    streams: ["copilot_cli/messages", "copilot_cli/settings"],
};

const PI: Client = Client {
    source: "pi",
    never: &[
        "auth.json",
        "extensions/bell/auth.json",
        "oauth.json",
        ".env",
        "my-secrets.md",
        "notes/id_ed25519",
    ],
    streams: ["pi/messages", "pi/settings"],
};

const NEVER: &[&str] = &[
    "auth.json",
    ".credentials.json",
    "secrets/x",
    "keys.age",
    "skills/mine/keys.age",
    "logs_2.sqlite",
    "logs_2.sqlite-wal",
    "logs_2.sqlite-shm",
    "shell_snapshots/a.sh",
    "proxy/ca.key",
    "tokens.json",
    "hooks/.env",
    "notes/oauth_creds.json",
];

#[test]
fn never_files_are_not_opened_by_any_command() {
    let bench = Bench::new();
    let transcript = bench.transcript(&rollout(ID), &conversation(ID, "watched"));
    plant(&bench);
    let state = rusqlite::Connection::open(bench.codex().join("state_5.sqlite")).unwrap();
    state
        .execute_batch("create table threads (id text, title text); insert into threads values ('a', 'b')")
        .unwrap();
    drop(state);
    assert_never_opened(&bench, &CODEX, &transcript);
}

#[test]
fn a_link_is_no_way_to_a_never_file() {
    let bench = Bench::new();
    let transcript = bench.transcript(&rollout(ID), &conversation(ID, "watched"));
    plant(&bench);
    let home = bench.codex();
    let day = home.join("sessions/2026/11/15");
    std::fs::create_dir_all(home.join("rules")).unwrap();
    symlink(home.join("auth.json"), day.join("rollout-one.jsonl")).unwrap();
    symlink("../../../../secrets/x", day.join("rollout-two.jsonl")).unwrap();
    symlink("../shell_snapshots/a.sh", home.join("rules/three")).unwrap();
    symlink("../shell_snapshots", home.join("rules/four")).unwrap();
    symlink("logs_2.sqlite", home.join("state_7.sqlite")).unwrap();
    symlink("keys.age", home.join("config.toml")).unwrap();
    symlink("rules/three", home.join("AGENTS.md")).unwrap();
    let state = rusqlite::Connection::open(home.join("goals_1.sqlite")).unwrap();
    state
        .execute_batch("create table thread_goals (thread_id text); insert into thread_goals values ('a')")
        .unwrap();
    drop(state);
    symlink("auth.json", home.join("goals_1.sqlite-wal")).unwrap();
    symlink("auth.json", home.join("goals_1.sqlite-shm")).unwrap();
    assert_never_opened(&bench, &CODEX, &transcript);
}

#[test]
fn files_with_claude_codes_keys_are_not_opened_by_any_command() {
    let bench = Bench::new();
    let transcript = claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&claude::talk(claude::ONE)));
    plant_of(&bench, &CLAUDE);
    assert_never_opened(&bench, &CLAUDE, &transcript);
}

#[test]
fn a_link_is_no_way_to_claude_codes_keys() {
    let bench = Bench::new();
    let transcript = claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&claude::talk(claude::ONE)));
    plant_of(&bench, &CLAUDE);
    let home = bench.claude();
    let project = home.join("projects").join(claude::FOLDER);
    std::fs::create_dir_all(project.join(claude::ONE).join("tool-results")).unwrap();
    std::fs::create_dir_all(home.join("todos")).unwrap();
    symlink("../../.credentials.json", project.join("0c1a0000-0000-4000-8000-00000000000e.jsonl")).unwrap();
    symlink(home.join(".claude.json"), project.join(claude::ONE).join("tool-results/a.txt")).unwrap();
    symlink("../../shell-snapshots", project.join("memory")).unwrap();
    symlink("../sessions/4242.abcd.key", home.join("todos/one.json")).unwrap();
    symlink("backups", home.join("plans")).unwrap();
    symlink(".claude.json", home.join("settings.json")).unwrap();
    symlink("tokens.json", home.join("keybindings.json")).unwrap();
    symlink("tokens.json", home.join("readme.txt")).unwrap();
    symlink("../notes/id_ed25519", home.join("hooks/ring.sh")).unwrap();
    symlink("projects/-home-ada-engine/.credentials.json", home.join("CLAUDE.md")).unwrap();
    symlink("debug/0c1a0000-0000-4000-8000-00000000000a.txt", home.join("history.jsonl")).unwrap();
    assert_never_opened(&bench, &CLAUDE, &transcript);
}

#[test]
fn keys_of_other_assistants_are_not_opened_by_any_command() {
    for client in [GEMINI, OPENCODE, COPILOT, QWEN, KIMI, CLINE, PI] {
        let bench = Bench::with_home(client.source, &fixtures::case(client.source, "lines").join("home"));
        plant_of(&bench, &client);
        let home = bench.home_of(client.source);
        symlink(client.never[0], home.join("settings.json")).unwrap();
        let transcripts = files_below(&home);
        let is_transcript = |path: &&PathBuf| {
            let name = path.to_string_lossy();
            [".jsonl", ".db", ".messages.json"].iter().any(|end| name.ends_with(end))
        };
        assert_never_opened(&bench, &client, transcripts.iter().find(is_transcript).unwrap());
    }
}

fn plant(bench: &Bench) {
    plant_of(bench, &CODEX);
}

fn plant_of(bench: &Bench, client: &Client) {
    for path in client.never {
        let path = bench.home_of(client.source).join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{{\"token\":\"{MARKER}\"}}\n")).unwrap();
    }
}

/// Runs every command that reads the home, and checks with the kernel what was opened.
fn assert_never_opened(bench: &Bench, client: &Client, transcript: &Path) {
    let mut watch = Inotify::init().unwrap();
    let mut names: BTreeMap<WatchDescriptor, String> = BTreeMap::new();
    let mut add = |path: &Path, name: &str| {
        let watched = watch.watches().add(path, WatchMask::OPEN | WatchMask::ACCESS).unwrap();
        names.insert(watched, name.to_owned());
    };
    for name in client.never {
        add(&bench.home_of(client.source).join(name), name);
    }
    add(transcript, "transcript");
    let target = bench.folder.path().join("restored");
    let target = target.to_str().unwrap();
    let mut seen = Vec::new();
    for (arguments, opens) in [
        (&["sync", "--json"][..], true),
        (&["sync", "--full", "--verbose"], true),
        (&["up", "--no-serve"], false),
        (&["sources", "--json"], false),
        (&["sources", "--files"], false),
        (&["rebuild"], false),
        (&["sessions", "--all", "--json", "--reveal"], false),
        (&["records", client.streams[0], "--reveal"], false),
        (&["records", client.streams[1], "--reveal"], false),
        (&["restore", "--to", target], false),
    ] {
        let ran = bench.run(arguments);
        assert!(ran.code <= 1 && !ran.stderr.contains("panicked"), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains(MARKER) && !ran.stderr.contains(MARKER), "{arguments:?}");
        let opened = opened(&mut watch, &names);
        assert_eq!(opened.iter().any(|name| name == "transcript"), opens, "{arguments:?}: {opened:?}");
        seen.extend(opened);
    }
    seen.retain(|name| name != "transcript");
    assert!(seen.is_empty(), "opened: {seen:?}");
    let restored = files_below(Path::new(target));
    assert!(!restored.is_empty());
    for path in restored {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()), "{}", path.display());
    }
}

/// The names of watched files that were opened or read since the last call.
fn opened(watch: &mut Inotify, names: &BTreeMap<WatchDescriptor, String>) -> Vec<String> {
    let mut buffer = [0; 4_096];
    let mut opened = Vec::new();
    loop {
        match watch.read_events(&mut buffer) {
            Ok(events) => opened.extend(events.map(|event| names[&event.wd].clone())),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return opened,
            Err(error) => panic!("{error}"),
        }
    }
}
