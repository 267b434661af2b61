//! The user's browser: started with a dedicated profile on one page, where scripts run.
//!
//! Its command line contains no secrets, and only the results of our scripts leave it.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::devtools::{DevTools, Lost};
use annals_core::{Error, Result};
use annals_store::make_private_folder;

/// How long starting and closing may take.
const START: Duration = Duration::from_secs(40);
const CLOSE: Duration = Duration::from_secs(10);
const COMMAND: Duration = Duration::from_secs(30);
/// Exit code of Chromium if another process uses the profile.
const PROFILE_IN_USE: i32 = 21;

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
        let deadline = Instant::now() + CLOSE;
        let mut crashes = 0;
        loop {
            match LiveBrowser::launch(setup)? {
                Ok(browser) => return Ok(browser),
                // The browser of a run that was killed closes when its pipes break.
                Err(NotUp::InUse) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                Err(NotUp::InUse) => {
                    return Err(Error::new("the browser profile is in use")
                        .hint("close the browser window that annals opened, then retry"));
                }
                // Browsers sometimes crash at startup and succeed the next time.
                Err(NotUp::Crashed(_)) if crashes == 0 => crashes += 1,
                Err(NotUp::Crashed(status)) => {
                    return Err(Error::new(format!("the browser exited immediately ({status})"))
                        .hint("use another browser with ANNALS_BROWSER=/path/to/chromium"));
                }
            }
        }
    }

    fn launch(setup: &BrowserSetup) -> Result<std::result::Result<LiveBrowser, NotUp>> {
        let mut command = Command::new(&setup.program);
        command
            .arg(format!("--user-data-dir={}", setup.profile.display()))
            // Over pipes: a port would be open to every program of this machine. Pages are not told that scripts run
            // beside theirs, as they are not with a port.
            .args(["--remote-debugging-pipe", "--disable-blink-features=AutomationControlled"])
            .args(["--no-first-run", "--no-default-browser-check"])
            .args((!setup.visible).then_some("--headless"))
            .args(&setup.arguments)
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let tools = connect(&mut command)?;
        let mut child = command.spawn().map_err(|error| {
            Error::new(format!("cannot start {}: {error}", setup.program.display()))
                .hint("install Chromium or Chrome, or set ANNALS_BROWSER=/path/to/chromium")
        })?;
        // It holds the browser's ends of the pipes, which must break when the browser ends.
        drop(command);
        match reach(&mut child, tools) {
            Ok(Ok((tools, session))) => Ok(Ok(LiveBrowser { child, tools, session, world: None })),
            Ok(Err(not_up)) => Ok(Err(not_up)),
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

/// Gives a browser the pipes on which it takes commands (3) and responds (4).
#[cfg(unix)]
fn connect(command: &mut Command) -> Result<DevTools> {
    use command_fds::{CommandFdExt, FdMapping};

    let (its_commands, commands) = std::io::pipe()?;
    let (responses, its_responses) = std::io::pipe()?;
    let mappings = vec![
        FdMapping { parent_fd: its_commands.into(), child_fd: 3 },
        FdMapping { parent_fd: its_responses.into(), child_fd: 4 },
    ];
    command.fd_mappings(mappings).map_err(|error| Error::new(format!("cannot pass pipes: {error}")))?;
    Ok(DevTools::new(commands, responses))
}

#[cfg(not(unix))]
fn connect(_: &mut Command) -> Result<DevTools> {
    Err(Error::new("a browser cannot be driven on this system").hint("use `annals import` with an export"))
}

/// Waits until the browser responds, and attaches to its page.
fn reach(child: &mut Child, mut tools: DevTools) -> Result<std::result::Result<(DevTools, String), NotUp>> {
    let deadline = Instant::now() + START;
    let session = loop {
        let soon = Instant::now() + Duration::from_millis(500);
        match tools.call(None, "Target.getTargets", json!({}), soon.min(deadline)) {
            Ok(targets) => {
                let infos = targets["targetInfos"].as_array().cloned().unwrap_or_default();
                if let Some(page) = infos.iter().find(|info| info["type"] == "page") {
                    let attach = json!({"targetId": page["targetId"], "flatten": true});
                    let attached = tools.call(None, "Target.attachToTarget", attach, deadline);
                    break attached.map_err(failed)?["sessionId"].as_str().unwrap_or_default().to_owned();
                }
            }
            Err(Lost::Late) => {}
            Err(Lost::Closed) => return ended(child, deadline).map(Err),
            Err(lost @ Lost::Refused(_)) => return Err(failed(lost)),
        }
        if Instant::now() >= deadline {
            return Err(Error::new("the browser does not respond"));
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    tools.call(Some(&session), "Page.enable", json!({}), deadline).map_err(failed)?;
    Ok(Ok((tools, session)))
}

fn failed(lost: Lost) -> Error {
    Error::new(format!("cannot talk to the browser: {lost:?}"))
}

/// Why a browser ended at once.
fn ended(child: &mut Child, deadline: Instant) -> Result<NotUp> {
    loop {
        if let Some(status) = child.try_wait()? {
            return match status.code() {
                Some(PROFILE_IN_USE) => Ok(NotUp::InUse),
                None => Ok(NotUp::Crashed(status)),
                Some(_) => Err(Error::new(format!("the browser exited immediately ({status})"))
                    .hint("a visible window requires a desktop; use another browser with ANNALS_BROWSER=/path/to/chromium")),
            };
        }
        if Instant::now() >= deadline {
            return Err(Error::new("the browser does not respond"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
