//! Always on: the service file, what it starts, and a doctor who notices when nothing captures.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use annals_testkit::codex::{ID, conversation, prompt, rollout};
use annals_testkit::files::append;
use annals_testkit::{Bench, Ran, clock};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// `systemctl` as the tests see it: it writes down what it is asked, and says that the service runs.
#[cfg(unix)]
fn fake_manager(bench: &Bench) -> std::path::PathBuf {
    let folder = bench.folder.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    for name in ["systemctl", "journalctl"] {
        let program = folder.join(name);
        let log = bench.folder.path().join("asked");
        let script = format!(
            "#!/bin/sh\necho {name} \"$@\" >> '{}'\n[ {name} = systemctl ] || echo a line\n",
            log.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    folder
}

#[cfg(unix)]
#[test]
fn a_service_is_installed_shown_and_removed() {
    let bench = Bench::new();
    let programs = fake_manager(&bench);
    let run = |arguments: &[&str]| {
        let mut command = bench.command(&[&["service", "--manager", "systemd"], arguments].concat());
        command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
        command.env("CODEX_HOME", bench.folder.path().join("a \"b\" 50%"));
        Ran::of(command.output().unwrap())
    };
    let file = bench.user().join(".config/systemd/user/annals.service");
    assert_eq!(run(&["status"]).code, 1);
    let printed = run(&["install", "--print", "--no-http"]);
    assert!(printed.stdout.contains("\"--quiet\" \"watch\"") && !file.exists(), "{}", printed.stdout);
    assert!(printed.stdout.contains("a \\\"b\\\" 50%%\""), "{}", printed.stdout);
    let installed = run(&["install"]);
    assert_eq!(installed.code, 0, "{}", installed.stderr);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.trim_end(), run(&["install", "--print"]).stdout.trim_end());
    assert!(text.contains("\"--quiet\" \"serve\"\n"), "{text}");
    // With the real program, if it is installed: nothing in the unit is unknown to it.
    let verified = Command::new("systemd-analyze").args(["--user", "verify"]).arg(&file).output();
    if let Ok(verified) = verified {
        let printed = String::from_utf8_lossy(&verified.stderr).into_owned();
        let about: Vec<&str> = printed.lines().filter(|line| line.contains("annals.service")).collect();
        assert!(about.is_empty(), "{printed}");
    }
    assert!(run(&["status"]).stdout.contains("running"));
    assert_eq!(run(&["logs"]).stdout, "a line\n");
    assert_eq!(run(&["remove"]).code, 0);
    assert!(!file.exists());
    let calls = fs::read_to_string(bench.folder.path().join("asked")).unwrap();
    for wanted in
        ["enable annals.service", "restart annals.service", "disable --now annals.service", "daemon-reload"]
    {
        assert!(calls.contains(wanted), "{calls}");
    }
    let agent =
        Ran::of(bench.command(&["service", "install", "--print", "--manager", "launchd"]).output().unwrap());
    assert!(
        agent.stdout.contains("<string>serve</string>") && agent.stdout.starts_with("<?xml"),
        "{}",
        agent.stdout
    );
}

/// `watch` and `sync --watch` capture what is written while they run, and end when they are told to.
#[cfg(unix)]
#[test]
fn what_is_written_is_captured_without_a_server() {
    for arguments in [&["watch", "--json"][..], &["sync", "--watch", "--json"]] {
        let bench = Bench::new();
        let path = bench.transcript(&rollout(ID), &conversation(ID, "before"));
        let mut command = bench.command(arguments);
        let mut running = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
        let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("\"watching\"")));
        append(&path, &format!("{}\n", prompt("a flywheel, a moment ago").join("\n")));
        let started = Instant::now();
        while bench.run(&["search", "flywheel"]).code != 0 {
            assert!(started.elapsed() < Duration::from_secs(120), "never captured by {arguments:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let stop = Command::new("kill").args(["-TERM", &running.0.id().to_string()]).status().unwrap();
        assert!(stop.success());
        assert!(running.0.wait().unwrap().success(), "{arguments:?}");
    }
}

/// A client that deletes sessions, and nobody who captures them.
#[test]
fn doctor_notices_that_nothing_captures() {
    let bench = Bench::new();
    let folder = bench.claude().join("projects/-home-ada-engine");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{ID}.jsonl")), annals_testkit::codex::text_of(&crate::claude::talk(ID)))
        .unwrap();
    bench.sync();
    let findings = |days: i64| {
        let mut command = bench.command(&["doctor"]);
        clock::set_days_later(&mut command, days);
        Ran::of(command.output().unwrap()).stdout
    };
    assert!(!findings(1).contains("nothing was captured"), "{}", findings(1));
    let late = findings(20);
    assert!(
        late.contains("FAILED  capture")
            && late.contains("for 20 days")
            && late.contains("annals service install"),
        "{late}"
    );
    assert!(findings(40).contains("some may be lost"));
}
