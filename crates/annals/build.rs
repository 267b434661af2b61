//! The version string: the version, and in release builds the commit and its date, the same for every build of a commit.
//!
//! `ANNALS_COMMIT` and `SOURCE_DATE_EPOCH` win over git, for builds from a tarball; without any of them it is the version
//! alone. Debug builds do not ask git: they would be built again after every commit.

use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "a build script is configured by its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[expect(clippy::disallowed_macros, reason = "how a build script speaks to cargo")]
fn tell(line: &str) {
    println!("cargo::{line}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    tell("rerun-if-changed=build.rs");
    tell("rerun-if-env-changed=ANNALS_COMMIT");
    tell("rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let is_release = variable("PROFILE").as_deref() == Some("release");
    // A repository around a tarball is not ours.
    let has_git = is_release && git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let mut commit = variable("ANNALS_COMMIT");
    let mut seconds = variable("SOURCE_DATE_EPOCH");
    if has_git {
        for name in ["HEAD", "logs/HEAD"] {
            if let Some(path) = git(&["rev-parse", "--git-path", name]) {
                tell(&format!("rerun-if-changed={path}"));
            }
        }
        commit = commit.or_else(|| git(&["rev-parse", "--short=10", "HEAD"]));
        seconds = seconds.or_else(|| git(&["show", "--no-patch", "--format=%ct", "HEAD"]));
    }
    let date = seconds.and_then(|seconds| seconds.parse::<i64>().ok()).map(date_of);
    let version = variable("CARGO_PKG_VERSION").unwrap_or_default();
    let built: Vec<&str> = commit.iter().chain(&date).map(String::as_str).collect();
    let version = if built.is_empty() { version } else { format!("{version} ({})", built.join(" ")) };
    tell(&format!("rustc-env=ANNALS_VERSION={version}"));
    for (name, value) in [("ANNALS_COMMIT", commit), ("ANNALS_DATE", date)] {
        if let Some(value) = value {
            tell(&format!("rustc-env={name}={value}"));
        }
    }
}

/// The date in UTC of a number of seconds since 1970.
fn date_of(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let (day, month) =
        (day - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
