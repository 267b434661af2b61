//! Runs the real program on homes in temporary folders, with an environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A client's home and an archive, both gone with the test.
pub struct Bench {
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(bench.user()).unwrap();
        bench
    }

    /// A bench whose home of that source is a copy of `home`.
    pub fn with_home(source: &str, home: &Path) -> Bench {
        let bench = Bench::new();
        copy_folder(home, &bench.home_of(source));
        bench
    }

    /// Where a source's client has its home.
    pub fn home_of(&self, source: &str) -> PathBuf {
        match source {
            "codex_cli" => self.codex(),
            "claude_code" => self.claude(),
            other => panic!("no home is known for {other}"),
        }
    }

    pub fn claude(&self) -> PathBuf {
        self.user().join(".claude")
    }

    pub fn user(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    pub fn codex(&self) -> PathBuf {
        self.user().join(".codex")
    }

    pub fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// The program with nothing of this machine's environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command.env_clear().env("HOME", self.user()).env("ANNALS_MACHINE", "test");
        crate::clock::set(&mut command);
        command.arg("--home").arg(self.archive()).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// The JSON answer of a run that must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Syncs and answers the report of Codex CLI.
    pub fn sync(&self) -> Value {
        self.sync_of("codex_cli")
    }

    /// Syncs all sources and answers the report of one.
    pub fn sync_of(&self, source: &str) -> Value {
        let report = self.json(&["sync"]);
        let sources = report["sources"].as_array().unwrap();
        sources.iter().find(|report| report["source"] == source).unwrap().clone()
    }

    /// Imports what must be recognised, and answers the account of the first path.
    pub fn import(&self, paths: &[&Path]) -> Value {
        let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        self.json(&[&["import"], paths.as_slice()].concat())["imports"][0].clone()
    }

    pub fn sessions(&self) -> Vec<Value> {
        let ran = self.run(&["sessions", "--all", "--json"]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        answer["sessions"].as_array().unwrap().clone()
    }

    /// Every answer that rows decide, in one text: equal texts, equal rows.
    pub fn everything(&self) -> String {
        let mut text = String::new();
        let mut sessions = self.sessions();
        sessions.sort_by_key(|session| session["session_id"].to_string());
        for session in &sessions {
            let id = session["session_id"].as_str().unwrap();
            text += &serde_json::to_string_pretty(session).unwrap();
            text += &self.run(&["show", id, "--json", "--copies", "--full"]).stdout;
        }
        for stream in self.streams() {
            let mut lines: Vec<String> =
                self.run(&["records", &stream]).stdout.lines().map(str::to_owned).collect();
            lines.sort();
            text += &format!("{stream}\n{}\n", lines.join("\n"));
        }
        text += &self.accounts().iter().map(|file| format!("{file}\n")).collect::<String>();
        text
    }

    /// All streams of all sources, as `source/stream`.
    pub fn streams(&self) -> Vec<String> {
        let mut streams = Vec::new();
        for source in SOURCES.into_iter().chain(IMPORTED) {
            let manifest = self.json(&["manifest", source]);
            for stream in manifest["streams"].as_array().unwrap() {
                streams.push(format!("{source}/{}", stream["name"].as_str().unwrap()));
            }
        }
        streams
    }

    /// The account of every captured file.
    pub fn accounts(&self) -> Vec<Value> {
        self.json(&["sources", "--files"])["files"].as_array().unwrap().clone()
    }

    /// Writes a transcript of the given lines and answers its path.
    pub fn transcript(&self, name: &str, lines: &[String]) -> PathBuf {
        let path = self.codex().join("sessions/2026/11/15").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path
    }
}

/// All sources that have homes, and fixtures of them.
pub const SOURCES: [&str; 2] = ["codex_cli", "claude_code"];
/// All sources that read files which people give them, and have fixtures of those.
pub const IMPORTED: [&str; 2] = ["chatgpt", "openai_api"];

/// Moments of these days say when the test ran; they become one word.
pub fn timeless(text: &str) -> String {
    let moment = regex::Regex::new(r#""20(2[6-9]|[3-9]\d)-\d\d-\d\dT[0-9:.]+Z""#).unwrap();
    moment.replace_all(text, "\"now\"").into_owned()
}

pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// `discovered = kept + unknown + malformed + skipped`, in bytes and in lines counted here by other means.
pub fn assert_accounts_add_up(bench: &Bench, home: &Path) {
    for file in bench.accounts() {
        let sum = |what: &str| {
            ["kept", "unknown", "malformed", "skipped"]
                .iter()
                .map(|status| file[status][what].as_i64().unwrap())
                .sum::<i64>()
        };
        if file["twin"] == true {
            continue;
        }
        assert_eq!(sum("bytes"), file["content_bytes"].as_i64().unwrap(), "{file}");
        let path = home.join(file["path"].as_str().unwrap());
        if path.extension().is_some_and(|extension| extension == "jsonl") && path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let newlines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let unended = usize::from(!bytes.is_empty() && bytes.last() != Some(&b'\n'));
            assert_eq!(sum("lines"), (newlines + unended) as i64, "{file}");
        }
    }
}

/// Restores into a new folder and compares every restored file with the one in `home`.
pub fn assert_restores(bench: &Bench, home: &Path) {
    assert_restores_of(bench, "codex_cli", home);
}

pub fn assert_restores_of(bench: &Bench, source: &str, home: &Path) {
    let target = bench.folder.path().join("restored");
    let ran = bench.run(&["restore", "--source", source, "--to", target.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let restored = files_below(&target);
    assert!(!restored.is_empty());
    for path in &restored {
        let relative = path.strip_prefix(&target).unwrap();
        let (ours, theirs) = (std::fs::read(path).unwrap(), std::fs::read(home.join(relative)).unwrap());
        assert!(ours == theirs, "{} differs", relative.display());
    }
    std::fs::remove_dir_all(&target).unwrap();
}

pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in files_below(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&file, &target).unwrap();
        // A copy of a read-only file is still ours to change.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        // Records of whole files have the file's own time.
        let times = std::fs::FileTimes::new().set_modified(file.metadata().unwrap().modified().unwrap());
        std::fs::File::options().write(true).open(&target).unwrap().set_times(times).unwrap();
    }
}

/// The first line of a wrapped transcript.
pub fn meta(id: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-11-15T10:00:00.000Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-11-15T10:00:00.000Z","cwd":"/home/ada/engine","originator":"codex_cli_rs","cli_version":"0.80.0","source":"cli"}}}}"#
    )
}

/// A prompt as older clients store it: response item, then event.
pub fn prompt(text: &str) -> [String; 2] {
    let text = serde_json::to_string(text).unwrap();
    [
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}}}"#
        ),
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:01.100Z","type":"event_msg","payload":{{"type":"user_message","message":{text}}}}}"#
        ),
    ]
}

/// An answer as older clients store it: event, then response item.
pub fn answer(text: &str) -> [String; 2] {
    let text = serde_json::to_string(text).unwrap();
    [
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:02.000Z","type":"event_msg","payload":{{"type":"agent_message","message":{text}}}}}"#
        ),
        format!(
            r#"{{"timestamp":"2026-11-15T10:00:02.100Z","type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{text}}}]}}}}"#
        ),
    ]
}

/// A small whole conversation.
pub fn conversation(id: &str, words: &str) -> Vec<String> {
    let mut lines = vec![meta(id)];
    lines.extend(prompt(words));
    lines.extend(answer(&format!("about {words}")));
    lines
}

pub const ID: &str = "0199a1b2-0000-7000-8000-00000000000a";

pub fn rollout(id: &str) -> String {
    format!("rollout-2026-11-15T10-00-00-{id}.jsonl")
}
