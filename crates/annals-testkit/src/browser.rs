//! A real Chromium, driven through `chromedriver` with the few calls that tests need; errors it reports fail the test
//! at the end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Everything a browser does takes less than this, or it hangs.
const LONGEST: Duration = Duration::from_secs(60);
/// Anything that a page does by itself happens within this time.
const SOON: Duration = Duration::from_secs(20);

/// `QUIC`, updates and the like would contact other machines, as would name lookups: all are disabled.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// Window sizes that pages are tested with.
pub const DESKTOP: (u32, u32) = (1280, 900);
pub const PHONE: (u32, u32) = (390, 844);

/// A browser with a dedicated profile, terminated with its children when the test ends.
pub struct Browser {
    driver: Child,
    /// The port of `chromedriver`.
    port: u16,
    session: String,
    /// The only server it may contact.
    server: String,
    profile: tempfile::TempDir,
    judged: bool,
}

impl Browser {
    /// Opens the link that `serve` prints.
    pub fn open(server: &str, token: &str) -> Browser {
        let browser = Browser::start(server);
        browser.resize(DESKTOP);
        browser.go(&format!("/?token={token}"));
        browser
    }

    fn start(server: &str) -> Browser {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A process group, so that all of it can be terminated at once.
        let mut driver = command.process_group(0).spawn().unwrap_or_else(|error| {
            panic!("cannot start chromedriver ({error}): `tests/browser/setup` installs it")
        });
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines
            .take(50)
            .find_map(|line| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok());
        let port = port.expect("chromedriver says its port");
        let profile = tempfile::tempdir().unwrap();
        let mut flags: Vec<String> = FLAGS.map(str::to_owned).to_vec();
        flags.push(format!("--user-data-dir={}", profile.path().display()));
        let server = server.to_owned();
        let mut browser = Browser { driver, port, session: String::new(), server, profile, judged: false };
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            "timeouts": { "pageLoad": 30_000, "script": 30_000, "implicit": 0 },
        } } });
        let answer = browser.request("POST", "/session", &capabilities);
        browser.session = answer["sessionId"].as_str().expect("a session").to_owned();
        // Ignore what the browser shows before the first navigation.
        browser.post("/url", &json!({ "url": "about:blank" }));
        browser.faults();
        browser
    }

    /// One call and its value; any failure fails the test.
    #[track_caller]
    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        match self.try_request(method, path, body) {
            Ok(value) => value,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    fn try_request(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let failed = |error: std::io::Error| format!("chromedriver does not answer: {error}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(failed)?;
        stream.set_read_timeout(Some(LONGEST)).map_err(failed)?;
        stream.set_write_timeout(Some(LONGEST)).map_err(failed)?;
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).map_err(failed)?;
            if let Some((name, value)) = line.split_once(':').filter(|(name, _)| name.len() == 14) {
                length = if name.eq_ignore_ascii_case("content-length") {
                    value.trim().parse().unwrap_or(0)
                } else {
                    length
                };
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).map_err(failed)?;
        let answer: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"].as_str().unwrap_or(""))),
            None => Ok(answer["value"].clone()),
        }
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.request("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// A command of the DevTools protocol.
    #[track_caller]
    pub fn command(&self, name: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Opens an address of the server and waits until it is loaded.
    #[track_caller]
    pub fn go(&self, path: &str) {
        self.post("/url", &json!({ "url": format!("http://{}{path}", self.server) }));
    }

    /// The current address, without the server.
    pub fn address(&self) -> String {
        let whole = self.request("GET", &format!("/session/{}/url", self.session), &Value::Null);
        let whole = whole.as_str().unwrap();
        whole.strip_prefix(&format!("http://{}", self.server)).unwrap_or(whole).to_owned()
    }

    /// The value of a JavaScript function body, awaited if it is a promise.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.run_with(script, &[])
    }

    #[track_caller]
    pub fn run_with(&self, script: &str, arguments: &[Value]) -> Value {
        self.post("/execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// Waits until an expression has a truthy value.
    #[track_caller]
    pub fn wait(&self, what: &str, expression: &str) -> Value {
        let end = Instant::now() + SOON;
        loop {
            let value = self.run(&format!("return ({expression});"));
            let nothing = value.is_null() || value == false || value == 0 || value == "";
            if !nothing {
                return value;
            }
            assert!(
                Instant::now() < end,
                "{what}: `{expression}` is still {value} on {}\n{}",
                self.address(),
                self.run("return document.body.innerText.slice(0, 2000);").as_str().unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn count(&self, selector: &str) -> u64 {
        self.run_with("return document.querySelectorAll(arguments[0]).length;", &[json!(selector)])
            .as_u64()
            .unwrap()
    }

    /// The visible text of the first matching element.
    #[track_caller]
    pub fn text(&self, selector: &str) -> String {
        let script = "const found = document.querySelector(arguments[0]); return found && found.innerText;";
        let text = self.run_with(script, &[json!(selector)]);
        text.as_str().unwrap_or_else(|| panic!("no {selector} on {}", self.address())).to_owned()
    }

    /// The texts of all matching elements.
    pub fn texts(&self, selector: &str) -> Vec<String> {
        let script =
            "return Array.from(document.querySelectorAll(arguments[0]), (found) => found.innerText);";
        let texts = self.run_with(script, &[json!(selector)]);
        texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    fn element(&self, selector: &str) -> Result<String, String> {
        let body = json!({ "using": "css selector", "value": selector });
        let found = self.try_request("POST", &format!("/session/{}/element", self.session), &body)?;
        let id = found.as_object().and_then(|found| found.values().next()?.as_str().map(str::to_owned));
        id.ok_or_else(|| format!("{found}"))
    }

    /// Clicks like a person: on something that is visible and not covered.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let element = self.element(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        self.run_with(
            "arguments[0].scrollIntoView({ block: 'center' });",
            &[json!({ "element-6066-11e4-a52e-4f735466cecf": element })],
        );
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    #[track_caller]
    pub fn type_into(&self, selector: &str, text: &str) {
        let element = self.element(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        self.post(&format!("/element/{element}/value"), &json!({ "text": text }));
    }

    /// Presses keys one after another, wherever the focus is.
    #[track_caller]
    pub fn press(&self, keys: &[&str]) {
        let pressed: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        self.post(
            "/actions",
            &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": pressed }] }),
        );
    }

    /// Sets the size of the viewport.
    pub fn resize(&self, (width, height): (u32, u32)) {
        let mobile = width < 600;
        self.command(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile }),
        );
    }

    /// Emulates the preferred colour scheme: `light` or `dark`.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// A screenshot as PNG.
    pub fn picture(&self) -> Vec<u8> {
        let data = self.request("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        decode_base64(data.as_str().unwrap())
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        self.post("/se/log", &json!({ "type": kind })).as_array().unwrap().clone()
    }

    /// Everything since the last call that should not have happened: errors of a page, violations of its policy, and
    /// requests to other servers.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for entry in self.log("browser") {
            let message = entry["message"].as_str().unwrap_or_default();
            if entry["level"] == "SEVERE" || message.contains("Content Security Policy") {
                faults.push(format!("console: {message}"));
            }
        }
        let home = format!("http://{}/", self.server);
        for entry in self.log("performance") {
            let event: Value = serde_json::from_str(entry["message"].as_str().unwrap_or("{}")).unwrap();
            let message = &event["message"];
            let address = match message["method"].as_str() {
                Some("Network.requestWillBeSent") => &message["params"]["request"]["url"],
                Some("Network.webSocketCreated") => &message["params"]["url"],
                _ => continue,
            };
            let address = address.as_str().unwrap_or_default();
            let page = message["params"]["documentURL"].as_str().unwrap_or_default();
            // The icon of a date field belongs to the browser, as a data URL.
            let inside = address.starts_with(&home) || address.starts_with("data:");
            if !inside && page.starts_with("http") {
                faults.push(format!("request: {address}"));
            }
        }
        faults
    }

    /// Ends a test: fails if there were faults that the test did not check.
    #[track_caller]
    pub fn close(mut self) {
        let faults = self.faults();
        self.judged = true;
        assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    }

    /// The same, for tests that checked the faults themselves.
    pub fn close_checked(mut self) {
        self.judged = true;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Whatever it answers: its processes are terminated below.
        drop(self.try_request("DELETE", &format!("/session/{}", self.session), &Value::Null));
        let group = format!("-{}", self.driver.id());
        drop(Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status());
        drop(self.driver.wait());
        for process in processes_with(&self.profile.path().display().to_string()) {
            drop(Command::new("kill").args(["-KILL", &process]).stderr(Stdio::null()).status());
        }
        assert!(self.judged || std::thread::panicking(), "a test ends with `close`");
    }
}

/// Processes with this text among their arguments.
fn processes_with(text: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let numbers = all.filter_map(|entry| entry.file_name().into_string().ok());
    numbers
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|number| {
            let arguments = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(text)
        })
        .collect()
}

/// Decodes base64, the encoding of screenshots.
fn decode_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u32> =
        text.bytes().filter(|letter| *letter != b'=').map(|letter| u32::from(value(letter))).collect();
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    for four in letters.chunks(4) {
        let bits = four.iter().fold(0, |bits, letter| bits << 6 | letter) << (6 * (4 - four.len()));
        let three = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
        bytes.extend_from_slice(&three[..four.len() - 1]);
    }
    bytes
}

/// Special keys.
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
