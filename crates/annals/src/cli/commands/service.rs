//! `annals service`: a user service that keeps capturing, started by systemd or launchd at login.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::mcp::own_command;
use crate::cli::clients::replace;
use crate::cli::{Context, Outcome};
use crate::config::{Setting, SettingOrigin, SettingValue, service_folder};
use annals_core::{Error, Result};

const UNIT: &str = "annals.service";
const AGENT: &str = "dev.annals.annals";

#[derive(Args)]
pub struct ServiceArguments {
    /// The program that runs services [default: that of this platform]
    #[arg(long, value_enum, global = true, hide_short_help = true)]
    manager: Option<Manager>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Install the service and start it
    Install {
        /// Only capture: run `annals watch`, without the web UI
        #[arg(long)]
        no_http: bool,
        /// Print the service file instead of installing it
        #[arg(long)]
        print: bool,
    },
    /// Show whether the service is installed and running
    Status,
    /// Print the last lines of its log
    Logs {
        /// Print at most N lines
        #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
        lines: u32,
    },
    /// Stop the service and remove it; the archive stays
    Remove,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Manager {
    Systemd,
    Launchd,
}

impl Manager {
    fn here() -> Manager {
        if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd }
    }

    fn file(self) -> Result<PathBuf> {
        let name = match self {
            Manager::Systemd => UNIT.to_owned(),
            Manager::Launchd => format!("{AGENT}.plist"),
        };
        let folder = service_folder(self == Manager::Launchd)
            .ok_or_else(|| Error::new("no folder for services: HOME is not set").hint("set HOME"))?;
        Ok(folder.join(name))
    }

    /// The program that starts and stops services.
    fn program(self) -> &'static str {
        match self {
            Manager::Systemd => "systemctl",
            Manager::Launchd => "launchctl",
        }
    }
}

pub fn run(context: &mut Context, options: &ServiceArguments) -> Result<Outcome> {
    let manager = options.manager.unwrap_or_else(Manager::here);
    match options.action {
        Action::Install { no_http, print } => {
            let text = service_text(context, manager, no_http)?;
            if print {
                if context.json {
                    context.output.json(&json!({"file": manager.file()?, "text": text}))?;
                } else {
                    context.output.line(text.trim_end())?;
                }
                return Ok(Outcome::Done);
            }
            install(context, manager, &text)
        }
        Action::Status => status(context, manager),
        Action::Logs { lines } => logs(context, manager, lines),
        Action::Remove => remove(context, manager),
    }
}

/// Whether the service file is there.
pub fn is_installed() -> bool {
    Manager::here().file().is_ok_and(|file| file.is_file())
}

/// Whether services can be installed here.
pub fn is_possible() -> bool {
    let answer = match Manager::here() {
        Manager::Systemd => runs("systemctl", &["--user", "show-environment"]),
        Manager::Launchd => runs("launchctl", &["version"]),
    };
    answer.is_ok()
}

/// A service that only captures, for whoever was offered one.
pub fn install_watch(context: &mut Context) -> Result<()> {
    let manager = Manager::here();
    let text = service_text(context, manager, true)?;
    install(context, manager, &text).map(drop)
}

fn install(context: &mut Context, manager: Manager, text: &str) -> Result<Outcome> {
    let file = manager.file()?;
    replace(&file, text.as_bytes())
        .map_err(|error| Error::new(format!("cannot write {}: {error}", file.display())))?;
    let started = match manager {
        Manager::Systemd => runs("systemctl", &["--user", "daemon-reload"])
            .and_then(|()| runs("systemctl", &["--user", "enable", UNIT]))
            // One that runs already gets the new file.
            .and_then(|()| runs("systemctl", &["--user", "restart", UNIT])),
        Manager::Launchd => {
            // One that is not loaded cannot be unloaded.
            drop(runs("launchctl", &["bootout", &target()]));
            let path = file.display().to_string();
            runs("launchctl", &["bootstrap", &domain(), &path])
        }
    };
    if let Err(why) = started {
        return Err(Error::new(format!("wrote {}, but cannot start it: {why}", file.display()))
            .hint(format!("start it with {}, or run `annals watch` in a terminal", manager.program())));
    }
    if context.json {
        context.output.json(&json!({"installed": true, "running": true, "file": file}))?;
    } else {
        context.output.line(format!("installed and started: {}", file.display()))?;
        if manager == Manager::Systemd && !context.quiet {
            context.output.note("hint: `loginctl enable-linger` keeps it running while you are logged out");
        }
    }
    Ok(Outcome::Done)
}

fn status(context: &mut Context, manager: Manager) -> Result<Outcome> {
    let file = manager.file()?;
    let installed = file.is_file();
    let running = installed
        && match manager {
            Manager::Systemd => runs("systemctl", &["--user", "--quiet", "is-active", UNIT]).is_ok(),
            Manager::Launchd => runs("launchctl", &["print", &target()]).is_ok(),
        };
    let last = match context.archive()? {
        Some(store) => {
            let door = context.door(&store)?;
            context.view(&store, &door).last_scanned()?
        }
        None => None,
    };
    if context.json {
        let document =
            json!({"installed": installed, "running": running, "file": file, "last_captured_at": last});
        context.output.json(&document)?;
    } else {
        let state = match (installed, running) {
            (false, _) => "not installed",
            (true, true) => "running",
            (true, false) => "installed, but not running",
        };
        context.output.line(format!("service: {state} ({})", file.display()))?;
        let last = last.as_ref().map(|last| crate::view::format::local_text(Some(last)));
        context.output.line(format!("last capture: {}", last.as_deref().unwrap_or("never")))?;
        if !context.quiet && !installed {
            context.output.note("hint: annals service install");
        } else if !context.quiet && !running {
            context.output.note("hint: annals service logs");
        }
    }
    Ok(if running { Outcome::Done } else { Outcome::Nothing })
}

fn logs(context: &mut Context, manager: Manager, lines: u32) -> Result<Outcome> {
    let count = lines.to_string();
    let printed = match manager {
        Manager::Systemd => {
            output("journalctl", &["--user", "--unit", UNIT, "--no-pager", "--lines", &count])
        }
        Manager::Launchd => output("tail", &["-n", &count, &log_file(context).display().to_string()]),
    };
    let printed = printed
        .map_err(|why| Error::new(format!("cannot read the log: {why}")).hint("annals service status"))?;
    let door = crate::view::Door::masking_alone();
    let lines: Vec<String> = printed.lines().map(|line| door.show(line).to_string()).collect();
    if context.json {
        context.output.json(&json!({"lines": lines}))?;
    } else {
        for line in &lines {
            context.output.line(line)?;
        }
    }
    Ok(if lines.is_empty() { Outcome::Nothing } else { Outcome::Done })
}

fn remove(context: &mut Context, manager: Manager) -> Result<Outcome> {
    let file = manager.file()?;
    let was_there = file.is_file();
    if was_there {
        // A service that does not run cannot be stopped.
        match manager {
            Manager::Systemd => drop(runs("systemctl", &["--user", "disable", "--now", UNIT])),
            Manager::Launchd => drop(runs("launchctl", &["bootout", &target()])),
        }
        std::fs::remove_file(&file)
            .map_err(|error| Error::new(format!("cannot remove {}: {error}", file.display())))?;
        if manager == Manager::Systemd {
            drop(runs("systemctl", &["--user", "daemon-reload"]));
        }
    }
    if context.json {
        context.output.json(&json!({"removed": was_there, "file": file}))?;
    } else if was_there {
        context.output.line(format!("removed {}; the archive stays", file.display()))?;
    } else {
        context.output.line("the service is not installed")?;
    }
    Ok(Outcome::Done)
}

fn service_text(context: &Context, manager: Manager, no_http: bool) -> Result<String> {
    let (program, arguments) = own_command(context, &["--quiet", if no_http { "watch" } else { "serve" }])?;
    // What a terminal has set is unknown to a service.
    let settings = context.config.settings();
    let environment: Vec<(&str, String)> = settings.iter().filter_map(given).collect();
    Ok(match manager {
        Manager::Systemd => unit(&program, &arguments, &environment),
        Manager::Launchd => plist(&program, &arguments, &environment, &log_file(context)),
    })
}

/// A setting that comes from the environment; the archive's folder is an argument.
fn given(setting: &Setting) -> Option<(&'static str, String)> {
    if setting.origin != SettingOrigin::Environment || setting.variable.config_key == "home" {
        return None;
    }
    let value = match setting.value.as_ref()? {
        SettingValue::Text(text) => text.clone(),
        SettingValue::List(items) => {
            items.join(if setting.variable.kind == annals_core::ValueKind::Lines { "\n" } else { "," })
        }
        SettingValue::Boolean(flag) => if *flag { "yes" } else { "no" }.to_owned(),
    };
    Some((setting.variable.name, value))
}

fn unit(program: &str, arguments: &[String], environment: &[(&str, String)]) -> String {
    let words: Vec<String> = [program]
        .into_iter()
        .chain(arguments.iter().map(String::as_str))
        .map(|word| quoted(word, true))
        .collect();
    let environment: String = environment
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"), false)))
        .collect();
    format!(
        "# Written by `annals service install`; `annals service remove` removes it.\n\
         [Unit]\n\
         Description=annals, the archive of sessions with AI assistants\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         {environment}\
         Restart=on-failure\n\
         RestartSec=5\n\
         Nice=10\n\
         UMask=0077\n\
         NoNewPrivileges=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        words.join(" ")
    )
}

/// A word of a unit file, in which systemd reads nothing else.
fn quoted(word: &str, is_command: bool) -> String {
    let mut text = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '%' => text.push_str("%%"),
            '$' if is_command => text.push_str("$$"),
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

fn plist(program: &str, arguments: &[String], environment: &[(&str, String)], log: &Path) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words: String = [program]
        .into_iter()
        .chain(arguments.iter().map(String::as_str))
        .map(|word| format!("    <string>{}</string>\n", escaped(word)))
        .collect();
    let environment: String = environment
        .iter()
        .map(|(name, value)| format!("    <key>{name}</key>\n    <string>{}</string>\n", escaped(value)))
        .collect();
    let log = escaped(&log.display().to_string());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \x20 <key>Label</key>\n  <string>{AGENT}</string>\n\
         \x20 <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n\
         \x20 <key>EnvironmentVariables</key>\n  <dict>\n{environment}  </dict>\n\
         \x20 <key>RunAtLoad</key>\n  <true/>\n\
         \x20 <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n\
         \x20 <key>ProcessType</key>\n  <string>Background</string>\n\
         \x20 <key>Umask</key>\n  <integer>63</integer>\n\
         \x20 <key>StandardOutPath</key>\n  <string>{log}</string>\n\
         \x20 <key>StandardErrorPath</key>\n  <string>{log}</string>\n\
         </dict>\n\
         </plist>\n"
    )
}

/// launchd has no journal.
fn log_file(context: &Context) -> PathBuf {
    context.config.data_dir.join("service.log")
}

fn domain() -> String {
    #[cfg(unix)]
    let user = rustix::process::getuid().as_raw();
    #[cfg(not(unix))]
    let user = 0;
    format!("gui/{user}")
}

fn target() -> String {
    format!("{}/{AGENT}", domain())
}

fn runs(program: &str, arguments: &[&str]) -> std::result::Result<(), String> {
    output(program, arguments).map(drop)
}

/// What a program prints, or why it failed.
fn output(program: &str, arguments: &[&str]) -> std::result::Result<String, String> {
    let ran = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
    Err(if why.is_empty() { format!("{program} failed") } else { format!("{program}: {why}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_unit_stay_words() {
        assert_eq!(quoted(r#"/a b/50%$"\"#, true), r#""/a b/50%%$$\"\\""#);
        assert_eq!(quoted("A=x$y", false), "\"A=x$y\"");
        let text = unit("/bin/annals", &["serve".to_owned()], &[("HOME", "/h".to_owned())]);
        assert!(text.contains("\nExecStart=\"/bin/annals\" \"serve\"\nEnvironment=\"HOME=/h\"\n"), "{text}");
    }
}
