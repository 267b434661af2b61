//! Runs the real program on homes in temporary directories, with a separate environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::files::copy_folder;
use crate::{clock, sources};

/// A client's home and an archive, both deleted with the test.
pub struct Bench {
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(bench.user()).unwrap();
        bench
    }

    /// A bench whose home of this source is a copy of `home`.
    pub fn with_home(source: &str, home: &Path) -> Bench {
        let bench = Bench::new();
        copy_folder(home, &bench.home_of(source));
        bench
    }

    /// The home of a source's client.
    pub fn home_of(&self, source: &str) -> PathBuf {
        sources::home_of(source, &self.user())
    }

    pub fn claude(&self) -> PathBuf {
        self.home_of("claude_code")
    }

    pub fn user(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    pub fn codex(&self) -> PathBuf {
        self.home_of("codex_cli")
    }

    pub fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// The program, without the environment of this machine.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::program());
        command.env_clear().env("HOME", self.user()).env("ANNALS_MACHINE", "test");
        clock::set(&mut command);
        command.arg("--home").arg(self.archive()).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// The JSON output of a run that must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// The JSON output of a run that may find nothing.
    pub fn json_or_nothing(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert!(ran.code < 2, "{arguments:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Syncs and returns the report of Codex CLI.
    pub fn sync(&self) -> Value {
        self.sync_of("codex_cli")
    }

    /// Syncs all sources and returns the report of one.
    pub fn sync_of(&self, source: &str) -> Value {
        let report = self.json(&["sync"]);
        let sources = report["sources"].as_array().unwrap();
        sources.iter().find(|report| report["source"] == source).unwrap().clone()
    }

    /// Imports paths that must be recognised, and returns the account of the first one.
    pub fn import(&self, paths: &[&Path]) -> Value {
        let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        self.json(&[&["import"], paths.as_slice()].concat())["imports"][0].clone()
    }

    pub fn sessions(&self) -> Vec<Value> {
        let ran = self.run(&["sessions", "--all", "--json"]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        answer["sessions"].as_array().unwrap().clone()
    }

    /// All output that depends on rows, in one text: equal texts mean equal rows.
    pub fn everything(&self) -> String {
        let mut text = String::new();
        let mut sessions = self.sessions();
        sessions.sort_by_key(|session| session["session_id"].to_string());
        for session in &sessions {
            let id = session["session_id"].as_str().unwrap();
            text += &serde_json::to_string_pretty(session).unwrap();
            text += &self.run(&["show", id, "--json", "--copies", "--full"]).stdout;
        }
        let accounts = self.accounts();
        let has_files = |stream: &str| {
            let source = stream.split('/').next().unwrap_or_default();
            accounts.iter().any(|file| file["source"] == source)
        };
        for stream in self.streams().into_iter().filter(|stream| has_files(stream)) {
            let mut lines: Vec<String> =
                self.run(&["records", &stream]).stdout.lines().map(str::to_owned).collect();
            lines.sort();
            text += &format!("{stream}\n{}\n", lines.join("\n"));
        }
        text += &accounts.iter().map(|file| format!("{file}\n")).collect::<String>();
        text
    }

    /// All streams of all sources, as `source/stream`.
    pub fn streams(&self) -> Vec<String> {
        let streams = sources::all().into_iter().flat_map(|source| {
            sources::streams_of(source).into_iter().map(move |stream| format!("{source}/{stream}"))
        });
        streams.collect()
    }

    /// The account of every captured file.
    pub fn accounts(&self) -> Vec<Value> {
        self.json(&["sources", "--files"])["files"].as_array().unwrap().clone()
    }

    /// Writes a transcript of the given lines and returns its path.
    pub fn transcript(&self, name: &str, lines: &[String]) -> PathBuf {
        let path = self.codex().join("sessions/2026/11/15").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path
    }
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
