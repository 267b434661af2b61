//! Repositories for tests, made with the real `git`, which `make test` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository whose commits have the times they are given.
pub struct Repository {
    pub folder: PathBuf,
}

impl Repository {
    pub fn create(folder: &Path) -> Repository {
        std::fs::create_dir_all(folder).unwrap();
        let repository = Repository { folder: folder.to_owned() };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// Writes a file and commits it, at the same time for author and committer; returns the commit.
    pub fn commit(&self, name: &str, text: &str, at: &str) -> String {
        self.commit_by(name, text, at, at)
    }

    /// The same, with the times of author and committer.
    pub fn commit_by(&self, name: &str, text: &str, author_at: &str, committer_at: &str) -> String {
        self.commit_files(&[(name, text)], name, (author_at, committer_at))
    }

    /// Writes files and commits them with a message, at the times of author and committer.
    pub fn commit_files(&self, files: &[(&str, &str)], message: &str, at: (&str, &str)) -> String {
        for (name, text) in files {
            let file = self.folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        self.git(&["add", "--all"]);
        let mut command = self.command(&["commit", "--quiet", "--message", message]);
        run(command.env("GIT_AUTHOR_DATE", at.0).env("GIT_COMMITTER_DATE", at.1));
        self.git(&["rev-parse", "HEAD"])
    }

    /// What git prints; it must succeed.
    pub fn git(&self, arguments: &[&str]) -> String {
        run(&mut self.command(arguments))
    }

    /// Git without the settings of this machine.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args([
                "-c",
                "user.name=ada",
                "-c",
                "user.email=ada@example.invalid",
                "-c",
                "commit.gpgSign=false",
            ])
            .arg("-C")
            .arg(&self.folder)
            .args(arguments)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("git is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
