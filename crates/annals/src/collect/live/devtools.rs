//! A thin client of the Chrome DevTools protocol: commands out, responses by number.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

/// Conversations of hundreds of megabytes arrive as one message.
const LONGEST_MESSAGE: usize = 1 << 30;
/// How long a read blocks before deadlines are checked.
const GLANCE: Duration = Duration::from_millis(100);

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// The browser is gone: closed by the user, or crashed.
    Closed,
    /// Timed out.
    Late,
    /// The browser returned an error: the page navigated away, or its script failed.
    Refused(String),
}

pub struct DevTools {
    socket: WebSocket<TcpStream>,
    next: u64,
    answers: HashMap<u64, Result<Value, Lost>>,
    given_up: HashSet<u64>,
    /// How often a page reported that its content was loaded.
    loaded: u64,
}

impl DevTools {
    /// Connects to `ws://127.0.0.1:PORT/…`.
    pub fn connect(address: &str) -> Result<DevTools, Lost> {
        let host = address.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let stream = TcpStream::connect(host).map_err(|_| Lost::Closed)?;
        let timeouts = stream.set_read_timeout(Some(Duration::from_secs(5)));
        timeouts.and_then(|()| stream.set_nodelay(true)).map_err(|_| Lost::Closed)?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(LONGEST_MESSAGE))
            .max_frame_size(Some(LONGEST_MESSAGE));
        let (socket, _) = tungstenite::client::client_with_config(address, stream, Some(limits))
            .map_err(|error| Lost::Refused(error.to_string()))?;
        socket.get_ref().set_read_timeout(Some(GLANCE)).map_err(|_| Lost::Closed)?;
        Ok(DevTools { socket, next: 0, answers: HashMap::new(), given_up: HashSet::new(), loaded: 0 })
    }

    /// Sends a command, to a page if it has a session; returns its number.
    pub fn send(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Result<u64, Lost> {
        self.next += 1;
        let mut command = Map::from_iter([
            ("id".to_owned(), Value::from(self.next)),
            ("method".to_owned(), Value::from(method)),
            ("params".to_owned(), parameters),
        ]);
        command.extend(session.map(|session| ("sessionId".to_owned(), Value::from(session))));
        let text = Value::Object(command).to_string();
        self.socket.send(Message::text(text)).map_err(|_| Lost::Closed)?;
        Ok(self.next)
    }

    /// Waits for the response to a command; other responses that arrive first are kept.
    pub fn wait(&mut self, number: u64, deadline: Instant) -> Result<Value, Lost> {
        loop {
            if let Some(answer) = self.answers.remove(&number) {
                return answer;
            }
            if Instant::now() >= deadline {
                self.given_up.insert(number);
                return Err(Lost::Late);
            }
            self.receive()?;
        }
    }

    pub fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
        deadline: Instant,
    ) -> Result<Value, Lost> {
        let number = self.send(session, method, parameters)?;
        self.wait(number, deadline)
    }

    /// Navigates to an address and waits until its document is loaded.
    pub fn navigate(&mut self, session: &str, address: &str, deadline: Instant) -> Result<(), Lost> {
        let before = self.loaded;
        let result = self.call(Some(session), "Page.navigate", json!({"url": address}), deadline)?;
        if let Some(why) = result.get("errorText").and_then(Value::as_str) {
            return Err(Lost::Refused(why.to_owned()));
        }
        while self.loaded == before {
            if Instant::now() >= deadline {
                return Err(Lost::Late);
            }
            self.receive()?;
        }
        Ok(())
    }

    /// Reads one message, if one arrives soon.
    fn receive(&mut self) -> Result<(), Lost> {
        let message = match self.socket.read() {
            Ok(message) => message,
            Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(());
            }
            Err(Error::Capacity(error)) => return Err(Lost::Refused(error.to_string())),
            Err(_) => return Err(Lost::Closed),
        };
        let text = match &message {
            Message::Text(text) => text.as_str(),
            Message::Close(_) => return Err(Lost::Closed),
            _ => return Ok(()),
        };
        let Ok(mut message) = serde_json::from_str::<Value>(text) else {
            // An unreadable response is still one: its caller must not wait forever.
            if let Some(number) = number_in(text) {
                self.answers.insert(number, Err(Lost::Refused("response is not JSON".into())));
            }
            return Ok(());
        };
        if let Some(number) = message.get("id").and_then(Value::as_u64) {
            let answer = match message.get("error").and_then(|error| error.get("message")) {
                Some(why) => Err(Lost::Refused(why.as_str().unwrap_or_default().to_owned())),
                None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
            };
            // Drop late responses, which may be large.
            if !self.given_up.remove(&number) {
                self.answers.insert(number, answer);
            }
            return Ok(());
        }
        match message.get("method").and_then(Value::as_str) {
            Some("Page.domContentEventFired") => self.loaded += 1,
            Some("Inspector.targetCrashed" | "Target.detachedFromTarget") => return Err(Lost::Closed),
            _ => {}
        }
        Ok(())
    }
}

/// `{"id":12,…`
fn number_in(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("{\"id\":")?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..digits].parse().ok()
}

/// The address a browser listens on for commands, from `/json/version` of its debugging port.
pub fn browser_address(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    write!(stream, "GET /json/version HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
        .ok()?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    // Some versions keep the connection open: stop when the JSON object is complete.
    while let Ok(read) = stream.read(&mut chunk) {
        answer.extend_from_slice(&chunk[..read]);
        if read == 0 || answer.ends_with(b"}") || answer.ends_with(b"}\n") {
            break;
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let body = &text[text.find('{')?..];
    let version: Value = serde_json::from_str(body.trim()).ok()?;
    version.get("webSocketDebuggerUrl")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::number_in;

    #[test]
    fn the_number_of_an_answer_that_is_not_json() {
        assert_eq!(number_in("{\"id\":17,\"result\":{\"x\":\"\\ud800\"}}"), Some(17));
        assert_eq!(number_in("{\"method\":\"Page.loaded\"}"), None);
    }
}
