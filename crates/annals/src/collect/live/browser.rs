//! The user's browser: started with a dedicated profile on one page, where scripts run.
//!
//! Its command line contains no secrets, and only the results of our scripts leave it.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::devtools::{DevTools, Lost, browser_address};
use annals_core::{Error, Result};
use annals_store::make_private_folder;

/// How long starting and closing may take.
const START: Duration = Duration::from_secs(40);
const CLOSE: Duration = Duration::from_secs(10);
const COMMAND: Duration = Duration::from_secs(30);
/// Exit code of Chromium if another process uses the profile.
const PROFILE_IN_USE: i32 = 21;
/// Address of a browser that outlived the run that started it.
const REMEMBERED: &str = "annals-devtools";

/// How to start it. Always the same: cookies written with other options cannot be decrypted.
#[derive(Debug, Clone)]
pub struct BrowserSetup {
    pub program: PathBuf,
    /// A dedicated profile.
    pub profile: PathBuf,
    pub visible: bool,
    pub arguments: Vec<String>,
}

pub struct LiveBrowser {
    child: Child,
    tools: DevTools,
    session: String,
    /// The isolated world of our script in the page.
    world: Option<Value>,
}

impl LiveBrowser {
    pub fn start(setup: &BrowserSetup) -> Result<LiveBrowser> {
        make_private_folder(&setup.profile)?;
        let left_behind = fs::read_to_string(setup.profile.join(REMEMBERED)).ok();
        if let Some(left_behind) = &left_behind {
            close_remembered(&setup.profile, left_behind);
        }
        match (LiveBrowser::launch(setup)?, &left_behind) {
            (Ok(browser), _) => return Ok(browser),
            // It was still starting when it was asked to close.
            (Err(NotUp::InUse), Some(left_behind)) => close_remembered(&setup.profile, left_behind),
            // Browsers sometimes crash at startup and succeed the next time.
            (Err(NotUp::InUse | NotUp::Crashed(_)), _) => {}
        }
        LiveBrowser::launch(setup)?.map_err(|not_up| match not_up {
            NotUp::InUse => Error::new("the browser profile is in use")
                .hint("close the browser window that annals opened, then retry"),
            NotUp::Crashed(status) => Error::new(format!("the browser exited immediately ({status})"))
                .hint("use another browser with ANNALS_BROWSER=/path/to/chromium"),
        })
    }

    fn launch(setup: &BrowserSetup) -> Result<std::result::Result<LiveBrowser, NotUp>> {
        // A fixed port: with port 0, Chromium reveals to pages that it is automated.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new(&setup.program);
        command
            .arg(format!("--user-data-dir={}", setup.profile.display()))
            .arg(format!("--remote-debugging-port={port}"))
            .args(["--no-first-run", "--no-default-browser-check"])
            .args((!setup.visible).then_some("--headless"))
            .args(&setup.arguments)
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Written before it starts: if we are killed now, the next run can find the browser.
        let before = fs::read_to_string(setup.profile.join(REMEMBERED)).ok();
        remember(&setup.profile, &port.to_string())?;
        let mut child = command.spawn().map_err(|error| {
            Error::new(format!("cannot start {}: {error}", setup.program.display()))
                .hint("install Chromium or Chrome, or set ANNALS_BROWSER=/path/to/chromium")
        })?;
        match reach(&mut child, port) {
            Ok(Ok((address, tools, session))) => {
                remember(&setup.profile, &format!("{port}\n{address}"))?;
                Ok(Ok(LiveBrowser { child, tools, session, world: None }))
            }
            Ok(Err(not_up)) => {
                if let Some(before) = before {
                    remember(&setup.profile, &before)?;
                }
                Ok(Err(not_up))
            }
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// Navigates the page to an address.
    pub fn open(&mut self, address: &str) -> std::result::Result<(), Lost> {
        self.world = None;
        self.tools.navigate(&self.session, address, Instant::now() + COMMAND)
    }

    /// Runs a script that defines functions for later ones, in an isolated world that the page's scripts cannot see.
    pub fn enter(&mut self, script: &str) -> std::result::Result<(), Lost> {
        let deadline = Instant::now() + COMMAND;
        let session = Some(self.session.as_str());
        let tree = self.tools.call(session, "Page.getFrameTree", json!({}), deadline)?;
        let frame = &tree["frameTree"]["frame"]["id"];
        let world = json!({"frameId": frame, "worldName": "annals"});
        let world = self.tools.call(session, "Page.createIsolatedWorld", world, deadline)?;
        self.world = Some(world["executionContextId"].clone());
        self.run(&[script.to_owned()], COMMAND).pop().unwrap_or(Err(Lost::Closed)).map(|_| ())
    }

    /// Runs scripts in parallel and awaits each; results in the same order.
    pub fn run(&mut self, scripts: &[String], limit: Duration) -> Vec<std::result::Result<Value, Lost>> {
        let deadline = Instant::now() + limit;
        let Some(world) = self.world.clone() else {
            return scripts.iter().map(|_| Err(Lost::Refused("no page".into()))).collect();
        };
        let sent: Vec<_> = scripts
            .iter()
            .map(|script| {
                let parameters = json!({
                    "expression": script, "contextId": world, "awaitPromise": true, "returnByValue": true,
                });
                self.tools.send(Some(&self.session), "Runtime.evaluate", parameters)
            })
            .collect();
        let mut answers = Vec::new();
        for number in sent {
            let answer = number.and_then(|number| self.tools.wait(number, deadline));
            answers.push(answer.and_then(|mut answer| match answer.get("exceptionDetails") {
                Some(details) => {
                    let thrown = details["exception"]["description"].as_str();
                    let why = thrown.or(details["text"].as_str()).unwrap_or("script failed");
                    Err(Lost::Refused(why.lines().next().unwrap_or_default().to_owned()))
                }
                None => Ok(answer["result"]["value"].take()),
            }));
        }
        answers
    }

    /// Closes it cleanly, so that it saves its cookies.
    pub fn close(mut self) {
        let _ = self.tools.send(None, "Browser.close", json!({}));
        let deadline = Instant::now() + CLOSE;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }
}

impl Drop for LiveBrowser {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Why a browser did not come up.
#[derive(Debug)]
enum NotUp {
    /// Another process uses the profile.
    InUse,
    Crashed(ExitStatus),
}

/// Waits until the browser responds, and attaches to its page.
fn reach(child: &mut Child, port: u16) -> Result<std::result::Result<(String, DevTools, String), NotUp>> {
    let deadline = Instant::now() + START;
    let address = loop {
        if let Some(address) = browser_address(port) {
            break address;
        }
        if let Some(status) = child.try_wait()? {
            return match status.code() {
                Some(PROFILE_IN_USE) => Ok(Err(NotUp::InUse)),
                None => Ok(Err(NotUp::Crashed(status))),
                Some(_) => Err(Error::new(format!("the browser exited immediately ({status})"))
                    .hint("a visible window requires a desktop; use another browser with ANNALS_BROWSER=/path/to/chromium")),
            };
        }
        if Instant::now() >= deadline {
            return Err(Error::new("the browser does not respond on its debugging port"));
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let failed = |lost: Lost| Error::new(format!("cannot talk to the browser: {lost:?}"));
    let mut tools = DevTools::connect(&address).map_err(failed)?;
    let session = loop {
        let targets = tools.call(None, "Target.getTargets", json!({}), deadline).map_err(failed)?;
        let infos = targets["targetInfos"].as_array().cloned().unwrap_or_default();
        if let Some(page) = infos.iter().find(|info| info["type"] == "page") {
            let attach = json!({"targetId": page["targetId"], "flatten": true});
            let attached = tools.call(None, "Target.attachToTarget", attach, deadline).map_err(failed)?;
            break attached["sessionId"].as_str().unwrap_or_default().to_owned();
        }
        if Instant::now() >= deadline {
            return Err(Error::new("the browser opened no page"));
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    tools.call(Some(&session), "Page.enable", json!({}), deadline).map_err(failed)?;
    Ok(Ok((address, tools, session)))
}

fn remember(profile: &Path, text: &str) -> Result<()> {
    let path = profile.join(REMEMBERED);
    let _ = fs::remove_file(&path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())?;
    Ok(())
}

/// A run that was killed leaves its browser behind, and the profile in use. Its address has a part that only this
/// browser knows. If the run was killed before the address was known, the port and a profile in use must do.
fn close_remembered(profile: &Path, left_behind: &str) {
    let is_in_use = || profile.join("SingletonLock").symlink_metadata().is_ok();
    let mut lines = left_behind.lines();
    let port: Option<u16> = lines.next().and_then(|port| port.parse().ok());
    let mut address = lines.next().map(str::to_owned);
    let deadline = Instant::now() + CLOSE;
    while is_in_use() && Instant::now() < deadline {
        address = address.or_else(|| port.and_then(browser_address));
        match address.as_deref().map(DevTools::connect) {
            Some(Ok(mut tools)) => drop(tools.call(None, "Browser.close", json!({}), deadline)),
            // That browser is gone; its lock remains and does no harm.
            Some(Err(_)) => return,
            None => {}
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
