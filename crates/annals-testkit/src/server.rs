//! Starts `annals serve` on a bench and sends requests over a plain socket, with exactly the bytes a test wants.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Bench, Ran};

/// A server that is stopped when the test ends.
pub struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// The owner's token.
    pub token: String,
    /// The link that logs a browser in, once.
    pub link: String,
    /// Cookies of the browsers that logged in with a token.
    cookies: Mutex<BTreeMap<String, String>>,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(bench: &Bench) -> Server {
        Server::of(bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]))
    }

    /// Serves the archive without refreshing it: nothing changes between two requests.
    pub fn without_refresh(bench: &Bench) -> Server {
        Server::of(bench.command(&["serve", "--listen", "127.0.0.1:0", "--json", "--no-sync"]))
    }

    /// A server started with this command, which prints its address with `--json`.
    pub fn of(mut command: Command) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, written) = (BufReader::new(child.stderr.take().unwrap()).lines(), log.clone());
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *written.lock().unwrap() += &format!("{line}\n");
            }
        });
        let mut server = Server {
            child,
            address: String::new(),
            token: String::new(),
            link: String::new(),
            cookies: Mutex::default(),
            log,
            reader: Some(reader),
        };
        let Ok(document) = serde_json::from_str::<Value>(&line) else {
            panic!("{line:?}: {}", server.end("KILL").stderr)
        };
        server.address = document["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        server.token = document["token"].as_str().unwrap().to_owned();
        let link = document["link"].as_str().unwrap();
        server.link = link.strip_prefix(&format!("http://{}", server.address)).unwrap().to_owned();
        assert!(server.link.starts_with("/?once=annals_"), "{link}");
        server
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The port under another host name.
    pub fn with_host(&self, name: &str) -> String {
        format!("{name}:{}", self.address.rsplit_once(':').unwrap().1)
    }

    /// A request as the owner.
    pub fn get(&self, path: &str) -> Reply {
        self.get_as(&self.token, path)
    }

    pub fn get_as(&self, token: &str, path: &str) -> Reply {
        self.get_with(path, &[("Authorization", &format!("Bearer {token}"))])
    }

    /// A request with only these headers, besides the mandatory ones.
    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.request("GET", path, headers)
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.try_request(method, path.as_bytes(), headers)
            .unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    /// None if the connection ended without a response.
    pub fn try_request(&self, method: &str, path: &[u8], headers: &[(&str, &str)]) -> Option<Reply> {
        self.send(method, path, headers, &[])
    }

    /// A request with a body, as JSON.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.send_json("POST", path, headers, body)
    }

    /// The same with any method.
    pub fn send_json(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.send_body(method, path, headers, ("application/json", &body.to_string()))
    }

    /// A request as the form of a page sends it.
    pub fn send_form(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send_body("POST", path, headers, ("application/x-www-form-urlencoded", body))
    }

    fn send_body(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        (kind, body): (&str, &str),
    ) -> Reply {
        let length = body.len().to_string();
        let own = [("Content-Type", kind), ("Content-Length", length.as_str())];
        let headers = [headers, &own].concat();
        self.send(method, path.as_bytes(), &headers, body.as_bytes())
            .unwrap_or_else(|| panic!("no answer to {method} {path}"))
    }

    fn send(&self, method: &str, path: &[u8], headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
        let mut request = [method.as_bytes(), b" ", path, b" HTTP/1.1\r\nConnection: close\r\n"].concat();
        let host = ("Host", self.address.as_str());
        let own_host = headers.iter().any(|(name, _)| *name == "Host");
        for (name, value) in headers.iter().chain(if own_host { None } else { Some(&host) }) {
            request.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A server that refuses early may close before everything is sent, and has still responded.
        let sent = stream.write_all(&request);
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        if bytes.is_empty() {
            return None;
        }
        read.and(sent).unwrap();
        Some(Reply::read(method, &bytes))
    }

    /// A request as a browser that wants a page.
    pub fn page(&self, path: &str) -> Reply {
        self.page_as(&self.token, path)
    }

    pub fn page_as(&self, token: &str, path: &str) -> Reply {
        let cookie = self.cookie_of(token);
        self.get_with(path, &[("Cookie", &cookie), ("Accept", "text/html,*/*;q=0.8")])
    }

    /// The cookie of a browser that logged in with this token.
    pub fn cookie_of(&self, token: &str) -> String {
        let known = self.cookies.lock().unwrap().get(token).cloned();
        known.unwrap_or_else(|| {
            let reply = self.get_with(&format!("/?token={token}"), &[]);
            let cookie = reply.headers.get("set-cookie").map_or("", String::as_str);
            let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
            self.cookies.lock().unwrap().insert(token.to_owned(), cookie.clone());
            cookie
        })
    }

    /// The first event of the endless stream, with everything before it.
    pub fn first_event(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!(
            "GET /events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
            self.address,
            self.cookie_of(&self.token)
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        let mut reader = BufReader::new(stream);
        while !text.lines().any(|line| line.starts_with("data: ")) {
            assert!(reader.read_line(&mut text).unwrap() > 0, "no event: {text}");
        }
        text
    }

    /// The JSON of a response that must succeed.
    pub fn json(&self, path: &str) -> Value {
        self.json_as(&self.token, path)
    }

    pub fn json_as(&self, token: &str, path: &str) -> Value {
        let reply = self.get_as(token, path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// All items of a list, page by page.
    pub fn list_as(&self, token: &str, path: &str, plural: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = self.json_as(token, &with(path, &cursor));
            all.extend(answer[plural].as_array().unwrap().iter().cloned());
            match answer["next_cursor"].as_str() {
                Some(next) => cursor = format!("cursor={next}"),
                None => return all,
            }
            assert!(all.len() < 100_000, "{path} has no end");
        }
    }

    pub fn list(&self, path: &str, plural: &str) -> Vec<Value> {
        self.list_as(&self.token, path, plural)
    }

    /// Waits until everything has been scanned for secrets.
    pub fn wait_for_secrets(&self) {
        let end = Instant::now() + Duration::from_secs(600);
        let is_done = |answer: &Value| answer["status"] == "done" && !answer["looked_at"].is_null();
        while !is_done(&self.json("/api/v1/secrets")) {
            assert!(Instant::now() < end, "the scan for secrets does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What it has written to stderr so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Stops it, and waits.
    pub fn stop(mut self) -> Ran {
        self.end("TERM")
    }

    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.process());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    pub fn end(&mut self, signal: &str) -> Ran {
        if self.child.try_wait().unwrap().is_none() {
            self.signal(signal);
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        Ran { code, stdout: String::new(), stderr: self.log() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A URL with one more parameter.
pub fn with(path: &str, parameter: &str) -> String {
    match (parameter, path.contains('?')) {
        ("", _) => path.to_owned(),
        (_, true) => format!("{path}&{parameter}"),
        (_, false) => format!("{path}?{parameter}"),
    }
}

/// Percent-encodes a part of a URL.
pub fn escaped(part: &str) -> String {
    annals_core::in_address(part)
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Reply {
    fn read(method: &str, bytes: &[u8]) -> Reply {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        let headers: BTreeMap<String, String> = lines
            .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("not a header: {line:?}")))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let mut body = bytes[end + 4..].to_vec();
        if headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked") && method != "HEAD"
        {
            body = unchunked(&body);
        } else if let Some(length) =
            headers.get("content-length").filter(|_| method != "HEAD" && status != 304)
        {
            assert_eq!(length.parse::<usize>().unwrap(), body.len(), "a whole body");
        }
        Reply { status, headers, body }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Headers and body as one text, for searching.
    pub fn full_text(&self) -> String {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        headers.collect::<String>() + &self.text()
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").expect("the length of a chunk");
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        let chunk = &bytes[end + 2..];
        body.extend_from_slice(&chunk[..length]);
        bytes = &chunk[length + 2..];
    }
}
